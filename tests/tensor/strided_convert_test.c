// SPDX-License-Identifier: Apache-2.0
// strided_convert_test.c: a conversion of any geometry equals the scalar path,
// element by element, and touches nothing beside its two extents.

#include "tensor/strided_convert.h"

#include <stdlib.h>

#include "support/guard_page.h"
#include "support/testing.h"
#include "tensor/convert.h"
#include "tensor/dtype.h"
#include "tensor/ranges.h"

enum {
  most_dims = 4
};

// A geometry in guarded memory, its extent at one of the two guards.
typedef struct side {
  const ist__float_format *format;
  ist__view view;
  guarded memory;
  unsigned char *bytes;
  size_t size;
} side;

static void place(side *s, int32_t number, int32_t ndim, const int64_t *shape,
                  const int64_t *strides, bool padded, bool at_end) {
  s->format = ist__float_format_find(number);
  DLTensor tensor = {(void *)(uintptr_t)(1 << 30),
                     {kDLCPU, 0},
                     ndim,
                     ist__dtype_of(ist__dtype_at(number)),
                     (int64_t *)shape,
                     (int64_t *)strides,
                     0};
  ist_error error = {0};
  assert_ok(ist__view_check(&tensor, padded, true, &s->view, &error), error);
  s->size = (size_t)(s->view.lowest + s->view.highest);
  s->memory = guarded_make(s->size);
  char *start = at_end ? s->memory.end - s->size : s->memory.start;
  s->bytes = (unsigned char *)start;
  s->view.data = start + s->view.lowest;
}

// Element at a number of elements from element 0.
static uint64_t element(const side *s, int64_t offset) {
  unsigned bits = s->view.padded ? 8 : s->view.dtype.bits;
  int64_t first = ((int64_t)s->view.lowest * 8 + offset * (int64_t)bits);
  uint64_t code = 0;
  for (unsigned k = 0; k < bits; k++) {
    int64_t at = first + k;
    code |= (uint64_t)(s->bytes[at / 8] >> at % 8 & 1) << k;
  }
  return code;
}

static void check(const side *from, const side *to) {
  int64_t index[most_dims] = {0};
  int64_t read = 0;
  for (uint64_t n = 0; n < to->view.count; n++) {
    uint64_t wanted =
        ist__convert_one(from->format, to->format, false, element(from, read));
    uint64_t got = element(to, (int64_t)n);
    if (got != wanted) {
      fail_msg("%s to %s, element %llu: %llx, not %llx",
               ist__dtype_at(from->format->number)->name,
               ist__dtype_at(to->format->number)->name, (unsigned long long)n,
               (unsigned long long)got, (unsigned long long)wanted);
    }
    for (int32_t d = from->view.ndim - 1; d >= 0; d--) {
      read += from->view.strides[d];
      if (++index[d] < from->view.shape[d]) break;
      read -= index[d] * from->view.strides[d];
      index[d] = 0;
    }
  }
}

// A shape, and strides that no two elements share unless they are all zero.
static void make_up(uint64_t *seed, int32_t ndim, int64_t *shape,
                    int64_t *strides) {
  static const int64_t extents[] = {1, 2, 3, 5, 17, 64, 65, 130};
  int64_t step = 1 + random_below(seed, 2);
  for (int32_t k = 0; k < ndim; k++) strides[k] = 0;
  int64_t count = 1;
  for (int32_t k = 0; k < ndim; k++) {
    int32_t d = (int32_t)random_below(seed, ndim);
    while (strides[d] != 0) d = (d + 1) % ndim;
    shape[d] = extents[random_below(seed, COUNT_OF(extents))];
    if (count * shape[d] > 30000) shape[d] = 2;
    count *= shape[d];
    strides[d] = random_below(seed, 3) == 0 ? -step : step;
    step *= shape[d] + random_below(seed, 2);
  }
  if (random_below(seed, 5) == 0) strides[random_below(seed, ndim)] = 0;
}

static int32_t random_float(uint64_t *seed) {
  static const int32_t numbers[] = {
      ist__number_float16,        ist__number_float32,
      ist__number_float64,        ist__number_bfloat16,
      ist__number_float8_e4m3fn,  ist__number_float8_e5m2,
      ist__number_float8_e8m0fnu, ist__number_float6_e2m3fn,
      ist__number_float4_e2m1fn,
  };
  return numbers[random_below(seed, COUNT_OF(numbers))];
}

static void check_random(uint64_t *seed, const ist__copy_engine *engine) {
  int64_t shape[most_dims], strides[most_dims];
  int32_t ndim = 1 + (int32_t)random_below(seed, most_dims);
  make_up(seed, ndim, shape, strides);
  side from, to;
  int32_t a = random_float(seed), b = random_float(seed);
  bool ordered = random_below(seed, 3) == 0;
  place(&from, a, ndim, shape, ordered ? NULL : strides,
        random_below(seed, 2) == 0, random_below(seed, 2) == 0);
  place(&to, b, ndim, shape, NULL, random_below(seed, 2) == 0,
        random_below(seed, 2) == 0);
  for (size_t i = 0; i < from.size; i++) {
    from.bytes[i] = (unsigned char)(next_random(seed) >> 24);
  }
  memset(to.bytes, 0xa5, to.size);
  if (a != b && ist__strided_convert_takes(&from.view, &to.view)) {
    ist__conversion conversion;
    ist__conversion_make(engine != NULL ? engine->convert_kernels : NULL, a, b,
                         false, from.view.count, &conversion);
    assert_int_equal(ist__strided_convert(engine, NULL, &conversion, &from.view,
                                          &to.view, NULL),
                     IST_OK);
    check(&from, &to);
  }
  guarded_free(&from.memory);
  guarded_free(&to.memory);
}

static void convert__any_geometry_equals_the_scalar_path(void **state) {
  (void)state;
  uint64_t seed = 4242;
  ist__copy_engine engine = {.kernels = ist__copy_kernels_best(),
                             .convert_kernels = ist__convert_kernels_best()};
  for (int i = 0; i < 300; i++) {
    check_random(&seed, i % 2 == 0 ? &engine : NULL);
  }
}

static void convert__refuses_packed_elements_out_of_order(void **state) {
  (void)state;
  const int64_t shape[] = {4, 6}, strides[] = {1, 4};
  side packed, ordered, floats;
  place(&packed, ist__number_float4_e2m1fn, 2, shape, strides, false, false);
  place(&ordered, ist__number_float4_e2m1fn, 2, shape, NULL, false, false);
  place(&floats, ist__number_float32, 2, shape, strides, false, false);
  assert_false(ist__strided_convert_takes(&packed.view, &ordered.view));
  assert_false(ist__strided_convert_takes(&floats.view, &ordered.view));
  assert_false(ist__strided_convert_takes(&ordered.view, &floats.view));
  guarded_free(&packed.memory);
  guarded_free(&ordered.memory);
  guarded_free(&floats.memory);
}

static void convert__leaves_no_bits_after_packed_elements(void **state) {
  (void)state;
  const int64_t shape[] = {5};
  side from, to;
  place(&from, ist__number_float32, 1, shape, NULL, false, true);
  place(&to, ist__number_float4_e2m1fn, 1, shape, NULL, false, true);
  const float ones[] = {1, 1, 1, 1, 1};
  memcpy(from.bytes, ones, sizeof ones);
  memset(to.bytes, 0xff, to.size);
  ist__conversion conversion;
  ist__conversion_make(NULL, ist__number_float32, ist__number_float4_e2m1fn,
                       false, 5, &conversion);
  assert_int_equal(
      ist__strided_convert(NULL, NULL, &conversion, &from.view, &to.view, NULL),
      IST_OK);
  const unsigned char wanted[] = {0x22, 0x22, 0x02};
  assert_memory_equal(to.bytes, wanted, sizeof wanted);
  guarded_free(&from.memory);
  guarded_free(&to.memory);
}

// ---- rounds

// What is written so far, and what was told of it.
typedef struct rounds {
  uint64_t written;
  uint64_t told;
  uint64_t cancel_at;
} rounds;

static void count_doubles(const void *from, void *to, size_t count,
                          const ist__convert_how *how) {
  (void)from;
  memset(to, 0, count * sizeof(double));
  // The table of a conversion is its own: here it leads to the count.
  rounds *r;
  memcpy(&r, how->table, sizeof r);
  r->written += count * sizeof(double);
}

static bool listen(void *self, uint64_t done, uint64_t total) {
  rounds *r = self;
  assert_true(done <= total);
  assert_int_equal(r->written, done);
  assert_true(done - r->told <= IST__ROUND_BYTES);
  r->told = done;
  return done < r->cancel_at;
}

// A pool that says it has many threads, and does one call after the other.
static void run_in_turn(void *self, size_t count,
                        void (*task)(void *work, size_t index), void *work) {
  (void)self;
  for (size_t i = 0; i < count; i++) task(work, i);
}

// float16 to float64, a line or turned; returns what became of it.
static ist_code convert_in_rounds(int32_t threads, bool turned, rounds *r) {
  ist__env env;
  ist__env_init(&env, NULL);
  const ist_pool pool = {NULL, threads, run_in_turn};
  ist_context_options options = {.pool = &pool};
  ist__copy_engine engine;
  ist_error error = {0};
  assert_ok(ist__copy_engine_open(&engine, &env, &options, &error), error);
  const int64_t shape[] = {700, 900}, strides[] = {1, 700};
  side from, to;
  place(&from, ist__number_float16, 2, shape, turned ? strides : NULL, false,
        false);
  place(&to, ist__number_float64, 2, shape, NULL, false, false);
  ist__conversion conversion;
  ist__conversion_make(NULL, ist__number_float16, ist__number_float64, false,
                       from.view.count, &conversion);
  conversion.first = count_doubles;
  conversion.second = NULL;
  memcpy(&conversion.table, &r, sizeof r);
  ist_options watched = {.progress = listen, .progress_self = r};
  ist__watch watch;
  assert_ok(ist__watch_begin(&watch, &watched, to.view.nbytes, 1, &error),
            error);
  ist_code code = ist__strided_convert(&engine, &watch, &conversion, &from.view,
                                       &to.view, &error);
  guarded_free(&from.memory);
  guarded_free(&to.memory);
  ist__copy_engine_close(&engine, &env);
  return code;
}

static void convert__asks_after_a_round_with_any_threads(void **state) {
  (void)state;
  static const int32_t threads[] = {1, 64, 256};
  for (size_t i = 0; i < COUNT_OF(threads); i++) {
    for (int turned = 0; turned < 2; turned++) {
      rounds all = {.cancel_at = UINT64_MAX};
      assert_int_equal(convert_in_rounds(threads[i], turned != 0, &all),
                       IST_OK);
      assert_int_equal(all.told, 700 * 900 * sizeof(double));
      rounds some = {.cancel_at = IST__ROUND_BYTES + 1};
      assert_int_equal(convert_in_rounds(threads[i], turned != 0, &some),
                       IST_ERR_CANCELLED);
      // Not a byte after it said no.
      assert_int_equal(some.written, some.told);
      assert_true(some.written <= 2 * IST__ROUND_BYTES);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convert__any_geometry_equals_the_scalar_path),
      cmocka_unit_test(convert__refuses_packed_elements_out_of_order),
      cmocka_unit_test(convert__leaves_no_bits_after_packed_elements),
      cmocka_unit_test(convert__asks_after_a_round_with_any_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
