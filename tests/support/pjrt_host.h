// SPDX-License-Identifier: Apache-2.0
// pjrt_host.h: a program that speaks PJRT itself, as a test plays it: it loads
// a plugin, makes a client and buffers, and destroys them.

#ifndef TESTS_SUPPORT_PJRT_HOST_H
#define TESTS_SUPPORT_PJRT_HOST_H

#include <isthmus/pjrt.h>

#include "backend/pjrt/abi.h"
#include "support/pjrt_support.h"

typedef struct pjrt_host {
  pjrt_bench bench;  // its context; its backend is what the test adopts
  const PJRT_Api *api;
  PJRT_Client *client;
  atomic_int returned;  // how often host_client_returned was called
} pjrt_host;

// Loads a plugin by key and makes a client; rules are for the lying plugin.
void host_open(pjrt_host *host, const char *key, const char *rules);
// Releases the backend, destroys the client unless it is NULL, and asserts that
// nothing is left.
void host_close(pjrt_host *host);
// Calls a slot that must succeed.
void host_call(const pjrt_host *host, int slot, void *args);

// Adopts the client as host->bench.backend, borrowed, or takes it.
void host_adopt(pjrt_host *host, ist_pjrt_ownership ownership);
// A release that counts; self is the host.
void host_client_returned(void *self);

// A buffer of float32 of 2 by 3: 0.5, 1.5, ... 5.5, ready.
PJRT_Buffer *host_buffer(const pjrt_host *host, size_t device);
void host_destroy_buffer(const pjrt_host *host, PJRT_Buffer *buffer);
void host_delete_buffer(const pjrt_host *host, PJRT_Buffer *buffer);
// Asserts that a buffer of host_buffer's holds its values.
void host_assert_values(const pjrt_host *host, PJRT_Buffer *buffer);

#endif
