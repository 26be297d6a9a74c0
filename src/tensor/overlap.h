// SPDX-License-Identifier: Apache-2.0
// overlap.h: do two indices of a geometry share an address? Numbers only.

#ifndef ISTHMUS_TENSOR_OVERLAP_H_
#define ISTHMUS_TENSOR_OVERLAP_H_

#include <stdbool.h>
#include <stdint.h>

typedef enum ist__overlap {
  IST__OVERLAP_NONE = 0,
  IST__OVERLAP_SOME = 1,
  IST__OVERLAP_UNDECIDED = 2  // more work than is spent on it: count as some
} ist__overlap;

// Decides for the first count entries of extents (each above 1) and steps (the
// magnitudes of their strides, rising); at most IST_MAX_NDIM of them. The
// arrays are written to. Exact for two dimensions, and for more while the
// search stays bounded.
ist__overlap ist__overlap_of(int32_t count, uint64_t *extents, uint64_t *steps);

#endif  // ISTHMUS_TENSOR_OVERLAP_H_
