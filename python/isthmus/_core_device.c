// SPDX-License-Identifier: Apache-2.0
// _core_device.c: isthmus.Device: a device of a backend, which it keeps open.
// It equals the pair that __dlpack_device__ gives for tensors on it.

#include "_core.h"

PyObject *ist__py_device_new(ist__py_state *state, const ist_device *device) {
  ist__py_device *self = PyObject_New(ist__py_device, state->device_type);
  if (self == NULL) return NULL;
  self->backend = ist_device_backend(device);
  ist_backend_retain(self->backend);
  self->device = device;
  self->state = state;
  return (PyObject *)self;
}

static void device_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  ist_backend *backend = ((ist__py_device *)self)->backend;
  Py_BEGIN_ALLOW_THREADS ist_backend_release(backend);
  Py_END_ALLOW_THREADS PyObject_Free(self);
  Py_DECREF(type);
}

static ist_device_info info_of(PyObject *self) {
  ist_device_info info = {.struct_size = sizeof info};
  ist_device_describe(((ist__py_device *)self)->device, &info, NULL);
  return info;
}

// Where no DLPack code names the device, its tensors are exported on the host.
static DLDevice pair_of(PyObject *self) {
  DLDevice pair = info_of(self).dl_device;
  return pair.device_type != 0 ? pair : (DLDevice){kDLCPU, 0};
}

static PyObject *get_type(PyObject *self, void *unused) {
  (void)unused;
  PyObject *module = PyImport_ImportModule("isthmus._types");
  if (module == NULL) return NULL;
  PyObject *type = PyObject_CallMethod(module, "DeviceType", "i",
                                       (int)pair_of(self).device_type);
  Py_DECREF(module);
  return type;
}

static PyObject *get_id(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLong(pair_of(self).device_id);
}

static PyObject *get_index(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromSize_t(info_of(self).index);
}

static PyObject *get_name(PyObject *self, void *unused) {
  (void)unused;
  return ist__py_text(info_of(self).name);
}

static PyObject *get_kind(PyObject *self, void *unused) {
  (void)unused;
  return ist__py_text(info_of(self).kind);
}

static PyObject *get_backend(PyObject *self, void *unused) {
  (void)unused;
  ist__py_device *device = (ist__py_device *)self;
  return ist__py_backend_new(device->state, device->backend);
}

// Each memory as (kind, alignment that a view needs, or 0 where it cannot
// view).
static PyObject *get_memories(PyObject *self, void *unused) {
  (void)unused;
  ist_device_info info = info_of(self);
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list != NULL && i < info.memory_count; i++) {
    ist_memory_info memory = {.struct_size = sizeof memory};
    ist_device_memory(((ist__py_device *)self)->device, i, &memory, NULL);
    bool views = (memory.capability.can & IST_CAN_ADOPT) != 0;
    PyObject *pair = Py_BuildValue(
        "NK", ist__py_text(memory.kind == NULL ? "" : memory.kind),
        views ? (unsigned long long)memory.capability.alignment : 0ULL);
    if (pair == NULL || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

static PyObject *device_repr(PyObject *self) {
  ist_backend_info backend = {.struct_size = sizeof backend};
  ist_backend_describe(((ist__py_device *)self)->backend, &backend, NULL);
  DLDevice pair = pair_of(self);
  return PyUnicode_FromFormat("Device(%s#%zu, type=%d, id=%d)", backend.name,
                              info_of(self).index, (int)pair.device_type,
                              (int)pair.device_id);
}

static Py_hash_t device_hash(PyObject *self) {
  DLDevice pair = pair_of(self);
  PyObject *tuple =
      Py_BuildValue("ii", (int)pair.device_type, (int)pair.device_id);
  if (tuple == NULL) return -1;
  Py_hash_t hash = PyObject_Hash(tuple);
  Py_DECREF(tuple);
  return hash;
}

static PyObject *device_compare(PyObject *self, PyObject *other, int how) {
  ist__py_device *device = (ist__py_device *)self;
  if (how != Py_EQ && how != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  bool equal;
  if (Py_IS_TYPE(other, device->state->device_type)) {
    equal = device->device == ((ist__py_device *)other)->device;
  } else if (PyTuple_Check(other) && PyTuple_Size(other) == 2) {
    DLDevice pair = pair_of(self);
    PyObject *tuple =
        Py_BuildValue("ii", (int)pair.device_type, (int)pair.device_id);
    if (tuple == NULL) return NULL;
    PyObject *result = PyObject_RichCompare(tuple, other, how);
    Py_DECREF(tuple);
    return result;
  } else {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return PyBool_FromLong(equal == (how == Py_EQ));
}

static PyGetSetDef device_getset[] = {
    {"type", get_type, NULL, "DLPack's device code, a DeviceType.", NULL},
    {"id", get_id, NULL, "DLPack's number of the device.", NULL},
    {"backend", get_backend, NULL, "The backend that it belongs to.", NULL},
    {"index", get_index, NULL, "Its number in the backend.", NULL},
    {"name", get_name, NULL, "The runtime's own name for it.", NULL},
    {"kind", get_kind, NULL, "The runtime's kind of device.", NULL},
    {"memories", get_memories, NULL,
     "Its memories: (kind, alignment that a view needs; 0: no views).", NULL},
    {0}};

static PyType_Slot device_slots[] = {
    {Py_tp_dealloc, IST__PY_SLOT(device_dealloc)},
    {Py_tp_repr, IST__PY_SLOT(device_repr)},
    {Py_tp_hash, IST__PY_SLOT(device_hash)},
    {Py_tp_richcompare, IST__PY_SLOT(device_compare)},
    {Py_tp_getset, device_getset},
    {Py_tp_doc, "A device of a backend."},
    {0, NULL}};

static PyType_Spec device_spec = {.name = "isthmus.Device",
                                  .basicsize = sizeof(ist__py_device),
                                  .flags = Py_TPFLAGS_DEFAULT |
                                           Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                           Py_TPFLAGS_IMMUTABLETYPE,
                                  .slots = device_slots};

PyObject *ist__py_device_type(PyObject *module) {
  return PyType_FromModuleAndSpec(module, &device_spec, NULL);
}

static const ist_device *no_device(ist__py_state *state, PyObject *value) {
  char name[96];
  ist__py_type_name(value, name, sizeof name);
  ist__py_raisef(state, IST_ERR_NO_DEVICE,
                 "a device could not be found: got a %s; needs an isthmus "
                 "device or backend, (1, 0) or None",
                 name);
  return NULL;
}

const ist_device *ist__py_device_find(ist__py_state *state, PyObject *value,
                                      PyObject **out_keep,
                                      const char **out_memory) {
  *out_keep = NULL;
  *out_memory = NULL;
  if (value == Py_None) return state->host;
  if (Py_IS_TYPE(value, state->device_type)) {
    *out_keep = Py_NewRef(value);
    return ((ist__py_device *)value)->device;
  }
  if (Py_IS_TYPE(value, state->backend_type)) {
    ist__py_backend *backend = (ist__py_backend *)value;
    if (backend->backend == NULL) {
      ist__py_raisef(state, IST_ERR_CLOSED,
                     "a backend could not be used: it is closed; needs an "
                     "open one");
      return NULL;
    }
    const ist_device *device =
        ist_backend_device(backend->backend, backend->place);
    if (device == NULL) return no_device(state, value);
    if (backend->memory[0] != '\0') *out_memory = backend->memory;
    *out_keep = ist__py_device_new(state, device);
    return *out_keep == NULL ? NULL : device;
  }
  if (PyTuple_Check(value) && PyTuple_Size(value) == 2) {
    PyObject *host = Py_BuildValue("ii", kDLCPU, 0);
    int equal =
        host == NULL ? -1 : PyObject_RichCompareBool(value, host, Py_EQ);
    Py_XDECREF(host);
    if (equal < 0) return NULL;
    if (equal) return state->host;
  }
  return no_device(state, value);
}
