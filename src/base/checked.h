// SPDX-License-Identifier: Apache-2.0
// checked.h: arithmetic on numbers from outside. Each returns false, and
// leaves out as it was, when the result does not fit.

#ifndef ISTHMUS_BASE_CHECKED_H_
#define ISTHMUS_BASE_CHECKED_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool ist__mul_i64(int64_t a, int64_t b, int64_t *out) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}

static inline bool ist__add_i64(int64_t a, int64_t b, int64_t *out) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}

static inline bool ist__mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
  uint64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}

static inline bool ist__add_u64(uint64_t a, uint64_t b, uint64_t *out) {
  uint64_t r;
  if (__builtin_add_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}

static inline bool ist__is_power_of_two(uint64_t n) {
  return n != 0 && (n & (n - 1)) == 0;
}

#endif  // ISTHMUS_BASE_CHECKED_H_
