// SPDX-License-Identifier: Apache-2.0
// convert_loops.h: conversion loops in plain C without branches, which the
// compiler turns into the vectors of whichever instruction set a file that
// includes this is built for. Included by those files only.
//
// What the caller set the processor to, its rounding or that it flushes
// subnormals, is not seen: all is done by integers, but for the subnormals of a
// source, whose mantissa becomes a float and is scaled by a power of two. Of
// these no operand and no result is subnormal, and none is rounded; no number
// is taken from its equal, which is -0 where one rounds down.

#ifndef ISTHMUS_TENSOR_CONVERT_LOOPS_H_
#define ISTHMUS_TENSOR_CONVERT_LOOPS_H_

#include <string.h>

#include "tensor/convert_kernels.h"
#include "tensor/float_format.h"

#define FLOAT32_SIGN UINT32_C(0x80000000)
#define FLOAT32_INFINITY UINT32_C(0x7f800000)
#define FLOAT64_SIGN (UINT64_C(1) << 63)
#define FLOAT64_INFINITY UINT64_C(0x7ff0000000000000)

// The rows of float_format.def: format_of_float16(), ... Constants where they
// are inlined.
#define IST_FLOAT_FORMAT(number, name, exponent, mantissa, bias, kind) \
  static inline ist__float_format format_of_##name(void) {             \
    return (ist__float_format){number, exponent, mantissa, bias,       \
                               IST__FLOAT_##kind};                     \
  }
#include "tensor/float_format.def"

// With saturate no result is infinite, of a wider type neither.
static inline uint32_t float32_of_half(uint32_t half, bool saturate) {
  uint32_t magnitude = half & 0x7fff;
  // The exponent's bias goes from 15 to 127; that of infinity to its highest.
  uint32_t bits = (magnitude << 13) + (UINT32_C(112) << 23);
  if (magnitude >= 0x7c00) bits += UINT32_C(112) << 23;
  if (magnitude == 0x7c00 && saturate) bits = FLOAT32_INFINITY - 1;
  // A subnormal: m * 2^-24.
  float exact = (float)(int32_t)magnitude * 0x1p-24F;
  uint32_t small;
  memcpy(&small, &exact, sizeof small);
  return (half & 0x8000) << 16 | (magnitude < 0x400 ? small : bits);
}

static inline uint32_t float32_of_brain(uint32_t brain, bool saturate) {
  uint32_t bits = brain << 16;
  bool infinite = (bits & ~FLOAT32_SIGN) == FLOAT32_INFINITY;
  return infinite && saturate ? bits - 1 : bits;
}

// The plain NaN of a format narrower than float32.
static inline uint32_t plain_nan(const ist__float_format f, uint32_t sign) {
  uint32_t sign_bit = (uint32_t)ist__float_sign(&f);
  uint32_t magnitude = (uint32_t)ist__float_magnitude(&f);
  switch (f.kind) {
    case IST__FLOAT_IEEE:
      return sign | (uint32_t)ist__float_infinity(&f) |
             UINT32_C(1) << (f.mantissa_bits - 1);
    case IST__FLOAT_FN:
    case IST__FLOAT_FNU:
      return sign | magnitude;
    case IST__FLOAT_FNUZ:
      return sign_bit;
    case IST__FLOAT_FINITE:
      break;
  }
  return sign ^ sign_bit;
}

// What becomes of numbers beyond the largest, without their sign.
static inline uint32_t beyond(const ist__float_format f, bool saturate) {
  if (saturate || f.kind == IST__FLOAT_FINITE) {
    return (uint32_t)ist__float_largest(&f);
  }
  return f.kind == IST__FLOAT_IEEE ? (uint32_t)ist__float_infinity(&f)
                                   : plain_nan(f, 0);
}

// The first float32 bits that f holds as a normal number.
static inline uint32_t first_normal(const ist__float_format f) {
  return (uint32_t)(128 - f.bias) << 23;
}

// Rounds float32 bits to a format with fewer exponent bits and a sign. The
// format is a constant where this is inlined.
static inline uint32_t narrow(uint32_t x, const ist__float_format f,
                              uint32_t over) {
  const uint32_t shift = (uint32_t)(23 - f.mantissa_bits);
  const uint32_t largest = (uint32_t)ist__float_largest(&f);
  uint32_t a = x & ~FLOAT32_SIGN;
  uint32_t normal = a + (UINT32_C(1) << (shift - 1)) - 1 + (a >> shift & 1);
  normal = (normal >> shift) - ((uint32_t)(127 - f.bias) << f.mantissa_bits);
  // A subnormal of the target loses as many bits more as it lies below; 25 is
  // more than there are.
  const uint32_t lowest = (uint32_t)(128 - f.bias);
  uint32_t below = (a >> 23) < lowest ? lowest - (a >> 23) : 0;
  uint32_t drop = shift + below > 25 ? 25 : shift + below;
  uint32_t significand = (a & 0x7fffff) | 0x800000;
  uint32_t small =
      significand + (UINT32_C(1) << (drop - 1)) - 1 + (significand >> drop & 1);
  uint32_t code = a < first_normal(f) ? small >> drop : normal;
  code = code > largest ? over : code;
  uint32_t sign = x >> 31 << (f.exponent_bits + f.mantissa_bits);
  if (f.kind == IST__FLOAT_FNUZ) sign = code == 0 ? 0 : sign;
  return a > FLOAT32_INFINITY ? plain_nan(f, sign) : code | sign;
}

// To float8_e8m0fnu: the exponent's bits, rounded up from half on.
static inline uint32_t narrow_to_power(uint32_t x, uint32_t over) {
  uint32_t code = (x + 0x400000) >> 23;
  // Subnormals: up to 2^-127 it is that, above it is 2^-126.
  if (x < 0x800000) code = x > 0x400000 ? 1 : 0;
  code = code > 0xfe ? over : code;
  return x - 1 >= FLOAT32_INFINITY ? 0xff : code;
}

static inline uint32_t narrow_to_half(uint32_t x, const ist__convert_how *how) {
  const ist__float_format f = format_of_float16();
  uint32_t code = narrow(x, f, beyond(f, how->saturate));
  uint32_t mantissa = x >> 13 & 0x3ff;
  uint32_t kept = (x >> 16 & 0x8000) | 0x7c00 | (mantissa == 0 ? 1 : mantissa);
  bool nan = (x & ~FLOAT32_SIGN) > FLOAT32_INFINITY;
  return nan && how->nan != IST__NAN_PLAIN ? kept : code;
}

static inline uint32_t narrow_to_brain(uint32_t x, uint32_t over) {
  uint32_t a = x & ~FLOAT32_SIGN;
  uint32_t code = (a + 0x7fff + (a >> 16 & 1)) >> 16;
  code = code >= 0x7f80 ? over : code;
  if (a > FLOAT32_INFINITY) code = 0x7fc0;
  return code | (x >> 16 & 0x8000);
}

static inline uint32_t odd_of_double(uint64_t x) {
  uint64_t a = x & ~FLOAT64_SIGN;
  uint32_t field = (uint32_t)(a >> 52);
  // float32's normal numbers begin at exponent 897 of 1023, its infinity at
  // 1151; below, a subnormal loses as many bits more.
  uint32_t drop = field < 897 ? 29 + 897 - field : 29;
  drop = drop > 60 ? 60 : drop;
  uint64_t significand = (a & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
  uint64_t bits =
      field < 897 ? significand >> drop : (a >> 29) - (UINT64_C(896) << 23);
  uint64_t lost = significand & ((UINT64_C(1) << drop) - 1);
  bits |= lost != 0 ? 1 : 0;
  if (bits >= FLOAT32_INFINITY) bits = FLOAT32_INFINITY - 1;
  if (a >= FLOAT64_INFINITY) {
    bits = FLOAT32_INFINITY | (a >> 29 & 0x7fffff) | (lost != 0 ? 1 : 0);
  }
  if (a == 0) bits = 0;
  return (uint32_t)(x >> 32 & FLOAT32_SIGN) | (uint32_t)bits;
}

static inline uint32_t float_of_double(uint64_t x, bool saturate) {
  uint64_t a = x & ~FLOAT64_SIGN;
  uint32_t field = (uint32_t)(a >> 52);
  uint32_t drop = field < 897 ? 29 + 897 - field : 29;
  drop = drop > 54 ? 54 : drop;
  uint64_t significand = (a & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
  uint64_t small = (significand + (UINT64_C(1) << (drop - 1)) - 1 +
                    (significand >> drop & 1)) >>
                   drop;
  uint64_t normal = ((a + (UINT64_C(1) << 28) - 1 + (a >> 29 & 1)) >> 29) -
                    (UINT64_C(896) << 23);
  uint64_t bits = field < 897 ? small : normal;
  if (bits >= FLOAT32_INFINITY) bits = FLOAT32_INFINITY - (saturate ? 1 : 0);
  if (a > FLOAT64_INFINITY) bits = 0x7fc00000 | (a >> 29 & 0x7fffff);
  return (uint32_t)(x >> 32 & FLOAT32_SIGN) | (uint32_t)bits;
}

static inline uint64_t double_of_float(uint32_t x, bool saturate,
                                       ist__nan nan) {
  uint32_t a = x & ~FLOAT32_SIGN;
  uint64_t bits = ((uint64_t)a << 29) + (UINT64_C(896) << 52);
  if (a >= FLOAT32_INFINITY) bits += UINT64_C(896) << 52;
  if (a == FLOAT32_INFINITY && saturate) bits = FLOAT64_INFINITY - 1;
  if (a > FLOAT32_INFINITY && nan == IST__NAN_QUIET) bits |= UINT64_C(1) << 51;
  // A subnormal: m * 2^-149.
  double exact = (double)(int32_t)a * 0x1p-149;
  uint64_t small;
  memcpy(&small, &exact, sizeof small);
  return (uint64_t)(x & FLOAT32_SIGN) << 32 | (a < 0x800000 ? small : bits);
}

// ---- the loops

#define LOOP(name, from_type, to_type, expression)           \
  static void name(const void *from, void *to, size_t count, \
                   const ist__convert_how *how) {            \
    const from_type *restrict in = from;                     \
    to_type *restrict out = to;                              \
    const ist__convert_how h = *how;                         \
    for (size_t i = 0; i < count; i++) {                     \
      out[i] = (to_type)(expression);                        \
    }                                                        \
    (void)h;                                                 \
  }

LOOP(plain_float16_to_float32, uint16_t, uint32_t,
     float32_of_half(in[i], h.saturate))
LOOP(plain_bfloat16_to_float32, uint16_t, uint32_t,
     float32_of_brain(in[i], h.saturate))
LOOP(plain_float64_to_float32, uint64_t, uint32_t,
     float_of_double(in[i], h.saturate))
LOOP(plain_float64_to_odd, uint64_t, uint32_t, odd_of_double(in[i]))
LOOP(plain_float32_to_float64, uint32_t, uint64_t,
     double_of_float(in[i], h.saturate, h.nan))
LOOP(plain_float32_to_float16, uint32_t, uint16_t, narrow_to_half(in[i], &h))
LOOP(plain_float32_to_bfloat16, uint32_t, uint16_t,
     narrow_to_brain(in[i], h.saturate ? 0x7f7f : 0x7f80))

#define look(type) (((const type *)h.table)[in[i]])
LOOP(plain_look_up_1, uint8_t, uint8_t, look(uint8_t))
LOOP(plain_look_up_2, uint8_t, uint16_t, look(uint16_t))
LOOP(plain_look_up_4, uint8_t, uint32_t, look(uint32_t))
LOOP(plain_look_up_8, uint8_t, uint64_t, look(uint64_t))
#undef look

static inline void narrow_bytes(const void *from, void *to, size_t count,
                                const ist__convert_how *how,
                                const ist__float_format f) {
  const uint32_t *restrict in = from;
  uint8_t *restrict out = to;
  if (f.kind == IST__FLOAT_FNU) {
    const uint32_t over = how->saturate ? 0xfe : 0xff;
    for (size_t i = 0; i < count; i++) {
      uint32_t x = in[i];
      uint32_t code = narrow_to_power(x, over);
      // Infinity is beyond the largest too.
      out[i] = (uint8_t)(x == FLOAT32_INFINITY ? over : code);
    }
    return;
  }
  const uint32_t over = beyond(f, how->saturate);
  for (size_t i = 0; i < count; i++) out[i] = (uint8_t)narrow(in[i], f, over);
}

#define IST_FLOAT_BYTE_FORMAT(number, name, exponent, mantissa, bias, kind) \
  static void plain_##name(const void *from, void *to, size_t count,        \
                           const ist__convert_how *how) {                   \
    narrow_bytes(from, to, count, how, format_of_##name());                 \
  }
#include "tensor/float_format.def"

#endif  // ISTHMUS_TENSOR_CONVERT_LOOPS_H_
