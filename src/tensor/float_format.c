// SPDX-License-Identifier: Apache-2.0
// float_format.c: the table of floating-point encodings.

#include "tensor/float_format.h"

#include <stddef.h>

static const ist__float_format formats[] = {
#define IST_FLOAT_FORMAT(number, name, exponent, mantissa, bias, kind) \
  {number, exponent, mantissa, bias, IST__FLOAT_##kind},
#include "tensor/float_format.def"
};

const ist__float_format *ist__float_format_find(int32_t number) {
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    if (formats[i].number == number) return &formats[i];
  }
  return NULL;
}
