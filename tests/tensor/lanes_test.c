// SPDX-License-Identifier: Apache-2.0
// lanes_test.c: pairs of fp4 (pytorch/pytorch#148791, dmlc/dlpack#158) and
// complex in two lanes become single elements at the same bytes, and back;
// what has no one meaning is refused.

#include "tensor/lanes.h"

#include "support/testing.h"
#include "tensor/dtype.h"
#include "tensor/layout.h"

static unsigned char memory[64];

static DLTensor tensor_of(DLDataType dtype, int32_t ndim, int64_t *shape,
                          int64_t *strides) {
  return (DLTensor){.data = memory,
                    .device = {kDLCPU, 0},
                    .ndim = ndim,
                    .dtype = dtype,
                    .shape = shape,
                    .strides = strides};
}

static const DLDataType pairs = {kDLFloat4_e2m1fn, 4, 2};

static void check_numbers(const int64_t *got, const int64_t *want, int count) {
  for (int i = 0; i < count; i++) assert_int_equal(got[i], want[i]);
}

static void lanes__pairs_double_the_last_extent(void **state) {
  (void)state;
  int64_t shape[] = {3, 4}, strides[] = {-5, 1};
  DLTensor tensor = tensor_of(pairs, 2, shape, strides);
  tensor.byte_offset = 16;
  ist__view view;
  ist_error error = {0};
  assert_ok(ist__view_check(&tensor, false, true, &view, &error), error);
  assert_int_equal(view.dtype.lanes, 1);
  assert_int_equal(view.dtype.bits, 4);
  check_numbers(view.shape, (int64_t[]){3, 8}, 2);
  check_numbers(view.strides, (int64_t[]){-10, 1}, 2);
  assert_int_equal(view.count, 24);
  assert_int_equal(view.nbytes, 12);
  assert_int_equal(view.lowest, 10);
  assert_int_equal(view.highest, 4);
  assert_ptr_equal(ist__view_address(&view), memory + 16);
  tensor.strides = NULL;
  assert_ok(ist__view_check(&tensor, false, true, &view, &error), error);
  check_numbers(view.strides, (int64_t[]){8, 1}, 2);
  assert_int_equal(view.layout, IST_LAYOUT_ROW_MAJOR);
}

// A dimension of one pair has no step of its own.
static void lanes__one_pair_may_say_any_stride(void **state) {
  (void)state;
  int64_t shape[] = {4, 1}, strides[] = {3, 77};
  DLTensor tensor = tensor_of(pairs, 2, shape, strides);
  ist__view view;
  ist_error error = {0};
  assert_ok(ist__view_check(&tensor, false, true, &view, &error), error);
  check_numbers(view.shape, (int64_t[]){4, 2}, 2);
  check_numbers(view.strides, (int64_t[]){6, 1}, 2);
}

static void check_refused(const DLTensor *tensor, bool padded, ist_code code,
                          const char *words) {
  ist__view view, zero;
  memset(&zero, 0, sizeof zero);
  ist_error error = {0};
  ist_code got = ist__view_check(tensor, padded, true, &view, &error);
  assert_refused(got, code, error, words);
  assert_memory_equal(&view, &zero, sizeof view);
}

static void lanes__refuses_pairs_that_single_elements_cannot_be(void **state) {
  (void)state;
  int64_t shape[] = {4, 4}, across[] = {1, 4}, apart[] = {8, 2};
  DLTensor tensor = tensor_of(pairs, 2, shape, across);
  check_refused(&tensor, false, IST_ERR_LANES, "steps by one pair");
  tensor.strides = apart;
  check_refused(&tensor, false, IST_ERR_LANES, "contiguous copy");
  tensor.strides = NULL;
  check_refused(&tensor, true, IST_ERR_LANES, "packed");
  tensor.ndim = 0;
  check_refused(&tensor, false, IST_ERR_LANES, "a last dimension to count");
  tensor = tensor_of(pairs, 65, shape, NULL);
  check_refused(&tensor, false, IST_ERR_NDIM, "ndim is 65");
  tensor = tensor_of(pairs, 2, NULL, NULL);
  check_refused(&tensor, false, IST_ERR_SHAPE, "shape is NULL");
  shape[1] = -4;
  tensor = tensor_of(pairs, 2, shape, NULL);
  check_refused(&tensor, false, IST_ERR_SHAPE, "extent 1 is -4");
}

static void lanes__doubling_never_overflows(void **state) {
  (void)state;
  int64_t shape[] = {2, INT64_MAX / 2 + 1}, strides[] = {1, 1};
  DLTensor tensor = tensor_of(pairs, 2, shape, NULL);
  check_refused(&tensor, false, IST_ERR_OVERFLOW, "dimension 1");
  shape[1] = 1;
  strides[0] = INT64_MIN / 2 - 1;
  tensor.strides = strides;
  check_refused(&tensor, false, IST_ERR_OVERFLOW, "dimension 0");
  strides[0] = INT64_MAX / 2 + 1;
  check_refused(&tensor, false, IST_ERR_OVERFLOW, "dimension 0");
}

// Older producers count the two parts of a complex number as lanes.
static void lanes__complex_in_two_lanes_is_one_number(void **state) {
  (void)state;
  int64_t shape[] = {2, 3}, strides[] = {-3, 1};
  static const uint8_t widths[] = {16, 32};
  for (size_t i = 0; i < COUNT_OF(widths); i++) {
    DLDataType dtype = {kDLComplex, widths[i], 2};
    DLTensor tensor = tensor_of(dtype, 2, shape, strides);
    tensor.byte_offset = 32;
    ist__view view;
    ist_error error = {0};
    assert_ok(ist__view_check(&tensor, false, true, &view, &error), error);
    assert_int_equal(view.dtype.code, kDLComplex);
    assert_int_equal(view.dtype.bits, 2 * widths[i]);
    assert_int_equal(view.dtype.lanes, 1);
    check_numbers(view.shape, shape, 2);
    check_numbers(view.strides, strides, 2);
  }
}

static void lanes__refuses_what_has_two_meanings_or_none(void **state) {
  (void)state;
  static const struct {
    DLDataType dtype;
    const char *words;
  } bad[] = {
      {{kDLComplex, 64, 2}, "one complex128 or two complex64"},
      {{kDLComplex, 128, 2}, "complex of 128 bits with 2 lanes"},
      {{kDLComplex, 32, 3}, "with 3 lanes"},
      {{kDLComplex, 32, 0}, "with 0 lanes"},
      {{kDLFloat, 32, 4}, "a vector"},
      {{kDLInt, 4, 2}, "a vector"},
      {{kDLFloat4_e2m1fn, 4, 1024}, "a vector"},
      {{kDLFloat4_e2m1fn, 4, 0}, "with 0 lanes"},
  };
  int64_t shape[] = {2, 2};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    DLTensor tensor = tensor_of(bad[i].dtype, 2, shape, NULL);
    check_refused(&tensor, false, IST_ERR_LANES, bad[i].words);
  }
  DLTensor tensor = tensor_of((DLDataType){kDLComplex, 8, 2}, 2, shape, NULL);
  check_refused(&tensor, false, IST_ERR_DTYPE, "code 5 (complex)");
}

static ist_pairs pairs_of(int32_t ndim, int64_t *shape, int64_t *strides,
                          bool padded) {
  DLTensor tensor =
      tensor_of((DLDataType){kDLFloat4_e2m1fn, 4, 1}, ndim, shape, strides);
  ist__view view;
  ist_error error = {0};
  assert_ok(ist__view_check(&tensor, padded, false, &view, &error), error);
  return ist__lanes_pairs_of(&view);
}

static void lanes__tells_what_pairs_can_be_counted(void **state) {
  (void)state;
  int64_t even[] = {3, 4}, odd[] = {4, 3}, empty[] = {0, 4}, none[] = {3, 0};
  int64_t rows[] = {6, 1}, apart[] = {5, 1}, across[] = {1, 3};
  int64_t broadcast[] = {0, 1}, back[] = {-6, 1}, reversed[] = {4, -1};
  int64_t one[] = {1, 4};
  assert_int_equal(pairs_of(2, even, NULL, false), IST_PAIRS_WHOLE);
  assert_int_equal(pairs_of(2, even, rows, false), IST_PAIRS_WHOLE);
  assert_int_equal(pairs_of(2, even, broadcast, false), IST_PAIRS_WHOLE);
  assert_int_equal(pairs_of(2, even, back, false), IST_PAIRS_WHOLE);
  assert_int_equal(pairs_of(2, one, apart, false), IST_PAIRS_WHOLE);
  assert_int_equal(pairs_of(2, empty, NULL, false), IST_PAIRS_WHOLE);
  assert_int_equal(pairs_of(2, none, NULL, false), IST_PAIRS_WHOLE);
  assert_int_equal(pairs_of(2, even, apart, false), IST_PAIRS_APART);
  assert_int_equal(pairs_of(2, even, across, false), IST_PAIRS_APART);
  assert_int_equal(pairs_of(2, even, reversed, false), IST_PAIRS_APART);
  assert_int_equal(pairs_of(2, even, NULL, true), IST_PAIRS_APART);
  assert_int_equal(pairs_of(2, odd, NULL, false), IST_PAIRS_ODD);
  assert_int_equal(pairs_of(0, NULL, NULL, false), IST_PAIRS_ODD);
}

// Every small shape and step: what is folded unfolds to what it was.
static void lanes__fold_and_unfold_are_inverse(void **state) {
  (void)state;
  int found = 0;
  for (int n = 0; n < 4 * 5 * 13; n++) {
    int64_t shape[] = {n % 4, n / 4 % 5}, strides[] = {n / 20 - 6, 1};
    DLTensor tensor =
        tensor_of((DLDataType){kDLFloat4_e2m1fn, 4, 1}, 2, shape, strides);
    tensor.byte_offset = 32;
    ist__view view, folded, back;
    ist_error error = {0};
    assert_ok(ist__view_check(&tensor, false, true, &view, &error), error);
    if (ist__lanes_pairs_of(&view) != IST_PAIRS_WHOLE) continue;
    ist__view_copy(&view, &folded);
    ist__lanes_fold(&folded);
    assert_int_equal(folded.dtype.lanes, 2);
    assert_int_equal(folded.shape[1] * 2, view.shape[1]);
    DLTensor out;
    ist__view_borrow(&folded, &out);
    assert_ok(ist__view_check(&out, false, true, &back, &error), error);
    check_numbers(back.shape, view.shape, 2);
    check_numbers(back.strides, view.strides, 2);
    assert_int_equal(back.layout, view.layout);
    assert_ptr_equal(ist__view_address(&back), ist__view_address(&view));
    found++;
  }
  assert_true(found > 50);
}

static void lanes__values_of_pairs_are_single_elements(void **state) {
  (void)state;
  assert_int_equal(ist__lanes_values(pairs).lanes, 1);
  assert_int_equal(ist__lanes_values(pairs).code, kDLFloat4_e2m1fn);
  // Other vectors stand for no other dtype: they are refused where they go.
  const DLDataType others[] = {
      {kDLFloat4_e2m1fn, 4, 3}, {kDLFloat, 32, 2}, {kDLInt, 4, 2}};
  for (size_t i = 0; i < COUNT_OF(others); i++) {
    assert_int_equal(ist__lanes_values(others[i]).lanes, others[i].lanes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lanes__pairs_double_the_last_extent),
      cmocka_unit_test(lanes__one_pair_may_say_any_stride),
      cmocka_unit_test(lanes__refuses_pairs_that_single_elements_cannot_be),
      cmocka_unit_test(lanes__doubling_never_overflows),
      cmocka_unit_test(lanes__complex_in_two_lanes_is_one_number),
      cmocka_unit_test(lanes__refuses_what_has_two_meanings_or_none),
      cmocka_unit_test(lanes__tells_what_pairs_can_be_counted),
      cmocka_unit_test(lanes__fold_and_unfold_are_inverse),
      cmocka_unit_test(lanes__values_of_pairs_are_single_elements),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
