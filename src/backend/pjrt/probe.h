// SPDX-License-Identifier: Apache-2.0
// probe.h: finds out what each memory of a client can do, by doing it on a few
// bytes. Nothing is believed: not that a slot is there, not a version, not
// what a plugin says of itself.

#ifndef ISTHMUS_BACKEND_PJRT_PROBE_H_
#define ISTHMUS_BACKEND_PJRT_PROBE_H_

#include "backend/pjrt/client.h"

// Fills in the capabilities of all memories, as far as routes need them. What
// fails is a capability less, with the reason in its finding and in the debug
// log. Fails: NO_ALLOCATION.
ist_code ist__pjrt_probe(ist__pjrt_client *client, ist_error *err);

// Tries the rest of what capability.def lists on each memory of a device, for a
// report. found: one for each memory of the device, with what is known already.
// losses: what is not tried, because it does not work; NULL: none.
// Fails: NO_ALLOCATION.
ist_code ist__pjrt_probe_rest(ist__pjrt_client *client, size_t device,
                              const ist__pjrt_losses *losses,
                              ist__pjrt_findings *found, ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_PROBE_H_
