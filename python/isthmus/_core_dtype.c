// SPDX-License-Identifier: Apache-2.0
// _core_dtype.c: element types between DLPack, struct formats (the buffer
// protocol), array-interface type strings and isthmus.DType.

#include <stdio.h>
#include <string.h>

#include "_core.h"

static const struct {
  const char *format;
  DLDataType dtype;
  bool fixed;  // the same width on every machine
} formats[] = {
    {"?", {kDLBool, 8, 1}, true},      {"b", {kDLInt, 8, 1}, true},
    {"B", {kDLUInt, 8, 1}, true},      {"h", {kDLInt, 16, 1}, true},
    {"H", {kDLUInt, 16, 1}, true},     {"i", {kDLInt, 32, 1}, true},
    {"I", {kDLUInt, 32, 1}, true},     {"q", {kDLInt, 64, 1}, true},
    {"Q", {kDLUInt, 64, 1}, true},     {"e", {kDLFloat, 16, 1}, true},
    {"f", {kDLFloat, 32, 1}, true},    {"d", {kDLFloat, 64, 1}, true},
    {"Zf", {kDLComplex, 64, 1}, true}, {"Zd", {kDLComplex, 128, 1}, true},
    {"l", {kDLInt, 0, 1}, false},      {"L", {kDLUInt, 0, 1}, false},
    {"n", {kDLInt, 0, 1}, false},      {"N", {kDLUInt, 0, 1}, false},
};

static bool same_dtype(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

const char *ist__py_dtype_format(DLDataType dtype) {
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
    if (formats[i].fixed && same_dtype(formats[i].dtype, dtype))
      return formats[i].format;
  return NULL;
}

// Native order, or '<' on a little-endian machine; '>' and '!' are refused.
bool ist__py_dtype_from_format(const char *format, Py_ssize_t itemsize,
                               DLDataType *out) {
  const uint16_t one = 1;
  bool little = *(const uint8_t *)&one == 1;
  if (*format == '@' || *format == '=' || (*format == '<' && little) ||
      (*format == '>' && !little))
    format++;
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    if (strcmp(formats[i].format, format) != 0) continue;
    *out = formats[i].dtype;
    if (!formats[i].fixed) out->bits = (uint8_t)(8 * itemsize);
    return out->bits == 8 * itemsize && itemsize <= 16;
  }
  return false;
}

bool ist__py_dtype_from_typestr(const char *text, DLDataType *out) {
  const uint16_t one = 1;
  char native = *(const uint8_t *)&one == 1 ? '<' : '>';
  char order, kind;
  unsigned bytes;
  int end = 0;
  if (sscanf(text, "%c%c%2u%n", &order, &kind, &bytes, &end) != 3 ||
      text[end] != '\0')
    return false;
  if (order != native && order != '=' && !(order == '|' && bytes == 1))
    return false;
  bool power = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  uint8_t bits = (uint8_t)(8 * bytes);
  *out = (DLDataType){0, bits, 1};
  switch (kind) {
    case 'b':
      out->code = kDLBool;
      return bytes == 1;
    case 'i':
      out->code = kDLInt;
      return power;
    case 'u':
      out->code = kDLUInt;
      return power;
    case 'f':
      out->code = kDLFloat;
      return power && bytes > 1;
    case 'c':
      out->code = kDLComplex;
      return bytes == 8 || bytes == 16;
    default:
      return false;
  }
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
