// SPDX-License-Identifier: Apache-2.0
// numbers_test.c: checked arithmetic, growable structs and counts of holders.

#include "base/checked.h"
#include "base/refcount.h"
#include "base/structs.h"
#include "support/testing.h"

static void checked__gives_what_fits_and_leaves_the_rest(void **state) {
  (void)state;
  int64_t i = 5;
  uint64_t u = 5;
  assert_true(ist__mul_i64(-3, 4, &i) && i == -12);
  assert_true(ist__add_i64(INT64_MAX, INT64_MIN, &i) && i == -1);
  assert_true(ist__mul_u64(UINT64_MAX, 1, &u) && u == UINT64_MAX);
  assert_true(ist__add_u64(1, 2, &u) && u == 3);
  i = 5;
  u = 5;
  assert_false(ist__mul_i64(INT64_MIN, -1, &i));
  assert_false(ist__mul_i64(INT64_C(1) << 62, 2, &i));
  assert_false(ist__add_i64(INT64_MIN, -1, &i));
  assert_false(ist__mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &u));
  assert_false(ist__add_u64(UINT64_MAX, 1, &u));
  assert_int_equal(i, 5);
  assert_int_equal(u, 5);
}

static void checked__knows_powers_of_two(void **state) {
  (void)state;
  assert_true(ist__is_power_of_two(1));
  assert_true(ist__is_power_of_two(UINT64_C(1) << 63));
  assert_false(ist__is_power_of_two(0));
  assert_false(ist__is_power_of_two(96));
  assert_false(ist__is_power_of_two(UINT64_MAX));
}

// Three ages of one struct: the middle one is ours.
typedef struct younger {
  size_t struct_size;
  int64_t a, b, c;
} younger;
typedef struct ours {
  size_t struct_size;
  int64_t a, b;
} ours;
typedef struct older {
  size_t struct_size;
  int64_t a;
} older;

static void struct_read__fills_what_the_caller_lacks_with_zero(void **state) {
  (void)state;
  ours got;
  memset(&got, 0xEE, sizeof got);
  older from = {sizeof from, 7};
  ist__struct_read(&got, sizeof got, &from);
  assert_int_equal(got.a, 7);
  assert_int_equal(got.b, 0);
  memset(&got, 0xEE, sizeof got);
  ist__struct_read(&got, sizeof got, NULL);
  assert_int_equal(got.struct_size, 0);
  assert_int_equal(got.a, 0);
  assert_int_equal(got.b, 0);
}

static void struct_read__drops_what_we_do_not_know(void **state) {
  (void)state;
  struct {
    ours got;
    int64_t after;
  } holder = {.after = 99};
  younger from = {sizeof from, 7, 8, 9};
  ist__struct_read(&holder.got, sizeof holder.got, &from);
  assert_int_equal(holder.got.a, 7);
  assert_int_equal(holder.got.b, 8);
  assert_int_equal(holder.after, 99);
}

static void struct_write__keeps_the_callers_size(void **state) {
  (void)state;
  const ours value = {sizeof value, 7, 8};
  struct {
    older out;
    int64_t after;
  } small = {{sizeof(older), 1}, 99};
  ist__struct_write(&small.out, &value, sizeof value);
  assert_int_equal(small.out.struct_size, sizeof(older));
  assert_int_equal(small.out.a, 7);
  assert_int_equal(small.after, 99);
  younger large = {sizeof large, 1, 2, 3};
  ist__struct_write(&large, &value, sizeof value);
  assert_int_equal(large.struct_size, sizeof large);
  assert_int_equal(large.b, 8);
  assert_int_equal(large.c, 3);
  ours unset = {sizeof(size_t), 1, 2};
  ist__struct_write(&unset, &value, sizeof value);
  assert_int_equal(unset.a, 1);
}

static void struct_ok__needs_a_size(void **state) {
  (void)state;
  ours value = {0};
  assert_false(ist__struct_ok(NULL));
  assert_false(ist__struct_ok(&value));
  value.struct_size = sizeof(size_t) - 1;
  assert_false(ist__struct_ok(&value));
  value.struct_size = sizeof value;
  assert_true(ist__struct_ok(&value));
}

static void refcount__tells_the_last_holder(void **state) {
  (void)state;
  ist__refcount count;
  ist__refcount_init(&count);
  ist__refcount_take(&count);
  ist__refcount_take(&count);
  assert_false(ist__refcount_drop(&count));
  assert_false(ist__refcount_drop(&count));
  assert_true(ist__refcount_drop(&count));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(checked__gives_what_fits_and_leaves_the_rest),
      cmocka_unit_test(checked__knows_powers_of_two),
      cmocka_unit_test(struct_read__fills_what_the_caller_lacks_with_zero),
      cmocka_unit_test(struct_read__drops_what_we_do_not_know),
      cmocka_unit_test(struct_write__keeps_the_callers_size),
      cmocka_unit_test(struct_ok__needs_a_size),
      cmocka_unit_test(refcount__tells_the_last_holder),
  };
  return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}
