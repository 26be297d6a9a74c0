// SPDX-License-Identifier: Apache-2.0
// Programs on PJRT plugins: compiled from text and bytecode, checked before
// they run, run on every device, with outputs as tensors.

#include <stdio.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "bridge/tensor.h"
#include "support/pjrt_support.h"
#include "tensor/dtype.h"

static const DLDataType f32 = {kDLFloat, 32, 1};
static const DLDataType i32 = {kDLInt, 32, 1};

static ist_program *compile(pjrt_bench *bench, size_t device,
                            const char *text) {
  ist_program *program = NULL;
  bench_ok(bench,
           ist_program_compile(
               bench_device(bench, device), text, strlen(text),
               &(ist_program_options){
                   .struct_size = sizeof(ist_program_options), .name = "test"},
               &program, &bench->err));
  assert_non_null(program);
  return program;
}

static ist_tensor *wrap(pjrt_bench *bench, void *data, DLDataType dtype,
                        int32_t ndim, int64_t *shape, int64_t *strides) {
  DLTensor view = {data, {kDLCPU, 0}, ndim, dtype, shape, strides, 0};
  ist_tensor *tensor = NULL;
  bench_ok(bench, ist_tensor_wrap(bench->context, &view, NULL, NULL, &tensor,
                                  &bench->err));
  return tensor;
}

static ist_code run(pjrt_bench *bench, ist_program *program,
                    ist_tensor **inputs, size_t input_count,
                    ist_tensor **outputs, size_t output_count,
                    ist_receipt *receipts) {
  ist_run how = {.struct_size = sizeof how,
                 .inputs = inputs,
                 .input_count = input_count,
                 .outputs = outputs,
                 .output_count = output_count,
                 .receipts = receipts};
  return ist_program_run(program, &how, &bench->err);
}

static void read_out(pjrt_bench *bench, ist_tensor *tensor, void *target) {
  DLTensor to = *ist_tensor_view(tensor);
  to.data = target;
  to.device = (DLDevice){kDLCPU, 0};
  to.strides = NULL;
  to.byte_offset = 0;
  bench_ok(bench, ist_tensor_copy_into(tensor, &to, NULL, NULL, &bench->err));
}

static const char add_text[] =
    "module @add {\n"
    "  func.func @main(%x: tensor<2x3xf32>, %n: tensor<3xi32>)\n"
    "      -> (tensor<2x3xf32>, tensor<3xi32>) {\n"
    "    %0 = stablehlo.add %x, %x : tensor<2x3xf32>\n"
    "    %1 = stablehlo.add %n, %n : tensor<3xi32>\n"
    "    return %0, %1 : tensor<2x3xf32>, tensor<3xi32>\n"
    "  }\n"
    "}\n";

static float *aligned_floats(void) {
  float *data = aligned_alloc(64, 64);
  assert_non_null(data);
  for (int i = 0; i < 16; i++) data[i] = (float)i;
  return data;
}

static void program__runs_on_every_device_with_two_outputs(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = aligned_floats(), sums[6];
  int32_t *numbers = aligned_alloc(64, 64), twice[3];
  assert_non_null(numbers);
  for (int i = 0; i < 3; i++) numbers[i] = i - 1;
  for (size_t device = 0; device < 2; device++) {
    ist_program *program = compile(&bench, device, add_text);
    assert_int_equal(ist_program_input_count(program), 2);
    assert_int_equal(ist_program_output_count(program), 2);
    ist_tensor *in[2], *out[2];
    in[0] = wrap(&bench, data, f32, 2, (int64_t[]){2, 3}, NULL);
    in[1] = wrap(&bench, numbers, i32, 1, (int64_t[]){3}, NULL);
    ist_receipt receipts[2] = {{.struct_size = sizeof(ist_receipt)},
                               {.struct_size = sizeof(ist_receipt)}};
    bench_ok(&bench, run(&bench, program, in, 2, out, 2, receipts));
    for (int i = 0; i < 2; i++) {
      assert_int_equal(receipts[i].route, IST_ROUTE_ALIAS);
      assert_int_equal(receipts[i].bytes_moved, 0);
    }
    read_out(&bench, out[0], sums);
    read_out(&bench, out[1], twice);
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

static size_t read_data(const char *name, char *path, size_t path_size,
                        char *code, size_t code_size) {
  snprintf(path, path_size, "%s/tests/pjrt/data/%s", getenv("ISTHMUS_SOURCE"),
           name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t size = fread(code, 1, code_size, file);
  fclose(file);
  return size;
}

static void bytecode__runs_like_text(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  char path[1024], code[4096];
  size_t size = read_data("scale.mlirbc", path, sizeof path, code, sizeof code);
  ist_program *program = NULL;
  bench_ok(&bench,
           ist_program_compile(
               bench_device(&bench, 0), code, size,
               &(ist_program_options){
                   .struct_size = sizeof(ist_program_options), .name = path},
               &program, &bench.err));
  float *data = aligned_floats(), got[6], factor[16] = {3};
  ist_tensor *in[2], *out[1];
  in[0] = wrap(&bench, data, f32, 2, (int64_t[]){2, 3}, NULL);
  in[1] = wrap(&bench, factor, f32, 0, NULL, NULL);
  bench_ok(&bench, run(&bench, program, in, 2, out, 1, NULL));
  read_out(&bench, out[0], got);
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
    ist_program *program = compile(&bench, 0, text);
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
        wrap(&bench, bytes, (DLDataType){dtype->code, dtype->bits, 1}, 2,
             (int64_t[]){4, 2}, NULL);
    ist_tensor *out = NULL;
    bench_ok(&bench, run(&bench, program, &in, 1, &out, 1, NULL));
    read_out(&bench, out, got);
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

static void transposed_input__is_copied_and_gives_right_numbers(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program *program = compile(&bench, 0, add_text);
  float *data = aligned_floats(), sums[6];
  int32_t numbers[3] = {0};
  ist_tensor *in[2], *out[2];
  in[0] = wrap(&bench, data, f32, 2, (int64_t[]){2, 3}, (int64_t[]){1, 2});
  in[1] = wrap(&bench, numbers, i32, 1, (int64_t[]){3}, NULL);
  ist_receipt receipts[2] = {{.struct_size = sizeof(ist_receipt)},
                             {.struct_size = sizeof(ist_receipt)}};
  bench_ok(&bench, run(&bench, program, in, 2, out, 2, receipts));
  assert_int_equal(receipts[0].route, IST_ROUTE_COPY);
  read_out(&bench, out[0], sums);
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++)
      assert_true(sums[3 * i + j] == 2.0f * (float)(i + 2 * j));
  for (int i = 0; i < 2; i++) {
    ist_tensor_release(in[i]);
    ist_tensor_release(out[i]);
  }
  ist_program_release(program);
  bench_close(&bench);
  free(data);
}

static void *place(pjrt_bench *bench, size_t device, void *data,
                   DLDataType dtype, int32_t ndim, int64_t *numbers,
                   bool adopt) {
  DLTensor view = {data, {kDLCPU, 0}, ndim, dtype, numbers, numbers + ndim, 0};
  ist_placement where = {
      .struct_size = sizeof where, .device = device, .view = &view};
  void *buffer = NULL;
  bench_ok(bench, adopt ? ist__backend_adopt(bench->backend, &where, &buffer,
                                             &bench->err)
                        : ist__backend_copy_in(bench->backend, &where, &buffer,
                                               &bench->err));
  return buffer;
}

typedef struct wrong_input {
  DLDataType dtype;
  int32_t ndim;
  int64_t numbers[4];
  size_t device;
  bool adopt;
  ist_code code;
  const char *words;
} wrong_input;

static const wrong_input wrong_inputs[] = {
    {{kDLInt, 32, 1},
     2,
     {2, 3, 3, 1},
     0,
     false,
     IST_ERR_DTYPE_MISMATCH,
     "int32; needs float32"},
    {{kDLFloat, 32, 1},
     2,
     {3, 2, 2, 1},
     0,
     false,
     IST_ERR_SHAPE_MISMATCH,
     "[3,2]; needs [2,3]"},
    {{kDLFloat, 32, 1},
     1,
     {6, 1},
     0,
     false,
     IST_ERR_SHAPE_MISMATCH,
     "[6]; needs [2,3]"},
    {{kDLFloat, 32, 1},
     2,
     {2, 3, 1, 2},
     0,
     true,
     IST_ERR_TARGET_LAYOUT,
     "another order"},
    {{kDLFloat, 32, 1},
     2,
     {2, 3, 3, 1},
     1,
     false,
     IST_ERR_ARGUMENT,
     "another device"},
};

static ist_code execute(pjrt_bench *bench, void *program, void **inputs,
                        size_t count) {
  void *outputs[2];
  ist_execution how = {.struct_size = sizeof how,
                       .program = program,
                       .inputs = inputs,
                       .input_count = count,
                       .outputs = outputs,
                       .output_count = 2};
  ist_code code = ist__backend_execute(bench->backend, &how, &bench->err);
  assert_null(outputs[0]);
  assert_null(outputs[1]);
  return code;
}

// The plugins compare byte sizes only and would compute wrong numbers.
static void wrong_arguments__never_reach_execute(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_source source = {.struct_size = sizeof source,
                       .code = add_text,
                       .size = strlen(add_text),
                       .name = "add"};
  void *program = NULL;
  bench_ok(&bench,
           ist__backend_compile(bench.backend, &source, &program, &bench.err));
  float *data = aligned_floats();
  void *inputs[2];
  inputs[1] = place(&bench, 0, data, i32, 1, (int64_t[]){3, 1}, false);
  for (size_t i = 0; i < COUNT_OF(wrong_inputs); i++) {
    wrong_input w = wrong_inputs[i];
    inputs[0] =
        place(&bench, w.device, data, w.dtype, w.ndim, w.numbers, w.adopt);
    assert_refused(execute(&bench, program, inputs, 2), w.code, bench.err,
                   w.words);
    ist__backend_release_buffer(bench.backend, inputs[0]);
  }
  assert_refused(execute(&bench, program, inputs + 1, 1), IST_ERR_ARITY,
                 bench.err, "needs 2 and 2");
  ist__backend_release_buffer(bench.backend, inputs[1]);
  ist__backend_release_program(bench.backend, program);
  bench_close(&bench);
  free(data);
}

// jax marks arguments that an output may overwrite; isthmus's stay.
static void donated_argument__is_left_alone(void **state) {
  static const char text[] =
      "func.func @main(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32})\n"
      "    -> tensor<4xf32> {\n"
      "  %0 = stablehlo.add %x, %x : tensor<4xf32>\n"
      "  return %0 : tensor<4xf32>\n}\n";
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = aligned_floats(), got[4];
  for (int adopt = 0; adopt < 2; adopt++) {
    void *buffer =
        place(&bench, 0, data, f32, 1, (int64_t[]){4, 1}, adopt != 0);
    ist_source source = {.struct_size = sizeof source,
                         .code = text,
                         .size = strlen(text),
                         .name = "donate"};
    void *compiled = NULL, *output = NULL;
    bench_ok(&bench, ist__backend_compile(bench.backend, &source, &compiled,
                                          &bench.err));
    ist_execution how = {.struct_size = sizeof how,
                         .program = compiled,
                         .inputs = &buffer,
                         .input_count = 1,
                         .outputs = &output,
                         .output_count = 1};
    bench_ok(&bench, ist__backend_execute(bench.backend, &how, &bench.err));
    bench_ok(&bench, ist__backend_copy_out(bench.backend, output, got,
                                           sizeof got, &bench.err));
    for (int i = 0; i < 4; i++) assert_true(got[i] == 2.0f * (float)i);
    bench_ok(&bench, ist__backend_copy_out(bench.backend, buffer, got,
                                           sizeof got, &bench.err));
    for (int i = 0; i < 4; i++) assert_true(got[i] == (float)i);
    for (int i = 0; i < 4; i++) assert_true(data[i] == (float)i);
    ist__backend_release_buffer(bench.backend, output);
    ist__backend_release_buffer(bench.backend, buffer);
    ist__backend_release_program(bench.backend, compiled);
  }
  bench_close(&bench);
  free(data);
}

static void constant_program__needs_no_input(void **state) {
  static const char text[] =
      "func.func @main() -> tensor<3xi32> {\n"
      "  %0 = stablehlo.constant dense<[7, 8, 9]> : tensor<3xi32>\n"
      "  return %0 : tensor<3xi32>\n}\n";
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program *program = compile(&bench, 0, text);
  ist_tensor *out = NULL;
  int32_t got[3];
  bench_ok(&bench, run(&bench, program, NULL, 0, &out, 1, NULL));
  read_out(&bench, out, got);
  assert_int_equal(got[0] + got[1] * got[2], 79);
  ist_tensor_release(out);
  ist_program_release(program);
  bench_close(&bench);
}

static void output__is_lent_where_the_plugin_keeps_it(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program *program = compile(&bench, 0, add_text);
  float *data = aligned_floats();
  int32_t numbers[3] = {1, 2, 3};
  ist_tensor *in[2], *out[2];
  in[0] = wrap(&bench, data, f32, 2, (int64_t[]){2, 3}, NULL);
  in[1] = wrap(&bench, numbers, i32, 1, (int64_t[]){3}, NULL);
  bench_ok(&bench, run(&bench, program, in, 2, out, 2, NULL));
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
  ist_program *twice = compile(&bench, 0, twice_text);
  ist_program *slow = compile(&bench, 0, long_text);
  ist_tensor *in = wrap(&bench, data, f32, 2, (int64_t[]){256, 256}, NULL);
  ist_tensor *first = NULL, *between = NULL, *second = NULL;
  bench_ok(&bench, run(&bench, twice, &in, 1, &first, 1, NULL));
  bench_ok(&bench,
           ist_tensor_move(first, host, NULL, &between, NULL, &bench.err));
  bench_ok(&bench, run(&bench, slow, &between, 1, &second, 1, NULL));
  ist_tensor_release(in);
  ist_tensor_release(first);
  ist_tensor_release(between);
  ist_tensor_release(second);
  ist_program_release(twice);
  ist_program_release(slow);
  bench_close(&bench);
  free(data);
}

static void broken_program__is_told_in_one_line(void **state) {
  static const char *const texts[] = {
      "this is no program",
      "func.func @main(",
      "module {}",
      "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "  %0 = stablehlo.no_such_thing %x : tensor<2xf32>\n"
      "  return %0 : tensor<2xf32>\n}\n",
      "\xff\xfe\x00\x01",
      "ML\xefRgarbage"};
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  for (size_t i = 0; i < COUNT_OF(texts); i++) {
    ist_program *program = NULL;
    ist_code code = ist_program_compile(
        bench_device(&bench, 0), texts[i], strlen(texts[i]),
        &(ist_program_options){.struct_size = sizeof(ist_program_options),
                               .name = "broken.mlir"},
        &program, &bench.err);
    assert_refused(code, IST_ERR_PROGRAM, bench.err, "broken.mlir");
    assert_non_null(strstr(bench.err.message, "StableHLO up to 1."));
    assert_null(program);
  }
  ist_program *program = NULL;
  ist_code code = ist_program_compile(
      bench_device(&bench, 0), "", 0,
      &(ist_program_options){.struct_size = sizeof(ist_program_options),
                             .name = "empty"},
      &program, &bench.err);
  assert_refused(code, IST_ERR_PROGRAM, bench.err, "empty");
  bench_close(&bench);
}

// A program for two devices would run on one and give wrong numbers.
static void program_for_many_devices__is_refused(void **state) {
  static const char *const heads[] = {
      "module attributes {mhlo.num_replicas = 2 : i32} {",
      "module attributes {mhlo.num_partitions=8 : i32} {",
      "module attributes {mhlo.num_partitions = 99999999999999999999 : i32} {"};
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  for (size_t i = 0; i < COUNT_OF(heads); i++) {
    char text[512];
    snprintf(text, sizeof text,
             "%s\n  func.func @main(%%x: tensor<2xf32>) -> tensor<2xf32> {\n"
             "    return %%x : tensor<2xf32>\n  }\n}\n",
             heads[i]);
    ist_program *program = NULL;
    ist_code code = ist_program_compile(
        bench_device(&bench, 0), text, strlen(text),
        &(ist_program_options){.struct_size = sizeof(ist_program_options),
                               .name = "many"},
        &program, &bench.err);
    assert_refused(code, IST_ERR_NOT_IN_VERSION, bench.err, "one device");
  }
  ist_program *one = compile(
      &bench, 0,
      "module attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = "
      "1 : i32} {\n  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "    return %x : tensor<2xf32>\n  }\n}\n");
  ist_program_release(one);
  bench_close(&bench);
}

// Compiled for one device, an all_reduce gives its own input, unreduced.
static void collective__is_refused_in_text_and_bytecode(void **state) {
  static const char text[] =
      "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
      "  %0 = \"stablehlo.all_reduce\"(%x) ({\n"
      "    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "      %s = stablehlo.add %a, %b : tensor<f32>\n"
      "      stablehlo.return %s : tensor<f32>\n"
      "  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}\n"
      "      : (tensor<4xf32>) -> tensor<4xf32>\n"
      "  return %0 : tensor<4xf32>\n}\n";
  static const char harmless[] =
      "func.func private @my_all_reduce(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "  return %x : tensor<2xf32>\n}\n"
      "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "  %0 = call @my_all_reduce(%x) : (tensor<2xf32>) -> tensor<2xf32>\n"
      "  return %0 : tensor<2xf32>\n}\n";
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  char path[1024], code[4096];
  size_t size =
      read_data("sum_of_two.mlirbc", path, sizeof path, code, sizeof code);
  ist_program *program = NULL;
  for (int i = 0; i < 2; i++) {
    ist_code got = ist_program_compile(
        bench_device(&bench, 0), i == 0 ? text : code,
        i == 0 ? strlen(text) : size, NULL, &program, &bench.err);
    assert_refused(got, IST_ERR_NOT_IN_VERSION, bench.err, "all_reduce");
    assert_ptr_equal(strstr(bench.err.message, "not in this version: "),
                     bench.err.message);
    assert_null(program);
  }
  ist_program_release(compile(&bench, 0, harmless));
  bench_close(&bench);
}

// What has no tensor for an argument or result is refused by name.
static void odd_signatures__are_refused_by_name(void **state) {
  static const struct {
    const char *text;
    ist_code code;
  } cases[] = {
      {"func.func @main(%x: tensor<?xf32, #stablehlo.bounds<6>>) -> "
       "tensor<?xf32, #stablehlo.bounds<6>> {\n"
       "  return %x : tensor<?xf32, #stablehlo.bounds<6>>\n}\n",
       IST_ERR_DYNAMIC_SHAPE},
      {"func.func @main(%x: tuple<tensor<2xf32>>) -> tensor<2xf32> {\n"
       "  %0 = stablehlo.get_tuple_element %x[0] : "
       "(tuple<tensor<2xf32>>) -> tensor<2xf32>\n"
       "  return %0 : tensor<2xf32>\n}\n",
       IST_ERR_TUPLE},
      {"func.func @main(%t: !stablehlo.token) -> !stablehlo.token {\n"
       "  return %t : !stablehlo.token\n}\n",
       IST_ERR_TARGET_DTYPE},
  };
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    ist_program *program = NULL;
    ist_code code = ist_program_compile(
        bench_device(&bench, 0), cases[i].text, strlen(cases[i].text),
        &(ist_program_options){.struct_size = sizeof(ist_program_options),
                               .name = "odd"},
        &program, &bench.err);
    assert_refused(code, cases[i].code, bench.err, "of the program");
    assert_null(program);
  }
  bench_close(&bench);
}

// A program may ask for layouts: a permuted result comes out right, and a
// permuted argument is refused, since what is handed over is row-major.
static void asked_layouts__never_change_values(void **state) {
  static const char result[] =
      "func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32> "
      "{mhlo.layout_mode = \"{0,1}\"}) {\n"
      "  %0 = stablehlo.add %x, %x : tensor<2x3xf32>\n"
      "  return %0 : tensor<2x3xf32>\n}\n";
  static const char argument[] =
      "func.func @main(%x: tensor<2x3xf32> {mhlo.layout_mode = \"{0,1}\"}) "
      "-> tensor<2x3xf32> {\n"
      "  %0 = stablehlo.add %x, %x : tensor<2x3xf32>\n"
      "  return %0 : tensor<2x3xf32>\n}\n";
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = aligned_floats(), got[6];
  ist_tensor *in = wrap(&bench, data, f32, 2, (int64_t[]){2, 3}, NULL);
  ist_tensor *out = NULL;
  ist_program *program = compile(&bench, 0, result);
  bench_ok(&bench, run(&bench, program, &in, 1, &out, 1, NULL));
  assert_int_equal(ist_tensor_view(out)->strides[0], 1);
  read_out(&bench, out, got);
  for (int i = 0; i < 6; i++) assert_true(got[i] == 2.0f * (float)i);
  ist_tensor_release(out);
  ist_program_release(program);
  program = compile(&bench, 0, argument);
  assert_refused(run(&bench, program, &in, 1, &out, 1, NULL),
                 IST_ERR_TARGET_LAYOUT, bench.err, "another order");
  ist_tensor_release(in);
  ist_program_release(program);
  bench_close(&bench);
  free(data);
}

#define ON_REAL_PLUGINS(function)                      \
  {#function " (P1)", function, NULL, NULL, "P1"},     \
      {#function " (P2)", function, NULL, NULL, "P2"}, \
      {#function " (P3)", function, NULL, NULL, "P3"}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_REAL_PLUGINS(program__runs_on_every_device_with_two_outputs),
      ON_REAL_PLUGINS(bytecode__runs_like_text),
      ON_REAL_PLUGINS(every_dtype__is_told_and_returned_as_itself),
      ON_REAL_PLUGINS(transposed_input__is_copied_and_gives_right_numbers),
      ON_REAL_PLUGINS(wrong_arguments__never_reach_execute),
      ON_REAL_PLUGINS(donated_argument__is_left_alone),
      ON_REAL_PLUGINS(constant_program__needs_no_input),
      ON_REAL_PLUGINS(output__is_lent_where_the_plugin_keeps_it),
      ON_REAL_PLUGINS(last_holder__may_go_while_a_program_runs),
      ON_REAL_PLUGINS(broken_program__is_told_in_one_line),
      ON_REAL_PLUGINS(program_for_many_devices__is_refused),
      ON_REAL_PLUGINS(collective__is_refused_in_text_and_bytecode),
      ON_REAL_PLUGINS(odd_signatures__are_refused_by_name),
      ON_REAL_PLUGINS(asked_layouts__never_change_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
