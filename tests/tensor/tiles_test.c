// SPDX-License-Identifier: Apache-2.0
// tiles_test.c: tiled layouts are told by strides where strides reach every
// element at its address, as XLA's definition of tiling gives it.

#include "tensor/tiles.h"

#include "support/testing.h"
#include "tensor/layout.h"

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

static void tiles__are_told_by_strides_where_they_can_be(void **state) {
  (void)state;
  static const tiled_case cases[] = {
      // No tile, one that changes nothing, one of the whole.
      {2,
       {3, 4},
       {1, 0},
       {0},
       {0},
       IST__TILED_AS_STRIDES,
       12,
       2,
       {3, 4},
       {4, 1}},
      {2,
       {3, 4},
       {0, 1},
       {0},
       {0},
       IST__TILED_AS_STRIDES,
       12,
       2,
       {3, 4},
       {1, 3}},
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

// The address of an index by XLA's definition, word for word: the shape and
// the index in the layout's order, then for each tile joined, cut and put
// together; at the end the tiled shape is row-major.
static int64_t address(const ist__tiling *in, const int64_t *index,
                       int64_t *room) {
  int64_t shape[64], at[64];
  int32_t n = in->ndim;
  for (int32_t i = 0; i < n; i++) {
    int64_t d = in->minor_to_major[n - 1 - i];
    shape[i] = in->shape[d];
    at[i] = index[d];
  }
  const int64_t *tile = in->tile_dims;
  for (size_t t = 0; t < in->tile_count; t++) {
    int32_t rank = (int32_t)in->tile_ranks[t];
    int64_t sizes[64];
    memcpy(sizes, tile, (size_t)rank * sizeof *tile);
    tile += rank;
    while (n < rank) {
      memmove(shape + 1, shape, (size_t)n * sizeof *shape);
      memmove(at + 1, at, (size_t)n * sizeof *at);
      shape[0] = 1;
      at[0] = 0;
      n++;
    }
    for (int32_t k = 0; k < rank; k++) {
      if (sizes[k] != IST__TILE_COMBINE) continue;
      int32_t d = n - rank + k;
      at[d + 1] += at[d] * shape[d + 1];
      shape[d + 1] *= shape[d];
      memmove(shape + d, shape + d + 1, (size_t)(n - d - 1) * sizeof *shape);
      memmove(at + d, at + d + 1, (size_t)(n - d - 1) * sizeof *at);
      memmove(sizes + k, sizes + k + 1, (size_t)(rank - k - 1) * sizeof *sizes);
      n--;
      rank--;
      k--;
    }
    for (int32_t k = 0; k < rank; k++) {
      int32_t d = n - rank + k;
      shape[n + k] = sizes[k];
      at[n + k] = at[d] % sizes[k];
      at[d] /= sizes[k];
      shape[d] = (shape[d] + sizes[k] - 1) / sizes[k];
    }
    n += rank;
  }
  int64_t sum = 0;
  *room = 1;
  for (int32_t i = 0; i < n; i++) {
    sum = sum * shape[i] + at[i];
    *room *= shape[i];
  }
  return sum;
}

// The address of the same index through the strides.
static int64_t strided(const ist__untiled *out, int32_t ndim,
                       const int64_t *index) {
  int64_t sum = 0;
  int64_t rest[4];
  memcpy(rest, index, (size_t)ndim * sizeof *index);
  for (int32_t k = out->ndim - 1; k >= 0; k--) {
    int64_t *i = &rest[out->of[k]];
    sum += *i % out->shape[k] * out->strides[k];
    *i /= out->shape[k];
  }
  return sum;
}

// Do strides of the same rank reach each address?
static bool is_linear(const ist__tiling *in) {
  int64_t index[4] = {0}, room, strides[4] = {0};
  for (int32_t i = 0; i < in->ndim; i++) {
    if (in->shape[i] < 2) continue;
    index[i] = 1;
    strides[i] = address(in, index, &room);
    index[i] = 0;
  }
  for (;;) {
    int64_t sum = 0;
    for (int32_t i = 0; i < in->ndim; i++) sum += index[i] * strides[i];
    if (sum != address(in, index, &room)) return false;
    int32_t i = in->ndim - 1;
    while (i >= 0 && ++index[i] == in->shape[i]) index[i--] = 0;
    if (i < 0) return true;
  }
}

static void check_every_address(const ist__tiling *in, const ist__untiled *out,
                                int round) {
  int64_t index[4] = {0}, room;
  for (;;) {
    int64_t expected = address(in, index, &room);
    if (strided(out, in->ndim, index) != expected) {
      fail_msg("round %d: an element is elsewhere", round);
    }
    int32_t i = in->ndim - 1;
    while (i >= 0 && ++index[i] == in->shape[i]) index[i--] = 0;
    if (i < 0) return;
  }
}

static void tiles__reach_every_element_where_the_definition_puts_it(
    void **state) {
  (void)state;
  uint64_t seed = 11;
  int seen[4] = {0};
  for (int round = 0; round < 20000; round++) {
    int64_t shape[4], order[4], tiles[12];
    size_t ranks[3], used = 0;
    bool joins = false;
    int32_t ndim = (int32_t)random_below(&seed, 4);
    for (int32_t i = 0; i < ndim; i++) {
      shape[i] = 1 + (int64_t)random_below(&seed, 7);
      order[i] = i;
    }
    for (int32_t i = ndim - 1; i > 0; i--) {
      int64_t k = random_below(&seed, i + 1);
      int64_t swap = order[i];
      order[i] = order[k];
      order[k] = swap;
    }
    size_t count = (size_t)random_below(&seed, 4);
    for (size_t t = 0; t < count; t++) {
      ranks[t] = 1 + (size_t)random_below(&seed, 4);
      for (size_t k = 0; k < ranks[t]; k++) {
        bool join = k + 1 < ranks[t] && random_below(&seed, 6) == 0;
        joins = joins || join;
        tiles[used++] =
            join ? IST__TILE_COMBINE : 1 + (int64_t)random_below(&seed, 6);
      }
    }
    ist__tiling in = {ndim, shape, order, tiles, ranks, count, 8};
    ist__untiled out;
    ist__tiled_as as = ist__layout_from_tiles(&in, &out);
    seen[as]++;
    int64_t room, zero[4] = {0};
    address(&in, zero, &room);
    assert_true(as != IST__TILED_AS_NOTHING && (int64_t)out.nbytes == room);
    if (as != IST__TILED_AS_OPAQUE) check_every_address(&in, &out, round);
    // What strides of the same rank can tell is told so, joined dimensions
    // aside.
    if (as != IST__TILED_AS_STRIDES && !joins && is_linear(&in)) {
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
