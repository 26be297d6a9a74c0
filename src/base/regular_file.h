// SPDX-License-Identifier: Apache-2.0
// regular_file.h: opens a file that others made to be read, and never waits for
// a pipe, nor reads a device that does not end.

#ifndef ISTHMUS_BASE_REGULAR_FILE_H_
#define ISTHMUS_BASE_REGULAR_FILE_H_

#include <stdint.h>
#include <stdio.h>

// A regular file of at most `most` bytes, its size in *out_size; NULL for
// anything else. The caller closes it.
FILE *ist__regular_open(const char *path, uint64_t most, uint64_t *out_size);

#endif  // ISTHMUS_BASE_REGULAR_FILE_H_
