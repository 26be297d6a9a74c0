// SPDX-License-Identifier: Apache-2.0
// convert_array_test.c: each table of loops that this machine can run gives
// the bits of the scalar path, for every code of at most 16 bits and for those
// float32 and float64 where something changes; and touches nothing beside.

#include "tensor/convert_array.h"

#include <stdlib.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "support/guard_page.h"
#include "support/testing.h"
#include "tensor/convert.h"
#include "tensor/dtype.h"

enum {
  most_numbers = 1 << 17
};

// Numbers of one format as an array of its elements.
typedef struct sample {
  const ist__float_format *format;
  size_t size;  // of an element
  size_t count;
  unsigned char *bytes;
} sample;

static size_t size_of(const ist__float_format *f) {
  return (size_t)(ist__float_bits(f) + 7) / 8;
}

static uint64_t code_at(const void *bytes, size_t size, size_t index) {
  const char *at = (const char *)bytes + index * size;
  uint8_t byte;
  uint16_t half;
  uint32_t single;
  uint64_t code;
  switch (size) {
    case 1:
      memcpy(&byte, at, 1);
      return byte;
    case 2:
      memcpy(&half, at, 2);
      return half;
    case 4:
      memcpy(&single, at, 4);
      return single;
    default:
      memcpy(&code, at, 8);
      return code;
  }
}

static void add(sample *s, uint64_t code) {
  uint8_t byte = (uint8_t)code;
  uint16_t half = (uint16_t)code;
  uint32_t single = (uint32_t)code;
  assert_true(s->count < most_numbers);
  unsigned char *at = s->bytes + s->count++ * s->size;
  const void *from = s->size == 1   ? (const void *)&byte
                     : s->size == 2 ? (const void *)&half
                     : s->size == 4 ? (const void *)&single
                                    : (const void *)&code;
  memcpy(at, from, s->size);
}

// What a code, and the number halfway to the next, is in a wider format; each
// with its neighbours.
static void add_boundaries(sample *s, const ist__float_format *f) {
  uint64_t codes = UINT64_C(1) << ist__float_bits(f);
  uint64_t step = codes > 4096 ? 31 : 1;
  for (uint64_t code = 0; code < codes; code += step) {
    uint64_t here = ist__convert_one(f, s->format, false, code);
    uint64_t next = ist__convert_one(f, s->format, false, code + 1);
    uint64_t half = here + (next - here) / 2;
    for (uint64_t d = 0; d < 3; d++) {
      add(s, here + d - 1);
      add(s, half + d - 1);
    }
  }
}

// All codes of a narrow format; of a wide one those around what narrower ones
// can hold, every exponent, and random ones.
static sample sample_of(const ist__float_format *f) {
  sample s = {f, size_of(f), 0, NULL};
  s.bytes = malloc(most_numbers * s.size);
  assert_non_null(s.bytes);
  if (s.size <= 2) {
    for (uint64_t code = 0; code < UINT64_C(1) << (8 * s.size); code++) {
      add(&s, code);
    }
    return s;
  }
  for (int32_t n = 0; n < ist__dtype_count(); n++) {
    const ist__float_format *narrow = ist__float_format_find(n);
    if (narrow != NULL && size_of(narrow) <= 2) add_boundaries(&s, narrow);
  }
  uint64_t seed = 20261130;
  for (int i = 0; i < 20000; i++) {
    uint64_t random = next_random(&seed);
    add(&s, random);
    // Low digits that are all zero or all one.
    add(&s, random & ~UINT64_C(0x1fffffff));
    add(&s, random | UINT64_C(0x1fffffff));
  }
  return s;
}

static void check_pair(const ist__convert_kernels *kernels, const sample *s,
                       const ist__float_format *to, bool saturate,
                       bool stream) {
  ist__conversion c;
  size_t size = size_of(to);
  unsigned char *got = malloc(s->count * size);
  assert_non_null(got);
  ist__conversion_make(kernels, s->format->number, to->number, saturate,
                       s->count, &c);
  ist__conversion_run(&c, s->bytes, got, s->count, stream);
  for (size_t i = 0; i < s->count; i++) {
    uint64_t code = code_at(s->bytes, s->size, i);
    uint64_t wanted = ist__convert_one(s->format, to, saturate, code);
    if (code_at(got, size, i) != wanted) {
      fail_msg("%s: %s to %s%s: %llx became %llx, not %llx",
               kernels == NULL ? "no kernels" : kernels->name,
               ist__dtype_at(s->format->number)->name,
               ist__dtype_at(to->number)->name, saturate ? ", saturated" : "",
               (unsigned long long)code,
               (unsigned long long)code_at(got, size, i),
               (unsigned long long)wanted);
    }
  }
  free(got);
}

// Every target of every source of a table.
static void check_table(const ist__convert_kernels *kernels, bool saturate,
                        bool stream) {
  for (int32_t from = 0; from < ist__dtype_count(); from++) {
    const ist__float_format *f = ist__float_format_find(from);
    if (f == NULL) continue;
    sample s = sample_of(f);
    for (int32_t to = 0; to < ist__dtype_count(); to++) {
      if (!ist__conversion_exists(from, to)) continue;
      check_pair(kernels, &s, ist__float_format_find(to), saturate, stream);
    }
    free(s.bytes);
  }
}

static void run__equals_the_scalar_path_with_every_table(void **state) {
  (void)state;
  const ist__convert_kernels *k;
  for (int32_t i = 0; (k = ist__convert_kernels_at(i)) != NULL; i++) {
    check_table(k, false, true);
  }
}

static void run__saturates_as_the_scalar_path_with_every_table(void **state) {
  (void)state;
  const ist__convert_kernels *k;
  for (int32_t i = 0; (k = ist__convert_kernels_at(i)) != NULL; i++) {
    check_table(k, true, false);
  }
}

// ---- what a caller may have set

#if defined(__x86_64__)
typedef unsigned settings;
// MXCSR: rounding down, up and to zero; subnormals as zeros, results and both.
static const settings changes[] = {0x2000, 0x4000, 0x6000, 0x0040,
                                   0x8000, 0xa040, 0xc040};
static settings get_settings(void) {
  return _mm_getcsr() & 0xffc0;  // without what has happened
}
static void set_settings(settings s) {
  _mm_setcsr(s);
}
#elif defined(__aarch64__)
typedef uint64_t settings;
// FPCR: rounding up, down and to zero; subnormals as zeros; both.
static const settings changes[] = {1 << 22,           2 << 22,
                                   3 << 22,           1 << 24 | 1 << 19,
                                   1 << 24 | 1 << 22, 1 << 24 | 2 << 22};
static settings get_settings(void) {
  settings s;
  __asm__ volatile("mrs %0, fpcr" : "=r"(s));
  return s;
}
static void set_settings(settings s) {
  __asm__ volatile("msr fpcr, %0" : : "r"(s) : "memory");
}
#else
#error "this test knows the settings of x86-64 and aarch64"
#endif

// A zero of each sign, the smallest subnormals, and some of what there is.
static sample short_sample(const ist__float_format *f) {
  sample all = sample_of(f);
  sample s = {f, all.size, 0, malloc(most_numbers * all.size)};
  assert_non_null(s.bytes);
  for (uint64_t code = 0; code < 6; code++) {
    add(&s, code);
    add(&s, code | ist__float_sign(f));
  }
  for (size_t i = 0; i < all.count; i += 11) {
    add(&s, code_at(all.bytes, all.size, i));
  }
  free(all.bytes);
  return s;
}

// The long way, and with so few numbers that no loop by hand takes a step.
static void check_settings(const ist__convert_kernels *kernels, sample *s,
                           const ist__float_format *to, settings change) {
  const settings before = get_settings();
  const size_t count = s->count;
  set_settings(before | change);
  check_pair(kernels, s, to, false, false);
  s->count = 12;
  check_pair(kernels, s, to, false, false);
  assert_true(get_settings() == (before | change));
  set_settings(before);
  s->count = count;
}

// Computing threads of some runtimes flush subnormals; a caller may round down.
static void run__does_not_see_what_the_caller_set(void **state) {
  (void)state;
  static const int32_t sides[] = {
      ist__number_float16,        ist__number_float32,
      ist__number_float64,        ist__number_bfloat16,
      ist__number_float8_e4m3fn,  ist__number_float8_e5m2,
      ist__number_float8_e8m0fnu, ist__number_float4_e2m1fn,
  };
  const ist__convert_kernels *k;
  for (size_t from = 0; from < COUNT_OF(sides); from++) {
    sample s = short_sample(ist__float_format_find(sides[from]));
    for (size_t to = 0; to < COUNT_OF(sides); to++) {
      if (from == to) continue;
      for (int32_t i = 0; (k = ist__convert_kernels_at(i)) != NULL; i++) {
        for (size_t n = 0; n < COUNT_OF(changes); n++) {
          check_settings(k, &s, ist__float_format_find(sides[to]), changes[n]);
        }
      }
    }
    free(s.bytes);
  }
}

// Counts around the steps of the loops, at both ends of guarded memory.
static void check_edges(const ist__convert_kernels *kernels, int32_t from,
                        int32_t to, size_t count, bool stream) {
  size_t from_bytes = count * size_of(ist__float_format_find(from));
  size_t to_bytes = count * size_of(ist__float_format_find(to));
  guarded in = guarded_make(from_bytes + 1);
  guarded out = guarded_make(to_bytes + 1);
  ist__conversion c;
  ist__conversion_make(kernels, from, to, false, count, &c);
  ist__conversion_run(&c, in.start, out.start, count, stream);
  ist__conversion_run(&c, in.end - from_bytes, out.end - to_bytes, count,
                      stream);
  guarded_free(&in);
  guarded_free(&out);
}

static void run__touches_nothing_beside_its_arrays(void **state) {
  (void)state;
  static const size_t counts[] = {0, 1, 15, 16, 31, 33, 255, 256, 1025};
  static const int32_t sides[] = {
      ist__number_float16,       ist__number_float32,
      ist__number_float64,       ist__number_bfloat16,
      ist__number_float8_e4m3fn, ist__number_float8_e8m0fnu,
      ist__number_float4_e2m1fn,
  };
  const ist__convert_kernels *k;
  for (int32_t i = 0; (k = ist__convert_kernels_at(i)) != NULL; i++) {
    for (size_t f = 0; f < COUNT_OF(sides); f++) {
      for (size_t t = 0; t < COUNT_OF(sides); t++) {
        if (f == t) continue;
        for (size_t n = 0; n < COUNT_OF(counts); n++) {
          check_edges(k, sides[f], sides[t], counts[n], (n & 1) != 0);
        }
      }
    }
  }
}

static void run__converts_few_elements_without_a_table(void **state) {
  (void)state;
  const uint8_t from[3] = {0x38, 0x7e, 0xff};
  uint32_t to[3];
  ist__conversion c;
  ist__conversion_make(NULL, ist__number_float8_e4m3fn, ist__number_float32,
                       false, 3, &c);
  assert_null(c.first);
  ist__conversion_run(&c, from, to, 3, false);
  assert_int_equal(to[0], 0x3f800000);
  assert_int_equal(to[1], 0x43e00000);
  assert_int_equal(to[2], 0xffc00000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(run__equals_the_scalar_path_with_every_table),
      cmocka_unit_test(run__saturates_as_the_scalar_path_with_every_table),
      cmocka_unit_test(run__does_not_see_what_the_caller_set),
      cmocka_unit_test(run__touches_nothing_beside_its_arrays),
      cmocka_unit_test(run__converts_few_elements_without_a_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
