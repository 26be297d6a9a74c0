// SPDX-License-Identifier: Apache-2.0
// _core_backend.c: isthmus.Backend: an open device runtime, and isthmus.open
// with its place's name or kind, and options.

#include <string.h>

#include "_core.h"

PyObject *ist__py_backend_new(ist__py_state *state, ist_backend *backend) {
  ist__py_backend *self = PyObject_New(ist__py_backend, state->backend_type);
  if (self == NULL) return NULL;
  ist_backend_retain(backend);
  self->backend = backend;
  self->was = (uintptr_t)backend;
  self->state = state;
  self->place = 0;
  self->memory[0] = '\0';
  return (PyObject *)self;
}

static ist__py_backend *backend_of(PyObject *self) {
  return (ist__py_backend *)self;
}

// Closing waits for the devices: other threads run meanwhile.
static void drop(ist__py_backend *self) {
  ist_backend *backend = self->backend;
  self->backend = NULL;
  if (backend == NULL) return;
  Py_BEGIN_ALLOW_THREADS ist_backend_release(backend);
  Py_END_ALLOW_THREADS
}

static void backend_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  drop(backend_of(self));
  PyObject_Free(self);
  Py_DECREF(type);
}

// The backend inside, borrowed: good while the GIL is held.
static ist_backend *borrow(PyObject *self) {
  ist_backend *backend = backend_of(self)->backend;
  if (backend == NULL)
    ist__py_raisef(backend_of(self)->state, IST_ERR_CLOSED,
                   "a backend could not be used: it is closed; needs an open "
                   "one");
  return backend;
}

static int describe(PyObject *self, ist_backend_info *out) {
  ist_backend *backend = borrow(self);
  if (backend == NULL) return -1;
  *out = (ist_backend_info){.struct_size = sizeof *out};
  ist_error err = {0};
  if (ist_backend_describe(backend, out, &err) == IST_OK) return 0;
  ist__py_raise(backend_of(self)->state, &err);
  return -1;
}

static PyObject *get_name(PyObject *self, void *unused) {
  (void)unused;
  ist_backend_info info;
  return describe(self, &info) < 0 ? NULL : ist__py_text(info.name);
}

static PyObject *get_platform(PyObject *self, void *unused) {
  (void)unused;
  ist_backend_info info;
  return describe(self, &info) < 0 ? NULL : ist__py_text(info.platform);
}

static PyObject *get_version(PyObject *self, void *unused) {
  (void)unused;
  ist_backend_info info;
  return describe(self, &info) < 0 ? NULL : ist__py_text(info.version);
}

static PyObject *get_runs_programs(PyObject *self, void *unused) {
  (void)unused;
  ist_backend_info info;
  return describe(self, &info) < 0 ? NULL : PyBool_FromLong(info.runs_programs);
}

static PyObject *get_devices(PyObject *self, void *unused) {
  (void)unused;
  ist_backend_info info;
  if (describe(self, &info) < 0) return NULL;
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list != NULL && i < info.device_count; i++) {
    PyObject *device =
        ist__py_device_new(backend_of(self)->state,
                           ist_backend_device(backend_of(self)->backend, i));
    if (device == NULL || PyList_Append(list, device) < 0) Py_CLEAR(list);
    Py_XDECREF(device);
  }
  return list;
}

static const ist_device *own_device(PyObject *self) {
  ist_backend *backend = borrow(self);
  if (backend == NULL) return NULL;
  const ist_device *device =
      ist_backend_device(backend, backend_of(self)->place);
  if (device == NULL)
    ist__py_raisef(backend_of(self)->state, IST_ERR_NO_DEVICE,
                   "a backend could not be used: it has no device %zu; needs "
                   "one",
                   backend_of(self)->place);
  return device;
}

static PyObject *get_device(PyObject *self, void *unused) {
  (void)unused;
  const ist_device *device = own_device(self);
  if (device == NULL) return NULL;
  return ist__py_device_new(backend_of(self)->state, device);
}

static PyObject *backend_repr(PyObject *self) {
  if (backend_of(self)->backend == NULL)
    return PyUnicode_FromString("Backend(closed)");
  ist_backend_info info;
  if (describe(self, &info) < 0) return NULL;
  return PyUnicode_FromFormat("Backend(%s, platform=%s, devices=%zu)",
                              info.name, info.platform, info.device_count);
}

// A closed one equals itself only: its backend's address may be used again.
static PyObject *backend_compare(PyObject *self, PyObject *other, int how) {
  if ((how != Py_EQ && how != Py_NE) ||
      !Py_IS_TYPE(other, backend_of(self)->state->backend_type))
    Py_RETURN_NOTIMPLEMENTED;
  const ist_backend *inside = backend_of(self)->backend;
  bool equal =
      self == other || (inside != NULL && inside == backend_of(other)->backend);
  return PyBool_FromLong(equal == (how == Py_EQ));
}

static Py_hash_t backend_hash(PyObject *self) {
  Py_hash_t hash = (Py_hash_t)(backend_of(self)->was >> 4);
  return hash == -1 ? -2 : hash;
}

// compile(stablehlo, *, device=None, name=None) -> Program
static PyObject *backend_compile(PyObject *self, PyObject *args,
                                 PyObject *kwargs) {
  static char *names[] = {"stablehlo", "device", "name", NULL};
  PyObject *code, *target = Py_None, *keep = NULL;
  const char *name = NULL, *memory = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$Oz", names, &code, &target,
                                   &name))
    return NULL;
  ist__py_state *state = backend_of(self)->state;
  const ist_device *device =
      target == Py_None ? own_device(self)
                        : ist__py_device_find(state, target, &keep, &memory);
  PyObject *result = NULL;
  if (device != NULL) {
    // Another thread may close this object meanwhile.
    ist_backend *backend = ist_device_backend(device);
    ist_backend_retain(backend);
    result = ist__py_program_compile(state, device, code, name);
    ist_backend_release(backend);
  }
  Py_XDECREF(keep);
  return result;
}

static PyObject *backend_close(PyObject *self, PyObject *unused) {
  (void)unused;
  drop(backend_of(self));
  Py_RETURN_NONE;
}

static PyObject *backend_enter(PyObject *self, PyObject *unused) {
  (void)unused;
  return borrow(self) == NULL ? NULL : Py_NewRef(self);
}

static PyObject *backend_exit(PyObject *self, PyObject *args) {
  (void)args;
  drop(backend_of(self));
  Py_RETURN_NONE;
}

static PyGetSetDef backend_getset[] = {
    {"name", get_name, NULL, "As it names itself in errors.", NULL},
    {"platform", get_platform, NULL, "The runtime's platform.", NULL},
    {"version", get_version, NULL, "The runtime's words on its version.", NULL},
    {"runs_programs", get_runs_programs, NULL, "It can compile and run.", NULL},
    {"devices", get_devices, NULL, "Its devices.", NULL},
    {"device", get_device, NULL, "The device that its place named, or 0.",
     NULL},
    {0}};

static PyMethodDef backend_methods[] = {
    {"compile", (PyCFunction)(void (*)(void))backend_compile,
     METH_VARARGS | METH_KEYWORDS,
     "compile($self, stablehlo, *, device=None, name=None)\n--\n\n"
     "Compiles StableHLO, as text or bytecode."},
    {"close", backend_close, METH_NOARGS,
     "close($self, /)\n--\n\nLets go of it; its tensors keep it open."},
    {"__enter__", backend_enter, METH_NOARGS, NULL},
    {"__exit__", backend_exit, METH_VARARGS, NULL},
    {0}};

static PyType_Slot backend_slots[] = {
    {Py_tp_dealloc, IST__PY_SLOT(backend_dealloc)},
    {Py_tp_repr, IST__PY_SLOT(backend_repr)},
    {Py_tp_richcompare, IST__PY_SLOT(backend_compare)},
    {Py_tp_hash, IST__PY_SLOT(backend_hash)},
    {Py_tp_getset, backend_getset},
    {Py_tp_methods, backend_methods},
    {Py_tp_doc, "An open device runtime."},
    {0, NULL}};

static PyType_Spec backend_spec = {.name = "isthmus.Backend",
                                   .basicsize = sizeof(ist__py_backend),
                                   .flags = Py_TPFLAGS_DEFAULT |
                                            Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                            Py_TPFLAGS_IMMUTABLETYPE,
                                   .slots = backend_slots};

PyObject *ist__py_backend_type(PyObject *module) {
  return PyType_FromModuleAndSpec(module, &backend_spec, NULL);
}
