// SPDX-License-Identifier: Apache-2.0
// testing.h: cmocka with the headers that it needs first, and short names for
// what most tests ask.

#ifndef ISTHMUS_TESTS_SUPPORT_TESTING_H_
#define ISTHMUS_TESTS_SUPPORT_TESTING_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants the four above first.
#include <cmocka.h>
#include <isthmus/isthmus.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

// An error that tells: the code, one line with the words given.
#define assert_refused(code_got, code_wanted, error, words)           \
  do {                                                                \
    assert_int_equal(code_got, code_wanted);                          \
    assert_int_equal((error).code, code_wanted);                      \
    assert_null(strchr((error).message, '\n'));                       \
    if (strstr((error).message, words) == NULL) {                     \
      fail_msg("\"%s\" does not say \"%s\"", (error).message, words); \
    }                                                                 \
  } while (0)

// Success; else the message is shown.
#define assert_ok(code_got, error)                             \
  do {                                                         \
    if ((code_got) != IST_OK) fail_msg("%s", (error).message); \
  } while (0)

// A small generator (xorshift, Marsaglia 2003): the same numbers everywhere.
static inline uint64_t next_random(uint64_t *state) {
  uint64_t x = *state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return *state = x;
}

// A number from 0 to limit - 1.
static inline int64_t random_below(uint64_t *state, int64_t limit) {
  return (int64_t)(next_random(state) % (uint64_t)limit);
}

#endif  // ISTHMUS_TESTS_SUPPORT_TESTING_H_
