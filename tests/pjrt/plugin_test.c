// SPDX-License-Identifier: Apache-2.0
// Loading plugins, the handshake, client options, and the calls of slots.

#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/pjrt_support.h"

static ist_code open_path(pjrt_bench *bench, const char *path,
                          const ist_option *options, size_t count) {
  ist_backend_options how = {.struct_size = sizeof how,
                             .path = path,
                             .options = options,
                             .option_count = count};
  memset(&bench->err, 0, sizeof bench->err);
  return ist_backend_open(bench->context, "pjrt", &how, &bench->backend,
                          &bench->err);
}

static void missing_file__is_named(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_context(&bench, "lying", NULL);
  assert_refused(open_path(&bench, "/nowhere/plugin.so", NULL, 0),
                 IST_ERR_PLUGIN_LOAD, bench.err, "/nowhere/plugin.so");
  assert_null(bench.backend);
  bench_close(&bench);
}

static void no_path__is_refused(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_context(&bench, "lying", NULL);
  assert_int_equal(open_path(&bench, NULL, NULL, 0), IST_ERR_ARGUMENT);
  bench_close(&bench);
}

static void directory__is_no_plugin(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_context(&bench, "lying", NULL);
  assert_refused(open_path(&bench, "/", NULL, 0), IST_ERR_NOT_A_PLUGIN,
                 bench.err, "directory");
  bench_close(&bench);
}

// Opening one to look at its first bytes would wait for a writer, for ever.
static void named_pipe__is_no_plugin(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_context(&bench, "lying", NULL);
  char folder[] = "/tmp/isthmus_plugin_XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/pipe.so", folder);
  assert_int_equal(mkfifo(path, 0600), 0);
  // With both ends open here, even a wrong implementation does not hang.
  int fd = open(path, O_RDWR);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, "not a library, surely", 21), 21);
  assert_refused(open_path(&bench, path, NULL, 0), IST_ERR_NOT_A_PLUGIN,
                 bench.err, "it is no regular file");
  close(fd);
  unlink(path);
  rmdir(folder);
  bench_close(&bench);
}

// Writes bytes to a file of its own and tries to open it.
static ist_code open_bytes(pjrt_bench *bench, const void *bytes, size_t size) {
  char path[] = "/tmp/isthmus_plugin_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, bytes, size), (ssize_t)size);
  close(fd);
  ist_code code = open_path(bench, path, NULL, 0);
  unlink(path);
  return code;
}

static void text_file__is_no_plugin(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_context(&bench, "lying", NULL);
  assert_int_equal(open_bytes(&bench, "not a library at all", 20),
                   IST_ERR_NOT_A_PLUGIN);
  assert_int_equal(open_bytes(&bench, "", 0), IST_ERR_NOT_A_PLUGIN);
  bench_close(&bench);
}

static void wrong_machine__names_both(void **state) {
  (void)state;
  // A header of a 64-bit shared library for a machine of another kind.
  unsigned char head[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
  head[16] = 3;
  head[18] = 22;  // S/390
  head[20] = 1;
  pjrt_bench bench;
  bench_context(&bench, "lying", NULL);
  assert_int_equal(open_bytes(&bench, head, sizeof head), IST_ERR_PLUGIN_LOAD);
  assert_non_null(strstr(bench.err.message,
                         "it is built for another machine; needs one for "));
  bench_close(&bench);
}

static void library_without_the_function__is_no_plugin(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_context(&bench, "lying", NULL);
  const char *build = getenv("ISTHMUS_BUILD");
  assert_non_null(build);
  char path[1024];
  snprintf(path, sizeof path, "%s/libisthmus.so", build);
  assert_refused(open_path(&bench, path, NULL, 0), IST_ERR_NOT_A_PLUGIN,
                 bench.err, "GetPjrtApi");
  bench_close(&bench);
}

static void old_plugin__is_refused_with_both_versions(void **state) {
  (void)state;
  static const char *const rules[] = {"minor=56", "minor=28", "major=1"};
  static const char *const says[] = {"0.56", "0.28", "1.114"};
  for (size_t i = 0; i < 3; i++) {
    pjrt_bench bench;
    bench_context(&bench, "lying", rules[i]);
    assert_refused(open_path(&bench, plugin_path("lying"), NULL, 0),
                   IST_ERR_PLUGIN_VERSION, bench.err, says[i]);
    assert_non_null(strstr(bench.err.message, "0.57"));
    assert_int_equal(bench.lying.calls(NULL), 0);
    bench_close(&bench);
  }
}

static void oldest_plugin__opens(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "minor=57 addressable=1");
  bench_close(&bench);
}

static void table_without_slots__is_no_plugin(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_context(&bench, "lying", "struct_size=39");
  assert_int_equal(open_path(&bench, plugin_path("lying"), NULL, 0),
                   IST_ERR_NOT_A_PLUGIN);
  bench_close(&bench);
}

static void short_table__ends_where_it_says(void **state) {
  (void)state;
  pjrt_bench bench;
  // 200 bytes are 20 slots: Client_Create is there, Compile (20) is not.
  bench_context(&bench, "lying", "struct_size=200");
  ist_code code = open_path(&bench, plugin_path("lying"), NULL, 0);
  if (code == IST_OK) {
    ist_backend_info info = {.struct_size = sizeof info};
    bench_ok(&bench, ist_backend_describe(bench.backend, &info, &bench.err));
    assert_false(info.runs_programs);
  }
  assert_int_equal(bench.lying.calls("Client_Compile"), 0);
  bench_close(&bench);
}

static void missing_slot__is_named(void **state) {
  (void)state;
  static const char *const rules[] = {
      "drop=PJRT_Client_Create", "drop=PJRT_Client_AddressableDevices",
      "unimplemented=PJRT_Client_Create", "drop=PJRT_Plugin_Initialize"};
  static const char *const says[] = {
      "PJRT_Client_Create", "PJRT_Client_AddressableDevices",
      "PJRT_Client_Create", "PJRT_Plugin_Initialize"};
  for (size_t i = 0; i < 4; i++) {
    pjrt_bench bench;
    bench_context(&bench, "lying", rules[i]);
    assert_refused(open_path(&bench, plugin_path("lying"), NULL, 0),
                   IST_ERR_PLUGIN_SLOT, bench.err, says[i]);
    bench_close(&bench);
  }
}

static void plugin_without_error_slots__still_fails_cleanly(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_context(&bench, "lying",
                "drop=PJRT_Error_Message drop=PJRT_Error_GetCode "
                "fail=Client_Create:1");
  assert_refused(open_path(&bench, plugin_path("lying"), NULL, 0),
                 IST_ERR_PLUGIN, bench.err, "no message");
  bench_close(&bench);
}

static void plugins_error__keeps_its_code_and_first_line(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_context(&bench, "lying", "fail=Client_Create:1");
  assert_int_equal(open_path(&bench, plugin_path("lying"), NULL, 0),
                   IST_ERR_PLUGIN);
  assert_int_equal(bench.err.native, 13);
  assert_non_null(strstr(bench.err.message, "PJRT_Client_Create"));
  assert_non_null(strstr(bench.err.message, "fails on call"));
  bench_close(&bench);
}

static void client_without_devices__is_refused(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_context(&bench, "lying", "devices=0");
  assert_int_equal(open_path(&bench, plugin_path("lying"), NULL, 0),
                   IST_ERR_NO_DEVICE);
  bench_close(&bench);
}

static void device_count__is_taken(void **state) {
  pjrt_bench bench;
  bench_context(&bench, *state, NULL);
  ist_option option = {
      .name = "cpu_device_count", .kind = IST_OPTION_INT64, .int64 = 3};
  bench_ok(&bench, open_path(&bench, plugin_path(*state), &option, 1));
  assert_non_null(ist_backend_device(bench.backend, 2));
  assert_null(ist_backend_device(bench.backend, 3));
  bench_close(&bench);
}

// Two of three real plugins abort on an option of another type.
static void option_of_another_type__never_reaches_the_plugin(void **state) {
  pjrt_bench bench;
  bench_context(&bench, *state, NULL);
  for (int kind = 0; kind <= 4; kind++) {
    static const int64_t list[1] = {2};
    ist_option option = {.name = "cpu_device_count",
                         .kind = (ist_option_kind)kind,
                         .string = "2",
                         .int64 = 0,
                         .list = list,
                         .list_size = 1,
                         .number = 2.0};
    // An integer is the right type, but no client has no device.
    assert_refused(open_path(&bench, plugin_path(*state), &option, 1),
                   IST_ERR_OPTION, bench.err, "cpu_device_count");
  }
  bench_close(&bench);
}

static void option_without_a_value__is_refused(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_context(&bench, "lying", NULL);
  ist_option options[] = {
      {.name = NULL},
      {.name = ""},
      {.name = "text", .kind = IST_OPTION_STRING},
      {.name = "list", .kind = IST_OPTION_INT64_LIST, .list_size = 2},
      {.name = "kind", .kind = (ist_option_kind)9},
  };
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
    assert_int_equal(open_path(&bench, plugin_path("lying"), &options[i], 1),
                     IST_ERR_OPTION);
  assert_int_equal(bench.lying.calls("Client_Create"), 0);
  bench_close(&bench);
}

static void unknown_option__is_the_plugins_to_refuse(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_context(&bench, "lying", NULL);
  ist_option option = {.name = "color", .kind = IST_OPTION_BOOL};
  assert_refused(open_path(&bench, plugin_path("lying"), &option, 1),
                 IST_ERR_PLUGIN, bench.err, "color");
  bench_close(&bench);
}

static void facts__come_from_the_plugin(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  bool lying = strcmp(*state, "lying") == 0;
  ist_backend_info info = {.struct_size = sizeof info};
  bench_ok(&bench, ist_backend_describe(bench.backend, &info, &bench.err));
  assert_string_equal(info.platform, lying ? "lying" : "cpu");
  assert_string_equal(info.name, lying ? "pjrt:lying" : "pjrt:cpu");
  assert_non_null(strstr(info.version, "PJRT API 0."));
  assert_non_null(strstr(info.version, "StableHLO "));
  assert_true(info.runs_programs);
  ist_device_info device = {.struct_size = sizeof device};
  bench_ok(&bench,
           ist_device_describe(bench_device(&bench, 1), &device, &bench.err));
  assert_int_equal(device.id, 1);
  assert_true(device.memory_count >= 2);
  ist_memory_info memory = {.struct_size = sizeof memory};
  bench_ok(&bench,
           ist_device_memory(bench_device(&bench, 1), device.default_memory,
                             &memory, &bench.err));
  assert_string_equal(memory.kind, "device");
  bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(missing_file__is_named),
      cmocka_unit_test(no_path__is_refused),
      cmocka_unit_test(directory__is_no_plugin),
      cmocka_unit_test(named_pipe__is_no_plugin),
      cmocka_unit_test(text_file__is_no_plugin),
      cmocka_unit_test(wrong_machine__names_both),
      cmocka_unit_test(library_without_the_function__is_no_plugin),
      cmocka_unit_test(old_plugin__is_refused_with_both_versions),
      cmocka_unit_test(oldest_plugin__opens),
      cmocka_unit_test(table_without_slots__is_no_plugin),
      cmocka_unit_test(short_table__ends_where_it_says),
      cmocka_unit_test(missing_slot__is_named),
      cmocka_unit_test(plugin_without_error_slots__still_fails_cleanly),
      cmocka_unit_test(plugins_error__keeps_its_code_and_first_line),
      cmocka_unit_test(client_without_devices__is_refused),
      cmocka_unit_test(option_without_a_value__is_refused),
      cmocka_unit_test(unknown_option__is_the_plugins_to_refuse),
      ON_EACH_PLUGIN(device_count__is_taken),
      ON_EACH_PLUGIN(option_of_another_type__never_reaches_the_plugin),
      ON_EACH_PLUGIN(facts__come_from_the_plugin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
