// SPDX-License-Identifier: Apache-2.0
// Times two ways of doing the same thing, side by side in one process, and
// writes what it saw for run.py to reduce. Shared by the C benches.

#ifndef ISTHMUS_BENCH_CLOCK_H
#define ISTHMUS_BENCH_CLOCK_H

#include <stddef.h>
#include <stdint.h>

// Does one thing `times` times; exits with a message when it cannot.
typedef void (*bench_fn)(void *self, size_t times);

typedef struct bench_plan {
  size_t rounds;       // how many pairs of timings
  size_t iterations;   // how often each timing repeats its thing
  const char *plugin;  // NULL: none was named
} bench_plan;

// Reads ROUNDS ITERATIONS [PLUGIN.so] from the command line.
bench_plan bench_arguments(int argc, char **argv);

// Times ours and peer alternately, which goes first changing every round,
// after one round that is not counted. Writes one line a round:
// case, ours, peer, with tabs between, in nanoseconds for one iteration.
void bench_pair(const bench_plan *plan, const char *name, bench_fn ours,
                bench_fn peer, void *self);

// A clock that only goes forward, in nanoseconds.
int64_t bench_now(void);

// How long the calling thread has run, in nanoseconds: what others took of its
// processor is not in it.
int64_t bench_thread_now(void);

// Ends the program with a message and status 1.
_Noreturn void bench_fail(const char *what, const char *why);

#endif
