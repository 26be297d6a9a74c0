// SPDX-License-Identifier: Apache-2.0
// foreign.h: views of memory that somebody else owns, with the promise that
// its owner hears exactly once that it is not used any more.

#ifndef ISTHMUS_BACKEND_PJRT_FOREIGN_H_
#define ISTHMUS_BACKEND_PJRT_FOREIGN_H_

#include "backend/pjrt/buffer.h"

// A view's way back: the first member of an allocation of client->env, which
// holds it until the plugin has given the memory back and the holder of the
// buffer has left it.
typedef struct ist__pjrt_adoption {
  ist__pjrt_lost lost;
  ist__pjrt_client *client;
  ist_release_fn release;
  void *self;
  atomic_uint state;
  atomic_bool leaves;  // leaver is set, and destroys the buffer
  pthread_t leaver;
} ist__pjrt_adoption;

// Makes a buffer that views data. After success release(self) is called once,
// on any thread, perhaps one of the plugin's, perhaps after the client was
// closed; after a failure it is never called. client is held until then.
// Fails: as ist__pjrt_view, NO_ALLOCATION.
ist_code ist__pjrt_view_foreign(ist__pjrt_client *client,
                                const ist__pjrt_memory *memory,
                                const ist__pjrt_shape *shape, void *data,
                                ist_release_fn release, void *self,
                                PJRT_Buffer **out, ist_error *err);

// The same in an allocation of the caller's, with client, release and self set.
// After success call ist__pjrt_adoption_leave in place of freeing it. After a
// failure it is the caller's as before; where the client had to keep it for a
// plugin that gave nothing, *a_kept is NULL, else as it was.
ist_code ist__pjrt_view_foreign_in(ist__pjrt_adoption **a_kept,
                                   const ist__pjrt_memory *memory,
                                   const ist__pjrt_shape *shape, void *data,
                                   PJRT_Buffer **out, ist_error *err);

// Destroys the buffer, unless it is NULL: somebody else's by now. Frees the
// allocation at once, or when the plugin gives the memory back. The caller
// holds the backend meanwhile.
void ist__pjrt_adoption_leave(ist__pjrt_adoption *a, PJRT_Buffer *buffer);

#endif  // ISTHMUS_BACKEND_PJRT_FOREIGN_H_
