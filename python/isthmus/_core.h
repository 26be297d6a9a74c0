// SPDX-License-Identifier: Apache-2.0
// _core.h: what the files of the extension isthmus._core share: its state, its
// types, and how errors, capsules and owners are handled.
//
// Written against the Limited API of CPython 3.11. Functions that return
// PyObject * give a new reference, or NULL with an exception set; functions
// that return int give 0, or -1 with an exception set.

#ifndef ISTHMUS_PYTHON_CORE_H_
#define ISTHMUS_PYTHON_CORE_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <isthmus/isthmus.h>
#include <stdatomic.h>

// A function as a slot's value: ISO C has no such conversion but by number.
#define IST__PY_SLOT(function) ((void *)(uintptr_t)(function))

// What outlives the module: whether Python is going away. A deleter may be
// called on any thread, long after; see _core_owner.c.
typedef struct ist__py_life ist__py_life;

// Names of attributes that are asked for on every crossing, interned.
typedef struct ist__py_names {
  PyObject *dlpack, *exchange, *interface, *cuda_interface;
  PyObject *device, *copy, *stream, *max_version, *dl_device;
} ist__py_names;

// What torch's tensors are asked for, looked up on their types once: attributes
// by the function behind them, methods as callables.
typedef struct ist__py_torch {
  const DLPackExchangeAPI *api;
  descrgetfunc get;
  PyObject *dtype, *requires_grad;
  PyObject *is_neg, *is_conj, *untyped_storage, *storage_offset, *nbytes;
} ist__py_torch;

// A framework's plain type (and one that is as plain), and its dtypes, which
// are single objects: what _core_fast.c reads. No type: nothing is read so.
typedef struct ist__py_known {
  PyTypeObject *type, *twin;
  size_t count;
  struct {
    PyObject *object;
    DLDataType dtype;
  } dtypes[40];
} ist__py_known;

// A framework that takes what is exported, without its adapter.
typedef struct ist__py_taker {
  PyObject *name, *consumer;
  PyObject *accept;  // or NULL: by the C exchange API of torch
  uint64_t dtypes;   // a set of their numbers
} ist__py_taker;

typedef struct ist__py_state {
  ist_context *context;
  const ist_device *host;
  ist__py_life *life;
  struct ist__py_log *log;
  unsigned long main_thread;  // the one that runs signal handlers
  PyTypeObject *tensor_type;
  PyTypeObject *receipt_type;
  PyTypeObject *backend_type;
  PyTypeObject *device_type;
  PyTypeObject *program_type;
  PyTypeObject *consumer_type;
  PyTypeObject *once_type;
  PyObject *dtypes;         // dict: packed DLDataType -> DType
  PyObject *adapters;       // dict: type -> ist__py_adapter as a tuple
  PyObject *empty;          // ()
  PyObject *host_pair;      // (1, 0)
  PyObject *ask_versioned;  // {"max_version": (1, 3)}
  PyObject *ask_alias;      // the same and copy=False
  ist__py_names names;
  ist__py_known numpy, torch;
  ist__py_torch ask;
  ist__py_taker takers[2];
  bool slow;  // everything goes through the adapters in Python: for tests
} ist__py_state;

// A tensor; tensor is NULL once it was closed.
typedef struct ist__py_tensor {
  PyObject_HEAD ist_tensor *tensor;
  ist__py_state *state;
  PyObject *weak;
} ist__py_tensor;

typedef struct ist__py_receipt {
  PyObject_HEAD ist_receipt receipt;
} ist__py_receipt;

typedef struct ist__py_backend {
  PyObject_HEAD ist_backend *backend;  // NULL once it was closed
  ist__py_state *state;
  uintptr_t was;    // its address, for the hash; stays when it is closed
  size_t place;     // number of the device that the place named
  char memory[64];  // the kind of memory that it named; "": the default
} ist__py_backend;

// A device; it holds its backend open.
typedef struct ist__py_device {
  PyObject_HEAD ist_backend *backend;
  const ist_device *device;
  ist__py_state *state;
} ist__py_device;

// Who takes an export: its capability, and how it wants the capsule.
typedef struct ist__py_consumer {
  PyObject_HEAD ist_capability capability;
  bool legacy;  // takes the kind without a version only
  ist_packing packing;
} ist__py_consumer;

// ------------------------------------------------------- _core_owner.c --
// Zeroed memory that needs no Python: for what a deleter frees. NULL without.
void *ist__py_alloc(size_t size);
void ist__py_free(void *pointer);
// ------------------------------------------------------- _core_error.c --
// Sets the exception of a failure; an exception that is set already becomes
// its cause. Returns NULL.
PyObject *ist__py_raise(ist__py_state *state, const ist_error *err);
// The same from a printf format.
PyObject *ist__py_raisef(ist__py_state *state, ist_code code,
                         const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Makes a failure that was fetched the cause of the one that is set.
// Takes all three.
void ist__py_set_cause(PyObject *type, PyObject *value, PyObject *trace);
// Text of anybody's, cut anywhere, as a str: what is no UTF-8 is replaced.
// NULL gives None.
PyObject *ist__py_text(const char *text);
// The text of a str for the C library, lent by it; NULL with an exception set
// when it holds a NUL, at which it would be cut, or is no Unicode.
const char *ist__py_name(ist__py_state *state, PyObject *name);
// The name of an object's type with its module, cut to size, for messages.
void ist__py_type_name(PyObject *object, char *buffer, size_t size);

// ---------------------------------------------------- _core_progress.c --
// One call of the library that may copy for long. Without a function only
// signals are looked for, and only on the main thread.
typedef struct ist__py_watch {
  PyObject *function;              // borrowed, or NULL
  uint64_t asked;                  // bytes done when Python was asked last
  PyObject *type, *value, *trace;  // of what was raised meanwhile
} ist__py_watch;
// function: a callable, None or NULL. Sets the progress of options, which the
// watch outlives.
void ist__py_watch_begin(ist__py_watch *watch, ist__py_state *state,
                         PyObject *function, ist_options *options);
// Raises what was raised meanwhile, else err. Returns NULL.
PyObject *ist__py_watch_raise(ist__py_watch *watch, ist__py_state *state,
                              const ist_error *err);
int ist__py_main_thread(unsigned long *out);

// --------------------------------------------------------- _core_log.c --
// Collects the library's log lines: to stderr as ISTHMUS_LOG says, and the
// last long message of each thread, as a note for the next error.
struct ist__py_log *ist__py_log_new(void);
void ist__py_log_free(struct ist__py_log *log);
void ist__py_log_line(void *self, ist_log_level level, const char *text);
// Takes this thread's note (free with ist__py_free), or NULL.
char *ist__py_log_note(struct ist__py_log *log);
// Called before each call of the library that a runtime may fail: what this
// thread was warned of before is not about it.
void ist__py_log_begin(struct ist__py_log *log);

// ------------------------------------------------------- _core_owner.c --
ist__py_life *ist__py_life_new(void);
void ist__py_life_retain(ist__py_life *life);
void ist__py_life_release(ist__py_life *life);
// Says that Python is going away: from now on deleters leak on purpose.
void ist__py_life_end(ist__py_life *life);
// Begins a stay inside Python from any thread; false when it is going away.
bool ist__py_life_enter(ist__py_life *life);
void ist__py_life_leave(ist__py_life *life);
// Runs a Py_DECREF from any thread; leaks it when Python is going away.
void ist__py_life_drop(ist__py_life *life, PyObject *object, Py_buffer *buffer);
// A call of the library without the GIL. What is dropped on this thread during
// it is let go of at its end, where the GIL is taken again anyway.
typedef struct ist__py_outside {
  ist__py_life *life;
  struct ist__py_stay *stay;  // or NULL: too many at once
  PyThreadState *thread;
} ist__py_outside;
ist__py_outside ist__py_go_outside(ist__py_life *life);
void ist__py_come_inside(const ist__py_outside *outside);
// A managed tensor over memory that owner (and buffer, if given) keeps alive.
// The arrays of view are copied. Retains owner; takes buffer on success.
DLManagedTensorVersioned *ist__py_owner_new(ist__py_state *state,
                                            const DLTensor *view,
                                            bool read_only, bool padded,
                                            PyObject *owner, Py_buffer *buffer);

// ----------------------------------------------------- _core_capsule.c --
// A capsule that calls the deleter unless its consumer renamed it.
// Takes managed: on failure its deleter has been called.
PyObject *ist__py_capsule_versioned(ist__py_state *state,
                                    DLManagedTensorVersioned *managed);
PyObject *ist__py_capsule_legacy(ist__py_state *state,
                                 DLManagedTensor *managed);
// What a raw capsule holds; exactly one is set.
typedef struct ist__py_managed {
  DLManagedTensorVersioned *versioned;
  DLManagedTensor *legacy;
} ist__py_managed;
int ist__py_capsule_open(ist__py_state *state, PyObject *capsule,
                         ist__py_managed *out);
// Marks a capsule as consumed, or (used = false) as not consumed again.
int ist__py_capsule_mark(PyObject *capsule, ist__py_managed managed, bool used);
// Reads the tensor of a capsule by a function, and consumes the capsule when
// that has succeeded.
typedef PyObject *(*ist__py_reader)(ist__py_state *state, PyObject *tensor,
                                    void *self);
PyObject *ist__py_capsule_read(ist__py_state *state, PyObject *capsule,
                               ist__py_reader read, void *self);

// -------------------------------------------------------- _core_lent.c --
// Makes the deleter of an export let go of the GIL while it runs.
// Takes managed: on failure (-1, an exception set) it has been deleted.
int ist__py_lend(ist__py_state *state, ist__py_managed *managed);
// ist_tensor_release without the GIL, for a count that may be the last.
void ist__py_release(ist__py_state *state, ist_tensor *tensor);

// ------------------------------------------------------ _core_import.c --
typedef struct ist__py_how {
  const ist_device *device;
  ist_options options;
  ist_receipt *receipt;  // or NULL
  bool no_exchange;      // the type has no C exchange API
} ist__py_how;
// Any object that has a tensor -> an isthmus tensor.
PyObject *ist__py_import(ist__py_state *state, PyObject *source,
                         const ist__py_how *how);
// A managed tensor; takes it whether or not it succeeds.
PyObject *ist__py_import_managed(ist__py_state *state, ist__py_managed source,
                                 const ist__py_how *how);
// The same, but a failure that no exception caused is none: NULL without one.
PyObject *ist__py_import_or_not(ist__py_state *state, ist__py_managed source,
                                const ist__py_how *how);
void ist__py_managed_delete(ist__py_managed managed);
// The table behind a type's __dlpack_c_exchange_api__, or NULL (with or
// without an exception set).
const DLPackExchangeAPI *ist__py_exchange_api(ist__py_state *state,
                                              PyObject *type);

// -------------------------------------------------------- _core_fast.c --
// A plain array or tensor as a managed tensor, without a call into Python
// code: 1, or 0 where the adapters must look, or -1 with an exception set.
int ist__py_fast_take(ist__py_state *state, PyObject *source,
                      ist__py_managed *out, ist_grant *out_grant);
void ist__py_fast_clear(ist__py_state *state);
PyObject *ist__py_know_numpy(PyObject *module, PyObject *args);
PyObject *ist__py_know_torch(PyObject *module, PyObject *args);
PyObject *ist__py_slow(PyObject *module, PyObject *wish);

// -------------------------------------------------- _core_from_dlpack.c --
PyObject *ist__py_from_dlpack(PyObject *module, PyObject *const *args,
                              Py_ssize_t count, PyObject *names);
PyObject *ist__py_import_host(PyObject *module, PyObject *const *args,
                              Py_ssize_t count);
PyObject *ist__py_peek(PyObject *module, PyObject *capsule);
PyObject *ist__py_pool(PyObject *module, PyObject *unused);
PyObject *ist__py_trim_pool(PyObject *module, PyObject *unused);
// A tensor over what a capsule holds, which stays with the capsule: good as
// long as nobody takes that.
PyObject *ist__py_look(ist__py_state *state, PyObject *capsule,
                       ist__py_managed source);
// None, "packed", "padded" or "pairs" -> enum; -1 with an exception set.
// what: the keyword, for the message.
int ist__py_parse_packing(ist__py_state *state, PyObject *value,
                          const char *what, ist_packing last, ist_packing *out);

// ------------------------------------------------ _core_array_interface.c --
DLManagedTensorVersioned *ist__py_from_interface(ist__py_state *state,
                                                 PyObject *source,
                                                 PyObject *interface);

// ------------------------------------------------------ _core_buffer.c --
DLManagedTensorVersioned *ist__py_from_buffer(ist__py_state *state,
                                              PyObject *source);
PyObject *ist__py_wrap(PyObject *module, PyObject *args);

// ------------------------------------------------------ _core_tensor.c --
PyObject *ist__py_tensor_type(PyObject *module);
// Takes tensor whether or not it succeeds.
PyObject *ist__py_tensor_new(ist__py_state *state, ist_tensor *tensor);
// The tensor inside, borrowed: good while the GIL is held; NULL when closed.
ist_tensor *ist__py_tensor_borrow(PyObject *self);
// The tensor inside, retained by the caller's object; NULL when closed.
ist_tensor *ist__py_tensor_get(PyObject *self);

// ------------------------------------------------ _core_tensor_export.c --
PyObject *ist__py_tensor_dlpack(PyObject *self, PyObject *const *args,
                                Py_ssize_t count, PyObject *names);
PyObject *ist__py_tensor_dlpack_device(PyObject *self, PyObject *unused);

// ----------------------------------------------- _core_tensor_buffer.c --
int ist__py_tensor_getbuffer(PyObject *self, Py_buffer *view, int flags);
void ist__py_tensor_releasebuffer(PyObject *self, Py_buffer *view);

// ---------------------------------------------------- _core_exchange.c --
PyObject *ist__py_consumer_type(PyObject *module);
PyObject *ist__py_export(PyObject *module, PyObject *args);
PyObject *ist__py_move(PyObject *module, PyObject *args);
PyObject *ist__py_plan(PyObject *module, PyObject *args);
PyObject *ist__py_copy_into(PyObject *module, PyObject *args);
// Nothing, None or a callable; else -1 with an exception set.
int ist__py_check_progress(ist__py_state *state, PyObject *progress);
// "auto"/None/bool -> enum; -1 with an exception set.
int ist__py_parse_copy(ist__py_state *state, PyObject *value, ist_copy *out);

// A sequence of names -> the set of their numbers; -1 with an exception set.
int ist__py_read_dtypes(PyObject *names, uint64_t *out);

// ---------------------------------------------------------- _core_to.c --
PyObject *ist__py_once_type(PyObject *module);
PyObject *ist__py_take_for(PyObject *module, PyObject *args);
PyObject *ist__py_to(PyObject *module, PyObject *const *args, Py_ssize_t count,
                     PyObject *names);

// ----------------------------------------------------- _core_convert.c --
PyObject *ist__py_convert(PyObject *module, PyObject *args);

// ----------------------------------------------------- _core_receipt.c --
PyObject *ist__py_receipt_type(PyObject *module);
PyObject *ist__py_receipt_new(ist__py_state *state, const ist_receipt *receipt);
// (made, Receipt). Takes made; where it is NULL, an exception is set.
PyObject *ist__py_with_receipt(ist__py_state *state, PyObject *made,
                               const ist_receipt *receipt);

// Names its ends (NULL: as they are) and adds a copy that an adapter made
// before the route; reason 0: none was made.
void ist__py_receipt_amend(PyObject *receipt, const char *source,
                           const char *target, int32_t reason, uint64_t nbytes);

// ------------------------------------------------------- _core_dtype.c --
PyObject *ist__py_dtype_get(ist__py_state *state, DLDataType dtype);
int ist__py_dtype_parse(ist__py_state *state, PyObject *name, DLDataType *out);
// The struct format of a dtype, or NULL.
const char *ist__py_dtype_format(DLDataType dtype);
// The dtype of a struct format; false when there is none.
bool ist__py_dtype_from_format(const char *format, Py_ssize_t itemsize,
                               DLDataType *out);
// The dtype of an array-interface typestr; false when there is none.
bool ist__py_dtype_from_typestr(const char *text, DLDataType *out);
PyObject *ist__py_dtypes(PyObject *module, PyObject *unused);

// ------------------------------------------------------ _core_device.c --
PyObject *ist__py_device_type(PyObject *module);
PyObject *ist__py_device_new(ist__py_state *state, const ist_device *device);
// None, a Device, a Backend or a DLPack pair -> a device; NULL with an
// exception set. *out_keep gets what keeps the device open (release it), or
// NULL for the host; *out_memory the kind of memory that a backend's place
// named, lent by value, or NULL.
const ist_device *ist__py_device_find(ist__py_state *state, PyObject *value,
                                      PyObject **out_keep,
                                      const char **out_memory);

// ----------------------------------------------------- _core_backend.c --
PyObject *ist__py_backend_type(PyObject *module);
// Retains backend.
PyObject *ist__py_backend_new(ist__py_state *state, ist_backend *backend);

// -------------------------------------------------------- _core_open.c --
PyObject *ist__py_open(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ist__py_exports_plugin(PyObject *module, PyObject *path);

// ----------------------------------------------------- _core_program.c --
PyObject *ist__py_program_type(PyObject *module);
PyObject *ist__py_program_compile(ist__py_state *state,
                                  const ist_device *device, PyObject *code,
                                  const char *name);

// -------------------------------------------------------- _core_file.c --
PyObject *ist__py_load(PyObject *module, PyObject *args);
PyObject *ist__py_save(PyObject *module, PyObject *args);
PyObject *ist__py_empty(PyObject *module, PyObject *args);

// ----------------------------------------------------- _core_catalog.c --
PyObject *ist__py_catalog_find(PyObject *module, PyObject *code);
PyObject *ist__py_catalog_match(PyObject *module, PyObject *text);

// Whether a keyword is that name: callers give interned ones.
static inline bool ist__py_is_named(PyObject *keyword, PyObject *interned) {
  return keyword == interned || PyUnicode_Compare(keyword, interned) == 0;
}

// Puts a new reference (or NULL) into a variable.
static inline void ist__py_set(PyObject **variable, PyObject *value) {
  PyObject *old = *variable;
  *variable = value;
  Py_XDECREF(old);
}

static inline ist__py_state *ist__py_state_of(PyObject *module) {
  return (ist__py_state *)PyModule_GetState(module);
}

#endif  // ISTHMUS_PYTHON_CORE_H_
