// SPDX-License-Identifier: Apache-2.0
// sub_byte_copy.h: the part of a strided copy whose elements are narrower than
// a byte and packed on at least one side.

#ifndef ISTHMUS_TENSOR_SUB_BYTE_COPY_H_
#define ISTHMUS_TENSOR_SUB_BYTE_COPY_H_

#include "tensor/copy_kernels.h"
#include "tensor/view.h"

// As ist__strided_copy, for dtypes below 8 bits of which source, target or both
// are packed: element n of a packed side has bits n * bits and up, counted from
// the lowest bit of the first byte (DLPack's order; bits of a 6-bit element may
// lie in two bytes). Copies the elements from number first, a multiple of 8, to
// before number end, in row-major order.
void ist__sub_byte_copy(const ist__copy_kernels *kernels,
                        const ist__view *source, const ist__view *target,
                        uint64_t first, uint64_t end);

#endif  // ISTHMUS_TENSOR_SUB_BYTE_COPY_H_
