// SPDX-License-Identifier: Apache-2.0
// Each capability of capability.def is flipped by a rule of the lying plugin:
// it is absent, or present and does not work, and what has nothing to do with
// it stays as it was. A capability without a row fails the test.

#include <stdio.h>

#include "backend/pjrt/capability.h"
#include "support/plugin_journey.h"

typedef struct row {
  const char *name;
  const char *absent;  // rules that take it out of the table
  const char *broken;  // rules that leave it there and make it wrong
  // Others that go with it, parted by spaces; "*": any, "+": any that it takes
  // along when it is absent.
  const char *also;
} row;

static const row rows[] = {
    {"copy_in", "drop=Client_BufferFromHostBuffer", "copy_in=corrupt", "*"},
    {"zero_copy", "drop=Client_BufferFromHostBuffer", "zero_copy=copies", "+"},
    {"copy_out", "drop=Buffer_ToHostBuffer", "corrupt=1", "*"},
    {"host_layout", "drop=Buffer_ToHostBuffer", "host_layout=ignored", "+"},
    {"copy_raw", "drop=Buffer_CopyRawToHost", "copy_raw=corrupt", ""},
    {"view", "drop=Client_CreateViewOfDeviceBuffer", "view=copy",
     "view_permuted"},
    {"view_permuted", "drop=Buffer_GetMemoryLayout", "permuted=refused",
     "layout"},
    {"external_reference", "drop=Buffer_IncreaseExternalReferenceCount",
     "external_reference=ignored", ""},
    {"opaque_pointer", "drop=Buffer_OpaqueDeviceMemoryDataPointer",
     "opaque=shifted", "external_reference"},
    {"unsafe_pointer", "drop=Buffer_UnsafePointer", "unsafe=shifted", ""},
    {"is_on_cpu", "drop=Buffer_IsOnCpu", "is_on_cpu=0", ""},
    {"ready_event", "drop=Buffer_ReadyEvent", "null=Buffer_ReadyEvent", "*"},
    {"layout", "drop=Buffer_GetMemoryLayout", "layout=unsorted",
     "view_permuted"},
    {"dynamic_dimensions", "drop=Buffer_DynamicDimensionIndices",
     "dynamic=wrong", ""},
    {"memory_kinds", "drop=Device_AddressableMemories", "memory_list=null",
     "copy_to_memory"},
    {"element_types", "drop=Client_BufferFromHostBuffer", "types=99", "*"},
    {"delete", "drop=Buffer_Delete", "delete=ignored", ""},
    {"bitcast", "drop=Buffer_Bitcast", "bitcast=copies", ""},
    {"error_buffer", "drop=Client_CreateErrorBuffer", "error_buffer=fine", ""},
    {"copy_to_memory", "drop=Buffer_CopyToMemory", "copy_to_memory=corrupt",
     ""},
    {"copy_to_device", "drop=Buffer_CopyToDevice", "copy_to_device=corrupt",
     ""},
    {"memory_stats", "drop=Device_MemoryStats",
     "unimplemented=Device_MemoryStats", ""},
    {"attributes", "drop=Plugin_Attributes", "attributes=null", ""},
    {"programs", "drop=Client_Compile", "program=wrong",
     "donation parameter_layouts program_types serialize"},
    {"program_types", "drop=Executable_OptimizedProgram", "hlo=garbage", ""},
    {"serialize", "drop=Executable_Serialize", "serialize=garbage", ""},
    {"donation", "drop=LoadedExecutable_Execute", "donation=ignored",
     "parameter_layouts programs serialize"},
    {"raw_buffer", "raw_buffer=none", "raw_buffer=wrong", ""},
    {"stream", "stream=none", "stream=unimplemented", ""},
    {"layouts", "layouts=none", "layouts=wrong", "parameter_layouts"},
    {"parameter_layouts", "layouts=none",
     "unimplemented=Layouts_Executable_GetParameterLayouts", "layouts"},
};

typedef struct found {
  bool present[IST__CAPABILITY_COUNT];
  bool works[IST__CAPABILITY_COUNT];
} found;

// What a probe finds under rules of the default memory of the first device.
static void probe(const char *rules, found *out) {
  pjrt_bench bench;
  char text[200];
  snprintf(text, sizeof text, "addressable=1 %s", rules);
  bench_open(&bench, "lying", text);
  ist_pjrt_report *report = NULL;
  bench_ok(&bench, ist_pjrt_report_create(bench_device(&bench, 0), &report,
                                          &bench.err));
  assert_int_equal(ist_pjrt_report_count(report), IST__CAPABILITY_COUNT);
  for (size_t i = 0; i < IST__CAPABILITY_COUNT; i++) {
    ist_pjrt_capability c = {.struct_size = sizeof c};
    bench_ok(&bench, ist_pjrt_report_capability(report, 0, i, &c, &bench.err));
    out->present[i] = c.present;
    out->works[i] = c.works;
    if (!c.works && c.reason[0] == '\0') fail_msg("%s: no reason", c.name);
  }
  ist_pjrt_report_release(report);
  bench_close(&bench);
}

static const char *name_of(size_t number) {
  return ist__pjrt_capability_row_at((int)number)->name;
}

static const row *row_of(const char *name) {
  for (size_t i = 0; i < COUNT_OF(rows); i++)
    if (strcmp(rows[i].name, name) == 0) return &rows[i];
  fail_msg("capability %s has no rule that flips it", name);
  return NULL;
}

static bool may_go_along(const row *r, const char *rules, const char *name) {
  return strcmp(r->also, "*") == 0 || strstr(r->also, name) != NULL ||
         (strcmp(r->also, "+") == 0 && rules == r->absent);
}

static void assert_others_stay(const row *r, const char *rules,
                               const found *clean, const found *now) {
  for (size_t i = 0; i < IST__CAPABILITY_COUNT; i++) {
    if (strcmp(name_of(i), r->name) == 0 || may_go_along(r, rules, name_of(i)))
      continue;
    if (clean->works[i] != now->works[i])
      fail_msg("%s: %s changed", rules, name_of(i));
  }
}

static void honest_plugin__can_do_all(void **state) {
  (void)state;
  found clean;
  probe("", &clean);
  for (size_t i = 0; i < IST__CAPABILITY_COUNT; i++)
    if (!clean.works[i]) fail_msg("%s does not work", name_of(i));
}

static void every_capability__is_gone_without_its_slot(void **state) {
  (void)state;
  found clean, now;
  probe("", &clean);
  for (size_t i = 0; i < IST__CAPABILITY_COUNT; i++) {
    const row *r = row_of(name_of(i));
    probe(r->absent, &now);
    if (now.present[i] || now.works[i])
      fail_msg("%s: %s is there", r->absent, r->name);
    assert_others_stay(r, r->absent, &clean, &now);
  }
}

static void every_capability__is_found_out_when_it_lies(void **state) {
  (void)state;
  found clean, now;
  probe("", &clean);
  for (size_t i = 0; i < IST__CAPABILITY_COUNT; i++) {
    const row *r = row_of(name_of(i));
    probe(r->broken, &now);
    if (!now.present[i]) fail_msg("%s: %s is absent", r->broken, r->name);
    if (now.works[i]) fail_msg("%s: %s works", r->broken, r->name);
    assert_others_stay(r, r->broken, &clean, &now);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(honest_plugin__can_do_all),
      cmocka_unit_test(every_capability__is_gone_without_its_slot),
      cmocka_unit_test(every_capability__is_found_out_when_it_lies),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
