// SPDX-License-Identifier: Apache-2.0
// adopt_buffer.h: a live PJRT_Buffer of a host program becomes a buffer of the
// backend. Not for views of foreign memory: that is foreign.h.

#ifndef ISTHMUS_BACKEND_PJRT_ADOPT_BUFFER_H_
#define ISTHMUS_BACKEND_PJRT_ADOPT_BUFFER_H_

#include "backend/pjrt/pjrt_tensor.h"

// Asks the plugin where a buffer lies and what it holds; its values may still
// be computed. *device and *memory are the numbers of its place. The buffer is
// borrowed in *out. Gives *out. Fails: NOT_ADDRESSABLE, DELETED, BUFFER, and as
// ist__pjrt_tensor_of.
ist_code ist__pjrt_buffer_adopt(ist__pjrt_client *client, PJRT_Buffer *buffer,
                                size_t *device, size_t *memory,
                                ist__pjrt_tensor **out, ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_ADOPT_BUFFER_H_
