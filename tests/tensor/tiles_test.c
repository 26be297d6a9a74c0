// SPDX-License-Identifier: Apache-2.0
// tiles_test.c: tiled layouts are told by strides where strides reach every
// element at its address, as XLA's definition of tiling gives it.

#include "tensor/tiles.h"

#include "support/layout_oracle.h"
#include "support/testing.h"

enum {
  combine = -7  // IST__TILE_COMBINE in the tables below
};

typedef struct tiled_case {
  int32_t ndim;
  int64_t shape[4];
  int64_t minor_to_major[4];
  size_t ranks[3];
  int64_t tiles[8];
  ist__tiled_as as;
  uint64_t room;
  int32_t out_ndim;
  int64_t out_shape[6];
  int64_t out_strides[6];
} tiled_case;

static ist__tiled_as ask(const tiled_case *c, ist__untiled *out) {
  int64_t tiles[8];
  size_t count = 0;
  for (int i = 0; i < 8; i++) {
    tiles[i] = c->tiles[i] == combine ? IST__TILE_COMBINE : c->tiles[i];
  }
  while (count < 3 && c->ranks[count] != 0) count++;
  ist__tiling tiling = {c->ndim, c->shape, c->minor_to_major, tiles, c->ranks,
                        count,   32};
  return ist__layout_from_tiles(&tiling, out);
}

static const tiled_case cases[] = {
    // No tile, one that changes nothing, one of the whole.
    {2, {3, 4}, {1, 0}, {0}, {0}, IST__TILED_AS_STRIDES, 12, 2, {3, 4}, {4, 1}},
    {2, {3, 4}, {0, 1}, {0}, {0}, IST__TILED_AS_STRIDES, 12, 2, {3, 4}, {1, 3}},
    {2,
     {3, 4},
     {1, 0},
     {2},
     {1, 1},
     IST__TILED_AS_STRIDES,
     12,
     2,
     {3, 4},
     {4, 1}},
    {2,
     {3, 4},
     {1, 0},
     {2},
     {3, 4},
     IST__TILED_AS_STRIDES,
     12,
     2,
     {3, 4},
     {4, 1}},
    // Tiles of whole rows follow one another as rows do.
    {2,
     {16, 128},
     {1, 0},
     {2},
     {8, 128},
     IST__TILED_AS_STRIDES,
     2048,
     2,
     {16, 128},
     {128, 1}},
    {1, {1000}, {0}, {1}, {128}, IST__TILED_AS_STRIDES, 1024, 1, {1000}, {1}},
    {0, {0}, {0}, {1}, {128}, IST__TILED_AS_STRIDES, 128, 0, {0}, {0}},
    // Padding at the end of what a tile has room for.
    {2,
     {3, 100},
     {1, 0},
     {2},
     {8, 128},
     IST__TILED_AS_STRIDES,
     1024,
     2,
     {3, 100},
     {128, 1}},
    // More columns than a tile: two tiles beside each other.
    {2,
     {16, 256},
     {1, 0},
     {2},
     {8, 128},
     IST__TILED_AS_SPLIT,
     4096,
     4,
     {2, 8, 2, 128},
     {2048, 128, 1024, 1}},
    {2,
     {256, 16},
     {0, 1},
     {2},
     {8, 128},
     IST__TILED_AS_SPLIT,
     4096,
     4,
     {2, 128, 2, 8},
     {1024, 1, 2048, 128}},
    // Tiles of tiles, as bf16 has them.
    {2,
     {16, 128},
     {1, 0},
     {2, 2},
     {8, 128, 2, 1},
     IST__TILED_AS_SPLIT,
     2048,
     3,
     {8, 2, 128},
     {256, 1, 2}},
    // Padding inside.
    {2,
     {12, 200},
     {1, 0},
     {2},
     {8, 128},
     IST__TILED_AS_OPAQUE,
     4096,
     0,
     {0},
     {0}},
    // XLA's own example of joined dimensions: [2,7,8,11] like [112,11].
    {4,
     {2, 7, 8, 11},
     {3, 2, 1, 0},
     {4},
     {combine, combine, 112, 11},
     IST__TILED_AS_STRIDES,
     1232,
     4,
     {2, 7, 8, 11},
     {616, 88, 11, 1}},
    // A cut across joined dimensions: no padding, and no strides either.
    {3,
     {5, 3, 4},
     {2, 1, 0},
     {3},
     {5, combine, 6},
     IST__TILED_AS_OPAQUE,
     60,
     0,
     {0},
     {0}},
    // Nothing there.
    {2,
     {0, 4},
     {1, 0},
     {2},
     {8, 128},
     IST__TILED_AS_STRIDES,
     0,
     2,
     {0, 4},
     {4, 1}},
};

static void tiles__are_told_by_strides_where_they_can_be(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    const tiled_case *c = &cases[i];
    ist__untiled out;
    ist__tiled_as as = ask(c, &out);
    if (as != c->as) fail_msg("case %zu: told as %d", i, (int)as);
    if (c->room != 0) assert_int_equal(out.room, c->room);
    assert_int_equal(out.nbytes, out.room * 4);
    if (as == IST__TILED_AS_OPAQUE) continue;
    assert_int_equal(out.ndim, c->out_ndim);
    for (int32_t k = 0; k < out.ndim; k++) {
      if (out.shape[k] != c->out_shape[k] ||
          out.strides[k] != c->out_strides[k]) {
        fail_msg("case %zu: dimension %d has extent %d, stride %d", i, (int)k,
                 (int)out.shape[k], (int)out.strides[k]);
      }
    }
  }
}

// A random layout with up to three tiles, of a shape small enough to be walked.
typedef struct random_tiling {
  int64_t shape[4], order[4], tiles[12];
  size_t ranks[3];
  bool joins;
  ist__tiling tiling;
} random_tiling;

static void shuffle(uint64_t *seed, int64_t *order, int32_t ndim) {
  for (int32_t i = 0; i < ndim; i++) order[i] = i;
  for (int32_t i = ndim - 1; i > 0; i--) {
    int64_t k = random_below(seed, i + 1);
    int64_t swap = order[i];
    order[i] = order[k];
    order[k] = swap;
  }
}

static void make_random(uint64_t *seed, random_tiling *r) {
  int32_t ndim = (int32_t)random_below(seed, 4);
  size_t count = (size_t)random_below(seed, 4), used = 0;
  r->joins = false;
  for (int32_t i = 0; i < ndim; i++) r->shape[i] = 1 + random_below(seed, 7);
  shuffle(seed, r->order, ndim);
  for (size_t t = 0; t < count; t++) {
    r->ranks[t] = 1 + (size_t)random_below(seed, 4);
    for (size_t k = 0; k < r->ranks[t]; k++) {
      bool join = k + 1 < r->ranks[t] && random_below(seed, 6) == 0;
      r->joins = r->joins || join;
      r->tiles[used++] = join ? IST__TILE_COMBINE : 1 + random_below(seed, 6);
    }
  }
  r->tiling =
      (ist__tiling){ndim, r->shape, r->order, r->tiles, r->ranks, count, 8};
}

static void tiles__reach_every_element_where_the_definition_puts_it(
    void **state) {
  (void)state;
  uint64_t seed = 11;
  int seen[4] = {0};
  for (int round = 0; round < 20000; round++) {
    random_tiling r;
    make_random(&seed, &r);
    ist__untiled out;
    ist__tiled_as as = ist__layout_from_tiles(&r.tiling, &out);
    seen[as]++;
    if (as == IST__TILED_AS_NOTHING || !tiling_is_right(&r.tiling, as, &out)) {
      fail_msg("round %d: an element is elsewhere", round);
    }
    // What strides of the same rank can tell is told so, joined dimensions
    // aside.
    if (as != IST__TILED_AS_STRIDES && !r.joins &&
        tiling_is_linear(&r.tiling)) {
      fail_msg("round %d: told as %d", round, (int)as);
    }
  }
  for (int as = 1; as < 4; as++) assert_true(seen[as] > 100);
}

static void tiles__from_outside_are_not_believed(void **state) {
  (void)state;
  static const int64_t big = INT64_C(1) << 40;
  const tiled_case bad[] = {
      {2, {3, 4}, {0, 0}, {2}, {2, 2}, 0, 0, 0, {0}, {0}},
      {2, {3, 4}, {2, 0}, {0}, {0}, 0, 0, 0, {0}, {0}},
      {2, {3, 4}, {-1, 0}, {0}, {0}, 0, 0, 0, {0}, {0}},
      {2, {3, 4}, {1, 0}, {2}, {0, 2}, 0, 0, 0, {0}, {0}},
      {2, {3, 4}, {1, 0}, {2}, {2, -1}, 0, 0, 0, {0}, {0}},
      {2, {3, 4}, {1, 0}, {2}, {2, combine}, 0, 0, 0, {0}, {0}},
      {2, {3, 4}, {1, 0}, {65}, {2, 2}, 0, 0, 0, {0}, {0}},
      {2, {3, 4}, {1, 0}, {SIZE_MAX}, {2, 2}, 0, 0, 0, {0}, {0}},
      {2, {big, big}, {1, 0}, {2}, {2, 2}, 0, 0, 0, {0}, {0}},
      {2, {big, big}, {1, 0}, {2}, {combine, 2}, 0, 0, 0, {0}, {0}},
      {1, {4}, {0}, {1}, {INT64_MAX}, 0, 0, 0, {0}, {0}},  // bytes overflow
      {2, {3, 4}, {1, 0}, {2}, {big, big}, 0, 0, 0, {0}, {0}},
      {65, {3, 4}, {1, 0}, {0}, {0}, 0, 0, 0, {0}, {0}},
      {-1, {3, 4}, {1, 0}, {0}, {0}, 0, 0, 0, {0}, {0}},
  };
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    ist__untiled out, zero;
    memset(&out, 0xEE, sizeof out);
    memset(&zero, 0, sizeof zero);
    if (ask(&bad[i], &out) != IST__TILED_AS_NOTHING) fail_msg("case %zu", i);
    assert_memory_equal(&out, &zero, sizeof out);
  }
}

static void tiles__refuse_more_tiles_than_any_backend_has(void **state) {
  (void)state;
  int64_t shape[] = {4}, order[] = {0}, tiles[17];
  size_t ranks[17];
  for (int i = 0; i < 17; i++) {
    tiles[i] = 1;
    ranks[i] = 1;
  }
  ist__tiling in = {1, shape, order, tiles, ranks, 16, 8};
  ist__untiled out;
  assert_int_equal(ist__layout_from_tiles(&in, &out), IST__TILED_AS_STRIDES);
  in.tile_count = 17;
  assert_int_equal(ist__layout_from_tiles(&in, &out), IST__TILED_AS_NOTHING);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles__are_told_by_strides_where_they_can_be),
      cmocka_unit_test(tiles__reach_every_element_where_the_definition_puts_it),
      cmocka_unit_test(tiles__from_outside_are_not_believed),
      cmocka_unit_test(tiles__refuse_more_tiles_than_any_backend_has),
  };
  return cmocka_run_group_tests_name("tiles", tests, NULL, NULL);
}
