// SPDX-License-Identifier: Apache-2.0
// _core_capsule.c: managed tensors in Python capsules: made, looked into, and
// marked as consumed. The names are the protocol (DLPack's Python
// specification): a consumer renames to used_*, a destructor frees only what
// was not renamed.

#include <string.h>

#include "_core.h"

static const char legacy_name[] = "dltensor";
static const char legacy_used[] = "used_dltensor";
static const char versioned_name[] = "dltensor_versioned";
static const char versioned_used[] = "used_dltensor_versioned";

static void versioned_destroy(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, versioned_name)) return;
  DLManagedTensorVersioned *managed =
      PyCapsule_GetPointer(capsule, versioned_name);
  if (managed != NULL && managed->deleter != NULL) managed->deleter(managed);
}

static void legacy_destroy(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, legacy_name)) return;
  DLManagedTensor *managed = PyCapsule_GetPointer(capsule, legacy_name);
  if (managed != NULL && managed->deleter != NULL) managed->deleter(managed);
}

PyObject *ist__py_capsule_versioned(ist__py_state *state,
                                    DLManagedTensorVersioned *managed) {
  ist__py_managed lent = {.versioned = managed};
  if (ist__py_lend(state, &lent) < 0) return NULL;
  managed = lent.versioned;
  PyObject *capsule = PyCapsule_New(managed, versioned_name, versioned_destroy);
  if (capsule == NULL) managed->deleter(managed);
  return capsule;
}

PyObject *ist__py_capsule_legacy(ist__py_state *state,
                                 DLManagedTensor *managed) {
  ist__py_managed lent = {.legacy = managed};
  if (ist__py_lend(state, &lent) < 0) return NULL;
  managed = lent.legacy;
  PyObject *capsule = PyCapsule_New(managed, legacy_name, legacy_destroy);
  if (capsule == NULL) managed->deleter(managed);
  return capsule;
}

int ist__py_capsule_open(ist__py_state *state, PyObject *capsule,
                         ist__py_managed *out) {
  *out = (ist__py_managed){0};
  const char *name = PyCapsule_GetName(capsule);
  if (name == NULL && PyErr_Occurred()) return -1;
  if (name != NULL && strcmp(name, versioned_name) == 0) {
    out->versioned = PyCapsule_GetPointer(capsule, name);
    return out->versioned == NULL ? -1 : 0;
  }
  if (name != NULL && strcmp(name, legacy_name) == 0) {
    out->legacy = PyCapsule_GetPointer(capsule, name);
    return out->legacy == NULL ? -1 : 0;
  }
  if (name != NULL &&
      (strcmp(name, legacy_used) == 0 || strcmp(name, versioned_used) == 0))
    ist__py_raisef(state, IST_ERR_CONSUMED,
                   "cannot import a capsule: it is named \"%s\", so somebody "
                   "has taken its tensor; needs a new capsule of the producer",
                   name);
  else
    ist__py_raisef(state, IST_ERR_NOT_A_TENSOR,
                   "cannot import a capsule: it is named \"%.60s\"; needs "
                   "\"dltensor\" or \"dltensor_versioned\"",
                   name == NULL ? "" : name);
  return -1;
}

int ist__py_capsule_mark(PyObject *capsule, ist__py_managed managed,
                         bool used) {
  const char *name = managed.versioned != NULL
                         ? (used ? versioned_used : versioned_name)
                         : (used ? legacy_used : legacy_name);
  return PyCapsule_SetName(capsule, name);
}

// A capsule is marked as consumed while it is read, so that no other thread
// takes it, and given back unless all went well.
PyObject *ist__py_capsule_read(ist__py_state *state, PyObject *capsule,
                               ist__py_reader read, void *self) {
  ist__py_managed source;
  if (ist__py_capsule_open(state, capsule, &source) < 0 ||
      ist__py_capsule_mark(capsule, source, true) < 0)
    return NULL;
  PyObject *look = ist__py_look(state, capsule, source);
  PyObject *result = look == NULL ? NULL : read(state, look, self);
  Py_XDECREF(look);
  if (result != NULL) {
    ist__py_managed_delete(source);
    return result;
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  // Of another major version it stays consumed and is deleted, once.
  bool unread = source.versioned != NULL &&
                source.versioned->version.major != DLPACK_MAJOR_VERSION;
  if (unread)
    ist__py_managed_delete(source);
  else if (ist__py_capsule_mark(capsule, source, false) < 0)
    PyErr_Clear();  // unreachable: the pointer was just renamed
  PyErr_Restore(type, value, trace);
  return NULL;
}
