// SPDX-License-Identifier: Apache-2.0
// copy_plan.c: drop, order and merge dimensions until as much as possible is
// one run or one plane.

#include "tensor/copy_plan.h"

#include <assert.h>

// The widest item that the inner loops move.
#define WIDEST_ITEM 16

static int64_t magnitude(int64_t n) {
  return n < 0 ? -n : n;
}

// Walks an axis from its other end.
static void flip(ist__copy_plan *p, ist__axis *a) {
  p->from += (a->extent - 1) * a->from;
  p->to += (a->extent - 1) * a->to;
  a->from = -a->from;
  a->to = -a->to;
}

// Puts an axis before those with smaller steps in the target, so that writes
// run forward.
static void insert_axis(ist__copy_plan *p, ist__axis a) {
  int32_t place = p->count++;
  while (place > 0 && p->axes[place - 1].to < a.to) {
    p->axes[place] = p->axes[place - 1];
    place--;
  }
  p->axes[place] = a;
}

static void take_axes(const ist__view *source, const ist__view *target,
                      ist__copy_plan *p) {
  for (int32_t i = 0; i < target->ndim; i++) {
    ist__axis a = {target->shape[i], source->strides[i] * p->item,
                   target->strides[i] * p->item};
    if (a.extent == 1) continue;
    if (a.to < 0) flip(p, &a);
    insert_axis(p, a);
  }
}

// Merges neighbours that step as one on both sides.
static void merge_axes(ist__copy_plan *p) {
  int32_t kept = 0;
  for (int32_t i = 1; i < p->count; i++) {
    ist__axis *outer = &p->axes[kept];
    const ist__axis inner = p->axes[i];
    if (outer->from == inner.from * inner.extent &&
        outer->to == inner.to * inner.extent) {
      *outer = (ist__axis){outer->extent * inner.extent, inner.from, inner.to};
    } else {
      p->axes[++kept] = inner;
    }
  }
  if (p->count > 0) p->count = kept + 1;
}

// A few items that lie together on both sides are one wider item: two floats
// are moved as one of 8 bytes, and a plane of such pairs is transposed.
static void widen_item(ist__copy_plan *p) {
  if (p->count < 2) return;
  const ist__axis *last = &p->axes[p->count - 1];
  bool together = last->from == p->item && last->to == p->item;
  if (!together || last->extent > WIDEST_ITEM / p->item) return;
  int64_t wide = p->item * last->extent;
  if ((wide & (wide - 1)) != 0) return;
  p->item = wide;
  p->count--;
}

// Moves an axis next to the innermost one.
static void make_rows(ist__copy_plan *p, int32_t at) {
  ist__axis rows = p->axes[at];
  for (int32_t i = at; i < p->count - 2; i++) p->axes[i] = p->axes[i + 1];
  p->axes[p->count - 2] = rows;
}

// The axis, other than the innermost, along which the source lies closest; a
// source that does not move along an axis gains nothing there, nor does one
// that is there to fill a plane.
static int32_t closest_in_source(const ist__copy_plan *p) {
  int32_t best = -1;
  for (int32_t i = p->count - 2; i >= 0; i--) {
    int64_t step = magnitude(p->axes[i].from);
    if (step == 0 || p->axes[i].extent == 1) continue;
    if (best < 0 || step < magnitude(p->axes[best].from)) best = i;
  }
  return best;
}

// Rows that are not worth a call each, in bytes and in items.
#define SHORT_LINE 256
#define SHORT_RUN 16
// A plane of fewer items costs more by itself than its items do.
#define TINY_PLANE 48

static ist__axis *rows_of(ist__copy_plan *p) {
  return &p->axes[p->count - 2];
}

static ist__axis *columns_of(ist__copy_plan *p) {
  return &p->axes[p->count - 1];
}

// Of the outer axes, the one along which the source lies close goes next to the
// innermost, where blocks make use of it. Where the target lies close too, or
// the source does not move, a row is one run.
static void choose_plane(ist__copy_plan *p) {
  const ist__axis *columns = columns_of(p);
  p->way = IST__PLANE_RUNS;
  if (columns->from == p->item && columns->to == p->item &&
      columns->extent * p->item <= SHORT_LINE) {
    p->way = IST__PLANE_LINES;
    return;
  }
  int32_t rows = closest_in_source(p);
  if (rows < 0 || columns->from == 0 ||
      magnitude(p->axes[rows].from) >= magnitude(columns->from)) {
    return;
  }
  make_rows(p, rows);
  ist__axis *chosen = rows_of(p);
  p->way = IST__PLANE_TILES;
  if (magnitude(chosen->from) == p->item && columns->to == p->item) {
    if (chosen->from < 0) flip(p, chosen);
    p->way = IST__PLANE_TRANSPOSE;
  }
}

// The longest outer axis, or -1 when none is longer than least.
static int32_t longest_outer(const ist__copy_plan *p, int64_t least) {
  int32_t best = -1;
  for (int32_t i = p->count - 3; i >= 0; i--) {
    if (p->axes[i].extent <= least) continue;
    least = p->axes[i].extent;
    best = i;
  }
  return best;
}

// A plane with few items, or with few items in a row, is walked the other way:
// along its long side, or along many such planes.
static void lengthen_runs(ist__copy_plan *p) {
  int64_t rows = rows_of(p)->extent, columns = columns_of(p)->extent;
  if (p->way == IST__PLANE_LINES) {
    int32_t many = rows < 4 ? longest_outer(p, 8) : -1;
    if (many >= 0) make_rows(p, many);
    return;
  }
  int32_t many = rows * columns < TINY_PLANE
                     ? longest_outer(p, rows > columns ? rows : columns)
                     : -1;
  if (many >= 0) {
    ist__axis batch = p->axes[many];
    for (int32_t i = many; i < p->count - 1; i++) p->axes[i] = p->axes[i + 1];
    *columns_of(p) = batch;
    p->way = IST__PLANE_BATCH;
  } else if (p->way == IST__PLANE_RUNS && columns < SHORT_RUN &&
             rows > columns) {
    ist__axis long_side = *rows_of(p);
    *rows_of(p) = *columns_of(p);
    *columns_of(p) = long_side;
    p->way = IST__PLANE_TILES;
  }
}

static int32_t size_number(int64_t item) {
  int32_t number = 0;
  while (item > 1) {
    item >>= 1;
    number++;
  }
  assert(number < IST__ITEM_SIZES);
  return number;
}

// Axes of extent 1 in front, until there is a plane.
static void fill_plane(ist__copy_plan *p) {
  while (p->count < 2) {
    if (p->count == 1) p->axes[1] = p->axes[0];
    int32_t at = p->count == 1 ? 0 : p->count;
    p->axes[at] = (ist__axis){1, p->item, p->item};
    p->count++;
  }
}

void ist__copy_plan_make(const ist__view *source, const ist__view *target,
                         ist__copy_plan *out) {
  out->from = ist__view_address(source);
  out->to = ist__view_address(target);
  out->item = target->padded ? 1 : target->dtype.bits / 8;
  out->count = 0;
  take_axes(source, target, out);
  merge_axes(out);
  widen_item(out);
  fill_plane(out);
  choose_plane(out);
  lengthen_runs(out);
  out->number = size_number(out->item);
}
