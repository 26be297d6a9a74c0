// SPDX-License-Identifier: Apache-2.0
// strided_copy.h: copies elements between any two views of host memory.

#ifndef ISTHMUS_TENSOR_STRIDED_COPY_H_
#define ISTHMUS_TENSOR_STRIDED_COPY_H_

#include "tensor/view.h"

// Copies source to target, element by element in row-major order; dtype and
// shape are equal, padding may differ (sub-byte packed <-> padded), target does
// not overlap itself or source (all asserted or checked by the caller). Reads
// and writes no byte outside the two extents. Sub-byte packed sides must be
// dense row-major. Cannot fail.
void ist__strided_copy(const ist__view *source, const ist__view *target);

#endif  // ISTHMUS_TENSOR_STRIDED_COPY_H_
