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

// Validates a managed tensor: version first (another major: DLPACK_VERSION,
// and nothing after version is read), then flags, then the tensor. Also says
// who may write it when grant is FROM_SOURCE: READ_ONLY when flagged, when it
// overlaps or when it is unversioned, else WRITABLE. Borrows managed.
// Fails: as ist__view_check, and DLPACK_VERSION.
ist_code ist__dlpack_read(ist__managed managed, ist_grant grant, ist__view *out,
                          ist_grant *out_grant, ist_error *err);

// Calls the deleter, once; a NULL deleter is allowed.
void ist__dlpack_consume(ist__managed managed);

#endif  // ISTHMUS_DLPACK_DLPACK_READ_H_
