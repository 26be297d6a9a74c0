// SPDX-License-Identifier: Apache-2.0
// strided_convert.c: a conversion of any layout: along a line where both sides
// lie in order, else by boxes: gathered into a cache, converted there, put in
// their place.

#include "tensor/strided_convert.h"

#include <assert.h>
#include <string.h>

#include "tensor/ranges.h"
#include "tensor/strided_copy.h"

enum {
  // Elements of a box, at most: 32 KiB of float64. Of these it spans 64 along
  // the dimension that is closest in the source and 64 along that in the
  // target, where they differ: whole cache lines on both sides.
  box_count = 4096,
};

typedef struct work {
  const ist__copy_engine *engine;
  const ist__conversion *conversion;
  const ist__view *source;
  const ist__view *target;
  int64_t box[IST_MAX_NDIM];    // extents of a box that is not at an edge
  int64_t boxes[IST_MAX_NDIM];  // along each dimension
} work;

static bool is_packed(const ist__view *view) {
  return view->dtype.bits < 8 && !view->padded;
}

bool ist__strided_convert_takes(const ist__view *source,
                                const ist__view *target) {
  if (target->layout != IST_LAYOUT_ROW_MAJOR) return false;
  return source->layout == IST_LAYOUT_ROW_MAJOR ||
         (!is_packed(source) && !is_packed(target));
}

// Elements first and on of a row-major view, as a line; first is a multiple of
// 8, so that packed ones begin at a byte.
static ist__view line_of(const ist__view *view, uint64_t first,
                         uint64_t count) {
  unsigned bits = view->padded ? 8 : view->dtype.bits;
  ist__view line;
  memset(&line, 0, offsetof(ist__view, shape));
  line.data = ist__view_address(view) +
              (bits < 8 ? first / 8 * bits : first * (bits / 8));
  line.dtype = view->dtype;
  line.dtype_number = view->dtype_number;
  line.ndim = 1;
  line.padded = view->padded;
  line.count = count;
  line.nbytes = (count * bits + 7) / 8;
  line.shape[0] = (int64_t)count;
  line.strides[0] = 1;
  return line;
}

// The same elements one to a byte, in a buffer.
static ist__view padded_like(const ist__view *line, void *buffer) {
  ist__view padded;
  ist__view_copy(line, &padded);
  padded.data = buffer;
  padded.byte_offset = 0;
  padded.padded = true;
  padded.nbytes = padded.count;
  return padded;
}

// At most box_count elements of a line, through buffers where they are packed.
static void convert_piece(const work *w, uint64_t first, uint64_t count) {
  unsigned char unpacked[box_count];
  unsigned char converted[box_count];
  ist__view from = line_of(w->source, first, count);
  ist__view to = line_of(w->target, first, count);
  const void *in = from.data;
  void *out = to.data;
  if (is_packed(&from)) {
    ist__view padded = padded_like(&from, unpacked);
    ist__strided_copy(w->engine, &from, &padded);
    in = unpacked;
  }
  if (is_packed(&to)) out = converted;
  ist__conversion_run(w->conversion, in, out, (size_t)count, false);
  if (is_packed(&to)) {
    ist__view padded = padded_like(&to, converted);
    ist__strided_copy(w->engine, &padded, &to);
  }
}

// Elements from first to before end, both sides row-major.
static uint64_t convert_line(void *self, uint64_t first, uint64_t end) {
  const work *w = self;
  if (is_packed(w->source) || is_packed(w->target)) {
    for (uint64_t i = first; i < end; i += box_count) {
      convert_piece(w, i, end - i < box_count ? end - i : box_count);
    }
    return end - first;
  }
  const ist__conversion *c = w->conversion;
  bool stream = w->target->nbytes > IST__STREAM_BYTES;
  ist__conversion_run(c, ist__view_address(w->source) + first * c->from_size,
                      ist__view_address(w->target) + first * c->to_size,
                      (size_t)(end - first), stream);
  return end - first;
}

// ---- boxes

static int64_t magnitude(int64_t n) {
  return n < 0 ? -n : n;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Chooses the extents of a box of at most room elements: first a side of the
// target's closest dimension, the last, and one of the source's; then as much
// as fits, from the last on. Returns how many boxes there are.
static uint64_t choose_boxes(work *w, int64_t room) {
  int32_t ndim = w->source->ndim;
  const int64_t *shape = w->source->shape;
  const int64_t *strides = w->source->strides;
  int32_t closest = ndim - 1;
  for (int32_t i = ndim - 1; i >= 0; i--) {
    w->box[i] = 1;
    if (shape[i] > 1 && (shape[closest] == 1 ||
                         magnitude(strides[i]) < magnitude(strides[closest]))) {
      closest = i;
    }
  }
  int64_t side = 1;
  while (4 * side * side <= room) side *= 2;
  w->box[ndim - 1] = least(shape[ndim - 1], side);
  w->box[closest] = least(shape[closest], side);
  for (int32_t i = 0; i < ndim; i++) room /= w->box[i];
  uint64_t count = 1;
  for (int32_t i = ndim - 1; i >= 0; i--) {
    int64_t more = least(room, (shape[i] + w->box[i] - 1) / w->box[i]);
    w->box[i] = least(shape[i], w->box[i] * more);
    if (more > 1) room /= more;
    w->boxes[i] = (shape[i] + w->box[i] - 1) / w->box[i];
    count *= (uint64_t)w->boxes[i];
  }
  return count;
}

// The part of a view that a box with a number covers; never whole in order, as
// far as a copy sees it.
static void cover(const work *w, const ist__view *view, uint64_t number,
                  ist__view *out) {
  ist__view_copy(view, out);
  int64_t offset = 0;
  out->count = 1;
  for (int32_t i = view->ndim - 1; i >= 0; i--) {
    int64_t first = (int64_t)(number % (uint64_t)w->boxes[i]) * w->box[i];
    number /= (uint64_t)w->boxes[i];
    out->shape[i] = least(w->box[i], view->shape[i] - first);
    out->count *= (uint64_t)out->shape[i];
    offset += first * view->strides[i];
  }
  int64_t size = view->padded ? 1 : view->dtype.bits / 8;
  out->data = ist__view_address(view) + offset * size;
  out->byte_offset = 0;
  out->nbytes = out->count * (uint64_t)size;
  out->layout = IST_LAYOUT_GAPS;
}

// A part's elements in order, in a buffer.
static void in_order(const ist__view *part, void *buffer, ist__view *out) {
  ist__view_copy(part, out);
  out->data = buffer;
  out->layout = IST_LAYOUT_ROW_MAJOR;
  int64_t stride = 1;
  for (int32_t i = part->ndim - 1; i >= 0; i--) {
    out->strides[i] = stride;
    stride *= part->shape[i];
  }
}

// Boxes from first to before end; their elements are of whole bytes.
static uint64_t convert_boxes(void *self, uint64_t first, uint64_t end) {
  const work *w = self;
  _Alignas(64) unsigned char gathered[box_count * sizeof(uint64_t)];
  _Alignas(64) unsigned char converted[box_count * sizeof(uint64_t)];
  uint64_t done = 0;
  for (uint64_t number = first; number < end; number++) {
    ist__view from, to, in, out;
    cover(w, w->source, number, &from);
    cover(w, w->target, number, &to);
    in_order(&from, gathered, &in);
    in_order(&to, converted, &out);
    ist__strided_copy(w->engine, &from, &in);
    ist__conversion_run(w->conversion, gathered, converted, (size_t)from.count,
                        false);
    ist__strided_copy(w->engine, &out, &to);
    done += from.count;
  }
  return done;
}

// How the work is cut: elements of a line, or boxes.
static ist__ranges cut(work *w) {
  const ist__view *to = w->target;
  uint64_t bits = to->padded ? 8 : to->dtype.bits;
  ist__ranges ranges = {.units = to->count, .work = w};
  uint64_t step = ist__range_step(w->engine, to->count, bits);
  if (w->source->layout == IST_LAYOUT_ROW_MAJOR) {
    ranges.count = to->count;
    ranges.step = step;
    ranges.task = convert_line;
  } else {
    // A round is a range of each thread: no box is more than a range.
    uint64_t box = step < box_count ? step : box_count;
    ranges.count = choose_boxes(w, (int64_t)box);
    ranges.step = step / box;
    ranges.task = convert_boxes;
  }
  return ranges;
}

ist_code ist__strided_convert(const ist__copy_engine *engine, ist__watch *watch,
                              const ist__conversion *conversion,
                              const ist__view *source, const ist__view *target,
                              ist_error *err) {
  assert(ist__strided_convert_takes(source, target));
  assert(source->count == target->count);
  work w = {.engine = engine,
            .conversion = conversion,
            .source = source,
            .target = target};
  if (source->count == 0) return IST_OK;
  ist__ranges ranges = cut(&w);
  if (ist__ranges_run(engine, watch, &ranges)) return IST_OK;
  return ist__watch_error(watch, err);
}
