// SPDX-License-Identifier: Apache-2.0
// route.h: the decision itself, without the copies and checks that the public
// ist_route_plan makes for callers of other versions; the numbers of
// reason.def.

#ifndef ISTHMUS_BRIDGE_ROUTE_H_
#define ISTHMUS_BRIDGE_ROUTE_H_

#include "base/watch.h"

enum {
#define IST_REASON(name, number, id, text) IST__REASON_##name = number,
#include "bridge/reason.def"
#undef IST_REASON
};

// What is decided; reasons beyond reason_count are not written.
typedef struct ist__decision {
  ist_route route;
  ist_code code;
  uint32_t hops;
  uint32_t reason_count;
  uint64_t bytes_moved;                // the sum of the hops'
  uint64_t hop_bytes[IST__MOST_HOPS];  // written by each hop, in their order
  bool read_only;
  bool in_place;  // an alias that is the source itself
  bool peer;      // a copy by the backend, between its own memories
  ist_reason reasons[IST_MAX_REASONS];
} ist__decision;

// The short way to a decision. True: ist__route_decide says alias, read-only
// unless writable, of every offer that lies dense and row-major at an address
// of this process that is lent (LEND, HOST_ADDRESS), outside the target's own
// memory, with elements, all of whole bytes; for every wish that neither asks
// for a copy (copy, mutable_source) nor for a packing. alignment is a power of
// two.
static inline bool ist__route_is_plain(const ist_capability *to, int32_t dtype,
                                       uint64_t address, bool writable) {
  uint32_t needed = IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS |
                    (writable ? 0 : (uint32_t)IST_CAN_HONOUR_READ_ONLY);
  return (to->can & needed) == needed && (to->dtypes >> dtype & 1) != 0 &&
         (address & (to->alignment - 1)) == 0 && address != 0;
}

// Decides. Every field of the three is in range (asserted by none: the caller's
// promise; ist_route_plan checks it).
void ist__route_decide(const ist_offer *offer, const ist_capability *target,
                       const ist_wish *wish, ist__decision *out);

// Writes a decision into a caller's receipt (NULL allowed), with the names of
// both places (NULL: none).
void ist__decision_receipt(const ist__decision *decision, const char *source,
                           const char *target, ist_receipt *out);

#endif  // ISTHMUS_BRIDGE_ROUTE_H_
