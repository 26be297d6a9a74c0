// SPDX-License-Identifier: Apache-2.0
// file_kind.h: what kind of file bytes are, or a name says.

#ifndef ISTHMUS_IO_FILE_KIND_H_
#define ISTHMUS_IO_FILE_KIND_H_

#include <stddef.h>

typedef enum ist__file_kind {
  IST__FILE_UNKNOWN = 0,
  IST__FILE_NPY = 1,
  IST__FILE_SAFETENSORS = 2
} ist__file_kind;

// How many first bytes ist__file_kind_of_bytes looks at.
#define IST__FILE_KIND_BYTES 9

// From the first bytes of a file, of which there are size.
ist__file_kind ist__file_kind_of_bytes(const void *bytes, size_t size);

// From the ending of a name: ".npy", ".safetensors".
ist__file_kind ist__file_kind_of_name(const char *name);

#endif  // ISTHMUS_IO_FILE_KIND_H_
