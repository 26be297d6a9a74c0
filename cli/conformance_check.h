// SPDX-License-Identifier: Apache-2.0
// conformance_check.h: the checks of `isthmus conformance`: what each finds,
// and how a check of a plugin tells it. Only for conformance*.c and its verb.

#ifndef ISTHMUS_CLI_CONFORMANCE_CHECK_H_
#define ISTHMUS_CLI_CONFORMANCE_CHECK_H_

#include <stdatomic.h>

#include "backend/pjrt/buffer.h"
#include "backend/pjrt/capability.h"
#include "command.h"

typedef enum ist__outcome {
  IST__OUTCOME_SKIP = 0,
  IST__OUTCOME_PASS = 1,
  IST__OUTCOME_FAIL = 2
} ist__outcome;

enum {
#define CHECK(name, group, slot, promise) IST__CHECK_##name,
#include "conformance.def"
#undef CHECK
  IST__CHECK_COUNT,
  IST__RESULT_COUNT = IST__CHECK_COUNT + IST__CAPABILITY_COUNT
};

// What one check is given: an open client, memory to view, and a place for the
// verdict. It begins as a pass; the first thing that is said stays.
typedef struct ist__bench {
  ist_backend *backend;
  ist__pjrt_client *client;
  const ist__pjrt *pjrt;
  const ist__pjrt_memory *memory;
  ist__outcome verdict;
  char reason[400];
  // Calls back, of each check apart: a plugin may give the views of an earlier
  // one back while the next is running.
  atomic_int calls[IST__CHECK_COUNT];
  int now;  // the check that is running
  _Alignas(4096) unsigned char block[4 * 4096];
} ist__bench;

// A check; it ends early where there is nothing more to learn.
typedef void (*ist__check_fn)(ist__bench *bench);

#define CHECK(name, group, slot, promise) void ist__check_##name(ist__bench *);
#include "conformance.def"
#undef CHECK

// A row of the list, or a capability of the probe.
typedef struct ist__check_row {
  const char *name, *group, *slot, *promise;
  ist__check_fn run;  // NULL for a capability
} ist__check_row;
ist__check_row ist__check_row_at(int index);

typedef struct ist__result {
  ist__outcome verdict;
  char reason[400];
} ist__result;

// Says why a check fails, or is passed over, unless something was said before.
void ist__bench_says(ist__bench *bench, ist__outcome verdict,
                     const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// False, after saying so, where a call failed: a slot that the plugin does not
// implement passes the check over.
bool ist__bench_good(ist__bench *bench, ist_code code, const ist_error *err);
// False, after saying why, where condition does not hold.
#define ist__bench_holds(bench, condition, ...) \
  ((condition) ||                               \
   (ist__bench_says(bench, IST__OUTCOME_FAIL, __VA_ARGS__), false))

// Six float32 values, 2 by 3, in a copied buffer that is ready; or NULL.
PJRT_Buffer *ist__bench_copied(ist__bench *bench);
// A view of six float32 values in the block, 2 by 3 in an order (NULL:
// row-major), ready; or NULL.
PJRT_Buffer *ist__bench_viewed(ist__bench *bench, const int64_t *order);
// The values come out of a buffer as row-major; true when they are right.
bool ist__bench_comes_out(ist__bench *bench, PJRT_Buffer *buffer,
                          const int64_t *order);
// The counter of the check that is running.
atomic_int *ist__bench_calls(ist__bench *bench);
// on_delete of a view: counts, where arg is that counter.
void ist__bench_give_back(void *data, void *arg);
// Waits, at most two seconds, until a counter is not below wanted, then a
// little longer for a call too many; true when it is exactly that.
bool ist__bench_counts(atomic_int *counter, int wanted);
void ist__bench_event_end(ist__bench *bench, PJRT_Event *event);

// Runs every check of a plugin, in processes of their own, into results of
// IST__RESULT_COUNT. Fails: what opening returns, IO.
ist_code ist__conformance_run(ist__cmd *cmd, const char *path,
                              ist__result *results, ist_error *err);

// How the results are written.
void ist__conformance_text(ist__cmd *cmd, const char *path,
                           const ist__result *results);
void ist__conformance_json(ist__cmd *cmd, const char *path,
                           const ist__result *results);
void ist__conformance_junit(ist__cmd *cmd, const char *path,
                            const ist__result *results);
size_t ist__conformance_count(const ist__result *results, ist__outcome verdict);

#endif  // ISTHMUS_CLI_CONFORMANCE_CHECK_H_
