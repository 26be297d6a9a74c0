// SPDX-License-Identifier: Apache-2.0
// _core_tensor_export.c: how an isthmus.Tensor leaves by DLPack:
// __dlpack__ and __dlpack_device__.

#include <string.h>

#include "_core.h"

static const ist_device *device_of(ist_tensor *tensor) {
  ist_tensor_info info = {.struct_size = sizeof info};
  ist_tensor_describe(tensor, &info, NULL);
  return info.device;
}

// The device that an export is on: the tensor's own where its addresses have a
// DLPack code, else the host, which the elements are copied to.
static DLDevice export_device(const ist_device *own) {
  ist_device_info device = {.struct_size = sizeof device};
  if (ist_device_describe(own, &device, NULL) == IST_OK &&
      device.dl_device.device_type != 0)
    return device.dl_device;
  return (DLDevice){kDLCPU, 0};
}

PyObject *ist__py_tensor_dlpack_device(PyObject *self, PyObject *unused) {
  (void)unused;
  ist__py_state *state = ((ist__py_tensor *)self)->state;
  ist_tensor *tensor = ist__py_tensor_borrow(self);
  if (tensor == NULL) return NULL;
  DLDevice device = export_device(device_of(tensor));
  if (device.device_type == kDLCPU && device.device_id == 0)
    return Py_NewRef(state->host_pair);
  return Py_BuildValue("ii", (int)device.device_type, (int)device.device_id);
}

// What __dlpack__ was called with.
typedef struct asked {
  PyObject *stream, *max_version, *dl_device, *copy;
} asked;

static int read_asked(const ist__py_names *known, PyObject *const *args,
                      Py_ssize_t count, PyObject *names, asked *out) {
  *out = (asked){Py_None, Py_None, Py_None, Py_None};
  if (count != 0) {
    PyErr_Format(PyExc_TypeError,
                 "__dlpack__() takes keyword arguments only: %zd given", count);
    return -1;
  }
  Py_ssize_t keywords = names == NULL ? 0 : PyTuple_Size(names);
  for (Py_ssize_t i = 0; i < keywords; i++) {
    PyObject *name = PyTuple_GetItem(names, i);
    PyObject *value = args[i];
    if (ist__py_is_named(name, known->stream)) {
      out->stream = value;
    } else if (ist__py_is_named(name, known->max_version)) {
      out->max_version = value;
    } else if (ist__py_is_named(name, known->dl_device)) {
      out->dl_device = value;
    } else if (ist__py_is_named(name, known->copy)) {
      out->copy = value;
    } else {
      PyErr_Format(PyExc_TypeError,
                   "__dlpack__() got an unexpected keyword argument '%U'",
                   name);
      return -1;
    }
  }
  return 0;
}

// Two integers in a sequence; -1 with an exception set.
static int read_pair(ist__py_state *state, PyObject *value, const char *what,
                     long out[2]) {
  int failed = -1;
  PyObject *tuple =
      PyTuple_CheckExact(value) ? Py_NewRef(value) : PySequence_Tuple(value);
  if (tuple != NULL && PyTuple_Size(tuple) == 2) {
    out[0] = PyLong_AsLong(PyTuple_GetItem(tuple, 0));
    out[1] = PyErr_Occurred() ? -1 : PyLong_AsLong(PyTuple_GetItem(tuple, 1));
    failed = PyErr_Occurred() ? -1 : 0;
  }
  Py_XDECREF(tuple);
  if (failed < 0)
    ist__py_raisef(state, IST_ERR_ARGUMENT,
                   "__dlpack__ could not be answered: %s is no pair of "
                   "integers; needs one, or None",
                   what);
  return failed;
}

// On a host there are no streams: None or -1 (no synchronisation).
static int check_stream(ist__py_state *state, PyObject *stream) {
  if (stream == Py_None) return 0;
  if (PyLong_Check(stream) && PyLong_AsLong(stream) == -1 && !PyErr_Occurred())
    return 0;
  PyErr_Clear();
  ist__py_raisef(state, IST_ERR_ARGUMENT,
                 "__dlpack__ could not be answered: a stream was named for "
                 "memory that has none; needs stream=None or -1");
  return -1;
}

// dl_device may be the export's own, or the host: both are what we give.
static int check_device(ist__py_state *state, PyObject *wish,
                        ist_tensor *tensor, bool *out_to_host) {
  long pair[2];
  *out_to_host = false;
  if (wish == Py_None) return 0;
  DLDevice own = export_device(device_of(tensor));
  if (read_pair(state, wish, "dl_device", pair) < 0) return -1;
  if (pair[0] == (long)own.device_type && pair[1] == own.device_id) return 0;
  if (pair[0] == kDLCPU && pair[1] == 0) {
    *out_to_host = true;
    return 0;
  }
  ist__py_raisef(state, IST_ERR_NO_DEVICE,
                 "__dlpack__ could not be answered: dl_device is (%ld, %ld); "
                 "needs (%d, %d), the tensor's own, or (1, 0), the host",
                 pair[0], pair[1], (int)own.device_type, (int)own.device_id);
  return -1;
}

// Exports, without the GIL where bytes may move or a device be waited for:
// another thread may close the object meanwhile, so that the tensor is held.
static ist_code export_as(ist__py_state *state, ist_tensor *tensor,
                          const ist_options *options, bool versioned,
                          ist__py_managed *out, ist_error *err) {
  bool quick =
      device_of(tensor) == state->host && options->copy != IST_COPY_ALWAYS;
  ist__py_outside outside = {0};
  ist__py_log_begin(state->log);
  if (!quick) {
    ist_tensor_retain(tensor);
    outside = ist__py_go_outside(state->life);
  }
  ist_code code =
      versioned
          ? ist_tensor_export(tensor, options, &out->versioned, NULL, err)
          : ist_tensor_export_legacy(tensor, options, &out->legacy, NULL, err);
  if (!quick) {
    ist_tensor_release(tensor);
    ist__py_come_inside(&outside);
  }
  return code;
}

// The tensor in host memory: itself, or moved there.
static ist_code to_host(ist__py_state *state, ist_tensor *tensor,
                        const ist_options *options, ist_tensor **out,
                        ist_error *err) {
  ist_code code;
  ist__py_log_begin(state->log);
  Py_BEGIN_ALLOW_THREADS code =
      ist_tensor_move(tensor, state->host, options, out, NULL, err);
  Py_END_ALLOW_THREADS return code;
}

static PyObject *capsule_of(ist__py_state *state, ist__py_managed managed) {
  return managed.versioned != NULL
             ? ist__py_capsule_versioned(state, managed.versioned)
             : ist__py_capsule_legacy(state, managed.legacy);
}

// An export of the tensor moved to the host, or of itself where it is there.
static PyObject *export_on_host(ist__py_state *state, ist_tensor *tensor,
                                ist_options *options, bool versioned) {
  ist_error err;
  ist_tensor *chosen = NULL;
  ist__py_managed managed = {0};
  ist_tensor_retain(tensor);
  ist_code code = to_host(state, tensor, options, &chosen, &err);
  ist__py_release(state, tensor);
  if (options->copy == IST_COPY_ALWAYS) options->copy = IST_COPY_AUTO;
  if (code == IST_OK)
    code = export_as(state, chosen, options, versioned, &managed, &err);
  ist__py_release(state, chosen);
  return code == IST_OK ? capsule_of(state, managed)
                        : ist__py_raise(state, &err);
}

PyObject *ist__py_tensor_dlpack(PyObject *self, PyObject *const *args,
                                Py_ssize_t count, PyObject *names) {
  ist__py_state *state = ((ist__py_tensor *)self)->state;
  asked wish;
  long version[2] = {0, 0};
  ist_options options = {.struct_size = sizeof options};
  if (read_asked(&state->names, args, count, names, &wish) < 0) return NULL;
  if (wish.max_version != Py_None &&
      read_pair(state, wish.max_version, "max_version", version) < 0)
    return NULL;
  ist_tensor *tensor = ist__py_tensor_borrow(self);
  bool host_asked;
  if (tensor == NULL ||
      ist__py_parse_copy(state, wish.copy, &options.copy) < 0 ||
      check_stream(state, wish.stream) < 0 ||
      check_device(state, wish.dl_device, tensor, &host_asked) < 0)
    return NULL;
  if (host_asked)
    return export_on_host(state, tensor, &options, version[0] >= 1);
  ist_error err;
  ist__py_managed managed = {0};
  ist_code code =
      export_as(state, tensor, &options, version[0] >= 1, &managed, &err);
  return code == IST_OK ? capsule_of(state, managed)
                        : ist__py_raise(state, &err);
}
