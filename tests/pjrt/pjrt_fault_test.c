// SPDX-License-Identifier: Apache-2.0
// Everything that can fail on the way through a plugin is made to fail, one
// thing after the other: each allocation, each call of a slot. Afterwards
// nothing is lost, and what succeeded is right. slot_sweep_test.c breaks the
// plugin's own slots, one by one.

#include <stdio.h>

#include "support/plugin_journey.h"

static const char *const worlds[] = {"addressable=1", ""};

static void every_slot__may_fail(void **state) {
  (void)state;
  for (size_t w = 0; w < COUNT_OF(worlds); w++) {
    _Alignas(64) journey j;
    journey_begin(&j, worlds[w], 0, 0);
    assert_int_equal(journey_go(&j), IST_OK);
    long calls = j.fuse.calls;
    journey_end(&j);
    assert_true(calls > 100);
    for (long n = 1; n <= calls; n++) {
      journey_begin(&j, worlds[w], n, 0);
      ist_code code = journey_go(&j);
      assert_true(j.fuse.fired);
      // A fault of the probe is a capability less, and no failure.
      if (code != IST_OK) assert_int_equal(j.bench.err.code, code);
      journey_end(&j);
    }
  }
}

static void every_allocation__may_fail(void **state) {
  (void)state;
  for (size_t w = 0; w < COUNT_OF(worlds); w++) {
    _Alignas(64) journey j;
    journey_begin(&j, worlds[w], 0, 0);
    assert_int_equal(journey_go(&j), IST_OK);
    long requests = atomic_load(&j.bench.counts.requests);
    journey_end(&j);
    assert_true(requests > 20);
    for (long n = 1; n <= requests; n++) {
      journey_begin(&j, worlds[w], 0, n);
      ist_code code = journey_go(&j);
      assert_int_equal(atomic_load(&j.bench.counts.failed), 1);
      if (code != IST_ERR_NO_ALLOCATION)
        fail_msg("allocation %ld: code %d, %s", n, code, j.bench.err.message);
      journey_end(&j);
    }
  }
}

// The plugin's own failures, of every call that can fail.
static void every_call_of_the_plugin__may_fail(void **state) {
  (void)state;
  for (size_t w = 0; w < COUNT_OF(worlds); w++) {
    _Alignas(64) journey j;
    journey_begin(&j, worlds[w], 0, 0);
    assert_int_equal(journey_go(&j), IST_OK);
    int calls = j.bench.lying.calls(NULL);
    journey_end(&j);
    for (int n = 1; n <= calls; n++) {
      char rules[64];
      snprintf(rules, sizeof rules, "%s fail_any=%d", worlds[w], n);
      journey_begin(&j, rules, 0, 0);
      ist_code code = journey_go(&j);
      assert_true(j.bench.lying.calls(NULL) >= n);
      if (code != IST_OK) assert_int_equal(j.bench.err.code, code);
      journey_end(&j);
    }
  }
}

// Each event that the plugin gives completes with an error.
static void every_event__may_fail(void **state) {
  (void)state;
  for (size_t w = 0; w < COUNT_OF(worlds); w++) {
    for (int n = 1;; n++) {
      _Alignas(64) journey j;
      char rules[64];
      snprintf(rules, sizeof rules, "%s fail_event=%d", worlds[w], n);
      journey_begin(&j, rules, 0, 0);
      ist_code code = journey_go(&j);
      bool fired = j.bench.lying.events() >= n;
      if (code != IST_OK) assert_int_equal(j.bench.err.code, code);
      journey_end(&j);
      if (fired) continue;
      assert_int_equal(code, IST_OK);
      assert_true(n > 20);
      break;
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_slot__may_fail),
      cmocka_unit_test(every_allocation__may_fail),
      cmocka_unit_test(every_call_of_the_plugin__may_fail),
      cmocka_unit_test(every_event__may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
