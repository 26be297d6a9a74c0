// SPDX-License-Identifier: Apache-2.0
// What programs give: held against the signature in every run, and labelled
// with the memory that it lies in.

#include <stdlib.h>

#include "bridge/tensor.h"
#include "support/program_support.h"

static const char add_one[] = "lying.add_one_f32 11 4";

static void after_good_runs(const char *rules, const char *lies, ist_code ends,
                            const char *word) {
  pjrt_bench bench;
  bench_open(&bench, "lying", rules);
  ist_program *program = program_compile(&bench, 0, add_one, NULL);
  float *data = program_floats();
  for (int turn = 0; turn < 3; turn++) {
    ist_tensor *in = program_wrap(&bench, data, f32, 1, (int64_t[]){4}, NULL);
    ist_tensor *out = NULL;
    if (turn == 2) bench.lying.set_rules(lies);
    ist_code code = program_run(&bench, program, &in, 1, &out, 1, NULL);
    assert_int_equal(code, turn == 2 ? ends : IST_OK);
    if (code != IST_OK) {
      assert_null(out);
      assert_non_null(strstr(bench.err.message, word));
    }
    ist_tensor_release(out);
    ist_tensor_release(in);
  }
  ist_program_release(program);
  free(data);
  bench_close(&bench);
}

static void output_that_shrinks_later__is_refused(void **state) {
  (void)state;
  after_good_runs("addressable=1", "addressable=1 shape=smaller",
                  IST_ERR_PLUGIN, "shape");
  after_good_runs("addressable=1", "addressable=1 shape=null", IST_ERR_PLUGIN,
                  "shape");
  after_good_runs("addressable=1", "addressable=1 type=2", IST_ERR_PLUGIN,
                  "dtype");
}

static void output_of_another_shape_at_first__is_refused(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "addressable=1");
  ist_program *program = program_compile(&bench, 0, add_one, NULL);
  float *data = program_floats();
  ist_tensor *in = program_wrap(&bench, data, f32, 1, (int64_t[]){4}, NULL);
  ist_tensor *out = NULL;
  bench.lying.set_rules("addressable=1 shape=smaller");
  assert_int_equal(program_run(&bench, program, &in, 1, &out, 1, NULL),
                   IST_ERR_PLUGIN);
  assert_non_null(strstr(bench.err.message, "signature"));
  ist_tensor_release(in);
  ist_program_release(program);
  free(data);
  bench_close(&bench);
}

static void output__tells_the_memory_that_it_lies_in(void **state) {
  (void)state;
  for (size_t place = 0; place < 2; place++) {
    pjrt_bench bench;
    bench_open(&bench, "lying",
               place == 0 ? "addressable=1" : "addressable=1 output_memory=1");
    ist_program *program = program_compile(&bench, 0, add_one, NULL);
    float *data = program_floats(), got[4];
    for (int turn = 0; turn < 2; turn++) {
      ist_tensor *in = program_wrap(&bench, data, f32, 1, (int64_t[]){4}, NULL);
      ist_tensor *out = NULL;
      bench_ok(&bench, program_run(&bench, program, &in, 1, &out, 1, NULL));
      assert_int_equal(out->memory, place);
      program_read(&bench, out, got);
      for (int i = 0; i < 4; i++) assert_true(got[i] == 1.0f + (float)i);
      ist_tensor_release(out);
      ist_tensor_release(in);
    }
    ist_program_release(program);
    free(data);
    bench_close(&bench);
  }
}

static void program_without_inputs__reads_no_receipt(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  static const char text[] =
      "func.func @main() -> tensor<2xf32> {\n"
      "  %0 = stablehlo.constant dense<3.0> : tensor<2xf32>\n"
      "  return %0 : tensor<2xf32>\n}\n";
  ist_program *program = program_compile(&bench, 0, text, NULL);
  // Of a list with no entries only the address may be used.
  ist_receipt none = {.struct_size = 1};
  ist_tensor *out = NULL;
  float got[2];
  bench_ok(&bench, program_run(&bench, program, NULL, 0, &out, 1, &none));
  program_read(&bench, out, got);
  assert_true(got[0] == 3.0f && got[1] == 3.0f);
  ist_tensor_release(out);
  ist_program_release(program);
  bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(output_that_shrinks_later__is_refused),
      cmocka_unit_test(output_of_another_shape_at_first__is_refused),
      cmocka_unit_test(output__tells_the_memory_that_it_lies_in),
      ON_REAL_PLUGINS(program_without_inputs__reads_no_receipt),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
