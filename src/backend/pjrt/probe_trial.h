// SPDX-License-Identifier: Apache-2.0
// probe_trial.h: what the parts of the probe share: the memory that they try,
// a block of host memory that views may look at, and how an outcome is noted.
// Only for probe*.c.

#ifndef ISTHMUS_BACKEND_PJRT_PROBE_TRIAL_H_
#define ISTHMUS_BACKEND_PJRT_PROBE_TRIAL_H_

#include "backend/pjrt/buffer.h"
#include "backend/pjrt/capability.h"

#define IST__PROBE_PAGE 4096
#define IST__PROBE_ELEMENTS 8  // of each dtype

// Memory that views of the probe look at. A plugin may give a view back on a
// thread of its own, after the probe is over, so views are holders of it.
typedef struct ist__probe_block {
  ist__refcount holders;
  ist__pjrt_client *client;
  unsigned char *bytes;  // 3 pages, aligned to two
} ist__probe_block;

typedef struct ist__probe {
  ist__pjrt_client *client;
  ist__pjrt_memory *memory;
  size_t device;  // its number
  ist__probe_block *block;
  ist__pjrt_finding *found;        // one for each capability
  const ist__pjrt_losses *losses;  // NULL: none
  bool no_memory;  // a trial failed for want of memory of this process
} ist__probe;

// Makes the block. Fails: NO_ALLOCATION.
ist_code ist__probe_begin(ist__probe *probe, ist_error *err);
// Lets go of it. Fails: NO_ALLOCATION, where a trial did.
ist_code ist__probe_end(ist__probe *probe, ist_error *err);
// Lets go of one holder; for views.
void ist__probe_block_drop(void *block);

// Announces the trial of a capability, which follows. False: it is a loss, and
// is not tried.
bool ist__probe_tries(ist__probe *probe, int number);

// The outcome of a trial, number is one of capability.def: it works, or it does
// not for a reason. The first reason of a trial stays.
void ist__probe_works(ist__probe *probe, int number, uint64_t value);
void ist__probe_fails(ist__probe *probe, int number, const ist_error *err);
void ist__probe_says(ist__probe *probe, int number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// One of the first two, by code.
void ist__probe_result(ist__probe *probe, int number, ist_code code,
                       const ist_error *err);
static inline bool ist__probe_has(const ist__probe *probe, int number) {
  return probe->found[number].works;
}

// Six int32 values that tell every mistake of their order, of shape 2 x 3.
extern const int32_t ist__probe_six[6];
extern const int64_t ist__probe_six_dims[2];
extern const ist__pjrt_shape ist__probe_six_shape;

// A copied buffer of the six values that is ready, or NULL and the error.
PJRT_Buffer *ist__probe_copied(ist__probe *probe, ist_error *err);
// A view of the block that is ready, or NULL and the error.
PJRT_Buffer *ist__probe_viewed(ist__probe *probe, const ist__pjrt_shape *shape,
                               size_t offset, ist_error *err);
// Fails where a buffer lies in another memory than the one that is tried.
ist_code ist__probe_lies_here(ist__probe *probe, PJRT_Buffer *buffer,
                              ist_error *err);
// Fails unless size bytes come out of a buffer as want: PLUGIN and others.
ist_code ist__probe_comes_out(ist__probe *probe, PJRT_Buffer *buffer,
                              const void *want, size_t size, ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_PROBE_TRIAL_H_
