// SPDX-License-Identifier: Apache-2.0
// _core_catalog.c: the catalog of isthmus's own errors, for isthmus.explain
// and isthmus.Error.

#include <string.h>

#include "_core.h"

// catalog_find(code) -> (code, name, slug, title, meaning, solution) or None.
PyObject *ist__py_catalog_find(PyObject *module, PyObject *number) {
  (void)module;
  long code = PyLong_AsLong(number);
  if (code == -1 && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return NULL;
    PyErr_Clear();
  }
  ist_entry entry = {.struct_size = sizeof entry};
  if (ist_catalog_find((ist_code)code, &entry, NULL) != IST_OK) Py_RETURN_NONE;
  return Py_BuildValue("isssss", (int)entry.code, entry.name, entry.slug,
                       entry.title, entry.meaning, entry.solution);
}

// catalog_match("text") -> the first code of ours in it, or None.
PyObject *ist__py_catalog_match(PyObject *module, PyObject *text) {
  (void)module;
  Py_ssize_t size;
  const char *utf8 = PyUnicode_AsUTF8AndSize(text, &size);
  if (utf8 == NULL) {
    if (!PyErr_ExceptionMatches(PyExc_UnicodeError)) return NULL;
    PyErr_Clear();  // what is no Unicode is no text of ours
    Py_RETURN_NONE;
  }
  ist_code code;
  if (ist_catalog_match(utf8, (size_t)size, &code, 1) == 0) Py_RETURN_NONE;
  return PyLong_FromLong((long)code);
}
