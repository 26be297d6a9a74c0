// SPDX-License-Identifier: Apache-2.0
// view_test.c: every number of a tensor from outside is looked at before it is
// believed, and what is believed is in normal form.

#include "tensor/view.h"

#include <stdio.h>

#include "support/guard_page.h"
#include "support/testing.h"
#include "tensor/dtype.h"

static const DLDataType float32 = {kDLFloat, 32, 1};

static float memory[64];

// A tensor that is right: 2 x 3 float32; tests spoil one thing of it.
static DLTensor good(int64_t *shape, int64_t *strides) {
  shape[0] = 2;
  shape[1] = 3;
  strides[0] = 3;
  strides[1] = 1;
  return (DLTensor){.data = memory,
                    .device = {kDLCPU, 0},
                    .ndim = 2,
                    .dtype = float32,
                    .shape = shape,
                    .strides = strides};
}

// Refused with code and words; the view is all zeros.
static void check_refused(const DLTensor *tensor, ist_code code,
                          const char *words) {
  ist__view view;
  ist__view zero;
  memset(&view, 0xEE, sizeof view);
  memset(&zero, 0, sizeof zero);
  ist_error error = {0};
  ist_code got = ist__view_check(tensor, false, true, &view, &error);
  assert_refused(got, code, error, words);
  assert_memory_equal(&view, &zero, sizeof view);
  assert_int_equal(ist__view_check(tensor, false, true, &view, NULL), code);
}

static void check_accepted(const DLTensor *tensor, ist__view *view) {
  ist_error error = {0};
  assert_ok(ist__view_check(tensor, false, true, view, &error), error);
}

static void view__accepts_a_right_tensor_as_it_is(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  ist__view view;
  check_accepted(&tensor, &view);
  assert_ptr_equal(view.data, memory);
  assert_int_equal(view.ndim, 2);
  assert_int_equal(view.count, 6);
  assert_int_equal(view.nbytes, 24);
  assert_int_equal(view.lowest, 0);
  assert_int_equal(view.highest, 24);
  assert_int_equal(view.layout, IST_LAYOUT_ROW_MAJOR);
  assert_int_equal(view.dtype_number, ist_dtype_number(float32));
  assert_memory_equal(view.shape, shape, sizeof shape);
  assert_memory_equal(view.strides, strides, sizeof strides);
}

static void view__refuses_null(void **state) {
  (void)state;
  check_refused(NULL, IST_ERR_ARGUMENT, "NULL");
}

// NVIDIA/MatX#1204: ranks beyond what a library holds.
static void view__refuses_impossible_ndim(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  static const int32_t bad[] = {-1, 65, 70, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    DLTensor tensor = good(shape, strides);
    tensor.ndim = bad[i];
    check_refused(&tensor, IST_ERR_NDIM, "needs 0 to 64");
  }
}

static void view__accepts_the_largest_ndim(void **state) {
  (void)state;
  int64_t shape[64], strides[64];
  DLTensor tensor = good(shape, strides);
  for (int i = 0; i < 64; i++) {
    shape[i] = i == 7 ? 5 : 1;
    strides[i] = -3;
  }
  strides[7] = 1;
  tensor.ndim = 64;
  ist__view view;
  check_accepted(&tensor, &view);
  assert_int_equal(view.count, 5);
  assert_int_equal(view.strides[0], 5);
  assert_int_equal(view.strides[63], 1);
}

static void view__refuses_dtypes_without_a_name(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  static const DLDataType bad[] = {{18, 8, 1},  {255, 32, 1}, {2, 8, 1},
                                   {0, 128, 1}, {0, 0, 1},    {6, 1, 1},
                                   {4, 32, 1},  {3, 64, 1},   {17, 8, 1},
                                   {5, 16, 1},  {0, 12, 1},   {2, 80, 1}};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    DLTensor tensor = good(shape, strides);
    tensor.dtype = bad[i];
    check_refused(&tensor, IST_ERR_DTYPE, "needs one of DLPack 1.3");
  }
}

// A vector is no element; more in lanes_test.c.
static void view__refuses_lanes(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  static const DLDataType bad[] = {
      {2, 32, 0}, {2, 32, 4}, {2, 32, 65535}, {17, 4, 4}};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    DLTensor tensor = good(shape, strides);
    tensor.dtype = bad[i];
    check_refused(&tensor, IST_ERR_LANES, "needs 1 lane");
  }
}

// What is no element is refused by its name.
static void view__names_the_type_code_that_it_refuses(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  tensor.dtype = (DLDataType){kDLOpaqueHandle, 64, 1};
  check_refused(&tensor, IST_ERR_DTYPE, "code 3 (opaque handle)");
  tensor.dtype = (DLDataType){18, 32, 1};
  check_refused(&tensor, IST_ERR_DTYPE, "code 18 (bcomplex)");
  tensor.dtype = (DLDataType){19, 32, 1};
  check_refused(&tensor, IST_ERR_DTYPE, "code 19 (unknown)");
}

static void view__refuses_unknown_device_codes(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  static const int bad[] = {0, 5, 6, -1, 22, 999, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    DLTensor tensor = good(shape, strides);
    tensor.device.device_type = (DLDeviceType)bad[i];
    check_refused(&tensor, IST_ERR_DEVICE_CODE, "device code");
  }
}

static void view__accepts_every_device_code_with_a_name(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  for (int code = 1; code < 22; code++) {
    if (ist_device_code_name(code) == NULL) continue;
    DLTensor tensor = good(shape, strides);
    tensor.device.device_type = (DLDeviceType)code;
    tensor.device.device_id = 3;
    ist__view view;
    check_accepted(&tensor, &view);
    assert_int_equal(view.device.device_type, code);
    assert_int_equal(view.device.device_id, 3);
  }
}

static void view__refuses_null_shape(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  tensor.shape = NULL;
  check_refused(&tensor, IST_ERR_SHAPE, "shape is NULL");
}

static void view__refuses_negative_extents(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  static const int64_t bad[] = {-1, -4, INT64_MIN};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    for (int d = 0; d < 2; d++) {
      DLTensor tensor = good(shape, strides);
      shape[d] = bad[i];
      check_refused(&tensor, IST_ERR_SHAPE, "needs 0 or more");
      shape[1 - d] = 0;
      check_refused(&tensor, IST_ERR_SHAPE, "needs 0 or more");
    }
  }
}

// mohu-org/mohu#328: such shapes abort other consumers.
static void view__refuses_shapes_that_overflow(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  static const int64_t bad[][2] = {{INT64_C(1) << 62, 4},
                                   {4, INT64_C(1) << 62},
                                   {INT64_MAX, INT64_MAX},
                                   {INT64_MAX, 2},
                                   {INT64_C(1) << 32, INT64_C(1) << 32},
                                   {INT64_C(1) << 60, 1},
                                   {INT64_C(1) << 30, INT64_C(1) << 31},
                                   {INT64_MAX, 1}};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    for (int with = 0; with < 2; with++) {
      DLTensor tensor = good(shape, strides);
      memcpy(shape, bad[i], sizeof shape);
      if (!with) tensor.strides = NULL;
      check_refused(&tensor, IST_ERR_OVERFLOW, "needs an extent");
    }
  }
  // The stride that an empty tensor would have must fit, too.
  DLTensor tensor = good(shape, strides);
  int64_t three[] = {0, INT64_MAX, 3};
  tensor.ndim = 3;
  tensor.shape = three;
  tensor.strides = NULL;
  check_refused(&tensor, IST_ERR_OVERFLOW, "needs an extent");
}

static void view__refuses_strides_that_overflow(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  static const int64_t bad[][2] = {
      {INT64_MAX, INT64_MAX}, {INT64_MIN, 1},        {INT64_MIN, INT64_MIN},
      {INT64_MAX, 1},         {INT64_C(1) << 60, 1}, {-(INT64_C(1) << 60), 1},
      {3, INT64_MIN},         {3, INT64_MAX / 2}};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    DLTensor tensor = good(shape, strides);
    memcpy(strides, bad[i], sizeof strides);
    check_refused(&tensor, IST_ERR_OVERFLOW, "needs an extent");
  }
}

static void view__refuses_extents_outside_the_address_space(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  tensor.data = (void *)(UINTPTR_MAX - 15);  // room for 15 bytes of 24
  check_refused(&tensor, IST_ERR_OVERFLOW, "address space");
  tensor = good(shape, strides);
  tensor.data = (void *)(uintptr_t)8;  // below it only 8 bytes
  strides[0] = -3;
  check_refused(&tensor, IST_ERR_OVERFLOW, "address space");
}

static void view__refuses_byte_offsets_that_overflow(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  static const uint64_t bad[] = {UINT64_MAX, UINT64_MAX - 3,
                                 UINT64_MAX - 0xFFF};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    tensor.byte_offset = bad[i];
    check_refused(&tensor, IST_ERR_OVERFLOW, "byte_offset");
  }
}

// jax-ml/jax#37303: NULL with elements is garbage for others; without elements
// it is usual (pytorch/pytorch#117273).
static void view__refuses_null_data_with_elements(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  tensor.data = NULL;
  check_refused(&tensor, IST_ERR_NULL_DATA, "data is NULL with 6 elements");
  // The offset does not make it an address.
  tensor.byte_offset = 4096;
  check_refused(&tensor, IST_ERR_NULL_DATA, "data is NULL");
  tensor.ndim = 0;
  check_refused(&tensor, IST_ERR_NULL_DATA, "with 1 elements");
}

static void view__accepts_null_data_where_addresses_do_not_count(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  tensor.data = NULL;
  ist__view view;
  ist_error error = {0};
  assert_ok(ist__view_check(&tensor, false, false, &view, &error), error);
  assert_null(ist__view_address(&view));
  strides[0] = -3;
  assert_ok(ist__view_check(&tensor, false, false, &view, &error), error);
}

// openxla/xla#18611, apache/tvm#18324: found and needed are both told.
static void view__refuses_addresses_off_the_item(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  char words[80];
  for (uint64_t off = 1; off < 4; off++) {
    tensor.byte_offset = off;
    snprintf(words, sizeof words, "at 0x%llx; needs a multiple of 4",
             (unsigned long long)((uintptr_t)memory + off));
    check_refused(&tensor, IST_ERR_MISALIGNED, words);
  }
  tensor.byte_offset = 0;
  tensor.data = (char *)memory + 2;
  check_refused(&tensor, IST_ERR_MISALIGNED, "multiple of 4");
  tensor.byte_offset = 2;  // together they are right
  ist__view view;
  check_accepted(&tensor, &view);
}

static void view__accepts_complex_at_the_alignment_of_its_parts(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  _Alignas(16) static double numbers[16];
  DLTensor tensor = good(shape, strides);
  tensor.dtype = (DLDataType){kDLComplex, 128, 1};
  tensor.data = numbers + 1;
  ist__view view;
  check_accepted(&tensor, &view);
  tensor.byte_offset = 4;
  check_refused(&tensor, IST_ERR_MISALIGNED, "multiple of 8");
}

// dmlc/dlpack#178, cupy/cupy#2095: older producers send NULL strides.
static void view__reads_null_strides_as_row_major(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  tensor.strides = NULL;
  ist__view view;
  check_accepted(&tensor, &view);
  assert_int_equal(view.strides[0], 3);
  assert_int_equal(view.strides[1], 1);
  assert_int_equal(view.layout, IST_LAYOUT_ROW_MAJOR);
}

static void view__reads_a_scalar_without_arrays(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  tensor.ndim = 0;
  tensor.shape = NULL;
  tensor.strides = NULL;
  tensor.byte_offset = 8;
  ist__view view;
  check_accepted(&tensor, &view);
  assert_int_equal(view.count, 1);
  assert_int_equal(view.nbytes, 4);
  assert_ptr_equal(ist__view_address(&view), memory + 2);
}

// jax-ml/jax#24680, pytorch/pytorch#99803.
static void view__normalises_strides_of_unit_extents(void **state) {
  (void)state;
  int64_t shape[] = {3, 1, 6, 2};
  int64_t strides[] = {12, INT64_MIN, 2, 1};
  DLTensor tensor = {memory, {kDLCPU, 0}, 4, float32, shape, strides, 0};
  ist__view view;
  check_accepted(&tensor, &view);
  assert_int_equal(view.strides[1], 12);
  assert_int_equal(view.layout, IST_LAYOUT_ROW_MAJOR);
}

// microsoft/onnxruntime#27450, triton-inference-server/python_backend#444: what
// has no elements is compact, whatever its strides and its address.
static void view__normalises_empty_tensors(void **state) {
  (void)state;
  int64_t shape[] = {1, 8, 0, 16};
  static int64_t wild[][4] = {
      {0, 0, 0, 0}, {INT64_MIN, INT64_MAX, -1, 7}, {1, 2, 3, 4}};
  for (size_t i = 0; i < COUNT_OF(wild); i++) {
    DLTensor tensor = {NULL, {kDLCPU, 0}, 4, float32, shape, wild[i], 0};
    for (int odd = 0; odd < 2; odd++) {
      if (odd) tensor.data = (char *)memory + 1;
      ist__view view;
      check_accepted(&tensor, &view);
      assert_int_equal(view.count, 0);
      assert_int_equal(view.nbytes, 0);
      assert_int_equal(view.lowest + view.highest, 0);
      assert_int_equal(view.layout, IST_LAYOUT_ROW_MAJOR);
      assert_int_equal(view.strides[3], 1);
      assert_int_equal(view.strides[2], 16);
      assert_int_equal(view.strides[1], 16);
      assert_int_equal(view.strides[0], 128);
    }
  }
}

// pytorch/pytorch#188023: reversed views have element 0 at the end.
static void view__knows_how_far_strides_reach(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  tensor.data = memory + 32;
  strides[0] = -3;
  strides[1] = -1;
  ist__view view;
  check_accepted(&tensor, &view);
  assert_int_equal(view.lowest, 20);
  assert_int_equal(view.highest, 4);
  strides[0] = 10;
  check_accepted(&tensor, &view);
  assert_int_equal(view.lowest, 8);
  assert_int_equal(view.highest, 44);
  assert_int_equal(view.nbytes, 24);
}

// openxla/xla#16795, dmlc/dlpack#158: packed and padded sizes.
static void view__counts_sub_byte_elements_in_bits(void **state) {
  (void)state;
  static const struct {
    DLDataType dtype;
    int64_t count;
    uint64_t packed;
  } cases[] = {{{0, 4, 1}, 4, 2},  {{0, 4, 1}, 5, 3},  {{1, 2, 1}, 5, 2},
               {{0, 1, 1}, 8, 1},  {{0, 1, 1}, 9, 2},  {{15, 6, 1}, 4, 3},
               {{16, 6, 1}, 5, 4}, {{17, 4, 1}, 1, 1}, {{1, 1, 1}, 1, 1}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    int64_t shape[] = {cases[i].count};
    DLTensor tensor = {memory, {kDLCPU, 0}, 1, cases[i].dtype, shape, NULL, 0};
    ist__view view;
    check_accepted(&tensor, &view);
    assert_int_equal(view.nbytes, cases[i].packed);
    assert_false(view.padded);
    assert_int_equal(ist__view_check(&tensor, true, true, &view, NULL), IST_OK);
    assert_int_equal(view.nbytes, cases[i].count);
    assert_true(view.padded);
  }
}

static void view__ignores_the_padded_flag_of_whole_bytes(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  ist__view view;
  assert_int_equal(ist__view_check(&tensor, true, true, &view, NULL), IST_OK);
  assert_false(view.padded);
  assert_int_equal(view.nbytes, 24);
}

// pytorch/pytorch#182924: nothing is added to a handle.
static void view__does_not_take_handles_for_addresses(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  tensor.device.device_type = kDLMetal;
  tensor.data = (void *)(UINTPTR_MAX - 2);
  tensor.byte_offset = 8;
  ist__view view;
  check_accepted(&tensor, &view);
  tensor.byte_offset = 6;
  check_refused(&tensor, IST_ERR_MISALIGNED, "multiple of 4");
  tensor.byte_offset = 8;
  strides[0] = -3;  // 12 bytes below an offset of 8
  check_refused(&tensor, IST_ERR_OVERFLOW, "byte_offset 8");
}

// Only ndim entries are read from the tensor's arrays, and none of its data.
static void view__reads_no_more_than_ndim_entries(void **state) {
  (void)state;
  size_t size = 3 * sizeof(int64_t);
  guarded shape_page = guarded_make(size);
  guarded strides_page = guarded_make(size);
  guarded data_page = guarded_make(1);
  int64_t *shape = (int64_t *)(void *)(shape_page.end - size);
  int64_t *strides = (int64_t *)(void *)(strides_page.end - size);
  for (int i = 0; i < 3; i++) shape[i] = 2;
  for (int i = 0; i < 3; i++) strides[i] = 4 >> i;
  DLTensor tensor = {data_page.end, {kDLCPU, 0}, 3, float32, shape, strides, 0};
  ist__view view;
  check_accepted(&tensor, &view);
  guarded_free(&shape_page);
  guarded_free(&strides_page);
  guarded_free(&data_page);
}

static void view__writes_no_more_than_ndim_entries(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  ist__view view;
  memset(&view, 0xEE, sizeof view);
  check_accepted(&tensor, &view);
  for (int i = 2; i < IST_MAX_NDIM; i++) {
    assert_true((uint64_t)view.shape[i] == UINT64_C(0xEEEEEEEEEEEEEEEE));
    assert_true((uint64_t)view.strides[i] == UINT64_C(0xEEEEEEEEEEEEEEEE));
  }
  ist__view copy;
  memset(&copy, 0xDD, sizeof copy);
  ist__view_copy(&view, &copy);
  assert_true((uint64_t)copy.shape[2] == UINT64_C(0xDDDDDDDDDDDDDDDD));
  assert_memory_equal(copy.shape, shape, sizeof shape);
  assert_memory_equal(copy.strides, strides, sizeof strides);
  assert_int_equal(copy.nbytes, view.nbytes);
}

static void view__dense_is_row_major_without_data(void **state) {
  (void)state;
  int64_t shape[] = {2, 3};
  ist__view view;
  ist_error error = {0};
  assert_ok(ist__view_dense(float32, 2, shape, false, &view, &error), error);
  assert_null(view.data);
  assert_int_equal(view.nbytes, 24);
  assert_int_equal(view.strides[0], 3);
  shape[0] = -1;
  assert_int_equal(ist__view_dense(float32, 2, shape, false, &view, &error),
                   IST_ERR_SHAPE);
}

static void view__borrows_its_arrays_to_a_tensor(void **state) {
  (void)state;
  int64_t shape[2], strides[2];
  DLTensor tensor = good(shape, strides);
  tensor.byte_offset = 8;
  ist__view view;
  check_accepted(&tensor, &view);
  DLTensor lent;
  ist__view_borrow(&view, &lent);
  assert_ptr_equal(lent.shape, view.shape);
  assert_ptr_equal(lent.strides, view.strides);
  assert_ptr_equal(lent.data, memory);
  assert_int_equal(lent.byte_offset, 8);
  ist__view again;
  check_accepted(&lent, &again);
  assert_true(ist__view_same_shape(&view, &again));
  again.shape[1]++;
  assert_false(ist__view_same_shape(&view, &again));
  again.shape[1]--;
  again.dtype_number++;
  assert_false(ist__view_same_shape(&view, &again));
}

static void view__shape_text_is_cut_to_its_room(void **state) {
  (void)state;
  char text[16];
  ist__view_shape_text(3, (int64_t[]){2, -3, 40}, text, sizeof text);
  assert_string_equal(text, "[2,-3,40]");
  ist__view_shape_text(0, NULL, text, sizeof text);
  assert_string_equal(text, "[]");
  ist__view_shape_text(3, (int64_t[]){2, -3, 40}, text, 5);
  assert_string_equal(text, "[2,-");
}

// Whatever the bits are: an answer, never a crash, and what is accepted keeps
// the promises of view.h. The data is never touched, so wild addresses do.
static void view__keeps_its_promises_for_any_bits(void **state) {
  (void)state;
  uint64_t seed = UINT64_C(0x9E3779B97F4A7C15);
  static const int64_t edges[] = {0,  1,         2,         3,  7,
                                  -1, INT64_MAX, INT64_MIN, -2, 1 << 20};
  int accepted = 0;
  for (int round = 0; round < 40000; round++) {
    int64_t shape[5], strides[5];
    for (int i = 0; i < 5; i++) {
      shape[i] = edges[random_below(&seed, random_below(&seed, 9) ? 5 : 10)];
      strides[i] = edges[random_below(&seed, 10)];
    }
    DLTensor tensor = {(void *)(uintptr_t)next_random(&seed),
                       {(DLDeviceType)random_below(&seed, 24), 0},
                       (int32_t)random_below(&seed, 6),
                       {(uint8_t)random_below(&seed, 19),
                        (uint8_t)(1U << random_below(&seed, 8)),
                        (uint16_t)(random_below(&seed, 9) ? 1 : 2)},
                       shape,
                       random_below(&seed, 4) ? strides : NULL,
                       (uint64_t)random_below(&seed, 3) * 8};
    ist__view v;
    if (ist__view_check(&tensor, round & 1, true, &v, NULL) != IST_OK) continue;
    accepted++;
    assert_true(v.ndim == tensor.ndim && v.nbytes <= UINT64_C(1) << 60);
    assert_true(v.lowest <= UINT64_C(1) << 60);
    assert_true(v.highest <= UINT64_C(1) << 60);
    assert_true((v.layout & ~(uint32_t)IST_LAYOUT_ANY) == 0);
    assert_true(v.layout != 0 || v.highest == v.nbytes);
    assert_true((v.layout & IST_LAYOUT_NEGATIVE) != 0 || v.lowest == 0);
    DLTensor normal;
    ist__view again;
    ist__view_borrow(&v, &normal);
    assert_int_equal(ist__view_check(&normal, v.padded, true, &again, NULL),
                     IST_OK);
    assert_memory_equal(again.strides, v.strides,
                        (size_t)v.ndim * sizeof(int64_t));
  }
  assert_true(accepted > 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(view__accepts_a_right_tensor_as_it_is),
      cmocka_unit_test(view__refuses_null),
      cmocka_unit_test(view__refuses_impossible_ndim),
      cmocka_unit_test(view__accepts_the_largest_ndim),
      cmocka_unit_test(view__refuses_dtypes_without_a_name),
      cmocka_unit_test(view__refuses_lanes),
      cmocka_unit_test(view__names_the_type_code_that_it_refuses),
      cmocka_unit_test(view__refuses_unknown_device_codes),
      cmocka_unit_test(view__accepts_every_device_code_with_a_name),
      cmocka_unit_test(view__refuses_null_shape),
      cmocka_unit_test(view__refuses_negative_extents),
      cmocka_unit_test(view__refuses_shapes_that_overflow),
      cmocka_unit_test(view__refuses_strides_that_overflow),
      cmocka_unit_test(view__refuses_extents_outside_the_address_space),
      cmocka_unit_test(view__refuses_byte_offsets_that_overflow),
      cmocka_unit_test(view__refuses_null_data_with_elements),
      cmocka_unit_test(view__accepts_null_data_where_addresses_do_not_count),
      cmocka_unit_test(view__refuses_addresses_off_the_item),
      cmocka_unit_test(view__accepts_complex_at_the_alignment_of_its_parts),
      cmocka_unit_test(view__reads_null_strides_as_row_major),
      cmocka_unit_test(view__reads_a_scalar_without_arrays),
      cmocka_unit_test(view__normalises_strides_of_unit_extents),
      cmocka_unit_test(view__normalises_empty_tensors),
      cmocka_unit_test(view__knows_how_far_strides_reach),
      cmocka_unit_test(view__counts_sub_byte_elements_in_bits),
      cmocka_unit_test(view__ignores_the_padded_flag_of_whole_bytes),
      cmocka_unit_test(view__does_not_take_handles_for_addresses),
      cmocka_unit_test(view__reads_no_more_than_ndim_entries),
      cmocka_unit_test(view__writes_no_more_than_ndim_entries),
      cmocka_unit_test(view__dense_is_row_major_without_data),
      cmocka_unit_test(view__borrows_its_arrays_to_a_tensor),
      cmocka_unit_test(view__shape_text_is_cut_to_its_room),
      cmocka_unit_test(view__keeps_its_promises_for_any_bits),
  };
  return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
