// SPDX-License-Identifier: Apache-2.0
// program_names.h: the names that StableHLO text gives to the arguments and
// results of its main function. Not a parser: what it does not understand has
// no name.

#ifndef ISTHMUS_BACKEND_PJRT_PROGRAM_NAMES_H_
#define ISTHMUS_BACKEND_PJRT_PROGRAM_NAMES_H_

#include "base/env.h"

// Longer names are cut; with the NUL.
#define IST_MAX_NAME 64

typedef struct ist__program_names {
  size_t input_count;
  size_t output_count;
  char text[][IST_MAX_NAME];  // of the inputs, then of the outputs; or ""
} ist__program_names;

// Told of each argument, then of each result: a name of size bytes, which may
// be 0, without control characters.
typedef void (*ist__name_visit)(void *self, bool is_output, const char *name,
                                size_t size);

// Reads the head of @main. An argument has the name of its jax.arg_info, else
// of its %value where that is not just a number; a result that of its
// jax.result_info. Nothing is told of bytecode, nor of text that has no such
// head. Borrows text, allocates nothing and reads no byte outside.
void ist__program_names_visit(const char *text, size_t size,
                              ist__name_visit visit, void *self);

// The names of a program, to be freed; none are no failure. NULL without
// memory.
ist__program_names *ist__program_names_read(const ist__env *env,
                                            const char *text, size_t size);

// One of them, or "".
const char *ist__program_names_at(const ist__program_names *names,
                                  bool is_output, size_t index);

#endif  // ISTHMUS_BACKEND_PJRT_PROGRAM_NAMES_H_
