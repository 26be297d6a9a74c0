// SPDX-License-Identifier: Apache-2.0
// route_parties.h: the memories, offers and wishes of which the tests of the
// route make their questions.

#ifndef ISTHMUS_TESTS_SUPPORT_ROUTE_PARTIES_H_
#define ISTHMUS_TESTS_SUPPORT_ROUTE_PARTIES_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h wants the four above.
#include <cmocka.h>

#include "bridge/route.h"

static const DLDevice CPU = {kDLCPU, 0};
static const DLDevice CARD = {kDLExtDev, 0};
static const DLDevice FOREIGN = {kDLCUDA, 0};

#define HOST_MEMORY                                                    \
  (IST_CAN_COPY_IN | IST_CAN_COPY_OUT | IST_CAN_ADOPT | IST_CAN_LEND | \
   IST_CAN_HOST_ADDRESS | IST_CAN_HONOUR_READ_ONLY)

typedef struct party {
  const char *name;
  uint32_t can;
  uint32_t layouts;
  uint64_t alignment;
  DLDevice device;
} party;

static const party sources[] = {
    {"host", HOST_MEMORY, IST_LAYOUT_ANY, 1, CPU},
    {"card", IST_CAN_COPY_IN | IST_CAN_COPY_OUT | IST_CAN_LEND, 0, 64, CARD},
    {"opaque", IST_CAN_COPY_IN | IST_CAN_COPY_OUT, 0, 64, CARD},
    {"foreign", IST_CAN_LEND, 0, 64, FOREIGN},
};

static const party targets[] = {
    {"host", HOST_MEMORY | IST_CAN_PADDED, IST_LAYOUT_ANY, 1, CPU},
    {"ignorer", IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS,
     IST_LAYOUT_ANY & ~IST_LAYOUT_NEGATIVE, 1, CPU},
    {"aligned", HOST_MEMORY, IST_LAYOUT_PERMUTED, 64, CPU},
    {"card", IST_CAN_COPY_IN | IST_CAN_COPY_OUT | IST_CAN_ADOPT, 0, 64, CARD},
    {"opaque", IST_CAN_COPY_IN | IST_CAN_COPY_OUT, 0, 64, CARD},
};

static const uint32_t layouts[] = {IST_LAYOUT_ROW_MAJOR, IST_LAYOUT_PERMUTED,
                                   IST_LAYOUT_NEGATIVE, IST_LAYOUT_OVERLAP};
static inline ist_capability capability(const party *p) {
  return (ist_capability){.struct_size = sizeof(ist_capability),
                          .can = p->can,
                          .layouts = p->layouts,
                          .alignment = p->alignment,
                          .dtypes = 1,
                          .dl_device = p->device};
}

static inline ist_receipt decide(const ist_offer *offer,
                                 const ist_capability *target,
                                 const ist_wish *wish) {
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_error err;
  assert_int_equal(ist_route_plan(offer, target, wish, &receipt, &err), IST_OK);
  return receipt;
}

// The 24 wishes, copy slowest, then read_only, then mutable_source.
static inline ist_wish wish_at(int index) {
  return (ist_wish){sizeof(ist_wish), (ist_copy)(index / 8),
                    (ist_read_only)(index / 2 % 4),
                    (ist_mutable_source)(index % 2), IST_PACKING_AS_IS};
}

// Elements of 4 bits of which two make a byte.
enum {
  fp4 = 26,
  odd_count = 101,
  odd_packed = 51
};

static inline ist_offer small_offer(const ist_capability *memory, bool padded) {
  return (ist_offer){.struct_size = sizeof(ist_offer),
                     .memory = memory,
                     .dtype = fp4,
                     .grant = IST_GRANT_WRITABLE,
                     .address = 4096,
                     .nbytes = padded ? odd_count : odd_packed,
                     .padded = padded,
                     .count = odd_count};
}

// The 12 wishes of packing, copy slowest.
static inline ist_wish packing_wish_at(int index) {
  return (ist_wish){.struct_size = sizeof(ist_wish),
                    .copy = (ist_copy)(index / 4),
                    .packing = (ist_packing)(index % 4)};
}

#endif  // ISTHMUS_TESTS_SUPPORT_ROUTE_PARTIES_H_
