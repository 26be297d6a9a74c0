// SPDX-License-Identifier: Apache-2.0
// watch.c: counting the bytes of a piece of work, and asking whether to go on.

#include "base/watch.h"

#include <assert.h>

static bool tell(ist__watch *watch, uint64_t done) {
  assert(done >= watch->told && done <= watch->total);
  watch->told = done;
  watch->cancelled = !watch->tell(watch->self, done, watch->total);
  return !watch->cancelled;
}

static ist_code begin(ist__watch *watch, ist_error *err) {
  if (!ist__watch_is_on(watch) || tell(watch, 0)) return IST_OK;
  return ist__watch_error(watch, err);
}

ist_code ist__watch_begin(ist__watch *watch, const ist_options *options,
                          uint64_t hop_bytes, uint32_t hops, ist_error *err) {
  // A payload has at most 2^60 bytes, so that a few of them fit.
  *watch = (ist__watch){.tell = options->progress,
                        .self = options->progress_self,
                        .hop_bytes = hop_bytes,
                        .total = hop_bytes * hops};
  return begin(watch, err);
}

ist_code ist__watch_begin_hops(ist__watch *watch, const ist_options *options,
                               const uint64_t *hop_bytes, uint32_t hops,
                               ist_error *err) {
  assert(hops >= 1 && hops <= IST__MOST_HOPS);
  *watch = (ist__watch){.tell = options->progress,
                        .self = options->progress_self,
                        .hop_bytes = hop_bytes[0],
                        .total = hop_bytes[0],
                        .later_count = hops - 1};
  for (uint32_t i = 1; i < hops; i++) {
    watch->later[i - 1] = hop_bytes[i];
    watch->total += hop_bytes[i];
  }
  return begin(watch, err);
}

// units of all, as bytes of a hop; for whole bytes exactly.
static uint64_t share(uint64_t hop_bytes, uint64_t units, uint64_t all) {
  // units times a rest below all must fit.
  while (all > UINT32_MAX && hop_bytes % all != 0) {
    all >>= 1;
    units >>= 1;
  }
  return hop_bytes / all * units + hop_bytes % all * units / all;
}

static void next_hop(ist__watch *watch) {
  if (watch->later_count == 0) return;
  watch->hop_bytes = watch->later[0];
  watch->later_count--;
  for (uint32_t i = 0; i < watch->later_count; i++) {
    watch->later[i] = watch->later[i + 1];
  }
}

bool ist__watch_step(ist__watch *watch, uint64_t units, uint64_t all) {
  if (!ist__watch_is_on(watch)) return true;
  if (watch->cancelled) return false;
  uint64_t done = watch->base;
  if (units == all) {
    done = watch->base += watch->hop_bytes;
    next_hop(watch);
  } else {
    done += share(watch->hop_bytes, units, all);
  }
  return tell(watch, done);
}

ist_code ist__watch_hop(ist__watch *watch, ist_error *err) {
  return ist__watch_step(watch, 1, 1) ? IST_OK : ist__watch_error(watch, err);
}

ist_code ist__watch_error(const ist__watch *watch, ist_error *err) {
  return ist_error_set(err, IST_ERR_CANCELLED,
                       "a copy was not finished: its progress function "
                       "cancelled it after %llu of %llu bytes; needs one that "
                       "returns true",
                       (unsigned long long)watch->told,
                       (unsigned long long)watch->total);
}
