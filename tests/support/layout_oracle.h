// SPDX-License-Identifier: Apache-2.0
// layout_oracle.h: what layouts are, by walking every element: slow answers
// for tests to hold the quick ones against. Extents are small, and none is 0.

#ifndef ISTHMUS_TESTS_SUPPORT_LAYOUT_ORACLE_H_
#define ISTHMUS_TESTS_SUPPORT_LAYOUT_ORACLE_H_

#include "tensor/tiles.h"

// Steps to the next index in row-major order; false after the last.
bool next_index(int32_t ndim, const int64_t *shape, int64_t *index);

// Do two indices share an address? At most 4096 addresses are reached.
bool strides_meet(int32_t ndim, const int64_t *shape, const int64_t *strides);

// The address of an index by XLA's definition, word for word: the shape and
// the index in the layout's order, then for each tile joined, cut and put
// together; at the end the tiled shape is row-major, of room elements.
int64_t tile_address(const ist__tiling *in, const int64_t *index,
                     int64_t *room);

// Do strides of the same rank reach each element?
bool tiling_is_linear(const ist__tiling *in);

// Is what ist__layout_from_tiles told (not AS_NOTHING) so?
bool tiling_is_right(const ist__tiling *in, ist__tiled_as as,
                     const ist__untiled *out);

#endif  // ISTHMUS_TESTS_SUPPORT_LAYOUT_ORACLE_H_
