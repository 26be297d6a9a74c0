// SPDX-License-Identifier: Apache-2.0
// sample.c: tensors of every dtype and layout, made and read without a line of
// the library.

#include "support/sample.h"

#include <string.h>

static void count_versioned(DLManagedTensorVersioned *self) {
  sample *s = self->manager_ctx;
  atomic_fetch_add(&s->deleted, 1);
}

static void count_legacy(DLManagedTensor *self) {
  sample *s = self->manager_ctx;
  atomic_fetch_add(&s->deleted, 1);
}

static const struct {
  const char *name;
  int32_t ndim;
  int64_t shape[3];
  int64_t strides[3];
  int64_t first;  // element number of element 0
  uint32_t layout;
} layouts[SAMPLE_LAYOUTS] = {
    [SAMPLE_SCALAR] = {"scalar", 0, {0}, {0}, 0, 0},
    [SAMPLE_ROW_MAJOR] = {"row-major", 3, {2, 3, 4}, {12, 4, 1}, 0, 0},
    [SAMPLE_UNALIGNED] = {"unaligned", 3, {2, 3, 4}, {12, 4, 1}, 1, 0},
    [SAMPLE_PERMUTED] =
        {"permuted", 3, {2, 3, 4}, {1, 2, 6}, 0, IST_LAYOUT_PERMUTED},
    [SAMPLE_GAPS] = {"gaps", 2, {3, 5}, {8, 1}, 0, IST_LAYOUT_GAPS},
    [SAMPLE_NEGATIVE] =
        {"negative", 2, {3, 4}, {-4, -1}, 11, IST_LAYOUT_NEGATIVE},
    [SAMPLE_BROADCAST] =
        {"broadcast", 2, {4, 3}, {0, 1}, 0, IST_LAYOUT_OVERLAP},
    [SAMPLE_EMPTY] = {"empty", 3, {2, 0, 4}, {7, -3, 0}, 0, 0},
    [SAMPLE_ONES] = {"ones", 3, {1, 5, 1}, {-99, 1, 77}, 0, 0},
};

const char *sample_layout_name(sample_layout layout) {
  return layouts[layout].name;
}

size_t dense_size(DLDataType dtype, bool padded, uint64_t count) {
  uint64_t bits = padded && dtype.bits < 8 ? 8 : dtype.bits;
  return (size_t)((count * bits + 7) / 8);
}

// Random bytes; booleans are 0 or 1, and padded bytes hold only their element,
// since what else such a byte may hold is nobody's promise.
static void fill(sample *s, DLDataType dtype, uint64_t seed) {
  uint64_t x = seed * 2 + 1;
  unsigned char mask = 0xFF;
  if (dtype.code == kDLBool) mask = 1;
  if (s->padded) mask = (unsigned char)((1U << dtype.bits) - 1);
  for (size_t i = 0; i < sample_room; i++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    s->bytes[i] = (unsigned char)(x >> 32) & mask;
  }
}

void sample_make(sample *out, DLDataType dtype, sample_layout layout,
                 bool padded, uint64_t seed) {
  memset(out, 0, sizeof *out);
  atomic_init(&out->deleted, 0);
  out->padded = padded && dtype.bits < 8;
  out->layout = layouts[layout].layout;
  fill(out, dtype, seed);
  int32_t ndim = layouts[layout].ndim;
  out->count = 1;
  for (int32_t d = 0; d < ndim; d++) {
    out->shape[d] = layouts[layout].shape[d];
    out->strides[d] = layouts[layout].strides[d];
    out->count *= (uint64_t)out->shape[d];
  }
  // Packed elements begin on a whole byte: 8 elements are some of any width.
  uint64_t item = out->padded || dtype.bits < 8 ? 1 : dtype.bits / 8U;
  uint64_t first = (uint64_t)layouts[layout].first;
  uint64_t offset = first * item;
  if (dtype.bits < 8 && !out->padded) offset = (first * dtype.bits + 7) / 8;
  DLTensor tensor = {.data = out->bytes + 960,
                     .device = {kDLCPU, 0},
                     .ndim = ndim,
                     .dtype = dtype,
                     .shape = out->shape,
                     .strides = out->strides,
                     .byte_offset = 64 + offset};
  out->versioned = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
      .manager_ctx = out,
      .deleter = count_versioned,
      .flags = out->padded ? DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED : 0,
      .dl_tensor = tensor};
  out->legacy = (DLManagedTensor){
      .dl_tensor = tensor, .manager_ctx = out, .deleter = count_legacy};
}

unsigned char *sample_address(const sample *from) {
  const DLTensor *t = &from->versioned.dl_tensor;
  return (unsigned char *)t->data + t->byte_offset;
}

// Moves width bits, counted from the lowest of a byte; bits of a wider place
// are zero.
static void move_bits(const unsigned char *from, int64_t at, unsigned char *to,
                      int64_t place, unsigned width) {
  for (unsigned b = 0; b < width; b++) {
    int64_t f = at + b;
    int64_t t = place + b;
    // Rounds down, below element 0 too.
    int64_t byte = f >= 0 ? f / 8 : -((7 - f) / 8);
    unsigned bit = (unsigned)from[byte] >> (f - byte * 8) & 1U;
    to[t / 8] = (unsigned char)(to[t / 8] | bit << (t % 8));
  }
}

void gather_bits(const DLTensor *tensor, bool padded, bool out_padded,
                 unsigned char *out) {
  unsigned width = tensor->dtype.bits;
  int64_t from_step = padded && width < 8 ? 8 : width;
  int64_t to_step = out_padded && width < 8 ? 8 : width;
  const unsigned char *address =
      (const unsigned char *)tensor->data + tensor->byte_offset;
  int64_t index[IST_MAX_NDIM] = {0};
  memset(out, 0, sample_room);
  int64_t count = 1;
  for (int32_t d = 0; d < tensor->ndim; d++) count *= tensor->shape[d];
  for (int64_t n = 0; n < count; n++) {
    int64_t element = 0;
    for (int32_t d = 0; d < tensor->ndim; d++) {
      element += index[d] * tensor->strides[d];
    }
    move_bits(address, element * from_step, out, n * to_step, width);
    for (int32_t d = tensor->ndim - 1; d >= 0; d--) {
      if (++index[d] < tensor->shape[d]) break;
      index[d] = 0;
    }
  }
}
