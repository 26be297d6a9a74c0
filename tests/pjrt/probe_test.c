// SPDX-License-Identifier: Apache-2.0
// What the probe finds: on real plugins what they can do, on the lying one
// what it does and not what it says.

#include <stdio.h>

#include "backend/backend.h"
#include "support/pjrt_support.h"
#include "tensor/dtype.h"

static ist_capability probe(const char *rules) {
  pjrt_bench bench;
  bench_open(&bench, "lying", rules);
  ist_capability found = *ist__device_capability(bench_device(&bench, 0), 0);
  // Devices of one kind are found to be alike.
  const ist_capability *other =
      ist__device_capability(bench_device(&bench, 1), 0);
  assert_memory_equal(&found, other, sizeof found);
  bench_close(&bench);
  return found;
}

static bool has_dtype(const ist_capability *found, const char *name) {
  for (int32_t n = 0; n < ist__dtype_count(); n++)
    if (strcmp(ist__dtype_at(n)->name, name) == 0)
      return (found->dtypes >> n & 1) != 0;
  fail_msg("no dtype %s", name);
  return false;
}

enum {
  COPIES = IST_CAN_COPY_IN | IST_CAN_COPY_OUT | IST_CAN_HONOUR_READ_ONLY,
  VIEWS = COPIES | IST_CAN_ADOPT,
  LENDS = COPIES | IST_CAN_HOST_ADDRESS | IST_CAN_LEND,
  ALL = VIEWS | LENDS
};

static void real_plugins__can_do_all(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  for (size_t d = 0; d < 2; d++) {
    ist_device_info info = {.struct_size = sizeof info};
    const ist_device *device = bench_device(&bench, d);
    bench_ok(&bench, ist_device_describe(device, &info, &bench.err));
    for (size_t m = 0; m < info.memory_count; m++) {
      const ist_capability *found = ist__device_capability(device, m);
      assert_int_equal(found->can, ALL);
      assert_int_equal(found->alignment, 64);
      assert_int_equal(found->layouts, IST_LAYOUT_PERMUTED);
      assert_int_equal(found->dl_device.device_type, kDLCPU);
      assert_true(has_dtype(found, "bfloat16"));
      assert_true(has_dtype(found, "int4"));
      assert_true(has_dtype(found, "float4_e2m1fn"));
      assert_false(has_dtype(found, "complex32"));
    }
  }
  bench_close(&bench);
}

static void memory_of_its_own__only_copies(void **state) {
  (void)state;
  ist_capability found = probe("");
  assert_int_equal(found.can, COPIES);
  assert_int_equal(found.dl_device.device_type, 0);
}

static void lie_about_is_on_cpu__changes_nothing(void **state) {
  (void)state;
  ist_capability found = probe("is_on_cpu=1");
  assert_int_equal(found.can, COPIES);
  found = probe("is_on_cpu=0 addressable=1");
  assert_int_equal(found.can, ALL);
}

static void platform_name__changes_nothing(void **state) {
  (void)state;
  assert_int_equal(probe("platform=cpu").can, COPIES);
  assert_int_equal(probe("platform=tpu addressable=1").can, ALL);
}

static void alignment__is_found_by_trying(void **state) {
  (void)state;
  static const struct {
    const char *rules;
    uint64_t alignment;
  } cases[] = {{"addressable=1 align=1", 1},
               {"addressable=1 align=16", 16},
               {"addressable=1 align=64", 64},
               {"addressable=1 align=128", 128},
               {"addressable=1 align=4096", 4096}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    ist_capability found = probe(cases[i].rules);
    assert_int_equal(found.can, ALL);
    assert_int_equal(found.alignment, cases[i].alignment);
  }
  // More than a page is more than the probe offers: imports are copied then.
  assert_int_equal(probe("addressable=1 align=8192").can, LENDS);
}

static void view_that_is_a_copy__is_no_view(void **state) {
  (void)state;
  assert_int_equal(probe("addressable=1 view=copy").can, LENDS);
}

static void view_given_back_early__is_no_view(void **state) {
  (void)state;
  assert_int_equal(probe("addressable=1 view=eager").can, LENDS);
}

// The plugin calls back for it later all the same, into memory that must live.
static void view_that_never_was__is_no_view(void **state) {
  (void)state;
  assert_int_equal(probe("addressable=1 view=null").can, LENDS);
}

static void wrong_address__is_never_lent(void **state) {
  (void)state;
  ist_capability found = probe("addressable=1 opaque=shifted");
  assert_int_equal(found.can, VIEWS);
  assert_int_equal(found.dl_device.device_type, 0);
}

static void values_that_change__leave_nothing(void **state) {
  (void)state;
  ist_capability found = probe("addressable=1 corrupt=1");
  assert_int_equal(found.can, 0);
  assert_int_equal(found.dtypes, 0);
}

static void missing_slots__cost_what_they_carry(void **state) {
  (void)state;
  static const struct {
    const char *slot;
    uint32_t can;
  } cases[] = {
      {"Client_CreateViewOfDeviceBuffer", LENDS},
      {"Buffer_OpaqueDeviceMemoryDataPointer", VIEWS},
      {"Buffer_IncreaseExternalReferenceCount", ALL & ~IST_CAN_LEND},
      {"Buffer_ToHostBuffer", 0},
      {"Client_BufferFromHostBuffer", 0},
      {"Buffer_ReadyEvent", 0},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++)
    for (int how = 0; how < 2; how++) {
      char rules[128];
      snprintf(rules, sizeof rules, "addressable=1 %s=PJRT_%s",
               how == 0 ? "drop" : "unimplemented", cases[i].slot);
      ist_capability found = probe(rules);
      if (found.can != cases[i].can)
        fail_msg("%s: found %x", rules, (unsigned)found.can);
    }
}

static void told_layouts__are_not_believed(void **state) {
  (void)state;
  static const char *const rules[] = {
      "addressable=1 layout=tiled", "addressable=1 layout=short",
      "addressable=1 layout=unsorted",
      "addressable=1 unimplemented=Buffer_GetMemoryLayout"};
  for (size_t i = 0; i < COUNT_OF(rules); i++) {
    ist_capability found = probe(rules[i]);
    assert_int_equal(found.can, ALL & ~IST_CAN_LEND);
    assert_int_equal(found.layouts, IST_LAYOUT_ROW_MAJOR);
  }
}

// A tile that cuts nothing is no reason not to lend an address.
static void told_tiles__that_cut_nothing_are_no_tiles(void **state) {
  (void)state;
  ist_capability found = probe("addressable=1 layout=tiled_by_one");
  ist_capability plain = probe("addressable=1");
  assert_int_equal(found.can, ALL);
  assert_int_equal(found.layouts, plain.layouts);
}

// S1 and U1 abort before 0.94, the F6 types before 0.114: the lying plugin
// notes when one of them is tried.
static void newer_types__are_not_tried_on_older_plugins(void **state) {
  (void)state;
  ist_capability found = probe("addressable=1 minor=93");
  assert_false(has_dtype(&found, "int1"));
  assert_true(has_dtype(&found, "int2"));
  found = probe("addressable=1 minor=94");
  assert_true(has_dtype(&found, "int1"));
  assert_true(has_dtype(&found, "uint1"));
}

// What a plugin does with a memory that is not the default one.
static uint32_t probe_pinned(const char *rules) {
  pjrt_bench bench;
  bench_open(&bench, "lying", rules);
  uint32_t can = ist__device_capability(bench_device(&bench, 0), 1)->can;
  bench_close(&bench);
  return can;
}

static void other_memories__are_reached_or_not_offered(void **state) {
  (void)state;
  assert_int_equal(probe_pinned("addressable=1"), ALL);
  assert_int_equal(probe_pinned("addressable=1 minor=65"), LENDS);
  assert_int_equal(probe_pinned("addressable=1 memory=ignored"), 0);
  assert_int_equal(probe_pinned("addressable=1 drop=Buffer_Memory"), 0);
}

static void failing_once__costs_no_more_than_a_capability(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "addressable=1");
  int total = bench.lying.calls(NULL);
  bench_close(&bench);
  assert_true(total > 100);
  for (int n = 1; n <= total; n++) {
    char rules[64];
    snprintf(rules, sizeof rules, "addressable=1 fail_any=%d", n);
    bench_context(&bench, "lying", rules);
    ist_backend_options options = {.struct_size = sizeof options,
                                   .path = plugin_path("lying"),
                                   .trusted = true};
    ist_code code = ist_backend_open(bench.context, "pjrt", &options,
                                     &bench.backend, &bench.err);
    assert_true(bench.lying.calls(NULL) >= n);
    if (code == IST_OK) {
      uint32_t can = ist__device_capability(bench_device(&bench, 0), 0)->can;
      assert_int_equal(can & ~(uint32_t)ALL, 0);
    } else {
      assert_null(bench.backend);
      assert_int_equal(bench.err.code, code);
    }
    bench_close(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      {"real_plugins__can_do_all (P1)", real_plugins__can_do_all, NULL, NULL,
       "P1"},
      {"real_plugins__can_do_all (P2)", real_plugins__can_do_all, NULL, NULL,
       "P2"},
      {"real_plugins__can_do_all (P3)", real_plugins__can_do_all, NULL, NULL,
       "P3"},
      cmocka_unit_test(memory_of_its_own__only_copies),
      cmocka_unit_test(lie_about_is_on_cpu__changes_nothing),
      cmocka_unit_test(platform_name__changes_nothing),
      cmocka_unit_test(alignment__is_found_by_trying),
      cmocka_unit_test(view_that_is_a_copy__is_no_view),
      cmocka_unit_test(view_given_back_early__is_no_view),
      cmocka_unit_test(view_that_never_was__is_no_view),
      cmocka_unit_test(wrong_address__is_never_lent),
      cmocka_unit_test(values_that_change__leave_nothing),
      cmocka_unit_test(missing_slots__cost_what_they_carry),
      cmocka_unit_test(told_layouts__are_not_believed),
      cmocka_unit_test(told_tiles__that_cut_nothing_are_no_tiles),
      cmocka_unit_test(newer_types__are_not_tried_on_older_plugins),
      cmocka_unit_test(other_memories__are_reached_or_not_offered),
      cmocka_unit_test(failing_once__costs_no_more_than_a_capability),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
