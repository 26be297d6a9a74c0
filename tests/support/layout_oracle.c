// SPDX-License-Identifier: Apache-2.0
// layout_oracle.c: layouts by walking every element.

#include "support/layout_oracle.h"

#include <string.h>

bool next_index(int32_t ndim, const int64_t *shape, int64_t *index) {
  int32_t i = ndim - 1;
  while (i >= 0 && ++index[i] == shape[i]) index[i--] = 0;
  return i >= 0;
}

bool strides_meet(int32_t ndim, const int64_t *shape, const int64_t *strides) {
  bool seen[4096] = {false};
  int64_t index[IST_MAX_NDIM] = {0};
  int64_t lowest = 0;
  for (int32_t i = 0; i < ndim; i++) {
    if (strides[i] < 0) lowest += (shape[i] - 1) * strides[i];
  }
  do {
    int64_t at = -lowest;
    for (int32_t i = 0; i < ndim; i++) at += index[i] * strides[i];
    if (seen[at]) return true;
    seen[at] = true;
  } while (next_index(ndim, shape, index));
  return false;
}

// Joins the dimensions that a tile says to join.
static void join(int64_t *shape, int64_t *at, int32_t *n, int64_t *sizes,
                 int32_t *rank) {
  for (int32_t k = 0; k < *rank; k++) {
    if (sizes[k] != IST__TILE_COMBINE) continue;
    int32_t d = *n - *rank + k;
    size_t rest = (size_t)(*n - d - 1) * sizeof *shape;
    at[d + 1] += at[d] * shape[d + 1];
    shape[d + 1] *= shape[d];
    memmove(shape + d, shape + d + 1, rest);
    memmove(at + d, at + d + 1, rest);
    memmove(sizes + k, sizes + k + 1, (size_t)(*rank - k - 1) * sizeof *sizes);
    --*n;
    --*rank;
    k--;
  }
}

int64_t tile_address(const ist__tiling *in, const int64_t *index,
                     int64_t *room) {
  int64_t shape[3 * IST_MAX_NDIM], at[3 * IST_MAX_NDIM];
  int32_t n = in->ndim;
  for (int32_t i = 0; i < n; i++) {
    int64_t d = in->minor_to_major[n - 1 - i];
    shape[i] = in->shape[d];
    at[i] = index[d];
  }
  const int64_t *tile = in->tile_dims;
  for (size_t t = 0; t < in->tile_count; t++) {
    int32_t rank = (int32_t)in->tile_ranks[t];
    int64_t sizes[IST_MAX_NDIM];
    memcpy(sizes, tile, (size_t)rank * sizeof *tile);
    tile += rank;
    for (; n < rank; n++) {
      memmove(shape + 1, shape, (size_t)n * sizeof *shape);
      memmove(at + 1, at, (size_t)n * sizeof *at);
      shape[0] = 1;
      at[0] = 0;
    }
    join(shape, at, &n, sizes, &rank);
    for (int32_t k = 0; k < rank; k++) {
      int32_t d = n - rank + k;
      shape[n + k] = sizes[k];
      at[n + k] = at[d] % sizes[k];
      at[d] /= sizes[k];
      shape[d] = (shape[d] + sizes[k] - 1) / sizes[k];
    }
    n += rank;
  }
  int64_t sum = 0;
  *room = 1;
  for (int32_t i = 0; i < n; i++) {
    sum = sum * shape[i] + at[i];
    *room *= shape[i];
  }
  return sum;
}

bool tiling_is_linear(const ist__tiling *in) {
  int64_t index[IST_MAX_NDIM] = {0}, room, strides[IST_MAX_NDIM] = {0};
  for (int32_t i = 0; i < in->ndim; i++) {
    if (in->shape[i] < 2) continue;
    index[i] = 1;
    strides[i] = tile_address(in, index, &room);
    index[i] = 0;
  }
  do {
    int64_t sum = 0;
    for (int32_t i = 0; i < in->ndim; i++) sum += index[i] * strides[i];
    if (sum != tile_address(in, index, &room)) return false;
  } while (next_index(in->ndim, in->shape, index));
  return true;
}

// The address of an index through the strides.
static int64_t strided(const ist__untiled *out, int32_t ndim,
                       const int64_t *index) {
  int64_t sum = 0;
  int64_t rest[IST_MAX_NDIM];
  memcpy(rest, index, (size_t)ndim * sizeof *index);
  for (int32_t k = out->ndim - 1; k >= 0; k--) {
    int64_t *i = &rest[out->of[k]];
    sum += *i % out->shape[k] * out->strides[k];
    *i /= out->shape[k];
  }
  return sum;
}

bool tiling_is_right(const ist__tiling *in, ist__tiled_as as,
                     const ist__untiled *out) {
  int64_t index[IST_MAX_NDIM] = {0}, room;
  tile_address(in, index, &room);
  if (out->room != (uint64_t)room) return false;
  if (as == IST__TILED_AS_OPAQUE) return true;
  if (as == IST__TILED_AS_STRIDES && out->ndim != in->ndim) return false;
  do {
    if (strided(out, in->ndim, index) != tile_address(in, index, &room)) {
      return false;
    }
  } while (next_index(in->ndim, in->shape, index));
  return true;
}
