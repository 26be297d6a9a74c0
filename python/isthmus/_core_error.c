// SPDX-License-Identifier: Apache-2.0
// _core_error.c: failures of the library become isthmus.Error, made by
// isthmus._errors.make; what a producer raised becomes the cause, and a long
// message of a plugin becomes a note.

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "_core.h"

void ist__py_set_cause(PyObject *type, PyObject *cause, PyObject *trace) {
  PyObject *new_type, *value, *new_trace;
  PyErr_Fetch(&new_type, &value, &new_trace);
  if (type != NULL && new_type != NULL) {
    PyErr_NormalizeException(&type, &cause, &trace);
    PyErr_NormalizeException(&new_type, &value, &new_trace);
    if (trace != NULL) PyException_SetTraceback(cause, trace);
    PyObject *old = PyException_GetCause(value);
    if (old == NULL) {
      PyException_SetContext(value, Py_NewRef(cause));
      PyException_SetCause(value, Py_NewRef(cause));
    }
    Py_XDECREF(old);
  }
  Py_XDECREF(type);
  Py_XDECREF(cause);
  Py_XDECREF(trace);
  PyErr_Restore(new_type, value, new_trace);
}

PyObject *ist__py_text(const char *text) {
  if (text == NULL) return Py_NewRef(Py_None);
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

// Calls _errors.make; no exception is set.
static PyObject *make_exception(const ist_error *err, const char *note) {
  PyObject *exception = NULL;
  PyObject *module = PyImport_ImportModule("isthmus._errors");
  PyObject *message = ist__py_text(err->message);
  PyObject *told = ist__py_text(note);
  if (module != NULL && message != NULL && told != NULL)
    exception = PyObject_CallMethod(module, "make", "iOiO", (int)err->code,
                                    message, (int)err->native, told);
  Py_XDECREF(module);
  Py_XDECREF(message);
  Py_XDECREF(told);
  return exception;
}

// What is no Exception (an interrupt, an exit) is not ours to wrap.
static void raise_with_note(const ist_error *err, const char *note) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (type != NULL && !PyErr_GivenExceptionMatches(type, PyExc_Exception)) {
    PyErr_Restore(type, value, trace);
  } else {
    PyObject *exception = make_exception(err, note);
    if (exception != NULL)
      PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    ist__py_set_cause(type, value, trace);
  }
}

PyObject *ist__py_raise(ist__py_state *state, const ist_error *err) {
  char *note = ist__py_log_note(state->log);
  // One line says no more than the message; only a runtime has warned of it.
  bool runtime =
      err->code == IST_ERR_PROGRAM || err->code >= IST_ERR_NO_BACKEND;
  bool tells = runtime && note != NULL && strchr(note, '\n') != NULL;
  raise_with_note(err, tells ? note : NULL);
  ist__py_free(note);
  return NULL;
}

PyObject *ist__py_raisef(ist__py_state *state, ist_code code,
                         const char *format, ...) {
  ist_error err = {.code = code};
  va_list list;
  va_start(list, format);
  vsnprintf(err.message, sizeof err.message, format, list);
  va_end(list);
  // A name of anybody's may hold line breaks; a message is one line.
  for (char *c = err.message; *c != '\0'; c++)
    if ((unsigned char)*c < ' ') *c = ' ';
  (void)state;
  raise_with_note(&err, NULL);  // no runtime has said anything
  return NULL;
}

const char *ist__py_name(ist__py_state *state, PyObject *name) {
  Py_ssize_t size = 0;
  const char *text = PyUnicode_AsUTF8AndSize(name, &size);
  if (text != NULL && strlen(text) == (size_t)size) return text;
  ist__py_raisef(state, IST_ERR_ARGUMENT,
                 "a name could not be used: \"%.80s\" %s; needs text of UTF-8 "
                 "without NUL",
                 text != NULL ? text : "?",
                 text != NULL ? "goes on after a NUL character"
                              : "has characters that UTF-8 has not");
  return NULL;
}

void ist__py_type_name(PyObject *object, char *buffer, size_t size) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *cls = (PyObject *)Py_TYPE(object);
  PyObject *module = PyObject_GetAttrString(cls, "__module__");
  PyObject *name = PyObject_GetAttrString(cls, "__qualname__");
  PyObject *text = NULL;
  if (module != NULL && name != NULL)
    text = PyUnicode_FromFormat("%S.%S", module, name);
  const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  snprintf(buffer, size, "%s", utf8 != NULL ? utf8 : "object");
  Py_XDECREF(module);
  Py_XDECREF(name);
  Py_XDECREF(text);
  PyErr_Restore(type, value, trace);
}
