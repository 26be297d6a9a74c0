// SPDX-License-Identifier: Apache-2.0
// _core_fast.c: plain arrays of NumPy and tensors of torch read without a call
// into Python code: what the adapters (_numpy.py, _torch.py) would find plain,
// and nothing else. What is not surely plain is left to them, and so is every
// refusal: this file raises nothing of its own.

#include <string.h>

#include "_core.h"

// The first fields of NumPy's array object: part of its ABI, which compiled
// extensions read in place, and the same from 1.x to 2.x. Checked against the
// attributes of arrays before the first use (ist__py_know_numpy).
typedef struct numpy_array {
  PyObject_HEAD char *data;
  int ndim;
  Py_ssize_t *shape;
  Py_ssize_t *strides;  // in bytes
  PyObject *base;
  PyObject *dtype;
  int flags;
} numpy_array;

// NumPy's array flags (NPY_ARRAY_ALIGNED and so on).
enum {
  NUMPY_ALIGNED = 0x100,
  NUMPY_WRITEABLE = 0x400
};
// A write would warn: a view that overlaps itself.
static const unsigned numpy_warns = 0x80000000U;

static const DLDataType *find_dtype(const ist__py_known *known,
                                    const PyObject *dtype) {
  for (size_t i = 0; i < known->count; i++)
    if (known->dtypes[i].object == dtype) return &known->dtypes[i].dtype;
  return NULL;
}

// ------------------------------------------------------------------ NumPy --

// 1: taken, 0: not plain, -1: an exception is set.
static int take_numpy(ist__py_state *state, PyObject *source,
                      ist__py_managed *out) {
  const numpy_array *array = (const numpy_array *)source;
  const DLDataType *dtype = find_dtype(&state->numpy, array->dtype);
  unsigned flags = (unsigned)array->flags;
  if (dtype == NULL || array->ndim > IST_MAX_NDIM ||
      (flags & NUMPY_ALIGNED) == 0 || (flags & numpy_warns) != 0)
    return 0;
  int64_t shape[IST_MAX_NDIM], strides[IST_MAX_NDIM];
  Py_ssize_t size = dtype->bits / 8;
  for (int i = 0; i < array->ndim; i++) {
    if (array->strides[i] % size != 0) return 0;
    shape[i] = array->shape[i];
    strides[i] = array->strides[i] / size;
  }
  DLTensor view = {.data = array->data,
                   .device = {kDLCPU, 0},
                   .ndim = array->ndim,
                   .dtype = *dtype,
                   .shape = shape,
                   .strides = strides};
  bool read_only = (flags & NUMPY_WRITEABLE) == 0;
  out->versioned =
      ist__py_owner_new(state, &view, read_only, false, source, NULL);
  return out->versioned == NULL ? -1 : 1;
}

// Whether the fields of an array are what NumPy says of it: sample is (array,
// address, shape, strides, flags). -1 with an exception set.
static int is_as_declared(PyObject *sample) {
  PyObject *source, *shape, *strides;
  unsigned long long address;
  int flags;
  if (!PyArg_ParseTuple(sample, "OKO!O!i", &source, &address, &PyTuple_Type,
                        &shape, &PyTuple_Type, &strides, &flags))
    return -1;
  const numpy_array *array = (const numpy_array *)source;
  PyObject *dtype = PyObject_GetAttrString(source, "dtype");
  if (dtype == NULL) return -1;
  Py_DECREF(dtype);  // the array keeps it
  if ((uintptr_t)array->data != address || array->dtype != dtype ||
      array->flags != flags || array->ndim != PyTuple_Size(shape) ||
      array->ndim != PyTuple_Size(strides))
    return 0;
  for (int i = 0; i < array->ndim; i++) {
    if (PyLong_AsSsize_t(PyTuple_GetItem(shape, i)) != array->shape[i] ||
        PyLong_AsSsize_t(PyTuple_GetItem(strides, i)) != array->strides[i])
      return PyErr_Occurred() ? -1 : 0;
  }
  return 1;
}

// ------------------------------------------------------------------ torch --

// Clears what was raised, so that the slow path says it; an interrupt or an
// exit stays. 0 or -1.
static int not_plain(void) {
  if (PyErr_Occurred() == NULL) return 0;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
  PyErr_Clear();
  return 0;
}

// What a method without arguments gives, as a number; -1 where it is none.
static long long number_of(PyObject *method, PyObject *object) {
  PyObject *value = PyObject_CallFunctionObjArgs(method, object, NULL);
  long long number = value == NULL ? -1 : PyLong_AsLongLong(value);
  Py_XDECREF(value);
  return number;
}

// Whether an attribute, or what a method gives, is False.
static bool says_no(PyObject *value) {
  Py_XDECREF(value);  // True and False are for ever
  return value == Py_False;
}

// Whether the last element of a view lies inside size bytes of storage, of
// which the view begins at element start.
static bool is_inside(const DLTensor *view, int64_t start, int64_t size) {
  int64_t last = start;
  for (int32_t i = 0; i < view->ndim; i++) {
    int64_t extent;
    if (view->shape[i] == 0) return true;
    if (view->shape[i] < 0 || view->strides[i] < 0 ||
        __builtin_mul_overflow(view->shape[i] - 1, view->strides[i], &extent) ||
        __builtin_add_overflow(last, extent, &last))
      return false;
  }
  return start >= 0 && last < size / (view->dtype.bits * view->dtype.lanes / 8);
}

// The tensor's storage keeps the memory, also after x.data = y and x.set_(y),
// which let go of it for the tensor itself.
static int take_storage(ist__py_state *state, PyObject *source,
                        const DLTensor *view, ist__py_managed *out) {
  const ist__py_torch *ask = &state->ask;
  PyObject *storage =
      PyObject_CallFunctionObjArgs(ask->untyped_storage, source, NULL);
  if (storage == NULL) return not_plain();
  int64_t start = number_of(ask->storage_offset, source);
  int64_t size = number_of(ask->nbytes, storage);
  int taken = 0;
  if (PyErr_Occurred() != NULL) {
    taken = not_plain();
  } else if (is_inside(view, start, size)) {
    out->versioned =
        ist__py_owner_new(state, view, false, false, storage, NULL);
    taken = out->versioned == NULL ? -1 : 1;
  }
  Py_DECREF(storage);
  return taken;
}

// Sparse, nested, meta and wrapped tensors have no geometry or no address to
// give, which the exchange API says by an exception.
static int take_torch(ist__py_state *state, PyObject *source,
                      ist__py_managed *out) {
  const ist__py_torch *ask = &state->ask;
  PyObject *type = (PyObject *)Py_TYPE(source);
  PyObject *object = ask->get(ask->dtype, source, type);
  const DLDataType *dtype = find_dtype(&state->torch, object);
  Py_XDECREF(object);  // the list keeps it
  if (dtype == NULL || !says_no(ask->get(ask->requires_grad, source, type)) ||
      !says_no(PyObject_CallFunctionObjArgs(ask->is_neg, source, NULL)) ||
      (dtype->code == kDLComplex &&
       !says_no(PyObject_CallFunctionObjArgs(ask->is_conj, source, NULL))))
    return not_plain();
  DLTensor view = {0};
  if (ask->api->dltensor_from_py_object_no_sync(source, &view) != 0 ||
      PyErr_Occurred() != NULL)
    return not_plain();
  // Of int1 to uint7 the exchange API says that they are of 8 bits.
  if (view.device.device_type != kDLCPU || view.ndim < 0 ||
      view.ndim > IST_MAX_NDIM || view.strides == NULL ||
      view.dtype.code != dtype->code || view.dtype.bits != dtype->bits ||
      view.dtype.lanes != dtype->lanes)
    return 0;
  return take_storage(state, source, &view, out);
}

// -------------------------------------------------------------- the types --

int ist__py_fast_take(ist__py_state *state, PyObject *source,
                      ist__py_managed *out, ist_grant *out_grant) {
  PyTypeObject *type = Py_TYPE(source);
  if (state->slow) return 0;
  if (type == state->numpy.type) {
    *out_grant = IST_GRANT_FROM_SOURCE;
    return take_numpy(state, source, out);
  }
  if (type == state->torch.type || type == state->torch.twin) {
    *out_grant = IST_GRANT_WRITABLE;
    return take_torch(state, source, out);
  }
  return 0;
}

static void clear(ist__py_known *known) {
  for (size_t i = 0; i < known->count; i++) Py_CLEAR(known->dtypes[i].object);
  known->count = 0;
  Py_CLEAR(known->type);
  Py_CLEAR(known->twin);
}

static void forget(ist__py_torch *ask) {
  Py_CLEAR(ask->dtype);
  Py_CLEAR(ask->requires_grad);
  Py_CLEAR(ask->is_neg);
  Py_CLEAR(ask->is_conj);
  Py_CLEAR(ask->untyped_storage);
  Py_CLEAR(ask->storage_offset);
  Py_CLEAR(ask->nbytes);
}

void ist__py_fast_clear(ist__py_state *state) {
  clear(&state->numpy);
  clear(&state->torch);
  forget(&state->ask);
  for (size_t i = 0; i < sizeof state->takers / sizeof state->takers[0]; i++) {
    Py_CLEAR(state->takers[i].name);
    Py_CLEAR(state->takers[i].consumer);
    Py_CLEAR(state->takers[i].accept);
  }
}

// Fills the list of dtypes from pairs (dtype, name), then says which types they
// are for; 0 or -1.
static int know(ist__py_state *state, ist__py_known *known, PyObject *type,
                PyObject *twin, PyObject *pairs) {
  size_t most = sizeof known->dtypes / sizeof known->dtypes[0];
  Py_ssize_t count = PyTuple_Size(pairs);
  clear(known);
  for (Py_ssize_t i = 0; i < count && known->count < most; i++) {
    PyObject *object, *name;
    DLDataType dtype;
    if (!PyArg_ParseTuple(PyTuple_GetItem(pairs, i), "OO", &object, &name) ||
        ist__py_dtype_parse(state, name, &dtype) < 0)
      return -1;
    if (dtype.bits < 8 || dtype.lanes != 1) continue;
    known->dtypes[known->count].object = Py_NewRef(object);
    known->dtypes[known->count++].dtype = dtype;
  }
  known->type = (PyTypeObject *)Py_NewRef(type);
  known->twin = (PyTypeObject *)Py_XNewRef(twin);
  return 0;
}

// know_numpy(ndarray, dtypes, samples) -> bool: whether plain arrays can be
// read in place: the fields of every sample are what its attributes say.
PyObject *ist__py_know_numpy(PyObject *module, PyObject *args) {
  ist__py_state *state = ist__py_state_of(module);
  PyObject *type, *pairs, *samples;
  if (!PyArg_ParseTuple(args, "O!O!O!", &PyType_Type, &type, &PyTuple_Type,
                        &pairs, &PyTuple_Type, &samples))
    return NULL;
  int good = PyTuple_Size(samples) > 0;
  for (Py_ssize_t i = 0; good == 1 && i < PyTuple_Size(samples); i++)
    good = is_as_declared(PyTuple_GetItem(samples, i));
  if (good < 0 || (good == 1 && know(state, &state->numpy, type, NULL, pairs)))
    return NULL;
  return PyBool_FromLong(good);
}

// Looks up what tensors are asked for. False where a name is missing, or is
// behind another kind of attribute than torch's of today.
static bool look_up(ist__py_torch *ask, PyObject *tensor, PyObject *storage) {
  struct {
    PyObject **slot;
    PyObject *type;
    const char *name;
  } all[] = {{&ask->dtype, tensor, "dtype"},
             {&ask->requires_grad, tensor, "requires_grad"},
             {&ask->is_neg, tensor, "is_neg"},
             {&ask->is_conj, tensor, "is_conj"},
             {&ask->untyped_storage, tensor, "untyped_storage"},
             {&ask->storage_offset, tensor, "storage_offset"},
             {&ask->nbytes, storage, "nbytes"}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    ist__py_set(all[i].slot, PyObject_GetAttrString(all[i].type, all[i].name));
    if (*all[i].slot == NULL) {
      PyErr_Clear();
      return false;
    }
  }
  ask->get = (descrgetfunc)(uintptr_t)PyType_GetSlot(Py_TYPE(ask->dtype),
                                                     Py_tp_descr_get);
  return ask->get != NULL && Py_TYPE(ask->requires_grad) == Py_TYPE(ask->dtype);
}

// know_torch(Tensor, Parameter, UntypedStorage, dtypes) -> bool: whether plain
// tensors can be read by the C exchange API of their type.
PyObject *ist__py_know_torch(PyObject *module, PyObject *args) {
  ist__py_state *state = ist__py_state_of(module);
  PyObject *type, *twin, *storage, *pairs;
  if (!PyArg_ParseTuple(args, "O!O!O!O!", &PyType_Type, &type, &PyType_Type,
                        &twin, &PyType_Type, &storage, &PyTuple_Type, &pairs))
    return NULL;
  ist__py_torch ask = {.api = ist__py_exchange_api(state, type)};
  if (ask.api == NULL && PyErr_Occurred()) return NULL;
  // What was known stays until all of the new is.
  if (ask.api == NULL || ask.api->dltensor_from_py_object_no_sync == NULL ||
      !look_up(&ask, type, storage)) {
    forget(&ask);
    Py_RETURN_FALSE;
  }
  forget(&state->ask);
  state->ask = ask;
  if (know(state, &state->torch, type, twin, pairs) < 0) return NULL;
  Py_RETURN_TRUE;
}

// slow(bool) -> bool: whether everything goes through the adapters in Python,
// for tests that compare the two; gives what was so before.
PyObject *ist__py_slow(PyObject *module, PyObject *wish) {
  ist__py_state *state = ist__py_state_of(module);
  bool was = state->slow;
  int is_true = PyObject_IsTrue(wish);
  if (is_true < 0) return NULL;
  state->slow = is_true != 0;
  return PyBool_FromLong(was);
}
