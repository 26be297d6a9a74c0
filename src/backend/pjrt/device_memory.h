// SPDX-License-Identifier: Apache-2.0
// device_memory.h: what a plugin tells of a device's memory, and the slots of
// a backend that say so where the device has run out of it.

#ifndef ISTHMUS_BACKEND_PJRT_DEVICE_MEMORY_H_
#define ISTHMUS_BACKEND_PJRT_DEVICE_MEMORY_H_

#include <isthmus/backend.h>
#include <isthmus/pjrt.h>

#include "backend/pjrt/client.h"

// Asks for the statistics; what is not told, or cannot be, is -1.
// Fails: PLUGIN_SLOT, PLUGIN.
ist_code ist__pjrt_memory_ask(const ist__pjrt *pjrt, PJRT_Device *device,
                              ist_pjrt_memory_use *out, ist_error *err);

// Puts before the slots of ops that allocate the same ones with a better
// message: one that fails with OUT_OF_DEVICE_MEMORY says how much was asked
// for, where that is known, and how the device's memory is used.
void ist__pjrt_memory_watch(ist_backend_ops *ops);

#endif  // ISTHMUS_BACKEND_PJRT_DEVICE_MEMORY_H_
