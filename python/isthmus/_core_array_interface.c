// SPDX-License-Identifier: Apache-2.0
// _core_array_interface.c: objects with an __array_interface__ (NumPy's
// protocol, version 3). It is a dict of anybody's making: each entry is looked
// at, and where it names a buffer the extent is checked against its length.

#include <string.h>

#include "_core.h"
#include "tensor/view.h"

// What was read of one dict.
typedef struct interface {
  DLTensor view;
  bool read_only;
  bool has_buffer;
  Py_buffer buffer;
  int64_t shape[IST_MAX_NDIM];
  int64_t strides[IST_MAX_NDIM];
} interface;

static int refuse(ist__py_state *state, const char *what) {
  ist__py_raisef(state, IST_ERR_PRODUCER,
                 "could not read an __array_interface__: %s", what);
  return -1;
}

// An entry, borrowed; NULL when it is absent or None.
static PyObject *entry(PyObject *dict, const char *key) {
  PyObject *value = PyDict_GetItemString(dict, key);
  return value == Py_None ? NULL : value;
}

static int read_version(ist__py_state *state, PyObject *dict) {
  PyObject *version = entry(dict, "version");
  if (version == NULL || !PyLong_Check(version))
    return refuse(state, "version is no integer; needs 3");
  long number = PyLong_AsLong(version);
  if (number == -1 && PyErr_Occurred()) PyErr_Clear();
  return number == 3 ? 0 : refuse(state, "version is not 3; needs 3");
}

static int read_dtype(ist__py_state *state, PyObject *dict, DLDataType *out) {
  PyObject *typestr = entry(dict, "typestr");
  const char *text = NULL;
  if (typestr != NULL && PyUnicode_Check(typestr))
    text = PyUnicode_AsUTF8AndSize(typestr, NULL);
  if (text == NULL)
    return refuse(state, "typestr is no text; needs one like \"<f4\"");
  if (entry(dict, "mask") != NULL)
    return refuse(state, "it has a mask; needs plain values");
  if (ist__py_dtype_from_typestr(text, out)) return 0;
  ist__py_raisef(state, IST_ERR_DTYPE,
                 "could not read an __array_interface__: typestr is "
                 "\"%.40s\"; needs a number of a fixed width in the byte "
                 "order of this machine",
                 text);
  return -1;
}

// A tuple of integers; -1 with an exception set.
static int32_t read_tuple(ist__py_state *state, PyObject *tuple,
                          const char *what, int64_t *out) {
  if (tuple == NULL || !PyTuple_Check(tuple)) return refuse(state, what);
  Py_ssize_t count = PyTuple_Size(tuple);
  if (count > IST_MAX_NDIM) {
    ist__py_raisef(state, IST_ERR_NDIM,
                   "could not read an __array_interface__: ndim is %zd; "
                   "needs 0 to %d",
                   count, IST_MAX_NDIM);
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *item = PyTuple_GetItem(tuple, i);
    if (!PyLong_Check(item)) return refuse(state, what);
    out[i] = PyLong_AsLongLong(item);
    if (out[i] == -1 && PyErr_Occurred()) return refuse(state, what);
  }
  return (int32_t)count;
}

static int read_geometry(ist__py_state *state, PyObject *dict, interface *out) {
  DLTensor *view = &out->view;
  view->device = (DLDevice){kDLCPU, 0};
  view->shape = out->shape;
  view->ndim =
      read_tuple(state, PyDict_GetItemString(dict, "shape"),
                 "shape is no tuple of integers; needs one", out->shape);
  if (view->ndim < 0) return -1;
  PyObject *strides = entry(dict, "strides");
  if (strides == NULL) return 0;
  int32_t count = read_tuple(
      state, strides, "strides is no tuple of integers; needs one, or None",
      out->strides);
  if (count < 0) return -1;
  if (count != view->ndim)
    return refuse(state,
                  "its strides are not as many as its extents; needs as many");
  int64_t itemsize = view->dtype.bits / 8;
  for (int32_t i = 0; i < count; i++) {
    if (out->strides[i] % itemsize != 0)
      return refuse(state,
                    "a stride is not a whole item; needs a multiple of "
                    "the item's bytes");
    out->strides[i] /= itemsize;
  }
  view->strides = out->strides;
  return 0;
}

// data is (address, read_only), or an object with a buffer.
static int read_pair(ist__py_state *state, PyObject *pair, interface *out) {
  static const char what[] =
      "data is no (address, read_only); needs an integer and a bool";
  if (PyTuple_Size(pair) != 2) return refuse(state, what);
  PyObject *address = PyTuple_GetItem(pair, 0);
  if (!PyLong_Check(address)) return refuse(state, what);
  unsigned long long number = PyLong_AsUnsignedLongLong(address);
  if (PyErr_Occurred()) return refuse(state, what);
  int read_only = PyObject_IsTrue(PyTuple_GetItem(pair, 1));
  if (read_only < 0) return refuse(state, what);
  out->view.data = (void *)(uintptr_t)number;
  out->read_only = read_only != 0;
  return 0;
}

static int read_buffer(ist__py_state *state, PyObject *dict, PyObject *object,
                       interface *out) {
  int64_t offset = 0;
  PyObject *value = entry(dict, "offset");
  bool number = value == NULL || PyLong_Check(value);
  if (value != NULL && number) offset = PyLong_AsLongLong(value);
  if (PyErr_Occurred() || !number || offset < 0)
    return refuse(state, "offset is no size; needs an integer from 0 on");
  if (PyObject_GetBuffer(object, &out->buffer, PyBUF_SIMPLE) < 0)
    return refuse(state, "data has no address and no buffer; needs one");
  out->has_buffer = true;
  out->read_only = out->buffer.readonly != 0;
  out->view.data = out->buffer.buf;
  out->view.byte_offset = (uint64_t)offset;
  ist__view view;
  ist_error err = {0};
  if (ist__view_check(&out->view, false, true, &view, &err) != IST_OK) {
    ist__py_raise(state, &err);
    return -1;
  }
  uint64_t size = (uint64_t)out->buffer.len;
  bool fits = view.count == 0 ||
              ((uint64_t)offset >= view.lowest && (uint64_t)offset <= size &&
               view.highest <= size - view.byte_offset);
  return fits ? 0
              : refuse(state,
                       "it reaches outside its buffer; needs an extent "
                       "that fits it");
}

DLManagedTensorVersioned *ist__py_from_interface(ist__py_state *state,
                                                 PyObject *source,
                                                 PyObject *dict) {
  interface got = {0};
  DLManagedTensorVersioned *managed = NULL;
  if (!PyDict_Check(dict)) {
    refuse(state, "it is no dict; needs one");
    return NULL;
  }
  if (read_version(state, dict) < 0 ||
      read_dtype(state, dict, &got.view.dtype) < 0 ||
      read_geometry(state, dict, &got) < 0)
    return NULL;
  // The dict may hold the only reference to what keeps the memory.
  PyObject *keep = PyTuple_Pack(2, source, dict);
  if (keep == NULL) return NULL;
  PyObject *data = entry(dict, "data");
  int failed =
      data != NULL && PyTuple_Check(data)
          ? read_pair(state, data, &got)
          : read_buffer(state, dict, data == NULL ? source : data, &got);
  if (failed == 0)
    managed = ist__py_owner_new(state, &got.view, got.read_only, false, keep,
                                got.has_buffer ? &got.buffer : NULL);
  if (managed == NULL && got.has_buffer) PyBuffer_Release(&got.buffer);
  Py_DECREF(keep);
  return managed;
}
