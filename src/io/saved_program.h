// SPDX-License-Identifier: Apache-2.0
// saved_program.h: a compiled program as bytes: a head of our own, which says
// what it was compiled for, then the runtime's bytes. Numbers little-endian:
//
//    0  8  "ISTHMEXE"
//    8  4  format, 1
//   12  4  size of the head, from 56 on
//   16  8  size of the runtime's bytes, behind the head
//   24 32  digest of all other bytes (base/digest.h)
//   56     replicas, partitions, flags (1: portable), inputs, outputs: 4 each;
//          then texts, each its size in 4 bytes and as many bytes without a
//          zero: platform, version, file, kind, machine, and a name for each
//          input, then for each output
//
// The bytes are hostile: whoever changed them can write a digest too. It tells
// what was cut or damaged from what was saved, and nothing else.

#ifndef ISTHMUS_IO_SAVED_PROGRAM_H_
#define ISTHMUS_IO_SAVED_PROGRAM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

// The texts of a head, in their order.
typedef enum ist__saved_text {
  IST__SAVED_PLATFORM = 0,  // the runtime's
  IST__SAVED_VERSION = 1,   // the runtime's own words on it
  IST__SAVED_FILE = 2,      // digest of its code
  IST__SAVED_KIND = 3,      // of the devices
  IST__SAVED_MACHINE = 4,   // what its code needs of this machine's processor
  IST__SAVED_TEXTS = 5
} ist__saved_text;

typedef struct ist__saved_span {
  const char *at;  // without a NUL
  size_t size;
} ist__saved_span;

typedef struct ist__saved {
  int32_t replicas;  // 1 or more, as partitions
  int32_t partitions;
  bool portable;
  size_t input_count;
  size_t output_count;
  ist__saved_span text[IST__SAVED_TEXTS];
  ist__saved_span names;  // for ist__saved_next_name
  ist__saved_span code;   // the runtime's bytes, at least one
} ist__saved;

// True for bytes that begin as a saved program does.
bool ist__saved_is(const void *bytes, size_t size);

// Reads bytes; what is in out points into them. Returns NULL, or why they are
// no saved program: "cut short". Reads no byte outside.
const char *ist__saved_read(const void *bytes, size_t size, ist__saved *out);

// Takes the next name off names: of the inputs, then of the outputs; "" behind
// the last.
ist__saved_span ist__saved_next_name(ist__saved_span *names);

// True when a text is these characters.
bool ist__saved_equals(ist__saved_span span, const char *text);

// Writes saved, with names of its own (inputs, then outputs) in place of
// saved->names; to be freed. NULL without memory, or when a size does not fit.
char *ist__saved_write(const ist__env *env, const ist__saved *saved,
                       const char *const *names, size_t *out_size);

#endif  // ISTHMUS_IO_SAVED_PROGRAM_H_
