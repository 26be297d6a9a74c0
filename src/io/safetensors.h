// SPDX-License-Identifier: Apache-2.0
// safetensors.h: the .safetensors format: bytes to entries, and entries to a
// header and an order to write them in.

#ifndef ISTHMUS_IO_SAFETENSORS_H_
#define ISTHMUS_IO_SAFETENSORS_H_

#include "base/env.h"
#include "io/entry.h"

// Longest header, in bytes; the limit of the reference implementation.
#define IST__SAFETENSORS_MAX_HEADER 100000000
// Every tensor whose size allows it is written at a multiple of this.
#define IST__SAFETENSORS_ALIGNMENT 64

typedef struct ist__safetensors {
  size_t count;
  ist__entry *entries;         // in the order of their bytes
  const ist__entry **by_name;  // the same, sorted by name
  void *block;                 // one allocation that holds all
} ist__safetensors;

// Reads size bytes of a file whose name, path, stands in errors. What the
// reference implementation refuses is refused: overlaps, holes, bytes after
// the last tensor, sizes that are not those of dtype and shape; and more: the
// same name twice, a name with a NUL in it. Borrows bytes and path. Gives *out.
// Fails: FILE_FORMAT, FILE_TRUNCATED, FILE_DTYPE, NO_ALLOCATION.
ist_code ist__safetensors_parse(const ist__env *env, const void *bytes,
                                size_t size, const char *path,
                                ist__safetensors *out, ist_error *err);

// Frees what parse gave; a zeroed struct is allowed.
void ist__safetensors_free(const ist__env *env, ist__safetensors *parsed);

// The entry of a name, or NULL.
const ist__entry *ist__safetensors_find(const ist__safetensors *parsed,
                                        const char *name);

// A header and the order in which the tensors follow it.
typedef struct ist__safetensors_plan {
  char *header;  // its 8 bytes of length included, a multiple of 64
  size_t header_size;
  size_t *order;  // order[i]: number of the entry that is written as i-th
  void *block;
} ist__safetensors_plan;

// Plans a file of count entries, of which name, dtype, ndim and shape are
// read. Sub-byte elements are packed. Borrows all. Gives *out.
// Fails: ARGUMENT (names), FILE_DTYPE, FILE_FORMAT, NO_ALLOCATION.
ist_code ist__safetensors_plan_make(const ist__env *env, const char *path,
                                    const ist__entry *entries, size_t count,
                                    ist__safetensors_plan *out, ist_error *err);

// Frees what plan_make gave; a zeroed struct is allowed.
void ist__safetensors_plan_free(const ist__env *env,
                                ist__safetensors_plan *plan);

#endif  // ISTHMUS_IO_SAFETENSORS_H_
