// SPDX-License-Identifier: Apache-2.0
// told_layout.h: how elements lie on a device, as a plugin tells it of a buffer
// or a program of an argument: an order of dimensions, and tiles where they
// change anything. Read from numbers that nobody trusts, compared, and written
// as XLA writes it. Not what an address of such a buffer is good for.

#ifndef ISTHMUS_BACKEND_PJRT_TOLD_LAYOUT_H_
#define ISTHMUS_BACKEND_PJRT_TOLD_LAYOUT_H_

#include "tensor/tiles.h"

enum {
  IST_TOLD_TILES = 4,       // XLA's backends use up to three of a layout
  IST_TOLD_TILE_DIMS = 24,  // in all of them together
  IST_TOLD_WHY = 160,       // room for a reason
  IST_TOLD_TEXT = 160       // room for a layout in words
};

typedef struct ist__told_layout {
  bool dense;         // its elements lie dense, in order
  size_t tile_count;  // 0 also where its tiles change nothing at all
  size_t tile_ranks[IST_TOLD_TILES];
  int64_t tile_dims[IST_TOLD_TILE_DIMS];  // of all tiles, one after another
  int64_t order[IST_MAX_NDIM];            // minor to major
  char why[IST_TOLD_WHY];  // where not dense: why not, with the tiles named
} ist__told_layout;

// Reads a layout. False, and why in out->why, for what is none, or has more
// tiles than are followed here.
bool ist__told_layout_read(const ist__tiling *tiling, ist__told_layout *out);

// A dense layout without tiles.
void ist__told_layout_dense(int32_t ndim, const int64_t *order,
                            ist__told_layout *out);

// True when both put every element of such extents at the same place, in
// memory of the same size, as far as their numbers show it: those that are
// tiled are compared tile by tile.
bool ist__told_layout_same(const ist__told_layout *a, const ist__told_layout *b,
                           int32_t ndim, const int64_t *dims);

// "{1,0:T(8,128)(2,1)}", cut where there is no room.
void ist__told_layout_text(const ist__told_layout *layout, int32_t ndim,
                           char *out, size_t size);

#endif  // ISTHMUS_BACKEND_PJRT_TOLD_LAYOUT_H_
