// SPDX-License-Identifier: Apache-2.0
// _core_tensor_buffer.c: how an isthmus.Tensor leaves by the buffer protocol:
// memoryview(t), bytes(t), numpy.asarray(t).

#include "_core.h"

// What a Py_buffer of ours points to.
typedef struct held {
  ist_tensor *tensor;
  Py_ssize_t numbers[];  // shape, then strides in bytes
} held;

static bool asks(int flags, int what) {
  return (flags & what) == what;
}

// Dense in the order that step walks the dimensions in.
static bool dense_in(const DLTensor *tensor, bool row_major) {
  int64_t dense = 1;
  for (int32_t n = 0; n < tensor->ndim; n++) {
    int32_t i = row_major ? tensor->ndim - 1 - n : n;
    if (tensor->shape[i] == 0) return true;
    if (tensor->shape[i] == 1) continue;
    if (tensor->strides[i] != dense) return false;
    dense *= tensor->shape[i];
  }
  return true;
}

// Does the geometry fit what the consumer can handle?
static bool layout_fits(const DLTensor *tensor, int flags) {
  bool c = dense_in(tensor, true), f = dense_in(tensor, false);
  if (!asks(flags, PyBUF_STRIDES) || asks(flags, PyBUF_C_CONTIGUOUS)) return c;
  if (asks(flags, PyBUF_F_CONTIGUOUS)) return f;
  if (asks(flags, PyBUF_ANY_CONTIGUOUS)) return c || f;
  return true;
}

// Sets an exception and gives -1 when the tensor cannot be lent.
static int check(ist__py_state *state, ist_tensor *tensor, int flags,
                 ist_tensor_info *info) {
  const DLTensor *geometry = ist_tensor_view(tensor);
  ist_code code = IST_OK;
  const char *why = NULL;
  if (ist__py_dtype_format(geometry->dtype) == NULL) {
    code = IST_ERR_DTYPE;
    why = "its dtype has no struct format; needs isthmus.to(x, \"numpy\")";
  } else if (geometry->data == NULL && info->nbytes > 0) {
    code = IST_ERR_NOT_ADDRESSABLE;
    why =
        "this process cannot read its memory; needs isthmus.to(x, "
        "\"numpy\")";
  } else if (info->read_only && asks(flags, PyBUF_WRITABLE)) {
    code = IST_ERR_READ_ONLY;
    why = "it is read-only; needs a request for reading";
  } else if (!layout_fits(geometry, flags)) {
    code = IST_ERR_TARGET_LAYOUT;
    why =
        "its elements do not lie in the order asked for; needs a request "
        "with strides";
  }
  if (why == NULL) return 0;
  ist__py_raisef(state, code,
                 "a tensor could not be lent by the buffer protocol: %s", why);
  return -1;
}

static void fill(Py_buffer *view, const DLTensor *tensor, int flags) {
  held *lent = view->internal;
  Py_ssize_t itemsize = tensor->dtype.bits / 8;
  Py_ssize_t elements = 1;
  for (int32_t i = 0; i < tensor->ndim; i++) {
    lent->numbers[i] = (Py_ssize_t)tensor->shape[i];
    lent->numbers[tensor->ndim + i] = (Py_ssize_t)tensor->strides[i] * itemsize;
    elements *= (Py_ssize_t)tensor->shape[i];
  }
  view->buf = tensor->data == NULL
                  ? (void *)lent->numbers  // no elements: any address
                  : (char *)tensor->data + tensor->byte_offset;
  view->len = elements * itemsize;
  view->itemsize = itemsize;
  view->ndim = asks(flags, PyBUF_ND) ? tensor->ndim : 1;
  view->format = asks(flags, PyBUF_FORMAT)
                     ? (char *)(uintptr_t)ist__py_dtype_format(tensor->dtype)
                     : NULL;
  view->shape = asks(flags, PyBUF_ND) ? lent->numbers : NULL;
  view->strides =
      asks(flags, PyBUF_STRIDES) ? lent->numbers + tensor->ndim : NULL;
  view->suboffsets = NULL;
}

// Waits for the values, then lends their address.
static int lend(ist__py_state *state, ist_tensor *tensor, Py_buffer *view,
                int flags) {
  ist_error err = {0};
  ist_code code;
  ist__py_log_begin(state->log);
  Py_BEGIN_ALLOW_THREADS code = ist_tensor_wait(tensor, &err);
  Py_END_ALLOW_THREADS ist_tensor_info info = {.struct_size = sizeof info};
  if (code == IST_OK) code = ist_tensor_describe(tensor, &info, &err);
  if (code != IST_OK) {
    ist__py_raise(state, &err);
    return -1;
  }
  if (check(state, tensor, flags, &info) < 0) return -1;
  const DLTensor *geometry = ist_tensor_view(tensor);
  size_t numbers = 2 * (size_t)geometry->ndim + 1;
  held *lent = PyMem_Malloc(sizeof *lent + numbers * sizeof(Py_ssize_t));
  if (lent == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  lent->tensor = tensor;
  view->internal = lent;
  view->readonly = info.read_only ? 1 : 0;
  fill(view, geometry, flags);
  return 0;
}

int ist__py_tensor_getbuffer(PyObject *self, Py_buffer *view, int flags) {
  view->obj = NULL;
  ist_tensor *tensor = ist__py_tensor_get(self);
  if (tensor == NULL) return -1;
  if (lend(((ist__py_tensor *)self)->state, tensor, view, flags) < 0) {
    ist__py_release(((ist__py_tensor *)self)->state, tensor);
    return -1;
  }
  view->obj = Py_NewRef(self);
  return 0;
}

void ist__py_tensor_releasebuffer(PyObject *self, Py_buffer *view) {
  held *lent = view->internal;
  view->internal = NULL;
  ist__py_release(((ist__py_tensor *)self)->state, lent->tensor);
  PyMem_Free(lent);
}
