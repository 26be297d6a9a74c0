// SPDX-License-Identifier: Apache-2.0
// backend.h: what the author of a device runtime needs: five functions give
// it DLPack with everything; the optional ones make it cheaper.
//
// Start from src/backend/template.c, which is written to be copied, and run
// tests/conformance on yours. isthmus calls a slot only through its own checked
// dispatch: arguments are valid, outputs are zeroed first, no lock is held.
// Slots may be called from any thread, several at once, also on one buffer.

#ifndef ISTHMUS_BACKEND_H_
#define ISTHMUS_BACKEND_H_

#include <isthmus/isthmus.h>

#ifdef __cplusplus
extern "C" {
#endif

// The number a backend puts into ist_backend_ops.abi. Slots are only ever
// appended to the struct; this number changes when one changes its meaning.
#define IST_BACKEND_ABI 1

// A device as its backend describes it. All pointers are lent by the backend
// until close. Every struct_size is set: those of the first device and of a
// device's first memory tell how far apart the elements of their arrays are.
typedef struct ist_device_facts {
  size_t struct_size;
  const char *name;
  const char *kind;
  int64_t id;
  DLDevice dl_device;  // device_type 0: no DLPack code for its addresses
  const ist_memory_info *memories;  // at least one
  size_t memory_count;
  size_t default_memory;
} ist_device_facts;

typedef struct ist_backend_facts {
  size_t struct_size;
  const char *name;      // in errors: "pjrt:cpu"
  const char *platform;  // "cpu"
  const char *version;   // the runtime's own words, or ""
  const ist_device_facts *devices;
  size_t device_count;
  // The file of the runtime's code, or NULL. A saved program is loaded only by
  // a runtime with the same platform, version and bytes in this file.
  const char *file;
} ist_backend_facts;

// Memory of this process that goes to a device. For copy_in the view is dense
// and row-major, and only borrowed. For adopt its address and layout are what
// the memory's capability accepts, and it stays valid until release(self).
typedef struct ist_placement {
  size_t struct_size;
  size_t device;
  size_t memory;
  const DLTensor *view;    // element 0 at data + byte_offset; strides not NULL
  bool padded;             // sub-byte elements, one to a byte
  ist_release_fn release;  // adopt: call once when the memory is not used
  void *release_self;
} ist_placement;

// An address that stays valid until reclaim.
typedef struct ist_loan {
  size_t struct_size;
  void *data;            // address, or the handle of handle-kind devices
  uint64_t byte_offset;  // of element 0 from data
} ist_loan;

// A program to compile.
typedef struct ist_source {
  size_t struct_size;
  const void *code;
  size_t size;
  const char *name;  // for errors
  size_t device;     // the first of devices; where those are NULL, the one
  // It is one program on several devices: replicas times partitions of them,
  // partition by partition of the first replica, then of the next. At least
  // one, all different, unless portable.
  int32_t replicas;
  int32_t partitions;
  const size_t *devices;
  size_t device_count;
  bool portable;  // for no device: each run names one
} ist_source;

typedef struct ist_program_facts {
  size_t struct_size;
  size_t input_count;  // on each of its devices
  size_t output_count;
  // How many devices one run uses; 0 is 1. A backend that does not answer what
  // was asked for is told to compile for one device only.
  size_t device_count;
  bool portable;
} ist_program_facts;

// One run of a program, on buffers of its devices that fit its inputs.
typedef struct ist_execution {
  size_t struct_size;
  void *program;
  void *const *inputs;  // of the first device, then of the next
  size_t input_count;   // on each device
  void **outputs;       // zeroed; all are set, or none; device by device
  size_t output_count;
  size_t device_count;  // lists of inputs; 0 is 1
  size_t device;        // of a portable program
  // NULL, or for each input whether the runtime may take its memory for an
  // output. After success: whether it did; nothing reads the buffer then.
  bool *donate;
  // NULL, or false: set where every output is known to be as describe_output
  // tells it; inspect is not asked then.
  bool *as_told;
  // A runtime may need a copy of an input to lay it out as the program reads
  // it, where no strides tell how (tiles). It makes none where this is set, but
  // fails with TARGET_LAYOUT.
  bool never_copy;
  // NULL, or for each input false: set for those that were copied so, through
  // the host.
  bool *copied;
  // NULL, or for each output the number of the memory of its device that it
  // lies in; the device's default before.
  size_t *memories;
} ist_execution;

// The functions of a backend. self is what ist_backend_create was given.
// A slot beyond struct_size is absent. Every slot that can fail returns an
// ist_code, writes err (never NULL here) and leaves its outputs zero.
typedef struct ist_backend_ops {
  size_t struct_size;
  uint32_t abi;      // IST_BACKEND_ABI
  const char *name;  // kind of backend: "host", "pjrt"

  // --- required ---
  // Frees self. Called once, after every buffer and program was released.
  void (*close)(void *self);
  // Fills out; called once, at ist_backend_create.
  ist_code (*describe)(void *self, ist_backend_facts *out, ist_error *err);
  // Frees a buffer. Called once for each.
  void (*release)(void *self, void *buffer);
  // Writes a buffer's elements, dense and row-major, to memory of this process
  // and returns when they are there. Waits for the buffer itself.
  ist_code (*copy_out)(void *self, void *buffer, void *target, uint64_t nbytes,
                       ist_error *err);
  // Makes a buffer, dense and row-major, from memory of this process, which is
  // no longer read after the return.
  ist_code (*copy_in)(void *self, const ist_placement *source, void **out,
                      ist_error *err);

  // --- optional ---
  // Gives an address that stays valid until reclaim, once the buffer's values
  // are there. NULL: exports copy through copy_out.
  ist_code (*lend)(void *self, void *buffer, ist_loan *out, ist_error *err);
  // Ends a loan. Required with lend. Called before release.
  void (*reclaim)(void *self, void *buffer);
  // Makes a buffer that views foreign memory. NULL: imports copy.
  ist_code (*adopt)(void *self, const ist_placement *source, void **out,
                    ist_error *err);
  // Copies a buffer to another memory of this backend (place: device, memory).
  // NULL: such copies go through the host.
  ist_code (*copy_peer)(void *self, void *buffer, const ist_placement *place,
                        void **out, ist_error *err);
  // Waits until a buffer's values are there; tells whether making them failed.
  // NULL: buffers are always ready.
  ist_code (*wait)(void *self, void *buffer, ist_error *err);
  // dtype, shape and strides of a buffer that execute made.
  // Required with execute.
  ist_code (*inspect)(void *self, void *buffer, ist_spec *out, ist_error *err);
  // Compiles a program. NULL: the backend runs no programs.
  ist_code (*compile)(void *self, const ist_source *source, void **out,
                      ist_error *err);
  // Required with compile: frees, counts, describes input (or output) number
  // index, runs.
  void (*release_program)(void *self, void *program);
  ist_code (*describe_program)(void *self, void *program,
                               ist_program_facts *out, ist_error *err);
  ist_code (*describe_input)(void *self, void *program, size_t index,
                             ist_spec *out, ist_error *err);
  ist_code (*describe_output)(void *self, void *program, size_t index,
                              ist_spec *out, ist_error *err);
  ist_code (*execute)(void *self, const ist_execution *execution,
                      ist_error *err);
  // Frees a buffer's memory now, before its release; reads of it then fail with
  // IST_ERR_DELETED. Called with no loan out. NULL: the buffer is released.
  ist_code (*discard)(void *self, void *buffer, ist_error *err);
  // The name that the program's text gives to an input (or output), or NULL.
  // Lends it as long as the program. NULL: nothing has a name.
  const char *(*argument_name)(void *self, void *program, bool is_input,
                               size_t index);
  // Gives a program's bytes, memory of ist_allocate. NULL: it saves none.
  // ist_backend_facts.file is needed with it.
  ist_code (*serialize)(void *self, void *program, void **out, size_t *out_size,
                        ist_error *err);
  // Makes a program from such bytes; source->code is what serialize gave on a
  // runtime of the same platform, version and file; the rest is as for compile.
  // Required with serialize.
  ist_code (*load)(void *self, const ist_source *source, void **out,
                   ist_error *err);
} ist_backend_ops;

// Opens a backend of the caller's own. ops is copied. Takes self: on success
// ops->close(self) is called when the last holder is gone. Gives *out.
// Fails: ARGUMENT, BACKEND_ABI (a required slot is missing, another abi, facts
// that cannot be), and what describe returns. Threads: any. Since: 0.1.
IST_API ist_code ist_backend_create(ist_context *context,
                                    const ist_backend_ops *ops, void *self,
                                    ist_backend **out, ist_error *err);

// Writes a formatted message (printf) and code to err, cut to its room, and
// returns code; for slots. err may be NULL. Borrows all. Fails: never.
// Threads: any. Since: 0.1.
IST_API ist_code ist_error_set(ist_error *err, ist_code code,
                               const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

// Memory of the context's allocator, for backends: size bytes at a multiple of
// alignment (a power of two), or NULL. Gives the memory.
// Fails: returns NULL. Threads: any. Since: 0.1.
IST_API void *ist_allocate(ist_context *context, size_t size, size_t alignment);
// Takes memory of ist_allocate; NULL is allowed. Fails: never. Threads: any.
// Since: 0.1.
IST_API void ist_deallocate(ist_context *context, void *pointer);

#ifdef __cplusplus
}
#endif

#endif  // ISTHMUS_BACKEND_H_
