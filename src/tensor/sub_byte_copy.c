// SPDX-License-Identifier: Apache-2.0
// sub_byte_copy.c: elements narrower than a byte: by kernels where both sides
// are dense, else one at a time.

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

static bool has_kernels(unsigned bits) {
  return bits == 1 || bits == 2 || bits == 4 || bits == 6;
}

// Row-major on both sides, packed on one. first is a multiple of 8: both sides
// begin with a whole byte.
static void repack(const ist__copy_kernels *kernels, const ist__view *source,
                   const ist__view *target, uint64_t first, uint64_t end) {
  const unsigned bits = target->dtype.bits;
  const unsigned char *from = (const unsigned char *)ist__view_address(source);
  unsigned char *to = (unsigned char *)ist__view_address(target);
  const uint64_t byte = first / 8 * bits;
  ist__bits work = {from + (source->padded ? first : byte),
                    to + (target->padded ? first : byte), end - first, bits,
                    target->nbytes > IST__STREAM_BYTES};
  if (target->padded) {
    kernels->unpack(&work);
  } else {
    kernels->pack(&work);
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

void ist__sub_byte_copy(const ist__copy_kernels *kernels,
                        const ist__view *source, const ist__view *target,
                        uint64_t first, uint64_t end) {
  bool dense = (target->layout & ~(uint32_t)IST_LAYOUT_PERMUTED) == 0;
  bool in_order = (source->layout | target->layout) == IST_LAYOUT_ROW_MAJOR;
  if (in_order && source->padded == target->padded) {
    copy_whole(source, target, first, end);
  } else if (in_order && has_kernels(target->dtype.bits)) {
    repack(kernels, source, target, first, end);
  } else {
    copy_elements(source, target, first, end);
  }
  if (dense && !target->padded && end == target->count) clear_tail(target);
}
