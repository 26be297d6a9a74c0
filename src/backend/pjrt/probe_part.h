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

// ---- when a report is asked for; all need the copies

// zero_copy.
void ist__probe_zero_copy(ist__probe *probe);
// host_layout, copy_raw: of a buffer of the six values.
void ist__probe_host_layout(ist__probe *probe, PJRT_Buffer *buffer);
void ist__probe_copy_raw(ist__probe *probe, PJRT_Buffer *buffer);
// unsafe_pointer, is_on_cpu, dynamic_dimensions, memory_kinds: what is told of
// a buffer of the six values.
void ist__probe_told(ist__probe *probe, PJRT_Buffer *buffer);
// raw_buffer, layouts, stream: of a buffer of the six values.
void ist__probe_extensions(ist__probe *probe, PJRT_Buffer *buffer);
// delete, bitcast, error_buffer, each on a buffer of its own.
void ist__probe_ends(ist__probe *probe);
// copy_to_memory, copy_to_device.
void ist__probe_transfers(ist__probe *probe);
// memory_stats.
void ist__probe_stats(ist__probe *probe);
// programs, program_types, serialize, donation, parameter_layouts, and
// dynamic_dimensions on an output that has them: of the first device's default
// memory. Takes milliseconds: programs are compiled.
void ist__probe_programs(ist__probe *probe);

// ---- what several of them need

// Fails unless a buffer of the six values shows them, and what is then written
// to the bytes that it is said to be a view of: a copy would not.
ist_code ist__probe_shows_writes(ist__probe *probe, PJRT_Buffer *buffer,
                                 unsigned char *bytes, ist_error *err);

// True when the plugin says that a buffer is deleted; false too where it does
// not answer.
bool ist__probe_is_deleted(ist__probe *probe, PJRT_Buffer *buffer);

// Fails unless a layout of the extension is told as text that begins so.
ist_code ist__probe_layout_text(ist__probe *probe,
                                PJRT_Layouts_MemoryLayout *layout,
                                const char *want, ist_error *err);

// Fails unless values lie at an address that a plugin told: NOT_ADDRESSABLE
// (it is no memory of this process), PLUGIN.
ist_code ist__probe_values_at(const void *address, const void *want,
                              size_t size, ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_PROBE_PART_H_
