// SPDX-License-Identifier: Apache-2.0
// probe_part.h: the parts of the probe, each of which tries some capabilities
// of one memory and notes what came of it. probe.c has the order. Only for
// probe*.c.

#ifndef ISTHMUS_BACKEND_PJRT_PROBE_PART_H_
#define ISTHMUS_BACKEND_PJRT_PROBE_PART_H_

#include "backend/pjrt/probe_trial.h"

// ---- when a plugin is opened

// copy_in, copy_out, ready_event, memory_kinds.
void ist__probe_copies(ist__probe *probe);
// layout, opaque_pointer, external_reference. Needs the copies.
void ist__probe_addresses(ist__probe *probe);
// view. Sets *out_address where the plugin tells of a view the address that it
// was given. Needs the copies.
void ist__probe_views(ist__probe *probe, bool *out_address);
// view_permuted. Needs a view.
void ist__probe_permuted(ist__probe *probe);
// element_types: the set of dtype numbers. Needs the copies.
uint64_t ist__probe_types(ist__probe *probe);

// Fails unless values lie at an address that a plugin told: NOT_ADDRESSABLE
// (it is no memory of this process), PLUGIN.
ist_code ist__probe_values_at(const void *address, const void *want,
                              size_t size, ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_PROBE_PART_H_
