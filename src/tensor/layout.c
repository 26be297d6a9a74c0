// SPDX-License-Identifier: Apache-2.0
// layout.c: what a geometry is, and strides to minor-to-major and back.

#include "tensor/layout.h"

#include "base/checked.h"
#include "tensor/overlap.h"

// Extent 0 and 1 count as 1: the strides of an empty tensor are those that it
// would have with one element there, as in NumPy and torch.
static int64_t at_least_one(int64_t extent) {
  return extent > 1 ? extent : 1;
}

bool ist__layout_row_major(int32_t ndim, const int64_t *shape,
                           int64_t *strides) {
  int64_t dense = 1;
  for (int32_t i = ndim - 1; i >= 0; i--) {
    strides[i] = dense;
    if (!ist__mul_i64(dense, at_least_one(shape[i]), &dense)) return false;
  }
  return true;
}

static uint64_t magnitude(int64_t n) {
  return n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
}

// Is any extent 0, and are the strides those of dense row-major?
static bool is_row_major(int32_t ndim, const int64_t *shape,
                         const int64_t *strides) {
  bool row_major = true;
  int64_t dense = 1;
  for (int32_t i = ndim - 1; i >= 0; i--) {
    if (shape[i] == 0) return true;
    row_major = row_major && (strides[i] == dense || shape[i] == 1);
    if (!ist__mul_i64(dense, shape[i], &dense)) return false;
  }
  return row_major;
}

// Writes the dimensions of extent above 1 by rising magnitude of stride, of
// equal ones the last first; returns how many.
static int32_t sort_by_stride(int32_t ndim, const int64_t *shape,
                              const int64_t *strides, int32_t *order) {
  int32_t count = 0;
  for (int32_t i = ndim - 1; i >= 0; i--) {
    if (shape[i] <= 1) continue;
    int32_t place = count++;
    while (place > 0 &&
           magnitude(strides[order[place - 1]]) > magnitude(strides[i])) {
      order[place] = order[place - 1];
      place--;
    }
    order[place] = i;
  }
  return count;
}

// Dimensions of which each steps over all that the ones before it reach lie
// apart. Of others the extent holds elements that are not the tensor's, or two
// indices meet; of the latter it is not asked whether gaps are left.
static uint32_t meeting(int32_t count, const int32_t *order,
                        const int64_t *shape, const int64_t *strides) {
  uint64_t extents[IST_MAX_NDIM];
  uint64_t steps[IST_MAX_NDIM];
  for (int32_t k = 0; k < count; k++) {
    extents[k] = (uint64_t)shape[order[k]];
    steps[k] = magnitude(strides[order[k]]);
  }
  return ist__overlap_of(count, extents, steps) == IST__OVERLAP_NONE
             ? IST_LAYOUT_GAPS
             : IST_LAYOUT_OVERLAP;
}

uint32_t ist__layout_of(int32_t ndim, const int64_t *shape,
                        const int64_t *strides) {
  if (is_row_major(ndim, shape, strides)) return IST_LAYOUT_ROW_MAJOR;
  int32_t order[IST_MAX_NDIM];
  int32_t count = sort_by_stride(ndim, shape, strides, order);
  uint32_t layout = 0;
  bool apart = true;
  int32_t inner = IST_MAX_NDIM;  // the last dimension seen with a stride
  uint64_t span = 1;             // elements that the dimensions so far reach
  for (int32_t k = 0; k < count; k++) {
    int32_t i = order[k];
    uint64_t step = magnitude(strides[i]);
    uint64_t reach;
    if (strides[i] < 0) layout |= IST_LAYOUT_NEGATIVE;
    if (step < span) apart = false;
    if (step > span) layout |= IST_LAYOUT_GAPS;
    if (step != 0 && i > inner) layout |= IST_LAYOUT_PERMUTED;
    if (step != 0) inner = i;
    if (!ist__mul_u64(step, (uint64_t)shape[i] - 1, &reach) ||
        !ist__add_u64(span, reach, &span)) {
      span = UINT64_MAX;
    }
  }
  return apart ? layout : layout | meeting(count, order, shape, strides);
}

// All dimensions by rising magnitude of stride, of equal ones the last first. A
// dimension without a stride of its own (extent 1, or broadcast) stays beside
// the one that follows it, so that row-major gives n-1, ..., 1, 0.
static void sort_all(int32_t ndim, const int64_t *shape, const int64_t *strides,
                     int32_t *order) {
  uint64_t keys[IST_MAX_NDIM];
  uint64_t key = 0;
  for (int32_t i = ndim - 1, count = 0; i >= 0; i--, count++) {
    if (shape[i] > 1 && strides[i] != 0) key = magnitude(strides[i]);
    int32_t place = count;
    while (place > 0 && keys[place - 1] > key) {
      keys[place] = keys[place - 1];
      order[place] = order[place - 1];
      place--;
    }
    keys[place] = key;
    order[place] = i;
  }
}

void ist__layout_order(int32_t ndim, const int64_t *shape,
                       const int64_t *strides, int32_t *order) {
  int32_t rising[IST_MAX_NDIM];
  bool permuted =
      (ist__layout_of(ndim, shape, strides) & IST_LAYOUT_PERMUTED) != 0;
  if (permuted) sort_all(ndim, shape, strides, rising);
  for (int32_t i = 0; i < ndim; i++) {
    order[i] = permuted ? rising[ndim - 1 - i] : i;
  }
}

bool ist__layout_minor_to_major(int32_t ndim, const int64_t *shape,
                                const int64_t *strides,
                                int64_t *out_minor_to_major) {
  int32_t order[IST_MAX_NDIM];
  uint32_t layout = ist__layout_of(ndim, shape, strides);
  if ((layout & ~(uint32_t)IST_LAYOUT_PERMUTED) != 0) return false;
  sort_all(ndim, shape, strides, order);
  for (int32_t i = 0; i < ndim; i++) {
    out_minor_to_major[i] =
        layout == IST_LAYOUT_ROW_MAJOR ? ndim - 1 - i : order[i];
  }
  return true;
}

bool ist__layout_from_minor_to_major(int32_t ndim, const int64_t *shape,
                                     const int64_t *minor_to_major,
                                     int64_t *out_strides) {
  uint64_t seen = 0;
  int64_t dense = 1;
  for (int32_t k = 0; k < ndim; k++) {
    int64_t i = minor_to_major[k];
    if (i < 0 || i >= ndim || (seen >> i & 1) != 0) return false;
    seen |= UINT64_C(1) << i;
    out_strides[i] = dense;
    if (!ist__mul_i64(dense, at_least_one(shape[i]), &dense)) return false;
  }
  return true;
}
