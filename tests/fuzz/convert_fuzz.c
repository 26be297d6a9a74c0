// SPDX-License-Identifier: Apache-2.0
// convert_fuzz.c: a conversion between any two floating-point dtypes, of any
// geometry and packing, gives the codes of the scalar path with every table of
// inner loops of this machine, and touches no other byte.

#include <string.h>

#include "fuzz/fuzz_pool.h"
#include "tensor/convert.h"
#include "tensor/dtype.h"
#include "tensor/strided_convert.h"

enum {
  most_dims = 5,
  most_count = 20000,
  most_long_count = 300000,
  most_bytes = 4 << 20
};

typedef struct side {
  const ist__float_format *format;
  ist__view view;
  unsigned char *bytes;  // the extent
  size_t size;
} side;

static const ist__float_format *any_format(fuzz_input *in) {
  int32_t number = fuzz_below(in, ist__dtype_count());
  while (ist__float_format_find(number) == NULL) {
    number = (number + 1) % ist__dtype_count();
  }
  return ist__float_format_find(number);
}

// Checks a geometry and gives it memory. False for one that is too large.
static bool place(side *s, int32_t ndim, int64_t *shape, int64_t *strides,
                  bool padded) {
  DLTensor tensor = {(void *)(uintptr_t)(1 << 30),
                     {kDLCPU, 0},
                     ndim,
                     ist__dtype_of(ist__dtype_at(s->format->number)),
                     shape,
                     strides,
                     0};
  if (ist__view_check(&tensor, padded, false, &s->view, NULL) != IST_OK) {
    return false;
  }
  s->size = (size_t)(s->view.lowest + s->view.highest);
  if (s->size > most_bytes) return false;
  s->bytes = malloc(s->size > 0 ? s->size : 1);
  require(s->bytes != NULL);
  s->view.data = s->bytes + s->view.lowest;
  return true;
}

// The code at a number of elements from element 0.
static uint64_t code_at(const side *s, int64_t offset) {
  unsigned bits = s->view.padded ? 8 : s->view.dtype.bits;
  uint64_t code = 0;
  if (bits % 8 == 0) {  // the machines of the tests count from the low end
    memcpy(&code, s->bytes + (int64_t)s->view.lowest + offset * (bits / 8),
           bits / 8);
    return code;
  }
  int64_t first = (int64_t)s->view.lowest * 8 + offset * (int64_t)bits;
  for (unsigned k = 0; k < bits; k++) {
    int64_t at = first + k;
    code |= (uint64_t)(s->bytes[at / 8] >> at % 8 & 1) << k;
  }
  return code;
}

static void check_codes(const side *from, const side *to, bool saturate) {
  int64_t index[most_dims] = {0};
  int64_t read = 0;
  for (uint64_t n = 0; n < to->view.count; n++) {
    require(code_at(to, (int64_t)n) == ist__convert_one(from->format,
                                                        to->format, saturate,
                                                        code_at(from, read)));
    for (int32_t d = from->view.ndim - 1; d >= 0; d--) {
      read += from->view.strides[d];
      if (++index[d] < from->view.shape[d]) break;
      read -= index[d] * from->view.strides[d];
      index[d] = 0;
    }
  }
  uint64_t bits = to->view.padded ? 8 : to->view.dtype.bits;
  uint64_t end = to->view.count * bits;
  if (end % 8 != 0) require(to->bytes[end / 8] >> end % 8 == 0);
}

// threads: 0 for none.
static void check(const side *from, const side *to, bool saturate,
                  int32_t threads) {
  ist__copy_engine engine = {.kernels = &ist__copy_baseline};
  ist__env env;
  if (threads > 0) fuzz_engine_open(&engine, &env, threads);
  for (int32_t k = 0; ist__convert_kernels_at(k) != NULL; k++) {
    ist__conversion conversion;
    engine.convert_kernels = ist__convert_kernels_at(k);
    ist__conversion_make(engine.convert_kernels, from->format->number,
                         to->format->number, saturate, from->view.count,
                         &conversion);
    memset(to->bytes, 0xa5, to->size);
    require(ist__strided_convert(&engine, NULL, &conversion, &from->view,
                                 &to->view, NULL) == IST_OK);
    check_codes(from, to, saturate);
  }
  if (threads > 0) ist__copy_engine_close(&engine, &env);
}

// The rest of the input is the elements, again and again.
static void fill(const side *s, const fuzz_input *in) {
  uint64_t seed = 1;
  for (size_t i = 0; i < s->size; i++) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    uint8_t own = in->left > 0 ? in->at[i % in->left] : 0;
    bool again = in->left > 0 && i / in->left % 2 == 0;
    s->bytes[i] = again ? own : (uint8_t)(own ^ (uint8_t)(seed >> 56));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input in = {data, size};
  int64_t shape[most_dims], strides[most_dims];
  side from = {.format = any_format(&in)}, to = {.format = any_format(&in)};
  uint64_t flags = fuzz_take(&in, 1);
  int32_t threads = (flags & 16) != 0 ? 1 + fuzz_below(&in, 256) : 0;
  int32_t ndim = fuzz_below(&in, most_dims + 1);
  int64_t count = 1;
  for (int32_t i = 0; i < ndim; i++) {
    uint8_t e = (uint8_t)fuzz_take(&in, 1);
    shape[i] = e < 240 ? e % 20 : 1 + (int64_t)fuzz_take(&in, 1);
    strides[i] = (int64_t)fuzz_take(&in, 1) - 128;
    count *= shape[i];
    if (count > (threads > 0 ? most_long_count : most_count)) return 0;
  }
  if (from.format == to.format) return 0;
  if (place(&from, ndim, shape, (flags & 8) != 0 ? NULL : strides,
            (flags & 2) != 0) &&
      place(&to, ndim, shape, NULL, (flags & 4) != 0) &&
      ist__strided_convert_takes(&from.view, &to.view)) {
    fill(&from, &in);
    check(&from, &to, (flags & 1) != 0, threads);
  }
  free(from.bytes);
  free(to.bytes);
  return 0;
}
