// SPDX-License-Identifier: Apache-2.0
// layout_fuzz.c: small geometries and tiled layouts are what a walk over every
// element shows; of wild ones no number is believed and none overflows.

#include <string.h>

#include "fuzz/fuzz_input.h"
#include "support/layout_oracle.h"
#include "tensor/layout.h"
#include "tensor/view.h"

enum {
  small_dims = 4
};

// What is true of any geometry that view_check accepts.
static void check_fit(int32_t ndim, const int64_t *shape,
                      const int64_t *strides, uint32_t accepted) {
  ist_fit fit = {.struct_size = sizeof fit};
  ist_error err;
  if (ist_layout_fit(ndim, shape, strides, accepted, &fit, &err) != IST_OK) {
    require(fit.kind == IST_FIT_NONE && strchr(err.message, '\n') == NULL);
    return;
  }
  int64_t to_shape[IST_MAX_NDIM] = {0}, to_strides[IST_MAX_NDIM] = {0};
  int32_t order[IST_MAX_NDIM];
  uint64_t seen = 0;
  for (int32_t i = 0; i < ndim; i++) {
    require(fit.order[i] >= 0 && fit.order[i] < ndim);
    seen |= UINT64_C(1) << fit.order[i];
    to_shape[i] = shape[fit.order[i]];
    to_strides[i] = strides[fit.order[i]];
  }
  require(ndim == 64 ? seen == UINT64_MAX : seen == (UINT64_C(1) << ndim) - 1);
  require(fit.against == (fit.layout & ~accepted));
  require((fit.kind == IST_FIT_AS_IS) == (fit.against == 0));
  int32_t read = ist__layout_order_read(fit.order_code, order);
  require(read == (ndim > 14 ? 0 : ndim));
  require(memcmp(order, fit.order, (size_t)read * sizeof *order) == 0);
  ist_fit again = {.struct_size = sizeof again};
  require(ist_layout_fit(ndim, to_shape, to_strides, accepted, &again, NULL) ==
          IST_OK);
  require((again.layout & IST_LAYOUT_PERMUTED) == 0);
  require(fit.kind != IST_FIT_PERMUTED || again.kind == IST_FIT_AS_IS);
}

static void check_small(fuzz_input *in) {
  int64_t shape[small_dims] = {0}, strides[small_dims] = {0};
  int64_t reach = 0, count = 1;
  uint32_t accepted = (uint32_t)fuzz_below(in, 16);
  int32_t ndim = fuzz_below(in, small_dims + 1);
  for (int32_t i = 0; i < ndim; i++) {
    shape[i] = 1 + fuzz_below(in, 5);
    strides[i] = fuzz_below(in, 256) - 128;
    reach += (shape[i] - 1) * (strides[i] < 0 ? -strides[i] : strides[i]);
    count *= shape[i];
  }
  bool meets = strides_meet(ndim, shape, strides);
  uint32_t layout = ist__layout_of(ndim, shape, strides);
  require(((layout & IST_LAYOUT_OVERLAP) != 0) == meets);
  require(meets || ((layout & IST_LAYOUT_GAPS) != 0) == (reach + 1 != count));
  check_fit(ndim, shape, strides, accepted);
}

static void check_wild(fuzz_input *in) {
  int64_t shape[IST_MAX_NDIM] = {0}, strides[IST_MAX_NDIM] = {0};
  int64_t order[IST_MAX_NDIM];
  uint32_t accepted = (uint32_t)fuzz_below(in, 17);
  int32_t ndim = fuzz_below(in, IST_MAX_NDIM + 1);
  size_t width = 1 + (size_t)fuzz_below(in, 8);
  for (int32_t i = 0; i < ndim; i++) {
    shape[i] = (int64_t)fuzz_take(in, width);
    strides[i] = (int64_t)fuzz_take(in, 8);
    order[i] = (int64_t)fuzz_take(in, 1) - 1;
    if (width < 8) strides[i] >>= 8 * (8 - width);
  }
  check_fit(ndim, shape, strides, accepted);
  for (int32_t i = 0; i < ndim; i++) shape[i] &= INT64_MAX;
  require((ist__layout_of(ndim, shape, strides) & ~(uint32_t)IST_LAYOUT_ANY) ==
          0);
  if (ist__layout_from_minor_to_major(ndim, shape, order, strides)) {
    int64_t again[IST_MAX_NDIM], same[IST_MAX_NDIM];
    require(ist__layout_minor_to_major(ndim, shape, strides, again));
    require(ist__layout_from_minor_to_major(ndim, shape, again, same));
    require(ist__layout_of(ndim, shape, same) ==
            ist__layout_of(ndim, shape, strides));
  }
}

// Tiles of a shape; wild: of any numbers, where they need not make sense.
static void check_tiles(fuzz_input *in, bool wild) {
  int64_t shape[IST_MAX_NDIM], order[IST_MAX_NDIM];
  int64_t tiles[20 * IST_MAX_NDIM] = {0};
  size_t ranks[20];
  int32_t ndim = fuzz_below(in, wild ? IST_MAX_NDIM + 1 : small_dims);
  size_t count = (size_t)fuzz_below(in, wild ? 20 : 4), used = 0;
  for (int32_t i = 0; i < ndim; i++) {
    shape[i] =
        wild ? (int64_t)(fuzz_take(in, 8) & INT64_MAX) : 1 + fuzz_below(in, 7);
    order[i] = wild ? (int64_t)fuzz_take(in, 1) - 1 : i;
  }
  for (int32_t i = 0; i < ndim && !wild; i++) {
    int32_t k = fuzz_below(in, i + 1);
    int64_t swap = order[i];
    order[i] = order[k];
    order[k] = swap;
  }
  for (size_t t = 0; t < count; t++) {
    ranks[t] = (size_t)fuzz_below(in, wild ? 66 : 4) + (wild ? 0 : 1);
    for (size_t k = 0; k < ranks[t] && used < 19 * IST_MAX_NDIM; k++) {
      uint8_t size = (uint8_t)fuzz_take(in, 1);
      bool join = size >= 250 && (wild || k + 1 < ranks[t]);
      tiles[used++] = join   ? IST__TILE_COMBINE
                      : wild ? (int64_t)fuzz_take(in, size % 9)
                             : 1 + size % 7;
    }
  }
  ist__tiling tiling = {ndim, shape, order, tiles, ranks, count, 8};
  ist__untiled out;
  ist__tiled_as as = ist__layout_from_tiles(&tiling, &out);
  require(out.ndim >= 0 && out.ndim <= IST_MAX_NDIM);
  if (!wild) require(as != IST__TILED_AS_NOTHING);
  if (!wild) require(tiling_is_right(&tiling, as, &out));
  for (int32_t i = 0; i < out.ndim; i++) {
    require(out.shape[i] >= 0 && out.strides[i] >= 0 && out.of[i] < ndim);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input in = {data, size};
  switch (fuzz_below(&in, 4)) {
    case 0:
      check_small(&in);
      break;
    case 1:
      check_wild(&in);
      break;
    case 2:
      check_tiles(&in, false);
      break;
    default:
      check_tiles(&in, true);
      break;
  }
  return 0;
}
