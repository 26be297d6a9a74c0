// SPDX-License-Identifier: Apache-2.0
// _core_tensor.c: isthmus.Tensor: a count on a tensor of the library, with its
// facts as attributes. How it leaves again is in _core_tensor_export.c.

#include <string.h>

#include "_core.h"

// After Python.h, which it does not include itself.
#include <structmember.h>

PyObject *ist__py_tensor_new(ist__py_state *state, ist_tensor *tensor) {
  ist__py_tensor *self = PyObject_New(ist__py_tensor, state->tensor_type);
  if (self == NULL) {
    ist__py_release(state, tensor);
    return NULL;
  }
  self->tensor = tensor;
  self->state = state;
  self->weak = NULL;
  return (PyObject *)self;
}

static ist__py_tensor *tensor_of(PyObject *self) {
  return (ist__py_tensor *)self;
}

ist_tensor *ist__py_tensor_borrow(PyObject *self) {
  ist_tensor *tensor = tensor_of(self)->tensor;
  if (tensor == NULL)
    ist__py_raisef(tensor_of(self)->state, IST_ERR_CLOSED,
                   "a tensor could not be used: it is closed; needs an open "
                   "one");
  return tensor;
}

ist_tensor *ist__py_tensor_get(PyObject *self) {
  ist_tensor *tensor = ist__py_tensor_borrow(self);
  if (tensor != NULL) ist_tensor_retain(tensor);
  return tensor;
}

// The last count may close a runtime, which waits for its devices, or call a
// producer's deleter: other threads run meanwhile.
static void drop(ist__py_tensor *self) {
  ist_tensor *tensor = self->tensor;
  self->tensor = NULL;
  ist__py_release(self->state, tensor);
}

static void tensor_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  if (tensor_of(self)->weak != NULL) PyObject_ClearWeakRefs(self);
  drop(tensor_of(self));
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject *tensor_close(PyObject *self, PyObject *unused) {
  (void)unused;
  drop(tensor_of(self));
  Py_RETURN_NONE;
}

static PyObject *tensor_enter(PyObject *self, PyObject *unused) {
  (void)unused;
  return ist__py_tensor_borrow(self) == NULL ? NULL : Py_NewRef(self);
}

static PyObject *tensor_exit(PyObject *self, PyObject *args) {
  (void)args;
  drop(tensor_of(self));
  Py_RETURN_NONE;
}

static PyObject *tensor_wait(PyObject *self, PyObject *unused) {
  (void)unused;
  ist__py_state *state = tensor_of(self)->state;
  ist_tensor *tensor = ist__py_tensor_get(self);
  if (tensor == NULL) return NULL;
  ist_error err = {0};
  ist_code code;
  ist__py_log_begin(state->log);
  Py_BEGIN_ALLOW_THREADS code = ist_tensor_wait(tensor, &err);
  ist_tensor_release(tensor);
  Py_END_ALLOW_THREADS if (code != IST_OK) return ist__py_raise(state, &err);
  return Py_NewRef(self);
}

static PyObject *tuple_of(const int64_t *numbers, int32_t count) {
  PyObject *tuple = PyTuple_New(count);
  for (int32_t i = 0; tuple != NULL && i < count; i++) {
    PyObject *number = PyLong_FromLongLong(numbers[i]);
    if (number == NULL)
      Py_CLEAR(tuple);
    else
      PyTuple_SetItem(tuple, i, number);
  }
  return tuple;
}

static PyObject *get_shape(PyObject *self, void *unused) {
  (void)unused;
  ist_tensor *tensor = ist__py_tensor_borrow(self);
  if (tensor == NULL) return NULL;
  const DLTensor *view = ist_tensor_view(tensor);
  return tuple_of(view->shape, view->ndim);
}

static PyObject *get_strides(PyObject *self, void *unused) {
  (void)unused;
  ist_tensor *tensor = ist__py_tensor_borrow(self);
  if (tensor == NULL) return NULL;
  const DLTensor *view = ist_tensor_view(tensor);
  return tuple_of(view->strides, view->ndim);
}

static PyObject *get_ndim(PyObject *self, void *unused) {
  (void)unused;
  ist_tensor *tensor = ist__py_tensor_borrow(self);
  if (tensor == NULL) return NULL;
  return PyLong_FromLong(ist_tensor_view(tensor)->ndim);
}

static PyObject *get_dtype(PyObject *self, void *unused) {
  (void)unused;
  ist_tensor *tensor = ist__py_tensor_borrow(self);
  if (tensor == NULL) return NULL;
  return ist__py_dtype_get(tensor_of(self)->state,
                           ist_tensor_view(tensor)->dtype);
}

static PyObject *get_byte_offset(PyObject *self, void *unused) {
  (void)unused;
  ist_tensor *tensor = ist__py_tensor_borrow(self);
  if (tensor == NULL) return NULL;
  return PyLong_FromUnsignedLongLong(ist_tensor_view(tensor)->byte_offset);
}

static int describe(PyObject *self, ist_tensor_info *out) {
  ist_tensor *tensor = ist__py_tensor_borrow(self);
  if (tensor == NULL) return -1;
  *out = (ist_tensor_info){.struct_size = sizeof *out};
  ist_error err = {0};
  if (ist_tensor_describe(tensor, out, &err) == IST_OK) return 0;
  ist__py_raise(tensor_of(self)->state, &err);
  return -1;
}

static PyObject *get_nbytes(PyObject *self, void *unused) {
  (void)unused;
  ist_tensor_info info;
  if (describe(self, &info) < 0) return NULL;
  return PyLong_FromUnsignedLongLong(info.nbytes);
}

static PyObject *get_device(PyObject *self, void *unused) {
  (void)unused;
  ist_tensor_info info;
  if (describe(self, &info) < 0) return NULL;
  return ist__py_device_new(tensor_of(self)->state, info.device);
}

static PyObject *get_read_only(PyObject *self, void *unused) {
  (void)unused;
  ist_tensor_info info;
  if (describe(self, &info) < 0) return NULL;
  return PyBool_FromLong(info.read_only);
}

static PyObject *get_copied(PyObject *self, void *unused) {
  (void)unused;
  ist_tensor_info info;
  if (describe(self, &info) < 0) return NULL;
  return PyBool_FromLong(info.copied);
}

static PyObject *get_padded(PyObject *self, void *unused) {
  (void)unused;
  ist_tensor_info info;
  if (describe(self, &info) < 0) return NULL;
  return PyBool_FromLong(info.padded);
}

// What its strides are beyond row-major, as names.
static PyObject *get_layout(PyObject *self, void *unused) {
  (void)unused;
  static const struct {
    uint32_t layout;
    const char *name;
  } all[] = {{IST_LAYOUT_PERMUTED, "permuted"},
             {IST_LAYOUT_GAPS, "gaps"},
             {IST_LAYOUT_NEGATIVE, "negative"},
             {IST_LAYOUT_OVERLAP, "overlap"}};
  ist_tensor *tensor = ist__py_tensor_borrow(self);
  if (tensor == NULL) return NULL;
  const DLTensor *view = ist_tensor_view(tensor);
  ist_fit fit = {.struct_size = sizeof fit};
  ist_error err;
  if (ist_layout_fit(view->ndim, view->shape, view->strides, IST_LAYOUT_ANY,
                     &fit, &err) != IST_OK)
    return ist__py_raise(tensor_of(self)->state, &err);
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list != NULL && i < sizeof all / sizeof all[0]; i++) {
    if ((fit.layout & all[i].layout) == 0) continue;
    PyObject *name = PyUnicode_FromString(all[i].name);
    if (name == NULL || PyList_Append(list, name) < 0) Py_CLEAR(list);
    Py_XDECREF(name);
  }
  PyObject *tuple = list == NULL ? NULL : PyList_AsTuple(list);
  Py_XDECREF(list);
  return tuple;
}

static PyObject *get_owner_alive(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(tensor_of(self)->tensor != NULL);
}

// The address of element 0, or None where this process cannot read it. Waits
// for the values.
static PyObject *get_address(PyObject *self, void *unused) {
  (void)unused;
  PyObject *waited = tensor_wait(self, NULL);
  if (waited == NULL) return NULL;
  Py_DECREF(waited);
  ist_tensor *tensor = ist__py_tensor_borrow(self);
  if (tensor == NULL) return NULL;
  const DLTensor *view = ist_tensor_view(tensor);
  if (view->data == NULL) Py_RETURN_NONE;
  return PyLong_FromUnsignedLongLong((uintptr_t)view->data + view->byte_offset);
}

static PyObject *call_python(PyObject *self, const char *function,
                             PyObject *args) {
  PyObject *module = PyImport_ImportModule("isthmus._view");
  PyObject *method =
      module == NULL ? NULL : PyObject_GetAttrString(module, function);
  Py_XDECREF(module);
  if (method == NULL) return NULL;
  PyObject *result = args == NULL
                         ? PyObject_CallFunctionObjArgs(method, self, NULL)
                         : PyObject_CallObject(method, args);
  Py_DECREF(method);
  return result;
}

static PyObject *tensor_repr(PyObject *self) {
  return call_python(self, "text", NULL);
}

// __array__(dtype=None, copy=None): a NumPy array, as isthmus.to gives it.
static PyObject *tensor_array(PyObject *self, PyObject *args,
                              PyObject *kwargs) {
  static char *names[] = {"dtype", "copy", NULL};
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", names, &dtype, &copy))
    return NULL;
  PyObject *all = PyTuple_Pack(3, self, dtype, copy);
  if (all == NULL) return NULL;
  PyObject *result = call_python(self, "array", all);
  Py_DECREF(all);
  return result;
}

static PyGetSetDef tensor_getset[] = {
    {"shape", get_shape, NULL, "Extents of the dimensions.", NULL},
    {"strides", get_strides, NULL, "Strides, in elements.", NULL},
    {"layout", get_layout, NULL,
     "What the strides are: of \"permuted\", \"gaps\", \"negative\", "
     "\"overlap\"; () is dense and row-major.",
     NULL},
    {"ndim", get_ndim, NULL, "Number of dimensions.", NULL},
    {"dtype", get_dtype, NULL, "Element type; str() gives DLPack's name.",
     NULL},
    {"byte_offset", get_byte_offset, NULL,
     "Bytes from the memory's start to element 0.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of the elements.", NULL},
    {"device", get_device, NULL, "The device whose memory it is in.", NULL},
    {"read_only", get_read_only, NULL, "It must not be written.", NULL},
    {"copied", get_copied, NULL, "Its memory was made by a copy.", NULL},
    {"padded", get_padded, NULL, "Sub-byte elements take a byte each.", NULL},
    {"owner_alive", get_owner_alive, NULL,
     "It holds its memory: it is not closed.", NULL},
    {"address", get_address, NULL,
     "Address of element 0, or None where this process cannot read it.", NULL},
    {0}};

static PyMethodDef tensor_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))ist__py_tensor_dlpack,
     METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, "
     "copy=None)\n--\n\nA DLPack capsule of the tensor."},
    {"__dlpack_device__", ist__py_tensor_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\nThe pair of the device that "
     "__dlpack__ exports on."},
    {"__array__", (PyCFunction)(void (*)(void))tensor_array,
     METH_VARARGS | METH_KEYWORDS,
     "__array__($self, /, dtype=None, copy=None)\n--\n\nA NumPy array."},
    {"wait", tensor_wait, METH_NOARGS,
     "wait($self, /)\n--\n\nWaits for the values and gives the tensor."},
    {"close", tensor_close, METH_NOARGS,
     "close($self, /)\n--\n\nLets go of the memory; other views keep it."},
    {"__enter__", tensor_enter, METH_NOARGS, NULL},
    {"__exit__", tensor_exit, METH_VARARGS, NULL},
    {0}};

static PyMemberDef tensor_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ist__py_tensor, weak), READONLY,
     NULL},
    {0}};

static PyType_Slot tensor_slots[] = {
    {Py_tp_dealloc, IST__PY_SLOT(tensor_dealloc)},
    {Py_tp_repr, IST__PY_SLOT(tensor_repr)},
    {Py_tp_getset, tensor_getset},
    {Py_tp_methods, tensor_methods},
    {Py_tp_members, tensor_members},
    {Py_bf_getbuffer, IST__PY_SLOT(ist__py_tensor_getbuffer)},
    {Py_bf_releasebuffer, IST__PY_SLOT(ist__py_tensor_releasebuffer)},
    {Py_tp_doc, "Memory on a device, with its geometry and a hold on it."},
    {0, NULL}};

static PyType_Spec tensor_spec = {.name = "isthmus.Tensor",
                                  .basicsize = sizeof(ist__py_tensor),
                                  .flags = Py_TPFLAGS_DEFAULT |
                                           Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                           Py_TPFLAGS_IMMUTABLETYPE,
                                  .slots = tensor_slots};

PyObject *ist__py_tensor_type(PyObject *module) {
  return PyType_FromModuleAndSpec(module, &tensor_spec, NULL);
}
