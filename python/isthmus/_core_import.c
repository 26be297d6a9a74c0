// SPDX-License-Identifier: Apache-2.0
// _core_import.c: isthmus.from_dlpack: any object that has a tensor becomes an
// isthmus tensor. Tried in this order: the C exchange API of its type,
// __dlpack__, the buffer protocol, __array_interface__.

#include <string.h>

#include "_core.h"

void ist__py_managed_delete(ist__py_managed managed) {
  if (managed.versioned != NULL && managed.versioned->deleter != NULL)
    managed.versioned->deleter(managed.versioned);
  if (managed.legacy != NULL && managed.legacy->deleter != NULL)
    managed.legacy->deleter(managed.legacy);
}

// Imports, without the GIL where bytes may move or a device be waited for.
static ist_code import_managed(ist__py_state *state, ist__py_managed source,
                               const ist__py_how *how, ist_tensor **out,
                               ist__py_watch *watch, ist_error *err) {
  ist_options options = how->options;
  *watch = (ist__py_watch){0};
  bool quick = how->device == state->host &&
               how->options.copy != IST_COPY_ALWAYS &&
               how->options.packing == IST_PACKING_AS_IS;
  ist__py_log_begin(state->log);
  if (!quick) ist__py_watch_begin(watch, state, NULL, &options);
  ist__py_outside outside = {0};
  if (!quick) outside = ist__py_go_outside(state->life);
  ist_code code =
      source.versioned != NULL
          ? ist_tensor_import(how->device, source.versioned, &options, out,
                              how->receipt, err)
          : ist_tensor_import_legacy(how->device, source.legacy, &options, out,
                                     how->receipt, err);
  if (!quick) ist__py_come_inside(&outside);
  return code;
}

PyObject *ist__py_import_managed(ist__py_state *state, ist__py_managed source,
                                 const ist__py_how *how) {
  ist_error err = {0};
  ist_tensor *tensor = NULL;
  ist__py_watch watch;
  if (import_managed(state, source, how, &tensor, &watch, &err) != IST_OK) {
    ist__py_managed_delete(source);
    return ist__py_watch_raise(&watch, state, &err);
  }
  return ist__py_tensor_new(state, tensor);
}

PyObject *ist__py_import_or_not(ist__py_state *state, ist__py_managed source,
                                const ist__py_how *how) {
  ist_error err;
  ist_tensor *tensor = NULL;
  ist__py_watch watch;
  ist_code code = import_managed(state, source, how, &tensor, &watch, &err);
  if (code == IST_OK) return ist__py_tensor_new(state, tensor);
  ist__py_managed_delete(source);
  return watch.type == NULL ? NULL : ist__py_watch_raise(&watch, state, &err);
}

// A producer that copied when it was told not to.
static bool copied_against_wish(ist__py_managed source,
                                const ist__py_how *how) {
  return how->options.copy == IST_COPY_NEVER && source.versioned != NULL &&
         source.versioned->version.major == DLPACK_MAJOR_VERSION &&
         (source.versioned->flags & DLPACK_FLAG_BITMASK_IS_COPIED) != 0;
}

// A capsule: marked as consumed while the library looks at it, so that no
// other thread takes it too, and given back unless the library took it. Of
// another major version it stays consumed and is deleted, once.
static PyObject *import_capsule(ist__py_state *state, PyObject *capsule,
                                const ist__py_how *how) {
  ist__py_managed source;
  if (ist__py_capsule_open(state, capsule, &source) < 0) return NULL;
  if (ist__py_capsule_mark(capsule, source, true) < 0) return NULL;
  ist_error err = {0};
  ist_tensor *tensor = NULL;
  ist__py_watch watch;
  ist_code code = import_managed(state, source, how, &tensor, &watch, &err);
  if (code == IST_OK) return ist__py_tensor_new(state, tensor);
  if (code == IST_ERR_DLPACK_VERSION)
    ist__py_managed_delete(source);
  else if (ist__py_capsule_mark(capsule, source, false) < 0)
    PyErr_Clear();  // unreachable: the pointer was just renamed
  return ist__py_watch_raise(&watch, state, &err);
}

static PyObject *producer_failed(ist__py_state *state, PyObject *source,
                                 const char *what) {
  char name[96];
  ist__py_type_name(source, name, sizeof name);
  return ist__py_raisef(state, IST_ERR_PRODUCER,
                        "could not take the tensor of a %s: its %s failed; "
                        "needs a producer that gives a DLPack capsule",
                        name, what);
}

// Asks __dlpack__ with the keywords of today, then of older producers. A
// TypeError may mean that a keyword is not known.
static PyObject *call_dlpack(ist__py_state *state, PyObject *method,
                             bool alias) {
  PyObject *capsule = PyObject_Call(
      method, state->empty, alias ? state->ask_alias : state->ask_versioned);
  if (capsule == NULL && alias && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    capsule = PyObject_Call(method, state->empty, state->ask_versioned);
  }
  if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    capsule = PyObject_Call(method, state->empty, NULL);
  }
  return capsule;
}

// Lets go of a capsule whose destructor may run anybody's code: what is raised,
// or is not, stays so.
static void drop_capsule(PyObject *capsule) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Py_DECREF(capsule);
  PyErr_Restore(type, value, trace);
}

static PyObject *import_dlpack(ist__py_state *state, PyObject *source,
                               PyObject *method, const ist__py_how *how) {
  PyObject *result = NULL;
  PyObject *capsule =
      call_dlpack(state, method, how->options.copy == IST_COPY_NEVER);
  ist__py_managed managed;
  if (capsule == NULL) return producer_failed(state, source, "__dlpack__");
  if (!PyCapsule_CheckExact(capsule)) {
    char name[96], got[96];
    ist__py_type_name(source, name, sizeof name);
    ist__py_type_name(capsule, got, sizeof got);
    ist__py_raisef(state, IST_ERR_PRODUCER,
                   "could not take the tensor of a %s: its __dlpack__ gave a "
                   "%s; needs a capsule",
                   name, got);
  } else if (how->options.copy == IST_COPY_NEVER &&
             ist__py_capsule_open(state, capsule, &managed) == 0 &&
             copied_against_wish(managed, how)) {
    ist__py_raisef(state, IST_ERR_COPY_NEEDED,
                   "could not take a tensor without a copy: its producer made "
                   "one; needs copy=None");
  } else if (!PyErr_Occurred()) {
    result = import_capsule(state, capsule, how);
  }
  drop_capsule(capsule);
  return result;
}

const DLPackExchangeAPI *ist__py_exchange_api(ist__py_state *state,
                                              PyObject *type) {
  PyObject *capsule = PyObject_GetAttr(type, state->names.exchange);
  if (capsule == NULL) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return NULL;
  }
  const DLPackExchangeAPI *api = NULL;
  if (PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
    api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  Py_DECREF(capsule);  // the type keeps it
  // A table of another major version may link to one that we can read.
  const DLPackExchangeAPIHeader *header = api == NULL ? NULL : &api->header;
  while (header != NULL && header->version.major != DLPACK_MAJOR_VERSION)
    header = header->prev_api;
  api = (const DLPackExchangeAPI *)(const void *)header;
  return api == NULL || api->managed_tensor_from_py_object_no_sync == NULL
             ? NULL
             : api;
}

static PyObject *import_exchange(ist__py_state *state, PyObject *source,
                                 const DLPackExchangeAPI *api,
                                 const ist__py_how *how) {
  ist__py_managed managed = {0};
  int failed =
      api->managed_tensor_from_py_object_no_sync(source, &managed.versioned);
  if (failed != 0 || managed.versioned == NULL)
    return producer_failed(state, source, "C exchange API");
  if (PyErr_Occurred()) {
    ist__py_managed_delete(managed);
    return producer_failed(state, source, "C exchange API");
  }
  if (copied_against_wish(managed, how)) {
    ist__py_managed_delete(managed);
    return ist__py_raisef(state, IST_ERR_COPY_NEEDED,
                          "could not take a tensor without a copy: its "
                          "producer made one; needs copy=None");
  }
  return ist__py_import_managed(state, managed, how);
}

static PyObject *not_a_tensor(ist__py_state *state, PyObject *source) {
  char name[96];
  ist__py_type_name(source, name, sizeof name);
  if (PyObject_HasAttr(source, state->names.cuda_interface))
    return ist__py_raisef(state, IST_ERR_NOT_IN_VERSION,
                          "not in this version: a %s can only be taken by its "
                          "__cuda_array_interface__; needs __dlpack__",
                          name);
  return ist__py_raisef(
      state, IST_ERR_NOT_A_TENSOR,
      "could not import a %s: it is no tensor; needs __dlpack__, a DLPack "
      "capsule, the buffer protocol or __array_interface__",
      name);
}

// The buffer protocol, and when that cannot tell the dtype the interface.
static PyObject *import_memory(ist__py_state *state, PyObject *source,
                               const ist__py_how *how) {
  ist__py_managed managed = {0};
  if (PyObject_CheckBuffer(source)) {
    managed.versioned = ist__py_from_buffer(state, source);
    if (managed.versioned != NULL)
      return ist__py_import_managed(state, managed, how);
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *interface = PyObject_GetAttr(source, state->names.interface);
  if (interface == NULL) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError))
      producer_failed(state, source, "__array_interface__");
    else
      PyErr_Clear();
    if (type != NULL) PyErr_Restore(type, value, trace);
    return PyErr_Occurred() ? NULL : not_a_tensor(state, source);
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  managed.versioned = ist__py_from_interface(state, source, interface);
  Py_DECREF(interface);
  if (managed.versioned == NULL) return NULL;
  return ist__py_import_managed(state, managed, how);
}

// A tensor of ours: the same memory again, or on another device.
static PyObject *import_tensor(ist__py_state *state, PyObject *source,
                               const ist__py_how *how) {
  ist_tensor *tensor = ist__py_tensor_get(source);
  if (tensor == NULL) return NULL;
  ist_options options = how->options;
  options.grant = IST_GRANT_FROM_SOURCE;
  ist_error err = {0};
  ist_tensor *moved = NULL;
  ist__py_watch watch;
  ist__py_watch_begin(&watch, state, NULL, &options);
  ist__py_log_begin(state->log);
  PyThreadState *thread = PyEval_SaveThread();
  ist_code code = ist_tensor_move(tensor, how->device, &options, &moved,
                                  how->receipt, &err);
  ist_tensor_release(tensor);
  PyEval_RestoreThread(thread);
  if (code != IST_OK) return ist__py_watch_raise(&watch, state, &err);
  return ist__py_tensor_new(state, moved);
}

PyObject *ist__py_import(ist__py_state *state, PyObject *source,
                         const ist__py_how *how) {
  if (PyCapsule_CheckExact(source)) return import_capsule(state, source, how);
  if (Py_IS_TYPE(source, state->tensor_type))
    return import_tensor(state, source, how);
  const DLPackExchangeAPI *api =
      how->no_exchange
          ? NULL
          : ist__py_exchange_api(state, (PyObject *)Py_TYPE(source));
  if (api != NULL) return import_exchange(state, source, api, how);
  if (PyErr_Occurred()) return NULL;
  PyObject *method = PyObject_GetAttr(source, state->names.dlpack);
  if (method != NULL) {
    PyObject *result = import_dlpack(state, source, method, how);
    Py_DECREF(method);
    return result;
  }
  if (!PyErr_ExceptionMatches(PyExc_AttributeError))
    return producer_failed(state, source, "__dlpack__");
  PyErr_Clear();
  return import_memory(state, source, how);
}
