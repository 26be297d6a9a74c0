// SPDX-License-Identifier: Apache-2.0
// _core_program.c: isthmus.Program: a compiled program; called with tensors of
// any framework it gives a list of tensors on its device.

#include "_core.h"

typedef struct program {
  PyObject_HEAD ist_program *program;
  ist__py_state *state;
} program;

static program *program_of(PyObject *self) {
  return (program *)self;
}

// The last count may close a runtime: other threads run meanwhile.
static void release(ist_program *inside) {
  if (inside == NULL) return;
  Py_BEGIN_ALLOW_THREADS ist_program_release(inside);
  Py_END_ALLOW_THREADS
}

static void drop(program *self) {
  ist_program *inside = self->program;
  self->program = NULL;
  release(inside);
}

static void program_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  drop(program_of(self));
  PyObject_Free(self);
  Py_DECREF(type);
}

// The program inside, retained: another thread may close the object.
static ist_program *get(PyObject *self) {
  ist_program *inside = program_of(self)->program;
  if (inside == NULL)
    ist__py_raisef(program_of(self)->state, IST_ERR_CLOSED,
                   "a program could not be used: it is closed; needs an open "
                   "one");
  ist_program_retain(inside);
  return inside;
}

static PyObject *program_close(PyObject *self, PyObject *unused) {
  (void)unused;
  drop(program_of(self));
  Py_RETURN_NONE;
}

static PyObject *program_enter(PyObject *self, PyObject *unused) {
  (void)unused;
  ist_program *inside = get(self);
  release(inside);
  return inside == NULL ? NULL : Py_NewRef(self);
}

static PyObject *program_exit(PyObject *self, PyObject *args) {
  (void)args;
  drop(program_of(self));
  Py_RETURN_NONE;
}

// The bytes of a program: text, or an object with a buffer. A new reference.
static PyObject *code_bytes(ist__py_state *state, PyObject *code) {
  if (PyUnicode_Check(code)) return PyUnicode_AsUTF8String(code);
  if (PyObject_CheckBuffer(code)) return PyBytes_FromObject(code);
  char name[96];
  ist__py_type_name(code, name, sizeof name);
  return ist__py_raisef(state, IST_ERR_ARGUMENT,
                        "a program could not be compiled: got a %s; needs "
                        "StableHLO as str (text) or bytes (bytecode)",
                        name);
}

PyObject *ist__py_program_compile(ist__py_state *state,
                                  const ist_device *device, PyObject *code,
                                  const char *name) {
  PyObject *bytes = code_bytes(state, code);
  if (bytes == NULL) return NULL;
  char *text;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(bytes, &text, &size) < 0) {
    Py_DECREF(bytes);
    return NULL;
  }
  ist_program *inside = NULL;
  ist_error err = {0};
  ist_code result;
  ist__py_log_begin(state->log);
  Py_BEGIN_ALLOW_THREADS result = ist_program_compile(
      device, text, (size_t)size,
      &(ist_program_options){.struct_size = sizeof(ist_program_options),
                             .name = name},
      &inside, &err);
  Py_END_ALLOW_THREADS Py_DECREF(bytes);
  if (result != IST_OK) return ist__py_raise(state, &err);
  program *self = PyObject_New(program, state->program_type);
  if (self == NULL) {
    ist_program_release(inside);
    return NULL;
  }
  self->program = inside;
  self->state = state;
  return (PyObject *)self;
}

// What one run holds.
typedef struct run {
  size_t inputs, outputs;
  ist_tensor **in, **out;
  ist_receipt *receipts;
} run;

static void run_free(ist__py_state *state, run *one) {
  for (size_t i = 0; one->in != NULL && i < one->inputs; i++)
    ist__py_release(state, one->in[i]);
  for (size_t i = 0; one->out != NULL && i < one->outputs; i++)
    ist__py_release(state, one->out[i]);
  PyMem_Free(one->in);
  PyMem_Free(one->out);
  PyMem_Free(one->receipts);
}

static int run_make(run *one, size_t inputs, size_t outputs) {
  one->inputs = inputs;
  one->outputs = outputs;
  one->in = PyMem_Calloc(inputs + 1, sizeof one->in[0]);
  one->out = PyMem_Calloc(outputs + 1, sizeof one->out[0]);
  one->receipts = PyMem_Calloc(inputs + 1, sizeof one->receipts[0]);
  if (one->in == NULL || one->out == NULL || one->receipts == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (size_t i = 0; i < inputs; i++)
    one->receipts[i].struct_size = sizeof one->receipts[i];
  return 0;
}

// Inputs come in as by from_dlpack: on the host, or where they are already.
static int take_inputs(PyObject *args, PyObject *take, run *one) {
  for (size_t i = 0; i < one->inputs; i++) {
    PyObject *tensor = PyObject_CallFunctionObjArgs(
        take, PyTuple_GetItem(args, (Py_ssize_t)i), NULL);
    if (tensor == NULL) return -1;
    one->in[i] = ist__py_tensor_get(tensor);
    Py_DECREF(tensor);
    if (one->in[i] == NULL) return -1;
  }
  return 0;
}

static PyObject *give_outputs(ist__py_state *state, run *one) {
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list != NULL && i < one->outputs; i++) {
    ist_tensor *tensor = one->out[i];
    one->out[i] = NULL;
    PyObject *object = ist__py_tensor_new(state, tensor);
    if (object == NULL || PyList_Append(list, object) < 0) Py_CLEAR(list);
    Py_XDECREF(object);
  }
  return list;
}

static PyObject *give_receipts(ist__py_state *state, const run *one) {
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list != NULL && i < one->inputs; i++) {
    PyObject *object = ist__py_receipt_new(state, &one->receipts[i]);
    if (object == NULL || PyList_Append(list, object) < 0) Py_CLEAR(list);
    Py_XDECREF(object);
  }
  return list;
}

static int execute(ist__py_state *state, ist_program *inside, run *one) {
  ist_options options = {.struct_size = sizeof options};
  ist__py_watch watch;
  ist__py_watch_begin(&watch, state, NULL, &options);
  ist_run how = {.struct_size = sizeof how,
                 .options = &options,
                 .inputs = one->in,
                 .input_count = one->inputs,
                 .outputs = one->out,
                 .output_count = one->outputs,
                 .receipts = one->inputs == 0 ? NULL : one->receipts};
  ist_error err = {0};
  ist_code code;
  ist__py_log_begin(state->log);
  Py_BEGIN_ALLOW_THREADS code = ist_program_run(inside, &how, &err);
  Py_END_ALLOW_THREADS if (code == IST_OK) return 0;
  ist__py_watch_raise(&watch, state, &err);
  return -1;
}

static PyObject *run_program(ist__py_state *state, ist_program *inside,
                             PyObject *args, bool receipt) {
  PyObject *package = PyImport_ImportModule("isthmus._core");
  PyObject *take =
      package == NULL ? NULL : PyObject_GetAttrString(package, "from_dlpack");
  Py_XDECREF(package);
  if (take == NULL) return NULL;
  run one = {0};
  PyObject *outputs = NULL, *receipts = NULL;
  if (run_make(&one, (size_t)PyTuple_Size(args),
               ist_program_output_count(inside)) == 0 &&
      take_inputs(args, take, &one) == 0 && execute(state, inside, &one) == 0)
    outputs = give_outputs(state, &one);
  if (outputs != NULL && receipt) receipts = give_receipts(state, &one);
  Py_DECREF(take);
  run_free(state, &one);
  if (outputs == NULL || !receipt) return outputs;
  if (receipts == NULL) {
    Py_DECREF(outputs);
    return NULL;
  }
  return Py_BuildValue("NN", outputs, receipts);
}

// Program(*xs, receipt=False) -> [Tensor, ...], or with receipt=True also the
// receipts of the inputs.
static PyObject *program_call(PyObject *self, PyObject *args,
                              PyObject *kwargs) {
  static char *names[] = {"receipt", NULL};
  ist__py_state *state = program_of(self)->state;
  int receipt = 0;
  if (!PyArg_ParseTupleAndKeywords(state->empty, kwargs, "|$p", names,
                                   &receipt))
    return NULL;
  ist_program *inside = get(self);
  if (inside == NULL) return NULL;
  PyObject *result = run_program(state, inside, args, receipt != 0);
  release(inside);
  return result;
}

// An argument as (dtype, shape).
static PyObject *spec_pair(ist__py_state *state, const ist_spec *spec) {
  PyObject *shape = PyTuple_New(spec->ndim);
  for (int32_t i = 0; shape != NULL && i < spec->ndim; i++) {
    PyObject *extent = PyLong_FromLongLong(spec->shape[i]);
    if (extent == NULL)
      Py_CLEAR(shape);
    else
      PyTuple_SetItem(shape, i, extent);
  }
  PyObject *dtype = ist__py_dtype_get(state, spec->dtype);
  if (shape == NULL || dtype == NULL) {
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    return NULL;
  }
  return Py_BuildValue("NN", dtype, shape);
}

static PyObject *specs(PyObject *self, bool inputs) {
  ist_program *inside = get(self);
  if (inside == NULL) return NULL;
  size_t count = inputs ? ist_program_input_count(inside)
                        : ist_program_output_count(inside);
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list != NULL && i < count; i++) {
    ist_spec spec = {.struct_size = sizeof spec};
    ist_error err = {0};
    ist_code code = inputs ? ist_program_input(inside, i, &spec, &err)
                           : ist_program_output(inside, i, &spec, &err);
    PyObject *pair = code == IST_OK
                         ? spec_pair(program_of(self)->state, &spec)
                         : ist__py_raise(program_of(self)->state, &err);
    if (pair == NULL || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  release(inside);
  return list;
}

static PyObject *get_inputs(PyObject *self, void *unused) {
  (void)unused;
  return specs(self, true);
}

static PyObject *get_outputs(PyObject *self, void *unused) {
  (void)unused;
  return specs(self, false);
}

static PyObject *program_repr(PyObject *self) {
  ist_program *inside = program_of(self)->program;
  if (inside == NULL) return PyUnicode_FromString("Program(closed)");
  return PyUnicode_FromFormat("Program(inputs=%zu, outputs=%zu)",
                              ist_program_input_count(inside),
                              ist_program_output_count(inside));
}

static PyGetSetDef program_getset[] = {
    {"inputs", get_inputs, NULL, "What each input must be: (dtype, shape).",
     NULL},
    {"outputs", get_outputs, NULL, "What each output will be: (dtype, shape).",
     NULL},
    {0}};

static PyMethodDef program_methods[] = {
    {"close", program_close, METH_NOARGS,
     "close($self, /)\n--\n\nLets go of it; its outputs stay."},
    {"__enter__", program_enter, METH_NOARGS, NULL},
    {"__exit__", program_exit, METH_VARARGS, NULL},
    {0}};

static PyType_Slot program_slots[] = {
    {Py_tp_dealloc, IST__PY_SLOT(program_dealloc)},
    {Py_tp_repr, IST__PY_SLOT(program_repr)},
    {Py_tp_call, IST__PY_SLOT(program_call)},
    {Py_tp_getset, program_getset},
    {Py_tp_methods, program_methods},
    {Py_tp_doc, "A compiled program on one device."},
    {0, NULL}};

static PyType_Spec program_spec = {.name = "isthmus.Program",
                                   .basicsize = sizeof(program),
                                   .flags = Py_TPFLAGS_DEFAULT |
                                            Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                            Py_TPFLAGS_IMMUTABLETYPE,
                                   .slots = program_slots};

PyObject *ist__py_program_type(PyObject *module) {
  return PyType_FromModuleAndSpec(module, &program_spec, NULL);
}
