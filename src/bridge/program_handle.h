// SPDX-License-Identifier: Apache-2.0
// program_handle.h: the program handle's inside: a backend's program, what it
// takes and gives, and where it runs.

#ifndef ISTHMUS_BRIDGE_PROGRAM_HANDLE_H_
#define ISTHMUS_BRIDGE_PROGRAM_HANDLE_H_

#include "base/refcount.h"
#include "bridge/crossing.h"

// Room for an argument's name, its NUL included; longer ones are cut.
#define IST__ARGUMENT_NAME 64

// An input or output, as describe told it and as it was checked.
typedef struct ist__argument {
  ist_spec spec;
  ist__view view;  // without an address
  char name[IST__ARGUMENT_NAME];
} ist__argument;

struct ist_program {
  ist__refcount refs;
  ist_backend *backend;
  void *program;
  size_t input_count;
  size_t output_count;
  ist__argument *inputs;  // both in one allocation
  ist__argument *outputs;
  int32_t replicas;
  int32_t partitions;
  bool portable;
  bool from_cache;
  size_t device_count;          // lists of one run; portable: 1
  const ist_device *kind;       // one of the devices that it may run on
  const ist_device *devices[];  // none when it is portable
};

// What a program is asked for, read from options and checked: where it is to
// run. devices have room for IST_MAX_PROGRAM_DEVICES.
typedef struct ist__program_wish {
  ist_program_options options;
  const ist_device *device;
  int32_t replicas;  // 0: as the saved bytes say
  int32_t partitions;
} ist__program_wish;

static inline const ist__env *ist__program_env(const ist_program *program) {
  return ist__backend_env(program->backend);
}

// Reads and checks what can be checked before the counts are known.
// Fails: ARGUMENT.
ist_code ist__program_wish_read(const ist_device *device,
                                const ist_program_options *options,
                                ist__program_wish *out, ist_error *err);

// What makes a backend's program of a source: its compile, or its load.
typedef ist_code (*ist__program_maker)(ist_backend *backend,
                                       const ist_source *source, void **out,
                                       ist_error *err);

// Makes the handle: resolves the devices (counts of 0 are 1), calls maker on
// the bytes and describes what came. Gives *out. Fails: ARGUMENT,
// NOT_IN_VERSION (a backend for one device only), BACKEND_ABI, what maker
// fails with, NO_ALLOCATION.
ist_code ist__program_make(const ist__program_wish *wish, const void *code,
                           size_t size, ist__program_maker maker,
                           ist_program **out, ist_error *err);

// An input or output in words, for errors: "1 (weights)".
typedef struct ist__argument_label {
  char text[IST__ARGUMENT_NAME + 40];
} ist__argument_label;
ist__argument_label ist__program_label(const ist_program *program,
                                       bool is_input, size_t index);

// Moves one input to where the program reads it, in the program's own layout.
// Gives *out, the tensor itself where it is there already. receipt may be NULL.
ist_code ist__program_input(const ist_program *program, size_t index,
                            ist_tensor *tensor, const ist_device *device,
                            const ist_options *options, ist_tensor **out,
                            ist_receipt *receipt, ist_error *err);

#endif  // ISTHMUS_BRIDGE_PROGRAM_HANDLE_H_
