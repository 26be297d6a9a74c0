// SPDX-License-Identifier: Apache-2.0
// crossing.h: one tensor crosses to one memory: the route is planned, then
// done. Import, move and run differ only in what crosses.

#ifndef ISTHMUS_BRIDGE_CROSSING_H_
#define ISTHMUS_BRIDGE_CROSSING_H_

#include "base/watch.h"
#include "bridge/route.h"
#include "bridge/tensor.h"

// What crosses. view has its address where the source has one.
typedef struct ist__cargo {
  ist__view view;
  const ist_capability *memory;  // of the memory that it lies in
  ist_capability unlent;         // the same, when the address was not lent
  ist_grant grant;
  ist_tensor *tensor;      // the source, when it is a tensor of ours
  ist_release_fn release;  // called once when an alias of it ends
  void *release_self;
  ist__watch *watch;  // of its copies; NULL: nobody's
} ist__cargo;

// Where it goes. capability may be narrower than the memory's own (a program
// that takes row-major only).
typedef struct ist__target {
  const ist_device *device;
  size_t memory;
  const ist_capability *capability;
  ist_options options;
} ist__target;

// Reads options (NULL allowed) and finds the memory.
// Fails: ARGUMENT, NO_MEMORY_KIND.
ist_code ist__target_make(const ist_device *device, const ist_options *options,
                          ist__target *out, ist_error *err);

// A tensor of ours as cargo, waited for. Its address is lent unless copy=always
// can do without; where the backend does not lend it, the cargo counts as
// memory without an address and crosses by copies. release stays NULL: an alias
// retains the tensor. Fails: what the wait fails with, and the loan, where the
// memory can be read in no other way.
ist_code ist__cargo_of_tensor(ist_tensor *tensor, ist_copy copy,
                              ist__cargo *out, ist_error *err);

// An ist_release_fn that gives back a count of a tensor.
void ist__cargo_release_tensor(void *tensor);

// Decides how the cargo goes to a capability. in_place, peer: see ist_offer.
// Fails: ARGUMENT for options out of range.
ist_code ist__cargo_decide(const ist__cargo *cargo,
                           const ist_capability *capability,
                           const ist_options *options, bool in_place, bool peer,
                           ist__decision *out, ist_error *err);
ist_code ist__crossing_decide(const ist__cargo *cargo,
                              const ist__target *target, ist__decision *out,
                              ist_error *err);

// Writes the name of where the cargo lies, cut to IST_MAX_PLACE: the one that
// options give, else its place.
void ist__cargo_place(const ist__cargo *cargo, const ist_options *options,
                      char *out);

// Writes the receipt of a crossing (NULL allowed).
void ist__crossing_receipt(const ist__cargo *cargo, const ist__target *target,
                           const ist__decision *decision, ist_receipt *out);

// Fails with a decision's refusal, in words; place is the target's, used when
// options give it no name.
ist_code ist__refusal(const ist__cargo *cargo, const ist_options *options,
                      const ist__decision *decision, const char *place,
                      ist_error *err);

// Plans and crosses. After an alias the cargo's release belongs to *out; after
// a copy the cargo is no longer used. receipt may be NULL.
ist_code ist__cross(ist__cargo *cargo, const ist__target *target,
                    ist_tensor **out, ist_receipt *receipt, ist_error *err);

// True when a copy's sub-byte elements are to take a byte each.
bool ist__cargo_arrives_padded(const ist__cargo *cargo,
                               const ist_capability *to, ist_packing packing);

// The cargo's elements, dense and row-major, in a fresh block of alignment;
// padded: one sub-byte element to a byte. Writes the block's view to out; the
// caller releases out->data with ist__block_release. One hop of the cargo's
// watch. Fails: NO_ALLOCATION, CANCELLED, what copy_out fails with.
ist_code ist__cargo_gather(const ist__cargo *cargo, ist_context *context,
                           uint64_t alignment, bool padded, ist__view *out,
                           ist_error *err);

// True when the host can read the cargo at its address.
static inline bool ist__cargo_host_reads(const ist__cargo *cargo) {
  uint32_t needed = IST_CAN_HOST_ADDRESS | IST_CAN_LEND;
  return (cargo->memory->can & needed) == needed;
}

#endif  // ISTHMUS_BRIDGE_CROSSING_H_
