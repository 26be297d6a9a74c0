// SPDX-License-Identifier: Apache-2.0
// safetensors_header.h: the JSON of a .safetensors header becomes entries,
// each alone in order; how they lie in the file is not looked at.

#ifndef ISTHMUS_IO_SAFETENSORS_HEADER_H_
#define ISTHMUS_IO_SAFETENSORS_HEADER_H_

#include "io/safetensors.h"

// Reads a header's JSON. Offsets are as written there, from the end of the
// header. Entries are in the order of the text, by_name is not filled.
// Fails: FILE_FORMAT, FILE_DTYPE, NO_ALLOCATION.
ist_code ist__safetensors_header_read(const ist__env *env, const char *text,
                                      size_t size, const char *path,
                                      ist__safetensors *out, ist_error *err);

#endif  // ISTHMUS_IO_SAFETENSORS_HEADER_H_
