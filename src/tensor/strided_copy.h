// SPDX-License-Identifier: Apache-2.0
// strided_copy.h: copies elements between any two views of host memory.

#ifndef ISTHMUS_TENSOR_STRIDED_COPY_H_
#define ISTHMUS_TENSOR_STRIDED_COPY_H_

#include "base/watch.h"
#include "tensor/copy_engine.h"
#include "tensor/view.h"

// Copies source to target, element by element in row-major order. dtype and
// shape are equal (asserted), any strides on either side; target overlaps
// neither itself nor source (seen to by the caller). Padding may differ: bits
// of a packed sub-byte value go to the low bits of a padded byte, the rest is
// zero, and back; padded to padded the byte stays as it is. Reads and writes no
// byte outside the two extents; of a packed target that is dense, the bits
// after the last element become zero. Cannot fail. engine: the context's
// (env->copy_engine), or NULL.
void ist__strided_copy(const ist__copy_engine *engine, const ist__view *source,
                       const ist__view *target);

// The same as one hop of a watch (NULL allowed), which is asked after each
// round of at most IST__ROUND_BYTES. Fails: CANCELLED, with the target partly
// written.
ist_code ist__strided_copy_watched(const ist__copy_engine *engine,
                                   ist__watch *watch, const ist__view *source,
                                   const ist__view *target, ist_error *err);

#endif  // ISTHMUS_TENSOR_STRIDED_COPY_H_
