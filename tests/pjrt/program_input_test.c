// SPDX-License-Identifier: Apache-2.0
// What a program is given: checked, in the layout that it reads, donated where
// that was asked for and can be, named in errors as its text names it.

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

static void transposed_input__is_copied_and_gives_right_numbers(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program *program = program_compile(&bench, 0, add_text, NULL);
  float *data = program_floats(), sums[6];
  int32_t numbers[3] = {0};
  ist_tensor *in[2], *out[2];
  in[0] =
      program_wrap(&bench, data, f32, 2, (int64_t[]){2, 3}, (int64_t[]){1, 2});
  in[1] = program_wrap(&bench, numbers, i32, 1, (int64_t[]){3}, NULL);
  ist_receipt receipts[2] = {{.struct_size = sizeof(ist_receipt)},
                             {.struct_size = sizeof(ist_receipt)}};
  bench_ok(&bench, program_run(&bench, program, in, 2, out, 2, receipts));
  assert_int_equal(receipts[0].route, IST_ROUTE_COPY);
  program_read(&bench, out[0], sums);
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
  float *data = program_floats();
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
  float *data = program_floats(), got[4];
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

// A program may ask for layouts: a permuted result comes out right.
static void asked_layout_of_a_result__is_told(void **state) {
  static const char text[] =
      "func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32> "
      "{mhlo.layout_mode = \"{0,1}\"}) {\n"
      "  %0 = stablehlo.add %x, %x : tensor<2x3xf32>\n"
      "  return %0 : tensor<2x3xf32>\n}\n";
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = program_floats(), got[6];
  ist_tensor *in = program_wrap(&bench, data, f32, 2, (int64_t[]){2, 3}, NULL);
  ist_tensor *out = NULL;
  ist_program *program = program_compile(&bench, 0, text, NULL);
  // The second run knows what the first has shown.
  for (int turn = 0; turn < 2; turn++) {
    bench_ok(&bench, program_run(&bench, program, &in, 1, &out, 1, NULL));
    assert_int_equal(ist_tensor_view(out)->strides[0], 1);
    program_read(&bench, out, got);
    for (int i = 0; i < 6; i++) assert_true(got[i] == 2.0f * (float)i);
    ist_tensor_release(out);
  }
  ist_program_release(program);
  ist_tensor_release(in);
  bench_close(&bench);
  free(data);
}

static const char turned_text[] =
    "func.func @main(%x: tensor<2x3xf32> {mhlo.layout_mode = \"{0,1}\"}) "
    "-> tensor<2x3xf32> {\n"
    "  %0 = stablehlo.add %x, %x : tensor<2x3xf32>\n"
    "  return %0 : tensor<2x3xf32>\n}\n";

// Runs it on a tensor, of which element i, j is i * a + j * b, and lets go.
static void assert_doubled(pjrt_bench *bench, ist_program *program,
                           ist_tensor *in, ist_route route, int a, int b) {
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_tensor *out = NULL;
  float got[6];
  bench_ok(bench, program_run(bench, program, &in, 1, &out, 1, &receipt));
  assert_int_equal(receipt.route, route);
  assert_int_equal(receipt.bytes_moved, route == IST_ROUTE_COPY ? 24 : 0);
  if (route == IST_ROUTE_COPY) {
    assert_string_equal(ist_reason_name(receipt.reasons[0].id), "permuted");
  }
  program_read(bench, out, got);
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++)
      assert_true(got[3 * i + j] == 2.0f * (float)(i * a + j * b));
  ist_tensor_release(out);
}

// An argument is copied into the order in which it is read, or taken as it is.
static void asked_layout_of_an_argument__is_given(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = program_floats();
  int64_t shape[2] = {2, 3};
  ist_program *program = program_compile(&bench, 0, turned_text, NULL);
  ist_tensor *in = program_wrap(&bench, data, f32, 2, shape, NULL);
  assert_doubled(&bench, program, in, IST_ROUTE_COPY, 3, 1);
  const ist_options never = {.struct_size = sizeof never,
                             .copy = IST_COPY_NEVER};
  ist_tensor *out = NULL;
  ist_run how = {.struct_size = sizeof how,
                 .inputs = &in,
                 .input_count = 1,
                 .outputs = &out,
                 .output_count = 1,
                 .options = &never};
  assert_refused(ist_program_run(program, &how, &bench.err),
                 IST_ERR_COPY_NEEDED, bench.err, "permuted");
  ist_tensor_release(in);
  in = program_wrap(&bench, data, f32, 2, shape, (int64_t[]){1, 2});
  assert_doubled(&bench, program, in, IST_ROUTE_ALIAS, 1, 2);
  // Its own result lies on the device in row-major order.
  how.inputs = &in;
  bench_ok(&bench, ist_program_run(program, &how, &bench.err));
  assert_doubled(&bench, program, out, IST_ROUTE_COPY, 2, 4);
  ist_tensor_release(in);
  ist_tensor_release(out);
  ist_program_release(program);
  bench_close(&bench);
  free(data);
}

// Reasons of a receipt, the last one.
static const char *last_reason(const ist_receipt *receipt) {
  assert_true(receipt->reason_count > 0);
  return ist_reason_name(receipt->reasons[receipt->reason_count - 1].id);
}

static const char donating_text[] =
    "func.func @main(%state: tensor<4xf32> {tf.aliasing_output = 0 : i32},\n"
    "                %step: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %0 = stablehlo.add %state, %step : tensor<4xf32>\n"
    "  return %0 : tensor<4xf32>\n}\n";

static ist_code donate_both(pjrt_bench *bench, ist_program *program,
                            ist_tensor **in, ist_tensor **out,
                            ist_receipt *receipts) {
  static const size_t both[] = {0, 1};
  ist_run how = {.struct_size = sizeof how,
                 .inputs = in,
                 .input_count = 2,
                 .outputs = out,
                 .output_count = 1,
                 .receipts = receipts,
                 .donate = both,
                 .donate_count = 2};
  return ist_program_run(program, &how, &bench->err);
}

static void others_memory__is_not_donated(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program *program = program_compile(&bench, 0, donating_text, NULL);
  float *data = program_floats(), got[4];
  ist_receipt receipts[2] = {{.struct_size = sizeof(ist_receipt)},
                             {.struct_size = sizeof(ist_receipt)}};
  ist_tensor *in[2], *out = NULL, *next = NULL;
  in[0] = program_wrap(&bench, data, f32, 1, (int64_t[]){4}, NULL);
  in[1] = program_wrap(&bench, data + 4, f32, 1, (int64_t[]){4}, NULL);
  // Memory of the caller's is never given away.
  bench_ok(&bench, donate_both(&bench, program, in, &out, receipts));
  assert_string_equal(last_reason(&receipts[0]), "not_donated_foreign");
  program_read(&bench, out, got);
  for (int i = 0; i < 4; i++) assert_true(got[i] == (float)(2 * i + 4));
  for (int i = 0; i < 16; i++) assert_true(data[i] == (float)i);
  ist_tensor_release(in[0]);
  // Nor what an export shows.
  DLManagedTensorVersioned *shown = NULL;
  bench_ok(&bench, ist_tensor_export(out, NULL, &shown, NULL, &bench.err));
  in[0] = out;
  bench_ok(&bench, donate_both(&bench, program, in, &next, receipts));
  assert_string_equal(last_reason(&receipts[0]), "not_donated_held");
  program_read(&bench, out, got);
  for (int i = 0; i < 4; i++) assert_true(got[i] == (float)(2 * i + 4));
  shown->deleter(shown);
  ist_tensor_release(next);
  ist_tensor_release(in[1]);
  ist_tensor_release(out);
  ist_program_release(program);
  bench_close(&bench);
  free(data);
}

static void donated_state__is_gone_and_says_so(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program *program = program_compile(&bench, 0, donating_text, NULL);
  float *data = program_floats(), got[4];
  ist_receipt receipts[2] = {{.struct_size = sizeof(ist_receipt)},
                             {.struct_size = sizeof(ist_receipt)}};
  DLManagedTensorVersioned *shown = NULL;
  ist_tensor *in[2], *out = NULL, *next = NULL;
  in[0] = program_wrap(&bench, data, f32, 1, (int64_t[]){4}, NULL);
  in[1] = program_wrap(&bench, data + 4, f32, 1, (int64_t[]){4}, NULL);
  bench_ok(&bench, program_run(&bench, program, in, 2, &out, 1, NULL));
  ist_tensor_release(in[0]);
  in[0] = out;
  bench_ok(&bench, donate_both(&bench, program, in, &next, receipts));
  assert_string_equal(last_reason(&receipts[0]), "donated");
  program_read(&bench, next, got);
  for (int i = 0; i < 4; i++) assert_true(got[i] == (float)(3 * i + 8));
  ist_error *err = &bench.err;
  ist_tensor *none = NULL;
  assert_refused(ist_tensor_wait(out, err), IST_ERR_DONATED, bench.err,
                 "donated to a program");
  assert_refused(ist_tensor_export(out, NULL, &shown, NULL, err),
                 IST_ERR_DONATED, bench.err, "donated");
  assert_refused(donate_both(&bench, program, in, &none, NULL), IST_ERR_DONATED,
                 bench.err, "donated");
  ist_tensor_release(in[1]);
  ist_tensor_release(out);
  ist_tensor_release(next);
  ist_program_release(program);
  bench_close(&bench);
  free(data);
}

// An argument that the program's text does not give away stays.
static void untaken_donation__leaves_the_tensor(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program *program = program_compile(&bench, 0, donating_text, NULL);
  float *data = program_floats(), got[4];
  const ist_options copy = {.struct_size = sizeof copy,
                            .copy = IST_COPY_ALWAYS};
  ist_receipt receipts[2] = {{.struct_size = sizeof(ist_receipt)},
                             {.struct_size = sizeof(ist_receipt)}};
  ist_tensor *first = program_wrap(&bench, data, f32, 1, (int64_t[]){4}, NULL);
  ist_tensor *pair[2] = {first, first}, *in[2], *out = NULL;
  // Two of the device's own.
  for (int i = 0; i < 2; i++) {
    ist_run how = {.struct_size = sizeof how,
                   .inputs = pair,
                   .input_count = 2,
                   .outputs = &in[i],
                   .output_count = 1,
                   .options = &copy};
    bench_ok(&bench, ist_program_run(program, &how, &bench.err));
  }
  bench_ok(&bench, donate_both(&bench, program, in, &out, receipts));
  assert_string_equal(last_reason(&receipts[0]), "donated");
  assert_string_equal(last_reason(&receipts[1]), "not_donated_untaken");
  program_read(&bench, in[1], got);
  for (int i = 0; i < 4; i++) assert_true(got[i] == (float)(2 * i));
  ist_tensor_release(in[0]);
  ist_tensor_release(out);
  // One tensor that stands for both inputs is held by the other.
  in[0] = in[1];
  bench_ok(&bench, donate_both(&bench, program, in, &out, receipts));
  assert_string_equal(last_reason(&receipts[0]), "not_donated_held");
  program_read(&bench, out, got);
  for (int i = 0; i < 4; i++) assert_true(got[i] == (float)(4 * i));
  ist_tensor_release(in[1]);
  ist_tensor_release(out);
  ist_tensor_release(first);
  ist_program_release(program);
  bench_close(&bench);
  free(data);
}

static void donation_of_no_input__is_refused(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program *program = program_compile(&bench, 0, donating_text, NULL);
  float *data = program_floats();
  ist_tensor *pair[2], *out = NULL;
  size_t third = 2;
  ist_run wrong = {.struct_size = sizeof wrong,
                   .inputs = pair,
                   .input_count = 2,
                   .outputs = &out,
                   .output_count = 1,
                   .donate = &third,
                   .donate_count = 1};
  pair[0] = pair[1] = program_wrap(&bench, data, f32, 1, (int64_t[]){4}, NULL);
  assert_refused(ist_program_run(program, &wrong, &bench.err), IST_ERR_ARGUMENT,
                 bench.err, "input 2 was to be donated");
  ist_tensor_release(pair[0]);
  ist_program_release(program);
  bench_close(&bench);
  free(data);
}

// Errors name an argument as the text does.
static void names_of_the_text__stand_in_errors(void **state) {
  static const char text[] =
      "func.func public @main(%arg0: tensor<2xf32>, %weights: tensor<3x4xf32>)"
      "\n  -> (tensor<2xf32> {jax.result_info = \"out['y']\"}) {\n"
      "  return %arg0 : tensor<2xf32>\n}\n";
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program *program = program_compile(&bench, 0, text, NULL);
  assert_string_equal(ist_program_input_name(program, 0), "");
  assert_string_equal(ist_program_input_name(program, 1), "weights");
  assert_null(ist_program_input_name(program, 2));
  assert_string_equal(ist_program_output_name(program, 0), "out['y']");
  float *data = program_floats();
  ist_tensor *in[2], *out = NULL;
  in[0] = program_wrap(&bench, data, f32, 1, (int64_t[]){2}, NULL);
  in[1] = program_wrap(&bench, data, f32, 2, (int64_t[]){4, 3}, NULL);
  assert_refused(program_run(&bench, program, in, 2, &out, 1, NULL),
                 IST_ERR_SHAPE_MISMATCH, bench.err,
                 "input 1 (weights) could not be taken");
  ist_tensor_release(in[0]);
  ist_tensor_release(in[1]);
  ist_program_release(program);
  bench_close(&bench);
  free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_REAL_PLUGINS(transposed_input__is_copied_and_gives_right_numbers),
      ON_REAL_PLUGINS(wrong_arguments__never_reach_execute),
      ON_REAL_PLUGINS(donated_argument__is_left_alone),
      ON_REAL_PLUGINS(asked_layout_of_a_result__is_told),
      ON_REAL_PLUGINS(asked_layout_of_an_argument__is_given),
      ON_REAL_PLUGINS(others_memory__is_not_donated),
      ON_REAL_PLUGINS(donated_state__is_gone_and_says_so),
      ON_REAL_PLUGINS(untaken_donation__leaves_the_tensor),
      ON_REAL_PLUGINS(donation_of_no_input__is_refused),
      ON_REAL_PLUGINS(names_of_the_text__stand_in_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
