// SPDX-License-Identifier: Apache-2.0
// route.c: the one decision: how does this tensor cross to that memory. A pure
// function of two capability records and a wish; its whole truth table is
// tests/golden/route.txt.

#include "bridge/route.h"

#include "base/error.h"
#include "base/structs.h"
#include "tensor/dtype.h"
#include "tensor/layout.h"

typedef struct plan {
  const ist_offer *from;
  const ist_capability *to;
  const ist_wish *wish;
  ist_grant grant;    // the offer's, overlap counted in
  bool transposable;  // only the order of its dimensions is in the way
  ist__decision *out;
} plan;

static bool can(const ist_capability *memory, uint32_t what) {
  return (memory->can & what) == what;
}

static void because_of(plan *p, int32_t id, uint64_t actual, uint64_t needed) {
  ist__decision *r = p->out;
  if (r->reason_count == IST_MAX_REASONS) return;
  r->reasons[r->reason_count++] =
      (ist_reason){id, (int64_t)actual, (int64_t)needed};
}

static void because(plan *p, int32_t id) {
  because_of(p, id, 0, 0);
}

static void refuse(plan *p, ist_code code, int32_t reason) {
  because(p, reason);
  p->out->route = IST_ROUTE_REFUSE;
  p->out->code = code;
}

// Both sides see one memory by one kind of address.
static bool shares_addresses(const plan *p) {
  const ist_capability *from = p->from->memory, *to = p->to;
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
  uint64_t needed = p->to->alignment;
  if (needed <= 1) return true;
  if (p->from->address == 0) return p->from->nbytes == 0;
  return p->from->address % needed == 0;
}

static bool is_small(int32_t dtype) {
  const ist__dtype *row = ist__dtype_at(dtype);
  return row != NULL && row->bits < 8;
}

// Must elements below a byte lie otherwise than they do?
static bool repacks(const plan *p) {
  if (!is_small(p->from->dtype)) return false;
  switch (p->wish->packing) {
    case IST_PACKING_PADDED:
      return !p->from->padded;
    case IST_PACKING_PACKED:
    case IST_PACKING_PAIRS:
      return p->from->padded;
    case IST_PACKING_AS_IS:
      break;
  }
  return p->from->padded && !can(p->to, IST_CAN_PADDED);
}

// The consumer counts this dtype by pairs.
static bool by_pairs(const plan *p) {
  const ist__dtype *dtype = ist__dtype_at(p->from->dtype);
  return p->wish->packing == IST_PACKING_PAIRS && dtype != NULL &&
         dtype->code == kDLFloat4_e2m1fn;
}

static bool check_packing(plan *p) {
  if (repacks(p)) {
    because(p, p->from->padded ? IST__REASON_PADDED : IST__REASON_PACKED);
    return false;
  }
  if (!by_pairs(p) || p->from->pairs == IST_PAIRS_WHOLE) return true;
  because(p, IST__REASON_PAIRS_APART);
  return false;
}

// The layouts that the target views. Packed sub-byte elements are viewed in
// other than row-major order only by those who take any, or whole pairs: the
// orders of dimensions that an XLA plugin takes are of whole bytes.
static uint32_t viewed_layouts(const plan *p) {
  bool packed = is_small(p->from->dtype) && !p->from->padded;
  bool any = p->to->layouts == IST_LAYOUT_ANY ||
             (by_pairs(p) && p->from->pairs == IST_PAIRS_WHOLE);
  return packed && !any ? IST_LAYOUT_ROW_MAJOR : p->to->layouts;
}

// What stands against the layout, each noted.
static uint32_t check_layout(plan *p) {
  static const struct {
    uint32_t layout;
    int32_t reason;
  } kinds[] = {{IST_LAYOUT_PERMUTED, IST__REASON_PERMUTED},
               {IST_LAYOUT_GAPS, IST__REASON_GAPS},
               {IST_LAYOUT_NEGATIVE, IST__REASON_NEGATIVE},
               {IST_LAYOUT_OVERLAP, IST__REASON_OVERLAP}};
  uint32_t bad = p->from->layout & ~viewed_layouts(p);
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if ((bad & kinds[i].layout) != 0) because(p, kinds[i].reason);
  }
  return bad;
}

// Can the memory be shared, wishes aside? Notes each thing in the way.
static bool can_view(plan *p) {
  if (p->from->in_place) {
    return p->wish->packing == IST_PACKING_AS_IS || check_packing(p);
  }
  if (!can(p->to, IST_CAN_ADOPT)) {
    because(p, IST__REASON_NO_VIEWS);
    return false;
  }
  if (!shares_addresses(p)) {
    because(p, IST__REASON_NO_ADDRESS);
    return false;
  }
  uint32_t bad = check_layout(p);
  bool ok = true;
  if (!is_aligned(p)) {
    because_of(p, IST__REASON_UNALIGNED, alignment_of(p->from->address),
               p->to->alignment);
    ok = false;
  }
  ok = check_packing(p) && ok;
  p->transposable = ok && bad == IST_LAYOUT_PERMUTED;
  return ok && bad == 0;
}

typedef enum verdict {
  COPY,
  SHARE
} verdict;

// The consumer ignores READ_ONLY and the source must not be written: the right
// column of the table "who may write through an alias" (docs/routes.md).
static verdict judge_ignorer(plan *p) {
  bool immutable = p->grant == IST_GRANT_IMMUTABLE;
  switch (p->wish->read_only) {
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
  if (p->grant == IST_GRANT_WRITABLE) {
    if (p->wish->mutable_source == IST_MUTABLE_COPY) {
      because(p, IST__REASON_PRIVATE_ASKED);
      return COPY;
    }
    because(p, IST__REASON_WRITES_SHOW);
    return SHARE;
  }
  if (!can(p->to, IST_CAN_HONOUR_READ_ONLY)) return judge_ignorer(p);
  because(p, IST__REASON_KEPT_READ_ONLY);
  return SHARE;
}

// Would it be shared, were it not for the order of its dimensions? Then that is
// worth telling: a caller can permute them for nothing.
static void tell_transpose(plan *p) {
  ist__decision aside = {.reason_count = 0};
  plan other = *p;
  other.out = &aside;
  if (p->transposable && judge_view(&other) == SHARE) {
    because_of(p, IST__REASON_TRANSPOSABLE, (uint64_t)p->from->order, 0);
  }
}

// Bytes of the elements as they lie at the target.
static uint64_t bytes_there(const plan *p) {
  const ist_offer *from = p->from;
  if (!repacks(p) || from->count == 0) return from->nbytes;
  uint64_t bits = ist__dtype_at(from->dtype)->bits;
  if (!from->padded) return from->count;
  return from->count / 8 * bits + (from->count % 8 * bits + 7) / 8;
}

static void add_hop(plan *p, uint64_t nbytes) {
  ist__decision *r = p->out;
  r->hop_bytes[r->hops++] = nbytes;
  bool fits = nbytes <= UINT64_MAX - r->bytes_moved;  // an offer can be wild
  r->bytes_moved = fits ? r->bytes_moved + nbytes : UINT64_MAX;
}

// The copies that are made, by whether the host can read the source at its
// address and write the target at its own. A backend copies out what it holds,
// packed as it holds it, and takes in what is dense; what must be gathered or
// repacked is copied by the host besides.
static void plan_hops(plan *p, bool host_reads, bool host_writes, bool peer) {
  uint64_t there = bytes_there(p);
  bool dense = p->from->layout == IST_LAYOUT_ROW_MAJOR && !repacks(p);
  p->out->route = IST_ROUTE_COPY;
  if (host_writes ? host_reads || !repacks(p) : host_reads && dense) {
    add_hop(p, there);
  } else if (!host_writes && peer) {
    because(p, IST__REASON_PEER);
    p->out->peer = true;
    add_hop(p, there);
  } else {
    because(p, IST__REASON_STAGED);
    p->out->route = IST_ROUTE_STAGE;
    if (!host_reads) add_hop(p, p->from->nbytes);
    if (host_reads || repacks(p)) add_hop(p, there);
    if (!host_writes) add_hop(p, there);
  }
}

// ask: copy=never, which refuses what a copy alone could do.
static void plan_copy(plan *p, bool ask) {
  const ist_capability *from = p->from->memory, *to = p->to;
  bool host_reads = can(from, IST_CAN_HOST_ADDRESS | IST_CAN_LEND);
  bool host_writes = can(to, IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS);
  bool peer = p->from->peer && can(from, IST_CAN_PEER) && !repacks(p);
  if (!host_reads && !peer && !can(from, IST_CAN_COPY_OUT)) {
    refuse(p, IST_ERR_NO_ROUTE, IST__REASON_UNREADABLE);
    return;
  }
  if (!host_writes && !peer && !can(to, IST_CAN_COPY_IN)) {
    refuse(p, IST_ERR_NO_ROUTE, IST__REASON_UNWRITABLE);
    return;
  }
  if (ask) {
    refuse(p, IST_ERR_COPY_NEEDED, IST__REASON_NEVER_COPY);
    return;
  }
  plan_hops(p, host_reads, host_writes, peer);
}

// read_only=refuse looks at who takes it and from whom, not at whether this
// address happens to be viewable: the answer must not hang on luck.
static bool write_refused(const plan *p) {
  return p->wish->read_only == IST_READ_ONLY_REFUSE &&
         p->grant != IST_GRANT_WRITABLE &&
         !can(p->to, IST_CAN_HONOUR_READ_ONLY);
}

static void plan_route(plan *p) {
  const ist_offer *from = p->from;
  if ((p->to->dtypes >> from->dtype & 1) == 0) {
    refuse(p, IST_ERR_TARGET_DTYPE, IST__REASON_NO_DTYPE);
    return;
  }
  if (by_pairs(p) && from->pairs == IST_PAIRS_ODD) {
    refuse(p, IST_ERR_LANES, IST__REASON_ODD);
    return;
  }
  if (p->wish->packing == IST_PACKING_PADDED && is_small(from->dtype) &&
      !can(p->to, IST_CAN_PADDED)) {
    refuse(p, IST_ERR_TARGET_DTYPE, IST__REASON_NO_PADDED);
    return;
  }
  if (p->wish->copy == IST_COPY_ALWAYS) {
    because(p, IST__REASON_COPY_ASKED);
    plan_copy(p, false);
    return;
  }
  if (write_refused(p)) {
    refuse(p, IST_ERR_READ_ONLY, IST__REASON_WRITE_REFUSED);
    return;
  }
  verdict answer = can_view(p) ? judge_view(p) : COPY;
  tell_transpose(p);
  if (answer == SHARE) {
    because(p, from->in_place ? IST__REASON_IN_PLACE : IST__REASON_VIEWED);
    p->out->in_place = from->in_place;
    p->out->route = IST_ROUTE_ALIAS;
    p->out->read_only = p->grant != IST_GRANT_WRITABLE;
  } else {
    plan_copy(p, p->wish->copy == IST_COPY_NEVER);
  }
}

static bool wish_ok(const ist_wish *wish) {
  return (unsigned)wish->copy <= IST_COPY_ALWAYS &&
         (unsigned)wish->read_only <= IST_READ_ONLY_ALLOW &&
         (unsigned)wish->mutable_source <= IST_MUTABLE_COPY &&
         (unsigned)wish->packing <= IST_PACKING_PAIRS;
}

static bool offer_ok(const ist_offer *offer) {
  int32_t order[IST_MAX_NDIM];
  if (offer->order != 0 && ist__layout_order_read(offer->order, order) == 0) {
    return false;
  }
  return offer->dtype >= 0 && offer->dtype < 64 &&
         offer->grant >= IST_GRANT_WRITABLE &&
         offer->grant <= IST_GRANT_READ_ONLY &&
         (offer->layout & ~(uint32_t)IST_LAYOUT_ANY) == 0 &&
         (unsigned)offer->pairs <= IST_PAIRS_WHOLE &&
         offer->nbytes <= INT64_MAX && offer->count <= INT64_MAX;
}

void ist__route_decide(const ist_offer *offer, const ist_capability *target,
                       const ist_wish *wish, ist__decision *out) {
  out->route = IST_ROUTE_REFUSE;
  out->code = IST_OK;
  out->hops = 0;
  out->reason_count = 0;
  out->bytes_moved = 0;
  for (int i = 0; i < IST__MOST_HOPS; i++) out->hop_bytes[i] = 0;
  out->read_only = false;
  out->in_place = false;
  out->peer = false;
  plan p = {offer, target, wish, offer->grant, false, out};
  // Memory in which two indices share an address is never written through.
  if ((offer->layout & IST_LAYOUT_OVERLAP) != 0) p.grant = IST_GRANT_READ_ONLY;
  plan_route(&p);
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
  ist_code fits = ist__struct_check(wish, "ist_wish", err);
  if (fits != IST_OK) return fits;
  ist_offer from;
  ist_capability to;
  ist_wish asked;
  ist__struct_read(&from, sizeof from, offer);
  ist_capability memory;
  ist__struct_read(&memory, sizeof memory, from.memory);
  ist__struct_read(&to, sizeof to, target);
  ist__struct_read(&asked, sizeof asked, wish);
  bool known = ist__struct_ok(from.memory);
  from.memory = &memory;
  if (!known || !offer_ok(&from) || !wish_ok(&asked)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a route could not be planned: a field of offer or "
                         "wish is out of range; needs a dtype number, a grant, "
                         "an order_code of ist_fit and values of the enums");
  }
  ist__decision decision;
  ist__route_decide(&from, &to, &asked, &decision);
  ist__decision_receipt(&decision, NULL, NULL, out);
  return IST_OK;
}
