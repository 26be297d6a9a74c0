// SPDX-License-Identifier: Apache-2.0
// convert.c: takes a number apart and puts it together in another encoding.

#include "tensor/convert.h"

typedef enum number_kind {
  NUMBER_FINITE,
  NUMBER_INFINITE,
  NUMBER_NAN
} number_kind;

// A number: (-1)^negative * significand * 2^exponent; of a NaN significand is
// the mantissa field.
typedef struct number {
  number_kind kind;
  bool negative;
  uint64_t significand;
  int32_t exponent;
} number;

static bool is_nan(const ist__float_format *f, uint64_t bits) {
  switch (f->kind) {
    case IST__FLOAT_IEEE:
      return (bits & ist__float_magnitude(f)) > ist__float_infinity(f);
    case IST__FLOAT_FN:
    case IST__FLOAT_FNU:
      return (bits & ist__float_magnitude(f)) == ist__float_magnitude(f);
    case IST__FLOAT_FNUZ:
      return bits == ist__float_sign(f);
    case IST__FLOAT_FINITE:
      break;
  }
  return false;
}

static number take_apart(const ist__float_format *f, uint64_t bits) {
  bits &= ist__float_sign(f) | ist__float_magnitude(f);
  uint64_t magnitude = bits & ist__float_magnitude(f);
  uint64_t mantissa = magnitude & ((UINT64_C(1) << f->mantissa_bits) - 1);
  int32_t field = (int32_t)(magnitude >> f->mantissa_bits);
  number n = {NUMBER_FINITE, (bits & ist__float_sign(f)) != 0, mantissa, 0};
  if (is_nan(f, bits)) {
    n.kind = NUMBER_NAN;
  } else if (f->kind == IST__FLOAT_IEEE &&
             magnitude == ist__float_infinity(f)) {
    n.kind = NUMBER_INFINITE;
  } else {
    bool subnormal = field == 0 && f->kind != IST__FLOAT_FNU;
    if (!subnormal) n.significand |= UINT64_C(1) << f->mantissa_bits;
    n.exponent = (subnormal ? 1 : field) - f->bias - f->mantissa_bits;
  }
  return n;
}

// bits / 2^drop, to the nearest, ties to even.
static uint64_t round_off(uint64_t bits, int32_t drop) {
  if (drop > 64) return 0;
  if (drop == 64) return bits > UINT64_C(1) << 63 ? 1 : 0;
  uint64_t kept = bits >> drop;
  uint64_t half = UINT64_C(1) << (drop - 1);
  uint64_t rest = bits & ((half << 1) - 1);
  return kept + (rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0);
}

// The code of a positive number, which may lie beyond the largest finite one.
static uint64_t encode(const ist__float_format *f, number n) {
  if (n.significand == 0) return 0;
  for (int32_t step = 32; step > 0; step /= 2) {
    if (n.significand >> (64 - step) != 0) continue;
    n.significand <<= step;
    n.exponent -= step;
  }
  int32_t power = n.exponent + 63;  // of the leading one
  int32_t drop = 63 - f->mantissa_bits;
  if (f->kind == IST__FLOAT_FNU && power <= -f->bias) {
    return power == -f->bias && n.significand << 1 != 0 ? 1 : 0;
  }
  int32_t lowest = 1 - f->bias;  // power of the smallest normal number
  if (f->kind != IST__FLOAT_FNU && power < lowest) {
    return round_off(n.significand, drop + lowest - power);
  }
  // A carry out of the mantissa raises the exponent: they are neighbours.
  uint64_t kept = round_off(n.significand, drop);
  return kept - (UINT64_C(1) << f->mantissa_bits) +
         ((uint64_t)(power + f->bias) << f->mantissa_bits);
}

static uint64_t plain_nan(const ist__float_format *f, bool negative) {
  uint64_t sign = negative ? ist__float_sign(f) : 0;
  switch (f->kind) {
    case IST__FLOAT_IEEE:
      return sign | ist__float_infinity(f) |
             UINT64_C(1) << (f->mantissa_bits - 1);
    case IST__FLOAT_FN:
    case IST__FLOAT_FNU:
      return sign | ist__float_magnitude(f);
    case IST__FLOAT_FNUZ:
      return ist__float_sign(f);
    case IST__FLOAT_FINITE:
      break;
  }
  return sign ^ ist__float_sign(f);
}

static bool is_numpy_float(const ist__float_format *f) {
  return f->number == ist__number_float16 || f->number == ist__number_float32 ||
         f->number == ist__number_float64;
}

// The NaNs of float16, float32 and float64 keep the upper bits of their
// mantissas among each other, those of bfloat16 in wider ones. Where NumPy has
// the processor convert, between float32 and float64, they come out quiet; its
// float16 is done in software, and they do not.
static uint64_t encode_nan(const ist__float_format *from,
                           const ist__float_format *to, number n) {
  bool brain = from->number == ist__number_bfloat16;
  bool keeps =
      is_numpy_float(to) &&
      (is_numpy_float(from) || (brain && to->number != ist__number_float16));
  if (!keeps) return plain_nan(to, n.negative);
  int32_t wider = to->mantissa_bits - from->mantissa_bits;
  uint64_t mantissa =
      wider >= 0 ? n.significand << wider : n.significand >> -wider;
  bool doubles =
      from->number == ist__number_float64 || to->number == ist__number_float64;
  bool halves =
      from->number == ist__number_float16 || to->number == ist__number_float16;
  if (doubles && !halves) mantissa |= UINT64_C(1) << (to->mantissa_bits - 1);
  if (mantissa == 0) mantissa = 1;
  uint64_t sign = n.negative ? ist__float_sign(to) : 0;
  return sign | ist__float_infinity(to) | mantissa;
}

uint64_t ist__convert_one(const ist__float_format *from,
                          const ist__float_format *to, bool saturate,
                          uint64_t bits) {
  number n = take_apart(from, bits);
  if (n.kind == NUMBER_NAN) return encode_nan(from, to, n);
  bool unsigned_target = to->kind == IST__FLOAT_FNU;
  bool zero = n.kind == NUMBER_FINITE && n.significand == 0;
  if (unsigned_target && (n.negative || zero)) return plain_nan(to, false);
  uint64_t sign = n.negative ? ist__float_sign(to) : 0;
  uint64_t largest = ist__float_largest(to);
  uint64_t code = n.kind == NUMBER_FINITE ? encode(to, n) : UINT64_MAX;
  if (code > largest) {
    if (saturate || to->kind == IST__FLOAT_FINITE) return sign | largest;
    if (to->kind == IST__FLOAT_IEEE) return sign | ist__float_infinity(to);
    return plain_nan(to, n.negative);
  }
  if (code == 0 && to->kind == IST__FLOAT_FNUZ) sign = 0;
  return sign | code;
}
