// SPDX-License-Identifier: Apache-2.0
// pjrt_tensor.h: the slots of a backend that make, read, lend and free
// buffers, for a PJRT client.

#ifndef ISTHMUS_BACKEND_PJRT_PJRT_TENSOR_H_
#define ISTHMUS_BACKEND_PJRT_PJRT_TENSOR_H_

#include "backend/pjrt/foreign.h"
#include "tensor/dtype.h"

// A buffer of the backend: the plugin's, with what must not be asked again.
typedef struct ist__pjrt_tensor {
  ist__pjrt_adoption adoption;  // used when is_view
  PJRT_Buffer *buffer;
  const ist__pjrt_memory *memory;
  const ist__dtype *dtype;
  uint64_t count;  // elements
  int32_t ndim;
  bool is_view;      // of memory that is not the plugin's
  bool permuted;     // else row-major
  bool order_known;  // shape is what the plugin was told or has told
  bool tiled;        // not dense: read by the plugin alone; order is its tiles'
  bool dynamic;      // padded on the device; the extents here are the true ones
  bool is_borrowed;  // the buffer is a host program's: not deleted or destroyed
  ist_release_fn returned;  // called once when it is not used any more, or NULL
  void *returned_self;
  int64_t numbers[];  // ndim extents, then ndim of minor-to-major
} ist__pjrt_tensor;

static inline int64_t *ist__pjrt_tensor_dims(ist__pjrt_tensor *tensor) {
  return tensor->numbers;
}
static inline int64_t *ist__pjrt_tensor_order(ist__pjrt_tensor *tensor) {
  return tensor->numbers + tensor->ndim;
}

// An empty description with room for ndim dimensions, or NULL.
// Fails: NO_ALLOCATION.
ist__pjrt_tensor *ist__pjrt_tensor_make(const ist__pjrt_client *client,
                                        int32_t ndim, ist_error *err);
// Counts the elements from the extents; false when sizes would overflow.
bool ist__pjrt_tensor_count(ist__pjrt_tensor *tensor);
// True when an order of dimensions lies in memory as row-major does: it may
// differ in dimensions of extent 1, and in all of an empty tensor.
bool ist__pjrt_is_row_major(int32_t ndim, const int64_t *dims,
                            const int64_t *order);

// The slots of the same names; self is an ist__pjrt_client.
void ist__pjrt_release(void *self, void *buffer);
ist_code ist__pjrt_copy_out(void *self, void *buffer, void *target,
                            uint64_t nbytes, ist_error *err);
ist_code ist__pjrt_copy_in(void *self, const ist_placement *source, void **out,
                           ist_error *err);
// The same by the plugin's own copy alone, and never as a view: it lies as the
// plugin lays out what it is not told to lay out otherwise.
ist_code ist__pjrt_copy_in_plainly(ist__pjrt_client *client,
                                   const ist_placement *source,
                                   ist__pjrt_tensor **out, ist_error *err);
ist_code ist__pjrt_lend(void *self, void *buffer, ist_loan *out,
                        ist_error *err);
ist_code ist__pjrt_discard(void *self, void *buffer, ist_error *err);
void ist__pjrt_reclaim(void *self, void *buffer);
ist_code ist__pjrt_adopt(void *self, const ist_placement *source, void **out,
                         ist_error *err);
ist_code ist__pjrt_wait(void *self, void *buffer, ist_error *err);
ist_code ist__pjrt_inspect(void *self, void *buffer, ist_spec *out,
                           ist_error *err);

// Asks how a buffer lies. Fails: TARGET_LAYOUT (no layout, or one in which
// nobody knows how it is read), PLUGIN, PLUGIN_SLOT.
ist_code ist__pjrt_tensor_read_layout(const ist__pjrt *pjrt,
                                      PJRT_Buffer *buffer,
                                      ist__pjrt_tensor *tensor, ist_error *err);

// Frees the description alone: its buffer stays.
PJRT_Buffer *ist__pjrt_tensor_free(const ist__pjrt_client *client,
                                   ist__pjrt_tensor *tensor);

// Wraps a buffer that a program made: reads its dtype, shape and layout. One
// with dynamic dimensions is waited for, since its true extents are values.
// Takes buffer on success. Gives *out. Fails: TARGET_DTYPE, TARGET_LAYOUT,
// DYNAMIC_SHAPE (its true extents are not told), BUFFER, DELETED, PLUGIN,
// PLUGIN_SLOT, NO_ALLOCATION.
ist_code ist__pjrt_tensor_of(ist__pjrt_client *client,
                             const ist__pjrt_memory *memory,
                             PJRT_Buffer *buffer, ist__pjrt_tensor **out,
                             ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_PJRT_TENSOR_H_
