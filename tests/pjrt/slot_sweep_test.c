// SPDX-License-Identifier: Apache-2.0
// Every slot that the library calls, broken in every way: absent, answering
// that it is not implemented, failing at its first, second, ... last call,
// doing nothing and telling of success. Whatever it is, there is an error or
// the right values, and nothing is left over.

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backend/pjrt/abi.h"
#include "support/plugin_journey.h"

static const char *const slot_names[IST_SLOT_COUNT] = {
#define SLOT(name, minor) #name,
#include "backend/pjrt/slots.def"
#undef SLOT
};

typedef struct slots {
  bool called[IST_SLOT_COUNT];  // somewhere in the library's sources
  size_t count;
} slots;

// ---- the list, out of the sources

static void read_line(const char *line, slots *out) {
  static const char prefix[] = "IST_SLOT_";
  // "[IST_SLOT_X] = ..." is a table of slots and not a call.
  if (strncmp(line + strspn(line, " "), "[IST_SLOT_", 10) == 0) return;
  for (const char *at = strstr(line, prefix); at != NULL;
       at = strstr(at, prefix)) {
    at += sizeof prefix - 1;
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
    for (size_t i = 0; i < IST_SLOT_COUNT; i++)
      if (strlen(slot_names[i]) == length &&
          strncmp(slot_names[i], at, length) == 0 && !out->called[i]) {
        out->called[i] = true;
        out->count++;
      }
  }
}

static void read_sources(slots *out) {
  char folder[900], path[1200], line[512];
  memset(out, 0, sizeof *out);
  const char *source = getenv("ISTHMUS_SOURCE");
  assert_non_null(source);
  snprintf(folder, sizeof folder, "%s/src/backend/pjrt", source);
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  for (struct dirent *entry = readdir(dir); entry != NULL;
       entry = readdir(dir)) {
    size_t length = strlen(entry->d_name);
    if (length < 3 || strcmp(entry->d_name + length - 2, ".c") != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) read_line(line, out);
    fclose(file);
  }
  closedir(dir);
  assert_true(out->count > 40);
}

// ---- one journey under one rule

static const char *const worlds[] = {"addressable=1", ""};

// How often the slot was called; *code is the journey's end.
static int travel(const char *world, const char *rule, const char *slot,
                  ist_code *code) {
  _Alignas(64) journey j;
  char rules[300];
  snprintf(rules, sizeof rules, "%s %s", world, rule);
  journey_begin(&j, rules, 0, 0);
  *code = journey_go(&j);
  if (*code != IST_OK) {
    assert_int_equal(j.bench.err.code, *code);
    if (strchr(j.bench.err.message, '\n') != NULL)
      fail_msg("%s: %s", rules, j.bench.err.message);
  }
  journey_end(&j);
  return j.bench.lying.calls(slot);
}

static int clean_calls(const char *world, const char *slot) {
  ist_code code;
  int calls = travel(world, "", slot, &code);
  assert_int_equal(code, IST_OK);
  return calls;
}

// Ends: when they fail they have done it all the same, and doing nothing would
// be the plugin's own leak.
static bool is_an_end(const char *slot) {
  return strstr(slot, "_Destroy") != NULL || strstr(slot, "_Delete") != NULL ||
         strstr(slot, "_Decrease") != NULL;
}

// The two that answer nothing cannot fail, only lack.
static bool is_void(const char *slot) {
  return strcmp(slot, "Error_Destroy") == 0 ||
         strcmp(slot, "Error_Message") == 0;
}

// Success of a call that did nothing is not to be told from one that did. What
// is to be called back for is kept as long as nobody calls, on purpose.
static bool cannot_be_told(const char *slot) {
  return is_an_end(slot) || strstr(slot, "_Increase") != NULL ||
         strcmp(slot, "Event_OnReady") == 0;
}

static void sweep_calls(const char *world, const char *rule, const char *slot) {
  int calls = clean_calls(world, slot);
  for (int n = 1; n <= calls; n++) {
    char text[128];
    ist_code code;
    snprintf(text, sizeof text, "%s=%s:%d", rule, slot, n);
    int fired = travel(world, text, slot, &code);
    if (fired < n) fail_msg("%s never came so far", text);
  }
}

static void sweep_whole(const char *world, const char *rule, const char *slot) {
  char text[128];
  ist_code code;
  snprintf(text, sizeof text, "%s=%s", rule, slot);
  int calls = travel(world, text, slot, &code);
  bool absent = strcmp(rule, "drop") == 0;
  if (absent && calls != 0) fail_msg("%s: it was called", text);
}

// ---- tests

// A slot that the library calls and no journey does is a hole in these tests.
static void every_slot_in_the_sources__is_called(void **state) {
  (void)state;
  slots list;
  read_sources(&list);
  size_t called = 0;
  _Alignas(64) journey j;
  for (size_t w = 0; w < COUNT_OF(worlds); w++) {
    journey_begin(&j, worlds[w], 0, 0);
    bench_ok(&j.bench, journey_go(&j));
    journey_end(&j);
    for (size_t i = 0; i < IST_SLOT_COUNT; i++)
      if (list.called[i] && j.bench.lying.calls(slot_names[i]) > 0) {
        list.called[i] = false;
        called++;
      }
  }
  for (size_t i = 0; i < IST_SLOT_COUNT; i++)
    if (list.called[i]) print_message("no journey calls %s\n", slot_names[i]);
  assert_int_equal(called, list.count);
}

typedef void (*sweep_fn)(const char *world, const char *rule, const char *slot);

static void sweep(const char *rule, sweep_fn how) {
  slots list;
  read_sources(&list);
  for (size_t i = 0; i < IST_SLOT_COUNT; i++) {
    const char *slot = slot_names[i];
    bool idle = strcmp(rule, "null") == 0 && cannot_be_told(slot);
    bool mute = strcmp(rule, "drop") != 0 && is_void(slot);
    if (!list.called[i] || idle || mute) continue;
    for (size_t w = 0; w < COUNT_OF(worlds); w++) how(worlds[w], rule, slot);
  }
}

static void slots_that_fail_at_a_call__cost_an_error(void **state) {
  (void)state;
  sweep("fail", sweep_calls);
}

static void slots_that_do_nothing__cost_an_error(void **state) {
  (void)state;
  sweep("null", sweep_calls);
}

static void slots_that_are_not_implemented__cost_a_capability(void **state) {
  (void)state;
  sweep("unimplemented", sweep_whole);
}

static void slots_that_are_absent__are_never_called(void **state) {
  (void)state;
  sweep("drop", sweep_whole);
}

// ---- around a real plugin

// A sample: each slot in one of the ways, at its first, middle or last call.
static void slots_of_a_real_plugin__may_break(void **state) {
  static const char *const rules[] = {"fail", "unimplemented", "null"};
  const char *key = *state;
  plugin_path(key);
  slots list;
  read_sources(&list);
  char world[64];
  snprintf(world, sizeof world, "wrap=ISTHMUS_%s", key);
  _Alignas(64) journey j;
  journey_begin(&j, world, 0, 0);
  bench_ok(&j.bench, journey_go(&j));
  int calls[IST_SLOT_COUNT];
  for (size_t i = 0; i < IST_SLOT_COUNT; i++)
    calls[i] = j.bench.lying.calls(slot_names[i]);
  journey_end(&j);
  // Another third of the ways for each plugin.
  size_t turn = (size_t)(key[1] - '0');
  for (size_t i = 0; i < IST_SLOT_COUNT; i++, turn++) {
    const char *rule = rules[turn % COUNT_OF(rules)];
    if (!list.called[i] || calls[i] == 0 || is_void(slot_names[i])) continue;
    if (strcmp(rule, "null") == 0 && cannot_be_told(slot_names[i])) {
      rule = "fail";
    }
    int n = turn % 2 == 0 ? 1 + calls[i] / 2 : 1;
    char text[128];
    ist_code code;
    snprintf(text, sizeof text, "%s=%s:%d", rule, slot_names[i], n);
    travel(world, text, slot_names[i], &code);
  }
}

#define AROUND(key)                               \
  {"slots_of_a_real_plugin__may_break (" key ")", \
   slots_of_a_real_plugin__may_break, NULL, NULL, (void *)(key)}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_slot_in_the_sources__is_called),
      cmocka_unit_test(slots_that_are_absent__are_never_called),
      cmocka_unit_test(slots_that_are_not_implemented__cost_a_capability),
      cmocka_unit_test(slots_that_fail_at_a_call__cost_an_error),
      cmocka_unit_test(slots_that_do_nothing__cost_an_error),
      AROUND("P1"),
      AROUND("P2"),
      AROUND("P3"),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
