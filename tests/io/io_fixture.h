// SPDX-License-Identifier: Apache-2.0
// io_fixture.h: what the tests of files share: cmocka's includes, an
// environment that fails the n-th allocation, bytes at an exact edge, folders
// of their own.

#ifndef ISTHMUS_TESTS_IO_IO_FIXTURE_H_
#define ISTHMUS_TESTS_IO_IO_FIXTURE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"

// Counts what is allocated and not freed; fails allocation number fail_at
// (from 1; 0: none).
typedef struct counting {
  size_t calls;
  size_t fail_at;
  size_t live;
} counting;

static inline void *counting_allocate(void *self, size_t size,
                                      size_t alignment) {
  counting *c = self;
  if (++c->calls == c->fail_at) return NULL;
  ist_allocator plain = ist__malloc_allocator();
  void *pointer = plain.allocate(plain.self, size, alignment);
  if (pointer != NULL) c->live++;
  return pointer;
}

static inline void counting_release(void *self, void *pointer) {
  counting *c = self;
  ist_allocator plain = ist__malloc_allocator();
  c->live--;
  plain.release(plain.self, pointer);
}

static inline ist__env counting_env(counting *c) {
  return (ist__env){.allocator = {.self = c,
                                  .allocate = counting_allocate,
                                  .release = counting_release}};
}

// A copy that ends where its allocation ends, so that a sanitizer sees every
// byte read after it.
static inline unsigned char *exact_copy(const void *bytes, size_t size) {
  unsigned char *copy = malloc(size > 0 ? size : 1);
  assert_non_null(copy);
  if (size > 0) memcpy(copy, bytes, size);
  return copy;
}

#define assert_said(err, words) \
  assert_said_at((err), (words), __FILE__, __LINE__)

static inline void assert_said_at(const ist_error *err, const char *words,
                                  const char *file, int line) {
  if (strstr(err->message, words) == NULL) {
    print_error("%s:%d: \"%s\" does not say \"%s\"\n", file, line, err->message,
                words);
    fail();
  }
  assert_null(strchr(err->message, '\n'));
}

// A new empty folder; free it with remove_folder.
static inline char *make_folder(void) {
  const char *root = getenv("TMPDIR");
  char path[512];
  snprintf(path, sizeof path, "%s/isthmus-test-XXXXXX",
           root == NULL ? "/tmp" : root);
  char *made = mkdtemp(path);
  assert_non_null(made);
  return strdup(made);
}

// Fails when something is left in the folder.
static inline void remove_folder(char *folder) {
  assert_int_equal(rmdir(folder), 0);
  free(folder);
}

// folder/name, in a buffer of the caller's.
static inline const char *path_in(const char *folder, const char *name,
                                  char buffer[1024]) {
  snprintf(buffer, 1024, "%s/%s", folder, name);
  return buffer;
}

static inline void write_bytes(const char *path, const void *bytes,
                               size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

#endif  // ISTHMUS_TESTS_IO_IO_FIXTURE_H_
