// SPDX-License-Identifier: Apache-2.0
// Programs kept in a folder: taken from there when all that they depend on is
// the same, compiled again when anything is wrong.

#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/program_support.h"
#include "support/temp_folder.h"

static void empty(temp_folder *folder) {
  DIR *dir = opendir(folder->path);
  assert_non_null(dir);
  for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0) continue;
    assert_int_equal(remove(temp_file(folder, d->d_name)), 0);
  }
  closedir(dir);
  temp_folder_remove(folder);
}

static ist_program_options cached(const temp_folder *folder) {
  return (ist_program_options){.struct_size = sizeof(ist_program_options),
                               .name = "cached",
                               .cache = IST_CACHE_ON,
                               .cache_folder = folder->path};
}

// Compiles, tells whether it came from the cache, and lets go of it.
static bool from_cache(pjrt_bench *bench, const char *text,
                       const ist_program_options *options) {
  ist_program *program = program_compile(bench, 0, text, options);
  ist_program_info info = {.struct_size = sizeof info};
  bench_ok(bench, ist_program_describe(program, &info, &bench->err));
  ist_program_release(program);
  return info.from_cache;
}

static const char lie[] = "lying.add_one_f32 11 2";

static void same_program__is_compiled_once(void **state) {
  static const char text[] =
      "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
      "  %0 = stablehlo.add %x, %x : tensor<4xf32>\n"
      "  return %0 : tensor<4xf32>\n}\n";
  temp_folder folder;
  temp_folder_make(&folder);
  for (int turn = 0; turn < 2; turn++) {
    pjrt_bench bench;
    bench_open(&bench, *state, NULL);
    const ist_program_options options = cached(&folder);
    ist_program *program = program_compile(&bench, 1, text, &options);
    ist_program_info info = {.struct_size = sizeof info};
    bench_ok(&bench, ist_program_describe(program, &info, &bench.err));
    assert_int_equal(info.from_cache, turn == 1);
    assert_ptr_equal(ist_program_device(program, 0), bench_device(&bench, 1));
    assert_string_equal(ist_program_input_name(program, 0), "x");
    float *data = program_floats(), got[4];
    ist_tensor *in = program_wrap(&bench, data, f32, 1, (int64_t[]){4}, NULL);
    ist_tensor *out = NULL;
    bench_ok(&bench, program_run(&bench, program, &in, 1, &out, 1, NULL));
    program_read(&bench, out, got);
    for (int i = 0; i < 4; i++) assert_true(got[i] == 2.0f * (float)i);
    ist_tensor_release(in);
    ist_tensor_release(out);
    ist_program_release(program);
    free(data);
    bench_close(&bench);
  }
  empty(&folder);
}

static void anything_else__is_compiled(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  pjrt_bench bench;
  bench_open(&bench, "lying", NULL);
  ist_program_options options = cached(&folder);
  int calls = bench.lying.calls("Client_Compile");
  assert_false(from_cache(&bench, lie, &options));
  assert_true(from_cache(&bench, lie, &options));
  assert_int_equal(bench.lying.calls("Client_Compile"), calls + 1);
  assert_false(from_cache(&bench, "lying.add_one_f32 11 3", &options));
  options.name = "another name";
  assert_true(from_cache(&bench, lie, &options));
  options.portable = true;
  assert_false(from_cache(&bench, lie, &options));
  options.portable = false;
  options.cache = IST_CACHE_OFF;
  assert_false(from_cache(&bench, lie, &options));
  options.cache = IST_CACHE_ON;
  assert_int_equal(setenv("ISTHMUS_CACHE", "off", 1), 0);
  assert_false(from_cache(&bench, lie, &options));
  assert_int_equal(unsetenv("ISTHMUS_CACHE"), 0);
  assert_true(from_cache(&bench, lie, &options));
  bench_close(&bench);
  // Another version of the plugin does not take what this one compiled.
  bench_open(&bench, "lying", "addressable=1 minor=100");
  assert_false(from_cache(&bench, lie, &options));
  bench_close(&bench);
  empty(&folder);
}

// Opens the plugin with another client's options, and compiles.
static bool from_cache_with(pjrt_bench *bench, const ist_option *options,
                            size_t count, const ist_program_options *how) {
  ist_backend *first = bench->backend;
  const ist_backend_options asked = {.struct_size = sizeof asked,
                                     .path = plugin_path(bench->key),
                                     .trusted = true,
                                     .options = options,
                                     .option_count = count};
  bench->backend = NULL;
  bench_ok(bench, ist_backend_open(bench->context, "pjrt", &asked,
                                   &bench->backend, &bench->err));
  bool found = from_cache(bench, lie, how);
  ist_backend_release(bench->backend);
  bench->backend = first;
  return found;
}

static void other_flags_and_client_options__are_compiled(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  pjrt_bench bench;
  bench_open(&bench, "lying", NULL);
  const ist_program_options options = cached(&folder);
  ist_option devices = {
      .name = "cpu_device_count", .kind = IST_OPTION_INT64, .int64 = 2};
  assert_false(from_cache(&bench, lie, &options));
  assert_true(from_cache_with(&bench, NULL, 0, &options));
  assert_false(from_cache_with(&bench, &devices, 1, &options));
  assert_true(from_cache_with(&bench, &devices, 1, &options));
  devices.int64 = 3;
  assert_false(from_cache_with(&bench, &devices, 1, &options));
  assert_int_equal(setenv("XLA_FLAGS", "--fast", 1), 0);
  assert_false(from_cache(&bench, lie, &options));
  assert_true(from_cache(&bench, lie, &options));
  assert_false(from_cache_with(&bench, NULL, 0, &options));
  assert_int_equal(setenv("XLA_FLAGS", "flags.txt", 1), 0);
  assert_false(from_cache(&bench, lie, &options));
  assert_false(from_cache(&bench, lie, &options));
  assert_non_null(strstr(bench.log, "XLA_FLAGS names a file"));
  assert_int_equal(unsetenv("XLA_FLAGS"), 0);
  assert_int_equal(setenv("PWD", "/another", 1), 0);
  assert_true(from_cache(&bench, lie, &options));
  bench_close(&bench);
  empty(&folder);
}

static void damaged_entry__is_compiled_again_and_replaced(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  pjrt_bench bench;
  bench_open(&bench, "lying", NULL);
  const ist_program_options options = cached(&folder);
  for (int how = 0; how < 3; how++) {
    assert_int_equal(from_cache(&bench, lie, &options), how > 0);
    DIR *dir = opendir(folder.path);
    assert_non_null(dir);
    for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
      if (d->d_name[0] == '.') continue;
      const char *path = temp_file(&folder, d->d_name);
      FILE *file = fopen(path, how == 1 ? "wb" : "r+b");
      assert_non_null(file);
      if (how != 1)
        assert_int_equal(
            fseek(file, how == 0 ? 60 : -1, how == 0 ? SEEK_SET : SEEK_END), 0);
      fputs("#", file);
      assert_int_equal(fclose(file), 0);
    }
    closedir(dir);
    assert_false(from_cache(&bench, lie, &options));
  }
  assert_true(from_cache(&bench, lie, &options));
  assert_non_null(strstr(bench.log, "is not used"));
  bench_close(&bench);
  empty(&folder);
}

static void folder_of_others__is_not_used(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  pjrt_bench bench;
  bench_open(&bench, "lying", NULL);
  ist_program_options options = cached(&folder);
  assert_int_equal(chmod(folder.path, 0777), 0);
  assert_false(from_cache(&bench, lie, &options));
  assert_false(from_cache(&bench, lie, &options));
  assert_non_null(strstr(bench.log, "others may write to it"));
  ist_cache_info info = {.struct_size = sizeof info};
  bench_ok(&bench,
           ist_cache_describe(bench.context, folder.path, &info, &bench.err));
  assert_false(info.usable);
  assert_int_equal(chmod(folder.path, 0700), 0);
  char path[sizeof folder.path + 8];
  snprintf(path, sizeof path, "%s/a/b", folder.path);
  options.cache_folder = path;
  bench_ok(&bench, ist_cache_describe(bench.context, path, &info, &bench.err));
  assert_true(info.usable);
  assert_int_equal(info.entries, 0);
  assert_false(from_cache(&bench, lie, &options));
  assert_true(from_cache(&bench, lie, &options));
  struct stat facts;
  assert_int_equal(stat(path, &facts), 0);
  assert_int_equal(facts.st_mode & 0777, 0700);
  bench_ok(&bench, ist_cache_describe(bench.context, path, &info, &bench.err));
  assert_int_equal(info.entries, 1);
  assert_true(info.nbytes > 0);
  assert_string_equal(info.folder, path);
  bench_close(&bench);
  temp_folder inner;
  snprintf(inner.path, sizeof inner.path, "%.240s/a/b", folder.path);
  empty(&inner);
  snprintf(inner.path, sizeof inner.path, "%.240s/a", folder.path);
  temp_folder_remove(&inner);
  empty(&folder);
}

static void plugin_that_saves_nothing__compiles_all_the_same(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  pjrt_bench bench;
  bench_open(&bench, "lying",
             "addressable=1 unimplemented=Executable_Serialize");
  const ist_program_options options = cached(&folder);
  assert_false(from_cache(&bench, lie, &options));
  assert_false(from_cache(&bench, lie, &options));
  assert_non_null(strstr(bench.log, "is not kept"));
  bench_close(&bench);
  empty(&folder);
}

int main(void) {
  // The other tests run with it off.
  if (unsetenv("ISTHMUS_CACHE") != 0) return 1;
  const struct CMUnitTest tests[] = {
      ON_REAL_PLUGINS(same_program__is_compiled_once),
      cmocka_unit_test(anything_else__is_compiled),
      cmocka_unit_test(other_flags_and_client_options__are_compiled),
      cmocka_unit_test(damaged_entry__is_compiled_again_and_replaced),
      cmocka_unit_test(folder_of_others__is_not_used),
      cmocka_unit_test(plugin_that_saves_nothing__compiles_all_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
