// SPDX-License-Identifier: Apache-2.0
// Memory of the lying plugin that is really tiled, T(2,2), as the rule `tiled`
// says: which buffers lie so, how large they are, and where elements lie.

#include "lying.h"

bool lying_tiles_shape(const int64_t *dims, size_t rank) {
  if (lying.rules.tiled[0] == '\0' || rank < 2) return false;
  return LYING_IS(tiled, "all") || dims[rank - 2] >= 4;
}

static size_t pairs(int64_t extent) {
  return ((size_t)extent + 1) / 2;
}

void lying_buffer_measure(PJRT_Buffer *buffer) {
  size_t count = lying_count(buffer->dims, buffer->rank);
  if (buffer->tiled && count != 0) {
    for (size_t k = 0; k < 2; k++) {
      int64_t extent = buffer->dims[buffer->minor_to_major[k]];
      count = count / (size_t)extent * 2 * pairs(extent);
    }
  }
  buffer->size = (count * lying_type_bits(buffer->type) + 7) / 8;
}

// The order of a program's output in the rule's turned memory.
void lying_turn(int64_t *minor_to_major, size_t rank) {
  minor_to_major[0] = (int64_t)rank - 2;
  minor_to_major[1] = (int64_t)rank - 1;
}

size_t lying_tiled_place(const PJRT_Buffer *b, const size_t *index) {
  int64_t minor = b->minor_to_major[0], next = b->minor_to_major[1];
  size_t across = pairs(b->dims[minor]), down = pairs(b->dims[next]);
  size_t outer = 0, step = 1;
  for (size_t k = 2; k < b->rank; k++) {
    outer += index[b->minor_to_major[k]] * step;
    step *= (size_t)b->dims[b->minor_to_major[k]];
  }
  size_t tile = (outer * down + index[next] / 2) * across + index[minor] / 2;
  return tile * 4 + index[next] % 2 * 2 + index[minor] % 2;
}
