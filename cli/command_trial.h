// SPDX-License-Identifier: Apache-2.0
// command_trial.h: a memory tried out: a few bytes go in and must come back.

#ifndef ISTHMUS_CLI_COMMAND_TRIAL_H_
#define ISTHMUS_CLI_COMMAND_TRIAL_H_

#include "command.h"

enum {
  IST__TRIAL_BYTES = 256
};

// How a few bytes went in and came back.
typedef struct ist__trial {
  bool done;
  ist_error err;  // why not
  ist_receipt in, out;
  bool same_address;  // the bytes that came back lie where the sent ones lie
  bool equal;
} ist__trial;

// Sends bytes to a memory and gets them back. False, with err, when they did
// not cross, or came back different.
bool ist__cmd_try(ist__cmd *cmd, const ist_device *device,
                  const ist_memory_info *memory, ist__trial *out,
                  ist_error *err);

#endif  // ISTHMUS_CLI_COMMAND_TRIAL_H_
