// SPDX-License-Identifier: Apache-2.0
// pjrt_backend.h: opens a backend on a PJRT plugin.

#ifndef ISTHMUS_BACKEND_PJRT_PJRT_BACKEND_H_
#define ISTHMUS_BACKEND_PJRT_PJRT_BACKEND_H_

#include "backend/context.h"

// Opens options->path with the plugin's own options, probes what its memories
// can do. Gives *out. Fails: as ist__pjrt_client_open; BACKEND_ABI.
ist_code ist__pjrt_open(ist_context *context,
                        const ist_backend_options *options, ist_backend **out,
                        ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_PJRT_BACKEND_H_
