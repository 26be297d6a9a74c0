// SPDX-License-Identifier: Apache-2.0
// safe_read.h: reading memory of this process at an address that somebody else
// told, which may be no address of this process at all.

#ifndef ISTHMUS_BASE_SAFE_READ_H_
#define ISTHMUS_BASE_SAFE_READ_H_

#include <stdbool.h>
#include <stddef.h>

#define IST__SAFE_READ_MOST 512

typedef enum ist__safe_read_result {
  IST__SAFE_READ_DONE,
  IST__SAFE_READ_NOT_MAPPED,  // no memory of this process that can be read
  IST__SAFE_READ_NO_MEANS     // the system gives no way to find out
} ist__safe_read_result;

// Copies size bytes, at most IST__SAFE_READ_MOST, from an address to out. The
// kernel does it, so an address that is not mapped is an answer and no crash.
ist__safe_read_result ist__safe_read(const void *address, void *out,
                                     size_t size);

// The same through a pipe, for systems that have no better way.
ist__safe_read_result ist__safe_read_by_pipe(const void *address, void *out,
                                             size_t size);

#endif  // ISTHMUS_BASE_SAFE_READ_H_
