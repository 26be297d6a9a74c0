// SPDX-License-Identifier: Apache-2.0
// tensor.c: the tensor handle: its life, its facts, and the loan of its
// address.

#include "bridge/tensor.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/structs.h"
#include "tensor/dtype.h"

ist_tensor *ist__tensor_make(const ist__tensor_facts *facts, ist_error *err) {
  return ist__tensor_make_inline(facts, err);
}

void ist__tensor_discard(ist_tensor *tensor) {
  if (tensor == NULL) return;
  ist_backend *backend = ist__tensor_backend(tensor);
  ist__free(ist__backend_env(backend), tensor);
  ist_backend_release(backend);
}

void ist_tensor_retain(ist_tensor *tensor) {
  if (tensor != NULL) ist__refcount_take(&tensor->refs);
}

void ist_tensor_release(ist_tensor *tensor) {
  if (tensor == NULL || !ist__refcount_drop(&tensor->refs)) return;
  ist_backend *backend = ist__tensor_backend(tensor);
  if (atomic_load_explicit(&tensor->loan, memory_order_relaxed) ==
      IST__LOAN_HELD) {
    ist__backend_reclaim(backend, tensor->buffer);
  }
  ist__backend_release_buffer(backend, tensor->buffer);
  ist__tensor_discard(tensor);
}

// Waits until no other thread is in the slot. True when this one may enter.
static bool enter_loan(ist_tensor *t) {
  ist_backend *backend = ist__tensor_backend(t);
  pthread_mutex_lock(&backend->lend_lock);
  while (atomic_load(&t->loan) == IST__LOAN_ASKED) {
    pthread_cond_wait(&backend->lend_done, &backend->lend_lock);
  }
  bool first = atomic_load(&t->loan) == IST__LOAN_NONE;
  if (first) atomic_store(&t->loan, IST__LOAN_ASKED);
  pthread_mutex_unlock(&backend->lend_lock);
  return first;
}

static void leave_loan(ist_tensor *t, ist__loan_state state) {
  ist_backend *backend = ist__tensor_backend(t);
  pthread_mutex_lock(&backend->lend_lock);
  atomic_store_explicit(&t->loan, (int)state, memory_order_release);
  pthread_cond_broadcast(&backend->lend_done);
  pthread_mutex_unlock(&backend->lend_lock);
}

// A loan is checked like an address from outside: element 0 lies on its own
// alignment and the extent fits the address space. A handle is only given on.
static bool loan_is_sound(const ist_tensor *t, const ist_loan *loan) {
  if (t->nbytes == 0) return true;
  if (loan->data == NULL) return false;
  if ((ist__tensor_capability(t)->can & IST_CAN_HOST_ADDRESS) == 0) return true;
  uint64_t first;
  uint64_t end;
  return ist__add_u64((uint64_t)(uintptr_t)loan->data, loan->byte_offset,
                      &first) &&
         ist__add_u64(first, t->highest, &end) && end <= UINTPTR_MAX &&
         t->lowest <= first &&
         first % ist__dtype_alignment(ist__dtype_at(t->dtype_number)) == 0;
}

static ist_code take_loan(ist_tensor *t, ist_error *err) {
  ist_backend *backend = ist__tensor_backend(t);
  ist_loan loan;
  ist_code code = ist__backend_wait(backend, t->buffer, err);
  if (code == IST_OK) {
    code = ist__backend_lend(backend, t->buffer, &loan, err);
  }
  if (code == IST_OK && !loan_is_sound(t, &loan)) {
    ist__backend_reclaim(backend, t->buffer);
    code = ist_error_set(
        err, IST_ERR_BACKEND_ABI,
        "%s: lend gave %s for %llu bytes; needs an address on "
        "its element's alignment, or an error",
        backend->facts.name,
        loan.data == NULL ? "no address" : "an address that cannot be",
        (unsigned long long)t->nbytes);
  }
  if (code != IST_OK) return code;
  t->lent_view = t->view;
  t->lent_view.data = loan.data;
  t->lent_view.byte_offset = loan.byte_offset;
  return IST_OK;
}

ist_code ist__tensor_lend(ist_tensor *tensor, const DLTensor **out,
                          ist_error *err) {
  *out = &tensor->view;
  if (tensor->borrowed_address ||
      (ist__tensor_capability(tensor)->can & IST_CAN_LEND) == 0) {
    return IST_OK;
  }
  int state = atomic_load_explicit(&tensor->loan, memory_order_acquire);
  if (state != IST__LOAN_HELD && enter_loan(tensor)) {
    ist_code code = take_loan(tensor, err);
    leave_loan(tensor, code == IST_OK ? IST__LOAN_HELD : IST__LOAN_NONE);
    if (code != IST_OK) return code;
  }
  *out = &tensor->lent_view;
  return IST_OK;
}

void ist__tensor_view_of(const ist_tensor *tensor, const DLTensor *at,
                         ist__view *out) {
  size_t ndim = (size_t)at->ndim;
  out->data = at->data;
  out->byte_offset = at->byte_offset;
  out->device = at->device;
  out->dtype = at->dtype;
  out->dtype_number = tensor->dtype_number;
  out->ndim = at->ndim;
  out->layout = tensor->layout;
  out->padded = tensor->padded;
  out->nbytes = tensor->nbytes;
  out->lowest = tensor->lowest;
  out->highest = tensor->highest;
  out->count = 1;
  for (size_t d = 0; d < ndim; d++) out->count *= (uint64_t)at->shape[d];
  memcpy(out->shape, at->shape, ndim * sizeof(int64_t));
  memcpy(out->strides, at->strides, ndim * sizeof(int64_t));
}

void ist__tensor_place(const ist_device *device, size_t memory, char *out) {
  const ist_device_facts *facts = &device->facts;
  const ist_backend *backend = device->backend;
  if (backend->is_host) {
    snprintf(out, IST_MAX_PLACE, "host");
  } else if (memory == facts->default_memory) {
    snprintf(out, IST_MAX_PLACE, "%s#%zu", backend->facts.name, device->index);
  } else {
    snprintf(out, IST_MAX_PLACE, "%s#%zu/%s", backend->facts.name,
             device->index, facts->memories[memory].kind);
  }
}

const DLTensor *ist_tensor_view(const ist_tensor *tensor) {
  if (tensor == NULL) return NULL;
  int state = atomic_load_explicit(&tensor->loan, memory_order_acquire);
  bool host = (ist__tensor_capability(tensor)->can & IST_CAN_HOST_ADDRESS) != 0;
  return state == IST__LOAN_HELD && host ? &tensor->lent_view : &tensor->view;
}

ist_code ist_tensor_describe(const ist_tensor *tensor, ist_tensor_info *out,
                             ist_error *err) {
  if (tensor == NULL || !ist__struct_ok(out)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a tensor could not be described: it is NULL or out "
                         "has no struct_size; needs both");
  }
  bool read_only = tensor->grant != IST_GRANT_WRITABLE;
  uint64_t flags = 0;
  if (read_only) flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
  if (tensor->padded) flags |= DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  ist_tensor_info info = {.struct_size = sizeof info,
                          .device = tensor->device,
                          .memory = tensor->memory,
                          .nbytes = tensor->nbytes,
                          .grant = tensor->grant,
                          .read_only = read_only,
                          .copied = tensor->copied,
                          .padded = tensor->padded,
                          .flags = flags};
  ist__struct_write(out, &info, sizeof info);
  return IST_OK;
}

ist_code ist_tensor_wait(ist_tensor *tensor, ist_error *err) {
  if (tensor == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a tensor could not be waited for: it is NULL; needs "
                         "a tensor");
  }
  ist_code code = ist__tensor_check_alive(tensor, err);
  if (code != IST_OK) return code;
  code = ist__backend_wait(ist__tensor_backend(tensor), tensor->buffer, err);
  // The address too, for ist_tensor_view; without one the values are there all
  // the same.
  const DLTensor *at;
  if (code == IST_OK) ist__tensor_lend(tensor, &at, NULL);
  return code;
}

ist_code ist__tensor_check_alive(const ist_tensor *tensor, ist_error *err) {
  if (!tensor->deleted) return IST_OK;
  const char *name = ist__tensor_backend(tensor)->facts.name;
  if (tensor->donated) {
    return ist_error_set(err, IST_ERR_DONATED,
                         "%s: the tensor cannot be read: it was donated to a "
                         "program; needs one that lives",
                         name);
  }
  return ist_error_set(err, IST_ERR_DELETED,
                       "%s: the tensor cannot be read: it was deleted; needs "
                       "one that lives",
                       name);
}

bool ist__tensor_is_spare(const ist_tensor *tensor, uint32_t holders) {
  return ist__refcount_is(&tensor->refs, holders) && !tensor->deleted &&
         !tensor->borrowed_address && tensor->grant == IST_GRANT_WRITABLE;
}

void ist__tensor_end_loan(ist_tensor *tensor) {
  if (atomic_load(&tensor->loan) != IST__LOAN_HELD) return;
  ist__backend_reclaim(ist__tensor_backend(tensor), tensor->buffer);
  atomic_store(&tensor->loan, IST__LOAN_NONE);
}

void ist__tensor_gone(ist_tensor *tensor) {
  tensor->deleted = true;
  tensor->donated = true;
  tensor->view.data = NULL;
}

ist_code ist_tensor_delete(ist_tensor *tensor, ist_error *err) {
  if (tensor == NULL || !ist__refcount_is_one(&tensor->refs)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a tensor could not be deleted: %s; needs the last "
                         "handle, with no view or export of it alive",
                         tensor == NULL ? "it is NULL" : "others hold it");
  }
  ist_code code = ist__tensor_check_alive(tensor, err);
  if (code != IST_OK) return code;
  ist__tensor_end_loan(tensor);
  code =
      ist__backend_discard(ist__tensor_backend(tensor), &tensor->buffer, err);
  if (code != IST_OK) return code;
  tensor->deleted = true;
  tensor->view.data = NULL;
  return IST_OK;
}
