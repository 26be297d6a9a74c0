// SPDX-License-Identifier: Apache-2.0
// _core_lent.c: exported tensors whose deleter lets go of the GIL. Consumers
// call it while they hold the GIL, and the last count may close a runtime,
// which waits for its threads; one of these may be in the deleter of a Python
// object, waiting for the GIL.

#include "_core.h"

typedef struct lent {
  union {
    DLManagedTensorVersioned versioned;
    DLManagedTensor legacy;
  } managed;  // first: the deleters cast
  ist__py_managed inner;
  ist__py_life *life;
} lent;

// Deletes with no lock of Python's held. A thread that Python does not know
// holds none; a known one says only PyGILState_Ensure whether it holds it.
static void delete_unlocked(lent *self) {
  ist__py_life *life = self->life;
  bool known = PyGILState_GetThisThreadState() != NULL;
  if (known && ist__py_life_enter(life)) {
    PyGILState_STATE gil = PyGILState_Ensure();
    ist__py_outside outside = ist__py_go_outside(life);
    ist__py_managed_delete(self->inner);
    ist__py_come_inside(&outside);
    PyGILState_Release(gil);
    ist__py_life_leave(life);
  } else {
    ist__py_managed_delete(self->inner);
  }
  ist__py_free(self);
  ist__py_life_release(life);
}

static void versioned_delete(DLManagedTensorVersioned *managed) {
  delete_unlocked((lent *)managed);
}

static void legacy_delete(DLManagedTensor *managed) {
  delete_unlocked((lent *)managed);
}

int ist__py_lend(ist__py_state *state, ist__py_managed *managed) {
  lent *self = ist__py_alloc(sizeof *self);
  if (self == NULL) {
    Py_BEGIN_ALLOW_THREADS ist__py_managed_delete(*managed);
    Py_END_ALLOW_THREADS *managed = (ist__py_managed){0};
    PyErr_NoMemory();
    return -1;
  }
  self->inner = *managed;
  ist__py_life_retain(state->life);
  self->life = state->life;
  if (managed->versioned != NULL) {
    self->managed.versioned = *managed->versioned;
    self->managed.versioned.manager_ctx = self;
    self->managed.versioned.deleter = versioned_delete;
    managed->versioned = &self->managed.versioned;
  } else {
    self->managed.legacy = *managed->legacy;
    self->managed.legacy.manager_ctx = self;
    self->managed.legacy.deleter = legacy_delete;
    managed->legacy = &self->managed.legacy;
  }
  return 0;
}

void ist__py_release(ist__py_state *state, ist_tensor *tensor) {
  if (tensor == NULL) return;
  ist__py_outside outside = ist__py_go_outside(state->life);
  ist_tensor_release(tensor);
  ist__py_come_inside(&outside);
}
