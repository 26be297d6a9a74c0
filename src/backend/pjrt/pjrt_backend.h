// SPDX-License-Identifier: Apache-2.0
// pjrt_backend.h: opens a backend on a PJRT plugin.

#ifndef ISTHMUS_BACKEND_PJRT_PJRT_BACKEND_H_
#define ISTHMUS_BACKEND_PJRT_PJRT_BACKEND_H_

#include <isthmus/pjrt.h>

#include "backend/context.h"
#include "backend/pjrt/client.h"

// Opens options->path with the plugin's own options, probes what its memories
// can do. Gives *out. Fails: as ist__pjrt_client_open; BACKEND_ABI.
ist_code ist__pjrt_open(ist_context *context,
                        const ist_backend_options *options, ist_backend **out,
                        ist_error *err);

// The same on a live client of a host program, with its table and options as
// ist_pjrt_client_adopt has them, read. Gives *out.
// Fails: as ist__pjrt_client_adopt; BACKEND_ABI.
ist_code ist__pjrt_open_live(ist_context *context, const PJRT_Api *table,
                             PJRT_Client *live,
                             const ist_pjrt_client_options *options,
                             ist_backend **out, ist_error *err);

// The client behind a backend, or NULL where that is none of PJRT's. Lends it.
ist__pjrt_client *ist__pjrt_client_of(const ist_backend *backend);

#endif  // ISTHMUS_BACKEND_PJRT_PJRT_BACKEND_H_
