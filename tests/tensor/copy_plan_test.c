// SPDX-License-Identifier: Apache-2.0
// copy_plan_test.c: a plane is copied in the way that its steps call for.

#include "tensor/copy_plan.h"
#include "support/testing.h"

static char memory[4096];

// The plan of a copy of float32 from strides (in elements) to dense row-major.
static ist__copy_plan plan_of(int32_t ndim, int64_t *shape, int64_t *strides) {
  DLTensor tensor = {.data = memory + 2048,
                     .device = {kDLCPU, 0},
                     .ndim = ndim,
                     .dtype = {kDLFloat, 32, 1},
                     .shape = shape,
                     .strides = strides};
  ist__view source, target;
  assert_int_equal(ist__view_check(&tensor, false, true, &source, NULL),
                   IST_OK);
  assert_int_equal(
      ist__view_dense(tensor.dtype, ndim, shape, false, &target, NULL), IST_OK);
  target.data = memory;
  ist__copy_plan plan;
  ist__copy_plan_make(&source, &target, &plan);
  return plan;
}

// The same for any size: nothing is read or written.
static ist__copy_plan plan_without_data(int32_t ndim, int64_t *shape,
                                        int64_t *strides) {
  DLTensor tensor = {.data = (void *)(uintptr_t)(1 << 30),
                     .device = {kDLCPU, 0},
                     .ndim = ndim,
                     .dtype = {kDLFloat, 32, 1},
                     .shape = shape,
                     .strides = strides};
  ist__view source, target;
  ist_error error = {0};
  assert_ok(ist__view_check(&tensor, false, true, &source, &error), error);
  tensor.strides = NULL;
  assert_ok(ist__view_check(&tensor, false, true, &target, &error), error);
  ist__copy_plan plan;
  ist__copy_plan_make(&source, &target, &plan);
  return plan;
}

static void plan__single_axis_is_one_run(void **state) {
  (void)state;
  const int64_t steps[] = {2, 3, -1, -2};
  for (size_t i = 0; i < COUNT_OF(steps); i++) {
    int64_t shape[] = {64};
    int64_t strides[] = {steps[i]};
    ist__copy_plan plan = plan_of(1, shape, strides);
    assert_int_equal(plan.way, IST__PLANE_RUNS);
    assert_int_equal(plan.count, 2);
    assert_int_equal(plan.axes[0].extent, 1);
    assert_int_equal(plan.axes[1].extent, 64);
  }
}

static void plan__transpose_is_one_plane(void **state) {
  (void)state;
  int64_t shape[] = {16, 8};
  int64_t strides[] = {1, 16};
  ist__copy_plan plan = plan_of(2, shape, strides);
  assert_int_equal(plan.way, IST__PLANE_TRANSPOSE);
  assert_int_equal(plan.axes[0].extent, 16);
  assert_int_equal(plan.axes[1].extent, 8);
}

// Element numbers of a plan's walk, from the innermost axis out: each item of
// the source exactly once, and the target in its own place.
static void assert_covers(const ist__copy_plan *p, int64_t count) {
  int64_t product = 1;
  for (int32_t i = 0; i < p->count; i++) product *= p->axes[i].extent;
  assert_int_equal(product * p->item, count * 4);
}

// The five dimensions in each order, some of them walked backwards.
static void plan__finds_the_transpose_whatever_the_order(void **state) {
  (void)state;
  int order[5] = {0, 1, 2, 3, 4};
  static const int64_t extents[5] = {9, 10, 11, 12, 13};
  for (int number = 0; number < 120; number++) {
    int left[5] = {0, 1, 2, 3, 4}, rest = number;
    for (int i = 0; i < 5; i++) {
      int at = rest % (5 - i);
      rest /= 5 - i;
      order[i] = left[at];
      for (int k = at; k < 4 - i; k++) left[k] = left[k + 1];
    }
    for (int backwards = 0; backwards < 32; backwards++) {
      int64_t shape[5], strides[5];
      int64_t step = 1;
      for (int i = 4; i >= 0; i--) {
        // Dimension order[i] of the target is number i of the source.
        bool back = (backwards >> i & 1) != 0;
        shape[order[i]] = extents[i];
        strides[order[i]] = back ? -step : step;
        step *= extents[i];
      }
      ist__copy_plan plan = plan_without_data(5, shape, strides);
      bool lies_together = order[4] == 4;
      if (lies_together) {
        assert_int_not_equal(plan.way, IST__PLANE_TRANSPOSE);
      } else {
        assert_int_equal(plan.way, IST__PLANE_TRANSPOSE);
        assert_int_equal(plan.axes[plan.count - 2].from, 4);
        assert_int_equal(plan.axes[plan.count - 1].to, 4);
      }
      assert_covers(&plan, step);
    }
  }
}

static void plan__channels_last_of_a_batch_is_one_plane_each(void **state) {
  (void)state;
  // NCHW to NHWC: height and width are one axis again.
  int64_t shape[] = {8, 56, 57, 64};
  int64_t strides[] = {64 * 56 * 57, 57, 1, 56 * 57};
  ist__copy_plan plan = plan_without_data(4, shape, strides);
  assert_int_equal(plan.way, IST__PLANE_TRANSPOSE);
  assert_int_equal(plan.count, 3);
  assert_int_equal(plan.axes[1].extent, 56 * 57);
  assert_int_equal(plan.axes[2].extent, 64);
  // And back.
  int64_t back_shape[] = {8, 64, 56, 57};
  int64_t back[] = {64 * 56 * 57, 1, 57 * 64, 64};
  plan = plan_without_data(4, back_shape, back);
  assert_int_equal(plan.way, IST__PLANE_TRANSPOSE);
  assert_int_equal(plan.count, 3);
  assert_int_equal(plan.axes[1].extent, 64);
  assert_int_equal(plan.axes[2].extent, 56 * 57);
}

static void plan__items_that_lie_together_are_one(void **state) {
  (void)state;
  int64_t shape[] = {100, 200, 4};
  int64_t strides[] = {4, 400, 1};
  ist__copy_plan plan = plan_without_data(3, shape, strides);
  assert_int_equal(plan.item, 16);
  assert_int_equal(plan.way, IST__PLANE_TRANSPOSE);
}

static void plan__tiny_planes_are_walked_many_at_once(void **state) {
  (void)state;
  int64_t shape[] = {5000, 3, 3};
  int64_t strides[] = {9, 1, 3};
  ist__copy_plan plan = plan_without_data(3, shape, strides);
  assert_int_equal(plan.way, IST__PLANE_BATCH);
  assert_int_equal(plan.axes[2].extent, 5000);
}

static void plan__few_columns_are_walked_along_the_rows(void **state) {
  (void)state;
  int64_t shape[] = {5000, 3};
  int64_t strides[] = {1, 0};
  ist__copy_plan plan = plan_without_data(2, shape, strides);
  assert_int_equal(plan.way, IST__PLANE_TILES);
  assert_int_equal(plan.axes[1].extent, 5000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plan__single_axis_is_one_run),
      cmocka_unit_test(plan__transpose_is_one_plane),
      cmocka_unit_test(plan__finds_the_transpose_whatever_the_order),
      cmocka_unit_test(plan__channels_last_of_a_batch_is_one_plane_each),
      cmocka_unit_test(plan__items_that_lie_together_are_one),
      cmocka_unit_test(plan__tiny_planes_are_walked_many_at_once),
      cmocka_unit_test(plan__few_columns_are_walked_along_the_rows),
  };
  return cmocka_run_group_tests_name("copy_plan", tests, NULL, NULL);
}
