// SPDX-License-Identifier: Apache-2.0
// buffer.h: what can be done with one PJRT_Buffer, call by call, with the
// plugins' traps stepped around. Used by the probe, the backend and programs.

#ifndef ISTHMUS_BACKEND_PJRT_BUFFER_H_
#define ISTHMUS_BACKEND_PJRT_BUFFER_H_

#include "backend/pjrt/client.h"
#include "backend/pjrt/told_layout.h"

// Element type and extents of a buffer, and its order of dimensions; NULL is
// row-major, which also costs the plugins less than an explicit layout.
typedef struct ist__pjrt_shape {
  int32_t type;  // PJRT_Buffer_Type
  int32_t ndim;
  const int64_t *dims;
  const int64_t *minor_to_major;
} ist__pjrt_shape;

// False for what kills a plugin of this minor: unknown and invalid types,
// TOKEN, S1 and U1 before 0.94, the F6 types before 0.114.
bool ist__pjrt_type_is_safe(int minor, int32_t type);

// Makes a buffer that views data. on_delete is never NULL: the plugins abort
// on that at the end. When this fails, on_delete is not needed any more; when
// it gives NULL and IST_OK, so did the plugin, which may call it at any time.
// Fails: TARGET_DTYPE, SHAPE, PLUGIN, PLUGIN_SLOT.
ist_code ist__pjrt_view(const ist__pjrt_client *client,
                        const ist__pjrt_memory *memory,
                        const ist__pjrt_shape *shape, void *data,
                        ist_pjrt_on_delete on_delete, void *arg,
                        PJRT_Buffer **out, ist_error *err);

// The error of a slot that gave no buffer and no error: PLUGIN.
ist_code ist__pjrt_no_buffer(const ist__pjrt *pjrt, int slot, ist_error *err);

// Makes a buffer from dense row-major host elements, one to a byte when they
// are smaller; data is not read after the return. shape must be row-major.
// Fails: TARGET_DTYPE, SHAPE, PLUGIN, PLUGIN_SLOT.
ist_code ist__pjrt_from_host(const ist__pjrt_client *client,
                             const ist__pjrt_memory *memory,
                             const ist__pjrt_shape *shape, const void *data,
                             PJRT_Buffer **out, ist_error *err);

// Copies a buffer to exactly size bytes of host memory and waits for them.
// Permuted buffers arrive in an order that the probe found out.
// Fails: BUFFER, PLUGIN, PLUGIN_SLOT.
ist_code ist__pjrt_to_host(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                           void *target, uint64_t size, ist_error *err);

// Fails for a buffer that was deleted or donated.
// Fails: DELETED, PLUGIN.
ist_code ist__pjrt_alive(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                         ist_error *err);

// Waits until a buffer's values are there. Fails: BUFFER (making them failed),
// DELETED, PLUGIN, PLUGIN_SLOT.
ist_code ist__pjrt_ready(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                         ist_error *err);

// The address that the plugin tells; wait for the buffer first: it is told for
// buffers without values too. Fails: PLUGIN, PLUGIN_SLOT.
ist_code ist__pjrt_address(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                           void **out, ist_error *err);

// Takes and gives back an external reference, from any thread.
// Fails: PLUGIN, PLUGIN_SLOT.
ist_code ist__pjrt_hold(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                        ist_error *err);
void ist__pjrt_unhold(const ist__pjrt *pjrt, PJRT_Buffer *buffer);

// How a buffer of these extents says that it lies.
// Fails: TARGET_LAYOUT (strided, no permutation, tiles that cannot be), PLUGIN,
// PLUGIN_SLOT.
ist_code ist__pjrt_layout(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                          int32_t ndim, const int64_t *dims,
                          ist__told_layout *out, ist_error *err);

// The same where it lies dense: its order of dimensions.
// Fails: as above; TARGET_LAYOUT also for tiles that leave no dense order.
ist_code ist__pjrt_order(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                         int32_t ndim, const int64_t *dims,
                         int64_t *minor_to_major, ist_error *err);

// Frees a buffer. External references do not hold it back.
void ist__pjrt_destroy(const ist__pjrt *pjrt, PJRT_Buffer *buffer);

#endif  // ISTHMUS_BACKEND_PJRT_BUFFER_H_
