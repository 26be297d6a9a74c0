// SPDX-License-Identifier: Apache-2.0
// Programs saved and loaded again: on any device of the plugin that saved
// them, and on nothing else.

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "support/program_support.h"
#include "support/temp_folder.h"

static const char text[] =
    "func.func @main(%x: tensor<2x3xf32>, %n: tensor<3xi32>)\n"
    "    -> (tensor<2x3xf32> {jax.result_info = \"sum\"}, tensor<3xi32>) {\n"
    "  %0 = stablehlo.add %x, %x : tensor<2x3xf32>\n"
    "  %1 = stablehlo.add %n, %n : tensor<3xi32>\n"
    "  return %0, %1 : tensor<2x3xf32>, tensor<3xi32>\n"
    "}\n";

static const void *bytes_of(const ist_tensor *tensor, size_t *size) {
  const DLTensor *view = ist_tensor_view(tensor);
  *size = (size_t)view->shape[0];
  return (const char *)view->data + view->byte_offset;
}

static void assert_doubles(pjrt_bench *bench, ist_program *program,
                           const ist_device *device) {
  float *data = program_floats(), sums[6];
  int32_t numbers[3] = {1, -2, 3};
  ist_tensor *in[2], *out[2];
  in[0] = program_wrap(bench, data, f32, 2, (int64_t[]){2, 3}, NULL);
  in[1] = program_wrap(bench, numbers, i32, 1, (int64_t[]){3}, NULL);
  ist_run how = {.struct_size = sizeof how,
                 .inputs = in,
                 .input_count = 2,
                 .outputs = out,
                 .output_count = 2,
                 .device = device};
  bench_ok(bench, ist_program_run(program, &how, &bench->err));
  program_read(bench, out[0], sums);
  for (int i = 0; i < 6; i++) assert_true(sums[i] == 2.0f * (float)i);
  for (int i = 0; i < 2; i++) {
    ist_tensor_release(in[i]);
    ist_tensor_release(out[i]);
  }
  free(data);
}

static void saved_program__runs_on_another_device(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program *program = program_compile(&bench, 0, text, NULL), *loaded;
  ist_tensor *saved = NULL;
  size_t size;
  bench_ok(&bench, ist_program_serialize(program, &saved, &bench.err));
  ist_program_release(program);
  const void *bytes = bytes_of(saved, &size);
  for (size_t d = 0; d < 4; d += 2) {
    bench_ok(&bench, ist_program_load(bench_device(&bench, d), bytes, size,
                                      NULL, &loaded, &bench.err));
    assert_ptr_equal(ist_program_device(loaded, 0), bench_device(&bench, d));
    assert_string_equal(ist_program_input_name(loaded, 1), "n");
    assert_string_equal(ist_program_output_name(loaded, 0), "sum");
    assert_doubles(&bench, loaded, NULL);
    ist_program_release(loaded);
  }
  const ist_program_options two = {.struct_size = sizeof two, .replicas = 2};
  assert_refused(ist_program_load(bench_device(&bench, 0), bytes, size, &two,
                                  &loaded, &bench.err),
                 IST_ERR_ARGUMENT, bench.err, "compiled for 1 replicas");
  ist_tensor_release(saved);
  bench_close(&bench);
}

static void saved_portable_program__stays_portable(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  const ist_program_options anywhere = {.struct_size = sizeof anywhere,
                                        .portable = true};
  ist_program *program = program_compile(&bench, 0, text, &anywhere), *loaded;
  ist_tensor *saved = NULL;
  size_t size;
  bench_ok(&bench, ist_program_serialize(program, &saved, &bench.err));
  const void *bytes = bytes_of(saved, &size);
  bench_ok(&bench, ist_program_load(bench_device(&bench, 1), bytes, size, NULL,
                                    &loaded, &bench.err));
  assert_doubles(&bench, loaded, bench_device(&bench, 3));
  ist_program_release(loaded);
  ist_program_release(program);
  ist_tensor_release(saved);
  bench_close(&bench);
}

static void saved_replicas__load_as_replicas(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  const ist_program_options two = {.struct_size = sizeof two, .replicas = 2};
  ist_program *program = program_compile(&bench, 0, text, &two), *loaded;
  ist_tensor *saved = NULL;
  size_t size;
  bench_ok(&bench, ist_program_serialize(program, &saved, &bench.err));
  ist_program_release(program);
  const void *bytes = bytes_of(saved, &size);
  bench_ok(&bench, ist_program_load(bench_device(&bench, 2), bytes, size, NULL,
                                    &loaded, &bench.err));
  ist_program_info info = {.struct_size = sizeof info};
  bench_ok(&bench, ist_program_describe(loaded, &info, &bench.err));
  assert_int_equal(info.replicas, 2);
  assert_int_equal(info.device_count, 2);
  assert_ptr_equal(ist_program_device(loaded, 1), bench_device(&bench, 3));
  ist_program_release(loaded);
  ist_tensor_release(saved);
  bench_close(&bench);
}

static void file_of_a_program__appears_whole_or_not_at_all(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  temp_folder folder;
  temp_folder_make(&folder);
  ist_program *program = program_compile(&bench, 0, text, NULL);
  const char *path = temp_file(&folder, "program.exe");
  bench_ok(&bench, ist_program_save(program, path, &bench.err));
  struct stat facts;
  assert_int_equal(stat(path, &facts), 0);
  ist_tensor *saved = NULL;
  bench_ok(&bench, ist_program_serialize(program, &saved, &bench.err));
  size_t size;
  bytes_of(saved, &size);
  assert_int_equal(facts.st_size, size);
  assert_int_equal(remove(path), 0);
  assert_refused(
      ist_program_save(program, temp_file(&folder, "no/where"), &bench.err),
      IST_ERR_OUTPUT, bench.err, "no/where");
  ist_tensor_release(saved);
  ist_program_release(program);
  temp_folder_remove(&folder);
  bench_close(&bench);
}

// ---- what is not loaded

static ist_tensor *save_lie(pjrt_bench *bench) {
  ist_program *program =
      program_compile(bench, 0, "lying.add_one_f32 11 2", NULL);
  ist_tensor *saved = NULL;
  bench_ok(bench, ist_program_serialize(program, &saved, &bench->err));
  ist_program_release(program);
  return saved;
}

static void changed_bytes__never_reach_the_plugin(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", NULL);
  ist_tensor *saved = save_lie(&bench);
  size_t size;
  const char *bytes = bytes_of(saved, &size);
  char *copy = malloc(size);
  assert_non_null(copy);
  ist_program *loaded = NULL;
  int calls = bench.lying.calls("Executable_DeserializeAndLoad");
  const ist_device *device = bench_device(&bench, 0);
  for (size_t i = 0; i < size; i++) {
    memcpy(copy, bytes, size);
    copy[i] = (char)(copy[i] ^ 4);
    assert_refused(
        ist_program_load(device, copy, size, NULL, &loaded, &bench.err),
        IST_ERR_PROGRAM, bench.err, "could not be loaded");
    memcpy(copy, bytes, i);
    assert_refused(ist_program_load(device, copy, i, NULL, &loaded, &bench.err),
                   IST_ERR_PROGRAM, bench.err, "could not be loaded");
    assert_null(loaded);
  }
  assert_int_equal(bench.lying.calls("Executable_DeserializeAndLoad"), calls);
  bench_ok(&bench,
           ist_program_load(device, bytes, size, NULL, &loaded, &bench.err));
  ist_program_release(loaded);
  free(copy);
  ist_tensor_release(saved);
  bench_close(&bench);
}

static void bytes_of_another_plugin__never_reach_this_one(void **state) {
  pjrt_bench real, bench;
  bench_open(&real, *state, NULL);
  bench_open(&bench, "lying", "platform=cpu addressable=1");
  ist_program *program = program_compile(&real, 0, text, NULL), *loaded = NULL;
  ist_tensor *saved = NULL;
  size_t size;
  bench_ok(&real, ist_program_serialize(program, &saved, &real.err));
  const void *bytes = bytes_of(saved, &size);
  int calls = bench.lying.calls("Executable_DeserializeAndLoad");
  assert_refused(ist_program_load(bench_device(&bench, 0), bytes, size, NULL,
                                  &loaded, &bench.err),
                 IST_ERR_PROGRAM_VERSION, bench.err,
                 "it was compiled for the version \"PJRT API 0.");
  assert_int_equal(bench.lying.calls("Executable_DeserializeAndLoad"), calls);
  ist_program_release(program);
  ist_tensor_release(saved);
  bench_close(&bench);
  bench_close(&real);
}

static void plugin_that_saves_wrong__is_told(void **state) {
  (void)state;
  static const struct {
    const char *rules;
    ist_code save, load;
  } cases[] = {
      {"addressable=1 unimplemented=Executable_Serialize", IST_ERR_NO_PROGRAMS,
       IST_OK},
      {"addressable=1 drop=Executable_Serialize", IST_ERR_NO_PROGRAMS, IST_OK},
      {"addressable=1 serialize=null", IST_ERR_PLUGIN, IST_OK},
      {"addressable=1 serialize=huge", IST_ERR_PLUGIN, IST_OK},
      {"addressable=1 serialize=garbage", IST_OK, IST_ERR_PROGRAM},
      {"addressable=1 unimplemented=Executable_DeserializeAndLoad", IST_OK,
       IST_ERR_NO_PROGRAMS},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    pjrt_bench bench;
    bench_open(&bench, "lying", cases[i].rules);
    ist_program *program =
        program_compile(&bench, 0, "lying.add_one_f32 11 2", NULL);
    ist_program *loaded = NULL;
    ist_tensor *saved = NULL;
    ist_code code = ist_program_serialize(program, &saved, &bench.err);
    assert_int_equal(code, cases[i].save);
    if (code == IST_OK) {
      size_t size;
      const void *bytes = bytes_of(saved, &size);
      assert_int_equal(ist_program_load(bench_device(&bench, 0), bytes, size,
                                        NULL, &loaded, &bench.err),
                       cases[i].load);
    }
    assert_null(loaded);
    ist_tensor_release(saved);
    ist_program_release(program);
    bench_close(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_REAL_PLUGINS(saved_program__runs_on_another_device),
      ON_REAL_PLUGINS(saved_portable_program__stays_portable),
      ON_REAL_PLUGINS(saved_replicas__load_as_replicas),
      ON_REAL_PLUGINS(file_of_a_program__appears_whole_or_not_at_all),
      cmocka_unit_test(changed_bytes__never_reach_the_plugin),
      ON_REAL_PLUGINS(bytes_of_another_plugin__never_reach_this_one),
      cmocka_unit_test(plugin_that_saves_wrong__is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
