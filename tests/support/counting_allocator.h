// SPDX-License-Identifier: Apache-2.0
// counting_allocator.h: an allocator that counts what is out, fails the n-th
// request on demand, and fills memory so that nobody relies on zeros.

#ifndef ISTHMUS_TESTS_SUPPORT_COUNTING_ALLOCATOR_H_
#define ISTHMUS_TESTS_SUPPORT_COUNTING_ALLOCATOR_H_

#include <isthmus/isthmus.h>
#include <stdatomic.h>

typedef struct counting_allocator {
  atomic_long requests;  // allocations asked for
  atomic_long live;      // allocations not given back
  atomic_long fail_at;   // number of the request that fails, from 1; 0: none
  atomic_long failed;    // requests that failed
} counting_allocator;

void counting_allocator_init(counting_allocator *counter);
// Starts a new count of requests; the one numbered fail_at fails (0: none).
void counting_allocator_arm(counting_allocator *counter, long fail_at);
ist_allocator counting_allocator_hook(counting_allocator *counter);

#endif  // ISTHMUS_TESTS_SUPPORT_COUNTING_ALLOCATOR_H_
