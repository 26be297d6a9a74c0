// SPDX-License-Identifier: Apache-2.0
// isthmus.h: what an application needs, in reading order: backends, routes and
// receipts, tensors, files, places. It includes context.h, which everything
// starts with, error.h, the codes and the catalog of errors, and program.h,
// programs on tensors.
//
// Words used below. Ownership: Borrows (used during the call only), Retains
// (counted; the caller keeps its own), Takes (on success the callee owns it;
// on failure the caller still does), Gives (the caller owns it and releases
// it), Lends (valid as long as what lent it). Fails lists the codes that a
// caller can meet. Threads: "any" means from any thread at once.
//
// On failure every output is NULL or zero and every input is as it was.
// Every ist_error pointer may be NULL.

#ifndef ISTHMUS_ISTHMUS_H_
#define ISTHMUS_ISTHMUS_H_

#include <isthmus/context.h>
#include <isthmus/dlpack.h>
#include <isthmus/dtype.h>
#include <isthmus/error.h>
#include <isthmus/geometry.h>
#include <isthmus/program.h>
#include <isthmus/version.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Most reasons a receipt holds.
#define IST_MAX_REASONS 8
// Room for a place's name in a receipt, its NUL included; longer ones are cut.
#define IST_MAX_PLACE 96

// -------------------------------------------------------------- backends --

// A device runtime. Counted; its tensors retain it.
typedef struct ist_backend ist_backend;
// One device of a backend, lent by it.
typedef struct ist_device ist_device;

typedef enum ist_option_kind {
  IST_OPTION_STRING = 0,
  IST_OPTION_INT64 = 1,
  IST_OPTION_INT64_LIST = 2,
  IST_OPTION_FLOAT = 3,
  IST_OPTION_BOOL = 4
} ist_option_kind;

// A named value for a backend or a plugin; the member that kind names counts.
typedef struct ist_option {
  const char *name;
  ist_option_kind kind;
  const char *string;
  int64_t int64;
  const int64_t *list;
  size_t list_size;
  double number;
  bool boolean;
} ist_option;

typedef struct ist_backend_options {
  size_t struct_size;
  const char *path;  // the plugin's file, for kind "pjrt"
  const ist_option *options;
  size_t option_count;
  // Opens the plugin in this process at once. false: a plugin that this context
  // has not opened yet with these options is first opened in a process of its
  // own (isthmus-probe), so that one that kills itself costs an error.
  bool trusted;
  // A report on device 0 will be asked for (ist_pjrt_report_create): what only
  // that tries is tried elsewhere before the plugin is opened here, too, and
  // not while it is open. For devices that only one process may hold.
  bool reports;
} ist_backend_options;

// Opens a backend of a kind: "host", "template" (options: addressable,
// alignment, devices) or "pjrt" (options->path, and the plugin's own options).
// Opening a plugin runs its code. Gives *out.
// Fails: ARGUMENT, OPTION, NO_BACKEND, PLUGIN_*, NOT_A_PLUGIN, PROBE_MISSING,
// NO_DEVICE, NO_ALLOCATION.
// Threads: any. Since: 0.1.
IST_API ist_code ist_backend_open(ist_context *context, const char *kind,
                                  const ist_backend_options *options,
                                  ist_backend **out, ist_error *err);

// Retains backend. Fails: never. Threads: any. Since: 0.1.
IST_API void ist_backend_retain(ist_backend *backend);
// Takes one count; the runtime closes when no tensor, program or handle is
// left. Fails: never. Threads: any. Since: 0.1.
IST_API void ist_backend_release(ist_backend *backend);

// Facts about an open backend. All strings are lent by the backend.
typedef struct ist_backend_info {
  size_t struct_size;
  const char *name;      // as it names itself in errors: "pjrt:cpu"
  const char *platform;  // the runtime's platform, "cpu"
  const char *version;   // the runtime's own words on its version, or ""
  size_t device_count;
  bool runs_programs;  // a program was compiled and run when it was opened
} ist_backend_info;

// Fills out (its struct_size set by the caller). Lends the strings.
// Fails: ARGUMENT. Threads: any. Since: 0.1.
IST_API ist_code ist_backend_describe(const ist_backend *backend,
                                      ist_backend_info *out, ist_error *err);

// Device number index, or NULL. Lends it as long as the backend lives.
// Fails: never. Threads: any. Since: 0.1.
IST_API const ist_device *ist_backend_device(const ist_backend *backend,
                                             size_t index);

// The host device of a context: memory of this process. Lends it as long as
// the context lives. Fails: never. Threads: any. Since: 0.1.
IST_API const ist_device *ist_context_host(ist_context *context);

// The backend of a device. Lends it. Fails: never. Threads: any. Since: 0.1.
IST_API ist_backend *ist_device_backend(const ist_device *device);

typedef struct ist_device_info {
  size_t struct_size;
  const char *name;    // the runtime's own words: "TFRT_CPU_0"
  const char *kind;    // the runtime's kind of device: "cpu"
  size_t index;        // as in a place: pjrt:P.so#index
  int64_t id;          // the runtime's own number
  DLDevice dl_device;  // device_type 0: its addresses have no DLPack code
  size_t memory_count;
  size_t default_memory;
} ist_device_info;

// Fills out. Lends the strings. Fails: ARGUMENT. Threads: any. Since: 0.1.
IST_API ist_code ist_device_describe(const ist_device *device,
                                     ist_device_info *out, ist_error *err);

// What a memory, or a framework on the other side, can do. Set by a probe that
// has done it, never from a pointer or a version.
typedef enum ist_can {
  IST_CAN_COPY_IN = 1,            // takes bytes from the host
  IST_CAN_COPY_OUT = 2,           // gives bytes to the host
  IST_CAN_ADOPT = 4,              // views foreign memory
  IST_CAN_LEND = 8,               // gives an address that stays valid
  IST_CAN_HOST_ADDRESS = 16,      // its addresses can be read by this process
  IST_CAN_HONOUR_READ_ONLY = 32,  // never writes where READ_ONLY is set
  IST_CAN_PEER = 64,    // copies to another memory of the same backend
  IST_CAN_PADDED = 128  // keeps sub-byte elements stored one to a byte
} ist_can;

typedef struct ist_capability {
  size_t struct_size;
  uint32_t can;        // set of ist_can
  uint32_t layouts;    // set of ist_layout that adopt takes as it is; packed
                       // sub-byte elements: row-major, unless it is ANY
  uint64_t alignment;  // bytes that adopt needs; 1: none
  uint64_t dtypes;     // bit n: dtype number n of src/tensor/dtype.def
  DLDevice dl_device;  // of the addresses; device_type 0: none
} ist_capability;

typedef struct ist_memory_info {
  size_t struct_size;
  const char *kind;  // "device", "pinned_host", ...
  ist_capability capability;
} ist_memory_info;

// Memory number index of a device. Lends the string.
// Fails: ARGUMENT, NO_MEMORY_KIND. Threads: any. Since: 0.1.
IST_API ist_code ist_device_memory(const ist_device *device, size_t index,
                                   ist_memory_info *out, ist_error *err);

// ------------------------------------------------------ routes, receipts --

typedef enum ist_copy {
  IST_COPY_AUTO = 0,   // alias if it can, copy if it must
  IST_COPY_NEVER = 1,  // alias or refuse
  IST_COPY_ALWAYS = 2  // a private buffer, always
} ist_copy;

// What to do when a consumer that ignores READ_ONLY would view memory that
// must not be written.
typedef enum ist_read_only {
  IST_READ_ONLY_AUTO = 0,    // immutable: alias with a reason; marked: copy
  IST_READ_ONLY_REFUSE = 1,  // refuse
  IST_READ_ONLY_COPY = 2,    // copy
  IST_READ_ONLY_ALLOW = 3    // alias
} ist_read_only;

// What to do when an immutable consumer would view memory that its owner may
// still write.
typedef enum ist_mutable_source {
  IST_MUTABLE_ALIAS = 0,  // alias, and the receipt says that writes show
  IST_MUTABLE_COPY = 1    // copy
} ist_mutable_source;

// Who may write the source's memory.
typedef enum ist_grant {
  IST_GRANT_FROM_SOURCE = 0,  // READ_ONLY flag; unversioned: READ_ONLY
  IST_GRANT_WRITABLE = 1,     // anybody
  IST_GRANT_IMMUTABLE = 2,    // nobody, by contract (a jax array)
  IST_GRANT_READ_ONLY = 3     // marked read-only, overlapping or unknown
} ist_grant;

typedef enum ist_route {
  IST_ROUTE_REFUSE = 0,
  IST_ROUTE_ALIAS = 1,  // no byte moves
  IST_ROUTE_COPY = 2,   // one copy
  IST_ROUTE_STAGE = 3   // through the host: two copies, and a third where
                        // it repacks between two memories that it cannot reach
} ist_route;

// Why a route was taken; the list, with its texts, is src/bridge/reason.def.
typedef struct ist_reason {
  int32_t id;
  int64_t actual;  // what was found, where the reason has a number
  int64_t needed;  // what was needed
} ist_reason;

// How a tensor crossed, or will cross.
typedef struct ist_receipt {
  size_t struct_size;
  ist_route route;
  ist_code code;         // of a refusal; else IST_OK
  uint64_t bytes_moved;  // payload bytes written, all hops together
  uint32_t hops;         // copies made: 0 alias, 1 copy, 2 or 3 stage
  uint32_t reason_count;
  ist_reason reasons[IST_MAX_REASONS];
  bool read_only;  // the result must not be written
  char source[IST_MAX_PLACE];
  char target[IST_MAX_PLACE];
} ist_receipt;

// The source of a crossing, as the route sees it.
typedef struct ist_offer {
  size_t struct_size;
  const ist_capability *memory;  // of the memory that it lies in
  uint32_t layout;               // set of ist_layout
  int32_t dtype;                 // number of its dtype
  ist_grant grant;               // never IST_GRANT_FROM_SOURCE
  uint64_t address;              // of element 0; 0 when unknown
  uint64_t nbytes;               // payload, bytes
  bool in_place;                 // it lies in the target's own memory already
  bool peer;                     // another memory of the target's own backend
  bool padded;                   // sub-byte elements, one to a byte
  int64_t order;                 // ist_fit.order_code, to be named where the
                                 // target could view it permuted; 0: not told
  ist_pairs pairs;               // read when the wish is IST_PACKING_PAIRS
  uint64_t count;  // elements, for what a repacking copy moves; 0:
                   // nbytes tells it
} ist_offer;

typedef struct ist_wish {
  size_t struct_size;
  ist_copy copy;
  ist_read_only read_only;
  ist_mutable_source mutable_source;
  ist_packing packing;  // how sub-byte elements are to lie at the target
} ist_wish;

// Decides how an offer crosses to a target. A pure function: reads its
// arguments, writes out (route, code, bytes_moved, hops, reasons, read_only),
// does nothing. A refusal is an answer (IST_ROUTE_REFUSE), not a failure.
// wish may be NULL. Borrows all. Fails: ARGUMENT. Threads: any. Since: 0.1.
IST_API ist_code ist_route_plan(const ist_offer *offer,
                                const ist_capability *target,
                                const ist_wish *wish, ist_receipt *out,
                                ist_error *err);

// The stable name of a reason ("unaligned") or a route ("alias"), or NULL.
// Lends a static string. Fails: never. Threads: any. Since: 0.1.
IST_API const char *ist_reason_name(int32_t id);
// Lends a static string. Fails: never. Threads: any. Since: 0.1.
IST_API const char *ist_route_name(ist_route route);

// Writes a reason as a sentence, cut to size; returns the length without the
// NUL that the whole text has. Borrows all. Fails: never. Threads: any.
// Since: 0.1.
IST_API size_t ist_reason_text(const ist_reason *reason, char *buffer,
                               size_t size);

// Writes a receipt as one JSON object, cut to size; returns the length that
// the whole text has. Borrows all. Fails: never. Threads: any. Since: 0.1.
IST_API size_t ist_receipt_json(const ist_receipt *receipt, char *buffer,
                                size_t size);

// --------------------------------------------------------------- tensors --

// An immutable description of memory on a device, and a count on it. The
// memory itself may be written by whoever may write it.
typedef struct ist_tensor ist_tensor;

// dtype, shape and strides (in elements) of a tensor, by value.
typedef struct ist_spec {
  size_t struct_size;
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[IST_MAX_NDIM];
  int64_t strides[IST_MAX_NDIM];
} ist_spec;

// Told how much of a copy is done, in bytes written out of total; false cancels
// the copy, which then fails with CANCELLED. Called on the thread of the call
// that copies, between parts of at most 1 MiB, with no lock held and nothing
// being written: first with 0, then with numbers that never fall, last with
// done == total. Not called where nothing is copied. A part that a backend
// copies by itself is one step.
typedef bool (*ist_progress_fn)(void *self, uint64_t done, uint64_t total);

typedef struct ist_options {
  size_t struct_size;
  ist_copy copy;
  ist_read_only read_only;
  ist_mutable_source mutable_source;
  ist_grant grant;     // import: what is known of the producer
  const char *memory;  // import, move: memory kind; NULL: the default
  const ist_capability *consumer;  // export: who takes it; NULL: anyone who
                                   // takes any address and honours READ_ONLY
  // What receipts and refusals call the two ends ("numpy", "torch"); NULL: by
  // their places.
  const char *source_name;
  const char *target_name;
  ist_progress_fn progress;  // NULL: nobody is told
  void *progress_self;
  // How sub-byte elements are to lie at the target; what lies otherwise is
  // repacked by the one copy. copy_into: how they lie in the target, as in the
  // source when AS_IS. PAIRS: exports only.
  ist_packing packing;
  // import: how those of a tensor without a version lie, which cannot say it:
  // PACKED or PADDED where the producer is known. AS_IS: a tensor whose size
  // does not tell is refused. A versioned tensor's flag decides.
  ist_packing source_packing;
} ist_options;

// Imports a DLPack tensor to a device: a view where the memory allows it, one
// copy where it does not. options and receipt may be NULL. A tensor of another
// major version is refused with nothing after its version read.
// Takes source (its deleter is called once, on any thread, when the last view
// is gone, or before return when it was copied). Gives *out.
// Fails: ARGUMENT, NO_MEMORY_KIND, NDIM .. DEVICE_CODE, COPY_NEEDED, READ_ONLY,
// TARGET_DTYPE, CANCELLED, NO_ROUTE, PLUGIN, NO_ALLOCATION. Threads: any.
// Since: 0.1.
IST_API ist_code ist_tensor_import(const ist_device *device,
                                   DLManagedTensorVersioned *source,
                                   const ist_options *options, ist_tensor **out,
                                   ist_receipt *receipt, ist_error *err);

// The same for the kind without a version. It says nothing about writing, so
// it counts as READ_ONLY unless options->grant tells more; nor how elements
// below 8 bits lie, so that those are refused unless one element, pairs or
// options->source_packing tell it.
// Takes source, Gives *out. Fails: as ist_tensor_import, and PACKING.
// Threads: any.
// Since: 0.1.
IST_API ist_code ist_tensor_import_legacy(const ist_device *device,
                                          DLManagedTensor *source,
                                          const ist_options *options,
                                          ist_tensor **out,
                                          ist_receipt *receipt, ist_error *err);

// Called once, from any thread, no lock held, when memory is no longer used.
typedef void (*ist_release_fn)(void *self);

// Wraps memory of this process as a host tensor, without a copy. release may
// be NULL when the memory outlives the tensor. Takes self (on success release
// is called once). Gives *out. Fails: ARGUMENT, NDIM .. DEVICE_CODE,
// NO_ALLOCATION. Threads: any. Since: 0.1.
IST_API ist_code ist_tensor_wrap(ist_context *context, const DLTensor *view,
                                 ist_release_fn release, void *self,
                                 ist_tensor **out, ist_error *err);

// Makes a dense host tensor of zero-valued elements, aligned to alignment
// bytes (a power of two; 0: 64, which every backend here can view). Strides of
// spec are not read. Gives *out. Fails: ARGUMENT, NDIM, SHAPE, OVERFLOW,
// DTYPE, NO_ALLOCATION. Threads: any. Since: 0.1.
IST_API ist_code ist_tensor_empty(ist_context *context, const ist_spec *spec,
                                  size_t alignment, ist_tensor **out,
                                  ist_error *err);

// Exports a tensor as a managed DLPack tensor of version 1.3, strides always
// written. A view where the tensor has an address, else one copy out to the
// host. The tensor is not consumed. options and receipt may be NULL.
// Retains tensor until the deleter is called. Gives *out (call its deleter).
// Fails: ARGUMENT, COPY_NEEDED, READ_ONLY, CANCELLED, TARGET_DTYPE, LANES
// (pairs of an odd last extent were asked for), NOT_ADDRESSABLE, DELETED,
// BUFFER, NO_ROUTE, PLUGIN, NO_ALLOCATION. Threads: any. Since: 0.1.
IST_API ist_code ist_tensor_export(ist_tensor *tensor,
                                   const ist_options *options,
                                   DLManagedTensorVersioned **out,
                                   ist_receipt *receipt, ist_error *err);

// The same without a version, for older consumers. It cannot say READ_ONLY.
// Retains tensor, Gives *out. Fails: as ist_tensor_export. Threads: any.
// Since: 0.1.
IST_API ist_code ist_tensor_export_legacy(ist_tensor *tensor,
                                          const ist_options *options,
                                          DLManagedTensor **out,
                                          ist_receipt *receipt, ist_error *err);

// Gives the tensor on another device: the same memory viewed where possible,
// else copied. The source stays. options and receipt may be NULL.
// Retains tensor as long as *out views it. Gives *out.
// Fails: as ist_tensor_import and ist_tensor_export. Threads: any. Since: 0.1.
IST_API ist_code ist_tensor_move(ist_tensor *tensor, const ist_device *device,
                                 const ist_options *options, ist_tensor **out,
                                 ist_receipt *receipt, ist_error *err);

// Decides what ist_tensor_move (device given) or ist_tensor_export (device
// NULL) would do, and does nothing but wait for the tensor's address. A refusal
// is an answer. options->grant, when set, stands for the tensor's own.
// Borrows all. Fails: ARGUMENT, NO_MEMORY_KIND, NOT_ADDRESSABLE, BUFFER,
// DELETED, PLUGIN.
// Threads: any. Since: 0.1.
IST_API ist_code ist_tensor_plan(ist_tensor *tensor, const ist_device *device,
                                 const ist_options *options, ist_receipt *out,
                                 ist_error *err);

// Copies a tensor's elements into memory of this process of the same dtype and
// shape, any strides without overlap. Of options (NULL allowed) only the names
// and packing are read, and progress; a cancelled copy leaves the memory partly
// written. Borrows all.
// Fails: ARGUMENT, SHAPE_MISMATCH, DTYPE_MISMATCH, CANCELLED, NDIM
// .. DEVICE_CODE, NO_ROUTE (memory that is not the host's), NOT_ADDRESSABLE,
// BUFFER, DELETED, PLUGIN, NO_ALLOCATION. Threads: any. Since: 0.1.
IST_API ist_code ist_tensor_copy_into(ist_tensor *tensor,
                                      const DLTensor *target,
                                      const ist_options *options,
                                      ist_receipt *receipt, ist_error *err);

typedef struct ist_convert_options {
  size_t struct_size;
  bool saturate;  // too large, or infinity: the largest finite number
  bool padded;    // a result below 8 bits has one element to a byte
  ist_progress_fn progress;  // counts what the receipt says is moved
  void *progress_self;
} ist_convert_options;

// Converts to another floating-point dtype, each element rounded once, to
// nearest, ties to even, with the bits of ml_dtypes: docs/conversions.md. The
// result is a dense host tensor of its own memory, aligned to 64 bytes; of the
// same dtype it is a copy. dtype has one lane. options and receipt may be NULL.
// Borrows tensor. Gives *out. Fails: ARGUMENT, DTYPE_MISMATCH (one of the two
// is no floating-point dtype), CANCELLED, DTYPE, LANES, OVERFLOW, BUFFER,
// DELETED, PLUGIN, NO_ALLOCATION. Threads: any. Since: 0.1.
IST_API ist_code ist_tensor_convert(ist_tensor *tensor, DLDataType dtype,
                                    const ist_convert_options *options,
                                    ist_tensor **out, ist_receipt *receipt,
                                    ist_error *err);

// Retains tensor. Fails: never. Threads: any. Since: 0.1.
IST_API void ist_tensor_retain(ist_tensor *tensor);
// Takes one count. Fails: never. Threads: any. Since: 0.1.
IST_API void ist_tensor_release(ist_tensor *tensor);

// dtype, ndim, shape, strides, device. data is the address where the device's
// memory can be read by this process, else NULL; of what a program or a copy
// made on a device the address is known after ist_tensor_wait.
// Lends it as long as the tensor lives. Fails: never. Threads: any. Since: 0.1.
IST_API const DLTensor *ist_tensor_view(const ist_tensor *tensor);

typedef struct ist_tensor_info {
  size_t struct_size;
  const ist_device *device;
  size_t memory;    // number of the memory on that device
  uint64_t nbytes;  // payload: elements times item size, packed sub-byte
  ist_grant grant;
  bool read_only;  // must not be written through
  bool copied;     // made by a copy: nobody else sees its memory
  bool padded;     // sub-byte elements, one to a byte
  uint64_t flags;  // DLPACK_FLAG_BITMASK_* of an export that is a view
} ist_tensor_info;

// Fills out. Lends device. Fails: ARGUMENT. Threads: any. Since: 0.1.
IST_API ist_code ist_tensor_describe(const ist_tensor *tensor,
                                     ist_tensor_info *out, ist_error *err);

// Waits until the tensor's values are there, and tells whether making them
// failed. Borrows tensor. Fails: ARGUMENT, BUFFER, DELETED, PLUGIN.
// Threads: any; blocks. Since: 0.1.
IST_API ist_code ist_tensor_wait(ist_tensor *tensor, ist_error *err);

// Frees the tensor's memory now, while the handle lives on; a source that it
// viewed is given back. What is asked of it then fails with DELETED. Only the
// last handle may: views, exports and programs under way each hold the tensor.
// Borrows tensor. Fails: ARGUMENT (others hold it), DELETED, PLUGIN.
// Threads: any, one at a time. Since: 0.1.
IST_API ist_code ist_tensor_delete(ist_tensor *tensor, ist_error *err);

// ----------------------------------------------------------------- files --

// A .npy or .safetensors file, mapped. Counted; tensors of it retain it.
// Another process that cuts a mapped file short makes reads of it raise
// SIGBUS, as with every map: see docs/files.md.
typedef struct ist_file ist_file;

typedef struct ist_file_options {
  size_t struct_size;
  const char *dtype;  // for .npy: read items of "V1", "V2" as this dtype
} ist_file_options;

// Opens and validates a file; its kind is found from its content.
// Gives *out. Fails: ARGUMENT, FILE_OPEN, FILE_FORMAT, FILE_TRUNCATED,
// FILE_DTYPE, IO, NO_ALLOCATION. Threads: any. Since: 0.1.
IST_API ist_code ist_file_open(ist_context *context, const char *path,
                               const ist_file_options *options, ist_file **out,
                               ist_error *err);
// Retains file. Fails: never. Threads: any. Since: 0.1.
IST_API void ist_file_retain(ist_file *file);
// Takes one count. Fails: never. Threads: any. Since: 0.1.
IST_API void ist_file_release(ist_file *file);
// How many tensors are in it (.npy: 1).
// Borrows file. Fails: never. Threads: any. Since: 0.1.
IST_API size_t ist_file_count(const ist_file *file);
// The name of tensor number index ("" in .npy), or NULL.
// Lends it as long as the file lives. Fails: never. Threads: any. Since: 0.1.
IST_API const char *ist_file_name(const ist_file *file, size_t index);

// A tensor of a file as a read-only host tensor that views the map. name may
// be NULL when the file holds one tensor. What is big-endian, or lies below its
// element's alignment, is a private copy that may be written (info.copied).
// Retains file as long as *out views it. Gives *out. Fails: ARGUMENT,
// NAME_NEEDED, NAME_UNKNOWN, NO_ALLOCATION. Threads: any. Since: 0.1.
IST_API ist_code ist_file_tensor(ist_file *file, const char *name,
                                 ist_tensor **out, ist_error *err);

// Writes one tensor as .npy, or named tensors as .safetensors (by the path's
// ending), beside the path and renamed over it, so that no partial file is
// left. names may be NULL for .npy. Tensors on devices are copied out.
// Borrows all. Fails: ARGUMENT, OUTPUT, FILE_DTYPE, FILE_FORMAT (a header above
// 100 MB), FILE_TRUNCATED (a tensor's own file was cut short), IO, DISK_FULL,
// BUFFER, DELETED, PLUGIN, NO_ALLOCATION. Threads: any. Since: 0.1.
IST_API ist_code ist_file_save(const char *path, const char *const *names,
                               ist_tensor *const *tensors, size_t count,
                               ist_error *err);

// The same with options (NULL allowed), of which progress is read: it counts
// each tensor's bytes twice, made dense and written. A cancelled call leaves no
// file, and an older one as it was. Borrows all. Fails: as ist_file_save,
// CANCELLED. Threads: any. Since: 0.1.
IST_API ist_code ist_file_save_with(const char *path, const char *const *names,
                                    ist_tensor *const *tensors, size_t count,
                                    const ist_options *options, ist_error *err);

// ---------------------------------------------------------------- places --

typedef enum ist_place_kind {
  IST_PLACE_HOST = 0,
  IST_PLACE_TEMPLATE = 1,
  IST_PLACE_PJRT = 2,
  IST_PLACE_NPY = 3,
  IST_PLACE_SAFETENSORS = 4,
  IST_PLACE_STREAM = 5  // "-"
} ist_place_kind;

// A place's name, taken apart: host, template[#DEVICE], pjrt:PLUGIN.so
// [#DEVICE[/MEMORY]], file.npy, file.safetensors[:tensor], "-". The longest
// existing path wins; %23 and %3A stand for # and : in names.
typedef struct ist_place {
  size_t struct_size;
  ist_place_kind kind;
  size_t device;      // number of the device; 0 where none is named
  char path[4096];    // of the file or plugin; "" where there is none
  char memory[64];    // kind of memory; "": the default
  char tensor[1024];  // name of the tensor in the file; "": none named
} ist_place;

// Borrows text. Fails: ARGUMENT, PLACE, NOT_IN_VERSION (opencl:).
// Threads: any. Since: 0.1.
IST_API ist_code ist_place_parse(const char *text, ist_place *out,
                                 ist_error *err);

#ifdef __cplusplus
}
#endif

#endif  // ISTHMUS_ISTHMUS_H_
