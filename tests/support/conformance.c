// SPDX-License-Identifier: Apache-2.0
// conformance.c: the suite's list, and what a backend tells of itself.

#include "support/conformance.h"

#include "support/conformance_world.h"
#include "tensor/dtype.h"

// ----------------------------------------------------------- capabilities --

enum {
  every_can = IST_CAN_COPY_IN | IST_CAN_COPY_OUT | IST_CAN_ADOPT |
              IST_CAN_LEND | IST_CAN_HOST_ADDRESS | IST_CAN_HONOUR_READ_ONLY |
              IST_CAN_PEER | IST_CAN_PADDED
};

static void capability__never_is_kept_apart_from_not_yet(void **state) {
  world *w = *state;
  const subject *s = w->subject;
  uint32_t lacks = every_can & ~w->memory.can;
  if ((s->never & s->not_yet) != 0) {
    fail_msg("%s: never and not yet at once", s->name);
  }
  if (lacks != (s->never | s->not_yet)) {
    fail_msg("%s: lacks %x; its table says never %x, not yet %x", s->name,
             lacks, s->never, s->not_yet);
  }
  assert_int_equal(w->memory.can & ~(uint32_t)every_can, 0);
}

static void capability__facts_are_whole(void **state) {
  world *w = *state;
  ist_error error = {0};
  ist_backend_info info = {.struct_size = sizeof info};
  assert_ok(ist_backend_describe(w->backend, &info, &error), error);
  assert_true(info.name[0] != '\0' && info.platform[0] != '\0');
  assert_non_null(info.version);
  assert_null(ist_backend_device(w->backend, info.device_count));
  for (size_t d = 0; d < info.device_count; d++) {
    const ist_device *device = ist_backend_device(w->backend, d);
    assert_ptr_equal(ist_device_backend(device), w->backend);
    ist_device_info facts = {.struct_size = sizeof facts};
    assert_ok(ist_device_describe(device, &facts, &error), error);
    assert_int_equal(facts.index, d);
    assert_true(facts.default_memory < facts.memory_count);
    for (size_t m = 0; m <= facts.memory_count; m++) {
      ist_memory_info memory = {.struct_size = sizeof memory};
      ist_code code = ist_device_memory(device, m, &memory, &error);
      if (m == facts.memory_count) {
        assert_int_equal(code, IST_ERR_NO_MEMORY_KIND);
        continue;
      }
      assert_ok(code, error);
      const ist_capability *has = &memory.capability;
      assert_true(memory.kind[0] != '\0');
      assert_true(has->alignment != 0);
      assert_int_equal(has->alignment & (has->alignment - 1), 0);
      assert_int_equal(has->dtypes & ~ist__dtype_all(), 0);
      assert_int_equal(has->layouts & ~(uint32_t)IST_LAYOUT_ANY, 0);
    }
  }
}

// The first and the last test of the group share the world with the others.
static void suite__opens(void **state) {
  world *w = *state;
  open_world(w, w->subject);
}

static void suite__closes_and_leaves_nothing(void **state) {
  world *w = *state;
  ist_backend_release(w->backend);
  ist_context_release(w->context);
  await_live(w, 0);
}

int conformance_run(const subject *under_test) {
  static world w;
  memset(&w, 0, sizeof w);
  w.subject = under_test;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(suite__opens, &w),
      cmocka_unit_test_prestate(capability__never_is_kept_apart_from_not_yet,
                                &w),
      cmocka_unit_test_prestate(capability__facts_are_whole, &w),
      cmocka_unit_test_prestate(import__every_dtype_layout_and_wish, &w),
      cmocka_unit_test_prestate(import__refuses_dtypes_that_the_memory_lacks,
                                &w),
      cmocka_unit_test_prestate(import__refuses_what_it_cannot_read, &w),
      cmocka_unit_test_prestate(import__writes_show_in_an_alias_only, &w),
      cmocka_unit_test_prestate(import__reaches_every_memory_of_the_device, &w),
      cmocka_unit_test_prestate(import__refuses_a_memory_that_is_not_there, &w),
      cmocka_unit_test_prestate(
          import__takes_pinned_and_managed_memory_as_the_hosts, &w),
      cmocka_unit_test_prestate(
          import__keeps_the_mark_of_what_must_not_be_written, &w),
      cmocka_unit_test_prestate(export__every_dtype_layout_and_wish, &w),
      cmocka_unit_test_prestate(export__reaches_a_consumer_on_the_host, &w),
      cmocka_unit_test_prestate(move__every_dtype_layout_and_wish, &w),
      cmocka_unit_test_prestate(move__between_devices_of_one_backend, &w),
      cmocka_unit_test_prestate(convert__every_dtype_layout_and_padding, &w),
      cmocka_unit_test_prestate(closing__in_any_order_frees_everything, &w),
      cmocka_unit_test_prestate(suite__closes_and_leaves_nothing, &w),
  };
  return cmocka_run_group_tests_name(under_test->name, tests, NULL, NULL);
}
