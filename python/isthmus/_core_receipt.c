// SPDX-License-Identifier: Apache-2.0
// _core_receipt.c: isthmus.Receipt, how a tensor crossed. One C receipt; a
// copy that an adapter had to make before the route (a negative bit resolved,
// foreign byte order) is added to it, so that nothing moved goes unsaid.

#include <stdio.h>
#include <string.h>

#include "_core.h"

PyObject *ist__py_receipt_new(ist__py_state *state,
                              const ist_receipt *receipt) {
  ist__py_receipt *self = PyObject_New(ist__py_receipt, state->receipt_type);
  if (self != NULL) self->receipt = *receipt;
  return (PyObject *)self;
}

PyObject *ist__py_with_receipt(ist__py_state *state, PyObject *made,
                               const ist_receipt *receipt) {
  PyObject *paper = made == NULL ? NULL : ist__py_receipt_new(state, receipt);
  if (paper == NULL) {
    Py_XDECREF(made);
    return NULL;
  }
  return Py_BuildValue("NN", made, paper);
}

static void name_end(char *end, const char *name) {
  if (name != NULL) snprintf(end, IST_MAX_PLACE, "%s", name);
}

void ist__py_receipt_amend(PyObject *self, const char *source,
                           const char *target, int32_t reason,
                           uint64_t nbytes) {
  ist_receipt *receipt = &((ist__py_receipt *)self)->receipt;
  name_end(receipt->source, source);
  name_end(receipt->target, target);
  if (reason == 0 || receipt->route == IST_ROUTE_REFUSE) return;
  // An alias of the copy just made: why it can be viewed is of no interest.
  if (receipt->route == IST_ROUTE_ALIAS) receipt->reason_count = 0;
  if (receipt->reason_count < IST_MAX_REASONS)
    receipt->reasons[receipt->reason_count++] = (ist_reason){reason, 0, 0};
  receipt->bytes_moved += nbytes;
  receipt->hops++;
  receipt->route = receipt->hops > 1 ? IST_ROUTE_STAGE : IST_ROUTE_COPY;
}

static const ist_receipt *receipt_of(PyObject *self) {
  return &((ist__py_receipt *)self)->receipt;
}

static void receipt_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject *get_route(PyObject *self, void *unused) {
  (void)unused;
  const char *name = ist_route_name(receipt_of(self)->route);
  return PyUnicode_FromString(name == NULL ? "" : name);
}

static PyObject *reason_text(const ist_reason *reason) {
  char text[512];
  ist_reason_text(reason, text, sizeof text);
  return ist__py_text(text);
}

static PyObject *get_reasons(PyObject *self, void *unused) {
  (void)unused;
  const ist_receipt *receipt = receipt_of(self);
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list != NULL && i < receipt->reason_count; i++) {
    const char *name = ist_reason_name(receipt->reasons[i].id);
    PyObject *text = reason_text(&receipt->reasons[i]);
    PyObject *pair = text == NULL
                         ? NULL
                         : Py_BuildValue("sN", name == NULL ? "" : name, text);
    if (pair == NULL || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

static PyObject *get_bytes_moved(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLongLong(receipt_of(self)->bytes_moved);
}

static PyObject *get_hops(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLong(receipt_of(self)->hops);
}

static PyObject *get_code(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLong((long)receipt_of(self)->code);
}

static PyObject *get_read_only(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(receipt_of(self)->read_only);
}

static PyObject *get_source(PyObject *self, void *unused) {
  (void)unused;
  return ist__py_text(receipt_of(self)->source);
}

static PyObject *get_target(PyObject *self, void *unused) {
  (void)unused;
  return ist__py_text(receipt_of(self)->target);
}

static PyObject *receipt_json(PyObject *self, PyObject *unused) {
  (void)unused;
  size_t length = ist_receipt_json(receipt_of(self), NULL, 0);
  char *text = ist__py_alloc(length + 1);
  if (text == NULL) return PyErr_NoMemory();
  ist_receipt_json(receipt_of(self), text, length + 1);
  PyObject *result = ist__py_text(text);
  ist__py_free(text);
  return result;
}

static PyObject *receipt_repr(PyObject *self) {
  const ist_receipt *receipt = receipt_of(self);
  char number[32];
  snprintf(number, sizeof number, "%llu",
           (unsigned long long)receipt->bytes_moved);
  const char *route = ist_route_name(receipt->route);
  PyObject *text = PyUnicode_FromFormat("Receipt(%s, %s bytes moved, %s -> %s",
                                        route == NULL ? "" : route, number,
                                        receipt->source, receipt->target);
  for (uint32_t i = 0; text != NULL && i < receipt->reason_count; i++) {
    PyObject *reason = reason_text(&receipt->reasons[i]);
    PyObject *longer = reason == NULL
                           ? NULL
                           : PyUnicode_FromFormat("%U%s%U", text,
                                                  i == 0 ? ": " : "; ", reason);
    Py_XDECREF(reason);
    ist__py_set(&text, longer);
  }
  if (text != NULL) {
    PyObject *longer = PyUnicode_FromFormat("%U)", text);
    ist__py_set(&text, longer);
  }
  return text;
}

static PyGetSetDef receipt_getset[] = {
    {"route", get_route, NULL, "\"alias\", \"copy\", \"stage\" or \"refuse\".",
     NULL},
    {"reasons", get_reasons, NULL, "Why: a list of (id, text).", NULL},
    {"bytes_moved", get_bytes_moved, NULL,
     "Payload bytes written, all hops together.", NULL},
    {"hops", get_hops, NULL, "Copies made: 0 alias, 1 copy, 2 stage.", NULL},
    {"code", get_code, NULL, "The error code of a refusal, else 0.", NULL},
    {"read_only", get_read_only, NULL, "The result must not be written.", NULL},
    {"source", get_source, NULL, "Where it came from.", NULL},
    {"target", get_target, NULL, "Where it went.", NULL},
    {0}};

static PyMethodDef receipt_methods[] = {
    {"json", receipt_json, METH_NOARGS, "json()\n--\n\nAs one JSON object."},
    {0}};

static PyType_Slot receipt_slots[] = {
    {Py_tp_dealloc, IST__PY_SLOT(receipt_dealloc)},
    {Py_tp_repr, IST__PY_SLOT(receipt_repr)},
    {Py_tp_getset, receipt_getset},
    {Py_tp_methods, receipt_methods},
    {Py_tp_doc, "How a tensor crossed, or will cross."},
    {0, NULL}};

static PyType_Spec receipt_spec = {.name = "isthmus.Receipt",
                                   .basicsize = sizeof(ist__py_receipt),
                                   .flags = Py_TPFLAGS_DEFAULT |
                                            Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                            Py_TPFLAGS_IMMUTABLETYPE,
                                   .slots = receipt_slots};

PyObject *ist__py_receipt_type(PyObject *module) {
  return PyType_FromModuleAndSpec(module, &receipt_spec, NULL);
}
