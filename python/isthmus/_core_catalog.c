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

// code_of_name("IST_ERR_SHAPE") -> 202, or None.
PyObject *ist__py_code_of_name(PyObject *module, PyObject *name) {
  (void)module;
  const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
  if (text == NULL) return NULL;
  for (size_t i = 0;; i++) {
    ist_code code = ist_catalog_code(i);
    if (code == IST_OK) break;
    const char *known = ist_code_name(code);
    if (known != NULL && strcmp(known, text) == 0)
      return PyLong_FromLong((long)code);
  }
  Py_RETURN_NONE;
}
