// SPDX-License-Identifier: Apache-2.0
// threads_plugins_test.c: eight threads on one tensor and on one device of a
// PJRT plugin.

#include "support/subjects.h"
#include "support/thread_suite.h"

int main(void) {
  return subjects_run_plugins(threads_run);
}
