// SPDX-License-Identifier: Apache-2.0
// convert_array.h: dense arrays of floating-point numbers from one dtype to
// another, by the fastest loops of a machine; the same bits as ist__convert_one
// gives one by one. Any strides, and packed elements: strided_convert.h.

#ifndef ISTHMUS_TENSOR_CONVERT_ARRAY_H_
#define ISTHMUS_TENSOR_CONVERT_ARRAY_H_

#include "tensor/convert_kernels.h"
#include "tensor/float_format.h"

// A conversion between two dtypes, planned: read-only once it is made, and used
// from any thread at once. Two kilobytes: it holds the table of its codes.
typedef struct ist__conversion {
  const ist__float_format *from;
  const ist__float_format *to;
  bool saturate;
  size_t from_size;  // bytes of an element; of a sub-byte one, padded, 1
  size_t to_size;
  // One loop, or two through a buffer of float32; NULL: one by one.
  ist__convert_loop *first;
  ist__convert_loop *second;
  ist__nan first_nan;
  ist__nan second_nan;
  union {
    uint8_t of_1[256];
    uint16_t of_2[256];
    uint32_t of_4[256];
    uint64_t of_8[256];
  } table;
} ist__conversion;

// True for the numbers of two floating-point dtypes that are not the same.
bool ist__conversion_exists(int32_t from, int32_t to);

// Plans a conversion that exists of count elements: for few of them no table is
// filled. kernels: NULL for plain C.
void ist__conversion_make(const ist__convert_kernels *kernels, int32_t from,
                          int32_t to, bool saturate, uint64_t count,
                          ist__conversion *out);

// Converts count elements; sub-byte ones lie one to a byte, of whose upper bits
// a source's are not looked at and a target's become zero. from and to are
// multiples of their elements' sizes and do not overlap. stream: to is large
// and is not read soon. Cannot fail.
void ist__conversion_run(const ist__conversion *conversion, const void *from,
                         void *to, size_t count, bool stream);

#endif  // ISTHMUS_TENSOR_CONVERT_ARRAY_H_
