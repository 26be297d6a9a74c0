// SPDX-License-Identifier: Apache-2.0
// conformance.h: one suite that every backend passes, whatever it can do: what
// it cannot do must be refused or done by a copy, and be said.

#ifndef ISTHMUS_TESTS_SUPPORT_CONFORMANCE_H_
#define ISTHMUS_TESTS_SUPPORT_CONFORMANCE_H_

#include <isthmus/backend.h>

// A backend under test. never: what such a backend cannot do by its nature;
// not_yet: what it could and does not do today (sets of ist_can). What it lacks
// must be in exactly one of the two, and what it has in none: a capability lost
// or won makes the suite fail until this table says so.
typedef struct subject {
  const char *name;
  ist_code (*open)(const struct subject *self, ist_context *context,
                   ist_backend **out, ist_error *err);
  const char *path;  // of a plugin
  uint32_t never;
  uint32_t not_yet;
  bool slow_to_open;  // opened few times, not once for each order of closing
  bool late_release;  // may give a view back on a thread of its own, later
} subject;

// Runs the suite; returns how many tests failed.
int conformance_run(const subject *under_test);

#endif  // ISTHMUS_TESTS_SUPPORT_CONFORMANCE_H_
