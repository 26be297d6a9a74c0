// SPDX-License-Identifier: Apache-2.0
// _core_pool.c: the pool of blocks of the module's one context, as numbers.

#include "_core.h"

PyObject *ist__py_pool(PyObject *module, PyObject *unused) {
  (void)unused;
  ist_block_pool_info info = {.struct_size = sizeof info};
  ist_error err = {0};
  ist__py_state *state = ist__py_state_of(module);
  if (ist_context_block_pool(state->context, &info, &err) != IST_OK) {
    return ist__py_raise(state, &err);
  }
  return Py_BuildValue(
      "(KKKKKK)", (unsigned long long)info.bound, (unsigned long long)info.held,
      (unsigned long long)info.in_use, (unsigned long long)info.peak,
      (unsigned long long)info.hits, (unsigned long long)info.misses);
}

PyObject *ist__py_trim_pool(PyObject *module, PyObject *unused) {
  (void)unused;
  uint64_t bytes;
  ist_context *context = ist__py_state_of(module)->context;
  Py_BEGIN_ALLOW_THREADS bytes = ist_context_trim(context);
  Py_END_ALLOW_THREADS return PyLong_FromUnsignedLongLong(bytes);
}
