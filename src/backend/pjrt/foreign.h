// SPDX-License-Identifier: Apache-2.0
// foreign.h: views of memory that somebody else owns, with the promise that
// its owner hears exactly once that it is not used any more.

#ifndef ISTHMUS_BACKEND_PJRT_FOREIGN_H_
#define ISTHMUS_BACKEND_PJRT_FOREIGN_H_

#include "backend/pjrt/buffer.h"

// Makes a buffer that views data. After success release(self) is called once,
// on any thread, perhaps one of the plugin's, perhaps after the client was
// closed; after a failure it is never called. client is held until then.
// Fails: as ist__pjrt_view, NO_ALLOCATION.
ist_code ist__pjrt_view_foreign(ist__pjrt_client *client,
                                const ist__pjrt_memory *memory,
                                const ist__pjrt_shape *shape, void *data,
                                ist_release_fn release, void *self,
                                PJRT_Buffer **out, ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_FOREIGN_H_
