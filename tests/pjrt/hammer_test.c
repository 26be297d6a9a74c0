// SPDX-License-Identifier: Apache-2.0
// Eight threads on clients of plugins, without end. ISTHMUS_HAMMER_TURNS sets
// the turns of a thread (100000 is the whole of it; 2000 by default).
//
//   hammer_test soak MINUTES   does all that can be done for so long, prints
//                              what the process holds, and fails on a leak

#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "support/churn.h"

enum {
  threads = 8
};

static const char *const every_key[] = {"P1", "P2", "P3", "lying"};

static long turns_of_a_thread(void) {
  const char *text = getenv("ISTHMUS_HAMMER_TURNS");
  return text != NULL ? strtol(text, NULL, 10) : 2000;
}

static void hammer(size_t count, const char *const *keys, churn_turn work) {
  static churn all;
  churn_open(&all, count, keys);
  churn_run(&all, threads, 100, work);  // what is made once is made by now
  churn_usage before = churn_measure(&all);
  churn_run(&all, threads, turns_of_a_thread(), work);
  churn_usage after = churn_measure(&all);
  print_message(
      "%ld turns: %ld allocations, %ld files, heap %+ld KiB, "
      "resident %+ld KiB\n",
      (long)all.turns, after.live - before.live,
      after.descriptors - before.descriptors, after.heap - before.heap,
      after.resident - before.resident);
  assert_int_equal(all.wrong, 0);
  assert_int_equal(all.made, all.deleted);
  assert_int_equal(after.descriptors, before.descriptors);
  churn_close(&all);
}

static void one_client__stands_eight_threads(void **state) {
  const char *const keys[] = {*state};
  hammer(1, keys, churn_exchange);
}

static void one_client__stands_everything_at_once(void **state) {
  const char *const keys[] = {*state};
  hammer(1, keys, churn_everything);
}

static void three_clients__stand_eight_threads(void **state) {
  (void)state;
  hammer(3, every_key, churn_exchange);
}

static void all_clients__hand_on_under_eight_threads(void **state) {
  (void)state;
  hammer(4, every_key, churn_hand_on);
}

// ---- the soak

static double minutes_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec / 60 + (double)now.tv_nsec / 6e10;
}

static void tell(const churn *all, double minutes) {
  churn_usage u = churn_measure(all);
  printf(
      "%7.2f min  %10ld turns  %6ld allocations  %3ld files  "
      "heap %7ld KiB  resident %7ld KiB  wrong %ld\n",
      minutes, (long)all->turns, u.live, u.descriptors, u.heap, u.resident,
      (long)all->wrong);
  fflush(stdout);
}

static double soak_minutes = 0;

// Rounds of all that threads can do, and a client closed and opened after each.
static void soak__holds_no_more_at_its_end(void **state) {
  (void)state;
  static churn all;
  double begin = minutes_now(), told = 0, now = 0;
  churn_open(&all, COUNT_OF(every_key), every_key);
  churn_run(&all, threads, 600, churn_everything);
  for (size_t i = 0; i < all.count; i++) churn_reopen(&all, i);
  churn_usage first = churn_measure(&all);
  tell(&all, 0);
  for (size_t round = 0; now < soak_minutes; round++) {
    churn_run(&all, threads, 600, churn_everything);
    churn_reopen(&all, round % all.count);
    now = minutes_now() - begin;
    if (now - told >= soak_minutes / 20) tell(&all, told = now);
  }
  churn_usage last = churn_measure(&all);
  tell(&all, now);
  assert_int_equal(all.wrong, 0);
  assert_int_equal(last.live, first.live);
  assert_int_equal(last.descriptors, first.descriptors);
  churn_close(&all);
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "soak") == 0) {
    soak_minutes = strtod(argv[2], NULL);
    const struct CMUnitTest soak[] = {
        cmocka_unit_test(soak__holds_no_more_at_its_end),
    };
    return cmocka_run_group_tests(soak, NULL, NULL);
  }
  const struct CMUnitTest tests[] = {
      ON_EACH_PLUGIN(one_client__stands_eight_threads),
      ON_EACH_PLUGIN(one_client__stands_everything_at_once),
      cmocka_unit_test(three_clients__stand_eight_threads),
      cmocka_unit_test(all_clients__hand_on_under_eight_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
