// SPDX-License-Identifier: Apache-2.0
// _core_progress.c: a long copy without the GIL comes back for it now and then:
// to run signal handlers (Ctrl-C) on the main thread, and to call the progress
// function of isthmus.to. What they raise cancels the copy, and is raised.

#include <string.h>

#include "_core.h"

// A waiting thread may have to be given the GIL first, which takes Python up to
// 5 ms: a copy of so many bytes takes as long.
#define SIGNAL_BYTES (UINT64_C(64) << 20)
// The copy asks once in 1 MiB at most: between two calls are at most 8 MiB.
#define FUNCTION_BYTES (UINT64_C(7) << 20)

// A comparison of NumPy's numbers gives no bool but NumPy's own.
static bool is_numpy_false(PyObject *answer) {
  char name[16];
  if (answer == Py_None || answer == Py_True) return false;
  ist__py_type_name(answer, name, sizeof name);
  bool is_bool =
      strcmp(name, "numpy.bool") == 0 || strcmp(name, "numpy.bool_") == 0;
  return is_bool && PyObject_IsTrue(answer) == 0;
}

// Calls the function; false cancels, with or without an exception set.
static bool ask_function(PyObject *function, uint64_t done, uint64_t total) {
  PyObject *answer = PyObject_CallFunction(
      function, "KK", (unsigned long long)done, (unsigned long long)total);
  if (answer == NULL) return false;
  bool stop = answer == Py_False || is_numpy_false(answer);
  Py_DECREF(answer);
  return !stop && !PyErr_Occurred();
}

static bool tell(void *self, uint64_t done, uint64_t total) {
  ist__py_watch *watch = self;
  bool has_function = watch->function != NULL;
  uint64_t since = done - watch->asked;
  bool end = has_function && (done == 0 || done == total);
  if (!end && since < (has_function ? FUNCTION_BYTES : SIGNAL_BYTES)) {
    return true;
  }
  watch->asked = done;
  PyGILState_STATE gil = PyGILState_Ensure();
  bool go_on = PyErr_CheckSignals() == 0;
  if (go_on && has_function) {
    go_on = ask_function(watch->function, done, total);
  }
  // Deleters may run before the call is over: not with an exception set.
  if (!go_on) PyErr_Fetch(&watch->type, &watch->value, &watch->trace);
  PyGILState_Release(gil);
  return go_on;
}

void ist__py_watch_begin(ist__py_watch *watch, ist__py_state *state,
                         PyObject *function, ist_options *options) {
  *watch = (ist__py_watch){.function = function == Py_None ? NULL : function};
  // Only the main thread runs signal handlers.
  if (watch->function == NULL &&
      PyThread_get_thread_ident() != state->main_thread)
    return;
  options->progress = tell;
  options->progress_self = watch;
}

PyObject *ist__py_watch_raise(ist__py_watch *watch, ist__py_state *state,
                              const ist_error *err) {
  if (watch->type == NULL) return ist__py_raise(state, err);
  PyErr_Restore(watch->type, watch->value, watch->trace);
  watch->type = watch->value = watch->trace = NULL;
  return NULL;
}

int ist__py_main_thread(unsigned long *out) {
  PyObject *threading = PyImport_ImportModule("threading");
  PyObject *thread = threading == NULL
                         ? NULL
                         : PyObject_CallMethod(threading, "main_thread", NULL);
  PyObject *ident =
      thread == NULL ? NULL : PyObject_GetAttrString(thread, "ident");
  if (ident != NULL) *out = PyLong_AsUnsignedLong(ident);
  Py_XDECREF(ident);
  Py_XDECREF(thread);
  Py_XDECREF(threading);
  return PyErr_Occurred() ? -1 : 0;
}
