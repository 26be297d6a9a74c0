// SPDX-License-Identifier: Apache-2.0
// dense.c: views made dense for a file, and numbers turned round.

#include "io/dense.h"

#include <string.h>

#include "base/alloc.h"
#include "tensor/copy_engine.h"
#include "tensor/layout.h"
#include "tensor/strided_copy.h"

bool ist__dense_is_column_major(const ist__view *view) {
  int64_t order[IST_MAX_NDIM];
  int64_t strides[IST_MAX_NDIM];
  if (view->layout != IST_LAYOUT_PERMUTED) return false;
  for (int32_t i = 0; i < view->ndim; i++) order[i] = i;
  if (!ist__layout_from_minor_to_major(view->ndim, view->shape, order,
                                       strides)) {
    return false;
  }
  for (int32_t i = 0; i < view->ndim; i++) {
    if (view->shape[i] > 1 && view->strides[i] != strides[i]) return false;
  }
  return true;
}

ist_code ist__dense_make(const ist__env *env, const ist__view *view,
                         const ist__dense_wish *wish, ist__dense *out,
                         ist_error *err) {
  *out = (ist__dense){0};
  ist__view target;
  bool same = view->padded == wish->padded || view->dtype.bits >= 8;
  bool column = wish->column_ok && same && ist__dense_is_column_major(view);
  ist_code code = ist__view_dense(view->dtype, view->ndim, view->shape,
                                  wish->padded, &target, err);
  if (code != IST_OK) return code;
  out->nbytes = target.nbytes;
  if (target.count == 0) return ist__watch_hop(wish->watch, err);
  if (column || (same && view->layout == IST_LAYOUT_ROW_MAJOR)) {
    out->column_major = column;
    out->bytes = ist__view_address(view);
    return ist__watch_hop(wish->watch, err);
  }
  size_t size = (size_t)target.nbytes;
  out->owned = ist__alloc(env, size, 64);
  if (out->owned == NULL) {
    *out = (ist__dense){0};
    return ist__error_memory(err, "a dense copy of a tensor", size);
  }
  target.data = out->owned;
  target.byte_offset = 0;
  code = ist__strided_copy_watched(env->copy_engine, wish->watch, view, &target,
                                   err);
  if (code != IST_OK) {
    ist__dense_free(env, out);
    return code;
  }
  out->bytes = out->owned;
  return IST_OK;
}

void ist__dense_free(const ist__env *env, ist__dense *dense) {
  ist__free(env, dense->owned);
  *dense = (ist__dense){0};
}

void ist__dense_swap(const ist__env *env, DLDataType dtype, const void *from,
                     void *to, uint64_t nbytes) {
  const ist__copy_kernels *kernels = ist__copy_engine_kernels(env->copy_engine);
  const bool halves = dtype.code == kDLComplex;
  const int64_t width = dtype.bits / (halves ? 16 : 8);
  if (width == 1) {
    memcpy(to, from, (size_t)nbytes);
    return;
  }
  ist__run run = {from,
                  to,
                  width,
                  width,
                  (int64_t)nbytes / width,
                  nbytes > IST__STREAM_BYTES};
  kernels->swap[width == 2 ? 0 : width == 4 ? 1 : 2](&run);
}
