// SPDX-License-Identifier: Apache-2.0
// program_tiles.h: inputs of arguments that a program reads in tiles, or that
// lie in tiles themselves. Plugins compare sizes in bytes only, so how a
// buffer lies is compared here, and what lies otherwise is laid out anew.

#ifndef ISTHMUS_BACKEND_PJRT_PROGRAM_TILES_H_
#define ISTHMUS_BACKEND_PJRT_PROGRAM_TILES_H_

#include "backend/pjrt/pjrt_tensor.h"
#include "backend/pjrt/signature.h"

// An input whose dtype and shape fit its argument.
typedef struct ist__tiled_input {
  ist__pjrt_client *client;
  ist__pjrt_tensor *tensor;
  const ist__pjrt_argument *argument;
  size_t device;
  size_t index;   // for errors
  bool may_copy;  // to lay it out anew
} ist__tiled_input;

// True where an order of dimensions alone does not say how both lie.
static inline bool ist__pjrt_tiles_matter(const ist__pjrt_tensor *tensor,
                                          const ist__pjrt_argument *argument) {
  return (tensor->tiled || argument->layout.tile_count > 0) &&
         tensor->count > 0;
}

// Compares how the buffer lies with what the program reads. *out stays NULL
// where they are the same; else it is a copy that went through the host into
// the layout that the plugin gives to what is copied in, to be destroyed.
// Fails: TARGET_LAYOUT (it may not be copied, or its copy differs too), what
// copies fail with.
ist_code ist__pjrt_lay_out(const ist__tiled_input *input, PJRT_Buffer **out,
                           ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_PROGRAM_TILES_H_
