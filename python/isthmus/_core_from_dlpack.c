// SPDX-License-Identifier: Apache-2.0
// _core_from_dlpack.c: the entry points in front of the import: arguments, and
// what isthmus knows of the object's framework (its adapter): who may write
// its memory, what to import of a plain tensor, whose values a capsule carries,
// and how to prepare the rest.

#include "_core.h"
#include "dlpack/dlpack_read.h"

// What is known of a type; a tuple (grant, plain or None, prepare or None, has
// a C exchange API, packing or None) of isthmus._sources. The tuple is held,
// the rest is borrowed from it: while the GIL is let go or Python runs, another
// thread may empty state->adapters.
typedef struct adapter {
  PyObject *tuple;
  ist_grant grant;
  PyObject *plain;
  PyObject *prepare;
  bool has_exchange;
  ist_packing packing;  // of its capsules without a version
} adapter;

// Types whose adapter is kept; beyond that the memory is emptied, so that
// types made in a loop do not pile up.
enum {
  KEPT_TYPES = 256
};

static PyObject *find_adapter(ist__py_state *state, PyObject *type) {
  PyObject *found = PyDict_GetItemWithError(state->adapters, type);
  if (found != NULL || PyErr_Occurred()) return Py_XNewRef(found);
  PyObject *module = PyImport_ImportModule("isthmus._sources");
  PyObject *made = module == NULL
                       ? NULL
                       : PyObject_CallMethod(module, "adapter_of", "O", type);
  Py_XDECREF(module);
  if (made == NULL) return NULL;
  if (PyDict_Size(state->adapters) >= KEPT_TYPES) PyDict_Clear(state->adapters);
  if (PyDict_SetItem(state->adapters, type, made) < 0) Py_CLEAR(made);
  return made;
}

// Whether or not it succeeds, out->tuple is the caller's.
static int read_adapter(ist__py_state *state, PyObject *source, adapter *out) {
  *out = (adapter){0};
  if (PyCapsule_CheckExact(source) || Py_IS_TYPE(source, state->tensor_type))
    return 0;
  PyObject *tuple = find_adapter(state, (PyObject *)Py_TYPE(source));
  out->tuple = tuple;
  if (tuple == NULL) return -1;
  PyObject *grant = PyTuple_GetItem(tuple, 0);
  out->plain = PyTuple_GetItem(tuple, 1);
  out->prepare = PyTuple_GetItem(tuple, 2);
  PyObject *exchange = PyTuple_GetItem(tuple, 3);
  PyObject *packing = PyTuple_GetItem(tuple, 4);
  if (exchange == NULL || packing == NULL ||
      ist__py_parse_packing(state, packing, "packing", IST_PACKING_PADDED,
                            &out->packing) < 0)
    return -1;
  out->has_exchange = exchange == Py_True;
  out->grant = (ist_grant)PyLong_AsLong(grant);
  if (out->plain == Py_None) out->plain = NULL;
  if (out->prepare == Py_None) out->prepare = NULL;
  return PyErr_Occurred() ? -1 : 0;
}

// prepare(source, copy) -> what to import instead. Raises what is wrong.
static PyObject *prepare(const adapter *known, PyObject *source,
                         PyObject *copy) {
  return PyObject_CallFunctionObjArgs(known->prepare, source, copy, NULL);
}

// The import failed: its adapter may know better, or at least say why. The
// failure becomes the cause of what the adapter raises.
static PyObject *try_again(ist__py_state *state, const adapter *known,
                           PyObject *source, PyObject *copy,
                           const ist__py_how *how) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *other = prepare(known, source, copy);
  if (other == source) {
    Py_DECREF(other);
    PyErr_Restore(type, value, trace);
    return NULL;
  }
  PyObject *result = other == NULL ? NULL : ist__py_import(state, other, how);
  Py_XDECREF(other);
  ist__py_set_cause(type, value, trace);
  return result;
}

// A plain array or tensor, read in C. Where that is not to be done, or fails,
// NULL without an exception: the adapters do it, or say why not.
static PyObject *import_known(ist__py_state *state, PyObject *source,
                              const ist__py_how *how) {
  ist__py_how known = *how;
  ist__py_managed managed = {0};
  int taken = ist__py_fast_take(state, source, &managed, &known.options.grant);
  return taken == 1 ? ist__py_import_or_not(state, managed, &known) : NULL;
}

static PyObject *import_adapted(ist__py_state *state, PyObject *source,
                                PyObject *copy, ist__py_how *how) {
  adapter known;
  PyObject *chosen = NULL;
  PyObject *result = import_known(state, source, how);
  if (result != NULL || PyErr_Occurred() != NULL) return result;
  if (read_adapter(state, source, &known) < 0) goto done;
  how->options.grant = known.grant;
  // What the caller says of a producer is more than what we know of it.
  if (how->options.source_packing == IST_PACKING_AS_IS)
    how->options.source_packing = known.packing;
  how->no_exchange = !known.has_exchange;
  chosen = Py_NewRef(source);
  if (known.plain != NULL && known.prepare != NULL) {
    // The object to import instead, or None for one that is not plain.
    ist__py_set(&chosen,
                PyObject_CallFunctionObjArgs(known.plain, source, NULL));
    if (chosen == Py_None) ist__py_set(&chosen, prepare(&known, source, copy));
    if (chosen == NULL) goto done;
  }
  result = ist__py_import(state, chosen, how);
  bool as_it_is = known.plain == NULL || chosen == source;
  if (result == NULL && as_it_is && known.prepare != NULL)
    result = try_again(state, &known, source, copy, how);
done:
  Py_XDECREF(chosen);
  Py_XDECREF(known.tuple);
  return result;
}

// What from_dlpack was called with.
typedef struct asked {
  PyObject *x, *device, *copy, *packing, *source_packing;
} asked;

static int read_asked(const ist__py_names *known, PyObject *const *args,
                      Py_ssize_t count, PyObject *names, asked *out) {
  *out =
      (asked){count == 1 ? args[0] : NULL, Py_None, Py_None, Py_None, Py_None};
  Py_ssize_t keywords = names == NULL ? 0 : PyTuple_Size(names);
  for (Py_ssize_t i = 0; i < keywords; i++) {
    PyObject *name = PyTuple_GetItem(names, i);
    PyObject *value = args[count + i];
    if (ist__py_is_named(name, known->device)) {
      out->device = value;
    } else if (ist__py_is_named(name, known->copy)) {
      out->copy = value;
    } else if (PyUnicode_CompareWithASCIIString(name, "packing") == 0) {
      out->packing = value;
    } else if (PyUnicode_CompareWithASCIIString(name, "source_packing") == 0) {
      out->source_packing = value;
    } else if (count == 0 && PyUnicode_CompareWithASCIIString(name, "x") == 0) {
      out->x = value;
    } else {
      PyErr_Format(PyExc_TypeError,
                   "from_dlpack() got an unexpected keyword argument '%U'",
                   name);
      return -1;
    }
  }
  if (out->x != NULL) return 0;
  PyErr_Format(PyExc_TypeError,
               "from_dlpack() takes 1 positional argument: %zd given", count);
  return -1;
}

// from_dlpack(x, *, device=None, copy=None, packing=None, source_packing=None)
PyObject *ist__py_from_dlpack(PyObject *module, PyObject *const *args,
                              Py_ssize_t count, PyObject *names) {
  ist__py_state *state = ist__py_state_of(module);
  asked wish;
  if (read_asked(&state->names, args, count, names, &wish) < 0) return NULL;
  ist__py_how how = {.device = state->host,
                     .options = {.struct_size = sizeof how.options}};
  if (ist__py_parse_copy(state, wish.copy, &how.options.copy) < 0 ||
      ist__py_parse_packing(state, wish.packing, "packing", IST_PACKING_PADDED,
                            &how.options.packing) < 0 ||
      ist__py_parse_packing(state, wish.source_packing, "source_packing",
                            IST_PACKING_PADDED,
                            &how.options.source_packing) < 0)
    return NULL;
  PyObject *keep = NULL;
  ist_tensor *tensor = NULL;  // keeps the device that it is on
  if (wish.device != Py_None) {
    how.device =
        ist__py_device_find(state, wish.device, &keep, &how.options.memory);
    if (how.device == NULL) return NULL;
  } else if (Py_IS_TYPE(wish.x, state->tensor_type)) {
    ist_tensor_info info = {.struct_size = sizeof info};
    tensor = ist__py_tensor_get(wish.x);
    if (tensor == NULL) return NULL;
    if (ist_tensor_describe(tensor, &info, NULL) == IST_OK)
      how.device = info.device;
  }
  PyObject *result = import_adapted(state, wish.x, wish.copy, &how);
  Py_XDECREF(keep);
  ist__py_release(state, tensor);
  return result;
}

// import_host(x, grant[, packing]) -> Tensor: a view in host memory of what an
// adapter has prepared; who may write it, and how its capsules pack, are the
// adapter's word.
PyObject *ist__py_import_host(PyObject *module, PyObject *const *args,
                              Py_ssize_t count) {
  ist__py_state *state = ist__py_state_of(module);
  if (count < 2 || count > 3) {
    PyErr_SetString(PyExc_TypeError, "import_host() takes 2 or 3 arguments");
    return NULL;
  }
  long grant = PyLong_AsLong(args[1]);
  if (grant == -1 && PyErr_Occurred()) return NULL;
  ist__py_how how = {.device = state->host,
                     .options = {.struct_size = sizeof how.options,
                                 .grant = (ist_grant)grant}};
  if (count == 3 &&
      ist__py_parse_packing(state, args[2], "packing", IST_PACKING_PADDED,
                            &how.options.source_packing) < 0)
    return NULL;
  return ist__py_import(state, args[0], &how);
}

PyObject *ist__py_look(ist__py_state *state, PyObject *capsule,
                       ist__py_managed source) {
  ist__view view;
  ist_grant grant;
  ist_error err = {0};
  ist__managed managed = {source.versioned, source.legacy};
  if (ist__dlpack_read(managed, NULL, &view, &grant, &err) != IST_OK)
    return ist__py_raise(state, &err);
  DLTensor tensor;
  ist__view_borrow(&view, &tensor);
  ist__py_managed look = {
      .versioned =
          ist__py_owner_new(state, &tensor, false, view.padded, capsule, NULL)};
  if (look.versioned == NULL) return NULL;
  ist__py_how how = {
      .device = state->host,
      .options = {.struct_size = sizeof how.options, .grant = grant}};
  return ist__py_import_managed(state, look, &how);
}

// peek(capsule) -> Tensor: a look at a capsule that stays unconsumed, for
// plans. It must not be used once somebody takes the capsule.
PyObject *ist__py_peek(PyObject *module, PyObject *capsule) {
  ist__py_state *state = ist__py_state_of(module);
  ist__py_managed source;
  if (!PyCapsule_CheckExact(capsule)) {
    PyErr_SetString(PyExc_TypeError, "peek() takes a capsule");
    return NULL;
  }
  if (ist__py_capsule_open(state, capsule, &source) < 0) return NULL;
  return ist__py_look(state, capsule, source);
}
