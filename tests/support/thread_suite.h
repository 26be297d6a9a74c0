// SPDX-License-Identifier: Apache-2.0
// thread_suite.h: eight threads import, export and release one tensor and one
// device; run under a race detector it proves more.

#ifndef ISTHMUS_TESTS_SUPPORT_THREAD_SUITE_H_
#define ISTHMUS_TESTS_SUPPORT_THREAD_SUITE_H_

#include "support/conformance.h"

// Runs the suite; returns how many tests failed.
int threads_run(const subject *under_test);

#endif  // ISTHMUS_TESTS_SUPPORT_THREAD_SUITE_H_
