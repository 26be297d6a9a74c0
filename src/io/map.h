// SPDX-License-Identifier: Apache-2.0
// map.h: a whole regular file, mapped to be read.

#ifndef ISTHMUS_IO_MAP_H_
#define ISTHMUS_IO_MAP_H_

#include "base/error.h"

typedef struct ist__map {
  const void *bytes;  // at a multiple of the page size
  size_t size;        // never 0
} ist__map;

// Maps a file. Its pages cannot be written. A file that another process cuts
// short makes reads of the lost pages raise SIGBUS. Gives *out.
// Fails: FILE_OPEN (not there, not to be read, no regular file),
// FILE_TRUNCATED (no bytes at all), NO_ALLOCATION, IO.
ist_code ist__map_open(const char *path, ist__map *out, ist_error *err);

// Ends a map; a zeroed struct is allowed.
void ist__map_close(ist__map *map);

#endif  // ISTHMUS_IO_MAP_H_
