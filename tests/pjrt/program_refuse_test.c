// SPDX-License-Identifier: Apache-2.0
// Programs that are not compiled, each with its own reason in one line.

#include <stdio.h>
#include <stdlib.h>

#include "support/program_support.h"

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
static void other_number_of_devices__is_refused(void **state) {
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
    assert_refused(code, IST_ERR_ARGUMENT, bench.err, "the options ask for 1");
  }
  ist_program *one = program_compile(
      &bench, 0,
      "module attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = "
      "1 : i32} {\n  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "    return %x : tensor<2xf32>\n  }\n}\n",
      NULL);
  ist_program_release(one);
  bench_close(&bench);
}

// Compiled for one device, an all_reduce gives its own input, unreduced.
static void collective_on_one_device__is_refused_in_text_and_bytecode(
    void **state) {
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
      program_data("sum_of_two.mlirbc", path, sizeof path, code, sizeof code);
  ist_program *program = NULL;
  for (int i = 0; i < 2; i++) {
    ist_code got = ist_program_compile(
        bench_device(&bench, 0), i == 0 ? text : code,
        i == 0 ? strlen(text) : size, NULL, &program, &bench.err);
    assert_refused(got, IST_ERR_ARGUMENT, bench.err, "all_reduce");
    assert_null(program);
  }
  ist_program_release(program_compile(&bench, 0, harmless, NULL));
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

// What bytecode says of its version is told beside what the plugin reads.
static void newer_bytecode__names_both_versions(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  char path[1024], code[4096];
  size_t size =
      program_data("scale.mlirbc", path, sizeof path, code, sizeof code);
  // "1.9.0" becomes "9.9.0", and the rest is cut: no plugin reads that.
  code[16] = '9';
  ist_program *program = NULL;
  ist_program_options named = {.struct_size = sizeof named, .name = "newer"};
  ist_code got = ist_program_compile(bench_device(&bench, 0), code, size / 2,
                                     &named, &program, &bench.err);
  assert_refused(got, IST_ERR_PROGRAM_VERSION, bench.err,
                 "bytecode of StableHLO 9.9.0");
  assert_non_null(strstr(bench.err.message, "reads 0.9.0 to 1."));
  code[16] = '1';
  got = ist_program_compile(bench_device(&bench, 0), code, size / 2, &named,
                            &program, &bench.err);
  assert_refused(got, IST_ERR_PROGRAM, bench.err, "this is bytecode of 1.9.0");
  bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_REAL_PLUGINS(broken_program__is_told_in_one_line),
      ON_REAL_PLUGINS(other_number_of_devices__is_refused),
      ON_REAL_PLUGINS(
          collective_on_one_device__is_refused_in_text_and_bytecode),
      ON_REAL_PLUGINS(odd_signatures__are_refused_by_name),
      ON_REAL_PLUGINS(newer_bytecode__names_both_versions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
