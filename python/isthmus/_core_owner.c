// SPDX-License-Identifier: Apache-2.0
// _core_owner.c: memory that a Python object keeps alive, as a managed tensor
// whose deleter may be called on any thread, with or without the GIL, and
// after Python is gone.

#include <sched.h>
#include <string.h>

#include "_core.h"
#include "base/alloc.h"

// Of the default allocator, since it must work before and after a context.
void *ist__py_alloc(size_t size) {
  ist__env env;
  ist__env_init(&env, NULL);
  void *memory = ist__alloc(&env, size, _Alignof(max_align_t));
  if (memory != NULL) memset(memory, 0, size);
  return memory;
}

void ist__py_free(void *pointer) {
  ist__env env;
  ist__env_init(&env, NULL);
  ist__free(&env, pointer);
}

// What a thread that is outside of Python has dropped. Claimed and given back
// with the GIL held, filled by its own thread without it.
enum {
  STAYS = 8,
  DROPS = 6
};
typedef struct ist__py_stay {
  atomic_ulong thread;  // 0: free
  size_t count;
  PyObject *drops[DROPS];
} ist__py_stay;

// Shared by the module and every owner; freed by the last of them.
struct ist__py_life {
  atomic_size_t count;
  atomic_bool ended;
  atomic_size_t active;  // deleters that are inside Python now
  ist__py_stay stays[STAYS];
};

ist__py_life *ist__py_life_new(void) {
  ist__py_life *life = ist__py_alloc(sizeof *life);
  if (life != NULL) atomic_init(&life->count, 1);
  return life;
}

void ist__py_life_retain(ist__py_life *life) {
  atomic_fetch_add_explicit(&life->count, 1, memory_order_relaxed);
}

void ist__py_life_release(ist__py_life *life) {
  if (atomic_fetch_sub_explicit(&life->count, 1, memory_order_acq_rel) == 1)
    ist__py_free(life);
}

// Deleters that passed the check finish first: a thread that asks for the GIL
// of an interpreter that has gone never returns (PyGILState_Ensure). The
// number of turns is bounded, so that a finaliser that never ends cannot keep
// the process from ending.
void ist__py_life_end(ist__py_life *life) {
  atomic_store(&life->ended, true);
  Py_BEGIN_ALLOW_THREADS for (int turn = 0;
                              turn < 100000 && atomic_load(&life->active) > 0;
                              turn++) sched_yield();
  Py_END_ALLOW_THREADS
}

bool ist__py_life_enter(ist__py_life *life) {
  atomic_fetch_add(&life->active, 1);
  if (!atomic_load(&life->ended)) return true;
  ist__py_life_leave(life);
  return false;
}

void ist__py_life_leave(ist__py_life *life) {
  atomic_fetch_sub(&life->active, 1);
}

ist__py_outside ist__py_go_outside(ist__py_life *life) {
  ist__py_outside outside = {.life = life};
  for (size_t i = 0; i < STAYS && outside.stay == NULL; i++)
    if (atomic_load_explicit(&life->stays[i].thread, memory_order_relaxed) == 0)
      outside.stay = &life->stays[i];
  if (outside.stay != NULL)
    atomic_store_explicit(&outside.stay->thread, PyThread_get_thread_ident(),
                          memory_order_relaxed);
  outside.thread = PyEval_SaveThread();
  return outside;
}

void ist__py_come_inside(const ist__py_outside *outside) {
  ist__py_stay *stay = outside->stay;
  PyObject *drops[DROPS];
  size_t count = 0;
  PyEval_RestoreThread(outside->thread);
  if (stay == NULL) return;
  for (; count < stay->count; count++) drops[count] = stay->drops[count];
  stay->count = 0;
  // Free before anything is let go of, which may run anybody's code.
  atomic_store_explicit(&stay->thread, 0, memory_order_relaxed);
  if (count == 0) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  for (size_t i = 0; i < count; i++) Py_XDECREF(drops[i]);
  PyErr_Restore(type, value, trace);
}

// Leaves an object to the call that this thread is in, if it is in one: only
// this thread writes its own number into a stay, and takes it out again.
static bool leave_to_stay(ist__py_life *life, PyObject *object) {
  unsigned long thread = PyThread_get_thread_ident();
  for (size_t i = 0; i < STAYS; i++) {
    ist__py_stay *stay = &life->stays[i];
    if (atomic_load_explicit(&stay->thread, memory_order_relaxed) == thread &&
        stay->count < DROPS) {
      stay->drops[stay->count++] = object;
      return true;
    }
  }
  return false;
}

void ist__py_life_drop(ist__py_life *life, PyObject *object,
                       Py_buffer *buffer) {
  if (buffer == NULL && leave_to_stay(life, object)) return;
  if (ist__py_life_enter(life)) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (buffer != NULL) PyBuffer_Release(buffer);
    Py_XDECREF(object);
    PyErr_Restore(type, value, trace);
    PyGILState_Release(gil);
    ist__py_life_leave(life);
  }
}

typedef struct owner {
  DLManagedTensorVersioned managed;  // first: the deleter casts
  ist__py_life *life;
  PyObject *object;
  bool has_buffer;
  Py_buffer buffer;
  int64_t numbers[];  // shape, then strides
} owner;

static void owner_delete(DLManagedTensorVersioned *managed) {
  owner *self = (owner *)managed;
  ist__py_life *life = self->life;
  ist__py_life_drop(life, self->object,
                    self->has_buffer ? &self->buffer : NULL);
  ist__py_free(self);
  ist__py_life_release(life);
}

DLManagedTensorVersioned *ist__py_owner_new(ist__py_state *state,
                                            const DLTensor *view,
                                            bool read_only, bool padded,
                                            PyObject *object,
                                            Py_buffer *buffer) {
  size_t ndim = view->ndim > 0 ? (size_t)view->ndim : 0;
  owner *self =
      ist__py_alloc(sizeof *self + 2 * (ndim + 1) * sizeof self->numbers[0]);
  if (self == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  DLManagedTensorVersioned *managed = &self->managed;
  managed->version = (DLPackVersion){1, 3};
  managed->deleter = owner_delete;
  managed->manager_ctx = self;
  managed->flags = (read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0) |
                   (padded ? DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED : 0);
  managed->dl_tensor = *view;
  managed->dl_tensor.shape = self->numbers;
  memcpy(self->numbers, view->shape, ndim * sizeof self->numbers[0]);
  if (view->strides != NULL) {
    managed->dl_tensor.strides = self->numbers + ndim;
    memcpy(self->numbers + ndim, view->strides, ndim * sizeof self->numbers[0]);
  } else {
    managed->dl_tensor.strides = NULL;
  }
  ist__py_life_retain(state->life);
  self->life = state->life;
  self->object = Py_XNewRef(object);
  if (buffer != NULL) {
    self->buffer = *buffer;
    self->has_buffer = true;
  }
  return managed;
}
