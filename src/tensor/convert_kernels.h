// SPDX-License-Identifier: Apache-2.0
// convert_kernels.h: the inner loops of a conversion between floating-point
// dtypes, one table for each instruction set. Which of them follow each other
// for a pair of dtypes is convert_array.c's.

#ifndef ISTHMUS_TENSOR_CONVERT_KERNELS_H_
#define ISTHMUS_TENSOR_CONVERT_KERNELS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The formats of at most 8 bits in their order: ist__byte_float8_e3m4, ...
enum {
#define IST_FLOAT_BYTE_FORMAT(number, name, exponent, mantissa, bias, kind) \
  ist__byte_##name,
#include "tensor/float_format.def"
  ist__byte_formats  // how many there are
};

// What the loop does with the mantissa of a NaN, where its target keeps it.
typedef enum ist__nan {
  IST__NAN_PLAIN = 0,  // the target's plain NaN
  IST__NAN_KEPT = 1,   // kept; never zero
  IST__NAN_QUIET = 2   // kept, and the highest bit set
} ist__nan;

typedef struct ist__convert_how {
  bool saturate;
  bool stream;  // the target is large and is not read soon
  ist__nan nan;
  const void *table;  // of look_up: the target's code for each byte
} ist__convert_how;

// Converts count elements, dense on both sides, which do not overlap; from and
// to are multiples of their element's size.
typedef void ist__convert_loop(const void *from, void *to, size_t count,
                               const ist__convert_how *how);

typedef struct ist__convert_kernels {
  const char *name;
  ist__convert_loop *float16_to_float32;   // NaNs kept
  ist__convert_loop *bfloat16_to_float32;  // NaNs kept
  ist__convert_loop *float64_to_float32;   // NaNs quiet
  // To float32, what is not exact to the neighbour with an odd code: a second
  // rounding, to any narrower format, is then as one from float64. NaNs kept.
  ist__convert_loop *float64_to_odd;
  ist__convert_loop *float32_to_float64;   // NaNs kept or quiet
  ist__convert_loop *float32_to_float16;   // NaNs kept or plain
  ist__convert_loop *float32_to_bfloat16;  // NaNs plain
  // By ist__byte_*; to a byte each. NaNs plain.
  ist__convert_loop *float32_to_byte[ist__byte_formats];
  // From a byte by how->table to elements of 1, 2, 4 and 8 bytes.
  ist__convert_loop *look_up[4];
} ist__convert_kernels;

// Plain C: always there.
extern const ist__convert_kernels ist__convert_baseline;

#if defined(__x86_64__)
// AVX2 and F16C, for machines that ist__cpu_has_avx2_f16c.
extern const ist__convert_kernels ist__convert_avx2;
#endif

// The fastest table that this machine can run.
const ist__convert_kernels *ist__convert_kernels_best(void);
// Table number index of those that this machine can run, NULL after the last.
const ist__convert_kernels *ist__convert_kernels_at(int32_t index);

#endif  // ISTHMUS_TENSOR_CONVERT_KERNELS_H_
