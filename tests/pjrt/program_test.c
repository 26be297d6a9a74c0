// SPDX-License-Identifier: Apache-2.0
// Programs on PJRT plugins: compiled from text and bytecode, run on every
// device, with outputs as tensors.

#include <stdio.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "bridge/tensor.h"
#include "support/program_support.h"
#include "tensor/dtype.h"

static const char add_text[] =
    "module @add {\n"
    "  func.func @main(%x: tensor<2x3xf32>, %n: tensor<3xi32>)\n"
    "      -> (tensor<2x3xf32>, tensor<3xi32>) {\n"
    "    %0 = stablehlo.add %x, %x : tensor<2x3xf32>\n"
    "    %1 = stablehlo.add %n, %n : tensor<3xi32>\n"
    "    return %0, %1 : tensor<2x3xf32>, tensor<3xi32>\n"
    "  }\n"
    "}\n";

static void program__runs_on_every_device_with_two_outputs(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = program_floats(), sums[6];
  int32_t *numbers = aligned_alloc(64, 64), twice[3];
  assert_non_null(numbers);
  for (int i = 0; i < 3; i++) numbers[i] = i - 1;
  for (size_t device = 0; device < 2; device++) {
    ist_program *program = program_compile(&bench, device, add_text, NULL);
    assert_int_equal(ist_program_input_count(program), 2);
    assert_int_equal(ist_program_output_count(program), 2);
    ist_tensor *in[2], *out[2];
    in[0] = program_wrap(&bench, data, f32, 2, (int64_t[]){2, 3}, NULL);
    in[1] = program_wrap(&bench, numbers, i32, 1, (int64_t[]){3}, NULL);
    ist_receipt receipts[2] = {{.struct_size = sizeof(ist_receipt)},
                               {.struct_size = sizeof(ist_receipt)}};
    bench_ok(&bench, program_run(&bench, program, in, 2, out, 2, receipts));
    for (int i = 0; i < 2; i++) {
      assert_int_equal(receipts[i].route, IST_ROUTE_ALIAS);
      assert_int_equal(receipts[i].bytes_moved, 0);
    }
    program_read(&bench, out[0], sums);
    program_read(&bench, out[1], twice);
    for (int i = 0; i < 6; i++) assert_true(sums[i] == 2.0f * (float)i);
    for (int i = 0; i < 3; i++) assert_int_equal(twice[i], 2 * (i - 1));
    for (int i = 0; i < 2; i++) {
      ist_tensor_release(in[i]);
      ist_tensor_release(out[i]);
    }
    ist_program_release(program);
  }
  bench_close(&bench);
  free(data);
  free(numbers);
}

static void bytecode__runs_like_text(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  char path[1024], code[4096];
  size_t size =
      program_data("scale.mlirbc", path, sizeof path, code, sizeof code);
  ist_program *program = NULL;
  bench_ok(&bench,
           ist_program_compile(
               bench_device(&bench, 0), code, size,
               &(ist_program_options){
                   .struct_size = sizeof(ist_program_options), .name = path},
               &program, &bench.err));
  float *data = program_floats(), got[6], factor[16] = {3};
  ist_tensor *in[2], *out[1];
  in[0] = program_wrap(&bench, data, f32, 2, (int64_t[]){2, 3}, NULL);
  in[1] = program_wrap(&bench, factor, f32, 0, NULL, NULL);
  bench_ok(&bench, program_run(&bench, program, in, 2, out, 1, NULL));
  program_read(&bench, out[0], got);
  for (int i = 0; i < 6; i++) assert_true(got[i] == 3.0f * (float)i);
  for (int i = 0; i < 2; i++) ist_tensor_release(in[i]);
  ist_tensor_release(out[0]);
  ist_program_release(program);
  bench_close(&bench);
  free(data);
}

// The name of a dtype in StableHLO text, or NULL.
static const char *mlir_name(const ist__dtype *dtype) {
  static const struct {
    const char *ours;
    const char *mlir;
  } names[] = {
      {"bool", "i1"},
      {"int8", "i8"},
      {"int16", "i16"},
      {"int32", "i32"},
      {"int64", "i64"},
      {"uint8", "ui8"},
      {"uint16", "ui16"},
      {"uint32", "ui32"},
      {"uint64", "ui64"},
      {"float16", "f16"},
      {"float32", "f32"},
      {"float64", "f64"},
      {"bfloat16", "bf16"},
      {"complex64", "complex<f32>"},
      {"complex128", "complex<f64>"},
      {"float8_e3m4", "f8E3M4"},
      {"float8_e4m3", "f8E4M3"},
      {"float8_e4m3b11fnuz", "f8E4M3B11FNUZ"},
      {"float8_e4m3fn", "f8E4M3FN"},
      {"float8_e4m3fnuz", "f8E4M3FNUZ"},
      {"float8_e5m2", "f8E5M2"},
      {"float8_e5m2fnuz", "f8E5M2FNUZ"},
      {"float8_e8m0fnu", "f8E8M0FNU"},
      {"float4_e2m1fn", "f4E2M1FN"},
      {"int4", "i4"},
      {"uint4", "ui4"},
      {"int2", "i2"},
      {"uint2", "ui2"},
  };
  for (size_t i = 0; i < COUNT_OF(names); i++)
    if (strcmp(names[i].ours, dtype->name) == 0) return names[i].mlir;
  return NULL;
}

// XLA numbers types otherwise than PJRT: each must come back as itself.
static void every_dtype__is_told_and_returned_as_itself(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  int told = 0;
  for (int32_t n = 0; n < ist__dtype_count(); n++) {
    const ist__dtype *dtype = ist__dtype_at(n);
    const char *name = mlir_name(dtype);
    if (name == NULL) continue;
    char text[512];
    snprintf(text, sizeof text,
             "func.func @main(%%x: tensor<4x2x%s>) -> tensor<4x2x%s> {\n"
             "  return %%x : tensor<4x2x%s>\n}\n",
             name, name, name);
    ist_program *program = program_compile(&bench, 0, text, NULL);
    ist_spec spec = {.struct_size = sizeof spec};
    bench_ok(&bench, ist_program_input(program, 0, &spec, &bench.err));
    assert_int_equal(spec.dtype.code, dtype->code);
    assert_int_equal(spec.dtype.bits, dtype->bits);
    assert_int_equal(spec.ndim, 2);
    assert_int_equal(spec.shape[0], 4);
    unsigned char *bytes = aligned_alloc(64, 128), got[128];
    size_t size = 8u * dtype->bits / 8;
    for (size_t i = 0; i < size; i++)
      bytes[i] = (unsigned char)(n == 0 ? i & 1 : i * 23 + 5);
    ist_tensor *in =
        program_wrap(&bench, bytes, (DLDataType){dtype->code, dtype->bits, 1},
                     2, (int64_t[]){4, 2}, NULL);
    ist_tensor *out = NULL;
    bench_ok(&bench, program_run(&bench, program, &in, 1, &out, 1, NULL));
    program_read(&bench, out, got);
    if (memcmp(got, bytes, size) != 0) fail_msg("%s differs", dtype->name);
    ist_tensor_release(in);
    ist_tensor_release(out);
    ist_program_release(program);
    free(bytes);
    told++;
  }
  assert_int_equal(told, 28);
  bench_close(&bench);
}

static void constant_program__needs_no_input(void **state) {
  static const char text[] =
      "func.func @main() -> tensor<3xi32> {\n"
      "  %0 = stablehlo.constant dense<[7, 8, 9]> : tensor<3xi32>\n"
      "  return %0 : tensor<3xi32>\n}\n";
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program *program = program_compile(&bench, 0, text, NULL);
  ist_tensor *out = NULL;
  int32_t got[3];
  bench_ok(&bench, program_run(&bench, program, NULL, 0, &out, 1, NULL));
  program_read(&bench, out, got);
  assert_int_equal(got[0] + got[1] * got[2], 79);
  ist_tensor_release(out);
  ist_program_release(program);
  bench_close(&bench);
}

static void output__is_lent_where_the_plugin_keeps_it(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program *program = program_compile(&bench, 0, add_text, NULL);
  float *data = program_floats();
  int32_t numbers[3] = {1, 2, 3};
  ist_tensor *in[2], *out[2];
  in[0] = program_wrap(&bench, data, f32, 2, (int64_t[]){2, 3}, NULL);
  in[1] = program_wrap(&bench, numbers, i32, 1, (int64_t[]){3}, NULL);
  bench_ok(&bench, program_run(&bench, program, in, 2, out, 2, NULL));
  DLManagedTensorVersioned *view = NULL;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  bench_ok(&bench,
           ist_tensor_export(out[0], NULL, &view, &receipt, &bench.err));
  assert_int_equal(receipt.route, IST_ROUTE_ALIAS);
  for (int i = 0; i < 2; i++) {
    ist_tensor_release(in[i]);
    ist_tensor_release(out[i]);
  }
  ist_program_release(program);
  const float *got = (const float *)((const char *)view->dl_tensor.data +
                                     view->dl_tensor.byte_offset);
  for (int i = 0; i < 6; i++) assert_true(got[i] == 2.0f * (float)i);
  view->deleter(view);
  bench_close(&bench);
  free(data);
}

// A run that takes a while: the plugin then gives its argument back on a thread
// of its own, and with it the last that holds the client.
static const char long_text[] =
    "func.func @main(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %end = stablehlo.constant dense<40> : tensor<i32>\n"
    "  %r:2 = stablehlo.while(%i = %zero, %y = %x)\n"
    "      : tensor<i32>, tensor<256x256xf32>\n"
    "    cond {\n"
    "      %c = stablehlo.compare LT, %i, %end\n"
    "          : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "      stablehlo.return %c : tensor<i1>\n"
    "    } do {\n"
    "      %n = stablehlo.add %i, %one : tensor<i32>\n"
    "      %z = stablehlo.dot %y, %x : (tensor<256x256xf32>,\n"
    "          tensor<256x256xf32>) -> tensor<256x256xf32>\n"
    "      stablehlo.return %n, %z : tensor<i32>, tensor<256x256xf32>\n"
    "    }\n"
    "  return %r#1 : tensor<256x256xf32>\n"
    "}\n";

static const char twice_text[] =
    "func.func @main(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {\n"
    "  %0 = stablehlo.add %x, %x : tensor<256x256xf32>\n"
    "  return %0 : tensor<256x256xf32>\n"
    "}\n";

static void last_holder__may_go_while_a_program_runs(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = calloc(256 * 256, sizeof *data);
  assert_non_null(data);
  const ist_device *host = ist_context_host(bench.context);
  ist_program *twice = program_compile(&bench, 0, twice_text, NULL);
  ist_program *slow = program_compile(&bench, 0, long_text, NULL);
  ist_tensor *in =
      program_wrap(&bench, data, f32, 2, (int64_t[]){256, 256}, NULL);
  ist_tensor *first = NULL, *between = NULL, *second = NULL;
  bench_ok(&bench, program_run(&bench, twice, &in, 1, &first, 1, NULL));
  bench_ok(&bench,
           ist_tensor_move(first, host, NULL, &between, NULL, &bench.err));
  bench_ok(&bench, program_run(&bench, slow, &between, 1, &second, 1, NULL));
  ist_tensor_release(in);
  ist_tensor_release(first);
  ist_tensor_release(between);
  ist_tensor_release(second);
  ist_program_release(twice);
  ist_program_release(slow);
  bench_close(&bench);
  free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_REAL_PLUGINS(program__runs_on_every_device_with_two_outputs),
      ON_REAL_PLUGINS(bytecode__runs_like_text),
      ON_REAL_PLUGINS(every_dtype__is_told_and_returned_as_itself),
      ON_REAL_PLUGINS(constant_program__needs_no_input),
      ON_REAL_PLUGINS(output__is_lent_where_the_plugin_keeps_it),
      ON_REAL_PLUGINS(last_holder__may_go_while_a_program_runs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
