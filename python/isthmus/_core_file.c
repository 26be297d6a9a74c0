// SPDX-License-Identifier: Apache-2.0
// _core_file.c: .npy and .safetensors files as tensors that view the map, and
// tensors as files; and fresh aligned memory.

#include <string.h>

#include "_core.h"
#include "bridge/file.h"

static PyObject *named_tensor(ist__py_state *state, ist_file *file,
                              const char *name) {
  ist_tensor *tensor = NULL;
  ist_error err = {0};
  ist_code code;
  ist__py_log_begin(state->log);
  Py_BEGIN_ALLOW_THREADS code = ist_file_tensor(file, name, &tensor, &err);
  Py_END_ALLOW_THREADS return code == IST_OK ? ist__py_tensor_new(state, tensor)
                                             : ist__py_raise(state, &err);
}

static PyObject *all_tensors(ist__py_state *state, ist_file *file) {
  PyObject *dict = PyDict_New();
  for (size_t i = 0; dict != NULL && i < ist_file_count(file); i++) {
    const char *name = ist_file_name(file, i);
    PyObject *tensor = named_tensor(state, file, name);
    if (tensor == NULL || PyDict_SetItemString(dict, name, tensor) < 0)
      Py_CLEAR(dict);
    Py_XDECREF(tensor);
  }
  return dict;
}

// load(path, dtype, name) -> Tensor (.npy, or a name given), else dict.
PyObject *ist__py_load(PyObject *module, PyObject *args) {
  ist__py_state *state = ist__py_state_of(module);
  PyObject *path = NULL;
  const char *dtype, *name;
  if (!PyArg_ParseTuple(args, "O&zz", PyUnicode_FSConverter, &path, &dtype,
                        &name))
    return NULL;
  const char *text = PyBytes_AsString(path);
  ist_file_options options = {.struct_size = sizeof options, .dtype = dtype};
  ist_file *file = NULL;
  ist_error err = {0};
  ist_code code;
  ist__py_log_begin(state->log);
  Py_BEGIN_ALLOW_THREADS code =
      ist_file_open(state->context, text, &options, &file, &err);
  Py_END_ALLOW_THREADS Py_DECREF(path);
  if (code != IST_OK) return ist__py_raise(state, &err);
  bool single = name == NULL && ist__file_is_npy(file);
  PyObject *result = single || name != NULL ? named_tensor(state, file, name)
                                            : all_tensors(state, file);
  ist_file_release(file);
  return result;
}

// save(path, names or None, tensors, progress)
PyObject *ist__py_save(PyObject *module, PyObject *args) {
  ist__py_state *state = ist__py_state_of(module);
  PyObject *path = NULL, *names, *tensors, *progress;
  if (!PyArg_ParseTuple(args, "O&OO!O", PyUnicode_FSConverter, &path, &names,
                        &PyList_Type, &tensors, &progress))
    return NULL;
  size_t count = (size_t)PyList_Size(tensors);
  const char **texts = PyMem_Calloc(count + 1, sizeof texts[0]);
  ist_tensor **inside = PyMem_Calloc(count + 1, sizeof inside[0]);
  bool ready = texts != NULL && inside != NULL;
  for (size_t i = 0; ready && i < count; i++) {
    PyObject *tensor = PyList_GetItem(tensors, (Py_ssize_t)i);
    if (names != Py_None)
      texts[i] = ist__py_name(state, PyList_GetItem(names, (Py_ssize_t)i));
    inside[i] = Py_IS_TYPE(tensor, state->tensor_type)
                    ? ist__py_tensor_get(tensor)
                    : NULL;
    ready = inside[i] != NULL && (names == Py_None || texts[i] != NULL);
  }
  ist_options options = {.struct_size = sizeof options};
  ist__py_watch watch;
  ist__py_watch_begin(&watch, state, progress, &options);
  ist_error err = {0};
  ist_code code = IST_OK;
  if (ready) {
    const char *text = PyBytes_AsString(path);
    ist__py_log_begin(state->log);
    Py_BEGIN_ALLOW_THREADS code = ist_file_save_with(
        text, names == Py_None ? NULL : texts, inside, count, &options, &err);
    Py_END_ALLOW_THREADS
  }
  for (size_t i = 0; inside != NULL && i < count; i++)
    ist__py_release(state, inside[i]);
  PyMem_Free(texts);
  PyMem_Free(inside);
  Py_DECREF(path);
  if (!ready) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
  if (code != IST_OK) return ist__py_watch_raise(&watch, state, &err);
  Py_RETURN_NONE;
}

// empty(shape, dtype, align) -> Tensor of zeros in host memory.
PyObject *ist__py_empty(PyObject *module, PyObject *args) {
  ist__py_state *state = ist__py_state_of(module);
  PyObject *shape, *dtype;
  Py_ssize_t alignment;
  if (!PyArg_ParseTuple(args, "O!On", &PyTuple_Type, &shape, &dtype,
                        &alignment))
    return NULL;
  ist_spec spec = {.struct_size = sizeof spec};
  if (PyTuple_Size(shape) > IST_MAX_NDIM)
    return ist__py_raisef(state, IST_ERR_NDIM,
                          "a tensor could not be made: ndim is %zd; needs 0 "
                          "to %d",
                          PyTuple_Size(shape), IST_MAX_NDIM);
  spec.ndim = (int32_t)PyTuple_Size(shape);
  for (int32_t i = 0; i < spec.ndim; i++) {
    spec.shape[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    if (spec.shape[i] == -1 && PyErr_Occurred()) return NULL;
  }
  if (ist__py_dtype_parse(state, dtype, &spec.dtype) < 0) return NULL;
  ist_tensor *tensor = NULL;
  ist_error err = {0};
  ist_code code;
  ist__py_log_begin(state->log);
  Py_BEGIN_ALLOW_THREADS code = ist_tensor_empty(
      state->context, &spec, alignment < 0 ? SIZE_MAX : (size_t)alignment,
      &tensor, &err);
  Py_END_ALLOW_THREADS return code == IST_OK ? ist__py_tensor_new(state, tensor)
                                             : ist__py_raise(state, &err);
}
