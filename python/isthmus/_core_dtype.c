// SPDX-License-Identifier: Apache-2.0
// _core_dtype.c: element types between DLPack, struct formats (the buffer
// protocol), array-interface type strings and isthmus.DType.

#include <stdio.h>
#include <string.h>

#include "_core.h"
#include "tensor/dtype.h"

const char *ist__py_dtype_format(DLDataType dtype) {
  const ist__dtype *row = dtype.lanes == 1 ? ist__dtype_find(dtype) : NULL;
  return row == NULL ? NULL : row->format;
}

// The struct module's integers whose width is the machine's.
static bool native_integer(const char *format, Py_ssize_t itemsize,
                           DLDataType *out) {
  if (strlen(format) != 1 || strchr("lLnN", format[0]) == NULL) return false;
  bool is_signed = format[0] == 'l' || format[0] == 'n';
  *out = (DLDataType){is_signed ? kDLInt : kDLUInt, (uint8_t)(8 * itemsize), 1};
  return itemsize == 4 || itemsize == 8;
}

// Native order, or '<' on a little-endian machine; '>' and '!' are refused.
bool ist__py_dtype_from_format(const char *format, Py_ssize_t itemsize,
                               DLDataType *out) {
  const uint16_t one = 1;
  bool little = *(const uint8_t *)&one == 1;
  if (*format == '@' || *format == '=' || (*format == '<' && little) ||
      (*format == '>' && !little))
    format++;
  for (int32_t i = 0; i < ist__dtype_count(); i++) {
    const ist__dtype *row = ist__dtype_at(i);
    if (row->format == NULL || strcmp(row->format, format) != 0) continue;
    *out = ist__dtype_of(row);
    return row->bits == 8 * itemsize;
  }
  return native_integer(format, itemsize, out);
}

bool ist__py_dtype_from_typestr(const char *text, DLDataType *out) {
  const ist__dtype *row = ist__dtype_of_type_string(text);
  if (row != NULL) *out = ist__dtype_of(row);
  return row != NULL;
}

// dtypes() -> a tuple of (number, name, code, bits, npy, format, safetensors,
// pjrt, torch, torch_lanes, jax), the rows of src/tensor/dtype.def.
PyObject *ist__py_dtypes(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  PyObject *rows = PyTuple_New(ist__dtype_count());
  for (int32_t i = 0; rows != NULL && i < ist__dtype_count(); i++) {
    const ist__dtype *row = ist__dtype_at(i);
    PyObject *made = Py_BuildValue(
        "isiizzziziz", (int)row->number, row->name, (int)row->code,
        (int)row->bits, row->npy, row->format, row->safetensors, (int)row->pjrt,
        row->torch, (int)row->torch_lanes, row->jax);
    if (made == NULL)
      Py_CLEAR(rows);
    else
      PyTuple_SetItem(rows, i, made);
  }
  return rows;
}

PyObject *ist__py_dtype_get(ist__py_state *state, DLDataType dtype) {
  PyObject *key =
      PyLong_FromUnsignedLong(dtype.code | (unsigned long)dtype.bits << 8 |
                              (unsigned long)dtype.lanes << 16);
  if (key == NULL) return NULL;
  PyObject *found = PyDict_GetItemWithError(state->dtypes, key);
  if (found != NULL || PyErr_Occurred()) {
    Py_DECREF(key);
    return Py_XNewRef(found);
  }
  char name[64];
  if (ist_dtype_name(dtype, name, sizeof name) != IST_OK)
    snprintf(name, sizeof name, "code%u_bits%ux%u", dtype.code, dtype.bits,
             dtype.lanes);
  PyObject *module = PyImport_ImportModule("isthmus._types");
  PyObject *made =
      module == NULL
          ? NULL
          : PyObject_CallMethod(module, "DType", "siii", name, (int)dtype.code,
                                (int)dtype.bits, (int)dtype.lanes);
  Py_XDECREF(module);
  if (made != NULL && PyDict_SetItem(state->dtypes, key, made) < 0)
    Py_CLEAR(made);
  Py_DECREF(key);
  return made;
}

int ist__py_dtype_parse(ist__py_state *state, PyObject *name, DLDataType *out) {
  PyObject *text = PyObject_Str(name);
  const char *utf8 = text ? ist__py_name(state, text) : NULL;
  ist_error err = {0};
  int failed = -1;
  if (utf8 != NULL) {
    if (ist_dtype_parse(utf8, out, &err) == IST_OK)
      failed = 0;
    else
      ist__py_raise(state, &err);
  }
  Py_XDECREF(text);
  return failed;
}
