// SPDX-License-Identifier: Apache-2.0
// plugin_journey.h: one way through a plugin that calls every slot which the
// library calls, for sweeps that break one after the other. Each step asserts
// what must hold when it fails, and that what succeeded is right.

#ifndef ISTHMUS_TESTS_SUPPORT_PLUGIN_JOURNEY_H_
#define ISTHMUS_TESTS_SUPPORT_PLUGIN_JOURNEY_H_

#include <isthmus/pjrt.h>

#include "support/pjrt_support.h"

// Counts calls of slots and fails one of them.
typedef struct fuse {
  long calls;
  long fail_at;  // 0: none
  bool fired;
} fuse;

typedef struct journey {
  pjrt_bench bench;
  fuse fuse;
  char rules[300];
  bool wraps;         // a real plugin inside the lying one
  const char *later;  // rules from the opened backend on, or NULL
  source_tensor source;
  _Alignas(64) float data[16];
  ist_tensor *views, *copies, *moved, *output, *shorter, *back;
  ist_program *program, *dynamic;
  DLManagedTensorVersioned *view;
  struct PJRT_Buffer *given;
} journey;

// Sets rules and makes the context; fail_call and fail_allocation number what
// fails, 0: nothing.
void journey_begin(journey *j, const char *rules, long fail_call,
                   long fail_allocation);
// Goes until something fails; the error is in bench.err.
ist_code journey_go(journey *j);
// Lets go of all and asserts that nothing is left.
void journey_end(journey *j);

#endif  // ISTHMUS_TESTS_SUPPORT_PLUGIN_JOURNEY_H_
