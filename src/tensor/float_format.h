// SPDX-License-Identifier: Apache-2.0
// float_format.h: how the floating-point dtypes encode numbers, from
// float_format.def.

#ifndef ISTHMUS_TENSOR_FLOAT_FORMAT_H_
#define ISTHMUS_TENSOR_FLOAT_FORMAT_H_

#include <stdint.h>

// What an encoding has beside finite numbers. All but FNU have a sign bit and
// subnormals.
typedef enum ist__float_kind {
  IST__FLOAT_IEEE = 0,   // the highest exponent: infinity, and NaN above it
  IST__FLOAT_FN = 1,     // no infinity; NaN has all bits but the sign set
  IST__FLOAT_FNUZ = 2,   // no infinity, no negative zero: its code is the NaN
  IST__FLOAT_FNU = 3,    // powers of two only: no sign, no zero; NaN: all bits
  IST__FLOAT_FINITE = 4  // neither infinity nor NaN
} ist__float_kind;

// The dtypes' numbers: ist__number_float32, ...
enum {
#define IST_FLOAT_FORMAT(number, name, exponent, mantissa, bias, kind) \
  ist__number_##name = number,
#include "tensor/float_format.def"
};

typedef struct ist__float_format {
  int32_t number;  // of the dtype
  int32_t exponent_bits;
  int32_t mantissa_bits;
  int32_t bias;
  ist__float_kind kind;
} ist__float_format;

// The format of a dtype number, or NULL when it is no floating-point dtype.
const ist__float_format *ist__float_format_find(int32_t number);

// Bits of an element.
static inline int32_t ist__float_bits(const ist__float_format *f) {
  int32_t sign = f->kind == IST__FLOAT_FNU ? 0 : 1;
  return sign + f->exponent_bits + f->mantissa_bits;
}

// The sign's bit; 0 where there is none.
static inline uint64_t ist__float_sign(const ist__float_format *f) {
  int32_t place = f->exponent_bits + f->mantissa_bits;
  return f->kind == IST__FLOAT_FNU ? 0 : UINT64_C(1) << place;
}

// All bits but the sign.
static inline uint64_t ist__float_magnitude(const ist__float_format *f) {
  return (UINT64_C(1) << (f->exponent_bits + f->mantissa_bits)) - 1;
}

// The code of infinity in an IEEE format.
static inline uint64_t ist__float_infinity(const ist__float_format *f) {
  return ((UINT64_C(1) << f->exponent_bits) - 1) << f->mantissa_bits;
}

// The code of the largest finite number.
static inline uint64_t ist__float_largest(const ist__float_format *f) {
  switch (f->kind) {
    case IST__FLOAT_IEEE:
      return ist__float_infinity(f) - 1;
    case IST__FLOAT_FN:
    case IST__FLOAT_FNU:
      return ist__float_magnitude(f) - 1;
    case IST__FLOAT_FNUZ:
    case IST__FLOAT_FINITE:
      break;
  }
  return ist__float_magnitude(f);
}

#endif  // ISTHMUS_TENSOR_FLOAT_FORMAT_H_
