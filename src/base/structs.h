// SPDX-License-Identifier: Apache-2.0
// structs.h: reading and writing growable structs, those that begin with a
// size_t struct_size, across versions of the header that a caller was built
// with: what either side does not know is zero.

#ifndef ISTHMUS_BASE_STRUCTS_H_
#define ISTHMUS_BASE_STRUCTS_H_

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

// Copies a caller's struct into one of size bytes. from may be NULL: zeroes.
static inline void ist__struct_read(void *to, size_t size, const void *from) {
  memset(to, 0, size);
  if (from == NULL) return;
  size_t has = *(const size_t *)from;
  memcpy(to, from, has < size ? has : size);
}

// Copies value, of size bytes, into a caller's struct, whose struct_size stays.
static inline void ist__struct_write(void *out, const void *value,
                                     size_t size) {
  size_t has = *(const size_t *)out;
  if (has > sizeof(size_t)) {
    size_t part = has < size ? has : size;
    memcpy((char *)out + sizeof(size_t), (const char *)value + sizeof(size_t),
           part - sizeof(size_t));
  }
}

// True for a struct that a caller has prepared.
static inline bool ist__struct_ok(const void *out) {
  return out != NULL && *(const size_t *)out >= sizeof(size_t);
}

#endif  // ISTHMUS_BASE_STRUCTS_H_
