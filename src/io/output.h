// SPDX-License-Identifier: Apache-2.0
// output.h: a file that appears whole or not at all: written beside its place
// under another name, brought to the disk, then renamed.

#ifndef ISTHMUS_IO_OUTPUT_H_
#define ISTHMUS_IO_OUTPUT_H_

#include <stdbool.h>
#include <sys/types.h>

#include "base/env.h"

typedef struct ist__output {
  const ist__env *env;
  int fd;           // -1: closed
  char *target;     // where it will be, symbolic links followed
  char *temporary;  // where it is, in the same folder
  bool replaces;    // a file is there already
  mode_t mode;      // its permissions
} ist__output;

// Begins a file at path. Another regular file there stays as it is until the
// commit; a symbolic link is followed and stays. The mode is that of
// the file there, or else what umask leaves of 0666. Borrows env until commit
// or discard. Gives *out. Fails: OUTPUT (a folder or a device is there, no such
// folder, not to be written), DISK_FULL, IO, NO_ALLOCATION.
ist_code ist__output_open(const ist__env *env, const char *path,
                          ist__output *out, ist_error *err);

// Appends size bytes. Fails: DISK_FULL, IO.
ist_code ist__output_write(ist__output *output, const void *bytes,
                           uint64_t size, ist_error *err);

// Puts the file into its place and ends the output, as discard does on
// failure. Fails: DISK_FULL, IO, OUTPUT.
ist_code ist__output_commit(ist__output *output, ist_error *err);

// Ends the output and leaves nothing behind. A committed, discarded or zeroed
// one is allowed.
void ist__output_discard(ist__output *output);

#endif  // ISTHMUS_IO_OUTPUT_H_
