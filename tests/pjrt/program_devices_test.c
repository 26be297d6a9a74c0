// SPDX-License-Identifier: Apache-2.0
// One program on several devices, and one for any device.

#include <stdio.h>
#include <stdlib.h>

#include "support/program_support.h"

static const char sum_text[] =
    "module attributes {mhlo.num_replicas = 2 : i32} {\n"
    "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %0 = \"stablehlo.all_reduce\"(%x) ({\n"
    "    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "      %s = stablehlo.add %a, %b : tensor<f32>\n"
    "      stablehlo.return %s : tensor<f32>\n"
    "  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}\n"
    "      : (tensor<4xf32>) -> tensor<4xf32>\n"
    "  return %0 : tensor<4xf32>\n}\n}\n";

// Which replica a list is for shows in its output.
static const char number_text[] =
    "func.func @main(%x: tensor<ui32>) -> tensor<ui32> {\n"
    "  %0 = stablehlo.replica_id : tensor<ui32>\n"
    "  %ten = stablehlo.constant dense<10> : tensor<ui32>\n"
    "  %1 = stablehlo.multiply %0, %ten : tensor<ui32>\n"
    "  %2 = stablehlo.add %1, %x : tensor<ui32>\n"
    "  return %2 : tensor<ui32>\n}\n";

static ist_program_options replicas_of(int32_t count,
                                       const ist_device *const *devices) {
  return (ist_program_options){.struct_size = sizeof(ist_program_options),
                               .name = "many",
                               .replicas = count,
                               .devices = devices,
                               .device_count = devices ? (size_t)count : 0};
}

static void assert_on(ist_tensor *tensor, const ist_device *device) {
  ist_tensor_info info = {.struct_size = sizeof info};
  ist_error err;
  assert_int_equal(ist_tensor_describe(tensor, &info, &err), IST_OK);
  assert_ptr_equal(info.device, device);
}

static void all_reduce__sums_over_two_replicas(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  const ist_device *devices[2] = {bench_device(&bench, 3),
                                  bench_device(&bench, 1)};
  float *data = program_floats(), got[4];
  for (int listed = 0; listed < 2; listed++) {
    ist_program_options options = replicas_of(2, listed ? devices : NULL);
    ist_program *program = program_compile(&bench, 0, sum_text, &options);
    ist_program_info info = {.struct_size = sizeof info};
    bench_ok(&bench, ist_program_describe(program, &info, &bench.err));
    assert_int_equal(info.replicas, 2);
    assert_int_equal(info.device_count, 2);
    assert_int_equal(info.input_count, 1);
    ist_tensor *in[2], *out[2];
    in[0] = program_wrap(&bench, data, f32, 1, (int64_t[]){4}, NULL);
    in[1] = program_wrap(&bench, data + 4, f32, 1, (int64_t[]){4}, NULL);
    // The second run knows what the first has shown.
    for (int turn = 0; turn < 2; turn++) {
      bench_ok(&bench, program_run(&bench, program, in, 2, out, 2, NULL));
      for (int d = 0; d < 2; d++) {
        assert_on(out[d], ist_program_device(program, (size_t)d));
        assert_on(out[d],
                  listed ? devices[d] : bench_device(&bench, (size_t)d));
        program_read(&bench, out[d], got);
        for (int i = 0; i < 4; i++) assert_true(got[i] == (float)(2 * i + 4));
        ist_tensor_release(out[d]);
      }
    }
    assert_refused(program_run(&bench, program, in, 1, out, 1, NULL),
                   IST_ERR_ARITY, bench.err, "needs 2 and 2");
    ist_tensor_release(in[0]);
    ist_tensor_release(in[1]);
    ist_program_release(program);
  }
  bench_close(&bench);
  free(data);
}

static void lists__go_to_their_replicas(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  const ist_device *devices[3] = {bench_device(&bench, 2),
                                  bench_device(&bench, 0),
                                  bench_device(&bench, 3)};
  ist_program_options options = replicas_of(3, devices);
  ist_program *program = program_compile(&bench, 2, number_text, &options);
  uint32_t *numbers = aligned_alloc(64, 64 * 3), got;
  ist_tensor *in[3], *out[3];
  for (int i = 0; i < 3; i++) {
    numbers[16 * i] = (uint32_t)(i + 1);
    in[i] = program_wrap(&bench, numbers + 16 * i, (DLDataType){kDLUInt, 32, 1},
                         0, NULL, NULL);
  }
  bench_ok(&bench, program_run(&bench, program, in, 3, out, 3, NULL));
  for (int i = 0; i < 3; i++) {
    program_read(&bench, out[i], &got);
    assert_int_equal(got, 10 * i + i + 1);
    ist_tensor_release(in[i]);
    ist_tensor_release(out[i]);
  }
  ist_program_release(program);
  bench_close(&bench);
  free(numbers);
}

// Each of two partitions takes half of a sharded argument.
static void partitions__take_their_shards(void **state) {
  static const char text[] =
      "module attributes {mhlo.num_partitions = 2 : i32} {\n"
      "func.func @main(%x: tensor<8xf32> {mhlo.sharding = "
      "\"{devices=[2]<=[2]}\"})\n"
      "    -> (tensor<8xf32> {mhlo.sharding = \"{devices=[2]<=[2]}\"}) {\n"
      "  %0 = stablehlo.reverse %x, dims = [0] : tensor<8xf32>\n"
      "  return %0 : tensor<8xf32>\n}\n}\n";
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program_options options = {
      .struct_size = sizeof options, .name = "shards", .partitions = 2};
  ist_program *program = program_compile(&bench, 1, text, &options);
  ist_spec spec = {.struct_size = sizeof spec};
  bench_ok(&bench, ist_program_input(program, 0, &spec, &bench.err));
  assert_int_equal(spec.shape[0], 4);
  float *data = aligned_alloc(64, 128), got[4];
  ist_tensor *in[2], *out[2];
  for (int d = 0; d < 2; d++) {
    for (int i = 0; i < 4; i++) data[16 * d + i] = (float)(4 * d + i);
    in[d] = program_wrap(&bench, data + 16 * d, f32, 1, (int64_t[]){4}, NULL);
  }
  bench_ok(&bench, program_run(&bench, program, in, 2, out, 2, NULL));
  for (int d = 0; d < 2; d++) {
    program_read(&bench, out[d], got);
    for (int i = 0; i < 4; i++) assert_true(got[i] == (float)(7 - 4 * d - i));
    ist_tensor_release(in[d]);
    ist_tensor_release(out[d]);
  }
  ist_program_release(program);
  bench_close(&bench);
  free(data);
}

static void portable_program__runs_where_each_run_says(void **state) {
  static const char text[] =
      "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
      "  %0 = stablehlo.add %x, %x : tensor<4xf32>\n"
      "  return %0 : tensor<4xf32>\n}\n";
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program_options options = {
      .struct_size = sizeof options, .name = "anywhere", .portable = true};
  ist_program *program = program_compile(&bench, 0, text, &options);
  assert_null(ist_program_device(program, 0));
  float *data = program_floats(), got[4];
  ist_tensor *in = program_wrap(&bench, data, f32, 1, (int64_t[]){4}, NULL);
  ist_tensor *out = NULL;
  ist_run how = {.struct_size = sizeof how,
                 .inputs = &in,
                 .input_count = 1,
                 .outputs = &out,
                 .output_count = 1};
  for (size_t d = 0; d < 4; d++) {
    how.device = bench_device(&bench, d);
    bench_ok(&bench, ist_program_run(program, &how, &bench.err));
    assert_on(out, how.device);
    program_read(&bench, out, got);
    for (int i = 0; i < 4; i++) assert_true(got[i] == 2.0f * (float)i);
    ist_tensor_release(out);
  }
  how.device = NULL;
  assert_refused(ist_program_run(program, &how, &bench.err), IST_ERR_ARGUMENT,
                 bench.err, "portable");
  how.device = ist_context_host(bench.context);
  assert_refused(ist_program_run(program, &how, &bench.err), IST_ERR_ARGUMENT,
                 bench.err, "portable");
  ist_tensor_release(in);
  ist_program_release(program);
  bench_close(&bench);
  free(data);
}

static void devices_that_cannot_be__are_refused(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  const ist_device *twice[2] = {bench_device(&bench, 1),
                                bench_device(&bench, 1)};
  const ist_device *host[2] = {bench_device(&bench, 1),
                               ist_context_host(bench.context)};
  const ist_device *null[2] = {bench_device(&bench, 1), NULL};
  const struct {
    ist_program_options options;
    const char *words;
  } cases[] = {
      {replicas_of(2, twice), "different ones of one backend"},
      {replicas_of(2, host), "different ones of one backend"},
      {replicas_of(2, null), "different ones of one backend"},
      {replicas_of(3, NULL), "for 2 replicas, and the options ask for 3"},
      {replicas_of(-1, NULL), "-1 replicas"},
      {replicas_of(5000, NULL), "5000 replicas"},
      {replicas_of(64, NULL), "it runs on 64 devices"},
      {{.struct_size = sizeof(ist_program_options),
        .replicas = 2,
        .portable = true},
       "portable"},
      {{.struct_size = sizeof(ist_program_options),
        .replicas = 2,
        .devices = twice,
        .device_count = 1},
       "runs on 2 devices"},
      {{.struct_size = sizeof(ist_program_options), .devices = twice}, "list"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    ist_program *program = NULL;
    assert_refused(
        ist_program_compile(bench_device(&bench, 0), sum_text, strlen(sum_text),
                            &cases[i].options, &program, &bench.err),
        IST_ERR_ARGUMENT, bench.err, cases[i].words);
    assert_null(program);
  }
  bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_REAL_PLUGINS(all_reduce__sums_over_two_replicas),
      ON_REAL_PLUGINS(lists__go_to_their_replicas),
      ON_REAL_PLUGINS(partitions__take_their_shards),
      ON_REAL_PLUGINS(portable_program__runs_where_each_run_says),
      ON_REAL_PLUGINS(devices_that_cannot_be__are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
