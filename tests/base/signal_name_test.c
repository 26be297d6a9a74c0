// SPDX-License-Identifier: Apache-2.0
// A signal that ended a process is called by its name, or at least its number.

#define _POSIX_C_SOURCE 200809L
#include "base/signal_name.h"

#include <signal.h>

#include "support/testing.h"

static void signal_of_a_crash__has_its_name(void **state) {
  (void)state;
  assert_string_equal(ist__signal_name_make(SIGABRT).text, "SIGABRT");
  assert_string_equal(ist__signal_name_make(SIGPIPE).text, "SIGPIPE");
}

static void other_number__is_told_whole(void **state) {
  (void)state;
  assert_string_equal(ist__signal_name_make(510).text, "signal 510");
  assert_string_equal(ist__signal_name_make(INT32_MIN).text,
                      "signal -2147483648");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(signal_of_a_crash__has_its_name),
      cmocka_unit_test(other_number__is_told_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
