// SPDX-License-Identifier: Apache-2.0
// io_fixture.h: what the tests of files share: an environment that counts and
// fails allocations, bytes at an exact edge, messages that say a thing.

#ifndef ISTHMUS_TESTS_IO_IO_FIXTURE_H_
#define ISTHMUS_TESTS_IO_IO_FIXTURE_H_

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "support/counting_allocator.h"
#include "support/temp_folder.h"
#include "support/testing.h"

static inline ist__env counting_env(counting_allocator *count) {
  return (ist__env){.allocator = counting_allocator_hook(count)};
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

static inline void write_bytes(const char *path, const void *bytes,
                               size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

#endif  // ISTHMUS_TESTS_IO_IO_FIXTURE_H_
