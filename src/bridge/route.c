// SPDX-License-Identifier: Apache-2.0
// route.c: the one decision: how does this tensor cross to that memory. A pure
// function of two capability records and a wish; its whole truth table is
// tests/golden/route.txt.

#include "bridge/route.h"

#include "base/error.h"
#include "base/structs.h"

typedef struct plan {
  ist_offer from;
  ist_capability to;
  ist_wish wish;
  ist_receipt receipt;
} plan;

static bool can(const ist_capability *memory, uint32_t what) {
  return (memory->can & what) == what;
}

static void because_of(plan *p, int32_t id, uint64_t actual, uint64_t needed) {
  ist_receipt *r = &p->receipt;
  if (r->reason_count == IST_MAX_REASONS) return;
  r->reasons[r->reason_count++] =
      (ist_reason){id, (int64_t)actual, (int64_t)needed};
}

static void because(plan *p, int32_t id) {
  because_of(p, id, 0, 0);
}

static void refuse(plan *p, ist_code code, int32_t reason) {
  because(p, reason);
  p->receipt.route = IST_ROUTE_REFUSE;
  p->receipt.code = code;
}

// Both sides see one memory by one kind of address.
static bool shares_addresses(const plan *p) {
  const ist_capability *from = &p->from.memory, *to = &p->to;
  if (!can(from, IST_CAN_LEND)) return false;
  if (can(from, IST_CAN_HOST_ADDRESS) && can(to, IST_CAN_HOST_ADDRESS)) {
    return true;
  }
  return from->dl_device.device_type != 0 &&
         from->dl_device.device_type == to->dl_device.device_type &&
         from->dl_device.device_id == to->dl_device.device_id;
}

// The largest power of two that divides an address.
static uint64_t alignment_of(uint64_t address) {
  return address & (~address + 1);
}

static bool is_aligned(const plan *p) {
  uint64_t needed = p->to.alignment;
  if (needed <= 1) return true;
  if (p->from.address == 0) return p->from.nbytes == 0;
  return p->from.address % needed == 0;
}

static bool check_layout(plan *p) {
  static const struct {
    uint32_t layout;
    int32_t reason;
  } kinds[] = {{IST_LAYOUT_PERMUTED, IST__REASON_PERMUTED},
               {IST_LAYOUT_GAPS, IST__REASON_GAPS},
               {IST_LAYOUT_NEGATIVE, IST__REASON_NEGATIVE},
               {IST_LAYOUT_OVERLAP, IST__REASON_OVERLAP}};
  uint32_t bad = p->from.layout & ~p->to.layouts;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if ((bad & kinds[i].layout) != 0) because(p, kinds[i].reason);
  }
  return bad == 0;
}

// Can the memory be shared, wishes aside? Notes each thing in the way.
static bool can_view(plan *p) {
  if (p->from.in_place) return true;
  if (!can(&p->to, IST_CAN_ADOPT)) {
    because(p, IST__REASON_NO_VIEWS);
    return false;
  }
  if (!shares_addresses(p)) {
    because(p, IST__REASON_NO_ADDRESS);
    return false;
  }
  bool ok = check_layout(p);
  if (!is_aligned(p)) {
    because_of(p, IST__REASON_UNALIGNED, alignment_of(p->from.address),
               p->to.alignment);
    ok = false;
  }
  if (p->from.padded && !can(&p->to, IST_CAN_PADDED)) {
    because(p, IST__REASON_PADDED);
    ok = false;
  }
  return ok;
}

typedef enum verdict {
  COPY,
  SHARE
} verdict;

// The consumer ignores READ_ONLY and the source must not be written: the right
// column of the table "who may write through an alias" (docs/routes.md).
static verdict judge_ignorer(plan *p) {
  bool immutable = p->from.grant == IST_GRANT_IMMUTABLE;
  switch (p->wish.read_only) {
    case IST_READ_ONLY_COPY:
      because(p, IST__REASON_READ_ONLY_COPY);
      return COPY;
    case IST_READ_ONLY_ALLOW:
      because(p, IST__REASON_WRITE_ALLOWED);
      return SHARE;
    case IST_READ_ONLY_AUTO:
    case IST_READ_ONLY_REFUSE:  // refused before: see write_refused
      break;
  }
  because(p, immutable ? IST__REASON_WRITE_WOULD_BREAK
                       : IST__REASON_READ_ONLY_COPY);
  return immutable ? SHARE : COPY;
}

// The memory can be shared: may it be?
static verdict judge_view(plan *p) {
  if (p->from.grant == IST_GRANT_WRITABLE) {
    if (p->wish.mutable_source == IST_MUTABLE_COPY) {
      because(p, IST__REASON_PRIVATE_ASKED);
      return COPY;
    }
    because(p, IST__REASON_WRITES_SHOW);
    return SHARE;
  }
  if (!can(&p->to, IST_CAN_HONOUR_READ_ONLY)) return judge_ignorer(p);
  because(p, IST__REASON_KEPT_READ_ONLY);
  return SHARE;
}

// One copy where the host can read the source or write the target, two where
// it can do neither, or where a gathered host copy must still go in.
static void plan_copy(plan *p) {
  const ist_capability *from = &p->from.memory, *to = &p->to;
  bool host_reads = can(from, IST_CAN_HOST_ADDRESS | IST_CAN_LEND);
  bool host_writes = can(to, IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS);
  bool peer = p->from.peer && can(from, IST_CAN_PEER);
  if (!host_reads && !peer && !can(from, IST_CAN_COPY_OUT)) {
    refuse(p, IST_ERR_NO_ROUTE, IST__REASON_UNREADABLE);
    return;
  }
  if (!host_writes && !peer && !can(to, IST_CAN_COPY_IN)) {
    refuse(p, IST_ERR_NO_ROUTE, IST__REASON_UNWRITABLE);
    return;
  }
  uint32_t hops = 1;
  bool host_dense =
      host_reads && p->from.layout == IST_LAYOUT_ROW_MAJOR && !p->from.padded;
  if (host_writes || host_dense) {
    hops = 1;
  } else if (peer) {
    because(p, IST__REASON_PEER);
  } else {
    because(p, IST__REASON_STAGED);
    hops = 2;
  }
  p->receipt.route = hops == 1 ? IST_ROUTE_COPY : IST_ROUTE_STAGE;
  p->receipt.hops = hops;
  p->receipt.bytes_moved = hops * p->from.nbytes;
}

// read_only=refuse looks at who takes it and from whom, not at whether this
// address happens to be viewable: the answer must not hang on luck.
static bool write_refused(const plan *p) {
  return p->wish.read_only == IST_READ_ONLY_REFUSE &&
         p->from.grant != IST_GRANT_WRITABLE &&
         !can(&p->to, IST_CAN_HONOUR_READ_ONLY);
}

static void plan_route(plan *p) {
  const ist_offer *from = &p->from;
  if ((p->to.dtypes >> from->dtype & 1) == 0) {
    refuse(p, IST_ERR_TARGET_DTYPE, IST__REASON_NO_DTYPE);
    return;
  }
  if (p->wish.copy == IST_COPY_ALWAYS) {
    because(p, IST__REASON_COPY_ASKED);
    plan_copy(p);
    return;
  }
  if (write_refused(p)) {
    refuse(p, IST_ERR_READ_ONLY, IST__REASON_WRITE_REFUSED);
    return;
  }
  verdict answer = can_view(p) ? judge_view(p) : COPY;
  if (answer == SHARE) {
    because(p, from->in_place ? IST__REASON_IN_PLACE : IST__REASON_VIEWED);
    p->receipt.route = IST_ROUTE_ALIAS;
    p->receipt.read_only = from->grant != IST_GRANT_WRITABLE;
  } else if (p->wish.copy == IST_COPY_NEVER) {
    refuse(p, IST_ERR_COPY_NEEDED, IST__REASON_NEVER_COPY);
  } else {
    plan_copy(p);
  }
}

static bool wish_ok(const ist_wish *wish) {
  return (unsigned)wish->copy <= IST_COPY_ALWAYS &&
         (unsigned)wish->read_only <= IST_READ_ONLY_ALLOW &&
         (unsigned)wish->mutable_source <= IST_MUTABLE_COPY;
}

static bool offer_ok(const ist_offer *offer) {
  return offer->dtype >= 0 && offer->dtype < 64 &&
         offer->grant >= IST_GRANT_WRITABLE &&
         offer->grant <= IST_GRANT_READ_ONLY &&
         (offer->layout & ~(uint32_t)IST_LAYOUT_ANY) == 0 &&
         offer->nbytes <= INT64_MAX;
}

ist_code ist_route_plan(const ist_offer *offer, const ist_capability *target,
                        const ist_wish *wish, ist_receipt *out,
                        ist_error *err) {
  if (!ist__struct_ok(offer) || !ist__struct_ok(target) ||
      !ist__struct_ok(out)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a route could not be planned: offer, target or out "
                         "is NULL or has no struct_size; needs all three");
  }
  plan p;
  ist__struct_read(&p.from, sizeof p.from, offer);
  ist__struct_read(&p.to, sizeof p.to, target);
  ist__struct_read(&p.wish, sizeof p.wish, wish);
  p.receipt = (ist_receipt){.struct_size = sizeof p.receipt};
  if (!offer_ok(&p.from) || !wish_ok(&p.wish)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a route could not be planned: a field of offer or "
                         "wish is out of range; needs a dtype number, a grant "
                         "and values of the enums");
  }
  // Memory in which two indices share an address is never written through.
  if ((p.from.layout & IST_LAYOUT_OVERLAP) != 0) {
    p.from.grant = IST_GRANT_READ_ONLY;
  }
  plan_route(&p);
  ist__struct_write(out, &p.receipt, sizeof p.receipt);
  return IST_OK;
}
