// SPDX-License-Identifier: Apache-2.0
// subjects.h: the backends that the suites run on.

#ifndef ISTHMUS_TESTS_SUPPORT_SUBJECTS_H_
#define ISTHMUS_TESTS_SUPPORT_SUBJECTS_H_

#include "support/conformance.h"

// Runs a suite on the host, the template in both modes and the smallest
// backend that there can be; returns how many tests failed.
int subjects_run_builtin(int (*suite)(const subject *));

// The same on PJRT plugins: the lying one as a CPU and as a card, and the real
// ones; those that are not on this machine are reported as skipped.
int subjects_run_plugins(int (*suite)(const subject *));

#endif  // ISTHMUS_TESTS_SUPPORT_SUBJECTS_H_
