// SPDX-License-Identifier: Apache-2.0
// A PJRT plugin called with nothing in between: what the benches compare
// isthmus with. Not how the library calls one: that is backend/pjrt/call.

#ifndef ISTHMUS_BENCH_BARE_PJRT_H
#define ISTHMUS_BENCH_BARE_PJRT_H

#include "backend/pjrt/abi.h"

typedef struct bare_pjrt {
  const PJRT_Api *api;
  PJRT_Client *client;
  PJRT_Device *device;
} bare_pjrt;

// Loads a plugin and makes a client; ends the program when it cannot. The
// plugin stays loaded.
bare_pjrt bare_open(const char *path);

// Calls a slot with its argument block; ends the program on an error.
void bare_call(const bare_pjrt *bare, enum ist_pjrt_slot slot, void *args);

// A view of count floats, whose release calls on_delete.
PJRT_Buffer *bare_view(const bare_pjrt *bare, float *data, int64_t count,
                       ist_pjrt_on_delete on_delete);

// Waits for an event and destroys it; for a buffer's values.
void bare_await_event(const bare_pjrt *bare, PJRT_Event *event);
void bare_await(const bare_pjrt *bare, PJRT_Buffer *buffer);

// Destroys a buffer.
void bare_destroy(const bare_pjrt *bare, PJRT_Buffer *buffer);

#endif
