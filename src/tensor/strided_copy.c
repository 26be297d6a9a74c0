// SPDX-License-Identifier: Apache-2.0
// strided_copy.c: walks the plan of a copy, a short one at once, a long one in
// ranges.

#include "tensor/strided_copy.h"

#include <assert.h>
#include <string.h>

#include "tensor/copy_plan.h"
#include "tensor/ranges.h"
#include "tensor/sub_byte_copy.h"

// Items of a tile's side where neither side is without gaps, and the least
// that a transpose is cut into.
#define TILE 64

// A plan with how it is cut: a part is a plane, or a block of one.
typedef struct walk {
  ist__copy_plan plan;
  const ist__copy_kernels *kernels;
  bool stream;        // write past the caches
  int64_t rows;       // of a part
  int64_t columns;    // of a part
  int64_t row_parts;  // of a plane
  int64_t column_parts;
  uint64_t planes;  // of the plan, as its outer axes count them
} walk;

static void copy_run(const walk *w, int64_t count, const char *from, char *to) {
  const ist__axis *columns = &w->plan.axes[w->plan.count - 1];
  ist__run run = {from, to, columns->from, columns->to, count, w->stream};
  w->kernels->run[w->plan.number](&run);
}

// Two axes whose close sides differ, in tiles: each line of the source that a
// tile touches is then used whole before it is dropped. Few rows: wider tiles.
static void copy_tiles(const walk *w, int64_t rows, int64_t columns,
                       const char *from, char *to) {
  const ist__axis *row = &w->plan.axes[w->plan.count - 2];
  const ist__axis *column = row + 1;
  int64_t most = rows < TILE ? TILE * TILE / rows : TILE;
  for (int64_t r = 0; r < rows; r += TILE) {
    int64_t row_end = rows - r < TILE ? rows : r + TILE;
    for (int64_t c = 0; c < columns; c += most) {
      int64_t width = columns - c < most ? columns - c : most;
      for (int64_t i = r; i < row_end; i++) {
        copy_run(w, width, from + i * row->from + c * column->from,
                 to + i * row->to + c * column->to);
      }
    }
  }
}

static void copy_lines(const walk *w, int64_t rows, int64_t columns,
                       const char *from, char *to) {
  const ist__axis *row = &w->plan.axes[w->plan.count - 2];
  ist__lines lines = {from,    to,   row->from,
                      row->to, rows, columns * w->plan.item};
  if (w->kernels->lines != NULL) {
    w->kernels->lines(&lines);
  } else {
    ist__copy_lines(&lines);
  }
}

// A part of a plane.
static void copy_part(const walk *w, int64_t rows, int64_t columns,
                      const char *from, char *to) {
  const ist__axis *row = &w->plan.axes[w->plan.count - 2];
  const ist__axis *column = row + 1;
  switch (w->plan.way) {
    case IST__PLANE_TRANSPOSE: {
      ist__transpose plane = {from, to,      column->from, row->to,
                              rows, columns, w->stream};
      w->kernels->transpose[w->plan.number](&plane);
      return;
    }
    case IST__PLANE_TILES:
      copy_tiles(w, rows, columns, from, to);
      return;
    case IST__PLANE_LINES:
      copy_lines(w, rows, columns, from, to);
      return;
    case IST__PLANE_RUNS:
    case IST__PLANE_BATCH:
      break;
  }
  for (int64_t i = 0; i < rows; i++) {
    copy_run(w, columns, from + i * row->from, to + i * row->to);
  }
}

// Where a walk stands: the index along the outer axes, and its addresses.
typedef struct spot {
  const char *from;
  char *to;
  int64_t index[IST_MAX_NDIM];
} spot;

static void find_plane(const walk *w, uint64_t number, spot *s) {
  s->from = w->plan.from;
  s->to = w->plan.to;
  for (int32_t i = w->plan.count - 3; i >= 0; i--) {
    const ist__axis *a = &w->plan.axes[i];
    s->index[i] = (int64_t)(number % (uint64_t)a->extent);
    number /= (uint64_t)a->extent;
    s->from += s->index[i] * a->from;
    s->to += s->index[i] * a->to;
  }
}

// Steps the outer axes like a counter; after the last comes the first.
static void next_plane(const walk *w, spot *s) {
  for (int32_t i = w->plan.count - 3; i >= 0; i--) {
    const ist__axis *a = &w->plan.axes[i];
    s->from += a->from;
    s->to += a->to;
    if (++s->index[i] < a->extent) return;
    s->from -= a->extent * a->from;
    s->to -= a->extent * a->to;
    s->index[i] = 0;
  }
}

static void copy_planes(const walk *w, uint64_t first, uint64_t end) {
  const ist__axis *row = &w->plan.axes[w->plan.count - 2];
  const ist__axis *column = row + 1;
  spot s;
  find_plane(w, first, &s);
  for (uint64_t n = first; n < end; n++) {
    copy_part(w, row->extent, column->extent, s.from, s.to);
    next_plane(w, &s);
  }
}

// Copies one block of a plane; returns its items.
static uint64_t copy_block(const walk *w, uint64_t number) {
  const ist__axis *row = &w->plan.axes[w->plan.count - 2];
  const ist__axis *column = row + 1;
  int64_t c;
  if (w->plan.way == IST__PLANE_BATCH) {
    assert(w->row_parts == 1);
    // All planes of some columns, which are in a cache then, come first.
    c = (int64_t)(number / w->planes) * w->columns;
    number %= w->planes;
  } else {
    c = (int64_t)(number % (uint64_t)w->column_parts) * w->columns;
    number /= (uint64_t)w->column_parts;
  }
  int64_t r = (int64_t)(number % (uint64_t)w->row_parts) * w->rows;
  number /= (uint64_t)w->row_parts;
  int64_t rows = row->extent - r < w->rows ? row->extent - r : w->rows;
  int64_t columns =
      column->extent - c < w->columns ? column->extent - c : w->columns;
  assert(rows > 0 && columns > 0);
  spot s;
  find_plane(w, number, &s);
  copy_part(w, rows, columns, s.from + r * row->from + c * column->from,
            s.to + r * row->to + c * column->to);
  return (uint64_t)(rows * columns);
}

static uint64_t copy_parts(void *work, uint64_t first, uint64_t end) {
  const walk *w = work;
  if (w->row_parts == 1 && w->column_parts == 1) {
    copy_planes(w, first, end);
    return (end - first) * (uint64_t)(w->rows * w->columns);
  }
  uint64_t items = 0;
  for (uint64_t n = first; n < end; n++) items += copy_block(w, n);
  return items;
}

static int64_t parts_of(int64_t extent, int64_t part) {
  return (extent - 1) / part + 1;
}

// Bytes of the many tiny planes that are walked together: both sides stay in a
// first cache.
#define BATCH_BYTES 8192

// A part is a whole plane.
static void leave_planes(walk *w, uint64_t items) {
  const ist__axis *plane = &w->plan.axes[w->plan.count - 2];
  w->rows = plane[0].extent;
  w->columns = plane[1].extent;
  // A division costs as much as a small copy.
  bool one = w->plan.count == 2;
  w->planes = one ? 1 : items / (uint64_t)(w->rows * w->columns);
  w->row_parts = w->column_parts = 1;
}

// A part is one row of so many tiny planes.
static void cut_batch(walk *w) {
  int32_t other = w->plan.count - 3;  // the third axis of a tiny plane
  int64_t bytes = w->rows * w->plan.item;
  if (other >= 0) bytes *= w->plan.axes[other].extent;
  int64_t most = bytes < BATCH_BYTES / TILE ? BATCH_BYTES / bytes : TILE;
  if (w->columns > most) w->columns = most;
}

// Cuts a plane into blocks of at most limit bytes; those of a transpose are as
// wide as they are high, in whole tiles, where they can be. The rows of a batch
// stay whole: they are few, and its parts are counted by columns.
static void cut_plane(walk *w, int64_t limit) {
  int64_t room = limit / w->plan.item;  // items
  int64_t least = 1;
  if (w->plan.way == IST__PLANE_TRANSPOSE || w->plan.way == IST__PLANE_TILES) {
    for (least = TILE; least * least * 4 <= room;) least *= 2;
  }
  int64_t rows = w->rows;
  if (least > rows || w->plan.way == IST__PLANE_BATCH) least = rows;
  if (w->columns > room / least) {
    w->columns = room / least;
    if (w->columns > TILE) w->columns = w->columns / TILE * TILE;
  }
  w->rows = room / w->columns;
  if (w->rows > TILE) w->rows = w->rows / TILE * TILE;
  if (w->rows > rows) w->rows = rows;
}

static void count_parts(walk *w) {
  const ist__axis *plane = &w->plan.axes[w->plan.count - 2];
  w->row_parts = parts_of(plane[0].extent, w->rows);
  w->column_parts = parts_of(plane[1].extent, w->columns);
}

// Copies a plan in ranges of at most limit bytes; false when it was cancelled.
static bool copy_ranges(const ist__copy_engine *engine, ist__watch *watch,
                        walk *w, uint64_t items) {
  uint64_t item = (uint64_t)w->plan.item;
  uint64_t limit = ist__range_bytes(engine, items * item);
  cut_plane(w, (int64_t)limit);
  count_parts(w);
  uint64_t step = limit / ((uint64_t)(w->rows * w->columns) * item);
  ist__ranges ranges = {
      .count = w->planes * (uint64_t)(w->row_parts * w->column_parts),
      .step = step < 1 ? 1 : step,
      .units = items,
      .task = copy_parts,
      .work = w};
  return ist__ranges_run(engine, watch, &ranges);
}

// Is a copy done in ranges: when others take part in it or are told of it?
static bool is_cut(const ist__copy_engine *engine, const ist__watch *watch,
                   uint64_t nbytes) {
  bool others = engine != NULL && engine->desks != NULL;
  return (others || ist__watch_is_on(watch)) && nbytes > IST__ROUND_BYTES;
}

static bool copy_bytes(const ist__copy_engine *engine, ist__watch *watch,
                       const ist__view *source, const ist__view *target) {
  walk w;
  ist__copy_plan_make(source, target, &w.plan);
  w.kernels = ist__copy_engine_kernels(engine);
  uint64_t item = target->padded ? 1 : target->dtype.bits / 8U;
  uint64_t nbytes = target->count * item;
  w.stream = nbytes > IST__STREAM_BYTES;
  uint64_t items = nbytes >> w.plan.number;
  leave_planes(&w, items);
  if (w.plan.way == IST__PLANE_BATCH) {
    cut_batch(&w);
    count_parts(&w);
  }
  if (is_cut(engine, watch, nbytes)) {
    return copy_ranges(engine, watch, &w, items);
  }
  if (w.plan.count == 2) {
    copy_part(&w, w.rows, w.columns, w.plan.from, w.plan.to);
  } else {
    (void)copy_parts(&w, 0, w.planes * (uint64_t)w.column_parts);
  }
  return ist__watch_step(watch, 1, 1);
}

// Two views of elements narrower than a byte.
typedef struct bits_walk {
  const ist__copy_kernels *kernels;
  const ist__view *source;
  const ist__view *target;
} bits_walk;

static uint64_t copy_bit_range(void *work, uint64_t first, uint64_t end) {
  const bits_walk *w = work;
  ist__sub_byte_copy(w->kernels, w->source, w->target, first, end);
  return end - first;
}

static bool copy_bits(const ist__copy_engine *engine, ist__watch *watch,
                      const ist__view *source, const ist__view *target) {
  bits_walk w = {ist__copy_engine_kernels(engine), source, target};
  uint64_t width = target->padded ? 8 : target->dtype.bits;
  // Only then do two ranges share no byte.
  bool apart = target->padded || target->layout == IST_LAYOUT_ROW_MAJOR;
  ist__ranges ranges = {.count = target->count,
                        .step = ist__range_step(engine, target->count, width),
                        .units = target->count,
                        .task = copy_bit_range,
                        .work = &w,
                        .in_order = !apart};
  return ist__ranges_run(engine, watch, &ranges);
}

static bool copy(const ist__copy_engine *engine, ist__watch *watch,
                 const ist__view *source, const ist__view *target) {
  assert(ist__view_same_shape(source, target));
  if (source->count == 0) return true;
  bool bits = target->dtype.bits < 8 && !(source->padded && target->padded);
  if (bits) return copy_bits(engine, watch, source, target);
  bool line = (source->layout | target->layout) == IST_LAYOUT_ROW_MAJOR;
  // What is long is written past the caches by the inner loops.
  if (!line || target->nbytes > IST__STREAM_BYTES ||
      is_cut(engine, watch, target->nbytes)) {
    return copy_bytes(engine, watch, source, target);
  }
  memcpy(ist__view_address(target), ist__view_address(source), target->nbytes);
  return ist__watch_step(watch, 1, 1);
}

void ist__strided_copy(const ist__copy_engine *engine, const ist__view *source,
                       const ist__view *target) {
  (void)copy(engine, NULL, source, target);
}

ist_code ist__strided_copy_watched(const ist__copy_engine *engine,
                                   ist__watch *watch, const ist__view *source,
                                   const ist__view *target, ist_error *err) {
  if (copy(engine, watch, source, target)) return IST_OK;
  return ist__watch_error(watch, err);
}
