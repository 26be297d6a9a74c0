// SPDX-License-Identifier: Apache-2.0
// _core_open.c: isthmus.open: from a place's name, or a kind with a path and
// options, to an open backend.

#include <string.h>

#include "_core.h"
#include "backend/pjrt/elf_symbol.h"

// Options of one call, with what they point to.
typedef struct all_options {
  ist_option *list;
  size_t count;
  int64_t *numbers;  // of the integer lists, all in one
  size_t number_count;
  PyObject *keep;  // list of the objects whose text is pointed to
} all_options;

static void options_free(all_options *all) {
  PyMem_Free(all->list);
  PyMem_Free(all->numbers);
  Py_XDECREF(all->keep);
}

static int bad_option(ist__py_state *state, const char *name) {
  ist__py_raisef(state, IST_ERR_OPTION,
                 "an option could not be passed: \"%.80s\" has a value that "
                 "no option can have; needs a str, bool, int, float or a list "
                 "of int",
                 name);
  return -1;
}

static int read_list(ist__py_state *state, PyObject *value, all_options *all,
                     ist_option *out) {
  Py_ssize_t count = PySequence_Size(value);
  if (count < 0) return -1;
  int64_t *more = PyMem_Realloc(
      all->numbers, (all->number_count + (size_t)count + 1) * sizeof *more);
  if (more == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  all->numbers = more;
  out->kind = IST_OPTION_INT64_LIST;
  out->list_size = (size_t)count;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *item = PySequence_GetItem(value, i);
    if (item == NULL) return -1;
    int64_t number = PyLong_AsLongLong(item);
    Py_DECREF(item);
    if (number == -1 && PyErr_Occurred()) return bad_option(state, out->name);
    all->numbers[all->number_count++] = number;
  }
  return 0;
}

static int read_option(ist__py_state *state, PyObject *value, all_options *all,
                       ist_option *out) {
  if (PyBool_Check(value)) {
    out->kind = IST_OPTION_BOOL;
    out->boolean = value == Py_True;
  } else if (PyLong_Check(value)) {
    out->kind = IST_OPTION_INT64;
    out->int64 = PyLong_AsLongLong(value);
    if (PyErr_Occurred()) return bad_option(state, out->name);
  } else if (PyFloat_Check(value)) {
    out->kind = IST_OPTION_FLOAT;
    out->number = PyFloat_AsDouble(value);
  } else if (PyUnicode_Check(value)) {
    out->kind = IST_OPTION_STRING;
    out->string = ist__py_name(state, value);
    if (out->string == NULL || PyList_Append(all->keep, value) < 0) return -1;
  } else if (PyList_Check(value) || PyTuple_Check(value)) {
    return read_list(state, value, all, out);
  } else {
    return bad_option(state, out->name);
  }
  return 0;
}

static int read_options(ist__py_state *state, PyObject *dict,
                        all_options *out) {
  if (dict == Py_None) return 0;
  if (!PyDict_Check(dict)) {
    ist__py_raisef(state, IST_ERR_OPTION,
                   "options could not be passed: they are no dict; needs one "
                   "from names to values");
    return -1;
  }
  out->keep = PyList_New(0);
  out->list = PyMem_Calloc((size_t)PyDict_Size(dict) + 1, sizeof out->list[0]);
  if (out->keep == NULL) return -1;
  if (out->list == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict, &at, &key, &value)) {
    ist_option *option = &out->list[out->count];
    if (!PyUnicode_Check(key)) return bad_option(state, "?");
    option->name = ist__py_name(state, key);
    if (option->name == NULL) return -1;
    if (PyList_Append(out->keep, key) < 0 ||
        read_option(state, value, out, option) < 0)
      return -1;
    out->count++;
  }
  // The numbers have stopped moving: point into them.
  size_t used = 0;
  for (size_t i = 0; i < out->count; i++) {
    if (out->list[i].kind != IST_OPTION_INT64_LIST) continue;
    out->list[i].list = out->numbers + used;
    used += out->list[i].list_size;
  }
  return 0;
}

static const char *kind_name(ist_place_kind kind) {
  switch (kind) {
    case IST_PLACE_HOST:
      return "host";
    case IST_PLACE_TEMPLATE:
      return "template";
    case IST_PLACE_PJRT:
      return "pjrt";
    default:
      return NULL;
  }
}

// "pjrt:P.so#1" -> kind, path and device. A bare kind stays as it is.
static int read_place(ist__py_state *state, const char *text, const char **kind,
                      const char **path, ist_place *place) {
  *kind = text;
  if (strpbrk(text, ":#") == NULL) return 0;
  ist_error err = {0};
  place->struct_size = sizeof *place;
  if (ist_place_parse(text, place, &err) != IST_OK) {
    ist__py_raise(state, &err);
    return -1;
  }
  *kind = kind_name(place->kind);
  if (*kind == NULL) {
    ist__py_raisef(state, IST_ERR_PLACE,
                   "%.200s could not be opened: it is a file; needs "
                   "isthmus.load, or a backend: host, template, pjrt:P.so",
                   text);
    return -1;
  }
  if (place->path[0] != '\0') *path = place->path;
  return 0;
}

// Does a device have a kind of memory? "" is the default one.
static bool has_memory(const ist_device *device, const char *kind) {
  ist_device_info info = {.struct_size = sizeof info};
  ist_device_describe(device, &info, NULL);
  for (size_t i = 0; i < info.memory_count; i++) {
    ist_memory_info memory = {.struct_size = sizeof memory};
    ist_device_memory(device, i, &memory, NULL);
    if (memory.kind != NULL && strcmp(memory.kind, kind) == 0) return true;
  }
  return kind[0] == '\0';
}

static PyObject *open_backend(ist__py_state *state, const char *kind,
                              const ist_backend_options *options,
                              const ist_place *place) {
  ist_backend *backend = NULL;
  ist_error err = {0};
  ist_code code;
  ist__py_log_begin(state->log);
  Py_BEGIN_ALLOW_THREADS code =
      ist_backend_open(state->context, kind, options, &backend, &err);
  Py_END_ALLOW_THREADS if (code != IST_OK) return ist__py_raise(state, &err);
  PyObject *result = NULL;
  ist_backend_info info = {.struct_size = sizeof info};
  ist_backend_describe(backend, &info, NULL);
  if (place->device < info.device_count &&
      !has_memory(ist_backend_device(backend, place->device), place->memory)) {
    ist__py_raisef(state, IST_ERR_NO_MEMORY_KIND,
                   "%s: memory \"%s\" of device %zu could not be found; needs "
                   "a kind of memory that the device has",
                   info.name, place->memory, place->device);
  } else if (place->device < info.device_count) {
    result = ist__py_backend_new(state, backend);
    if (result != NULL) {
      ((ist__py_backend *)result)->place = place->device;
      memcpy(((ist__py_backend *)result)->memory, place->memory,
             sizeof place->memory);
    }
  } else {
    ist__py_raisef(state, IST_ERR_NO_DEVICE,
                   "%s: device %zu could not be found: it has %zu; needs one "
                   "of them",
                   info.name, place->device, info.device_count);
  }
  Py_BEGIN_ALLOW_THREADS ist_backend_release(backend);
  Py_END_ALLOW_THREADS return result;
}

// open(place, *, path=None, options=None, trusted=False) -> Backend
PyObject *ist__py_open(PyObject *module, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"place", "path", "options", "trusted", NULL};
  ist__py_state *state = ist__py_state_of(module);
  const char *text, *kind, *path = NULL;
  PyObject *path_object = Py_None, *dict = Py_None, *bytes = NULL;
  int trusted = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|$OOp", names, &text,
                                   &path_object, &dict, &trusted))
    return NULL;
  PyObject *result = NULL;
  all_options all = {0};
  ist_place *place = PyMem_Calloc(1, sizeof *place);
  if (place == NULL) return PyErr_NoMemory();
  if (read_place(state, text, &kind, &path, place) < 0) goto done;
  if (path_object != Py_None) {
    if (!PyUnicode_FSConverter(path_object, &bytes)) goto done;
    path = PyBytes_AsString(bytes);
    if (path == NULL) goto done;
  }
  if (read_options(state, dict, &all) < 0) goto done;
  ist_backend_options how = {.struct_size = sizeof how,
                             .path = path,
                             .options = all.list,
                             .option_count = all.count,
                             .trusted = trusted != 0};
  result = open_backend(state, kind, &how, place);
done:
  options_free(&all);
  Py_XDECREF(bytes);
  PyMem_Free(place);
  return result;
}

// exports_plugin(path) -> bool: the library exports GetPjrtApi; not loaded.
PyObject *ist__py_exports_plugin(PyObject *module, PyObject *path) {
  (void)module;
  PyObject *bytes = NULL;
  if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
  const char *text = PyBytes_AsString(bytes);
  bool found =
      text != NULL && ist__elf_exports(text, "GetPjrtApi") == IST__ELF_YES;
  Py_DECREF(bytes);
  return PyBool_FromLong(found);
}
