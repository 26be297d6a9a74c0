// SPDX-License-Identifier: Apache-2.0
// tiles.c: follows each dimension of a shape through the tiles of its layout:
// it becomes parts, each with a step along one axis of the tiled shape. At the
// end the axes are dense in memory, so that each part has a stride.

#include "tensor/tiles.h"

#include <string.h>

#include "base/checked.h"
#include "tensor/layout.h"

enum {
  MAX_AXES = 2 * IST_MAX_NDIM,
  MAX_TILES = 16  // XLA's backends use up to three
};

// Index i along the part (0 to extent - 1) is at i * step along its axis, and
// stands for i * weight of its dimension's index.
typedef struct part {
  int32_t dim;
  int32_t axis;
  int64_t extent;
  int64_t step;
  int64_t weight;
} part;

// The shape after some tiles: axes from the most major one, and where the
// parts lie. Parts of one dimension stand in order, the most major one first.
typedef struct state {
  int32_t axes;
  int32_t parts;
  bool lost;  // parts could not be followed: only the axes count
  int64_t room[MAX_AXES];
  part part[IST_MAX_NDIM];
} state;

static int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// The shape in the layout's order. False when that is no permutation.
static bool begin(const ist__tiling *in, state *s) {
  uint64_t seen = 0;
  memset(s, 0, sizeof *s);
  s->axes = in->ndim;
  for (int32_t axis = 0; axis < in->ndim; axis++) {
    int64_t d = in->minor_to_major[in->ndim - 1 - axis];
    if (d < 0 || d >= in->ndim || (seen >> d & 1) != 0) return false;
    seen |= UINT64_C(1) << d;
    s->room[axis] = in->shape[d];
    if (in->shape[d] <= 1) continue;
    s->part[s->parts++] = (part){(int32_t)d, axis, in->shape[d], 1, 1};
  }
  return true;
}

// Puts axes of extent 1 before the others, until there are that many.
static bool widen(state *s, int32_t axes) {
  int32_t more = axes - s->axes;
  if (more <= 0) return true;
  if (axes > MAX_AXES) return false;
  memmove(s->room + more, s->room, (size_t)s->axes * sizeof s->room[0]);
  for (int32_t i = 0; i < more; i++) s->room[i] = 1;
  for (int32_t i = 0; i < s->parts; i++) s->part[i].axis += more;
  s->axes = axes;
  return true;
}

// Joins an axis with the next more minor one. False at an overflow.
static bool join(state *s, int32_t axis) {
  int64_t minor = s->room[axis + 1];
  if (!ist__mul_i64(s->room[axis], minor, &s->room[axis])) return false;
  for (int32_t i = axis + 1; i + 1 < s->axes; i++) s->room[i] = s->room[i + 1];
  s->axes--;
  for (int32_t i = 0; i < s->parts; i++) {
    part *p = &s->part[i];
    if (p->axis == axis && !ist__mul_i64(p->step, minor, &p->step)) {
      return false;
    }
    if (p->axis > axis) p->axis--;
  }
  return true;
}

// Takes part number i apart: its inner is the first n of its indices, at the
// same step; its outer counts those. Where n does not divide the extent the
// last inner one is not full, which only a common stride can mend (see close).
static bool take_apart(state *s, int32_t i, int64_t n) {
  if (s->parts == IST_MAX_NDIM) return false;
  memmove(&s->part[i + 1], &s->part[i],
          (size_t)(s->parts - i) * sizeof s->part[0]);
  s->parts++;
  part *outer = &s->part[i], *inner = &s->part[i + 1];
  outer->extent = ceil_div(outer->extent, n);
  outer->step *= n;  // at most the axis's room
  outer->weight *= n;
  inner->extent = n;
  return true;
}

// Cuts an axis by t: its parts go to the axis outer or to the axis inner, which
// begin at 0 again. Parts that lie on both are lost.
static void cut(state *s, int32_t axis, int64_t t, int32_t outer,
                int32_t inner) {
  int64_t inside = 0;  // the largest index along the inner axis
  for (int32_t i = 0; i < s->parts && !s->lost; i++) {
    part *p = &s->part[i];
    if (p->axis != axis) continue;
    int64_t last = (p->extent - 1) * p->step;
    if (p->step % t == 0) {
      p->step /= t;
      p->axis = outer;
    } else if (last < t) {
      p->axis = inner;
      inside += last;
    } else if (p->step < t && t % p->step == 0 &&
               take_apart(s, i, t / p->step)) {
      i--;  // the two are looked at next: each lies on one side
    } else {
      s->lost = true;
    }
    // What reaches beyond the tile carries into the outer axis.
    if (inside >= t) s->lost = true;
  }
}

// Cuts by one tile.
static bool apply(state *s, const int64_t *tile, int32_t rank) {
  if (!widen(s, rank)) return false;
  int64_t left[IST_MAX_NDIM];
  int32_t count = 0;
  int32_t first = s->axes - rank;
  for (int32_t k = 0; k < rank; k++) {
    if (tile[k] == IST__TILE_COMBINE) {
      if (k + 1 == rank || !join(s, first + count)) return false;
      continue;
    }
    if (tile[k] < 1) return false;
    left[count++] = tile[k];
  }
  if (s->axes + count > MAX_AXES) return false;
  // The outer axes keep their numbers; the inner ones come after them all.
  for (int32_t k = 0; k < count; k++) {
    int32_t outer = first + k, inner = s->axes + k;
    cut(s, outer, left[k], outer, inner);
    s->room[inner] = left[k];
    s->room[outer] = ceil_div(s->room[outer], left[k]);
  }
  s->axes += count;
  return true;
}

// Gives the parts their strides. False at an overflow.
static bool settle(state *s, uint64_t *room) {
  int64_t dense = 1;
  bool empty = false;
  for (int32_t axis = s->axes - 1; axis >= 0; axis--) {
    for (int32_t i = 0; i < s->parts && !s->lost; i++) {
      part *p = &s->part[i];
      if (p->axis == axis && !ist__mul_i64(p->step, dense, &p->step)) {
        return false;
      }
    }
    if (s->room[axis] == 0) empty = true;
    if (s->room[axis] > 1 && !ist__mul_i64(dense, s->room[axis], &dense)) {
      return false;
    }
  }
  *room = empty ? 0 : (uint64_t)dense;
  return true;
}

// Does the outer part step as far as the inner one would, had it no end?
static bool lie_as_one(const part *outer, const part *inner) {
  int64_t step;
  return ist__mul_i64(inner->step, outer->weight / inner->weight, &step) &&
         step == outer->step;
}

// Appends the parts of a dimension, those that lie as one joined. False when
// there is no room, or parts that are not full stay apart.
static bool close(const state *s, int32_t dim, int64_t extent,
                  ist__untiled *out) {
  int32_t first = out->ndim;
  int64_t product = 1;  // above extent where a part is not full
  const part *before = NULL;
  for (int32_t i = 0; i < s->parts; i++) {
    const part *p = &s->part[i];
    if (p->dim != dim) continue;
    if (!ist__mul_i64(product, p->extent, &product)) return false;
    if (before != NULL && lie_as_one(before, p)) {
      out->shape[out->ndim - 1] *= p->extent;  // at most product
      out->strides[out->ndim - 1] = p->step;
    } else {
      if (out->ndim == IST_MAX_NDIM) return false;
      out->of[out->ndim] = dim;
      out->shape[out->ndim] = p->extent;
      out->strides[out->ndim++] = p->step;
    }
    before = p;
  }
  if (before == NULL) {
    if (out->ndim == IST_MAX_NDIM) return false;
    out->of[out->ndim] = dim;
    out->strides[out->ndim++] = 1;  // of extent 1: made normal in the end
  }
  bool one = out->ndim == first + 1;
  if (one) out->shape[first] = extent;
  return one || product == extent;
}

// A dimension of extent 1 has the stride that a dense tensor of the same
// inner dimensions has, as everywhere.
static void normalise(ist__untiled *out) {
  int64_t dense = 1;
  for (int32_t i = out->ndim - 1; i >= 0; i--) {
    if (out->shape[i] <= 1) out->strides[i] = dense;
    if (out->shape[i] > 1) dense *= out->shape[i];  // fits: at most room
  }
}

static ist__tiled_as tell(const ist__tiling *in, state *s, ist__untiled *out) {
  if (!settle(s, &out->room)) return IST__TILED_AS_NOTHING;
  uint64_t bits;
  if (!ist__mul_u64(out->room, in->bits, &bits) ||
      !ist__add_u64(bits, 7, &bits)) {
    return IST__TILED_AS_NOTHING;
  }
  out->nbytes = bits / 8;
  if (out->room == 0) {
    out->ndim = in->ndim;
    for (int32_t i = 0; i < in->ndim; i++) {
      out->shape[i] = in->shape[i];
      out->of[i] = i;
    }
    return ist__layout_row_major(in->ndim, in->shape, out->strides)
               ? IST__TILED_AS_STRIDES
               : IST__TILED_AS_NOTHING;
  }
  if (s->lost) return IST__TILED_AS_OPAQUE;
  for (int32_t i = 0; i < in->ndim; i++) {
    if (!close(s, i, in->shape[i], out)) return IST__TILED_AS_OPAQUE;
  }
  normalise(out);
  return out->ndim == in->ndim ? IST__TILED_AS_STRIDES : IST__TILED_AS_SPLIT;
}

// Where joined dimensions are cut askew and the pieces happen to lie as one, it
// is called opaque all the same. It is no layout when the order is no
// permutation, a tile has no dimension or more than can be, an extent below 1
// or nothing to combine with, or a size overflows.
ist__tiled_as ist__layout_from_tiles(const ist__tiling *in, ist__untiled *out) {
  state s;
  ist__tiled_as as = IST__TILED_AS_NOTHING;
  memset(out, 0, sizeof *out);
  bool ok = in->ndim >= 0 && in->ndim <= IST_MAX_NDIM &&
            in->tile_count <= MAX_TILES && begin(in, &s);
  const int64_t *tile = in->tile_dims;
  for (size_t i = 0; ok && i < in->tile_count; i++) {
    size_t rank = in->tile_ranks[i];
    ok = rank > 0 && rank <= IST_MAX_NDIM && apply(&s, tile, (int32_t)rank);
    tile += rank;
  }
  if (ok) as = tell(in, &s, out);
  if (as == IST__TILED_AS_NOTHING) memset(out, 0, sizeof *out);
  return as;
}
