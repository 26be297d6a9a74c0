// SPDX-License-Identifier: Apache-2.0
// dlpack_read.h: managed tensors of either kind from outside, validated.

#ifndef ISTHMUS_DLPACK_DLPACK_READ_H_
#define ISTHMUS_DLPACK_DLPACK_READ_H_

#include "tensor/view.h"

// A managed tensor of either kind, not yet consumed. Exactly one is set.
typedef struct ist__managed {
  DLManagedTensorVersioned *versioned;
  DLManagedTensor *legacy;
} ist__managed;

// What is known of the producer and not said by its tensor.
typedef struct ist__told {
  ist_grant grant;
  ist_packing packing;  // of a tensor without version; AS_IS: not known
} ist__told;

// Validates a managed tensor: version first (another major: DLPACK_VERSION,
// and nothing after version is read), then flags, then the tensor. Also says
// who may write it when grant is FROM_SOURCE: READ_ONLY when flagged, when it
// overlaps or when it is unversioned, else WRITABLE. told may be NULL: nothing
// is. Borrows all. Fails: as ist__view_check, DLPACK_VERSION, and PACKING for
// sub-byte elements of which nothing tells how they lie.
ist_code ist__dlpack_read(ist__managed managed, const ist__told *told,
                          ist__view *out, ist_grant *out_grant, ist_error *err);

// Calls the deleter, once; a NULL deleter is allowed.
void ist__dlpack_consume(ist__managed managed);

#endif  // ISTHMUS_DLPACK_DLPACK_READ_H_
