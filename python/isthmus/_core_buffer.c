// SPDX-License-Identifier: Apache-2.0
// _core_buffer.c: memory that a Python object offers as numbers: the buffer
// protocol, and _core.wrap for adapters that know an array's address and name
// its dtype themselves (ml_dtypes' types, which NumPy exports nowhere).

#include <string.h>

#include "_core.h"

// Byte strides -> element strides. False when one is not a whole element.
static bool whole_elements(Py_ssize_t ndim, const Py_ssize_t *strides,
                           Py_ssize_t itemsize, int64_t *out) {
  for (Py_ssize_t i = 0; i < ndim; i++) {
    if (strides[i] % itemsize != 0) return false;
    out[i] = strides[i] / itemsize;
  }
  return true;
}

static DLManagedTensorVersioned *refuse_buffer(ist__py_state *state,
                                               PyObject *source,
                                               Py_buffer *buffer) {
  char name[96];
  ist__py_type_name(source, name, sizeof name);
  ist__py_raisef(
      state, IST_ERR_DTYPE,
      "could not import a %s by the buffer protocol: format \"%.40s\", %zd "
      "bytes an item, %d dimensions; needs a native number of a fixed width, "
      "strides of whole items and no suboffsets",
      name, buffer->format == NULL ? "B" : buffer->format, buffer->itemsize,
      buffer->ndim);
  PyBuffer_Release(buffer);
  return NULL;
}

DLManagedTensorVersioned *ist__py_from_buffer(ist__py_state *state,
                                              PyObject *source) {
  Py_buffer buffer;
  char name[96];
  ist__py_type_name(source, name, sizeof name);
  if (PyObject_GetBuffer(source, &buffer, PyBUF_FULL_RO) < 0) {
    ist__py_raisef(state, IST_ERR_PRODUCER,
                   "could not import a %s: its buffer is not to be had; needs "
                   "a contiguous or strided buffer",
                   name);
    return NULL;
  }
  int64_t shape[IST_MAX_NDIM], strides[IST_MAX_NDIM];
  DLDataType dtype;
  bool good =
      buffer.suboffsets == NULL && buffer.itemsize > 0 && buffer.ndim >= 0 &&
      buffer.ndim <= IST_MAX_NDIM &&
      ist__py_dtype_from_format(buffer.format == NULL ? "B" : buffer.format,
                                buffer.itemsize, &dtype) &&
      (buffer.strides == NULL ||
       whole_elements(buffer.ndim, buffer.strides, buffer.itemsize, strides));
  if (!good) return refuse_buffer(state, source, &buffer);
  for (int i = 0; i < buffer.ndim; i++)
    shape[i] =
        buffer.shape == NULL ? buffer.len / buffer.itemsize : buffer.shape[i];
  DLTensor view = {.data = buffer.buf,
                   .device = {kDLCPU, 0},
                   .ndim = buffer.ndim,
                   .dtype = dtype,
                   .shape = shape,
                   .strides = buffer.strides == NULL ? NULL : strides};
  DLManagedTensorVersioned *managed = ist__py_owner_new(
      state, &view, buffer.readonly != 0, false, NULL, &buffer);
  if (managed == NULL) PyBuffer_Release(&buffer);
  return managed;
}

// A sequence of integers -> numbers; -1 with an exception set.
static int32_t read_numbers(PyObject *sequence, int64_t *out) {
  PyObject *tuple = PySequence_Tuple(sequence);
  if (tuple == NULL) return -1;
  Py_ssize_t count = PyTuple_Size(tuple);
  if (count > IST_MAX_NDIM) {
    PyErr_Format(PyExc_ValueError, "%zd dimensions; at most %d", count,
                 IST_MAX_NDIM);
    count = -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    if (out[i] == -1 && PyErr_Occurred()) {
      count = -1;
      break;
    }
  }
  Py_DECREF(tuple);
  return (int32_t)count;
}

// wrap(owner, address, dtype, shape, strides, read_only, padded) -> Tensor.
// strides count elements; the caller answers for the address.
PyObject *ist__py_wrap(PyObject *module, PyObject *args) {
  ist__py_state *state = ist__py_state_of(module);
  PyObject *owner, *name, *shape_arg, *strides_arg;
  unsigned long long address;
  int read_only, padded;
  if (!PyArg_ParseTuple(args, "OKOOOpp", &owner, &address, &name, &shape_arg,
                        &strides_arg, &read_only, &padded))
    return NULL;
  int64_t shape[IST_MAX_NDIM], strides[IST_MAX_NDIM];
  DLTensor view = {.data = (void *)(uintptr_t)address,
                   .device = {kDLCPU, 0},
                   .shape = shape,
                   .strides = strides};
  if (ist__py_dtype_parse(state, name, &view.dtype) < 0) return NULL;
  view.ndim = read_numbers(shape_arg, shape);
  if (view.ndim < 0) return NULL;
  if (strides_arg == Py_None) {
    view.strides = NULL;
  } else {
    int32_t ndim = read_numbers(strides_arg, strides);
    if (ndim < 0) return NULL;
    if (ndim != view.ndim) {
      PyErr_SetString(PyExc_ValueError, "shape and strides differ in length");
      return NULL;
    }
  }
  ist__py_managed managed = {.versioned =
                                 ist__py_owner_new(state, &view, read_only != 0,
                                                   padded != 0, owner, NULL)};
  if (managed.versioned == NULL) return NULL;
  ist__py_how how = {.device = state->host,
                     .options = {.struct_size = sizeof how.options}};
  return ist__py_import_managed(state, managed, &how);
}
