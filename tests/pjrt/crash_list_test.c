// SPDX-License-Identifier: Apache-2.0
// What kills the process inside a real plugin, item by item: isthmus refuses
// it first. A regression here is a crash, not a failed assertion. Options of
// a wrong type are in plugin_test.c, counting by threads in
// pjrt_tensor_test.c.

#include "backend/backend.h"
#include "backend/pjrt/foreign.h"
#include "support/pjrt_support.h"

static void forget(void *data, void *arg) {
  (void)data;
  (void)arg;
}

static ist_code view(pjrt_bench *bench, int32_t type, int64_t extent) {
  static _Alignas(64) char bytes[64];
  const ist__pjrt_client *client = bench->backend->self;
  ist__pjrt_shape shape = {.type = type, .ndim = 1, .dims = &extent};
  PJRT_Buffer *buffer = NULL;
  ist_code code =
      ist__pjrt_view(client, &client->devices[0].memories[0], &shape, bytes,
                     forget, NULL, &buffer, &bench->err);
  ist__pjrt_destroy(&client->plugin.pjrt, buffer);
  return code;
}

static ist_code from_host(pjrt_bench *bench, int32_t type, int64_t extent) {
  static const char bytes[64];
  const ist__pjrt_client *client = bench->backend->self;
  ist__pjrt_shape shape = {.type = type, .ndim = 1, .dims = &extent};
  PJRT_Buffer *buffer = NULL;
  ist_code code = ist__pjrt_from_host(client, &client->devices[0].memories[0],
                                      &shape, bytes, &buffer, &bench->err);
  ist__pjrt_destroy(&client->plugin.pjrt, buffer);
  return code;
}

static void element_types__that_are_unknown_are_refused(void **state) {
  static const int32_t types[] = {0, 23, 34, 99, -1, INT32_MIN, INT32_MAX};
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  for (size_t i = 0; i < COUNT_OF(types); i++) {
    assert_refused(view(&bench, types[i], 4), IST_ERR_TARGET_DTYPE, bench.err,
                   "does not know it");
    assert_refused(from_host(&bench, types[i], 4), IST_ERR_TARGET_DTYPE,
                   bench.err, "does not know it");
  }
  bench_close(&bench);
}

static void element_types__of_newer_plugins_are_refused(void **state) {
  static const struct {
    int32_t type;
    int minor;
  } newer[] = {{30, 94}, {31, 94}, {32, 114}, {33, 114}};
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  int minor = ((ist__pjrt_client *)bench.backend->self)->plugin.pjrt.minor;
  for (size_t i = 0; i < COUNT_OF(newer); i++) {
    ist_code want = minor < newer[i].minor ? IST_ERR_TARGET_DTYPE : IST_OK;
    assert_int_equal(view(&bench, newer[i].type, 8), want);
    assert_int_equal(from_host(&bench, newer[i].type, 8), want);
  }
  bench_close(&bench);
}

static void negative_dimension__is_refused(void **state) {
  static const int64_t extents[] = {-1, -64, INT64_MIN};
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  for (size_t i = 0; i < COUNT_OF(extents); i++) {
    assert_refused(view(&bench, 11, extents[i]), IST_ERR_SHAPE, bench.err,
                   "needs 0 or more");
    assert_refused(from_host(&bench, 11, extents[i]), IST_ERR_SHAPE, bench.err,
                   "needs 0 or more");
  }
  bench_close(&bench);
}

// The plugin aborts at the end of a view without on_delete_callback.
static void view_that_nobody_waits_for__ends_well(void **state) {
  static _Alignas(64) float data[16];
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  int64_t numbers[2] = {16, 1};
  DLTensor tensor = {data,    {kDLCPU, 0}, 1, {kDLFloat, 32, 1},
                     numbers, numbers + 1, 0};
  ist_placement where = {.struct_size = sizeof where, .view = &tensor};
  void *buffer = NULL;
  bench_ok(&bench,
           ist__backend_adopt(bench.backend, &where, &buffer, &bench.err));
  ist__backend_release_buffer(bench.backend, buffer);
  bench_close(&bench);
}

static const char text[] =
    "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %0 = stablehlo.negate %x : tensor<4xf32>\n"
    "  return %0 : tensor<4xf32>\n}\n";

// Execute without options, and compile options without counts, both crash;
// isthmus has them always, also for a program that is run again and again.
static void programs__always_have_their_options(void **state) {
  pjrt_bench bench;
  bool lying = strcmp(*state, "lying") == 0;
  bench_open(&bench, *state, NULL);
  const char *code = lying ? "lying.identity 11 4" : text;
  ist_program *program = NULL;
  bench_ok(&bench,
           ist_program_compile(bench_device(&bench, 0), code, strlen(code),
                               &(ist_program_options){
                                   .struct_size = sizeof(ist_program_options),
                                   .name = "options"},
                               &program, &bench.err));
  static _Alignas(64) float data[16];
  DLTensor view_of = {data,           {kDLCPU, 0}, 1, {kDLFloat, 32, 1},
                      (int64_t[]){4}, NULL,        0};
  ist_tensor *in = NULL;
  bench_ok(&bench, ist_tensor_wrap(bench.context, &view_of, NULL, NULL, &in,
                                   &bench.err));
  for (int turn = 0; turn < 3; turn++) {
    ist_tensor *out = NULL;
    ist_run how = {.struct_size = sizeof how,
                   .inputs = &in,
                   .input_count = 1,
                   .outputs = &out,
                   .output_count = 1};
    bench_ok(&bench, ist_program_run(program, &how, &bench.err));
    bench_ok(&bench, ist_tensor_wait(out, &bench.err));
    ist_tensor_release(out);
  }
  ist_tensor_release(in);
  ist_program_release(program);
  bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_PLUGIN(element_types__that_are_unknown_are_refused),
      ON_EACH_PLUGIN(element_types__of_newer_plugins_are_refused),
      ON_EACH_PLUGIN(negative_dimension__is_refused),
      ON_EACH_PLUGIN(view_that_nobody_waits_for__ends_well),
      ON_EACH_PLUGIN(programs__always_have_their_options),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
