// SPDX-License-Identifier: Apache-2.0
// churn.h: what many threads do to clients of plugins over and over: import,
// export, move, run, delete, and what must fail. Threads count what is wrong.

#ifndef ISTHMUS_TESTS_SUPPORT_CHURN_H_
#define ISTHMUS_TESTS_SUPPORT_CHURN_H_

#include "support/pjrt_support.h"

// One client that threads share.
typedef struct churn_client {
  const char *key;
  ist_backend *backend;
  const ist_device *device;
  ist_program *program;  // adds float32[6] to itself; of "lying": gives it back
} churn_client;

// All clients, in one context, and what went on.
typedef struct churn {
  counting_allocator counts;
  ist_context *context;
  size_t count;
  churn_client client[4];
  atomic_long turns;
  atomic_long made;     // sources handed over
  atomic_long deleted;  // calls of their deleters
  atomic_long wrong;
  lying_levers lying;
  bool lies;  // one of the clients is the lying plugin's
  ist_error err;
} churn;

// Opens a client for each key; the test is skipped when one is not here.
void churn_open(churn *all, size_t count, const char *const *keys);
// Closes and opens one again; no thread is at work.
void churn_reopen(churn *all, size_t index);
// Closes all, and fails unless nothing is left and each deleter ran once.
void churn_close(churn *all);

// What a turn does, counted from 0; each is done by turn % count.
typedef void (*churn_turn)(churn *all, churn_client *client, long turn);
// A view or a copy in, and an export of either kind, deleted before or after.
void churn_exchange(churn *all, churn_client *client, long turn);
// All that can be done, one after the other.
void churn_everything(churn *all, churn_client *client, long turn);
// One view through all clients, one after the other, no byte moved.
void churn_hand_on(churn *all, churn_client *client, long turn);

// Runs threads, each so many turns; thread number n has client n % count.
void churn_run(churn *all, int threads, long turns, churn_turn work);

// What the process holds just now.
typedef struct churn_usage {
  long live;         // allocations of the context
  long descriptors;  // open files
  long resident;     // KiB
  long heap;         // KiB that malloc has given out, ours and the plugins'
} churn_usage;
churn_usage churn_measure(const churn *all);

#endif  // ISTHMUS_TESTS_SUPPORT_CHURN_H_
