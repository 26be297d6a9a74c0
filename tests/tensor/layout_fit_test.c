// SPDX-License-Identifier: Apache-2.0
// layout_fit_test.c: whether a consumer takes a geometry as it is, permuted or
// not at all is told as data, and the order told is one that helps.

#include <isthmus/isthmus.h>

#include "support/testing.h"
#include "tensor/layout.h"

static ist_fit fit_of(int32_t ndim, const int64_t *shape,
                      const int64_t *strides, uint32_t accepted) {
  ist_fit fit = {.struct_size = sizeof fit};
  ist_error error = {0};
  assert_ok(ist_layout_fit(ndim, shape, strides, accepted, &fit, &error),
            error);
  return fit;
}

static void fit__is_as_it_is_where_the_layout_is_accepted(void **state) {
  (void)state;
  int64_t shape[] = {2, 3};
  ist_fit fit = fit_of(2, shape, NULL, IST_LAYOUT_ROW_MAJOR);
  assert_int_equal(fit.kind, IST_FIT_AS_IS);
  assert_int_equal(fit.layout, IST_LAYOUT_ROW_MAJOR);
  assert_int_equal(fit.order[0], 0);
  assert_int_equal(fit.order[1], 1);
  fit = fit_of(2, shape, (int64_t[]){1, 2}, IST_LAYOUT_PERMUTED);
  assert_int_equal(fit.kind, IST_FIT_AS_IS);
  assert_int_equal(fit.against, 0);
  fit = fit_of(0, NULL, NULL, IST_LAYOUT_ROW_MAJOR);
  assert_int_equal(fit.kind, IST_FIT_AS_IS);
  assert_int_equal(fit.order_code, 0);
}

// samuela/torch2jax#6: an image with its first and last axis swapped.
static void fit__is_permuted_where_only_the_order_is_in_the_way(void **state) {
  (void)state;
  int64_t shape[] = {2, 3, 4}, strides[] = {1, 2, 6};
  ist_fit fit = fit_of(3, shape, strides, IST_LAYOUT_ROW_MAJOR);
  assert_int_equal(fit.kind, IST_FIT_PERMUTED);
  assert_int_equal(fit.against, IST_LAYOUT_PERMUTED);
  static const int32_t reversed[] = {2, 1, 0};
  assert_memory_equal(fit.order, reversed, sizeof reversed);
  int32_t again[IST_MAX_NDIM];
  assert_int_equal(ist__layout_order_read(fit.order_code, again), 3);
  assert_memory_equal(again, reversed, sizeof reversed);
}

static void fit__is_none_where_a_permutation_cannot_help(void **state) {
  (void)state;
  int64_t shape[] = {3, 4};
  ist_fit fit = fit_of(2, shape, (int64_t[]){1, -3}, IST_LAYOUT_PERMUTED);
  assert_int_equal(fit.kind, IST_FIT_NONE);
  assert_int_equal(fit.against, IST_LAYOUT_NEGATIVE);
  fit = fit_of(2, shape, (int64_t[]){0, 1}, IST_LAYOUT_GAPS);
  assert_int_equal(fit.kind, IST_FIT_NONE);
  assert_int_equal(fit.against, IST_LAYOUT_OVERLAP);
  fit = fit_of(2, shape, (int64_t[]){1, 9}, IST_LAYOUT_ROW_MAJOR);
  assert_int_equal(fit.kind, IST_FIT_NONE);
  assert_int_equal(fit.against, IST_LAYOUT_GAPS | IST_LAYOUT_PERMUTED);
}

// jax-ml/jax#24680, onnxruntime#27450: what has no stride of its own stands
// against nobody.
static void fit__of_unit_and_empty_extents_is_row_major(void **state) {
  (void)state;
  int64_t unit[] = {3, 1, 6, 2}, wild[] = {12, -99, 2, 1};
  assert_int_equal(fit_of(4, unit, wild, 0).kind, IST_FIT_AS_IS);
  int64_t empty[] = {1, 8, 0, 128}, any[] = {INT64_MIN, 0, -5, INT64_MAX};
  assert_int_equal(fit_of(4, empty, any, 0).kind, IST_FIT_AS_IS);
}

static void fit__orders_make_what_is_permuted_fall(void **state) {
  (void)state;
  uint64_t seed = 5;
  int permuted = 0;
  for (int round = 0; round < 20000; round++) {
    int64_t shape[5], strides[5], to_shape[5], to_strides[5];
    int32_t ndim = 1 + (int32_t)random_below(&seed, 5);
    for (int32_t i = 0; i < ndim; i++) {
      shape[i] = 1 + random_below(&seed, 3);
      strides[i] = random_below(&seed, 13) - 4;
    }
    ist_fit fit = fit_of(ndim, shape, strides, IST_LAYOUT_ROW_MAJOR);
    uint32_t seen = 0;
    for (int32_t i = 0; i < ndim; i++) {
      assert_in_range(fit.order[i], 0, ndim - 1);
      seen |= 1U << fit.order[i];
      to_shape[i] = shape[fit.order[i]];
      to_strides[i] = strides[fit.order[i]];
    }
    assert_int_equal(seen, (1U << ndim) - 1);
    uint32_t layout = ist__layout_of(ndim, to_shape, to_strides);
    assert_int_equal(layout, fit.layout & ~(uint32_t)IST_LAYOUT_PERMUTED);
    permuted += (fit.layout & IST_LAYOUT_PERMUTED) != 0;
  }
  assert_true(permuted > 1000);
}

static void fit__of_many_dimensions_has_an_order_and_no_code(void **state) {
  (void)state;
  int64_t shape[IST_MAX_NDIM], strides[IST_MAX_NDIM];
  for (int i = 0; i < IST_MAX_NDIM; i++) {
    shape[i] = i < 20 ? 2 : 1;
    strides[i] = i < 20 ? INT64_C(1) << i : 1;
  }
  ist_fit fit = fit_of(IST_MAX_NDIM, shape, strides, 0);
  assert_int_equal(fit.kind, IST_FIT_PERMUTED);
  assert_int_equal(fit.order_code, 0);
  fit = fit_of(14, shape, strides, 0);
  int32_t order[IST_MAX_NDIM];
  assert_int_equal(ist__layout_order_read(fit.order_code, order), 14);
  assert_int_equal(order[0], 13);
}

static void fit__refuses_numbers_that_cannot_be(void **state) {
  (void)state;
  int64_t shape[] = {2, 3};
  ist_fit fit = {.struct_size = sizeof fit};
  ist_error error = {0};
  assert_refused(ist_layout_fit(-1, shape, NULL, 0, &fit, &error), IST_ERR_NDIM,
                 error, "needs 0 to 64");
  assert_refused(ist_layout_fit(65, shape, NULL, 0, &fit, &error), IST_ERR_NDIM,
                 error, "needs 0 to 64");
  assert_refused(ist_layout_fit(2, NULL, NULL, 0, &fit, &error), IST_ERR_SHAPE,
                 error, "shape is NULL");
  assert_refused(ist_layout_fit(2, (int64_t[]){2, -3}, NULL, 0, &fit, &error),
                 IST_ERR_SHAPE, error, "needs 0 or more");
  assert_refused(
      ist_layout_fit(2, shape, (int64_t[]){INT64_MAX, 1}, 0, &fit, &error),
      IST_ERR_OVERFLOW, error, "needs an extent");
  assert_refused(ist_layout_fit(2, shape, NULL, 16, &fit, &error),
                 IST_ERR_ARGUMENT, error, "unknown bits");
  assert_refused(ist_layout_fit(2, shape, NULL, 0, NULL, &error),
                 IST_ERR_ARGUMENT, error, "out is NULL");
  assert_int_equal(fit.kind, IST_FIT_NONE);
  assert_int_equal(fit.layout, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fit__is_as_it_is_where_the_layout_is_accepted),
      cmocka_unit_test(fit__is_permuted_where_only_the_order_is_in_the_way),
      cmocka_unit_test(fit__is_none_where_a_permutation_cannot_help),
      cmocka_unit_test(fit__of_unit_and_empty_extents_is_row_major),
      cmocka_unit_test(fit__orders_make_what_is_permuted_fall),
      cmocka_unit_test(fit__of_many_dimensions_has_an_order_and_no_code),
      cmocka_unit_test(fit__refuses_numbers_that_cannot_be),
  };
  return cmocka_run_group_tests_name("layout_fit", tests, NULL, NULL);
}
