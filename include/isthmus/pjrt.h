// SPDX-License-Identifier: Apache-2.0
// pjrt.h: for programs that speak PJRT themselves: what a plugin can do, and
// a live client or buffer of theirs as a backend or tensor, and ours as theirs.
//
// The types of the PJRT C API are only named here, so that its own header,
// pjrt_c_api.h, may be included before or after this one, or not at all.

#ifndef ISTHMUS_PJRT_H_
#define ISTHMUS_PJRT_H_

#include <isthmus/isthmus.h>

#ifdef __cplusplus
extern "C" {
#endif

struct PJRT_Api;
struct PJRT_Client;
struct PJRT_Buffer;

// ------------------------------------------------------------------ adopt --

// Who destroys what is adopted, at the end.
typedef enum ist_pjrt_ownership {
  IST_PJRT_BORROW = 0,  // the host program does, after it was released
  IST_PJRT_TAKE = 1     // isthmus does, once the call has succeeded
} ist_pjrt_ownership;

typedef struct ist_pjrt_client_options {
  size_t struct_size;  // sizeof(ist_pjrt_client_options)
  ist_pjrt_ownership ownership;
  // Of a borrowed client: called once, when the backend, its tensors and
  // programs and every view of foreign memory are gone, on a thread on which
  // the client may be destroyed. Not called when the adoption fails. NULL: the
  // client outlives them all.
  ist_release_fn release;
  void *release_self;
} ist_pjrt_client_options;

// Opens a backend on a client that the host program has made, with the table
// that GetPjrtApi gave it, of API 0.57 or a later 0.x, shorter or longer than
// the one known here. The plugin is not loaded, initialised or opened in a
// child process again; what its memories can do is tried out on a few bytes, as
// when isthmus opens it. The table must live as long as the process. A client
// may be adopted more than once while it is borrowed, also one of
// ist_pjrt_client (keep that backend until release). The host must not destroy
// a client before release: nothing can tell that it did.
// options may be NULL: borrowed. Borrows client, or Takes it. Gives *out.
// Fails: ARGUMENT, NOT_A_PLUGIN (a table that is too short), PLUGIN_VERSION,
// NO_DEVICE, PLUGIN_SLOT, PLUGIN, NO_ALLOCATION. Threads: any. Since: 0.1.
IST_API ist_code ist_pjrt_client_adopt(ist_context *context,
                                       const struct PJRT_Api *api,
                                       struct PJRT_Client *client,
                                       const ist_pjrt_client_options *options,
                                       ist_backend **out, ist_error *err);

typedef struct ist_pjrt_buffer_options {
  size_t struct_size;  // sizeof(ist_pjrt_buffer_options)
  ist_pjrt_ownership ownership;
  // Of a borrowed buffer: called once, on any thread, when the tensor and all
  // that views it are gone. Not called when the adoption fails. NULL: the
  // buffer outlives them.
  ist_release_fn release;
  void *release_self;
  // Who may write its memory. IST_GRANT_FROM_SOURCE: nobody while it is
  // borrowed, since buffers are immutable by contract; anybody who has the
  // tensor once it is taken (say IST_GRANT_IMMUTABLE where it views memory that
  // others read).
  ist_grant grant;
} ist_pjrt_buffer_options;

// Makes a tensor of a buffer of the backend's client, wherever among the
// backend's devices and memories it lies: the plugin is asked. It may still be
// computed; whether making it failed is told at once if it is known, else when
// the tensor is waited for or read. While it is borrowed the host must not
// destroy it; deleting or donating it makes reads fail with IST_ERR_DELETED,
// and leaves memory alone that is exported already.
// options may be NULL: borrowed. Borrows buffer, or Takes it. Gives *out.
// Fails: ARGUMENT (no PJRT backend), NOT_ADDRESSABLE (on none of its devices,
// or of another client), DELETED, BUFFER (making it failed),
// TARGET_DTYPE, TARGET_LAYOUT (strided, or permuted in a way
// that nobody knows how to read), DYNAMIC_SHAPE (its true
// extents are not told), PLUGIN, PLUGIN_SLOT, NO_ALLOCATION.
// Threads: any. Since: 0.1.
IST_API ist_code ist_pjrt_buffer_adopt(ist_backend *backend,
                                       struct PJRT_Buffer *buffer,
                                       const ist_pjrt_buffer_options *options,
                                       ist_tensor **out, ist_error *err);

// ------------------------------------------------------------------- lend --

// The table and the client behind a backend, or NULL where it is on no PJRT
// plugin. Do not destroy the client. Lends both until the backend is freed.
// Fails: never. Threads: any. Since: 0.1.
IST_API const struct PJRT_Api *ist_pjrt_api(const ist_backend *backend);
// Lends the client. Fails: never. Threads: any. Since: 0.1.
IST_API struct PJRT_Client *ist_pjrt_client(const ist_backend *backend);

// The buffer of a tensor that lies on a PJRT plugin, perhaps still computed; or
// NULL: of another backend, or deleted. It may be read, awaited, copied and
// given to programs, and must not be deleted, donated or destroyed. Plugins
// crash when two threads count external references of one buffer at once, and
// isthmus counts them while it exports: leave that to it.
// Lends the buffer until the tensor is freed. Fails: never. Threads: any.
// Since: 0.1.
IST_API struct PJRT_Buffer *ist_pjrt_buffer(const ist_tensor *tensor);

// Turns a tensor on a PJRT plugin into its buffer, which the caller destroys
// with the plugin's Buffer_Destroy before the backend is freed. The tensor must
// be its last handle, with no export or view of it alive.
// Takes tensor on success. Gives *out. Fails: ARGUMENT (others hold it, it is
// on no PJRT plugin, or the buffer was only borrowed), DELETED. Threads: any.
// Since: 0.1.
IST_API ist_code ist_pjrt_buffer_give(ist_tensor *tensor,
                                      struct PJRT_Buffer **out, ist_error *err);

// ----------------------------------------------------------------- probe --

// What one device of a plugin can do, with what the plugin says of itself.
typedef struct ist_pjrt_report ist_pjrt_report;

// One capability of one memory. The strings are static.
typedef struct ist_pjrt_capability {
  size_t struct_size;
  const char *name;          // stable: "copy_in", "view", ...
  const char *slot;          // the slots or the extension, parted by ", "
  const char *lost_without;  // what isthmus cannot do where it does not work
  bool present;              // the plugin's table has all of it
  bool works;                // it was done, and the outcome was right
  uint64_t value;    // view: alignment in bytes; else how many were found
  char reason[208];  // why it does not work, in words; "" where it does
} ist_pjrt_capability;

// What a plugin says of itself. Nothing that isthmus does depends on it.
typedef struct ist_pjrt_info {
  size_t struct_size;
  int32_t api_major;
  int32_t api_minor;
  const char *platform;
  const char *platform_version;  // its first line, or ""
  size_t slot_count;             // slots in its table that isthmus knows
  size_t extension_count;
  size_t attribute_count;
} ist_pjrt_info;

// Tries what a device of an open PJRT backend can do, on a few bytes of each of
// its memories. What opening has found out is kept; the rest takes some
// milliseconds, a plugin's time to compile some tiny programs. What fails is a
// capability that does not work and no failure. While it lasts, what the
// plugin refuses to anybody is logged for debugging only.
//
// Unless the plugin is trusted or the client adopted, all of it is tried in
// isthmus-probe first, once for a context, with the deadline of an open for
// each process: a trial that kills the process or never answers there is not
// made here, and its capability does not work, with that reason.
// Retains the backend of device. Gives *out. Fails: ARGUMENT (a device of no
// PJRT backend), NO_ALLOCATION; PROBE_MISSING, PLUGIN_CRASHED (between the
// trials), PLUGIN_LOAD (the file has changed since), and as ist_backend_open
// when the plugin refuses a second process. Threads: any. Since: 0.1.
IST_API ist_code ist_pjrt_report_create(const ist_device *device,
                                        ist_pjrt_report **out, ist_error *err);
// Takes report; NULL is allowed. Fails: never. Threads: any. Since: 0.1.
IST_API void ist_pjrt_report_release(ist_pjrt_report *report);

// Fills out. Lends the strings as long as the report lives.
// Fails: ARGUMENT. Threads: any. Since: 0.1.
IST_API ist_code ist_pjrt_report_info(const ist_pjrt_report *report,
                                      ist_pjrt_info *out, ist_error *err);

// How many capabilities a report has, the same of each memory; 0 for NULL.
// Borrows report. Fails: never. Threads: any. Since: 0.1.
IST_API size_t ist_pjrt_report_count(const ist_pjrt_report *report);

// Capability number index of memory number memory, as in ist_device_memory.
// Fills out. Lends the strings, which are static. Fails: ARGUMENT.
// Threads: any. Since: 0.1.
IST_API ist_code ist_pjrt_report_capability(const ist_pjrt_report *report,
                                            size_t memory, size_t index,
                                            ist_pjrt_capability *out,
                                            ist_error *err);

// The capability of a name. Fills out. Lends the strings, which are static.
// Fails: ARGUMENT. Threads: any. Since: 0.1.
IST_API ist_code ist_pjrt_report_find(const ist_pjrt_report *report,
                                      size_t memory, const char *name,
                                      ist_pjrt_capability *out, ist_error *err);

// The type of extension number index of the plugin's chain, in its order, and
// its name; NULL for a type that is newer than isthmus. Lends the static name.
// Fails: ARGUMENT. Threads: any. Since: 0.1.
IST_API ist_code ist_pjrt_report_extension(const ist_pjrt_report *report,
                                           size_t index, int32_t *out_type,
                                           const char **out_name,
                                           ist_error *err);

// Attribute number index of the plugin. Fills out. Lends what it points to as
// long as the report lives. Fails: ARGUMENT. Threads: any. Since: 0.1.
IST_API ist_code ist_pjrt_report_attribute(const ist_pjrt_report *report,
                                           size_t index, ist_option *out,
                                           ist_error *err);

// ----------------------------------------------------------------- memory --

// What a plugin tells of a device's memory, in bytes but for num_allocs; -1
// where it does not tell, as most do not tell all.
typedef struct ist_pjrt_memory_use {
  size_t struct_size;  // sizeof(ist_pjrt_memory_use)
  int64_t bytes_in_use;
  int64_t peak_bytes_in_use;
  int64_t num_allocs;
  int64_t largest_alloc_size;
  int64_t bytes_limit;
  int64_t bytes_reserved;
  int64_t peak_bytes_reserved;
  int64_t bytes_reservable_limit;
  int64_t largest_free_block_bytes;
  int64_t pool_bytes;
  int64_t peak_pool_bytes;
  int64_t peak_allocated_bytes;
} ist_pjrt_memory_use;

// Asks a device on a PJRT plugin how its memory is used. An error
// IST_ERR_OUT_OF_DEVICE_MEMORY has the same in its message.
// Borrows device. Fails: ARGUMENT (on no PJRT plugin), PLUGIN_SLOT (the plugin
// keeps no statistics), PLUGIN. Threads: any. Since: 0.1.
IST_API ist_code ist_pjrt_memory_stats(const ist_device *device,
                                       ist_pjrt_memory_use *out,
                                       ist_error *err);

#ifdef __cplusplus
}
#endif

#endif  // ISTHMUS_PJRT_H_
