// SPDX-License-Identifier: Apache-2.0
// conformance_test.c: the suite on the backends that need no plugin.

#include "support/subjects.h"

int main(void) {
  return subjects_run_builtin(conformance_run);
}
