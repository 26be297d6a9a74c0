// SPDX-License-Identifier: Apache-2.0
// convert_baseline.c: the conversion loops for every machine: plain C, in the
// vectors that the compiler finds.

#include "tensor/convert_loops.h"

const ist__convert_kernels ist__convert_baseline = {
    .name = "baseline",
    .float16_to_float32 = plain_float16_to_float32,
    .bfloat16_to_float32 = plain_bfloat16_to_float32,
    .float64_to_float32 = plain_float64_to_float32,
    .float64_to_odd = plain_float64_to_odd,
    .float32_to_float64 = plain_float32_to_float64,
    .float32_to_float16 = plain_float32_to_float16,
    .float32_to_bfloat16 = plain_float32_to_bfloat16,
    .float32_to_byte =
        {
#define IST_FLOAT_BYTE_FORMAT(number, name, exponent, mantissa, bias, kind) \
  [ist__byte_##name] = plain_##name,
#include "tensor/float_format.def"
        },
    .look_up = {plain_look_up_1, plain_look_up_2, plain_look_up_4,
                plain_look_up_8},
};
