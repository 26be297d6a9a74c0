// SPDX-License-Identifier: Apache-2.0
// route_fuzz.c: any numbers as an offer, a capability and a wish, of callers
// built with any version of the header, are refused or decided, and what is
// decided keeps what was wished and can be said in one line.

#include <isthmus/isthmus.h>
#include <string.h>

#include "fuzz/fuzz_input.h"
#include "tensor/dtype.h"

// The bytes as they are.
static void fill(fuzz_input *in, void *to, size_t size) {
  unsigned char *bytes = to;
  for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)fuzz_take(in, 1);
}

// Any size that a caller's header may have had, the whole struct mostly. None
// cuts a pointer in two.
static size_t any_size(fuzz_input *in, size_t size) {
  size_t wanted = (size_t)fuzz_take(in, 1) / 8 * 8;
  return wanted < size ? wanted : size;
}

static void check_words(const ist_receipt *r) {
  char text[512];
  static char json[8192];
  require(ist_route_name(r->route) != NULL);
  for (uint32_t i = 0; i < r->reason_count; i++) {
    require(ist_reason_name(r->reasons[i].id) != NULL);
    size_t length = ist_reason_text(&r->reasons[i], text, sizeof text);
    require(length > 0 && length < sizeof text && strchr(text, '\n') == NULL);
    require(ist_reason_text(&r->reasons[i], text, 9) == length);
    require(strlen(text) == 8);
  }
  require(ist_receipt_json(r, json, sizeof json) < sizeof json);
}

static bool same(const ist_receipt *a, const ist_receipt *b) {
  for (uint32_t i = 0; i < a->reason_count; i++) {
    const ist_reason *x = &a->reasons[i], *y = &b->reasons[i];
    if (x->id != y->id || x->actual != y->actual || x->needed != y->needed) {
      return false;
    }
  }
  return a->route == b->route && a->code == b->code && a->hops == b->hops &&
         a->bytes_moved == b->bytes_moved && a->read_only == b->read_only &&
         a->reason_count == b->reason_count;
}

// What of a record is read: nothing beyond its size.
static uint32_t can_of(const ist_capability *memory) {
  bool told = memory->struct_size >= offsetof(ist_capability, alignment);
  return told ? memory->can : 0;
}

static bool has(uint32_t can, uint32_t what) {
  return (can & what) == what;
}

static uint64_t plus(uint64_t a, uint64_t b) {
  return b <= UINT64_MAX - a ? a + b : UINT64_MAX;
}

// The bytes of a receipt by its hops: the last writes what the target gets, one
// before it the same, and the first, where only a backend reads the source,
// what the source holds.
static void check_bytes(const ist_offer *offer, const ist_capability *target,
                        const ist_wish *wish, const ist_receipt *r) {
  const ist__dtype *dtype = ist__dtype_at(offer->dtype);
  uint32_t from = can_of(offer->memory), to = can_of(target);
  bool reads = has(from, IST_CAN_HOST_ADDRESS | IST_CAN_LEND);
  bool writes = has(to, IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS);
  bool arrives = wish->packing == IST_PACKING_AS_IS
                     ? offer->padded && has(to, IST_CAN_PADDED)
                     : wish->packing == IST_PACKING_PADDED;
  bool repacks = dtype != NULL && dtype->bits < 8 && arrives != offer->padded;
  uint64_t last = offer->nbytes;
  if (repacks && offer->count != 0) {
    uint64_t bits = arrives ? 8 : dtype->bits, count = offer->count;
    last = count / 8 * bits + (count % 8 * bits + 7) / 8;
  }
  uint64_t bytes = r->hops > 0 ? last : 0;
  if (r->hops > 2) bytes = plus(bytes, last);
  if (r->hops > 1) bytes = plus(bytes, reads ? last : offer->nbytes);
  require(r->bytes_moved == bytes);
  require(r->hops < 3 || (!reads && !writes && repacks));
  if (r->route == IST_ROUTE_ALIAS && !offer->in_place) require(!repacks);
}

static void check_answer(const ist_offer *offer, const ist_capability *target,
                         const ist_wish *wish, const ist_receipt *r) {
  require((r->route == IST_ROUTE_REFUSE) == (r->code != IST_OK));
  require(r->reason_count > 0 && r->reason_count <= IST_MAX_REASONS);
  require(r->hops <= 3);
  require((r->route == IST_ROUTE_STAGE) == (r->hops > 1));
  check_bytes(offer, target, wish, r);
  require((r->route == IST_ROUTE_ALIAS || r->route == IST_ROUTE_REFUSE) ==
          (r->hops == 0));
  if (wish->copy == IST_COPY_NEVER) require(r->hops == 0);
  if (wish->copy == IST_COPY_ALWAYS) require(r->route != IST_ROUTE_ALIAS);
  check_words(r);
}

typedef struct question {
  ist_offer offer;
  ist_capability memory, target;
  ist_wish wish;
} question;

// An offer and a wish as they come, or in range, which decides more.
static void make(fuzz_input *in, question *q) {
  uint64_t raw = fuzz_take(in, 1);
  memset(q, 0, sizeof *q);
  fill(in, &q->memory, sizeof q->memory);
  fill(in, &q->target, sizeof q->target);
  if ((raw & 1) != 0) {
    fill(in, &q->offer, sizeof q->offer);
  } else {
    q->offer.layout = (uint32_t)fuzz_below(in, 16);
    q->offer.dtype = fuzz_below(in, 64);
    q->offer.grant = (ist_grant)(1 + fuzz_below(in, 3));
    q->offer.address = fuzz_take(in, 8);
    q->offer.nbytes = fuzz_take(in, 4);
    q->offer.order = (int64_t)fuzz_take(in, 2);
    q->offer.pairs = (ist_pairs)fuzz_below(in, 3);
    q->offer.count = fuzz_take(in, 4);
  }
  if ((raw & 2) != 0) {
    fill(in, &q->wish, sizeof q->wish);
  } else {
    q->wish.copy = (ist_copy)fuzz_below(in, 3);
    q->wish.read_only = (ist_read_only)fuzz_below(in, 4);
    q->wish.mutable_source = (ist_mutable_source)fuzz_below(in, 2);
    q->wish.packing = (ist_packing)fuzz_below(in, 4);
  }
  // What a bool holds is the compiler's promise, not a number from outside.
  uint64_t facts = fuzz_take(in, 1);
  q->offer.in_place = (facts & 1) != 0;
  q->offer.peer = (facts & 2) != 0;
  q->offer.padded = (facts & 4) != 0;
  q->offer.struct_size = any_size(in, sizeof q->offer);
  q->memory.struct_size = any_size(in, sizeof q->memory);
  q->target.struct_size = any_size(in, sizeof q->target);
  q->wish.struct_size = any_size(in, sizeof q->wish);
  q->offer.memory = (facts & 8) != 0 ? NULL : &q->memory;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input in = {data, size};
  question q;
  static const ist_receipt empty = {.struct_size = sizeof empty};
  ist_receipt receipt = empty, again = empty;
  ist_error err;
  make(&in, &q);
  ist_code code = ist_route_plan(&q.offer, &q.target, &q.wish, &receipt, &err);
  if (code != IST_OK) {
    require(err.code == code && strchr(err.message, '\n') == NULL);
    require(same(&receipt, &empty));
    return 0;
  }
  // Only what both sides' structs hold was read.
  if (q.offer.struct_size < sizeof q.offer ||
      q.wish.struct_size < sizeof q.wish) {
    return 0;
  }
  check_answer(&q.offer, &q.target, &q.wish, &receipt);
  require(ist_route_plan(&q.offer, &q.target, &q.wish, &again, &err) == IST_OK);
  require(same(&again, &receipt));
  return 0;
}
