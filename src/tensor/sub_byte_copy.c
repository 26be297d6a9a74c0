// SPDX-License-Identifier: Apache-2.0
// sub_byte_copy.c: elements narrower than a byte, one at a time; whole bytes
// where both sides are packed alike.

#include "tensor/sub_byte_copy.h"

#include <string.h>

// Where element n (counted from element 0, negative below it) begins.
typedef struct spot {
  unsigned char *byte;
  unsigned shift;
} spot;

static spot find(const ist__view *view, int64_t n) {
  unsigned char *start = (unsigned char *)ist__view_address(view);
  if (view->padded) return (spot){start + n, 0};
  // Fits: extents end at 2^60 bytes. Rounded down, below element 0 too.
  int64_t bit = n * view->dtype.bits;
  int64_t byte = bit >= 0 ? bit / 8 : -((7 - bit) / 8);
  return (spot){start + byte, (unsigned)(bit - byte * 8)};
}

static unsigned load(spot at, unsigned bits) {
  unsigned value = (unsigned)*at.byte >> at.shift;
  if (at.shift + bits > 8) value |= (unsigned)at.byte[1] << (8 - at.shift);
  return value & ((1U << bits) - 1);
}

static void store(spot at, unsigned bits, unsigned value) {
  unsigned mask = ((1U << bits) - 1) << at.shift;
  unsigned shifted = value << at.shift;
  *at.byte = (unsigned char)((*at.byte & ~mask) | (shifted & 0xFFU));
  if (at.shift + bits > 8) {
    at.byte[1] = (unsigned char)((at.byte[1] & ~(mask >> 8)) | (shifted >> 8));
  }
}

static void copy_element(const ist__view *source, int64_t from,
                         const ist__view *target, int64_t to) {
  unsigned bits = target->dtype.bits;
  unsigned value = load(find(source, from), bits);
  spot at = find(target, to);
  if (target->padded) {
    *at.byte = (unsigned char)value;
  } else {
    store(at, bits, value);
  }
}

// Bits after the last element of a dense packed target.
static void clear_tail(const ist__view *target) {
  unsigned used = (unsigned)(target->count % 8 * target->dtype.bits % 8);
  if (used == 0) return;
  unsigned char *last =
      (unsigned char *)ist__view_address(target) + target->nbytes - 1;
  *last = (unsigned char)(*last & ((1U << used) - 1));
}

static void copy_elements(const ist__view *source, const ist__view *target,
                          uint64_t first, uint64_t end) {
  int64_t index[IST_MAX_NDIM];
  int64_t from = 0;
  int64_t to = 0;
  uint64_t rest = first;
  for (int32_t i = target->ndim - 1; i >= 0; i--) {
    index[i] = (int64_t)(rest % (uint64_t)target->shape[i]);
    rest /= (uint64_t)target->shape[i];
    from += index[i] * source->strides[i];
    to += index[i] * target->strides[i];
  }
  for (uint64_t n = first; n < end; n++) {
    copy_element(source, from, target, to);
    for (int32_t i = target->ndim - 1; i >= 0; i--) {
      from += source->strides[i];
      to += target->strides[i];
      if (++index[i] < target->shape[i]) break;
      from -= index[i] * source->strides[i];
      to -= index[i] * target->strides[i];
      index[i] = 0;
    }
  }
}

// Row-major on both sides, packed on one, widths that divide a byte: a byte at
// a time.
static void unpack(const ist__view *packed, const ist__view *padded,
                   uint64_t first, uint64_t end) {
  const unsigned char *from = (const unsigned char *)ist__view_address(packed);
  unsigned char *to = (unsigned char *)ist__view_address(padded);
  unsigned bits = packed->dtype.bits;
  unsigned mask = (1U << bits) - 1;
  for (uint64_t n = first; n < end; n++) {
    uint64_t bit = n * bits;
    to[n] = (unsigned char)((unsigned)from[bit / 8] >> bit % 8 & mask);
  }
}

static void pack(const ist__view *padded, const ist__view *packed,
                 uint64_t begin, uint64_t end) {
  const unsigned char *from = (const unsigned char *)ist__view_address(padded);
  unsigned char *to = (unsigned char *)ist__view_address(packed);
  unsigned bits = packed->dtype.bits;
  unsigned mask = (1U << bits) - 1;
  uint64_t in_byte = 8 / bits;
  for (uint64_t first = begin; first < end; first += in_byte) {
    uint64_t left = end - first;
    uint64_t count = left < in_byte ? left : in_byte;
    unsigned byte = 0;
    for (uint64_t k = 0; k < count; k++) {
      byte |= (from[first + k] & mask) << k * bits;
    }
    to[first / in_byte] = (unsigned char)byte;
  }
}

// Both sides packed alike. first is a multiple of 8: a whole byte.
static void copy_whole(const ist__view *source, const ist__view *target,
                       uint64_t first, uint64_t end) {
  uint64_t start = first / 8 * target->dtype.bits;
  uint64_t stop = (end * target->dtype.bits + 7) / 8;
  memcpy(ist__view_address(target) + start, ist__view_address(source) + start,
         (size_t)(stop - start));
}

void ist__sub_byte_copy(const ist__view *source, const ist__view *target,
                        uint64_t first, uint64_t end) {
  bool dense = (target->layout & ~(uint32_t)IST_LAYOUT_PERMUTED) == 0;
  bool in_order = (source->layout | target->layout) == IST_LAYOUT_ROW_MAJOR;
  bool divides = 8 % target->dtype.bits == 0;
  if (in_order && source->padded == target->padded) {
    copy_whole(source, target, first, end);
  } else if (in_order && divides && target->padded) {
    unpack(source, target, first, end);
  } else if (in_order && divides) {
    pack(source, target, first, end);
  } else {
    copy_elements(source, target, first, end);
  }
  if (dense && !target->padded && end == target->count) clear_tail(target);
}
