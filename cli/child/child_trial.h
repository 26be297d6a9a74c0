// SPDX-License-Identifier: Apache-2.0
// child_trial.h: the part of isthmus-probe that opens the plugin: in a child of
// that program, which may die of it.

#ifndef ISTHMUS_CLI_CHILD_CHILD_TRIAL_H_
#define ISTHMUS_CLI_CHILD_CHILD_TRIAL_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdnoreturn.h>
#include <sys/types.h>

#include "backend/pjrt/child_wire.h"

// Memory that a trial shares with who watches it: the step that it is in, and
// for which capability, kept where it is left when the trial dies. Words, since
// any thread may write it. The verdict comes this way too: a plugin may close
// descriptors that are not its own, and open others under their numbers.
typedef struct ist__trial_step {
  _Atomic(uint64_t) words[8];
  _Atomic(uint64_t) capability[8];
  atomic_bool has_verdict;
  char verdict[IST__CHILD_LINE];  // a line without its newline
} ist__trial_step;

typedef struct ist__trial_request {
  const char *path;
  int32_t device;  // of a report; -1: none is to be made
  uint64_t losses;
  char *bytes;
  int64_t *numbers;
  ist_option *options;
  int count;
} ist__trial_request;

// Reads the options from standard input, to its end. What they take is freed
// with the process.
bool ist__trial_read(ist__trial_request *request);

// Words of a step as text.
void ist__trial_step_text(const _Atomic(uint64_t) words[8], char out[64]);

// Opens the plugin, makes a report where one is wanted, and closes it again,
// noting each step before it begins, leaves the verdict in step, and ends the
// process.
noreturn void ist__trial_plugin(const ist__trial_request *request, pid_t parent,
                                ist__trial_step *step);

#endif  // ISTHMUS_CLI_CHILD_CHILD_TRIAL_H_
