// SPDX-License-Identifier: Apache-2.0
// strided_convert.h: converts the elements of a view of host memory between
// floating-point dtypes.

#ifndef ISTHMUS_TENSOR_STRIDED_CONVERT_H_
#define ISTHMUS_TENSOR_STRIDED_CONVERT_H_

#include "base/watch.h"
#include "tensor/convert_array.h"
#include "tensor/copy_engine.h"
#include "tensor/view.h"

// True when ist__strided_convert takes these two views: where elements of one
// are packed below a byte, both are row-major.
bool ist__strided_convert_takes(const ist__view *source,
                                const ist__view *target);

// Converts source, of any strides, into target, which is row-major; their
// shapes are equal, their dtypes those of the conversion, and they do not
// overlap. Reads and writes no byte outside the two extents; bits after the
// last element of a packed target become zero. One hop of watch, which is asked
// after each round of at most IST__ROUND_BYTES; a pool's threads share the
// work. engine and watch may be NULL. Fails: CANCELLED, with the target partly
// written.
ist_code ist__strided_convert(const ist__copy_engine *engine, ist__watch *watch,
                              const ist__conversion *conversion,
                              const ist__view *source, const ist__view *target,
                              ist_error *err);

#endif  // ISTHMUS_TENSOR_STRIDED_CONVERT_H_
