// SPDX-License-Identifier: Apache-2.0
// dense_test.c: views become the bytes of a file.

#define _XOPEN_SOURCE 700

#include "io/dense.h"

#include "io/io_fixture.h"

// The view of a dtype, shape and strides over data.
static ist__view make_view(void *data, DLDataType dtype, int32_t ndim,
                           int64_t *shape, int64_t *strides, bool padded) {
  DLTensor tensor = {.data = data,
                     .device = {kDLCPU, 0},
                     .ndim = ndim,
                     .dtype = dtype,
                     .shape = shape,
                     .strides = strides};
  ist__view view;
  ist_error err = {0};
  ist_code code = ist__view_check(&tensor, padded, true, &view, &err);
  if (code != IST_OK) print_error("%s\n", err.message);
  assert_int_equal(code, IST_OK);
  return view;
}

// ist__dense_make with nobody watching.
static ist_code make(const ist__env *env, const ist__view *view, bool padded,
                     bool column_ok, ist__dense *out, ist_error *err) {
  ist__dense_wish wish = {padded, column_ok, NULL};
  return ist__dense_make(env, view, &wish, out, err);
}

static const DLDataType u16 = {kDLUInt, 16, 1};
static const DLDataType int4 = {kDLInt, 4, 1};

static void dense__lends_what_lies_right(void **state) {
  (void)state;
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  uint16_t data[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 3}, falling[] = {3, 1}, rising[] = {1, 2};
  ist__view view = make_view(data, u16, 2, shape, falling, false);
  ist__dense dense;
  assert_int_equal(make(&env, &view, false, false, &dense, NULL), IST_OK);
  assert_ptr_equal(dense.bytes, data);
  assert_int_equal(dense.nbytes, 12);
  assert_false(dense.column_major);
  view = make_view(data, u16, 2, shape, rising, false);
  assert_int_equal(make(&env, &view, false, true, &dense, NULL), IST_OK);
  assert_ptr_equal(dense.bytes, data);
  assert_true(dense.column_major);
  assert_int_equal(count.requests, 0);
}

static void dense__gathers_what_does_not(void **state) {
  (void)state;
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  uint16_t data[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 3}, rising[] = {1, 2};
  ist__view view = make_view(data, u16, 2, shape, rising, false);
  ist__dense dense;
  assert_int_equal(make(&env, &view, false, false, &dense, NULL), IST_OK);
  static const uint16_t expected[] = {1, 3, 5, 2, 4, 6};
  assert_memory_equal(dense.bytes, expected, sizeof expected);
  assert_false(dense.column_major);
  ist__dense_free(&env, &dense);
  // Backwards, with steps, as a column: none of them is a file's order.
  int64_t three[] = {3}, back[] = {-2};
  view = make_view(data + 5, u16, 1, three, back, false);
  assert_int_equal(make(&env, &view, false, true, &dense, NULL), IST_OK);
  static const uint16_t reversed[] = {6, 4, 2};
  assert_memory_equal(dense.bytes, reversed, sizeof reversed);
  ist__dense_free(&env, &dense);
  assert_int_equal(count.live, 0);
}

static void dense__packs_and_pads(void **state) {
  (void)state;
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  unsigned char padded[] = {1, 2, 3, 15}, packed[] = {0x21, 0xF3};
  int64_t shape[] = {4}, strides[] = {1};
  ist__view view = make_view(padded, int4, 1, shape, strides, true);
  ist__dense dense;
  assert_int_equal(make(&env, &view, false, true, &dense, NULL), IST_OK);
  assert_int_equal(dense.nbytes, 2);
  assert_memory_equal(dense.bytes, packed, 2);
  ist__dense_free(&env, &dense);
  view = make_view(packed, int4, 1, shape, strides, false);
  assert_int_equal(make(&env, &view, true, true, &dense, NULL), IST_OK);
  assert_int_equal(dense.nbytes, 4);
  const unsigned char *bytes = dense.bytes;
  for (int i = 0; i < 4; i++) assert_int_equal(bytes[i] & 15, padded[i]);
  ist__dense_free(&env, &dense);
  assert_int_equal(count.live, 0);
}

static void dense__takes_empty_tensors(void **state) {
  (void)state;
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  int64_t shape[] = {0, 3}, strides[] = {7, -2};
  ist__view view = make_view(NULL, u16, 2, shape, strides, false);
  ist__dense dense;
  assert_int_equal(make(&env, &view, false, true, &dense, NULL), IST_OK);
  assert_int_equal(dense.nbytes, 0);
  assert_int_equal(count.requests, 0);
}

static void dense__tells_when_memory_ends(void **state) {
  (void)state;
  counting_allocator count = {.fail_at = 1};
  ist__env env = counting_env(&count);
  uint16_t data[6] = {0};
  int64_t shape[] = {3}, strides[] = {2};
  ist__view view = make_view(data, u16, 1, shape, strides, false);
  ist__dense dense;
  ist_error err = {0};
  assert_int_equal(make(&env, &view, false, true, &dense, &err),
                   IST_ERR_NO_ALLOCATION);
  assert_null(dense.bytes);
  assert_int_equal(dense.nbytes, 0);
}

static void dense_swap__turns_each_number_round(void **state) {
  (void)state;
  const ist__env env = {0};
  unsigned char from[16], to[16];
  for (int i = 0; i < 16; i++) from[i] = (unsigned char)i;
  static const struct {
    DLDataType dtype;
    size_t width;
  } cases[] = {{{kDLInt, 16, 1}, 2},
               {{kDLFloat, 32, 1}, 4},
               {{kDLUInt, 64, 1}, 8},
               {{kDLComplex, 64, 1}, 4},
               {{kDLComplex, 128, 1}, 8}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    ist__dense_swap(&env, cases[i].dtype, from, to, 16);
    size_t width = cases[i].width;
    for (size_t k = 0; k < 16; k++) {
      assert_int_equal(to[k], k / width * width + width - 1 - k % width);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dense__lends_what_lies_right),
      cmocka_unit_test(dense__gathers_what_does_not),
      cmocka_unit_test(dense__packs_and_pads),
      cmocka_unit_test(dense__takes_empty_tensors),
      cmocka_unit_test(dense__tells_when_memory_ends),
      cmocka_unit_test(dense_swap__turns_each_number_round)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
