// SPDX-License-Identifier: Apache-2.0
// program_saved.h: programs to bytes and back, with what they were made for
// checked before a runtime sees them.

#ifndef ISTHMUS_BRIDGE_PROGRAM_SAVED_H_
#define ISTHMUS_BRIDGE_PROGRAM_SAVED_H_

#include "bridge/compile_cache.h"

// Gives the bytes of a program, to be freed. Fails: NO_PROGRAMS, PLUGIN,
// NO_ALLOCATION.
ist_code ist__program_to_bytes(const ist_program *program,
                               const ist__program_home *home, char **out,
                               size_t *out_size, ist_error *err);

// Makes the program again. Gives *out. Fails: as ist_program_load.
ist_code ist__program_from_bytes(const ist__program_wish *wish,
                                 const ist__program_home *home,
                                 const void *bytes, size_t size,
                                 ist_program **out, ist_error *err);

#endif  // ISTHMUS_BRIDGE_PROGRAM_SAVED_H_
