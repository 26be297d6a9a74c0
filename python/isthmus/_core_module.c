// SPDX-License-Identifier: Apache-2.0
// _core_module.c: the module isthmus._core: its state, its functions, its
// start and its end.

#include <stddef.h>
#include <stdlib.h>

#include "_core.h"
#include "backend/block_pool.h"
#include "base/pool.h"

// receipt_amend(receipt, source, target, reason, nbytes): names the ends, and
// adds a copy that an adapter made before the route (reason 0: none).
static PyObject *receipt_amend(PyObject *module, PyObject *args) {
  ist__py_state *state = ist__py_state_of(module);
  PyObject *object;
  const char *source, *target;
  int reason;
  unsigned long long nbytes;
  if (!PyArg_ParseTuple(args, "O!zziK", state->receipt_type, &object, &source,
                        &target, &reason, &nbytes))
    return NULL;
  ist__py_receipt_amend(object, source, target, reason, nbytes);
  Py_RETURN_NONE;
}

// refusal(code, reason, source, target) -> Receipt: of an adapter that knows
// before any route that a source cannot cross.
static PyObject *refusal(PyObject *module, PyObject *args) {
  int code, reason;
  const char *source, *target;
  if (!PyArg_ParseTuple(args, "iiss", &code, &reason, &source, &target))
    return NULL;
  ist_receipt receipt = {.struct_size = sizeof receipt,
                         .route = IST_ROUTE_REFUSE,
                         .code = (ist_code)code,
                         .reason_count = 1,
                         .reasons = {{reason, 0, 0}}};
  PyObject *made = ist__py_receipt_new(ist__py_state_of(module), &receipt);
  if (made != NULL) ist__py_receipt_amend(made, source, target, 0, 0);
  return made;
}

// Called by atexit, while Python still works.
static PyObject *end(PyObject *module, PyObject *unused) {
  (void)unused;
  ist__py_life_end(ist__py_state_of(module)->life);
  Py_RETURN_NONE;
}

#define FAST(function) (PyCFunction)(void (*)(void))(function)

static PyMethodDef methods[] = {
    {"from_dlpack", FAST(ist__py_from_dlpack), METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack(x, *, device=None, copy=None, packing=None, "
     "source_packing=None)\n--\n\n"
     "Takes the tensor of any object that has one, by alias where it can.\n\n"
     "device: where it goes (a Device, a Backend, a DLPack pair); None: host\n"
     "memory, or where a Tensor is already. copy: None copies if it must,\n"
     "False aliases or raises, True gives private memory. packing: how\n"
     "elements below 8 bits are to lie in the Tensor, \"packed\" or\n"
     "\"padded\" (one to a byte); one copy where they lie otherwise. None:\n"
     "as they lie. source_packing: how those of a capsule without a version\n"
     "lie, which cannot say it; a versioned one's flag decides."},
    {"to", FAST(ist__py_to), METH_FASTCALL | METH_KEYWORDS,
     "to(x, target, *, copy=None, detach=False, resolve=True, "
     "read_only='auto', mutable_source='alias', narrow=False, out=None, "
     "receipt=False, progress=None)\n--\n\n"
     "Hands a tensor to a framework or a device.\n\n"
     "Gives the target's own array type, or with receipt=True the pair of it\n"
     "and a Receipt. progress(done, total) is called now and then during a\n"
     "copy, in bytes; False (and nothing else that is falsy) cancels it, and\n"
     "what it raises is raised."},
    {"take_for", ist__py_take_for, METH_VARARGS, NULL},
    {"open", FAST(ist__py_open), METH_VARARGS | METH_KEYWORDS,
     "open(place, *, path=None, options=None, trusted=False)\n--\n\n"
     "Opens a device runtime: \"host\", \"template\", \"pjrt:P.so#0\".\n\n"
     "An unknown plugin is first opened in a process of its own, so that one\n"
     "that kills itself raises an Error; trusted=True leaves that out."},
    {"exports_plugin", ist__py_exports_plugin, METH_O, NULL},
    {"import_host", FAST(ist__py_import_host), METH_FASTCALL, NULL},
    {"know_numpy", ist__py_know_numpy, METH_VARARGS, NULL},
    {"know_torch", ist__py_know_torch, METH_VARARGS, NULL},
    {"slow", ist__py_slow, METH_O, NULL},
    {"wrap", ist__py_wrap, METH_VARARGS, NULL},
    {"export", ist__py_export, METH_VARARGS, NULL},
    {"move", ist__py_move, METH_VARARGS, NULL},
    {"plan", ist__py_plan, METH_VARARGS, NULL},
    {"copy_into", ist__py_copy_into, METH_VARARGS, NULL},
    {"convert", ist__py_convert, METH_VARARGS, NULL},
    {"peek", ist__py_peek, METH_O, NULL},
    {"receipt_amend", receipt_amend, METH_VARARGS, NULL},
    {"refusal", refusal, METH_VARARGS, NULL},
    {"load", ist__py_load, METH_VARARGS, NULL},
    {"save", ist__py_save, METH_VARARGS, NULL},
    {"empty", ist__py_empty, METH_VARARGS, NULL},
    {"pool", ist__py_pool, METH_NOARGS, NULL},
    {"trim_pool", ist__py_trim_pool, METH_NOARGS, NULL},
    {"dtypes", ist__py_dtypes, METH_NOARGS, NULL},
    {"catalog_find", ist__py_catalog_find, METH_O, NULL},
    {"catalog_match", ist__py_catalog_match, METH_O, NULL},
    {"end", end, METH_NOARGS, NULL},
    {0}};

static int add_type(PyObject *module, PyTypeObject **slot, const char *name,
                    PyObject *type) {
  if (type == NULL) return -1;
  *slot = (PyTypeObject *)type;
  return PyModule_AddObjectRef(module, name, type);
}

static int add_types(PyObject *module, ist__py_state *state) {
  return add_type(module, &state->tensor_type, "Tensor",
                  ist__py_tensor_type(module)) < 0 ||
                 add_type(module, &state->receipt_type, "Receipt",
                          ist__py_receipt_type(module)) < 0 ||
                 add_type(module, &state->device_type, "Device",
                          ist__py_device_type(module)) < 0 ||
                 add_type(module, &state->backend_type, "Backend",
                          ist__py_backend_type(module)) < 0 ||
                 add_type(module, &state->program_type, "Program",
                          ist__py_program_type(module)) < 0 ||
                 add_type(module, &state->consumer_type, "Consumer",
                          ist__py_consumer_type(module)) < 0 ||
                 add_type(module, &state->once_type, "Once",
                          ist__py_once_type(module)) < 0
             ? -1
             : 0;
}

// The interned names, and where each is kept.
static const struct {
  size_t offset;
  const char *text;
} all_names[] = {
    {offsetof(ist__py_names, dlpack), "__dlpack__"},
    {offsetof(ist__py_names, exchange), "__dlpack_c_exchange_api__"},
    {offsetof(ist__py_names, interface), "__array_interface__"},
    {offsetof(ist__py_names, cuda_interface), "__cuda_array_interface__"},
    {offsetof(ist__py_names, device), "device"},
    {offsetof(ist__py_names, copy), "copy"},
    {offsetof(ist__py_names, stream), "stream"},
    {offsetof(ist__py_names, max_version), "max_version"},
    {offsetof(ist__py_names, dl_device), "dl_device"},
};
enum {
  NAME_COUNT = sizeof all_names / sizeof all_names[0]
};

static PyObject **name_at(ist__py_state *state, size_t index) {
  char *first = (char *)&state->names;
  return (PyObject **)(void *)(first + all_names[index].offset);
}

static int add_names(ist__py_state *state) {
  state->dtypes = PyDict_New();
  state->adapters = PyDict_New();
  state->empty = PyTuple_New(0);
  state->ask_versioned = Py_BuildValue("{s(ii)}", "max_version", 1, 3);
  state->ask_alias =
      Py_BuildValue("{s(ii)sO}", "max_version", 1, 3, "copy", Py_False);
  state->host_pair = Py_BuildValue("ii", kDLCPU, 0);
  bool ready = state->dtypes && state->host_pair && state->adapters &&
               state->empty && state->ask_versioned && state->ask_alias;
  for (size_t i = 0; ready && i < NAME_COUNT; i++) {
    PyObject **name = name_at(state, i);
    *name = PyUnicode_InternFromString(all_names[i].text);
    ready = *name != NULL;
  }
  return ready ? 0 : -1;
}

static int add_context(ist__py_state *state) {
  state->life = ist__py_life_new();
  state->log = ist__py_log_new();
  if (state->life == NULL || state->log == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  ist_context_options options = {.struct_size = sizeof options,
                                 .log = ist__py_log_line,
                                 .log_self = state->log};
  if (ist__py_main_thread(&state->main_thread) < 0) return -1;
  ist_error err = {0};
  // Both are read once.
  const char *threads = getenv("ISTHMUS_THREADS");
  const char *bytes = getenv("ISTHMUS_POOL_BYTES");
  if (ist__pool_threads(threads, &options.threads, &err) != IST_OK ||
      ist__block_pool_bytes(bytes, &options.block_pool_bytes, &err) != IST_OK ||
      ist_context_create(&options, &state->context, &err) != IST_OK) {
    PyErr_Format(PyExc_ImportError, "isthmus could not be imported: %s",
                 err.message);
    return -1;
  }
  state->host = ist_context_host(state->context);
  return 0;
}

// isthmus.Tensor says "isthmus", so that is where it must be found; end() is
// called before the interpreter goes.
static int register_end(PyObject *module) {
  PyObject *function = PyObject_GetAttrString(module, "end");
  PyObject *atexit = PyImport_ImportModule("atexit");
  PyObject *done = function == NULL || atexit == NULL
                       ? NULL
                       : PyObject_CallMethod(atexit, "register", "O", function);
  Py_XDECREF(function);
  Py_XDECREF(atexit);
  Py_XDECREF(done);
  return done == NULL ? -1 : 0;
}

static int check_interpreter(void) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return 0;
  PyErr_SetString(PyExc_ImportError,
                  "isthmus cannot be imported in a sub-interpreter: deleters "
                  "may be called on any thread and need the one main "
                  "interpreter; import it there");
  return -1;
}

static int module_exec(PyObject *module) {
  ist__py_state *state = ist__py_state_of(module);
  if (check_interpreter() < 0 || add_context(state) < 0 ||
      add_names(state) < 0 || add_types(module, state) < 0 ||
      register_end(module) < 0)
    return -1;
  if (PyModule_AddObjectRef(module, "CapsuleType",
                            (PyObject *)&PyCapsule_Type) < 0)
    return -1;
  return PyModule_AddStringConstant(module, "__version__", ist_version());
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
  ist__py_state *state = ist__py_state_of(module);
  if (state == NULL) return 0;
  Py_VISIT(state->tensor_type);
  Py_VISIT(state->receipt_type);
  Py_VISIT(state->device_type);
  Py_VISIT(state->backend_type);
  Py_VISIT(state->program_type);
  Py_VISIT(state->consumer_type);
  Py_VISIT(state->once_type);
  Py_VISIT(state->dtypes);
  Py_VISIT(state->adapters);
  Py_VISIT(state->numpy.type);
  Py_VISIT(state->torch.type);
  Py_VISIT(state->torch.twin);
  return 0;
}

static int module_clear(PyObject *module) {
  ist__py_state *state = ist__py_state_of(module);
  if (state == NULL) return 0;
  Py_CLEAR(state->tensor_type);
  Py_CLEAR(state->receipt_type);
  Py_CLEAR(state->device_type);
  Py_CLEAR(state->backend_type);
  Py_CLEAR(state->program_type);
  Py_CLEAR(state->consumer_type);
  Py_CLEAR(state->once_type);
  Py_CLEAR(state->dtypes);
  Py_CLEAR(state->adapters);
  Py_CLEAR(state->empty);
  Py_CLEAR(state->host_pair);
  Py_CLEAR(state->ask_versioned);
  Py_CLEAR(state->ask_alias);
  for (size_t i = 0; i < NAME_COUNT; i++) Py_CLEAR(*name_at(state, i));
  ist__py_fast_clear(state);
  return 0;
}

// Tensors outlive the module in the hands of others, and with them the context
// and its log: the log is freed only when nobody can call it any more, which
// is never known, so it stays.
static void module_free(void *module) {
  module_clear(module);
  ist__py_state *state = ist__py_state_of(module);
  if (state == NULL) return;
  ist_context_release(state->context);
  state->context = NULL;
  if (state->life != NULL) ist__py_life_release(state->life);
  state->life = NULL;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, IST__PY_SLOT(module_exec)},
                                   {0, NULL}};

static PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                 .m_name = "isthmus._core",
                                 .m_doc = "The part of isthmus that is in C.",
                                 .m_size = sizeof(ist__py_state),
                                 .m_methods = methods,
                                 .m_slots = slots,
                                 .m_traverse = module_traverse,
                                 .m_clear = module_clear,
                                 .m_free = module_free};

PyMODINIT_FUNC PyInit__core(void) {
  return PyModuleDef_Init(&definition);
}
