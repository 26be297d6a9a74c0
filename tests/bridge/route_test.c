// SPDX-License-Identifier: Apache-2.0
// route_test.c: the route against invariants written by hand, which a wrong
// golden file (route_table_test.c) cannot hide.

#include <string.h>

#include "support/route_parties.h"

// -------------------------------------------------------------- invariants --

// Calls check for every combination of capability bits, facts and wishes.
typedef void (*check_fn)(const ist_offer *, const ist_capability *,
                         const ist_wish *, const ist__decision *);

// Source bits 0..3, target bits 4..8, then facts.
static const uint32_t source_bits[] = {IST_CAN_LEND, IST_CAN_HOST_ADDRESS,
                                       IST_CAN_COPY_OUT, IST_CAN_PEER};
static const uint32_t target_bits[] = {
    IST_CAN_COPY_IN, IST_CAN_ADOPT, IST_CAN_HOST_ADDRESS,
    IST_CAN_HONOUR_READ_ONLY, IST_CAN_PADDED};

static uint32_t pick(const uint32_t *bits, int count, int chosen) {
  uint32_t set = 0;
  for (int i = 0; i < count; i++) {
    if ((chosen >> i & 1) != 0) set |= bits[i];
  }
  return set;
}

static void for_facts(ist_offer *offer, const ist_capability *to,
                      check_fn check) {
  for (int facts = 0; facts < 3 * 4 * 8; facts++) {
    offer->grant = (ist_grant)(1 + facts % 3);
    offer->layout = layouts[facts / 3 % 4];
    int bits = facts / 12;
    offer->address = (bits & 1) != 0 ? 4096 : 4100;
    offer->peer = (bits & 2) != 0;
    offer->in_place = (bits & 4) != 0;
    for (int w = 0; w < 24; w++) {
      ist_wish wish = wish_at(w);
      ist__decision r;
      ist__route_decide(offer, to, &wish, &r);
      check(offer, to, &wish, &r);
    }
  }
}

// The same of elements below a byte, for how they lie and are wished for.
static void for_small_facts(const ist_capability *memory,
                            const ist_capability *to, check_fn check) {
  for (int facts = 0; facts < 2 * 2 * 2 * 2 * 2 * 3; facts++) {
    ist_offer offer = small_offer(memory, (facts & 1) != 0);
    offer.layout = layouts[facts >> 1 & 1];
    offer.peer = (facts & 4) != 0;
    offer.in_place = (facts & 8) != 0;
    if ((facts & 16) != 0) offer.grant = IST_GRANT_READ_ONLY;
    offer.pairs = (ist_pairs)(facts / 32);
    for (int w = 0; w < 12; w++) {
      ist_wish wish = packing_wish_at(w);
      ist__decision r;
      ist__route_decide(&offer, to, &wish, &r);
      check(&offer, to, &wish, &r);
    }
  }
}

static void for_everything(check_fn check) {
  for (int s = 0; s < 16; s++) {
    for (int t = 0; t < 32; t++) {
      for (int same = 0; same < 2; same++) {
        ist_capability memory = {.struct_size = sizeof memory,
                                 .can = pick(source_bits, 4, s),
                                 .dl_device = CARD};
        ist_offer offer = {
            .struct_size = sizeof offer, .memory = &memory, .nbytes = 256};
        ist_capability to = {.struct_size = sizeof to,
                             .can = pick(target_bits, 5, t),
                             .layouts = IST_LAYOUT_PERMUTED,
                             .alignment = 64,
                             .dtypes = 1,
                             .dl_device = same ? CARD : CPU};
        for_facts(&offer, &to, check);
        to.dtypes = ~UINT64_C(0);
        for_small_facts(&memory, &to, check);
      }
    }
  }
}

static bool has(uint32_t can, uint32_t what) {
  return (can & what) == what;
}

// The target is to get a byte for each element.
static bool arrives_padded(const ist_offer *offer, const ist_capability *to,
                           const ist_wish *wish) {
  if (wish->packing == IST_PACKING_AS_IS) {
    return offer->padded && has(to->can, IST_CAN_PADDED);
  }
  return wish->packing == IST_PACKING_PADDED;
}

// The last hop writes what the target gets; before it stands at most one block
// as the source lies, where only the backend can read it, and one in order.
static void check_hops(const ist_offer *offer, const ist_capability *to,
                       const ist_wish *wish, const ist__decision *r) {
  static const uint32_t copies[] = {0, 0, 1, 2};
  uint64_t sum = 0, last = offer->nbytes;
  for (int i = 0; i < IST__MOST_HOPS; i++) sum += r->hop_bytes[i];
  assert_int_equal(r->bytes_moved, sum);
  bool reads = has(offer->memory->can, IST_CAN_HOST_ADDRESS | IST_CAN_LEND);
  bool writes = has(to->can, IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS);
  bool repacks = offer->padded != arrives_padded(offer, to, wish);
  if (offer->count == odd_count) {
    last = arrives_padded(offer, to, wish) ? odd_count : odd_packed;
  }
  bool three = r->route == IST_ROUTE_STAGE && !reads && !writes && repacks;
  assert_int_equal(r->hops, three ? 3 : copies[r->route]);
  if (r->hops == 0) {
    assert_int_equal(sum, 0);
    return;
  }
  assert_int_equal(r->hop_bytes[r->hops - 1], last);
  if (r->hops == 3) assert_int_equal(r->hop_bytes[1], last);
  if (r->hops > 1) {
    assert_int_equal(r->hop_bytes[0], reads ? last : offer->nbytes);
  }
}

static void route__counts_the_bytes_that_each_hop_writes(void **state) {
  (void)state;
  for_everything(check_hops);
}

static void check_wishes(const ist_offer *offer, const ist_capability *to,
                         const ist_wish *wish, const ist__decision *r) {
  if (wish->copy == IST_COPY_NEVER) {
    assert_true(r->bytes_moved == 0 && r->hops == 0);
  }
  if (wish->copy == IST_COPY_ALWAYS) {
    assert_int_not_equal(r->route, IST_ROUTE_ALIAS);
  }
  bool ignores = (to->can & IST_CAN_HONOUR_READ_ONLY) == 0;
  bool marked = offer->grant == IST_GRANT_READ_ONLY ||
                offer->layout == IST_LAYOUT_OVERLAP;
  if (r->route == IST_ROUTE_ALIAS && ignores && marked) {
    assert_int_equal(wish->read_only, IST_READ_ONLY_ALLOW);
  }
  if (r->route == IST_ROUTE_ALIAS) {
    assert_int_equal(r->read_only,
                     marked || offer->grant == IST_GRANT_IMMUTABLE);
  }
}

static void route__keeps_what_a_wish_promises(void **state) {
  (void)state;
  for_everything(check_wishes);
}

static void check_refusals(const ist_offer *offer, const ist_capability *to,
                           const ist_wish *wish, const ist__decision *r) {
  (void)offer;
  (void)to;
  (void)wish;
  bool refused = r->route == IST_ROUTE_REFUSE;
  assert_int_equal(refused, r->code != IST_OK);
  assert_true(r->reason_count > 0 && r->reason_count <= IST_MAX_REASONS);
  for (uint32_t i = 0; i < r->reason_count; i++) {
    assert_non_null(ist_reason_name(r->reasons[i].id));
  }
  if (refused) {
    ist_entry entry = {.struct_size = sizeof entry};
    assert_int_equal(ist_catalog_find(r->code, &entry, NULL), IST_OK);
    assert_non_null(entry.solution);
  }
}

static void route__gives_every_refusal_an_id_and_a_remedy(void **state) {
  (void)state;
  for_everything(check_refusals);
}

static int rank(ist_route route) {
  switch (route) {
    case IST_ROUTE_ALIAS:
      return 0;
    case IST_ROUTE_COPY:
      return 1;
    case IST_ROUTE_STAGE:
      return 2;
    case IST_ROUTE_REFUSE:
      break;
  }
  return 3;
}

static void check_more_is_not_worse(const ist_offer *offer,
                                    const ist_capability *to,
                                    const ist_wish *wish,
                                    const ist__decision *r) {
  for (size_t i = 0; i < sizeof source_bits / sizeof source_bits[0]; i++) {
    ist_capability memory = *offer->memory;
    memory.can |= source_bits[i];
    ist_offer more = *offer;
    more.memory = &memory;
    ist__decision better;
    ist__route_decide(&more, to, wish, &better);
    assert_true(rank(better.route) <= rank(r->route));
  }
  for (size_t i = 0; i < sizeof target_bits / sizeof target_bits[0]; i++) {
    ist_capability more = *to;
    more.can |= target_bits[i];
    ist__decision better;
    ist__route_decide(offer, &more, wish, &better);
    assert_true(rank(better.route) <= rank(r->route));
  }
}

static void route__is_never_worsened_by_a_capability_added(void **state) {
  (void)state;
  for_everything(check_more_is_not_worse);
}

static void check_sharing_is_possible(const ist_offer *offer,
                                      const ist_capability *to,
                                      const ist_wish *wish,
                                      const ist__decision *r) {
  if (r->route != IST_ROUTE_ALIAS) return;
  if (wish->packing == IST_PACKING_PAIRS) {
    assert_int_equal(offer->pairs, IST_PAIRS_WHOLE);
  }
  if (offer->in_place) return;
  assert_true((to->can & IST_CAN_ADOPT) != 0);
  assert_true((offer->memory->can & IST_CAN_LEND) != 0);
  assert_int_equal(offer->layout & ~to->layouts, 0);
  assert_int_equal(offer->address % to->alignment, 0);
  assert_true(!offer->padded || (to->can & IST_CAN_PADDED) != 0);
  assert_int_equal(offer->padded, arrives_padded(offer, to, wish));
}

static void route__aliases_only_what_the_target_can_view(void **state) {
  (void)state;
  for_everything(check_sharing_is_possible);
}

static bool tells(const ist__decision *r, const char *name) {
  for (uint32_t i = 0; i < r->reason_count; i++) {
    if (strcmp(ist_reason_name(r->reasons[i].id), name) == 0) return true;
  }
  return false;
}

// A transpose is named exactly where it alone turns another answer into an
// alias; a target that views no order of dimensions is asked too.
static void check_transposes(const ist_offer *offer, const ist_capability *to,
                             const ist_wish *wish, const ist__decision *r) {
  (void)r;
  ist_capability strict = *to;
  strict.layouts = IST_LAYOUT_ROW_MAJOR;
  for (int kind = 0; kind < 2; kind++) {
    const ist_capability *target = kind == 0 ? to : &strict;
    ist__decision as_it_is, transposed;
    ist_offer other = *offer;
    other.layout &= ~(uint32_t)IST_LAYOUT_PERMUTED;
    ist__route_decide(offer, target, wish, &as_it_is);
    ist__route_decide(&other, target, wish, &transposed);
    bool helps = as_it_is.route != IST_ROUTE_ALIAS &&
                 transposed.route == IST_ROUTE_ALIAS;
    assert_int_equal(tells(&as_it_is, "transposable"), helps);
  }
}

// A refusal that asks for a copy is made only where a copy is a way.
static void check_copy_needed(const ist_offer *offer, const ist_capability *to,
                              const ist_wish *wish, const ist__decision *r) {
  if (r->code != IST_ERR_COPY_NEEDED) return;
  ist_wish any = *wish;
  ist__decision copied;
  any.copy = IST_COPY_AUTO;
  ist__route_decide(offer, to, &any, &copied);
  assert_int_not_equal(copied.route, IST_ROUTE_REFUSE);
}

static void route__asks_for_a_copy_only_where_one_would_cross(void **state) {
  (void)state;
  for_everything(check_copy_needed);
}

static void route__names_a_transpose_where_it_alone_would_alias(void **state) {
  (void)state;
  for_everything(check_transposes);
}

// ---------------------------------------------------------- single promises --

static void route__tells_the_order_to_transpose_to(void **state) {
  (void)state;
  int64_t shape[] = {2, 3, 4}, strides[] = {1, 8, 2};
  ist_fit fit = {.struct_size = sizeof fit};
  assert_int_equal(ist_layout_fit(3, shape, strides, 0, &fit, NULL), IST_OK);
  ist_capability memory = capability(&sources[0]);
  ist_offer offer = {.struct_size = sizeof offer,
                     .memory = &memory,
                     .layout = fit.layout,
                     .grant = IST_GRANT_WRITABLE,
                     .address = 4096,
                     .nbytes = 24,
                     .order = fit.order_code};
  ist_capability to = capability(&targets[0]);
  to.layouts = IST_LAYOUT_ROW_MAJOR;
  ist_receipt r = decide(&offer, &to, NULL);
  assert_int_equal(r.route, IST_ROUTE_COPY);
  char text[200];
  ist_reason_text(&r.reasons[1], text, sizeof text);
  assert_string_equal(ist_reason_name(r.reasons[1].id), "transposable");
  assert_string_equal(
      text, "it could be viewed after transposing its dimensions to [1,2,0]");
  offer.order = 0;
  r = decide(&offer, &to, NULL);
  ist_reason_text(&r.reasons[1], text, sizeof text);
  assert_string_equal(text,
                      "it could be viewed after transposing its dimensions");
}

static void route__refuses_a_dtype_that_the_target_lacks(void **state) {
  (void)state;
  ist_capability memory = capability(&sources[0]);
  ist_offer offer = {.struct_size = sizeof offer,
                     .memory = &memory,
                     .dtype = 7,
                     .grant = IST_GRANT_WRITABLE,
                     .address = 4096,
                     .nbytes = 4};
  ist_capability to = capability(&targets[0]);
  ist_receipt r = decide(&offer, &to, NULL);
  assert_int_equal(r.code, IST_ERR_TARGET_DTYPE);
  to.dtypes = (uint64_t)1 << 7;
  r = decide(&offer, &to, NULL);
  assert_int_equal(r.route, IST_ROUTE_ALIAS);
}

static void route__views_an_empty_tensor_without_an_address(void **state) {
  (void)state;
  ist_capability memory = capability(&sources[0]);
  ist_offer offer = {.struct_size = sizeof offer,
                     .memory = &memory,
                     .grant = IST_GRANT_WRITABLE};
  ist_capability to = capability(&targets[2]);
  ist_receipt r = decide(&offer, &to, NULL);
  assert_int_equal(r.route, IST_ROUTE_ALIAS);
}

// openxla/xla#18611: found and needed alignment are in the receipt.
static void route__tells_the_alignment_found_and_needed(void **state) {
  (void)state;
  ist_capability memory = capability(&sources[0]);
  ist_offer offer = {.struct_size = sizeof offer,
                     .memory = &memory,
                     .grant = IST_GRANT_WRITABLE,
                     .address = 4096 + 16,
                     .nbytes = 64};
  ist_capability to = capability(&targets[2]);
  ist_receipt r = decide(&offer, &to, NULL);
  assert_int_equal(r.route, IST_ROUTE_COPY);
  char text[200];
  ist_reason_text(&r.reasons[0], text, sizeof text);
  assert_string_equal(ist_reason_name(r.reasons[0].id), "unaligned");
  assert_string_equal(
      text, "the address is a multiple of 16 bytes, where the target needs 64");
}

// Every way that elements of 4 bits lie, are wished for and can be kept.
typedef void (*packing_fn)(const ist_offer *, const ist_capability *,
                           const ist_wish *, const ist_receipt *);

static void for_packings(packing_fn check) {
  for (int n = 0; n < 2 * 2 * 3 * 4 * 3 * 4; n++) {
    ist_capability memory = capability(&sources[n / 96 % 3]);
    ist_capability to = capability(&targets[n / 24 % 4]);
    to.dtypes = ~UINT64_C(0);
    ist_offer offer = small_offer(&memory, n % 2 != 0);
    offer.pairs = (ist_pairs)(n / 2 % 3);
    for (int w = 0; w < 12; w++) {
      ist_wish wish = packing_wish_at(w);
      ist_receipt r = decide(&offer, &to, &wish);
      check(&offer, &to, &wish, &r);
    }
  }
}

static void check_packing(const ist_offer *offer, const ist_capability *to,
                          const ist_wish *wish, const ist_receipt *r) {
  bool can_pad = (to->can & IST_CAN_PADDED) != 0;
  bool pairs = wish->packing == IST_PACKING_PAIRS;
  bool padded = wish->packing == IST_PACKING_AS_IS
                    ? offer->padded && can_pad
                    : wish->packing == IST_PACKING_PADDED;
  if (pairs && offer->pairs == IST_PAIRS_ODD) {
    assert_int_equal(r->code, IST_ERR_LANES);
  } else if (padded && !can_pad) {
    assert_int_equal(r->code, IST_ERR_TARGET_DTYPE);
  } else if (r->route == IST_ROUTE_ALIAS) {
    assert_int_equal(padded, offer->padded);
    assert_true(!pairs || offer->pairs == IST_PAIRS_WHOLE);
  } else if (r->route == IST_ROUTE_COPY) {
    assert_int_equal(r->hops, 1);
    assert_int_equal(r->bytes_moved, padded ? odd_count : odd_packed);
  } else if (wish->copy == IST_COPY_NEVER) {
    assert_int_equal(r->code, IST_ERR_COPY_NEEDED);
  } else {
    uint64_t there = padded ? odd_count : odd_packed;
    bool reads = has(offer->memory->can, IST_CAN_HOST_ADDRESS | IST_CAN_LEND);
    bool writes = has(to->can, IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS);
    uint32_t repacked = !reads && padded != offer->padded;
    assert_int_equal(r->route, IST_ROUTE_STAGE);
    assert_int_equal(r->hops, 1 + repacked + !writes);
    assert_int_equal(r->bytes_moved,
                     (reads ? there : offer->nbytes) + (r->hops - 1) * there);
  }
}

// dmlc/dlpack#158: a copy repacks, an alias never does, nothing is guessed.
static void route__repacks_by_a_copy_or_refuses(void **state) {
  (void)state;
  for_packings(check_packing);
}

static void route__refuses_arguments_that_cannot_be(void **state) {
  (void)state;
  ist_capability memory = capability(&sources[0]);
  ist_offer good = {.struct_size = sizeof good,
                    .memory = &memory,
                    .grant = IST_GRANT_WRITABLE};
  ist_capability to = capability(&targets[0]);
  ist_receipt r = {.struct_size = sizeof r};
  ist_offer bad = good;
  bad.dtype = 64;
  assert_int_equal(ist_route_plan(&bad, &to, NULL, &r, NULL), IST_ERR_ARGUMENT);
  bad = good;
  bad.grant = IST_GRANT_FROM_SOURCE;
  assert_int_equal(ist_route_plan(&bad, &to, NULL, &r, NULL), IST_ERR_ARGUMENT);
  bad = good;
  bad.layout = 16;
  assert_int_equal(ist_route_plan(&bad, &to, NULL, &r, NULL), IST_ERR_ARGUMENT);
  static const int64_t codes[] = {-1, 15, 0x112, 0x202, 0x1012, INT64_MAX};
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    bad = good;
    bad.order = codes[i];
    assert_int_equal(ist_route_plan(&bad, &to, NULL, &r, NULL),
                     IST_ERR_ARGUMENT);
  }
  ist_wish wish = {.struct_size = sizeof wish, .copy = (ist_copy)3};
  assert_int_equal(ist_route_plan(&good, &to, &wish, &r, NULL),
                   IST_ERR_ARGUMENT);
  wish = (ist_wish){.struct_size = sizeof wish, .packing = (ist_packing)4};
  assert_int_equal(ist_route_plan(&good, &to, &wish, &r, NULL),
                   IST_ERR_ARGUMENT);
  bad = good;
  bad.pairs = (ist_pairs)3;
  assert_int_equal(ist_route_plan(&bad, &to, NULL, &r, NULL), IST_ERR_ARGUMENT);
  assert_int_equal(ist_route_plan(NULL, &to, NULL, &r, NULL), IST_ERR_ARGUMENT);
  assert_int_equal(r.route, IST_ROUTE_REFUSE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(route__keeps_what_a_wish_promises),
      cmocka_unit_test(route__counts_the_bytes_that_each_hop_writes),
      cmocka_unit_test(route__gives_every_refusal_an_id_and_a_remedy),
      cmocka_unit_test(route__is_never_worsened_by_a_capability_added),
      cmocka_unit_test(route__aliases_only_what_the_target_can_view),
      cmocka_unit_test(route__asks_for_a_copy_only_where_one_would_cross),
      cmocka_unit_test(route__names_a_transpose_where_it_alone_would_alias),
      cmocka_unit_test(route__tells_the_order_to_transpose_to),
      cmocka_unit_test(route__refuses_a_dtype_that_the_target_lacks),
      cmocka_unit_test(route__views_an_empty_tensor_without_an_address),
      cmocka_unit_test(route__tells_the_alignment_found_and_needed),
      cmocka_unit_test(route__repacks_by_a_copy_or_refuses),
      cmocka_unit_test(route__refuses_arguments_that_cannot_be),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
