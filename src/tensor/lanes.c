// SPDX-License-Identifier: Apache-2.0
// lanes.c: lanes to elements and back.

#include "tensor/lanes.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/dtype.h"

#define COULD_NOT "a tensor could not be read: "

static ist_code refuse(DLDataType dtype, const char *needs, ist_error *err) {
  return ist_error_set(err, IST_ERR_LANES,
                       COULD_NOT
                       "its dtype is %s of %u bits with %u lanes; needs 1 "
                       "lane%s",
                       ist__type_code_name(dtype.code), (unsigned)dtype.bits,
                       (unsigned)dtype.lanes, needs);
}

// One lane of complex is the whole number in DLPack 1.3; older producers give
// its two parts as lanes. Of 64 bits that may also be two complex64.
static ist_code unfold_complex(ist__lanes *out, ist_error *err) {
  DLDataType *dtype = &out->tensor.dtype;
  if (dtype->lanes != 2 || (dtype->bits != 16 && dtype->bits != 32)) {
    bool two = dtype->lanes == 2 && dtype->bits == 64;
    return refuse(
        *dtype, two ? " (it may be one complex128 or two complex64)" : "", err);
  }
  *dtype = (DLDataType){kDLComplex, (uint8_t)(2 * dtype->bits), 1};
  return IST_OK;
}

static ist_code too_big(int32_t dimension, ist_error *err) {
  return ist_error_set(err, IST_ERR_OVERFLOW,
                       COULD_NOT "dimension %" PRId32
                                 " of pairs overflows; needs half as many",
                       dimension);
}

// A pair is two elements, the first in the low bits.
static ist_code unfold_pairs(const DLTensor *from, bool padded, ist__lanes *out,
                             ist_error *err) {
  DLTensor *to = &out->tensor;
  int32_t last = from->ndim - 1;
  if (padded) return refuse(from->dtype, ", or pairs that are packed", err);
  if (last < 0) {
    return refuse(from->dtype, ", or a last dimension to count pairs along",
                  err);
  }
  bool steps = from->strides != NULL && from->shape[last] > 1;
  if (steps && from->strides[last] != 1) {
    return refuse(from->dtype,
                  ", or a last dimension that steps by one pair, as a "
                  "contiguous copy has",
                  err);
  }
  memcpy(out->shape, from->shape, (size_t)from->ndim * sizeof(int64_t));
  to->shape = out->shape;
  to->dtype.lanes = 1;
  // A negative extent is told as it is.
  if (out->shape[last] > 0 &&
      !ist__mul_i64(out->shape[last], 2, &out->shape[last])) {
    return too_big(last, err);
  }
  if (from->strides == NULL) return IST_OK;
  to->strides = out->strides;
  for (int32_t i = 0; i < last; i++) {
    // Of extents 0 and 1 no stride is read.
    bool read = from->shape[i] > 1;
    if (!ist__mul_i64(read ? from->strides[i] : 0, 2, &out->strides[i])) {
      return too_big(i, err);
    }
  }
  out->strides[last] = 1;
  return IST_OK;
}

// As torch counts 4-bit floats.
static bool is_pair(DLDataType dtype) {
  return dtype.code == kDLFloat4_e2m1fn && dtype.bits == 4 && dtype.lanes == 2;
}

ist_code ist__lanes_unfold(const DLTensor *tensor, bool padded, ist__lanes *out,
                           ist_error *err) {
  DLDataType dtype = tensor->dtype;
  out->tensor = *tensor;
  bool complex = dtype.code == kDLComplex && dtype.bits >= 16;
  if (dtype.lanes > 1 && complex) return unfold_complex(out, err);
  bool known = ist__dtype_find(dtype) != NULL && tensor->ndim >= 0 &&
               tensor->ndim <= IST_MAX_NDIM &&
               (tensor->ndim == 0 || tensor->shape != NULL);
  if (!known) {
    out->tensor.dtype.lanes = 1;
    return IST_OK;
  }
  if (is_pair(dtype)) {
    return unfold_pairs(tensor, padded, out, err);
  }
  return refuse(dtype, " (a vector is not counted as an element)", err);
}

ist_pairs ist__lanes_pairs_of(const ist__view *view) {
  int32_t last = view->ndim - 1;
  if (last < 0 || view->shape[last] % 2 != 0) return IST_PAIRS_ODD;
  if (view->count == 0) return IST_PAIRS_WHOLE;
  if (view->padded || view->strides[last] != 1) return IST_PAIRS_APART;
  for (int32_t i = 0; i < last; i++) {
    if (view->shape[i] > 1 && view->strides[i] % 2 != 0) {
      return IST_PAIRS_APART;
    }
  }
  return IST_PAIRS_WHOLE;
}

void ist__lanes_fold(ist__view *view) {
  int32_t last = view->ndim - 1;
  view->dtype.lanes = 2;
  view->shape[last] /= 2;
  for (int32_t i = 0; i < last; i++) view->strides[i] /= 2;
  // Normal again: what extents 0 and 1 step by follows from the extents behind.
  int64_t dense = 1;
  for (int32_t i = last; i >= 0; i--) {
    if (view->shape[i] <= 1 || view->count == 0) view->strides[i] = dense;
    if (view->shape[i] > 1) dense *= view->shape[i];
  }
}

DLDataType ist__lanes_values(DLDataType dtype) {
  if (is_pair(dtype)) dtype.lanes = 1;
  return dtype;
}
