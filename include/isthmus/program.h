// SPDX-License-Identifier: Apache-2.0
// program.h: programs on tensors: compiled for one device, for several at
// once, or for any; run; saved and loaded again; kept in a cache. Part of
// isthmus.h, which explains the words used below.

#ifndef ISTHMUS_PROGRAM_H_
#define ISTHMUS_PROGRAM_H_

#include <isthmus/context.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Of isthmus.h.
typedef struct ist_device ist_device;
typedef struct ist_tensor ist_tensor;
typedef struct ist_spec ist_spec;
typedef struct ist_options ist_options;
typedef struct ist_receipt ist_receipt;

// Most devices that one program runs on.
#define IST_MAX_PROGRAM_DEVICES 1024

// A compiled program. Counted; retains its backend.
typedef struct ist_program ist_program;

// The folder of programs that were compiled before.
typedef enum ist_cache {
  IST_CACHE_OFF = 0,  // nothing is looked for and nothing is written
  IST_CACHE_ON = 1    // unless ISTHMUS_CACHE=off in the environment
} ist_cache;

typedef struct ist_program_options {
  size_t struct_size;
  const char *name;  // stands in errors (a file's path); NULL: "program"
  // It runs as replicas times partitions copies, each on a device of its own;
  // 0 is 1. What the program's text says of their number must be the same.
  int32_t replicas;
  int32_t partitions;
  // The devices, all of one backend: those of the partitions of the first
  // replica, then of the next. NULL: the device asked for and those after it.
  const ist_device *const *devices;
  size_t device_count;
  // For no device: each run names one of the backend's in ist_run.device.
  // Not together with replicas, partitions or devices.
  bool portable;
  ist_cache cache;
  const char *cache_folder;  // NULL: $ISTHMUS_CACHE_DIR, else
                             // $XDG_CACHE_HOME/isthmus, else ~/.cache/isthmus
  uint64_t cache_limit;      // bytes in that folder; 0: 1 GiB
} ist_program_options;

// Compiles StableHLO (text or bytecode) for a device; options may be NULL.
// Gives *out. Fails: ARGUMENT, PROGRAM, PROGRAM_VERSION (its StableHLO is
// newer than the plugin reads), NO_PROGRAMS, TUPLE, DYNAMIC_SHAPE,
// TARGET_DTYPE, TARGET_LAYOUT, PLUGIN, NO_ALLOCATION. A cache that cannot be
// used is no failure: the log says why. Threads: any. Since: 0.1.
IST_API ist_code ist_program_compile(const ist_device *device, const void *code,
                                     size_t size,
                                     const ist_program_options *options,
                                     ist_program **out, ist_error *err);
// Retains program. Fails: never. Threads: any. Since: 0.1.
IST_API void ist_program_retain(ist_program *program);
// Takes one count. Fails: never. Threads: any. Since: 0.1.
IST_API void ist_program_release(ist_program *program);

typedef struct ist_program_info {
  size_t struct_size;
  size_t input_count;  // on each of its devices
  size_t output_count;
  int32_t replicas;
  int32_t partitions;
  size_t device_count;  // replicas times partitions
  bool portable;
  bool from_cache;  // it was loaded from the cache, not compiled
} ist_program_info;

// Fills out. Borrows program. Fails: ARGUMENT. Threads: any. Since: 0.1.
IST_API ist_code ist_program_describe(const ist_program *program,
                                      ist_program_info *out, ist_error *err);
// Device number index of those that it runs on, or NULL (always, when it is
// portable). Lends it as long as the program lives. Fails: never.
// Threads: any. Since: 0.1.
IST_API const ist_device *ist_program_device(const ist_program *program,
                                             size_t index);
// On each of its devices. Borrows program. Fails: never. Threads: any.
// Since: 0.1.
IST_API size_t ist_program_input_count(const ist_program *program);
// Borrows program. Fails: never. Threads: any. Since: 0.1.
IST_API size_t ist_program_output_count(const ist_program *program);
// What input number index must be: dtype, shape, and the strides in which the
// program reads it; a tensor that lies otherwise is copied into them.
// Borrows program. Fails: ARGUMENT. Threads: any. Since: 0.1.
IST_API ist_code ist_program_input(const ist_program *program, size_t index,
                                   ist_spec *out, ist_error *err);
// What output number index will be; a dynamic dimension is told as its bound,
// and the tensor has its true extent.
// Borrows program. Fails: ARGUMENT. Threads: any. Since: 0.1.
IST_API ist_code ist_program_output(const ist_program *program, size_t index,
                                    ist_spec *out, ist_error *err);
// The name that the program's text gives to an input ("x" for %x) or an output
// (jax.result_info), or ""; NULL for a number that it does not have.
// Lends it as long as the program lives. Fails: never. Threads: any.
// Since: 0.1.
IST_API const char *ist_program_input_name(const ist_program *program,
                                           size_t index);
// Lends it as long as the program lives. Fails: never. Threads: any.
// Since: 0.1.
IST_API const char *ist_program_output_name(const ist_program *program,
                                            size_t index);

// The arguments of one run. Of a program for several devices inputs are those
// of its first device, then those of the next, and so are outputs; their counts
// are of all together. inputs are moved to the device they are for as by
// ist_tensor_move with options; receipts (NULL, or input_count of them, all
// with the same struct_size set) tell how.
typedef struct ist_run {
  size_t struct_size;
  ist_tensor *const *inputs;
  size_t input_count;
  ist_tensor **outputs;  // room for output_count
  size_t output_count;
  const ist_options *options;
  ist_receipt *receipts;
  const ist_device *device;  // of a portable program, which needs one
  // Numbers of inputs whose memory the program may take for its outputs, which
  // it does where its text says so (tf.aliasing_output, jax.buffer_donor). Only
  // a tensor's last handle is taken, with no export of it alive, and only
  // memory of the device's own; what of it is used again fails with DONATED.
  // Of others a copy is taken where one is made anyway, or they are kept; the
  // receipt says which.
  const size_t *donate;
  size_t donate_count;
} ist_run;

// Runs a program; outputs are on its devices and may still be computed
// (ist_tensor_wait). Borrows inputs. Gives outputs. Fails: ARGUMENT, ARITY,
// SHAPE_MISMATCH, DTYPE_MISMATCH, TARGET_LAYOUT, as ist_tensor_move, PLUGIN.
// After a failure of the plugin's own, what was to be donated may be gone.
// Threads: any; nothing else uses what is donated. Since: 0.1.
IST_API ist_code ist_program_run(ist_program *program, const ist_run *run,
                                 ist_error *err);

// A compiled program as bytes that ist_program_load takes: a host tensor of
// uint8. Borrows program. Gives *out. Fails: ARGUMENT, NO_PROGRAMS (the plugin
// saves none), PLUGIN, NO_ALLOCATION. Threads: any. Since: 0.1.
IST_API ist_code ist_program_serialize(const ist_program *program,
                                       ist_tensor **out, ist_error *err);
// Writes those bytes to a file, whole or not at all. Borrows all.
// Fails: as ist_program_serialize, OUTPUT, DISK_FULL, IO. Threads: any.
// Since: 0.1.
IST_API ist_code ist_program_save(const ist_program *program, const char *path,
                                  ist_error *err);
// Makes a program from bytes of ist_program_serialize or a file of
// ist_program_save. They are machine code: load only what you trust. It is
// loaded for the device, or the devices, that are asked for; replicas,
// partitions and portable are as it was compiled: options leave them 0, or say
// the same. Bytes of another plugin, or of another build of it, are refused
// before the plugin sees them, by a digest of its file, which takes a while for
// a large one and is remembered in the cache's folder when options->cache is
// on. Gives *out. Fails: ARGUMENT, PROGRAM (no such bytes, cut short, or
// changed), PROGRAM_VERSION (another plugin), NO_PROGRAMS, PLUGIN,
// NO_ALLOCATION. Threads: any. Since: 0.1.
IST_API ist_code ist_program_load(const ist_device *device, const void *bytes,
                                  size_t size,
                                  const ist_program_options *options,
                                  ist_program **out, ist_error *err);

// What is in the folder of compiled programs.
typedef struct ist_cache_info {
  size_t struct_size;
  char folder[4096];  // "" where none can be named
  bool enabled;       // false: ISTHMUS_CACHE=off
  bool usable;        // the folder is not there yet, or is the user's own
  uint64_t entries;
  uint64_t nbytes;
  uint64_t limit;  // bytes, unless a program's options say another
} ist_cache_info;

// Looks at the cache's folder; nothing is made. folder may be NULL: the one
// that programs are kept in by default. Borrows all. Fails: ARGUMENT.
// Threads: any. Since: 0.1.
IST_API ist_code ist_cache_describe(ist_context *context, const char *folder,
                                    ist_cache_info *out, ist_error *err);

#ifdef __cplusplus
}
#endif

#endif  // ISTHMUS_PROGRAM_H_
