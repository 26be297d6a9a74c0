// SPDX-License-Identifier: Apache-2.0
// host.h: the host backend: memory of this process, in every context.

#ifndef ISTHMUS_BACKEND_HOST_H_
#define ISTHMUS_BACKEND_HOST_H_

#include "backend/context.h"

// Opens the host backend of a context, which counts on the context's own
// count. Gives *out (ist__backend_free closes it). Fails: NO_ALLOCATION.
ist_code ist__host_open(ist_context *context, ist_backend **out,
                        ist_error *err);

#endif  // ISTHMUS_BACKEND_HOST_H_
