// SPDX-License-Identifier: Apache-2.0
// watch.h: who is told how much of a long piece of work is done, and may cancel
// it. Not for a thread of its own: the worker tells.

#ifndef ISTHMUS_BASE_WATCH_H_
#define ISTHMUS_BASE_WATCH_H_

#include "base/error.h"

// Most copies that one crossing makes.
#define IST__MOST_HOPS 3

// One piece of work: hops, one after the other. Belongs to the thread of the
// call; a zeroed one, and NULL, tell nobody.
typedef struct ist__watch {
  ist_progress_fn tell;
  void *self;
  uint64_t hop_bytes;                  // of the hop under way
  uint64_t later[IST__MOST_HOPS - 1];  // of the hops after it
  uint32_t later_count;                // 0: the last of them stays
  uint64_t total;
  uint64_t base;  // bytes of the hops that are done
  uint64_t told;  // what was told last
  bool cancelled;
} ist__watch;

// Begins to watch: tells 0. Nobody is told of work without bytes.
// Fails: CANCELLED.
ist_code ist__watch_begin(ist__watch *watch, const ist_options *options,
                          uint64_t hop_bytes, uint32_t hops, ist_error *err);

// The same for hops (1 to IST__MOST_HOPS) that differ: of hop_bytes[0],
// hop_bytes[1] and so on.
ist_code ist__watch_begin_hops(ist__watch *watch, const ist_options *options,
                               const uint64_t *hop_bytes, uint32_t hops,
                               ist_error *err);

// Sets the bytes of the next hop, where hops differ: ist__watch_begin was then
// given those of all of them as one.
static inline void ist__watch_next_hop(ist__watch *watch, uint64_t bytes) {
  watch->hop_bytes = bytes;
}

// True when somebody is told.
static inline bool ist__watch_is_on(const ist__watch *watch) {
  return watch != NULL && watch->tell != NULL && watch->total != 0;
}

// Tells that units of a hop's all are done, and ends the hop when that is all
// of them. False when the work was cancelled, now or before.
bool ist__watch_step(ist__watch *watch, uint64_t units, uint64_t all);

// The same for a hop that somebody else did in one step. Fails: CANCELLED.
ist_code ist__watch_hop(ist__watch *watch, ist_error *err);

// The error of work that was cancelled. Always CANCELLED.
ist_code ist__watch_error(const ist__watch *watch, ist_error *err);

#endif  // ISTHMUS_BASE_WATCH_H_
