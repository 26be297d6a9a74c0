// SPDX-License-Identifier: Apache-2.0
// entry.h: one tensor of a file, as its header describes it and after all of
// it was checked: dtype and shape are known and the bytes lie in the file.

#ifndef ISTHMUS_IO_ENTRY_H_
#define ISTHMUS_IO_ENTRY_H_

#include <isthmus/isthmus.h>

typedef struct ist__entry {
  const char *name;   // "" in .npy
  DLDataType dtype;   // one lane
  bool padded;        // sub-byte elements, one to a byte
  bool swapped;       // not in the byte order of this machine
  bool column_major;  // dense, the first dimension varies fastest
  int32_t ndim;
  const int64_t *shape;  // of the parsed header
  uint64_t offset;       // of element 0 from the begin of the file
  uint64_t nbytes;       // of its elements
} ist__entry;

#endif  // ISTHMUS_IO_ENTRY_H_
