// SPDX-License-Identifier: Apache-2.0
// copy_fuzz.c: a copy between any two geometries writes each element where it
// belongs and no other byte, with every table of inner loops of this machine.
// Both extents end where their memory does.

#include <string.h>

#include "fuzz/fuzz_pool.h"
#include "tensor/dtype.h"
#include "tensor/strided_copy.h"

enum {
  most_dims = 6,
  most_count = 20000,
  most_bytes = 1 << 20,
  // Of a copy with threads, which have a MiB to share at least.
  most_long_count = 300000,
  most_long_bytes = 8 << 20
};

typedef struct side {
  ist__view view;
  unsigned char *bytes;  // the extent
  size_t size;
} side;

// Checks a geometry and gives it memory. False for one that is none, or large.
static bool place(side *s, DLDataType dtype, int32_t ndim, int64_t *shape,
                  int64_t *strides, bool padded, size_t most) {
  DLTensor tensor = {
      (void *)(uintptr_t)4096, {kDLCPU, 0}, ndim, dtype, shape, strides, 0};
  if (ist__view_check(&tensor, padded, false, &s->view, NULL) != IST_OK) {
    return false;
  }
  s->size = (size_t)(s->view.lowest + s->view.highest);
  if (s->size > most) return false;
  s->bytes = malloc(s->size > 0 ? s->size : 1);
  require(s->bytes != NULL);
  s->view.data = s->bytes + s->view.lowest;
  return true;
}

static unsigned width_of(const side *s) {
  return s->view.padded ? 8 : s->view.dtype.bits;
}

// The first bit, from the extent's start, of the element at an index.
static int64_t bit_at(const side *s, const int64_t *index) {
  int64_t element = 0;
  for (int32_t d = 0; d < s->view.ndim; d++) {
    element += index[d] * s->view.strides[d];
  }
  return (int64_t)s->view.lowest * 8 + element * (int64_t)width_of(s);
}

static void oracle(const side *from, const side *to, unsigned char *expected) {
  unsigned value = from->view.dtype.bits, width = width_of(to);
  if (from->view.padded && to->view.padded) value = 8;
  int64_t index[most_dims] = {0};
  for (uint64_t n = 0; n < to->view.count; n++) {
    int64_t read = bit_at(from, index), write = bit_at(to, index);
    if (width % 8 == 0 && value == width) {
      memcpy(expected + write / 8, from->bytes + read / 8, width / 8);
    } else {
      for (unsigned b = 0; b < width; b++) {
        int64_t r = read + b, w = write + b;
        unsigned bit =
            b < value ? (unsigned)from->bytes[r / 8] >> r % 8 & 1 : 0;
        unsigned rest = expected[w / 8] & ~(1U << w % 8);
        expected[w / 8] = (unsigned char)(rest | bit << w % 8);
      }
    }
    for (int32_t d = to->view.ndim - 1; d >= 0; d--) {
      if (++index[d] < to->view.shape[d]) break;
      index[d] = 0;
    }
  }
  bool dense = (to->view.layout & ~(uint32_t)IST_LAYOUT_PERMUTED) == 0;
  uint64_t end = to->view.count * width;
  if (dense && end % 8 != 0) {
    expected[end / 8] &= (unsigned char)((1U << end % 8) - 1);
  }
}

// threads: 0 for none.
static void check_copies(const side *from, const side *to, uint64_t seed,
                         int32_t threads) {
  unsigned char *before = malloc(to->size > 0 ? to->size : 1);
  unsigned char *expected = malloc(to->size > 0 ? to->size : 1);
  require(before != NULL && expected != NULL);
  for (size_t i = 0; i < from->size + to->size; i++) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    unsigned char byte = (unsigned char)(seed >> 56);
    if (i < from->size) from->bytes[i] = byte;
    if (i >= from->size) before[i - from->size] = byte;
  }
  memcpy(expected, before, to->size);
  oracle(from, to, expected);
  ist__copy_engine engine = {.kernels = NULL};
  ist__env env;
  if (threads > 0) fuzz_engine_open(&engine, &env, threads);
  for (int32_t k = 0; ist__copy_kernels_at(k) != NULL; k++) {
    engine.kernels = ist__copy_kernels_at(k);
    memcpy(to->bytes, before, to->size);
    ist__strided_copy(&engine, &from->view, &to->view);
    require(memcmp(to->bytes, expected, to->size) == 0);
  }
  if (threads > 0) ist__copy_engine_close(&engine, &env);
  free(before);
  free(expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input in = {data, size};
  int64_t shape[most_dims], from_strides[most_dims], to_strides[most_dims];
  int32_t order[most_dims];
  const ist__dtype *row = ist__dtype_at(fuzz_below(&in, ist__dtype_count()));
  DLDataType dtype = {row->code, row->bits, 1};
  uint64_t flags = fuzz_take(&in, 1);
  int32_t threads = (flags & 16) != 0 ? 1 + fuzz_below(&in, 256) : 0;
  int32_t ndim = fuzz_below(&in, most_dims + 1);
  uint64_t count = 1;
  for (int32_t i = 0; i < ndim; i++) {
    uint8_t e = (uint8_t)fuzz_take(&in, 1);
    shape[i] = e < 240 ? e % 12 : 1 + (int64_t)fuzz_take(&in, 1);
    from_strides[i] = (int64_t)fuzz_take(&in, 1) - 128;
    if ((flags & 8) != 0) from_strides[i] *= 1 + fuzz_below(&in, 200);
    count *= (uint64_t)shape[i];
    order[i] = i;
  }
  if (count > (threads > 0 ? most_long_count : most_count)) return 0;
  size_t most = threads > 0 ? most_long_bytes : most_bytes;
  for (int32_t i = ndim - 1; i > 0; i--) {
    int32_t k = fuzz_below(&in, i + 1), swap = order[i];
    order[i] = order[k];
    order[k] = swap;
  }
  // Of the target each dimension steps over all before it: nothing meets.
  int64_t span = 1;
  for (int32_t k = ndim - 1; k >= 0; k--) {
    int32_t d = order[k];
    uint8_t more = (uint8_t)fuzz_take(&in, 1);
    int64_t step = span + (more % 4 == 3 ? more / 8 : 0);
    to_strides[d] = (more & 4) != 0 && more % 4 == 2 ? -step : step;
    if (shape[d] > 1) span = step * shape[d];
    if (span > (int64_t)most) return 0;
    // The source may lie as the target does, or dense.
    if ((flags & 4) != 0) from_strides[d] = to_strides[d];
  }
  bool small = row->bits < 8;
  side from = {0}, to = {0};
  if (place(&from, dtype, ndim, shape, from_strides, small && (flags & 1),
            most) &&
      place(&to, dtype, ndim, shape, to_strides, small && (flags & 2), most)) {
    check_copies(&from, &to, flags + size, threads);
  }
  free(from.bytes);
  free(to.bytes);
  return 0;
}
