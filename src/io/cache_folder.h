// SPDX-License-Identifier: Apache-2.0
// cache_folder.h: a private folder of files by name, bounded in size, used by
// several processes at once. It knows nothing of what is in the files; whoever
// reads one finds out whether it is whole.

#ifndef ISTHMUS_IO_CACHE_FOLDER_H_
#define ISTHMUS_IO_CACHE_FOLDER_H_

#include <stdbool.h>

#include "base/env.h"
#include "base/error.h"

typedef struct ist__cache_folder {
  const ist__env *env;
  int fd;          // -1: closed
  uint64_t limit;  // bytes of all files together
} ist__cache_folder;

// Opens a folder; with make it is made, and what of its path is not there, for
// the user alone (0700). A folder of another user, or that others may write
// to, is refused: what is in it runs as code. Borrows env until the close.
// Fails: OUTPUT (not there, not the user's own, no folder), IO.
ist_code ist__cache_folder_open(const ist__env *env, const char *path,
                                bool make, uint64_t limit,
                                ist__cache_folder *out, ist_error *err);
// A closed or zeroed one is allowed.
void ist__cache_folder_close(ist__cache_folder *folder);

// Gives the bytes of a file, to be freed, and counts it as used now. NULL when
// it is not there or cannot be read. name has no slash. One that begins with a
// dot is not counted, nor removed to make room: only when it was not used for
// ninety days.
void *ist__cache_folder_get(const ist__cache_folder *folder, const char *name,
                            size_t *out_size);

// Puts a file in, whole or not at all, and then removes those used longest ago
// until all fit the limit. One that alone does not fit is not put in.
// False when it was not put in, with the reason in the log.
bool ist__cache_folder_put(const ist__cache_folder *folder, const char *name,
                           const void *bytes, size_t size);

// Removes a file; one that is not there is no failure.
void ist__cache_folder_remove(const ist__cache_folder *folder,
                              const char *name);

// Notes that a program is about to be loaded by code that may end the process:
// who is a name for that code, without a slash. False when such a load has
// ended a process within a day: nothing may be loaded. *out goes to the end.
bool ist__cache_folder_load_begin(const ist__cache_folder *folder,
                                  const char *who, int *out);
void ist__cache_folder_load_end(const ist__cache_folder *folder,
                                const char *who, int mark);

// Counts the files and their bytes.
void ist__cache_folder_measure(const ist__cache_folder *folder,
                               uint64_t *out_files, uint64_t *out_bytes);

#endif  // ISTHMUS_IO_CACHE_FOLDER_H_
