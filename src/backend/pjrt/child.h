// SPDX-License-Identifier: Apache-2.0
// child.h: a plugin opened in a process of its own, the program isthmus-probe,
// before it may touch this one. Not for keeping what comes of it: verdict.h.
//
// How the host process is left alone. It is never forked, which programs with
// threads do not survive: the program is spawned. It has one more child, of a
// process group of its own, and gets one SIGCHLD. Nothing here depends on who
// waits for that child: how the plugin ended is told by the program, which
// watches the plugin in a child of its own, over a pipe; a waitpid(-1)
// elsewhere, or SIGCHLD ignored, only takes the zombie from us. On a closed
// pipe the program kills the plugin's group and ends. One that does not, or is
// not ours, is killed with its group, but only while its number is still taken
// by our child, so that no signal hits a process that got the number later.

#ifndef ISTHMUS_BACKEND_PJRT_CHILD_H_
#define ISTHMUS_BACKEND_PJRT_CHILD_H_

#include "backend/pjrt/capability.h"
#include "backend/pjrt/plugin.h"

typedef struct ist__child {
  const char *program;  // as ist_context_options has it; may be NULL
  int32_t deadline_ms;  // 0: the default
  int32_t grace_ms;     // later than this the program is killed itself
  int32_t report;       // make a report on this device, too; -1: open only
  const char *path;     // as the caller named the plugin, for messages
  const ist__plugin_file *file;
  const char *request;  // the options: ist__child_request
  size_t request_size;
} ist__child;

// Finds isthmus-probe: wanted, where it is not NULL, else beside the library.
// Fails: PROBE_MISSING.
ist_code ist__child_program(const char *wanted, const char *path,
                            char out[IST__PATH_SIZE], ist_error *err);

// Opens a plugin in a process of its own. *out_held: it would end alike when it
// is asked again. A report is made there as well: where its trials end the
// process, without those, in one process after the other, until one lives;
// *losses gets which they were, and starts as all zero.
// Fails: PROBE_MISSING, PLUGIN_CRASHED, and as the plugin did.
ist_code ist__child_try(const ist__env *env, const ist__child *child,
                        ist__pjrt_losses *losses, bool *out_held,
                        ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_CHILD_H_
