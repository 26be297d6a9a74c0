// SPDX-License-Identifier: Apache-2.0
// What a report says of a plugin: of real ones the facts that are known, of
// the lying one that each lie costs the capability that it is about and no
// other; and that a report may fail at any point and leave nothing behind.

#include <isthmus/pjrt.h>
#include <stdio.h>

#include "backend/backend.h"
#include "support/pjrt_support.h"

static ist_pjrt_report *report_make(pjrt_bench *bench) {
  ist_pjrt_report *report = NULL;
  bench_ok(bench, ist_pjrt_report_create(bench_device(bench, 0), &report,
                                         &bench->err));
  return report;
}

static ist_pjrt_capability find_in(const ist_pjrt_report *report, size_t memory,
                                   const char *name) {
  ist_pjrt_capability found = {.struct_size = sizeof found};
  ist_error err = {0};
  if (ist_pjrt_report_find(report, memory, name, &found, &err) != IST_OK) {
    fail_msg("%s: %s", name, err.message);
  }
  // A reason stands where something does not work, and nowhere else.
  assert_true(found.works == (found.reason[0] == '\0'));
  return found;
}

static void assert_works(const ist_pjrt_report *report, const char *name,
                         bool works) {
  ist_pjrt_capability found = find_in(report, 0, name);
  if (found.works != works) fail_msg("%s: %s", name, found.reason);
}

// ---- real plugins

static const char *const cannot_p1[] = {"memory_stats", "raw_buffer", "stream",
                                        NULL};
// P2 ignores host_layout, copies permuted views wrongly, and is of 0.81.
static const char *const cannot_p2[] = {"memory_stats",
                                        "raw_buffer",
                                        "stream",
                                        "host_layout",
                                        "copy_to_memory",
                                        "copy_to_device",
                                        "bitcast",
                                        "error_buffer",
                                        "parameter_layouts",
                                        NULL};

static void real_plugins__are_told_as_they_are_known(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_pjrt_report *report = report_make(&bench);
  const char *const *cannot = strcmp(*state, "P2") == 0 ? cannot_p2 : cannot_p1;
  for (size_t i = 0; i < ist_pjrt_report_count(report); i++) {
    ist_pjrt_capability now = {.struct_size = sizeof now};
    assert_int_equal(ist_pjrt_report_capability(report, 0, i, &now, NULL),
                     IST_OK);
    bool works = true;
    for (size_t c = 0; cannot[c] != NULL; c++) {
      if (strcmp(now.name, cannot[c]) == 0) works = false;
    }
    if (now.works != works) fail_msg("%s: %s", now.name, now.reason);
    if (works) assert_true(now.present);
  }
  assert_int_equal(find_in(report, 0, "view").value, 64);
  assert_int_equal(find_in(report, 0, "memory_kinds").value, 3);
  assert_non_null(
      strstr(find_in(report, 0, "memory_stats").reason, "not implement"));
  ist_pjrt_report_release(report);
  bench_close(&bench);
}

static void real_plugins__tell_what_they_are(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_pjrt_report *report = report_make(&bench);
  ist_pjrt_info info = {.struct_size = sizeof info};
  bench_ok(&bench, ist_pjrt_report_info(report, &info, &bench.err));
  assert_int_equal(info.api_major, 0);
  assert_true(info.api_minor >= 57);
  assert_string_equal(info.platform, "cpu");
  assert_true(info.slot_count >= 113);
  bool layouts = false, version = false;
  for (size_t i = 0; i < info.extension_count; i++) {
    int32_t type = 0;
    const char *name = NULL;
    bench_ok(&bench,
             ist_pjrt_report_extension(report, i, &type, &name, &bench.err));
    if (type == 4) layouts = strcmp(name, "PJRT_Layouts_Extension") == 0;
  }
  for (size_t i = 0; i < info.attribute_count; i++) {
    ist_option option;
    bench_ok(&bench, ist_pjrt_report_attribute(report, i, &option, &bench.err));
    if (strcmp(option.name, "stablehlo_current_version") == 0) {
      version = option.kind == IST_OPTION_INT64_LIST && option.list_size == 3;
    }
  }
  assert_true(layouts && version);
  ist_pjrt_report_release(report);
  bench_close(&bench);
}

// ---- the lying one

// Each lie, and what it costs.
static const struct {
  const char *rules;
  const char *lost[6];
} lies[] = {
    {"zero_copy=copies", {"zero_copy"}},
    {"host_layout=ignored", {"host_layout"}},
    {"host_layout=refused", {"host_layout"}},
    {"copy_raw=corrupt", {"copy_raw"}},
    {"unimplemented=Buffer_CopyRawToHost", {"copy_raw"}},
    {"view=copy", {"view", "view_permuted"}},
    {"align=8192", {"view", "view_permuted"}},
    {"permuted=refused", {"view_permuted"}},
    {"permuted=ignored", {"view_permuted"}},
    {"permuted=untold", {"view_permuted"}},
    {"external_reference=ignored", {"external_reference"}},
    {"opaque=shifted", {"opaque_pointer", "external_reference"}},
    {"opaque=null", {"opaque_pointer", "external_reference"}},
    {"opaque=handle", {"opaque_pointer", "external_reference"}},
    {"unsafe=shifted", {"unsafe_pointer"}},
    {"unsafe=handle", {"unsafe_pointer"}},
    {"is_on_cpu=0", {"is_on_cpu"}},
    {"layout=strides", {"layout", "view_permuted"}},
    {"dynamic=wrong", {"dynamic_dimensions"}},
    {"dynamic=huge", {"dynamic_dimensions"}},
    {"dynamic=grown", {"dynamic_dimensions"}},
    {"unimplemented=Buffer_UnpaddedDimensions", {"dynamic_dimensions"}},
    {"memory_list=null", {"memory_kinds", "copy_to_memory"}},
    {"delete=ignored", {"delete"}},
    {"unimplemented=Buffer_Delete", {"delete"}},
    {"bitcast=copies", {"bitcast"}},
    {"bitcast=keeps", {"bitcast"}},
    {"null=Buffer_Bitcast", {"bitcast"}},
    {"error_buffer=fine", {"error_buffer"}},
    {"null=Client_CreateErrorBuffer", {"error_buffer"}},
    {"copy_to_memory=corrupt", {"copy_to_memory"}},
    {"copy_to_memory=elsewhere", {"copy_to_memory"}},
    {"memories=1", {"copy_to_memory"}},
    {"copy_to_device=corrupt", {"copy_to_device"}},
    {"copy_to_device=elsewhere", {"copy_to_device"}},
    {"devices=1", {"copy_to_device"}},
    {"stats=negative", {"memory_stats"}},
    {"unimplemented=Device_MemoryStats", {"memory_stats"}},
    {"attributes=null", {"attributes"}},
    {"attributes=huge", {"attributes"}},
    {"attributes=garbage", {"attributes"}},
    {"hlo=none", {"program_types"}},
    {"hlo=garbage", {"program_types"}},
    {"serialize=garbage", {"serialize"}},
    {"serialize=null", {"serialize"}},
    {"serialize=huge", {"serialize"}},
    {"null=Executable_DeserializeAndLoad", {"serialize"}},
    {"donation=ignored", {"donation"}},
    {"donation=always", {"donation"}},
    {"raw_buffer=none", {"raw_buffer"}},
    {"raw_buffer=small", {"raw_buffer"}},
    {"raw_buffer=wrong", {"raw_buffer"}},
    {"stream=none", {"stream"}},
    {"stream=wrong", {"stream"}},
    {"stream=unimplemented", {"stream"}},
    {"layouts=none", {"layouts", "parameter_layouts"}},
    {"layouts=wrong", {"layouts", "parameter_layouts"}},
    {"layouts=null", {"layouts", "parameter_layouts"}},
    {"program=wrong",
     {"programs", "serialize", "donation", "parameter_layouts"}},
    {"unimplemented=Client_Compile",
     {"programs", "program_types", "serialize", "donation",
      "parameter_layouts"}},
};

static bool is_lost(const char *const lost[6], const char *name) {
  for (int i = 0; i < 6 && lost[i] != NULL; i++) {
    if (strcmp(lost[i], name) == 0) return true;
  }
  return false;
}

static void each_lie__costs_what_it_is_about(void **state) {
  (void)state;
  for (size_t l = 0; l < COUNT_OF(lies); l++) {
    pjrt_bench bench;
    char rules[96];
    snprintf(rules, sizeof rules, "addressable=1 %s", lies[l].rules);
    bench_open(&bench, "lying", rules);
    ist_pjrt_report *report = report_make(&bench);
    for (size_t i = 0; i < ist_pjrt_report_count(report); i++) {
      ist_pjrt_capability now = {.struct_size = sizeof now};
      ist_pjrt_report_capability(report, 0, i, &now, NULL);
      if (now.works == is_lost(lies[l].lost, now.name)) {
        fail_msg("%s: %s %s: %s", rules, now.name,
                 now.works ? "works" : "does not work", now.reason);
      }
    }
    ist_pjrt_report_release(report);
    bench_close(&bench);
  }
}

static void honest_plugin__can_do_all(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "addressable=1");
  ist_pjrt_report *report = report_make(&bench);
  for (size_t m = 0; m < 2; m++) {
    for (size_t i = 0; i < ist_pjrt_report_count(report); i++) {
      ist_pjrt_capability now = {.struct_size = sizeof now};
      ist_pjrt_report_capability(report, m, i, &now, NULL);
      if (!now.works) fail_msg("%s: %s", now.name, now.reason);
    }
  }
  ist_pjrt_report_release(report);
  bench_close(&bench);
}

static void memory_of_its_own__lacks_what_needs_addresses(void **state) {
  (void)state;
  static const char *const lost[] = {"zero_copy",      "view",
                                     "view_permuted",  "external_reference",
                                     "opaque_pointer", "unsafe_pointer"};
  pjrt_bench bench;
  bench_open(&bench, "lying", "");
  ist_pjrt_report *report = report_make(&bench);
  for (size_t i = 0; i < ist_pjrt_report_count(report); i++) {
    ist_pjrt_capability now = {.struct_size = sizeof now};
    ist_pjrt_report_capability(report, 0, i, &now, NULL);
    bool is_one = false;
    for (size_t k = 0; k < COUNT_OF(lost); k++) {
      if (strcmp(now.name, lost[k]) == 0) is_one = true;
    }
    if (now.works == is_one) fail_msg("%s: %s", now.name, now.reason);
  }
  assert_works(report, "is_on_cpu", true);
  ist_pjrt_report_release(report);
  bench_close(&bench);
}

// What was found is what routes use.
static void routes__use_what_was_found(void **state) {
  (void)state;
  static const char *const rules[] = {"",
                                      "addressable=1",
                                      "addressable=1 view=copy",
                                      "addressable=1 opaque=shifted",
                                      "addressable=1 layout=tiled",
                                      "addressable=pinned",
                                      "addressable=1 align=128",
                                      "addressable=1 permuted=refused"};
  for (size_t r = 0; r < COUNT_OF(rules); r++) {
    pjrt_bench bench;
    bench_open(&bench, "lying", rules[r]);
    ist_pjrt_report *report = report_make(&bench);
    for (size_t m = 0; m < 2; m++) {
      const ist_capability *c =
          ist__device_capability(bench_device(&bench, 0), m);
      ist_pjrt_capability view = find_in(report, m, "view");
      bool lends = find_in(report, m, "opaque_pointer").works &&
                   find_in(report, m, "external_reference").works &&
                   find_in(report, m, "layout").works;
      assert_int_equal((c->can & IST_CAN_ADOPT) != 0, view.works);
      assert_int_equal((c->can & IST_CAN_LEND) != 0, lends);
      if (view.works) assert_int_equal(c->alignment, view.value);
      assert_int_equal((c->layouts & IST_LAYOUT_PERMUTED) != 0,
                       find_in(report, m, "view_permuted").works);
    }
    ist_pjrt_report_release(report);
    bench_close(&bench);
  }
}

// A plugin that lends its own memory and cannot view ours.
static void lending__does_not_need_views(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying",
             "addressable=1 drop=Client_CreateViewOfDeviceBuffer");
  _Alignas(64) float data[6] = {1, 2, 3, 4, 5, 6};
  const DLDataType f32 = {kDLFloat, 32, 1};
  source_tensor source;
  source_make(&source, data, f32, 1, (int64_t[]){6, 1});
  ist_tensor *tensor = NULL;
  ist_receipt in = {.struct_size = sizeof in}, out = in;
  bench_ok(&bench, ist_tensor_import(bench_device(&bench, 0), &source.managed,
                                     NULL, &tensor, &in, &bench.err));
  assert_int_equal(in.route, IST_ROUTE_COPY);
  DLManagedTensorVersioned *given = NULL;
  bench_ok(&bench, ist_tensor_export(tensor, NULL, &given, &out, &bench.err));
  assert_int_equal(out.route, IST_ROUTE_ALIAS);
  assert_int_equal(out.bytes_moved, 0);
  assert_memory_equal(
      (const char *)given->dl_tensor.data + given->dl_tensor.byte_offset, data,
      sizeof data);
  given->deleter(given);
  ist_tensor_release(tensor);
  source_assert_gone(&source);
  bench_close(&bench);
}

static void chain_without_end__is_cut(void **state) {
  (void)state;
  static const char *const rules[] = {"chain=loop", "chain=endless",
                                      "chain=none"};
  for (size_t i = 0; i < COUNT_OF(rules); i++) {
    pjrt_bench bench;
    bench_open(&bench, "lying", rules[i]);
    ist_pjrt_report *report = report_make(&bench);
    ist_pjrt_info info = {.struct_size = sizeof info};
    bench_ok(&bench, ist_pjrt_report_info(report, &info, &bench.err));
    assert_true(info.extension_count <= 64);
    ist_pjrt_report_release(report);
    bench_close(&bench);
  }
}

// ---- faults

typedef struct fuse {
  long calls, fail_at;
  bool fired;
} fuse;

static bool blow(void *self, const char *slot) {
  (void)slot;
  fuse *f = self;
  if (++f->calls != f->fail_at) return false;
  f->fired = true;
  return true;
}

static const char *const worlds[] = {"addressable=1", ""};

static void call_that_fails__costs_a_capability_at_most(void **state) {
  (void)state;
  for (size_t w = 0; w < COUNT_OF(worlds); w++) {
    long calls = 1;
    for (long n = 0; n <= calls; n++) {
      pjrt_bench bench;
      fuse f = {.fail_at = n};
      bench_open(&bench, "lying", worlds[w]);
      ist__context_set_call_hook(bench.context, blow, &f);
      ist_pjrt_report *report = report_make(&bench);
      if (n == 0) calls = f.calls;
      assert_true(n == 0 || f.fired);
      ist_pjrt_report_release(report);
      bench_close(&bench);
    }
    assert_true(calls > 100);
  }
}

static void plugin_that_fails_once__loses_nothing(void **state) {
  (void)state;
  for (size_t w = 0; w < COUNT_OF(worlds); w++) {
    int from = 0, to = 1;
    for (int n = 0; n <= to; n++) {
      pjrt_bench bench;
      bench_open(&bench, "lying", worlds[w]);
      if (n == 0) from = bench.lying.calls(NULL);
      char rules[64];
      snprintf(rules, sizeof rules, "%s fail_any=%d", worlds[w], n);
      // Setting rules resets the count of calls.
      bench.lying.set_rules(n == 0 ? worlds[w] : rules);
      ist_pjrt_report *report = report_make(&bench);
      if (n == 0) to = bench.lying.calls(NULL);
      ist_pjrt_report_release(report);
      bench_close(&bench);
    }
    assert_true(from > 0 && to > 100);
  }
}

static void allocation_that_fails__fails_the_report(void **state) {
  (void)state;
  for (size_t w = 0; w < COUNT_OF(worlds); w++) {
    pjrt_bench bench;
    bench_open(&bench, "lying", worlds[w]);
    const ist_device *device = bench_device(&bench, 0);
    for (long n = 1;; n++) {
      ist_pjrt_report *report = NULL;
      counting_allocator_arm(&bench.counts, n);
      ist_code code = ist_pjrt_report_create(device, &report, &bench.err);
      bool fired = atomic_load(&bench.counts.failed) != 0;
      counting_allocator_arm(&bench.counts, 0);
      if (!fired) {
        assert_int_equal(code, IST_OK);
        assert_true(n > 5);
        ist_pjrt_report_release(report);
        break;
      }
      assert_int_equal(code, IST_ERR_NO_ALLOCATION);
      assert_null(report);
    }
    bench_close(&bench);
  }
}

static void wrong_arguments__are_refused(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "");
  ist_error *err = &bench.err;
  ist_pjrt_report *report = NULL;
  ist_pjrt_capability out = {.struct_size = sizeof out};
  const ist_device *host = ist_context_host(bench.context);
  assert_int_equal(ist_pjrt_report_create(host, &report, err),
                   IST_ERR_ARGUMENT);
  assert_int_equal(ist_pjrt_report_create(NULL, &report, err),
                   IST_ERR_ARGUMENT);
  assert_int_equal(ist_pjrt_report_create(bench_device(&bench, 0), NULL, err),
                   IST_ERR_ARGUMENT);
  report = report_make(&bench);
  assert_int_equal(ist_pjrt_report_find(report, 0, "wings", &out, err),
                   IST_ERR_ARGUMENT);
  assert_int_equal(ist_pjrt_report_find(report, 9, "view", &out, err),
                   IST_ERR_ARGUMENT);
  assert_int_equal(ist_pjrt_report_capability(report, 0, 999, &out, err),
                   IST_ERR_ARGUMENT);
  assert_int_equal(ist_pjrt_report_attribute(report, 999, NULL, err),
                   IST_ERR_ARGUMENT);
  assert_int_equal(ist_pjrt_report_count(NULL), 0);
  // A report keeps its backend.
  ist_backend_release(bench.backend);
  bench.backend = NULL;
  assert_works(report, "copy_in", true);
  ist_pjrt_report_release(report);
  ist_pjrt_report_release(NULL);
  bench_close(&bench);
}

#define ON_REAL(test)                          \
  {#test " (P1)", test, NULL, NULL, "P1"},     \
      {#test " (P2)", test, NULL, NULL, "P2"}, \
      {#test " (P3)", test, NULL, NULL, "P3"}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_REAL(real_plugins__are_told_as_they_are_known),
      ON_REAL(real_plugins__tell_what_they_are),
      cmocka_unit_test(honest_plugin__can_do_all),
      cmocka_unit_test(each_lie__costs_what_it_is_about),
      cmocka_unit_test(memory_of_its_own__lacks_what_needs_addresses),
      cmocka_unit_test(routes__use_what_was_found),
      cmocka_unit_test(lending__does_not_need_views),
      cmocka_unit_test(chain_without_end__is_cut),
      cmocka_unit_test(call_that_fails__costs_a_capability_at_most),
      cmocka_unit_test(plugin_that_fails_once__loses_nothing),
      cmocka_unit_test(allocation_that_fails__fails_the_report),
      cmocka_unit_test(wrong_arguments__are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
