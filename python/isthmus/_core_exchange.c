// SPDX-License-Identifier: Apache-2.0
// _core_exchange.c: what isthmus.to, plan and out= stand on: a tensor goes to
// a consumer (a framework, as a capability), to a device, or into memory that
// is there already; each with its receipt.

#include <string.h>

#include "_core.h"

int ist__py_parse_copy(ist__py_state *state, PyObject *value, ist_copy *out) {
  if (value == Py_None)
    *out = IST_COPY_AUTO;
  else if (value == Py_True)
    *out = IST_COPY_ALWAYS;
  else if (value == Py_False)
    *out = IST_COPY_NEVER;
  else {
    ist__py_raisef(state, IST_ERR_ARGUMENT,
                   "copy could not be understood: it is no bool; needs None "
                   "(alias if it can, copy if it must), True or False");
    return -1;
  }
  return 0;
}

// A word of a list; its place, or -1 with an exception set.
static int parse_word(ist__py_state *state, PyObject *value, const char *what,
                      const char *const *words, const char *needs) {
  for (int i = 0; PyUnicode_Check(value) && words[i] != NULL; i++)
    if (PyUnicode_CompareWithASCIIString(value, words[i]) == 0) return i;
  ist__py_raisef(state, IST_ERR_ARGUMENT,
                 "%s could not be understood: it is none of the known words; "
                 "needs %s",
                 what, needs);
  return -1;
}

int ist__py_parse_packing(ist__py_state *state, PyObject *value,
                          const char *what, ist_packing last,
                          ist_packing *out) {
  static const char *const words[] = {"packed", "padded", "pairs", NULL};
  *out = IST_PACKING_AS_IS;
  if (value == Py_None) return 0;
  int word = parse_word(state, value, what, words,
                        last == IST_PACKING_PAIRS
                            ? "None, \"packed\", \"padded\" or \"pairs\""
                            : "None, \"packed\" or \"padded\"");
  if (word < 0) return -1;
  *out = (ist_packing)(IST_PACKING_PACKED + word);
  if (*out <= last) return 0;
  ist__py_raisef(
      state, IST_ERR_ARGUMENT,
      "%s could not be understood: pairs are an export's; needs None, "
      "\"packed\" or \"padded\"",
      what);
  return -1;
}

int ist__py_check_progress(ist__py_state *state, PyObject *progress) {
  if (progress == NULL || progress == Py_None || PyCallable_Check(progress))
    return 0;
  ist__py_raisef(state, IST_ERR_ARGUMENT,
                 "progress could not be called: it is no function; needs a "
                 "callable that takes (done, total) in bytes, or None");
  return -1;
}

// (copy, read_only, mutable_source[, source_name, target_name[, progress]]) ->
// options, whose names live as long as the tuple, and which watch is to watch.
static int parse_wish(ist__py_state *state, PyObject *wish, ist_options *out,
                      ist__py_watch *watch) {
  static const char *const read_only[] = {"auto", "refuse", "copy", "allow",
                                          NULL};
  static const char *const mutable_source[] = {"alias", "copy", NULL};
  *out = (ist_options){.struct_size = sizeof *out};
  PyObject *copy, *reading, *writing, *progress = NULL;
  if (!PyArg_ParseTuple(wish, "OOO|zzO", &copy, &reading, &writing,
                        &out->source_name, &out->target_name, &progress) ||
      ist__py_check_progress(state, progress) < 0)
    return -1;
  ist__py_watch_begin(watch, state, progress, out);
  if (ist__py_parse_copy(state, copy, &out->copy) < 0) return -1;
  int word = parse_word(state, reading, "read_only", read_only,
                        "\"auto\", \"refuse\", \"copy\" or \"allow\"");
  if (word < 0) return -1;
  out->read_only = (ist_read_only)word;
  word = parse_word(state, writing, "mutable_source", mutable_source,
                    "\"alias\" or \"copy\"");
  if (word < 0) return -1;
  out->mutable_source = (ist_mutable_source)word;
  return 0;
}

int ist__py_read_dtypes(PyObject *names, uint64_t *out) {
  PyObject *tuple = PySequence_Tuple(names);
  *out = 0;
  for (Py_ssize_t i = 0; tuple != NULL && i < PyTuple_Size(tuple); i++) {
    PyObject *item = PyTuple_GetItem(tuple, i);
    const char *name =
        PyUnicode_Check(item) ? PyUnicode_AsUTF8AndSize(item, NULL) : NULL;
    DLDataType dtype;
    int32_t number = -1;
    if (name != NULL && ist_dtype_parse(name, &dtype, NULL) == IST_OK)
      number = ist_dtype_number(dtype);
    if (number < 0) {
      PyErr_Format(PyExc_ValueError, "%R is no dtype", item);
      Py_CLEAR(tuple);
    } else {
      *out |= UINT64_C(1) << number;
    }
  }
  Py_XDECREF(tuple);
  return tuple == NULL ? -1 : 0;
}

// Consumer(dtypes, *, layouts, alignment, honours_read_only, legacy, packing):
// packing is how it takes sub-byte elements ("packed", "padded", "pairs").
static PyObject *consumer_new(PyTypeObject *type, PyObject *args,
                              PyObject *kwargs) {
  static char *names[] = {"dtypes",  "negative",  "gaps",
                          "overlap", "alignment", "honours_read_only",
                          "legacy",  "packing",   NULL};
  PyObject *dtypes, *packing_arg = Py_None;
  int negative, gaps, overlap, honours, legacy;
  ist_packing packing;
  unsigned long long alignment;
  ist__py_state *state = PyType_GetModuleState(type);
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OpppKpp|O", names, &dtypes,
                                   &negative, &gaps, &overlap, &alignment,
                                   &honours, &legacy, &packing_arg) ||
      ist__py_parse_packing(state, packing_arg, "packing", IST_PACKING_PAIRS,
                            &packing) < 0)
    return NULL;
  bool padded = packing == IST_PACKING_PADDED;
  ist_capability capability = {
      .struct_size = sizeof capability,
      .can = IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS |
             (honours ? (uint32_t)IST_CAN_HONOUR_READ_ONLY : 0) |
             (padded ? (uint32_t)IST_CAN_PADDED : 0),
      .layouts = IST_LAYOUT_PERMUTED |
                 (negative ? (uint32_t)IST_LAYOUT_NEGATIVE : 0) |
                 (gaps ? (uint32_t)IST_LAYOUT_GAPS : 0) |
                 (overlap ? (uint32_t)IST_LAYOUT_OVERLAP : 0),
      .alignment = alignment,
      .dl_device = {kDLCPU, 0}};
  if (ist__py_read_dtypes(dtypes, &capability.dtypes) < 0) return NULL;
  ist__py_consumer *self = PyObject_New(ist__py_consumer, type);
  if (self == NULL) return NULL;
  self->capability = capability;
  self->legacy = legacy != 0;
  self->packing = packing;
  return (PyObject *)self;
}

static void consumer_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyType_Slot consumer_slots[] = {
    {Py_tp_new, IST__PY_SLOT(consumer_new)},
    {Py_tp_dealloc, IST__PY_SLOT(consumer_dealloc)},
    {Py_tp_doc, "What a framework takes: a capability record."},
    {0, NULL}};

static PyType_Spec consumer_spec = {
    .name = "isthmus._core.Consumer",
    .basicsize = sizeof(ist__py_consumer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = consumer_slots};

PyObject *ist__py_consumer_type(PyObject *module) {
  return PyType_FromModuleAndSpec(module, &consumer_spec, NULL);
}

// bits: the dtype to say instead, of the same width in memory; elements that
// were padded to it are whole then.
static PyObject *capsule_of(ist__py_state *state, ist__py_managed managed,
                            PyObject *bits) {
  DLManagedTensorVersioned *versioned = managed.versioned;
  DLTensor *view =
      versioned != NULL ? &versioned->dl_tensor : &managed.legacy->dl_tensor;
  if (bits != Py_None) {
    if (ist__py_dtype_parse(state, bits, &view->dtype) < 0) {
      ist__py_managed_delete(managed);
      return NULL;
    }
    if (versioned != NULL)
      versioned->flags &= ~(uint64_t)DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  }
  return versioned != NULL ? ist__py_capsule_versioned(state, versioned)
                           : ist__py_capsule_legacy(state, managed.legacy);
}

// export(tensor, consumer, wish, bits) -> (capsule, Receipt): bits names the
// dtype that the capsule says instead of the tensor's own, of the same width.
PyObject *ist__py_export(PyObject *module, PyObject *args) {
  ist__py_state *state = ist__py_state_of(module);
  PyObject *source, *consumer, *wish, *bits;
  ist_options options;
  ist__py_watch watch;
  if (!PyArg_ParseTuple(args, "O!O!O!O", state->tensor_type, &source,
                        state->consumer_type, &consumer, &PyTuple_Type, &wish,
                        &bits) ||
      parse_wish(state, wish, &options, &watch) < 0)
    return NULL;
  const ist__py_consumer *to = (const ist__py_consumer *)consumer;
  options.consumer = &to->capability;
  options.packing = to->packing;
  ist_tensor *tensor = ist__py_tensor_get(source);
  if (tensor == NULL) return NULL;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist__py_managed managed = {0};
  ist_error err = {0};
  ist_code code;
  ist__py_log_begin(state->log);
  Py_BEGIN_ALLOW_THREADS code =
      to->legacy ? ist_tensor_export_legacy(tensor, &options, &managed.legacy,
                                            &receipt, &err)
                 : ist_tensor_export(tensor, &options, &managed.versioned,
                                     &receipt, &err);
  ist_tensor_release(tensor);
  Py_END_ALLOW_THREADS if (code != IST_OK) return ist__py_watch_raise(
      &watch, state, &err);
  PyObject *capsule = capsule_of(state, managed, bits);
  return ist__py_with_receipt(state, capsule, &receipt);
}

// move(tensor, device, wish) -> (Tensor, Receipt).
PyObject *ist__py_move(PyObject *module, PyObject *args) {
  ist__py_state *state = ist__py_state_of(module);
  PyObject *source, *target, *wish, *keep = NULL;
  ist_options options;
  ist__py_watch watch;
  if (!PyArg_ParseTuple(args, "O!OO!", state->tensor_type, &source, &target,
                        &PyTuple_Type, &wish) ||
      parse_wish(state, wish, &options, &watch) < 0)
    return NULL;
  const ist_device *device =
      ist__py_device_find(state, target, &keep, &options.memory);
  if (device == NULL) return NULL;
  ist_tensor *tensor = ist__py_tensor_get(source);
  if (tensor == NULL) {
    Py_XDECREF(keep);
    return NULL;
  }
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_tensor *moved = NULL;
  ist_error err = {0};
  ist_code code;
  ist__py_log_begin(state->log);
  Py_BEGIN_ALLOW_THREADS code =
      ist_tensor_move(tensor, device, &options, &moved, &receipt, &err);
  ist_tensor_release(tensor);
  Py_END_ALLOW_THREADS Py_XDECREF(keep);
  if (code != IST_OK) return ist__py_watch_raise(&watch, state, &err);
  return ist__py_with_receipt(state, ist__py_tensor_new(state, moved),
                              &receipt);
}

// plan(tensor, consumer or device, wish) -> Receipt; nothing moves.
PyObject *ist__py_plan(PyObject *module, PyObject *args) {
  ist__py_state *state = ist__py_state_of(module);
  PyObject *source, *target, *wish, *keep = NULL;
  ist_options options;
  ist__py_watch watch;
  if (!PyArg_ParseTuple(args, "O!OO!", state->tensor_type, &source, &target,
                        &PyTuple_Type, &wish) ||
      parse_wish(state, wish, &options, &watch) < 0)
    return NULL;
  const ist_device *device = NULL;
  if (Py_IS_TYPE(target, state->consumer_type)) {
    options.consumer = &((ist__py_consumer *)target)->capability;
    options.packing = ((ist__py_consumer *)target)->packing;
  } else {
    device = ist__py_device_find(state, target, &keep, &options.memory);
    if (device == NULL) return NULL;
  }
  ist_tensor *tensor = ist__py_tensor_get(source);
  if (tensor == NULL) {
    Py_XDECREF(keep);
    return NULL;
  }
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_error err = {0};
  ist_code code;
  ist__py_log_begin(state->log);
  Py_BEGIN_ALLOW_THREADS code =
      ist_tensor_plan(tensor, device, &options, &receipt, &err);
  ist_tensor_release(tensor);
  Py_END_ALLOW_THREADS Py_XDECREF(keep);
  return code == IST_OK ? ist__py_receipt_new(state, &receipt)
                        : ist__py_raise(state, &err);
}

// What copy_into fills, and who is told.
typedef struct filling {
  PyObject *target;
  PyObject *progress;
} filling;

static PyObject *copy_into(ist__py_state *state, PyObject *source, void *self) {
  const filling *f = self;
  ist_options options = {.struct_size = sizeof options};
  ist__py_watch watch;
  ist__py_watch_begin(&watch, state, f->progress, &options);
  ist_tensor *from = ist__py_tensor_get(source);
  ist_tensor *to = from == NULL ? NULL : ist__py_tensor_get(f->target);
  if (to == NULL) {
    ist__py_release(state, from);
    return NULL;
  }
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_tensor_info info = {.struct_size = sizeof info};
  ist_error err = {0};
  ist_code code = ist_tensor_describe(to, &info, &err);
  if (code == IST_OK && (info.read_only || info.device != state->host)) {
    err = (ist_error){.code = code = IST_ERR_READ_ONLY};
    strncpy(err.message,
            "a tensor could not be copied into out: out is read-only or not "
            "in host memory; needs writable memory of this process",
            sizeof err.message - 1);
  }
  options.packing = info.padded ? IST_PACKING_PADDED : IST_PACKING_PACKED;
  if (code == IST_OK) {
    ist__py_log_begin(state->log);
    Py_BEGIN_ALLOW_THREADS code = ist_tensor_copy_into(
        from, ist_tensor_view(to), &options, &receipt, &err);
    Py_END_ALLOW_THREADS
  }
  ist__py_release(state, from);
  ist__py_release(state, to);
  return code == IST_OK ? ist__py_receipt_new(state, &receipt)
                        : ist__py_watch_raise(&watch, state, &err);
}

// copy_into(tensor or capsule, target, progress) -> Receipt: target is a
// writable host Tensor. A capsule is consumed only on success.
PyObject *ist__py_copy_into(PyObject *module, PyObject *args) {
  ist__py_state *state = ist__py_state_of(module);
  PyObject *source;
  filling f;
  if (!PyArg_ParseTuple(args, "OO!O", &source, state->tensor_type, &f.target,
                        &f.progress) ||
      ist__py_check_progress(state, f.progress) < 0)
    return NULL;
  if (PyCapsule_CheckExact(source))
    return ist__py_capsule_read(state, source, copy_into, &f);
  if (!Py_IS_TYPE(source, state->tensor_type)) {
    PyErr_SetString(PyExc_TypeError, "copy_into() takes a Tensor or a capsule");
    return NULL;
  }
  return copy_into(state, source, &f);
}
