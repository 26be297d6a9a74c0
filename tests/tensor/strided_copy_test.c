// SPDX-License-Identifier: Apache-2.0
// strided_copy_test.c: a copy equals the one that a bit-by-bit oracle makes, in
// every byte of the target's extent, and touches nothing beside the two
// extents.

#include "tensor/strided_copy.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/guard_page.h"
#include "support/testing.h"
#include "tensor/dtype.h"

enum {
  most_dims = 5
};

// A geometry that a test makes up, before it has memory.
typedef struct side {
  int64_t shape[most_dims];
  int64_t strides[most_dims];
  bool padded;
  bool at_end;  // the extent ends at the upper guard, else begins at the lower
  guarded memory;
  ist__view view;
  unsigned char *bytes;  // the extent
  size_t size;
} side;

// Checks the geometry, then gives it memory that ends or begins at a guard.
static void place(side *s, DLDataType dtype, int32_t ndim) {
  DLTensor tensor = {(void *)(uintptr_t)(1 << 30),
                     {kDLCPU, 0},
                     ndim,
                     dtype,
                     s->shape,
                     s->strides,
                     0};
  ist_error error = {0};
  assert_ok(ist__view_check(&tensor, s->padded, true, &s->view, &error), error);
  s->size = (size_t)(s->view.lowest + s->view.highest);
  s->memory = guarded_make(s->size);
  char *start = s->at_end ? s->memory.end - s->size : s->memory.start;
  s->bytes = (unsigned char *)start;
  s->view.data = start + s->view.lowest;
}

static unsigned bits_of(const side *s) {
  return s->view.padded ? 8 : s->view.dtype.bits;
}

// The oracle's own memory: bit number i of the extent.
static unsigned get_bit(const unsigned char *bytes, int64_t i) {
  return (unsigned)bytes[i / 8] >> (i % 8) & 1U;
}

static void set_bit(unsigned char *bytes, int64_t i, unsigned bit) {
  bytes[i / 8] =
      (unsigned char)((bytes[i / 8] & ~(1U << (i % 8))) | bit << (i % 8));
}

// The first bit, from the extent's start, of the element at an index.
static int64_t bit_place(const side *s, const int64_t *index) {
  int64_t element = 0;
  for (int32_t d = 0; d < s->view.ndim; d++) {
    element += index[d] * s->view.strides[d];
  }
  return (int64_t)s->view.lowest * 8 + element * (int64_t)bits_of(s);
}

static void oracle_copy(const side *from, const side *to,
                        unsigned char *expected) {
  unsigned width = bits_of(to);
  unsigned value = from->view.dtype.bits;
  if (from->view.padded && to->view.padded) value = 8;
  int64_t index[most_dims] = {0};
  for (uint64_t n = 0; n < to->view.count; n++) {
    int64_t read = bit_place(from, index);
    int64_t write = bit_place(to, index);
    for (unsigned b = 0; b < width; b++) {
      unsigned bit = b < value ? get_bit(from->bytes, read + b) : 0;
      set_bit(expected, write + b, bit);
    }
    for (int32_t d = to->view.ndim - 1; d >= 0; d--) {
      if (++index[d] < to->view.shape[d]) break;
      index[d] = 0;
    }
  }
  bool dense = (to->view.layout & ~(uint32_t)IST_LAYOUT_PERMUTED) == 0;
  if (!dense) return;
  for (int64_t i = (int64_t)(to->view.count * width); i < (int64_t)to->size * 8;
       i++) {
    set_bit(expected, i, 0);
  }
}

static void describe(const char *name, const side *s, char *text, size_t size) {
  char shape[80], strides[120];
  ist__view_shape_text(s->view.ndim, s->view.shape, shape, sizeof shape);
  ist__view_shape_text(s->view.ndim, s->view.strides, strides, sizeof strides);
  snprintf(text, size, "%s %s %s%s", name, shape, strides,
           s->view.padded ? " padded" : "");
}

// Fills both sides, copies, compares every byte of both extents.
static void check_copy_with(const ist__copy_kernels *kernels, side *from,
                            side *to, uint64_t *seed) {
  ist__copy_engine engine = {.kernels = kernels};
  for (size_t i = 0; i < from->size; i++) {
    from->bytes[i] = (unsigned char)next_random(seed);
  }
  for (size_t i = 0; i < to->size; i++) {
    to->bytes[i] = (unsigned char)next_random(seed);
  }
  unsigned char *before = malloc(from->size + 1);
  unsigned char *expected = malloc(to->size + 1);
  memcpy(before, from->bytes, from->size);
  memcpy(expected, to->bytes, to->size);
  oracle_copy(from, to, expected);
  ist__strided_copy(&engine, &from->view, &to->view);
  bool same = memcmp(expected, to->bytes, to->size) == 0 &&
              memcmp(before, from->bytes, from->size) == 0;
  free(before);
  free(expected);
  if (!same) {
    char a[260], b[260];
    describe("from", from, a, sizeof a);
    describe("to", to, b, sizeof b);
    fail_msg("%s differs with %s: %s %s",
             ist__dtype_at(to->view.dtype_number)->name, kernels->name, a, b);
  }
}

// The same with every table of inner loops that this machine can run.
static void check_copy(side *from, side *to, uint64_t *seed) {
  for (int32_t i = 0; ist__copy_kernels_at(i) != NULL; i++) {
    check_copy_with(ist__copy_kernels_at(i), from, to, seed);
  }
}

// Strides of a random order of dimensions, with gaps and reversals; a source
// may also be broadcast.
static void make_up_strides(side *s, int32_t ndim, bool broadcast,
                            uint64_t *seed) {
  int32_t order[most_dims];
  for (int32_t d = 0; d < ndim; d++) order[d] = d;
  bool shuffled = random_below(seed, 3) != 0;
  for (int32_t d = ndim - 1; d > 0 && shuffled; d--) {
    int64_t other = random_below(seed, d + 1);
    int32_t keep = order[d];
    order[d] = order[other];
    order[other] = keep;
  }
  int64_t step = random_below(seed, 4) == 0 ? 2 : 1;
  for (int32_t k = ndim - 1; k >= 0; k--) {
    int32_t d = order[k];
    s->strides[d] = random_below(seed, 4) == 0 ? -step : step;
    if (broadcast && random_below(seed, 5) == 0) {
      s->strides[d] = 0;
      continue;
    }
    step *= s->shape[d] > 1 ? s->shape[d] : 1;
    if (random_below(seed, 4) == 0) {
      step += random_below(seed, random_below(seed, 2) == 0 ? 3 : 12);
    }
  }
}

// A random layout of a shape of at most extents of most each; with longest, one
// of them is up to that.
static void check_random_copy(const ist__dtype *row, int64_t most,
                              int64_t longest, uint64_t *seed) {
  DLDataType dtype = ist__dtype_of(row);
  int32_t ndim = (int32_t)random_below(seed, most_dims + 1);
  side from = {.at_end = random_below(seed, 2) != 0};
  side to = {.at_end = random_below(seed, 2) != 0};
  for (int32_t d = 0; d < ndim; d++) {
    from.shape[d] =
        random_below(seed, 40) == 0 ? 0 : 1 + random_below(seed, most);
    to.shape[d] = from.shape[d];
  }
  if (longest > 0 && ndim > 0) {
    int64_t d = random_below(seed, ndim);
    from.shape[d] = to.shape[d] = 1 + random_below(seed, longest);
  }
  make_up_strides(&from, ndim, true, seed);
  make_up_strides(&to, ndim, false, seed);
  from.padded = random_below(seed, 2) != 0;
  to.padded = random_below(seed, 2) != 0;
  place(&from, dtype, ndim);
  place(&to, dtype, ndim);
  check_copy(&from, &to, seed);
  guarded_free(&from.memory);
  guarded_free(&to.memory);
}

static void strided_copy__equals_the_oracle_for_all_dtypes(void **state) {
  (void)state;
  uint64_t seed = 20240229;
  for (int round = 0; round < 120; round++) {
    for (int32_t i = 0; i < ist__dtype_count(); i++) {
      check_random_copy(ist__dtype_at(i), 5, 0, &seed);
    }
  }
}

// One long side beside short ones: short lines widened to one item each, at
// steps that are no multiple of it (int16 of shape [33,2] with strides [9,1]).
static void strided_copy__equals_the_oracle_for_long_thin_shapes(void **state) {
  (void)state;
  uint64_t seed = 33;
  for (int round = 0; round < 60; round++) {
    for (int32_t i = 0; i < ist__dtype_count(); i++) {
      check_random_copy(ist__dtype_at(i), 4, 80, &seed);
    }
  }
}

// Long enough for tiles, with ends that are no multiple of one.
static void strided_copy__equals_the_oracle_for_large_transposes(void **state) {
  (void)state;
  uint64_t seed = 7;
  static const int64_t shapes[][3] = {
      {1, 130, 67}, {3, 64, 64}, {65, 2, 129}, {130, 65, 1}, {2, 200, 3}};
  static const char *const names[] = {"uint8",   "bfloat16",   "float32",
                                      "float64", "complex128", "int4"};
  static const int orders[][3] = {{2, 1, 0}, {1, 2, 0}, {0, 2, 1}, {1, 0, 2}};
  for (size_t s = 0; s < COUNT_OF(shapes); s++) {
    for (size_t n = 0; n < COUNT_OF(names); n++) {
      for (size_t o = 0; o < COUNT_OF(orders); o++) {
        DLDataType dtype;
        assert_int_equal(ist_dtype_parse(names[n], &dtype, NULL), IST_OK);
        side from = {.at_end = true};
        side to = {.at_end = true};
        int64_t step = 1;
        for (int k = 0; k < 3; k++) {
          int d = orders[o][k];
          from.shape[d] = to.shape[d] = shapes[s][d];
          from.strides[d] = step;
          step *= shapes[s][d];
        }
        step = 1;
        for (int d = 2; d >= 0; d--) {
          to.strides[d] = step;
          step *= to.shape[d];
        }
        place(&from, dtype, 3);
        place(&to, dtype, 3);
        check_copy(&from, &to, &seed);
        guarded_free(&from.memory);
        guarded_free(&to.memory);
      }
    }
  }
}

// jax-ml/jax#17784: a transposed source comes back element by element.
static void strided_copy__gathers_a_transposed_source(void **state) {
  (void)state;
  float numbers[] = {1, 2, 3, 4, 5, 6};
  float out[6];
  int64_t shape[] = {3, 2};
  int64_t strides[] = {1, 3};
  DLTensor tensor = {numbers, {kDLCPU, 0}, 2, {kDLFloat, 32, 1},
                     shape,   strides,     0};
  ist__view from, to;
  assert_int_equal(ist__view_check(&tensor, false, true, &from, NULL), IST_OK);
  assert_int_equal(ist__view_dense(tensor.dtype, 2, shape, false, &to, NULL),
                   IST_OK);
  to.data = out;
  ist__strided_copy(NULL, &from, &to);
  static const float wanted[] = {1, 4, 2, 5, 3, 6};
  assert_memory_equal(out, wanted, sizeof wanted);
}

// pytorch/pytorch#188023, tillahoffmann/jax-mps#234: reversed views.
static void strided_copy__gathers_a_reversed_source(void **state) {
  (void)state;
  double numbers[] = {1, 2, 3, 4, 5, 6};
  double out[6];
  int64_t shape[] = {6};
  int64_t strides[] = {-1};
  DLTensor tensor = {numbers + 5, {kDLCPU, 0}, 1, {kDLFloat, 64, 1},
                     shape,       strides,     0};
  ist__view from, to;
  assert_int_equal(ist__view_check(&tensor, false, true, &from, NULL), IST_OK);
  assert_int_equal(ist__view_dense(tensor.dtype, 1, shape, false, &to, NULL),
                   IST_OK);
  to.data = out;
  ist__strided_copy(NULL, &from, &to);
  static const double wanted[] = {6, 5, 4, 3, 2, 1};
  assert_memory_equal(out, wanted, sizeof wanted);
}

// jax-ml/jax#8082: a broadcast source is spread out.
// Lines of 2, 4 and 8 bytes are copied as one wider item each, and their steps
// need not be multiples of that width: -12 bytes is no step of -1 item of 8.
static void strided_copy__steps_off_the_width_of_joined_items(void **state) {
  (void)state;
  uint64_t seed = 23;
  for (int64_t step = -36; step <= 36; step++) {
    for (int64_t line = 2; line <= 8; line *= 2) {
      if (step > -line && step < line) continue;
      side from = {.shape = {41, line}, .strides = {step, 1}, .at_end = true};
      side to = {.shape = {41, line}, .strides = {line, 1}, .at_end = true};
      for (uint8_t bits = 8; bits <= 32; bits = (uint8_t)(2 * bits)) {
        DLDataType dtype = {kDLUInt, bits, 1};
        place(&from, dtype, 2);
        place(&to, dtype, 2);
        check_copy(&from, &to, &seed);
        guarded_free(&from.memory);
        guarded_free(&to.memory);
      }
    }
  }
}

static void strided_copy__spreads_a_broadcast_source(void **state) {
  (void)state;
  int16_t numbers[] = {7, 8};
  int16_t out[6];
  int64_t shape[] = {3, 2};
  int64_t strides[] = {0, 1};
  DLTensor tensor = {numbers, {kDLCPU, 0}, 2, {kDLInt, 16, 1},
                     shape,   strides,     0};
  ist__view from, to;
  assert_int_equal(ist__view_check(&tensor, false, true, &from, NULL), IST_OK);
  assert_int_equal(ist__view_dense(tensor.dtype, 2, shape, false, &to, NULL),
                   IST_OK);
  to.data = out;
  ist__strided_copy(NULL, &from, &to);
  static const int16_t wanted[] = {7, 8, 7, 8, 7, 8};
  assert_memory_equal(out, wanted, sizeof wanted);
}

// dmlc/dlpack#158: the first element lies in the lowest bits.
static void strided_copy__unpacks_from_the_lowest_bits(void **state) {
  (void)state;
  unsigned char packed[] = {0x21, 0xF3};
  unsigned char padded[4];
  int64_t shape[] = {3};
  ist__view from, to;
  DLDataType dtype = {kDLInt, 4, 1};
  assert_int_equal(ist__view_dense(dtype, 1, shape, false, &from, NULL),
                   IST_OK);
  assert_int_equal(ist__view_dense(dtype, 1, shape, true, &to, NULL), IST_OK);
  from.data = packed;
  to.data = padded;
  padded[3] = 0x77;
  ist__strided_copy(NULL, &from, &to);
  static const unsigned char wanted[] = {1, 2, 3, 0x77};
  assert_memory_equal(padded, wanted, sizeof wanted);
  // And back: what padded bytes have above the element is dropped.
  padded[1] = 0xF2;
  unsigned char again[] = {0xAA, 0xAA};
  to.padded = from.padded = false;
  from.padded = true;
  from.data = padded;
  to.nbytes = 2;
  to.data = again;
  ist__strided_copy(NULL, &from, &to);
  assert_int_equal(again[0], 0x21);
  assert_int_equal(again[1], 0x03);
}

static void strided_copy__of_nothing_touches_nothing(void **state) {
  (void)state;
  int64_t shape[] = {0, 3};
  ist__view from, to;
  DLDataType dtype = {kDLInt, 8, 1};
  assert_int_equal(ist__view_dense(dtype, 2, shape, false, &from, NULL),
                   IST_OK);
  assert_int_equal(ist__view_dense(dtype, 2, shape, false, &to, NULL), IST_OK);
  ist__strided_copy(NULL, &from, &to);  // both data are NULL
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strided_copy__equals_the_oracle_for_all_dtypes),
      cmocka_unit_test(strided_copy__equals_the_oracle_for_long_thin_shapes),
      cmocka_unit_test(strided_copy__equals_the_oracle_for_large_transposes),
      cmocka_unit_test(strided_copy__gathers_a_transposed_source),
      cmocka_unit_test(strided_copy__gathers_a_reversed_source),
      cmocka_unit_test(strided_copy__steps_off_the_width_of_joined_items),
      cmocka_unit_test(strided_copy__spreads_a_broadcast_source),
      cmocka_unit_test(strided_copy__unpacks_from_the_lowest_bits),
      cmocka_unit_test(strided_copy__of_nothing_touches_nothing),
  };
  return cmocka_run_group_tests_name("strided_copy", tests, NULL, NULL);
}
