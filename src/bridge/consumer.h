// SPDX-License-Identifier: Apache-2.0
// consumer.h: the other side of an export, as a capability.

#ifndef ISTHMUS_BRIDGE_CONSUMER_H_
#define ISTHMUS_BRIDGE_CONSUMER_H_

#include "bridge/crossing.h"

typedef struct ist__consumer {
  ist_capability capability;
  ist_options options;
  bool anyone;  // no consumer was named
} ist__consumer;

// Who takes the export: options->consumer (options are whole: read already), or
// anyone who takes any address and honours READ_ONLY. legacy: a managed tensor
// without version, which can say neither READ_ONLY (an unnamed consumer then
// counts as ignoring it) nor that sub-byte elements are padded. Fails: ARGUMENT
// for a consumer that cannot be (an alignment that is no power of two, no
// struct_size).
ist_code ist__consumer_make(const ist__cargo *cargo, const ist_options *options,
                            bool legacy, ist__consumer *out, ist_error *err);

ist_code ist__consumer_decide(const ist__cargo *cargo,
                              const ist__consumer *consumer, ist__decision *out,
                              ist_error *err);

// The consumer's name in receipts.
const char *ist__consumer_place(const ist__consumer *consumer);

#endif  // ISTHMUS_BRIDGE_CONSUMER_H_
