// SPDX-License-Identifier: Apache-2.0
// compile_cache.h: programs that were compiled before, kept in a folder by
// what they were made of: the program's bytes, what was asked for, and the
// runtime that compiled them, down to the bytes of its code.

#ifndef ISTHMUS_BRIDGE_COMPILE_CACHE_H_
#define ISTHMUS_BRIDGE_COMPILE_CACHE_H_

#include "base/digest.h"
#include "bridge/program_handle.h"

// Bytes in the folder, unless options say another number.
#define IST__CACHE_LIMIT (UINT64_C(1) << 30)

// What a program depends on besides its own bytes and options.
typedef struct ist__program_home {
  const char *platform;
  const char *version;
  const char *kind;            // of its devices
  char file[IST_DIGEST_TEXT];  // of the runtime's code
  char machine[48];            // "x86-64 0123..." of a processor whose memory
                               // and code are the host's own; else ""
} ist__program_home;

// Finds it; the digest of the runtime's file is made once for a backend, and
// kept in the folder (NULL: none), by the file's number, size and times.
// Fails: NO_PROGRAMS (its file is not known), FILE_OPEN, IO, NO_ALLOCATION.
ist_code ist__program_home_find(const ist_device *device, const char *folder,
                                ist__program_home *out, ist_error *err);

// As ist__program_make with a compiler, from the cache where it has the
// program, and into it where not. A cache that cannot be used is no failure.
ist_code ist__compile_cached(const ist__program_wish *wish, const void *code,
                             size_t size, ist_program **out, ist_error *err);

// Writes the folder that is used by default, or "" where none can be named.
void ist__cache_default_folder(char *out, size_t size);
// The folder that options ask for, in room of size bytes, or NULL where they
// ask for none or none is to be used.
const char *ist__cache_folder_of(const ist_program_options *options, char *room,
                                 size_t size);
// False when ISTHMUS_CACHE is "off".
bool ist__cache_enabled(void);

#endif  // ISTHMUS_BRIDGE_COMPILE_CACHE_H_
