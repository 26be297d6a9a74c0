// SPDX-License-Identifier: Apache-2.0
// tiles.h: XLA's tiled layouts as strides, where they can be. Numbers only.
//
// A tile of rank r cuts the r most minor dimensions of the shape, taken in the
// layout's order (with leading ones where there are fewer): an extent d and a
// tile extent t become the two extents ceil(d / t) and t; the outer ones of all
// r come first, the inner ones after them. What is missing to a multiple is
// padding. The next tile cuts the result in the same way. A tile extent of
// IST__TILE_COMBINE first joins its dimension with the next more minor one.
// (XLA, "Tiled layout"; the constant is Tile::kCombineDimension.)
//
// One direction only. The other has no one answer: the strides of a shape taken
// apart are those of many tilings (each order of cuts that pads nothing, each
// tile of tiles), and padded ones have no strides at all. Whoever needs a
// tiling back has the one that these came from. Minor-to-major goes both ways:
// layout.h.

#ifndef ISTHMUS_TENSOR_TILES_H_
#define ISTHMUS_TENSOR_TILES_H_

#include <isthmus/isthmus.h>

#define IST__TILE_COMBINE INT64_MIN

// A tiled layout as PJRT tells it. Hostile: nothing of it is believed.
typedef struct ist__tiling {
  int32_t ndim;                   // 0 to IST_MAX_NDIM
  const int64_t *shape;           // ndim, none negative
  const int64_t *minor_to_major;  // ndim
  const int64_t *tile_dims;       // of all tiles, one after another
  const size_t *tile_ranks;       // tile_count
  size_t tile_count;
  uint32_t bits;  // of an element, for nbytes
} ist__tiling;

typedef enum ist__tiled_as {
  IST__TILED_AS_NOTHING = 0,  // it is no layout: see tiles.c, "is no layout"
  IST__TILED_AS_OPAQUE = 1,   // no strides reach its elements alone: padding
                              // between them, or a cut across dimensions
  IST__TILED_AS_SPLIT = 2,    // strides, when dimensions are taken apart
  IST__TILED_AS_STRIDES = 3   // strides of the same shape
} ist__tiled_as;

// The elements as strides. For AS_STRIDES ndim and shape are the layout's own.
// For AS_SPLIT dimension k is a part of dimension of[k], and the parts of a
// dimension stand together, the most major one first.
typedef struct ist__untiled {
  int32_t ndim;
  uint64_t room;    // elements with padding; set unless AS_NOTHING
  uint64_t nbytes;  // of room
  int64_t shape[IST_MAX_NDIM];
  int64_t strides[IST_MAX_NDIM];  // in elements
  int32_t of[IST_MAX_NDIM];
} ist__untiled;

// Says how a tiled layout can be told by strides, and tells it. With no tile it
// is ist__layout_from_minor_to_major.
ist__tiled_as ist__layout_from_tiles(const ist__tiling *tiling,
                                     ist__untiled *out);

#endif  // ISTHMUS_TENSOR_TILES_H_
