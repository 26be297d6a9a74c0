// SPDX-License-Identifier: Apache-2.0
// layout_test.c: geometries are called what they are.

#include "tensor/layout.h"

#include "support/layout_oracle.h"
#include "support/testing.h"

typedef struct geometry {
  int32_t ndim;
  int64_t shape[4];
  int64_t strides[4];
  uint32_t layout;
} geometry;

enum {
  row_major = IST_LAYOUT_ROW_MAJOR,
  permuted = IST_LAYOUT_PERMUTED,
  gaps = IST_LAYOUT_GAPS,
  negative = IST_LAYOUT_NEGATIVE,
  overlap = IST_LAYOUT_OVERLAP
};

static void layout__names_what_strides_do(void **state) {
  (void)state;
  static const geometry cases[] = {
      {0, {0}, {0}, row_major},
      {1, {5}, {1}, row_major},
      {1, {5}, {-1}, negative},
      {1, {5}, {2}, gaps},
      {1, {5}, {-2}, negative | gaps},
      {1, {5}, {0}, overlap},
      {2, {3, 4}, {4, 1}, row_major},
      {2, {3, 4}, {1, 3}, permuted},
      {2, {3, 2}, {4, 1}, gaps},
      {2, {2, 3}, {1, 4}, permuted | gaps},
      {2, {3, 4}, {0, 1}, overlap},
      {2, {3, 4}, {1, 0}, overlap},
      {2, {3, 4}, {-4, -1}, negative},
      {2, {3, 4}, {1, -3}, negative | permuted},
      {2, {3, 3}, {1, 1}, overlap},  // a sliding window
      // Interleaved: no dimension steps over the other, and none meet.
      {2, {2, 3}, {3, 2}, gaps},
      {2, {3, 2}, {2, -3}, gaps | negative | permuted},
      {2, {3, 3}, {3, 2}, gaps},
      {2, {3, 4}, {3, 2}, overlap | gaps},
      {3, {2, 2, 2}, {4, 6, 5}, gaps | permuted},
      {3, {2, 2, 2}, {5, 3, 2}, overlap | gaps},
      {3, {2, 3, 4}, {12, 4, 1}, row_major},
      {3, {2, 3, 4}, {12, 1, 3}, permuted},
      {3, {2, 3, 4}, {1, 2, 6}, permuted},
      // Extents of 1 have no stride that counts.
      {2, {1, 77}, {-9, 1}, row_major},
      {4, {3, 1, 6, 2}, {12, 99, 2, 1}, row_major},
      {3, {3, 1, 4}, {1, 7, 3}, permuted},
      // Nothing there: nothing strided.
      {2, {0, 4}, {-3, 0}, row_major},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    const geometry *g = &cases[i];
    uint32_t layout = ist__layout_of(g->ndim, g->shape, g->strides);
    if (layout != g->layout) {
      fail_msg("case %zu: %u, not %u", i, layout, g->layout);
    }
  }
}

static void layout__row_major_strides_are_compact(void **state) {
  (void)state;
  int64_t strides[4];
  // pytorch/pytorch#99803 and #163282: compact by shape, not all ones.
  assert_true(ist__layout_row_major(2, (int64_t[]){1, 77}, strides));
  assert_int_equal(strides[0], 77);
  assert_int_equal(strides[1], 1);
  assert_true(ist__layout_row_major(2, (int64_t[]){1024, 1}, strides));
  assert_int_equal(strides[0], 1);
  assert_int_equal(strides[1], 1);
  assert_true(ist__layout_row_major(3, (int64_t[]){2, 0, 3}, strides));
  assert_int_equal(strides[0], 3);
  assert_int_equal(strides[1], 3);
  assert_int_equal(strides[2], 1);
  assert_true(ist__layout_row_major(0, NULL, strides));
  int64_t huge[] = {4, INT64_MAX / 2};
  assert_false(ist__layout_row_major(2, huge, strides));
}

// All orders of four extents, some of them 1: back and forth is the same.
static void layout__minor_to_major_and_back_is_the_same(void **state) {
  (void)state;
  static const int64_t shapes[][4] = {{2, 3, 4, 5}, {1, 3, 1, 5}, {1, 1, 1, 1}};
  for (size_t s = 0; s < COUNT_OF(shapes); s++) {
    const int64_t *shape = shapes[s];
    for (int code = 0; code < 256; code++) {
      int64_t order[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6};
      unsigned set = 0;
      for (int i = 0; i < 4; i++) set |= 1U << order[i];
      int64_t strides[4];
      bool made = ist__layout_from_minor_to_major(4, shape, order, strides);
      assert_int_equal(made, set == 15);
      if (!made) continue;
      int64_t found[4];
      int64_t again[4];
      assert_true(ist__layout_minor_to_major(4, shape, strides, found));
      assert_true(ist__layout_from_minor_to_major(4, shape, found, again));
      for (int i = 0; i < 4; i++) {
        if (shape[i] > 1) assert_int_equal(again[i], strides[i]);
        if (s == 0) assert_int_equal(found[i], order[i]);
      }
    }
  }
}

// jax-ml/jax#24680, jax-ml/jax#25066: extents of 1 must not make a row-major
// array look like any other order.
static void layout__row_major_gives_descending_dimensions(void **state) {
  (void)state;
  int64_t shape[] = {3, 1, 6, 2};
  int64_t strides[] = {12, 12, 2, 1};
  int64_t order[4];
  assert_true(ist__layout_minor_to_major(4, shape, strides, order));
  for (int i = 0; i < 4; i++) assert_int_equal(order[i], 3 - i);
}

static void layout__only_dense_orders_have_minor_to_major(void **state) {
  (void)state;
  int64_t order[2];
  int64_t shape[] = {3, 4};
  assert_false(ist__layout_minor_to_major(2, shape, (int64_t[]){8, 1}, order));
  assert_false(ist__layout_minor_to_major(2, shape, (int64_t[]){-4, 1}, order));
  assert_false(ist__layout_minor_to_major(2, shape, (int64_t[]){0, 1}, order));
  assert_true(ist__layout_minor_to_major(2, (int64_t[]){0, 4},
                                         (int64_t[]){4, 1}, order));
}

static void layout__orders_from_outside_are_not_believed(void **state) {
  (void)state;
  int64_t strides[2];
  int64_t shape[] = {3, 4};
  static const int64_t bad[][2] = {{0, 0},         {0, 2},         {-1, 0},
                                   {INT64_MAX, 0}, {INT64_MIN, 1}, {1, 64}};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    assert_false(ist__layout_from_minor_to_major(2, shape, bad[i], strides));
  }
  int64_t huge[] = {INT64_MAX, 3};
  assert_false(
      ist__layout_from_minor_to_major(2, huge, (int64_t[]){0, 1}, strides));
}

static void layout__survives_strides_that_overflow(void **state) {
  (void)state;
  int64_t shape[] = {INT64_MAX, INT64_MAX};
  int64_t strides[] = {INT64_MIN, INT64_MAX};
  assert_true((ist__layout_of(2, shape, strides) & negative) != 0);
  assert_true(
      (ist__layout_of(2, shape, (int64_t[]){INT64_MAX - 1, 1}) & overlap) != 0);
}

// Random geometries, small enough to try every address: what is called an
// overlap is one, what is not is none, and gaps are there when told.
static void layout__overlap_and_gaps_are_what_every_address_shows(
    void **state) {
  (void)state;
  uint64_t seed = 7;
  int found[2] = {0, 0};
  for (int round = 0; round < 60000; round++) {
    int32_t ndim = 1 + (int32_t)random_below(&seed, 4);
    int64_t shape[4], strides[4], count = 1, reach = 0;
    for (int32_t i = 0; i < ndim; i++) {
      shape[i] = 1 + (int64_t)random_below(&seed, 4);
      strides[i] = (int64_t)random_below(&seed, 37) - 18;
      count *= shape[i];
      reach += (shape[i] - 1) * (strides[i] < 0 ? -strides[i] : strides[i]);
    }
    bool expected = strides_meet(ndim, shape, strides);
    uint32_t layout = ist__layout_of(ndim, shape, strides);
    found[expected]++;
    if (((layout & overlap) != 0) != expected ||
        (!expected && ((layout & gaps) != 0) != (reach + 1 != count))) {
      fail_msg("round %d: layout %u, overlap expected %d", round, layout,
               expected);
    }
  }
  assert_true(found[0] > 1000 && found[1] > 1000);
}

// A subset sum that is more work than is spent counts as an overlap; and it
// takes no longer for being hostile.
static void layout__what_is_too_much_to_decide_counts_as_overlap(void **state) {
  (void)state;
  int64_t shape[IST_MAX_NDIM], strides[IST_MAX_NDIM];
  uint64_t seed = 3;
  for (int i = 0; i < IST_MAX_NDIM; i++) {
    shape[i] = 2;
    strides[i] = 1 + 2 * (int64_t)random_below(&seed, UINT64_C(1) << 40);
  }
  assert_true((ist__layout_of(IST_MAX_NDIM, shape, strides) & overlap) != 0);
  strides[5] = INT64_MAX;
  assert_true((ist__layout_of(IST_MAX_NDIM, shape, strides) & overlap) != 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layout__names_what_strides_do),
      cmocka_unit_test(layout__row_major_strides_are_compact),
      cmocka_unit_test(layout__minor_to_major_and_back_is_the_same),
      cmocka_unit_test(layout__row_major_gives_descending_dimensions),
      cmocka_unit_test(layout__only_dense_orders_have_minor_to_major),
      cmocka_unit_test(layout__orders_from_outside_are_not_believed),
      cmocka_unit_test(layout__survives_strides_that_overflow),
      cmocka_unit_test(layout__overlap_and_gaps_are_what_every_address_shows),
      cmocka_unit_test(layout__what_is_too_much_to_decide_counts_as_overlap),
  };
  return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
