// SPDX-License-Identifier: Apache-2.0
// npy.h: the .npy format, versions 1.0, 2.0 and 3.0 (NumPy enhancement
// proposal 1 and numpy.lib.format): bytes to an entry, and an entry to a
// header.

#ifndef ISTHMUS_IO_NPY_H_
#define ISTHMUS_IO_NPY_H_

#include "io/entry.h"

// The first bytes of every .npy file.
#define IST__NPY_MAGIC "\x93NUMPY"
#define IST__NPY_MAGIC_SIZE 6
// Room for the longest header that ist__npy_header_write can make.
#define IST__NPY_HEADER_ROOM 2048

typedef struct ist__npy {
  ist__entry entry;  // its shape is the one below: copy it with care
  int64_t shape[IST_MAX_NDIM];
} ist__npy;

// Reads size bytes of a file whose name, path, stands in errors. dtype names
// what items of raw bytes ("V1", "V2") are, or is NULL. More bytes than the
// array has may follow it, as NumPy allows. Borrows all; allocates nothing.
// Fails: FILE_FORMAT, FILE_TRUNCATED, FILE_DTYPE.
ist_code ist__npy_parse(const void *bytes, size_t size, const char *path,
                        const char *dtype, ist__npy *out, ist_error *err);

// Writes the header of a dense array, the same bytes that NumPy writes, and
// its size, a multiple of 64. A dtype that NumPy has no name for is written as
// raw bytes: "<V2" for bfloat16, "<V1" for the smaller floats and integers.
// Fails: FILE_DTYPE.
ist_code ist__npy_header_write(const ist__entry *entry, const char *path,
                               char buffer[IST__NPY_HEADER_ROOM],
                               size_t *out_size, ist_error *err);

// Bytes of one item in a .npy file; sub-byte elements take one each.
uint64_t ist__npy_item_size(DLDataType dtype);

#endif  // ISTHMUS_IO_NPY_H_
