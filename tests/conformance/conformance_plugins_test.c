// SPDX-License-Identifier: Apache-2.0
// conformance_plugins_test.c: the suite on PJRT plugins.

#include "support/subjects.h"

int main(void) {
  return subjects_run_plugins(conformance_run);
}
