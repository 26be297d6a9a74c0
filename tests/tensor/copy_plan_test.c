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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plan__single_axis_is_one_run),
      cmocka_unit_test(plan__transpose_is_one_plane),
  };
  return cmocka_run_group_tests_name("copy_plan", tests, NULL, NULL);
}
