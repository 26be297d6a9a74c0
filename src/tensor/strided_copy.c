// SPDX-License-Identifier: Apache-2.0
// strided_copy.c: the plan of a copy between two strided views: drop, order and
// merge dimensions until as much as possible is one run, then walk the rest.

#include "tensor/strided_copy.h"

#include <assert.h>
#include <string.h>

#include "tensor/copy_kernels.h"
#include "tensor/sub_byte_copy.h"

// A target of more bytes than this does not fit the caches beside its source:
// it is written past them.
#define STREAM_BYTES (4 << 20)

// One dimension of both sides; steps in bytes.
typedef struct axis {
  int64_t extent;
  int64_t from;
  int64_t to;
} axis;

// What is left to walk: axes from the outermost to the innermost.
typedef struct plan {
  const char *from;
  char *to;
  size_t item;
  const ist__copy_kernels *kernels;
  int size;     // number of the item size in the kernels' tables
  bool stream;  // write past the caches
  int32_t count;
  axis axes[IST_MAX_NDIM];
} plan;

static int64_t magnitude(int64_t n) {
  return n < 0 ? -n : n;
}

// Puts an axis before those with smaller steps in the target, so that writes
// run forward; a broadcast source has its zero step innermost only if the
// target agrees.
static void insert_axis(plan *p, axis a) {
  int32_t place = p->count++;
  while (place > 0 && magnitude(p->axes[place - 1].to) < magnitude(a.to)) {
    p->axes[place] = p->axes[place - 1];
    place--;
  }
  p->axes[place] = a;
}

// Merges neighbours that step as one on both sides.
static void merge_axes(plan *p) {
  int32_t kept = 0;
  for (int32_t i = 1; i < p->count; i++) {
    axis *outer = &p->axes[kept];
    const axis inner = p->axes[i];
    if (outer->from == inner.from * inner.extent &&
        outer->to == inner.to * inner.extent) {
      *outer = (axis){outer->extent * inner.extent, inner.from, inner.to};
    } else {
      p->axes[++kept] = inner;
    }
  }
  if (p->count > 0) p->count = kept + 1;
}

// Of the outer axes, the one along which the source lies closest goes next to
// the innermost, where tiles make use of it.
static void pair_axes(plan *p) {
  int32_t last = p->count - 1;
  int32_t best = last;
  for (int32_t i = last - 1; i >= 0; i--) {
    if (magnitude(p->axes[i].from) < magnitude(p->axes[best].from)) best = i;
  }
  if (best >= last - 1) return;
  axis moved = p->axes[best];
  for (int32_t i = best; i < last - 1; i++) p->axes[i] = p->axes[i + 1];
  p->axes[last - 1] = moved;
}

static int size_number(size_t item) {
  int number = 0;
  while (item > 1) {
    item /= 2;
    number++;
  }
  assert(number < IST__ITEM_SIZES);
  return number;
}

static void make_plan(const ist__view *source, const ist__view *target,
                      plan *p) {
  p->from = ist__view_address(source);
  p->to = ist__view_address(target);
  p->item = target->padded ? 1 : target->dtype.bits / 8U;
  p->count = 0;
  p->size = size_number(p->item);
  p->stream = target->nbytes > STREAM_BYTES;
  int64_t item = (int64_t)p->item;
  for (int32_t i = 0; i < target->ndim; i++) {
    axis a = {target->shape[i], source->strides[i] * item,
              target->strides[i] * item};
    if (a.extent == 1) continue;
    // Walk the target upward: it is the side that is written.
    if (a.to < 0) {
      p->from += (a.extent - 1) * a.from;
      p->to += (a.extent - 1) * a.to;
      a.from = -a.from;
      a.to = -a.to;
    }
    insert_axis(p, a);
  }
  merge_axes(p);
  pair_axes(p);
}

static void copy_run(const plan *p, const axis *a, const char *from, char *to) {
  ist__run run = {from, to, a->from, a->to, a->extent, p->stream};
  p->kernels->run[p->size](&run);
}

// Items of a tile's side where neither side is contiguous along the rows.
enum {
  tile_extent = 64
};

// Two axes whose close sides differ, in tiles: each line of the source that a
// tile touches is then used whole before it is dropped.
static void copy_tiles(const plan *p, const axis *rows, const axis *columns,
                       const char *from, char *to) {
  for (int64_t r = 0; r < rows->extent; r += tile_extent) {
    int64_t row_end = r + tile_extent;
    if (row_end > rows->extent) row_end = rows->extent;
    for (int64_t c = 0; c < columns->extent; c += tile_extent) {
      axis part = *columns;
      part.extent = columns->extent - c;
      if (part.extent > tile_extent) part.extent = tile_extent;
      for (int64_t i = r; i < row_end; i++) {
        copy_run(p, &part, from + i * rows->from + c * columns->from,
                 to + i * rows->to + c * columns->to);
      }
    }
  }
}

// The innermost two axes of a plan with at least two.
static void copy_plane(const plan *p, const char *from, char *to) {
  const axis *rows = &p->axes[p->count - 2];
  const axis *columns = &p->axes[p->count - 1];
  int64_t item = (int64_t)p->item;
  if (rows->from == item && columns->to == item) {
    ist__transpose plane = {from,     to,           columns->from,
                            rows->to, rows->extent, columns->extent,
                            p->stream};
    p->kernels->transpose[p->size](&plane);
    return;
  }
  if (magnitude(rows->from) < magnitude(columns->from)) {
    copy_tiles(p, rows, columns, from, to);
    return;
  }
  for (int64_t i = 0; i < rows->extent; i++) {
    copy_run(p, columns, from + i * rows->from, to + i * rows->to);
  }
}

// Steps the outer axes like a counter; false when it is back at the start.
static bool next_plane(const plan *p, int64_t *index, const char **from,
                       char **to) {
  for (int32_t i = p->count - 3; i >= 0; i--) {
    const axis *a = &p->axes[i];
    if (++index[i] < a->extent) {
      *from += a->from;
      *to += a->to;
      return true;
    }
    index[i] = 0;
    *from -= (a->extent - 1) * a->from;
    *to -= (a->extent - 1) * a->to;
  }
  return false;
}

static void copy_bytes(const ist__copy_engine *engine, const ist__view *source,
                       const ist__view *target) {
  plan p;
  p.kernels = engine != NULL ? engine->kernels : &ist__copy_baseline;
  make_plan(source, target, &p);
  if (p.count == 0) {
    memcpy(p.to, p.from, p.item);
    return;
  }
  if (p.count == 1) {
    copy_run(&p, &p.axes[0], p.from, p.to);
    return;
  }
  int64_t index[IST_MAX_NDIM];
  memset(index, 0, (size_t)p.count * sizeof index[0]);
  const char *from = p.from;
  char *to = p.to;
  do {
    copy_plane(&p, from, to);
  } while (next_plane(&p, index, &from, &to));
}

void ist__strided_copy(const ist__copy_engine *engine, const ist__view *source,
                       const ist__view *target) {
  assert(ist__view_same_shape(source, target));
  if (source->count == 0) return;
  bool bits = target->dtype.bits < 8 && !(source->padded && target->padded);
  if (bits) {
    ist__sub_byte_copy(source, target);
  } else if (((source->layout | target->layout) == IST_LAYOUT_ROW_MAJOR)) {
    memcpy(ist__view_address(target), ist__view_address(source),
           target->nbytes);
  } else {
    copy_bytes(engine, source, target);
  }
}
