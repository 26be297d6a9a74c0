// SPDX-License-Identifier: Apache-2.0
// threads_test.c: eight threads on one tensor and on one device, on the
// backends that need no plugin.

#include "support/subjects.h"
#include "support/thread_suite.h"

int main(void) {
  return subjects_run_builtin(threads_run);
}
