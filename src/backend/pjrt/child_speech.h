// SPDX-License-Identifier: Apache-2.0
// child_speech.h: what a plugin says on its standard error while it is tried in
// a process of its own: all of it for the log, its last words for the error.

#ifndef ISTHMUS_BACKEND_PJRT_CHILD_SPEECH_H_
#define ISTHMUS_BACKEND_PJRT_CHILD_SPEECH_H_

#include "base/env.h"

typedef struct ist__speech {
  const ist__env *env;
  const char *name;  // of the plugin
  char last[168];    // the last line that means something, or ""
  char line[832];    // the one that is being read; longer ones go in parts
  size_t line_used;
  char kept[8192];  // whole lines, until it is known how the plugin ended
  size_t kept_used;
} ist__speech;

// Takes some bytes. When there is no room for more the log gets what is kept.
void ist__speech_add(ist__speech *speech, const char *bytes, size_t size);

// Sends to the log all that is left.
void ist__speech_end(ist__speech *speech, ist_log_level level);

#endif  // ISTHMUS_BACKEND_PJRT_CHILD_SPEECH_H_
