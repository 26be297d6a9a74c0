// SPDX-License-Identifier: Apache-2.0
// foreign.c: gives memory back once, whatever the plugin does when.

#include "backend/pjrt/foreign.h"

#include "base/alloc.h"

// The plugin may give the memory back on a thread of its own, after the
// backend was closed, and even from within a call that then fails. Mostly it
// does so within the destruction of the buffer, on that thread: what is meant
// for the other cases costs nothing then.
enum {
  ADOPTION_IS_OURS = 1,   // the call that made the view has succeeded
  ADOPTION_IS_GIVEN = 2,  // the plugin has said so
  ADOPTION_IS_OVER = 4,   // the owner has been told
  ADOPTION_IS_LEFT = 8    // the buffer's holder is gone; holds the client
};

static void tell_owner(ist__pjrt_adoption *a) {
  ist__pjrt_client *client = a->client;
  // What is released may be the last that holds the backend.
  atomic_fetch_add(&client->givers, 1);
  if (a->release != NULL) a->release(a->self);
  atomic_fetch_sub(&client->givers, 1);
  unsigned before = atomic_fetch_or(&a->state, ADOPTION_IS_OVER);
  if ((before & ADOPTION_IS_LEFT) == 0) return;
  ist__free(client->env, a);
  ist__pjrt_client_drop_in_callback(client);
}

// Within the destruction of the buffer: its holder waits below on this very
// thread, and holds the backend as long.
static bool is_within_leave(ist__pjrt_adoption *a) {
  pthread_t self = pthread_self();
  return atomic_load_explicit(&a->leaves, memory_order_acquire) &&
         pthread_equal(a->leaver, self);
}

static void memory_is_given_back(void *data, void *arg) {
  (void)data;
  ist__pjrt_adoption *a = arg;
  if (is_within_leave(a)) {
    unsigned state = atomic_load_explicit(&a->state, memory_order_relaxed);
    if ((state & ADOPTION_IS_GIVEN) != 0) return;
    state |= ADOPTION_IS_GIVEN | ADOPTION_IS_OVER;
    atomic_store_explicit(&a->state, state, memory_order_relaxed);
    if (a->release != NULL) a->release(a->self);
    return;
  }
  unsigned before = atomic_fetch_or(&a->state, ADOPTION_IS_GIVEN);
  bool first = (before & ADOPTION_IS_GIVEN) == 0;
  if (first && (before & ADOPTION_IS_OURS) != 0) tell_owner(a);
}

ist_code ist__pjrt_view_foreign_in(ist__pjrt_adoption **a_kept,
                                   const ist__pjrt_memory *memory,
                                   const ist__pjrt_shape *shape, void *data,
                                   PJRT_Buffer **out, ist_error *err) {
  ist__pjrt_adoption *a = *a_kept;
  ist__pjrt_client *client = a->client;
  atomic_init(&a->state, 0);
  atomic_init(&a->leaves, false);
  ist_code code = ist__pjrt_view(client, memory, shape, data,
                                 memory_is_given_back, a, out, err);
  if (code != IST_OK) return code;
  if (*out == NULL) {
    // Nobody knows whether the plugin made a view: what it may still call
    // stays as long as the client does. It is not ours, so it releases nothing.
    ist__pjrt_client_keep_lost(client, &a->lost);
    *a_kept = NULL;
    return ist__pjrt_no_buffer(&client->plugin.pjrt,
                               IST_SLOT_Client_CreateViewOfDeviceBuffer, err);
  }
  unsigned before = atomic_fetch_or(&a->state, ADOPTION_IS_OURS);
  if ((before & ADOPTION_IS_GIVEN) != 0) tell_owner(a);
  return IST_OK;
}

// The rest is another thread's to do, perhaps after the backend was closed.
static void leave_to_plugin(ist__pjrt_client *client, ist__pjrt_adoption *a) {
  ist__refcount_take(&client->holders);
  unsigned before = atomic_fetch_or(&a->state, ADOPTION_IS_LEFT);
  if ((before & ADOPTION_IS_OVER) == 0) return;
  ist__free(client->env, a);
  ist__pjrt_client_drop(client);
}

void ist__pjrt_adoption_leave(ist__pjrt_adoption *a, PJRT_Buffer *buffer) {
  ist__pjrt_client *client = a->client;
  if (buffer != NULL) {
    a->leaver = pthread_self();
    atomic_store_explicit(&a->leaves, true, memory_order_release);
    ist__pjrt_destroy(&client->plugin.pjrt, buffer);
    // From here on this thread may come from the plugin, too.
    atomic_store_explicit(&a->leaves, false, memory_order_release);
  }
  unsigned state = atomic_load_explicit(&a->state, memory_order_acquire);
  if ((state & ADOPTION_IS_OVER) != 0) {
    ist__free(client->env, a);
  } else {
    leave_to_plugin(client, a);
  }
}

ist_code ist__pjrt_view_foreign(ist__pjrt_client *client,
                                const ist__pjrt_memory *memory,
                                const ist__pjrt_shape *shape, void *data,
                                ist_release_fn release, void *self,
                                PJRT_Buffer **out, ist_error *err) {
  *out = NULL;
  ist__pjrt_adoption *a =
      ist__alloc(client->env, sizeof *a, _Alignof(max_align_t));
  if (a == NULL) return ist__error_memory(err, "a view", sizeof *a);
  a->client = client;
  a->release = release;
  a->self = self;
  ist_code code = ist__pjrt_view_foreign_in(&a, memory, shape, data, out, err);
  if (code != IST_OK) {
    ist__free(client->env, a);
    return code;
  }
  ist__pjrt_adoption_leave(a, NULL);
  return IST_OK;
}
