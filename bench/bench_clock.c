// SPDX-License-Identifier: Apache-2.0
// Times two ways of doing the same thing (see bench_clock.h).

#define _POSIX_C_SOURCE 200809L

#include "bench_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void bench_fail(const char *what, const char *why) {
  fprintf(stderr, "bench: %s: %s\n", what, why);
  exit(1);
}

static size_t positive(const char *text) {
  char *end = NULL;
  unsigned long value = strtoul(text, &end, 10);
  if (value == 0 || *end != '\0') bench_fail(text, "not a positive number");
  return (size_t)value;
}

bench_plan bench_arguments(int argc, char **argv) {
  if (argc < 3 || argc > 4) bench_fail("usage", "ROUNDS ITERATIONS [PLUGIN]");
  bench_plan plan = {.rounds = positive(argv[1]),
                     .iterations = positive(argv[2]),
                     .plugin = argc == 4 ? argv[3] : NULL};
  return plan;
}

static int64_t read_clock(clockid_t clock) {
  struct timespec t;
  if (clock_gettime(clock, &t)) bench_fail("clock", "no clock");
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t bench_now(void) {
  return read_clock(CLOCK_MONOTONIC);
}

int64_t bench_thread_now(void) {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static double timed(const bench_plan *plan, bench_fn fn, void *self) {
  int64_t start = bench_now();
  fn(self, plan->iterations);
  return (double)(bench_now() - start) / (double)plan->iterations;
}

void bench_pair(const bench_plan *plan, const char *name, bench_fn ours,
                bench_fn peer, void *self) {
  ours(self, plan->iterations);
  peer(self, plan->iterations);
  for (size_t round = 0; round < plan->rounds; round++) {
    double first = timed(plan, round % 2 ? peer : ours, self);
    double second = timed(plan, round % 2 ? ours : peer, self);
    printf("%s\t%.2f\t%.2f\n", name, round % 2 ? second : first,
           round % 2 ? first : second);
  }
}
