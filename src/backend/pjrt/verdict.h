// SPDX-License-Identifier: Apache-2.0
// verdict.h: whether a plugin may be opened in this process, and what of a
// report may be tried here: it is tried once in another one (child.h), and what
// came of it is held in the context, never on disk. A verdict is of a file
// (device, inode, size, mtime), of the client options and of the environment,
// which plugins read too.

#ifndef ISTHMUS_BACKEND_PJRT_VERDICT_H_
#define ISTHMUS_BACKEND_PJRT_VERDICT_H_

#include <isthmus/isthmus.h>
#include <pthread.h>

#include "base/env.h"

struct ist__pjrt_losses;
struct ist__plugin_file;

// What was opened, kept with the client for the trials that come later.
typedef struct ist__origin ist__origin;

// Most verdicts that a context holds; the oldest is forgotten first.
#define IST__MOST_VERDICTS 32

// In the context.
typedef struct ist__verdicts {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct ist__verdict *first;  // the newest
  size_t count;
  char *program;  // the context's option, or NULL
  int32_t deadline_ms;
  int32_t grace_ms;  // how much later isthmus-probe is given up itself
} ist__verdicts;

// On failure there is something to close, too. Fails: ARGUMENT, NO_ALLOCATION.
ist_code ist__verdicts_open(ist__verdicts *verdicts, const ist__env *env,
                            const ist_context_options *options, ist_error *err);
void ist__verdicts_close(ist__verdicts *verdicts, const ist__env *env);

// Returns when it is known whether the plugin can be opened; threads that ask
// about one plugin at a time wait for one child.
// Fails: ARGUMENT, OPTION, PLUGIN_*, NOT_A_PLUGIN, PROBE_MISSING, NO_DEVICE,
// NO_ALLOCATION. Gives *out.
ist_code ist__verdict_ask(ist__verdicts *verdicts, const ist__env *env,
                          const ist_backend_options *options, ist__origin **out,
                          ist_error *err);

// Returns when it is known which trials of a report on a device would end the
// process; they have ended others. Fails: PROBE_MISSING, PLUGIN_CRASHED (not in
// a trial), PLUGIN_LOAD (the file is another one by now), NO_ALLOCATION, and as
// the plugin did in the other process.
ist_code ist__verdict_report(ist__verdicts *verdicts, const ist__env *env,
                             const ist__origin *origin, size_t device,
                             struct ist__pjrt_losses *out, ist_error *err);

// The file that was tried, which lives as long; NULL for NULL.
const struct ist__plugin_file *ist__origin_file(const ist__origin *origin);

// NULL is allowed.
void ist__origin_free(const ist__env *env, ist__origin *origin);

#endif  // ISTHMUS_BACKEND_PJRT_VERDICT_H_
