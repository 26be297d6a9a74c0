// SPDX-License-Identifier: Apache-2.0
// errno_text_test.c: the words for a value of errno are the caller's own.

#include "base/errno_text.h"

#include <errno.h>

#include "support/testing.h"

static void errno_text__says_what_the_system_says(void **state) {
  (void)state;
  static const int reasons[] = {ENOENT, EACCES, ENOSPC, EIO, ENOMEM};
  for (size_t i = 0; i < COUNT_OF(reasons); i++) {
    assert_string_equal(ist__errno_text_make(reasons[i]).text,
                        strerror(reasons[i]));
  }
}

// strerror has one buffer a thread, or a program, for numbers like these.
static void errno_text__stays_when_the_next_is_made(void **state) {
  (void)state;
  ist__errno_text first = ist__errno_text_make(98765);
  ist__errno_text second = ist__errno_text_make(87654);
  assert_non_null(strstr(first.text, "98765"));
  assert_non_null(strstr(second.text, "87654"));
}

static void errno_text__leaves_errno_alone(void **state) {
  (void)state;
  errno = EDOM;
  assert_true(ist__errno_text_make(-1).text[0] != '\0');
  assert_int_equal(errno, EDOM);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(errno_text__says_what_the_system_says),
      cmocka_unit_test(errno_text__stays_when_the_next_is_made),
      cmocka_unit_test(errno_text__leaves_errno_alone)};
  return cmocka_run_group_tests_name("errno_text", tests, NULL, NULL);
}
