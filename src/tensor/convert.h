// SPDX-License-Identifier: Apache-2.0
// convert.h: one floating-point number from one encoding to another, by
// integers only: what every faster loop is tested against. Whole arrays:
// convert_array.h.
//
// The rule. A finite number is rounded once, to the nearest of the target, a
// tie to the even code (float8_e8m0fnu, whose only digit is its leading one: to
// the larger). Beyond the largest finite number of the target, after rounding,
// it becomes infinity, where there is none NaN, where there is no NaN the
// largest finite number. Infinity does the same. With saturate both become the
// largest finite number of their sign. Zero keeps its sign where the target has
// one for it. Into float8_e8m0fnu zero and all below become NaN, what lies
// between zero and its smallest number that, and what lies between its smallest
// and its second smallest the second (as in ml_dtypes; nearest would be
// either). NaN stays NaN with its sign; into a format without NaN it becomes
// the zero of the other sign. Its other bits: docs/conversions.md. All of this
// but saturate gives the bits of ml_dtypes 0.6.0 and NumPy 2.4.

#ifndef ISTHMUS_TENSOR_CONVERT_H_
#define ISTHMUS_TENSOR_CONVERT_H_

#include <stdbool.h>

#include "tensor/float_format.h"

// The code in format to of the number that code bits is in format from. Bits
// above the format's own are not looked at.
uint64_t ist__convert_one(const ist__float_format *from,
                          const ist__float_format *to, bool saturate,
                          uint64_t bits);

#endif  // ISTHMUS_TENSOR_CONVERT_H_
