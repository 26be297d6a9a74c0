// SPDX-License-Identifier: Apache-2.0
// _core_to.c: isthmus.to(x, target) without wishes, of a plain array, a plain
// tensor or a Tensor, to a framework or a device: the commonest call, without
// a call into Python code of ours. Whatever else is asked, is not plain or
// fails goes to isthmus._exchange.to, which does it, or says why not.

#include "_core.h"

// An object whose __dlpack__ gives one capsule, whatever is asked: the route
// has been decided already.
typedef struct once {
  PyObject_HEAD PyObject *capsule;
  ist__py_state *state;
} once;

static PyObject *once_make(ist__py_state *state, PyObject *capsule) {
  once *self = PyObject_New(once, state->once_type);
  if (self == NULL) return NULL;
  self->capsule = Py_NewRef(capsule);
  self->state = state;
  return (PyObject *)self;
}

static PyObject *once_new(PyTypeObject *type, PyObject *args,
                          PyObject *kwargs) {
  PyObject *capsule;
  static char *names[] = {"capsule", NULL};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", names, &capsule))
    return NULL;
  return once_make(PyType_GetModuleState(type), capsule);
}

static void once_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_DECREF(((once *)self)->capsule);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject *once_dlpack(PyObject *self, PyObject *const *args,
                             Py_ssize_t count, PyObject *names) {
  (void)args, (void)count, (void)names;
  return Py_NewRef(((once *)self)->capsule);
}

static PyObject *once_device(PyObject *self, PyObject *unused) {
  (void)unused;
  return Py_NewRef(((once *)self)->state->host_pair);
}

static PyMethodDef once_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))once_dlpack,
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"__dlpack_device__", once_device, METH_NOARGS, NULL},
    {0}};

static PyType_Slot once_slots[] = {
    {Py_tp_new, IST__PY_SLOT(once_new)},
    {Py_tp_dealloc, IST__PY_SLOT(once_dealloc)},
    {Py_tp_methods, once_methods},
    {Py_tp_doc, "A capsule as an object with __dlpack__."},
    {0, NULL}};

static PyType_Spec once_spec = {
    .name = "isthmus._core.Once",
    .basicsize = sizeof(once),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = once_slots};

PyObject *ist__py_once_type(PyObject *module) {
  return PyType_FromModuleAndSpec(module, &once_spec, NULL);
}

// take_for(name, consumer, dtypes, accept): how a framework takes tensors of
// these dtypes: by a function that wants an object with __dlpack__, or (None)
// by the C exchange API of torch.
PyObject *ist__py_take_for(PyObject *module, PyObject *args) {
  ist__py_state *state = ist__py_state_of(module);
  PyObject *name, *consumer, *dtypes, *accept;
  uint64_t numbers = 0;
  if (!PyArg_ParseTuple(args, "UO!OO", &name, state->consumer_type, &consumer,
                        &dtypes, &accept) ||
      ist__py_read_dtypes(dtypes, &numbers) < 0)
    return NULL;
  for (size_t i = 0; i < sizeof state->takers / sizeof state->takers[0]; i++) {
    ist__py_taker *taker = &state->takers[i];
    if (taker->name != NULL && PyUnicode_Compare(taker->name, name) != 0)
      continue;
    ist__py_set(&taker->name, Py_NewRef(name));
    ist__py_set(&taker->consumer, Py_NewRef(consumer));
    ist__py_set(&taker->accept, accept == Py_None ? NULL : Py_NewRef(accept));
    taker->dtypes = numbers;
    break;
  }
  Py_RETURN_NONE;
}

static const ist__py_taker *find_taker(const ist__py_state *state,
                                       PyObject *target) {
  if (!PyUnicode_CheckExact(target)) return NULL;
  for (size_t i = 0; i < sizeof state->takers / sizeof state->takers[0]; i++)
    if (state->takers[i].name != NULL &&
        (state->takers[i].name == target ||
         PyUnicode_Compare(state->takers[i].name, target) == 0))
      return &state->takers[i];
  return NULL;
}

// The tensor of a plain source, retained; NULL where the adapters must look,
// or with an exception.
static ist_tensor *take_source(ist__py_state *state, PyObject *x) {
  if (Py_IS_TYPE(x, state->tensor_type)) {
    ist_tensor *tensor = ((ist__py_tensor *)x)->tensor;
    if (tensor != NULL) ist_tensor_retain(tensor);
    return tensor;
  }
  ist_options options = {.struct_size = sizeof options};
  ist__py_managed managed = {0};
  ist_error err;
  ist_tensor *tensor = NULL;
  if (ist__py_fast_take(state, x, &managed, &options.grant) != 1) return NULL;
  if (ist_tensor_import(state->host, managed.versioned, &options, &tensor, NULL,
                        &err) != IST_OK)
    ist__py_managed_delete(managed);
  return tensor;
}

// Exports to a framework; releases tensor. NULL with or without an exception.
static DLManagedTensorVersioned *give(ist__py_state *state, ist_tensor *tensor,
                                      const ist__py_consumer *consumer) {
  ist_options options = {.struct_size = sizeof options,
                         .consumer = &consumer->capability,
                         .packing = consumer->packing};
  ist__py_watch watch = {0};
  DLManagedTensorVersioned *managed = NULL;
  ist_error err;
  ist__py_watch_begin(&watch, state, NULL, &options);
  ist__py_log_begin(state->log);
  ist__py_outside outside = ist__py_go_outside(state->life);
  ist_code code = ist_tensor_export(tensor, &options, &managed, NULL, &err);
  ist_tensor_release(tensor);
  ist__py_come_inside(&outside);
  if (code != IST_OK && watch.type != NULL)
    ist__py_watch_raise(&watch, state, &err);
  return code == IST_OK ? managed : NULL;
}

static PyObject *accept_by_exchange(ist__py_state *state,
                                    DLManagedTensorVersioned *managed) {
  ist__py_managed lent = {.versioned = managed};
  void *made = NULL;
  if (ist__py_lend(state, &lent) < 0) return NULL;
  if (state->ask.api->managed_tensor_to_py_object_no_sync(lent.versioned,
                                                          &made) == 0)
    return made;
  ist__py_managed_delete(lent);
  return NULL;
}

static PyObject *accept_by_call(ist__py_state *state, PyObject *function,
                                DLManagedTensorVersioned *managed) {
  PyObject *made = NULL;
  PyObject *capsule = ist__py_capsule_versioned(state, managed);
  PyObject *carrier = capsule == NULL ? NULL : once_make(state, capsule);
  if (carrier != NULL)
    made = PyObject_CallFunctionObjArgs(function, carrier, NULL);
  Py_XDECREF(carrier);
  Py_XDECREF(capsule);
  return made;
}

static PyObject *to_framework(ist__py_state *state, PyObject *x,
                              const ist__py_taker *taker) {
  if (taker->accept == NULL &&
      (state->ask.api == NULL ||
       state->ask.api->managed_tensor_to_py_object_no_sync == NULL))
    return NULL;
  ist_tensor *tensor = take_source(state, x);
  if (tensor == NULL) return NULL;
  int32_t number = ist_dtype_number(ist_tensor_view(tensor)->dtype);
  if (number < 0 || (taker->dtypes >> number & 1) == 0) {
    ist__py_release(state, tensor);
    return NULL;
  }
  DLManagedTensorVersioned *managed =
      give(state, tensor, (const ist__py_consumer *)taker->consumer);
  if (managed == NULL) return NULL;
  return taker->accept == NULL ? accept_by_exchange(state, managed)
                               : accept_by_call(state, taker->accept, managed);
}

static PyObject *to_device(ist__py_state *state, PyObject *x,
                           PyObject *target) {
  ist__py_how how = {.options = {.struct_size = sizeof how.options}};
  ist__py_managed managed = {0};
  PyObject *keep = NULL, *made = NULL;
  if (ist__py_fast_take(state, x, &managed, &how.options.grant) != 1)
    return NULL;
  how.device = ist__py_device_find(state, target, &keep, &how.options.memory);
  if (how.device != NULL)
    made = ist__py_import_or_not(state, managed, &how);
  else
    ist__py_managed_delete(managed);
  Py_XDECREF(keep);
  return made;
}

static PyObject *to_slowly(PyObject *const *args, Py_ssize_t count,
                           PyObject *names) {
  PyObject *module = PyImport_ImportModule("isthmus._exchange");
  PyObject *function =
      module == NULL ? NULL : PyObject_GetAttrString(module, "to");
  PyObject *given = PyTuple_New(count);
  PyObject *wishes = PyDict_New();
  PyObject *made = NULL;
  bool ready = function != NULL && given != NULL && wishes != NULL;
  for (Py_ssize_t i = 0; ready && i < count; i++)
    PyTuple_SetItem(given, i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; ready && names != NULL && i < PyTuple_Size(names); i++)
    ready =
        PyDict_SetItem(wishes, PyTuple_GetItem(names, i), args[count + i]) == 0;
  if (ready) made = PyObject_Call(function, given, wishes);
  Py_XDECREF(module);
  Py_XDECREF(function);
  Py_XDECREF(given);
  Py_XDECREF(wishes);
  return made;
}

PyObject *ist__py_to(PyObject *module, PyObject *const *args, Py_ssize_t count,
                     PyObject *names) {
  ist__py_state *state = ist__py_state_of(module);
  if (count != 2 || names != NULL || state->slow)
    return to_slowly(args, count, names);
  PyObject *made = NULL;
  const ist__py_taker *taker = find_taker(state, args[1]);
  if (taker != NULL)
    made = to_framework(state, args[0], taker);
  else if (Py_IS_TYPE(args[1], state->device_type) ||
           Py_IS_TYPE(args[1], state->backend_type))
    made = to_device(state, args[0], args[1]);
  if (made != NULL) return made;
  // The adapters say what is wrong; an interrupt or an exit stays.
  if (PyErr_Occurred() != NULL) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
    PyErr_Clear();
  }
  return to_slowly(args, count, names);
}
