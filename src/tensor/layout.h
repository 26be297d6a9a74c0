// SPDX-License-Identifier: Apache-2.0
// layout.h: what a geometry is (permuted, gaps, negative, overlap) and
// strides to minor-to-major and back. Numbers only, no memory.

#ifndef ISTHMUS_TENSOR_LAYOUT_H_
#define ISTHMUS_TENSOR_LAYOUT_H_

#include "base/error.h"

// Dense row-major strides, in elements. False when they overflow.
bool ist__layout_row_major(int32_t ndim, const int64_t *shape,
                           int64_t *strides);

// The set of ist_layout of normal strides (as in ist__view).
uint32_t ist__layout_of(int32_t ndim, const int64_t *shape,
                        const int64_t *strides);

// The order of dimensions from the one that varies fastest to the slowest, for
// a dense layout (row-major or permuted). False for any other.
bool ist__layout_minor_to_major(int32_t ndim, const int64_t *shape,
                                const int64_t *strides,
                                int64_t *out_minor_to_major);

// The order of dimensions in which strides fall: dimension order[k] becomes
// dimension k, and what is permuted in the layout no longer is. 0, 1, 2, ...
// for a layout that is not permuted.
void ist__layout_order(int32_t ndim, const int64_t *shape,
                       const int64_t *strides, int32_t *order);

// An order as one number (ist_fit.order_code), 0 for 0 or more than 14
// dimensions; and back: returns ndim, or 0 for a number that is no such code.
int64_t ist__layout_order_code(int32_t ndim, const int32_t *order);
int32_t ist__layout_order_read(int64_t code, int32_t *order);

// Dense strides of an order of dimensions. False when the order is no
// permutation or the strides overflow.
bool ist__layout_from_minor_to_major(int32_t ndim, const int64_t *shape,
                                     const int64_t *minor_to_major,
                                     int64_t *out_strides);

#endif  // ISTHMUS_TENSOR_LAYOUT_H_
