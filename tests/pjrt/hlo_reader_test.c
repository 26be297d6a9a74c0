// SPDX-License-Identifier: Apache-2.0
// The reader of optimized programs on bytes that are right, cut, changed and
// made up. Every input lies against a page that cannot be read.

#include "backend/pjrt/hlo_reader.h"

#include "support/guard_page.h"
#include "support/testing.h"

typedef struct found {
  size_t inputs;
  size_t outputs;
  ist__hlo_shape shape[4];
  size_t stop_at;
} found;

static bool keep(void *self, bool is_result, const ist__hlo_shape *shape) {
  found *f = self;
  size_t index = f->inputs + f->outputs;
  if (f->stop_at != 0 && index + 1 >= f->stop_at) return false;
  if (index < 4) f->shape[index] = *shape;
  if (is_result)
    f->outputs++;
  else
    f->inputs++;
  // Whatever the bytes say, what is told is a shape that can be.
  assert_in_range(shape->ndim, 0, IST_MAX_NDIM);
  for (int32_t i = 0; i < shape->ndim; i++) {
    assert_true(shape->dims[i] >= 0);
    if (shape->has_order)
      assert_in_range(shape->minor_to_major[i], 0, shape->ndim - 1);
  }
  return true;
}

static bool read_guarded(const unsigned char *bytes, size_t size, found *f) {
  guarded memory = guarded_make(size + 1);
  unsigned char *at = (unsigned char *)memory.end - size;
  memcpy(at, bytes, size);
  bool ok = ist__hlo_read(at, size, keep, f);
  guarded_free(&memory);
  return ok;
}

// f32[2,3]{1,0}, s32[300] -> (f32[2,3]{0,1}, s32[])
#define PARAMETER_ONE \
  0x0a, 0x0e, 0x10, 11, 0x1a, 2, 2, 3, 0x2a, 6, 0x0a, 2, 1, 0, 0x20, 0
#define PARAMETER_TWO 0x0a, 0x06, 0x10, 4, 0x1a, 2, 0xac, 0x02
#define RESULT                                                                 \
  0x12, 0x16, 0x10, 13, 0x22, 0x0e, 0x10, 11, 0x1a, 2, 2, 3, 0x2a, 6, 0x0a, 2, \
      0, 1, 0x20, 0, 0x22, 2, 0x10, 4
static const unsigned char right[] = {0x0a,          56,  // hlo_module
                                      0x0a,          4,
                                      't',           'e',
                                      's',           't',  // its name
                                      0x22,          48,   // host_program_shape
                                      PARAMETER_ONE, PARAMETER_TWO,
                                      RESULT};

static void right_bytes__tell_every_shape(void **state) {
  (void)state;
  found f = {0};
  assert_true(read_guarded(right, sizeof right, &f));
  assert_int_equal(f.inputs, 2);
  assert_int_equal(f.outputs, 2);
  assert_int_equal(f.shape[0].type, 11);
  assert_int_equal(f.shape[0].ndim, 2);
  assert_int_equal(f.shape[0].dims[1], 3);
  assert_true(f.shape[0].has_order);
  assert_int_equal(f.shape[0].minor_to_major[0], 1);
  assert_int_equal(f.shape[1].type, 4);
  assert_int_equal(f.shape[1].dims[0], 300);
  assert_false(f.shape[1].has_order);
  assert_int_equal(f.shape[2].minor_to_major[0], 0);
  assert_int_equal(f.shape[3].ndim, 0);
}

static void cut_bytes__are_refused_at_every_length(void **state) {
  (void)state;
  for (size_t size = 0; size < sizeof right; size++) {
    found f = {0};
    assert_false(read_guarded(right, size, &f));
  }
}

static void any_changed_byte__is_read_safely(void **state) {
  (void)state;
  unsigned char bytes[sizeof right];
  for (size_t at = 0; at < sizeof right; at++)
    for (int value = 0; value < 256; value++) {
      memcpy(bytes, right, sizeof right);
      bytes[at] = (unsigned char)value;
      found f = {0};
      read_guarded(bytes, sizeof bytes, &f);
    }
}

static void random_bytes__are_read_safely(void **state) {
  (void)state;
  uint64_t seed = 88172645463325252u;
  for (int turn = 0; turn < 20000; turn++) {
    unsigned char bytes[96];
    size_t size = (size_t)random_below(&seed, sizeof bytes);
    for (size_t i = 0; i < size; i++)
      bytes[i] = (unsigned char)(next_random(&seed) >> 32);
    // Half of them begin as they should.
    if (turn % 2 == 0 && size > 8) memcpy(bytes, right, 8);
    found f = {0};
    read_guarded(bytes, size, &f);
  }
}

static void visitor__can_end_the_reading(void **state) {
  (void)state;
  for (size_t stop = 1; stop <= 4; stop++) {
    found f = {.stop_at = stop};
    assert_false(read_guarded(right, sizeof right, &f));
    assert_int_equal(f.inputs + f.outputs, stop - 1);
  }
}

static void impossible_messages__are_refused(void **state) {
  (void)state;
  static const struct {
    size_t size;
    unsigned char bytes[40];
  } cases[] = {
      {0, {0}},
      // two modules
      {8, {0x0a, 2, 0x22, 0, 0x0a, 2, 0x22, 0}},
      // a shape without a result
      {4, {0x0a, 2, 0x22, 0}},
      // a length beyond the end, and one near 2^64
      {3, {0x0a, 0x7f, 0}},
      {11, {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}},
      // a varint of eleven bytes
      {12,
       {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}},
      // field number 0, a group
      {2, {0x02, 0}},
      {1, {0x0b}},
      // result with the dimension -1
      {18,
       {0x0a, 16, 0x22, 14, 0x12, 12, 0x1a, 10, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 1}},
      // result f32[2,3]{1,1}
      {20, {0x0a, 18, 0x22, 16, 0x12, 14, 0x10, 11, 0x1a, 2,
            2,    3,  0x2a, 4,  0x0a, 2,  1,    1,  0x20, 0}},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    found f = {0};
    if (read_guarded(cases[i].bytes, cases[i].size, &f))
      fail_msg("case %zu was read", i);
  }
  found f = {0};
  assert_false(ist__hlo_read(NULL, 0, keep, &f));
}

static void too_many_dimensions__are_refused(void **state) {
  (void)state;
  unsigned char bytes[128] = {0x0a, 0, 0x22, 0, 0x12, 0, 0x1a, 0};
  for (unsigned rank = 63; rank <= 66; rank++) {
    bytes[1] = (unsigned char)(rank + 6);
    bytes[3] = (unsigned char)(rank + 4);
    bytes[5] = (unsigned char)(rank + 2);
    bytes[7] = (unsigned char)rank;
    memset(bytes + 8, 1, rank);
    found f = {0};
    bool ok = read_guarded(bytes, rank + 8, &f);
    assert_int_equal(ok, rank <= IST_MAX_NDIM);
  }
}

static void dynamic_dimension__is_told(void **state) {
  (void)state;
  static const unsigned char bytes[] = {0x0a, 12,   0x22, 10, 0x12, 8, 0x10,
                                        11,   0x1a, 1,    5,  0x32, 1, 1};
  found f = {0};
  assert_true(read_guarded(bytes, sizeof bytes, &f));
  assert_true(f.shape[0].dynamic);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(right_bytes__tell_every_shape),
      cmocka_unit_test(cut_bytes__are_refused_at_every_length),
      cmocka_unit_test(any_changed_byte__is_read_safely),
      cmocka_unit_test(random_bytes__are_read_safely),
      cmocka_unit_test(visitor__can_end_the_reading),
      cmocka_unit_test(impossible_messages__are_refused),
      cmocka_unit_test(too_many_dimensions__are_refused),
      cmocka_unit_test(dynamic_dimension__is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
