// SPDX-License-Identifier: Apache-2.0
// tensor.h: the tensor handle's inside: a buffer of a backend, its geometry,
// who may write it, and the loan of its address.

#ifndef ISTHMUS_BRIDGE_TENSOR_H_
#define ISTHMUS_BRIDGE_TENSOR_H_

#include "backend/backend.h"
#include "base/alloc.h"
#include "base/refcount.h"
#include "tensor/view.h"

typedef enum ist__loan_state {
  IST__LOAN_NONE = 0,
  IST__LOAN_ASKED = 1,  // one thread is in the lend slot, others wait
  IST__LOAN_HELD = 2    // lent_view is filled and does not change any more
} ist__loan_state;

struct ist_tensor {
  ist__refcount refs;
  const ist_device *device;
  size_t memory;
  void *buffer;
  int32_t dtype_number;
  uint32_t layout;
  uint64_t nbytes;
  uint64_t lowest;  // as in ist__view
  uint64_t highest;
  ist_grant grant;
  bool copied;
  bool padded;
  bool deleted;           // its memory was given up: ist_tensor_delete
  bool donated;           // or a program took it
  bool borrowed_address;  // the address came with the import: no loan is due
  _Atomic(int) loan;      // ist__loan_state
  DLTensor view;          // data NULL until the address is known
  DLTensor lent_view;     // the same with the address, once loan is HELD
  int64_t dims[];         // shape, then strides
};

// Everything of a new tensor but its buffer.
typedef struct ist__tensor_facts {
  const ist_device *device;
  size_t memory;
  const ist__view *view;  // geometry; data is used when address is true
  ist_grant grant;
  bool copied;
  bool address;  // the view's address is the buffer's, readable here
} ist__tensor_facts;

// A tensor without its buffer, which the caller sets; NULL without memory.
// Retains the device's backend.
ist_tensor *ist__tensor_make(const ist__tensor_facts *facts, ist_error *err);
// The same, inlined where a nanosecond counts.
static inline ist_tensor *ist__tensor_make_inline(
    const ist__tensor_facts *facts, ist_error *err) {
  const ist__view *view = facts->view;
  ist_backend *backend = facts->device->backend;
  size_t ndim = (size_t)view->ndim;
  size_t size = sizeof(ist_tensor) + 2 * ndim * sizeof(int64_t);
  ist_tensor *t =
      ist__alloc(ist__backend_env(backend), size, _Alignof(ist_tensor));
  if (t == NULL) {
    ist__error_memory(err, "a tensor", size);
    return NULL;
  }
  ist__refcount_init(&t->refs);
  t->device = facts->device;
  t->memory = facts->memory;
  t->buffer = NULL;
  t->dtype_number = view->dtype_number;
  t->layout = view->layout;
  t->nbytes = view->nbytes;
  t->lowest = view->lowest;
  t->highest = view->highest;
  t->grant = facts->grant;
  t->copied = facts->copied;
  t->padded = view->padded;
  t->borrowed_address = facts->address;
  t->deleted = false;
  t->donated = false;
  atomic_init(&t->loan, IST__LOAN_NONE);
  t->view.data = facts->address ? view->data : NULL;
  t->view.byte_offset = facts->address ? view->byte_offset : 0;
  t->view.device =
      ist__device_capability(facts->device, facts->memory)->dl_device;
  t->view.ndim = view->ndim;
  t->view.dtype = view->dtype;
  t->view.shape = t->dims;
  t->view.strides = t->dims + ndim;
  // A loop: most tensors have too few dimensions for two calls of memcpy.
  for (size_t i = 0; i < ndim; i++) {
    t->dims[i] = view->shape[i];
    t->dims[ndim + i] = view->strides[i];
  }
  ist_backend_retain(backend);
  return t;
}

// Frees a tensor that was given no buffer.
void ist__tensor_discard(ist_tensor *tensor);

// A host tensor of a view, whose memory release frees; copied says that nobody
// else sees it. Takes self (on success release is called once). Gives *out.
// Fails: NO_ALLOCATION.
ist_code ist__tensor_on_host(ist_context *context, ist__view *view, bool copied,
                             ist_release_fn release, void *self,
                             ist_tensor **out, ist_error *err);

static inline ist_backend *ist__tensor_backend(const ist_tensor *tensor) {
  return tensor->device->backend;
}

static inline const ist_capability *ist__tensor_capability(
    const ist_tensor *tensor) {
  return ist__device_capability(tensor->device, tensor->memory);
}

// Borrows the tensor's address for as long as the tensor lives: waits for its
// values and takes the one loan of its buffer, if it is not there yet. Where
// the memory does not lend, *out has no data and that is no failure.
// Lends *out. Fails: what wait and lend return. Threads: any.
ist_code ist__tensor_lend(ist_tensor *tensor, const DLTensor **out,
                          ist_error *err);

// Fails for a tensor that was deleted or donated. Fails: DELETED, DONATED.
ist_code ist__tensor_check_alive(const ist_tensor *tensor, ist_error *err);

// True when a tensor's memory may be a program's to write: only holders hold
// it, it lies in memory of the device's own, and nobody marked it read-only.
bool ist__tensor_is_spare(const ist_tensor *tensor, uint32_t holders);
// Ends the loan of the address, if there is one: nobody holds it any more.
void ist__tensor_end_loan(ist_tensor *tensor);
// A program took the memory: what is asked of the tensor fails from now on.
void ist__tensor_gone(ist_tensor *tensor);

// The geometry as a validated view, with the address if it is known.
void ist__tensor_view_of(const ist_tensor *tensor, const DLTensor *at,
                         ist__view *out);

// Writes a device and memory as a place's name, cut to IST_MAX_PLACE.
void ist__tensor_place(const ist_device *device, size_t memory, char *out);

#endif  // ISTHMUS_BRIDGE_TENSOR_H_
