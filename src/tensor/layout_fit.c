// SPDX-License-Identifier: Apache-2.0
// layout_fit.c: can a consumer take a geometry as it is, once its dimensions
// are permuted, or not: as data. Numbers only, no memory.

#include <string.h>

#include "base/structs.h"
#include "tensor/layout.h"
#include "tensor/view.h"

// Digits of a code: how many dimensions, then each of them.
#define DIGIT_BITS 4
#define MAX_CODED 14

int64_t ist__layout_order_code(int32_t ndim, const int32_t *order) {
  if (ndim < 1 || ndim > MAX_CODED) return 0;
  int64_t code = ndim;
  for (int32_t i = 0; i < ndim; i++) {
    code |= (int64_t)order[i] << (DIGIT_BITS * (i + 1));
  }
  return code;
}

int32_t ist__layout_order_read(int64_t code, int32_t *order) {
  int32_t ndim = (int32_t)(code & 15);
  uint32_t seen = 0;
  if (code < 0 || ndim < 1 || ndim > MAX_CODED) return 0;
  if (code >> (DIGIT_BITS * (ndim + 1)) != 0) return 0;
  for (int32_t i = 0; i < ndim; i++) {
    order[i] = (int32_t)(code >> (DIGIT_BITS * (i + 1)) & 15);
    if (order[i] >= ndim || (seen >> order[i] & 1) != 0) return 0;
    seen |= 1U << order[i];
  }
  return ndim;
}

ist_code ist_layout_fit(int32_t ndim, const int64_t *shape,
                        const int64_t *strides, uint32_t accepted, ist_fit *out,
                        ist_error *err) {
  if (!ist__struct_ok(out) || (accepted & ~(uint32_t)IST_LAYOUT_ANY) != 0) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a layout could not be compared: %s; needs a struct "
                         "with its size and a set of ist_layout",
                         ist__struct_ok(out) ? "accepted has unknown bits"
                                             : "out is NULL or has no size");
  }
  ist_fit fit = {.struct_size = sizeof fit};
  ist__struct_write(out, &fit, sizeof fit);
  // Elements of a byte: the geometry alone is looked at.
  const DLTensor tensor = {.device = {kDLCPU, 0},
                           .ndim = ndim,
                           .dtype = {kDLUInt, 8, 1},
                           .shape = (int64_t *)shape,
                           .strides = (int64_t *)strides};
  ist__view view;
  ist_code code = ist__view_check(&tensor, false, false, &view, err);
  if (code != IST_OK) return code;
  ist__layout_order(ndim, view.shape, view.strides, fit.order);
  fit.order_code = ist__layout_order_code(ndim, fit.order);
  fit.layout = view.layout;
  fit.against = view.layout & ~accepted;
  fit.kind = fit.against == 0                     ? IST_FIT_AS_IS
             : fit.against == IST_LAYOUT_PERMUTED ? IST_FIT_PERMUTED
                                                  : IST_FIT_NONE;
  ist__struct_write(out, &fit, sizeof fit);
  return IST_OK;
}
