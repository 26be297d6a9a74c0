// SPDX-License-Identifier: Apache-2.0
// foreign.c: gives memory back once, whatever the plugin does when.

#include "backend/pjrt/foreign.h"

#include "base/alloc.h"

// The plugin may give the memory back on a thread of its own, after the
// backend was closed, and even from within a call that then fails.
typedef struct adoption {
  ist__pjrt_lost lost;
  ist__pjrt_client *client;
  ist_release_fn release;
  void *self;
  atomic_uint state;
} adoption;

enum {
  ADOPTION_IS_OURS = 1,  // the call that made the view has succeeded
  ADOPTION_IS_OVER = 2   // the plugin has given the memory back
};

static void adoption_end(adoption *a) {
  ist__pjrt_client *client = a->client;
  ist_release_fn release = a->release;
  void *self = a->self;
  ist__free(client->env, a);
  // What is released may be the last that holds the backend.
  atomic_fetch_add(&client->givers, 1);
  if (release != NULL) release(self);
  atomic_fetch_sub(&client->givers, 1);
  ist__pjrt_client_drop_in_callback(client);
}

static void memory_is_given_back(void *data, void *arg) {
  (void)data;
  adoption *a = arg;
  if (atomic_fetch_or(&a->state, ADOPTION_IS_OVER) == ADOPTION_IS_OURS) {
    adoption_end(a);
  }
}

ist_code ist__pjrt_view_foreign(ist__pjrt_client *client,
                                const ist__pjrt_memory *memory,
                                const ist__pjrt_shape *shape, void *data,
                                ist_release_fn release, void *self,
                                PJRT_Buffer **out, ist_error *err) {
  *out = NULL;
  adoption *a = ist__alloc_zero(client->env, sizeof *a);
  if (a == NULL) return ist__error_memory(err, "a view", sizeof *a);
  a->client = client;
  a->release = release;
  a->self = self;
  atomic_init(&a->state, 0);
  ist_code code = ist__pjrt_view(client, memory, shape, data,
                                 memory_is_given_back, a, out, err);
  if (code != IST_OK) {
    ist__free(client->env, a);
    return code;
  }
  if (*out == NULL) {
    // Nobody knows whether the plugin made a view: what it may still call
    // stays as long as the client does. It is not ours, so it releases nothing.
    ist__pjrt_client_keep_lost(client, &a->lost);
    return ist__pjrt_no_buffer(&client->plugin.pjrt,
                               IST_SLOT_Client_CreateViewOfDeviceBuffer, err);
  }
  ist__refcount_take(&client->holders);
  if (atomic_fetch_or(&a->state, ADOPTION_IS_OURS) == ADOPTION_IS_OVER) {
    adoption_end(a);
  }
  return IST_OK;
}
