// SPDX-License-Identifier: Apache-2.0
// _core_convert.c: what isthmus.astype stands on: a tensor in another
// floating-point dtype.

#include "_core.h"
#include "tensor/lanes.h"

typedef struct wish {
  DLDataType dtype;
  ist_convert_options options;
  PyObject *progress;
} wish;

static PyObject *convert(ist__py_state *state, PyObject *source, void *self) {
  const wish *w = self;
  ist_convert_options options = w->options;
  ist_options watched = {.struct_size = sizeof watched};
  ist__py_watch watch;
  ist__py_watch_begin(&watch, state, w->progress, &watched);
  options.progress = watched.progress;
  options.progress_self = watched.progress_self;
  ist_tensor *tensor = ist__py_tensor_get(source);
  if (tensor == NULL) return NULL;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_tensor *made = NULL;
  ist_error err = {0};
  ist_code code;
  ist__py_log_begin(state->log);
  Py_BEGIN_ALLOW_THREADS code =
      ist_tensor_convert(tensor, w->dtype, &options, &made, &receipt, &err);
  ist_tensor_release(tensor);
  Py_END_ALLOW_THREADS if (code != IST_OK) return ist__py_watch_raise(
      &watch, state, &err);
  return ist__py_with_receipt(state, ist__py_tensor_new(state, made), &receipt);
}

// convert(tensor or capsule, dtype, saturate, padded, progress) -> (Tensor,
// Receipt). A capsule is consumed only on success.
PyObject *ist__py_convert(PyObject *module, PyObject *args) {
  ist__py_state *state = ist__py_state_of(module);
  PyObject *source, *dtype;
  int saturate, padded;
  wish w = {.options = {.struct_size = sizeof w.options}};
  if (!PyArg_ParseTuple(args, "OUppO", &source, &dtype, &saturate, &padded,
                        &w.progress) ||
      ist__py_check_progress(state, w.progress) < 0 ||
      ist__py_dtype_parse(state, dtype, &w.dtype) < 0)
    return NULL;
  // torch.float4_e2m1fn_x2 asks for values of float4_e2m1fn.
  w.dtype = ist__lanes_values(w.dtype);
  w.options.saturate = saturate != 0;
  w.options.padded = padded != 0;
  if (PyCapsule_CheckExact(source))
    return ist__py_capsule_read(state, source, convert, &w);
  if (!Py_IS_TYPE(source, state->tensor_type)) {
    PyErr_SetString(PyExc_TypeError, "convert() takes a Tensor or a capsule");
    return NULL;
  }
  return convert(state, source, &w);
}
