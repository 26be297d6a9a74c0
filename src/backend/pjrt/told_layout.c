// SPDX-License-Identifier: Apache-2.0
// told_layout.c: an order of dimensions and tiles, read, compared and written.

#include "backend/pjrt/told_layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tensor/layout.h"

// The tiles as XLA writes them: "T(8,128)(2,1)", cut where there is no room.
static void add_tiles(ist__text *text, const int64_t *dims, const size_t *ranks,
                      size_t count) {
  ist__text_add(text, "T");
  for (size_t i = 0; i < count; i++) {
    for (size_t d = 0; d < ranks[i]; d++, dims++) {
      ist__text_add(text, d == 0 ? "(" : ",");
      if (*dims == IST__TILE_COMBINE) {
        ist__text_add(text, "*");
      } else {
        ist__text_add(text, "%" PRId64, *dims);
      }
    }
    ist__text_add(text, ")");
  }
}

// Why a layout has no dense order; its tiles were read before, so that their
// numbers are there.
static void say_why(const ist__tiling *in, ist__tiled_as as,
                    const ist__untiled *told, uint64_t count, char *why) {
  char tiles[48];
  ist__text text = ist__text_make(tiles, sizeof tiles);
  add_tiles(&text, in->tile_dims, in->tile_ranks, in->tile_count);
  switch (as) {
    case IST__TILED_AS_STRIDES:
      snprintf(why, IST_TOLD_WHY, "tiled %s, with gaps between its rows",
               tiles);
      break;
    case IST__TILED_AS_SPLIT:
      snprintf(why, IST_TOLD_WHY,
               "tiled %s: only a view of %d dimensions could show it", tiles,
               (int)told->ndim);
      break;
    case IST__TILED_AS_OPAQUE:
    case IST__TILED_AS_NOTHING:
      snprintf(why, IST_TOLD_WHY,
               "tiled %s: its %" PRIu64 " elements lie scattered over %" PRIu64,
               tiles, count, told->room);
      break;
  }
}

// Keeps the tiles. False where there are more than there is room for.
static bool keep_tiles(const ist__tiling *in, ist__told_layout *out) {
  size_t used = 0;
  if (in->tile_count > IST_TOLD_TILES) return false;
  for (size_t i = 0; i < in->tile_count; i++) {
    if (in->tile_ranks[i] > IST_TOLD_TILE_DIMS - used) return false;
    out->tile_ranks[i] = in->tile_ranks[i];
    used += in->tile_ranks[i];
  }
  if (used > 0) memcpy(out->tile_dims, in->tile_dims, used * sizeof(int64_t));
  out->tile_count = in->tile_count;
  return true;
}

// A layout without tiles, whose order is kept as it was told.
static bool read_order(const ist__tiling *in, ist__told_layout *out) {
  uint64_t seen = 0;
  for (int32_t i = 0; i < in->ndim; i++) {
    int64_t d = in->minor_to_major[i];
    if (d < 0 || d >= in->ndim || (seen >> d & 1) != 0) {
      snprintf(out->why, sizeof out->why, "no order of its dimensions");
      return false;
    }
    seen |= UINT64_C(1) << d;
    out->order[i] = d;
  }
  out->dense = true;
  return true;
}

bool ist__told_layout_read(const ist__tiling *in, ist__told_layout *out) {
  ist__untiled told;
  uint64_t count = 1;
  memset(out, 0, sizeof *out);
  if (in->tile_count == 0) return read_order(in, out);
  ist__tiled_as as = ist__layout_from_tiles(in, &told);
  if (as == IST__TILED_AS_NOTHING) {
    snprintf(out->why, sizeof out->why, "tiled in a way that cannot be");
    return false;
  }
  for (int32_t i = 0; i < in->ndim; i++) {
    count *= (uint64_t)in->shape[i];  // fits: room is not below it
  }
  out->dense =
      as == IST__TILED_AS_STRIDES &&
      ist__layout_minor_to_major(in->ndim, in->shape, told.strides, out->order);
  if (!out->dense) say_why(in, as, &told, count, out->why);
  // What cuts nothing, and pads nothing at the end either, is no tile.
  if (out->dense && told.room == count) return true;
  if (!out->dense && in->ndim > 0) {
    memcpy(out->order, in->minor_to_major, (size_t)in->ndim * sizeof(int64_t));
  }
  if (keep_tiles(in, out)) return true;
  snprintf(out->why, sizeof out->why, "tiled by more than %d tiles",
           IST_TOLD_TILES);
  return false;
}

void ist__told_layout_dense(int32_t ndim, const int64_t *order,
                            ist__told_layout *out) {
  memset(out, 0, sizeof *out);
  out->dense = true;
  if (ndim > 0) memcpy(out->order, order, (size_t)ndim * sizeof(int64_t));
}

static bool same_tiles(const ist__told_layout *a, const ist__told_layout *b) {
  size_t dims = 0;
  for (size_t i = 0; i < a->tile_count; i++) {
    if (a->tile_ranks[i] != b->tile_ranks[i]) return false;
    dims += a->tile_ranks[i];
  }
  return memcmp(a->tile_dims, b->tile_dims, dims * sizeof(int64_t)) == 0;
}

bool ist__told_layout_same(const ist__told_layout *a, const ist__told_layout *b,
                           int32_t ndim, const int64_t *dims) {
  if (a->tile_count != b->tile_count || !same_tiles(a, b)) return false;
  if (ndim == 0 ||
      memcmp(a->order, b->order, (size_t)ndim * sizeof(int64_t)) == 0) {
    return true;
  }
  int64_t one[IST_MAX_NDIM], other[IST_MAX_NDIM];
  if (a->tile_count > 0 ||
      !ist__layout_from_minor_to_major(ndim, dims, a->order, one) ||
      !ist__layout_from_minor_to_major(ndim, dims, b->order, other)) {
    return false;
  }
  // The place of a dimension of one index says nothing.
  for (int32_t i = 0; i < ndim; i++) {
    if (dims[i] > 1 && one[i] != other[i]) return false;
  }
  return true;
}

void ist__told_layout_text(const ist__told_layout *layout, int32_t ndim,
                           char *out, size_t size) {
  ist__text text = ist__text_make(out, size);
  ist__text_add(&text, "{");
  for (int32_t i = 0; i < ndim; i++) {
    ist__text_add(&text, i == 0 ? "%" PRId64 : ",%" PRId64, layout->order[i]);
  }
  if (layout->tile_count > 0) {
    ist__text_add(&text, ":");
    add_tiles(&text, layout->tile_dims, layout->tile_ranks, layout->tile_count);
  }
  ist__text_add(&text, "}");
}
