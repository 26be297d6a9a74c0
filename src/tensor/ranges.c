// SPDX-License-Identifier: Apache-2.0
// ranges.c: rounds of ranges. Within a round threads claim ranges; between
// rounds nothing is under way, and the calling thread asks whether to go on.
//
// A pool's run is not trusted: its indices are not used, each call claims the
// next range that nobody has. Calls too many find none, calls too few leave
// some for the calling thread, and what was claimed is waited for.

// getpid is of POSIX.
#define _POSIX_C_SOURCE 200809L

#include "tensor/ranges.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/alloc.h"

// So many copies at once use the pool; more are done by their own threads.
#define DESK_COUNT 16

// One round.
typedef struct round_state {
  const ist__ranges *ranges;
  uint64_t next;  // the first item that nobody has claimed
  uint64_t end;
  uint64_t units;  // done
  uint32_t active;
} round_state;

typedef struct ist__desk {
  atomic_flag taken;
  pthread_mutex_t lock;  // of what follows; never held during a task
  pthread_cond_t idle;
  round_state *round;  // NULL: nothing to do here
  pid_t process;       // whose threads come here
} desk;

desk *ist__desks_make(const ist__env *env) {
  desk *desks = ist__alloc_zero(env, DESK_COUNT * sizeof *desks);
  for (int i = 0; desks != NULL && i < DESK_COUNT; i++) {
    atomic_flag_clear(&desks[i].taken);
    desks[i].process = getpid();
    pthread_mutex_init(&desks[i].lock, NULL);
    pthread_cond_init(&desks[i].idle, NULL);
  }
  return desks;
}

// A forked child finds the desks as the threads of its parent, which it does
// not have, left them: a round may lie there, a lock be held.
static bool are_ours(const desk *desks) {
  return desks != NULL && desks[0].process == getpid();
}

void ist__desks_free(const ist__env *env, desk *desks) {
  for (int i = 0; are_ours(desks) && i < DESK_COUNT; i++) {
    assert(desks[i].round == NULL);
    pthread_cond_destroy(&desks[i].idle);
    pthread_mutex_destroy(&desks[i].lock);
  }
  ist__free(env, desks);
}

uint64_t ist__range_bytes(const ist__copy_engine *engine, uint64_t nbytes) {
  if (engine == NULL || engine->desks == NULL || nbytes < IST__POOL_BYTES) {
    return IST__ROUND_BYTES;
  }
  uint64_t bytes = IST__ROUND_BYTES / (uint64_t)engine->pool.threads;
  return bytes < 4096 ? 4096 : bytes;
}

uint64_t ist__range_step(const ist__copy_engine *engine, uint64_t count,
                         uint64_t item_bits) {
  uint64_t bytes = ist__range_bytes(engine, count / 8 * item_bits);
  uint64_t step = bytes * 8 / item_bits / 8 * 8;
  return step < 8 ? 8 : step;
}

static uint64_t do_range(const ist__ranges *ranges, uint64_t first) {
  uint64_t left = ranges->count - first;
  uint64_t size = left < ranges->step ? left : ranges->step;
  return ranges->task(ranges->work, first, first + size);
}

// Claims one range and does it; false when none was left.
static bool do_next(desk *d) {
  pthread_mutex_lock(&d->lock);
  round_state *r = d->round;
  bool found = r != NULL && r->next < r->end;
  if (found) {
    uint64_t first = r->next;
    uint64_t left = r->end - first;
    r->next += left < r->ranges->step ? left : r->ranges->step;
    r->active++;
    pthread_mutex_unlock(&d->lock);
    uint64_t units = do_range(r->ranges, first);
    pthread_mutex_lock(&d->lock);
    r->units += units;
    r->active--;
    if (r->active == 0) pthread_cond_signal(&d->idle);
  }
  pthread_mutex_unlock(&d->lock);
  return found;
}

// The task that a pool is given; index is not used.
static void come_to_desk(void *work, size_t index) {
  (void)index;
  (void)do_next(work);
}

// Items from first to before end; returns their units.
static uint64_t run_round(const ist__copy_engine *engine, desk *d,
                          const ist__ranges *ranges, uint64_t first,
                          uint64_t end) {
  round_state r = {.ranges = ranges, .next = first, .end = end};
  uint64_t calls = (end - first + ranges->step - 1) / ranges->step;
  pthread_mutex_lock(&d->lock);
  d->round = &r;
  pthread_mutex_unlock(&d->lock);
  engine->pool.run(engine->pool.self, (size_t)calls, come_to_desk, d);
  while (do_next(d)) {
  }
  pthread_mutex_lock(&d->lock);
  while (r.active != 0) pthread_cond_wait(&d->idle, &d->lock);
  d->round = NULL;
  pthread_mutex_unlock(&d->lock);
  return r.units;
}

static desk *take_desk(const ist__copy_engine *engine) {
  if (!are_ours(engine->desks)) return NULL;
  for (int i = 0; i < DESK_COUNT; i++) {
    desk *d = &engine->desks[i];
    if (!atomic_flag_test_and_set_explicit(&d->taken, memory_order_acquire)) {
      return d;
    }
  }
  return NULL;
}

static bool run_alone(ist__watch *watch, const ist__ranges *ranges) {
  uint64_t units = 0;
  uint64_t first = 0;
  while (first < ranges->count) {
    units += do_range(ranges, first);
    first += ranges->step < ranges->count - first ? ranges->step
                                                  : ranges->count - first;
    if (!ist__watch_step(watch, units, ranges->units)) return false;
  }
  return true;
}

static bool run_pool(const ist__copy_engine *engine, desk *d, ist__watch *watch,
                     const ist__ranges *ranges) {
  // With somebody to ask, a round is what its threads write at once.
  uint64_t threads = (uint64_t)engine->pool.threads;
  uint64_t width = ranges->count;
  if (ist__watch_is_on(watch) && ranges->step <= width / threads) {
    width = ranges->step * threads;
  }
  uint64_t units = 0;
  uint64_t first = 0;
  while (first < ranges->count) {
    uint64_t left = ranges->count - first;
    uint64_t end = first + (left < width ? left : width);
    units += run_round(engine, d, ranges, first, end);
    first = end;
    if (!ist__watch_step(watch, units, ranges->units)) return false;
  }
  return true;
}

bool ist__ranges_run(const ist__copy_engine *engine, ist__watch *watch,
                     const ist__ranges *ranges) {
  assert(ranges->step > 0);
  bool pool = engine != NULL && engine->desks != NULL && !ranges->in_order &&
              ranges->count > ranges->step;
  desk *d = pool ? take_desk(engine) : NULL;
  if (d == NULL) return run_alone(watch, ranges);
  bool done = run_pool(engine, d, watch, ranges);
  atomic_flag_clear_explicit(&d->taken, memory_order_release);
  return done;
}
