// SPDX-License-Identifier: Apache-2.0
// program_probe.h: finds out whether a client runs programs, by compiling and
// running one. That its slots are there says nothing.

#ifndef ISTHMUS_BACKEND_PJRT_PROGRAM_PROBE_H_
#define ISTHMUS_BACKEND_PJRT_PROGRAM_PROBE_H_

#include "backend/pjrt/client.h"

// Sets *out when a program ran right on the first device, whose memories were
// probed before. Why not goes to the log. Fails: NO_ALLOCATION.
ist_code ist__pjrt_probe_programs(ist__pjrt_client *client, bool *out,
                                  ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_PROGRAM_PROBE_H_
