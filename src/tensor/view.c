// SPDX-License-Identifier: Apache-2.0
// view.c: from a tensor of anybody's to a geometry that can be trusted. Only
// the first ndim entries of a view's arrays are ever touched: a view is a
// kilobyte, and an import has 60 ns.

#include "tensor/view.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "tensor/dtype.h"
#include "tensor/lanes.h"
#include "tensor/layout.h"

// The largest extent in bytes: offsets in bits fit an int64_t too, and no
// machine has more address space.
#define IST_MAX_EXTENT (UINT64_C(1) << 60)

#define COULD_NOT "a tensor could not be read: "

void ist__view_shape_text(int32_t ndim, const int64_t *shape, char *buffer,
                          size_t size) {
  ist__text text = ist__text_make(buffer, size);
  ist__text_add(&text, "[");
  for (int32_t i = 0; i < ndim; i++) {
    ist__text_add(&text, "%s%" PRId64, i == 0 ? "" : ",", shape[i]);
  }
  ist__text_add(&text, "]");
}

static ist_code too_big(int32_t ndim, const int64_t *shape, const char *what,
                        ist_error *err) {
  char text[200];
  ist__view_shape_text(ndim, shape, text, sizeof text);
  return ist_error_set(err, IST_ERR_OVERFLOW,
                       COULD_NOT
                       "the %s of shape %s overflows; needs an "
                       "extent of at most 2^60 bytes",
                       what, text);
}

// Bytes of that many elements, or above IST_MAX_EXTENT.
static uint64_t bytes_of(uint64_t count, const ist__view *view) {
  unsigned bits = view->padded ? 8 : view->dtype.bits;
  if (count > IST_MAX_EXTENT) return UINT64_MAX;
  if (bits < 8) return count / 8 * bits + (count % 8 * bits + 7) / 8;
  uint64_t bytes;
  return ist__mul_u64(count, bits / 8, &bytes) ? bytes : UINT64_MAX;
}

// ndim and dtype.
static ist_code check_kind(DLDataType dtype, int32_t ndim, bool padded,
                           ist__view *out, const ist__dtype **out_row,
                           ist_error *err) {
  if (ndim < 0 || ndim > IST_MAX_NDIM) {
    return ist_error_set(err, IST_ERR_NDIM,
                         COULD_NOT "ndim is %" PRId32 "; needs 0 to %d", ndim,
                         IST_MAX_NDIM);
  }
  const ist__dtype *row = ist__dtype_find(dtype);
  if (row == NULL) {
    return ist_error_set(err, IST_ERR_DTYPE,
                         COULD_NOT
                         "its dtype has code %u (%s) and %u bits; needs "
                         "one of DLPack 1.3 with a name",
                         (unsigned)dtype.code, ist__type_code_name(dtype.code),
                         (unsigned)dtype.bits);
  }
  out->ndim = ndim;
  out->dtype = dtype;
  out->dtype_number = row->number;
  out->padded = padded && row->bits < 8;
  *out_row = row;
  return IST_OK;
}

// shape, strides (normal ones), count and nbytes.
static ist_code check_shape(const int64_t *shape, const int64_t *strides,
                            ist__view *out, bool *out_row_major,
                            ist_error *err) {
  int32_t ndim = out->ndim;
  bool empty = false;
  bool row_major = true;
  int64_t dense = 1;
  for (int32_t i = ndim - 1; i >= 0; i--) {
    int64_t extent = shape[i];
    if (extent < 0) {
      return ist_error_set(err, IST_ERR_SHAPE,
                           COULD_NOT "extent %" PRId32 " is %" PRId64
                                     "; needs 0 or more",
                           i, extent);
    }
    int64_t stride = strides == NULL || extent <= 1 ? dense : strides[i];
    row_major = row_major && stride == dense;
    out->shape[i] = extent;
    out->strides[i] = stride;
    if (extent == 0) empty = true;
    if (extent > 1 && !ist__mul_i64(dense, extent, &dense)) {
      return too_big(ndim, shape, "element count", err);
    }
  }
  if (empty && !row_major) ist__layout_row_major(ndim, shape, out->strides);
  out->count = empty ? 0 : (uint64_t)dense;
  out->nbytes = bytes_of(out->count, out);
  if (out->nbytes > IST_MAX_EXTENT) {
    return too_big(ndim, shape, "byte count", err);
  }
  *out_row_major = row_major || empty;
  return IST_OK;
}

// The bytes below and from element 0 that strides reach, and the layout.
static ist_code check_extent(ist__view *out, bool row_major, ist_error *err) {
  out->layout = IST_LAYOUT_ROW_MAJOR;
  out->lowest = 0;
  out->highest = out->nbytes;
  if (row_major) return IST_OK;
  int64_t low = 0;
  int64_t high = 0;
  for (int32_t i = 0; i < out->ndim; i++) {
    int64_t stride = out->strides[i];
    int64_t *end = stride < 0 ? &low : &high;
    int64_t reach;
    if (!ist__mul_i64(out->shape[i] - 1, stride, &reach) ||
        !ist__add_i64(*end, reach, end)) {
      return too_big(out->ndim, out->shape, "extent of the strides", err);
    }
  }
  // low in elements below zero: its bits end on a byte when rounded up.
  out->lowest = bytes_of(0 - (uint64_t)low, out);
  out->highest = bytes_of((uint64_t)high + 1, out);
  if (out->lowest > IST_MAX_EXTENT || out->highest > IST_MAX_EXTENT) {
    return too_big(out->ndim, out->shape, "extent of the strides", err);
  }
  out->layout = ist__layout_of(out->ndim, out->shape, out->strides);
  return IST_OK;
}

static ist_code out_of_space(const ist__view *view, uint64_t start,
                             ist_error *err) {
  return ist_error_set(err, IST_ERR_OVERFLOW,
                       COULD_NOT "from 0x%" PRIx64 ", byte_offset %" PRIu64
                                 ", it reaches %" PRIu64
                                 " bytes down and %" PRIu64
                                 " up; needs an extent that fits the "
                                 "address space",
                       start, view->byte_offset, view->lowest, view->highest);
}

// data and byte_offset of a tensor with elements.
static ist_code check_address(ist__view *out, const ist__dtype *row,
                              bool address, ist_error *err) {
  bool is_handle = ist__device_code_is_handle((int32_t)out->device.device_type);
  if (out->data == NULL && address) {
    return ist_error_set(err, IST_ERR_NULL_DATA,
                         COULD_NOT "data is NULL with %" PRIu64
                                   " elements; needs an address",
                         out->count);
  }
  // A handle, or memory without addresses: only the offset has a meaning.
  uint64_t start = is_handle ? 0 : (uint64_t)(uintptr_t)out->data;
  uint64_t first;
  uint64_t end;
  if (out->byte_offset > IST_MAX_EXTENT ||
      !ist__add_u64(start, out->byte_offset, &first) ||
      !ist__add_u64(first, out->highest, &end) || end > UINTPTR_MAX ||
      (out->lowest > first && out->data != NULL)) {
    return out_of_space(out, start, err);
  }
  // A power of two: no division, which would be the dearest step of an import.
  uint64_t needed = ist__dtype_alignment(row);
  if ((first & (needed - 1)) != 0) {
    return ist_error_set(err, IST_ERR_MISALIGNED,
                         COULD_NOT "element 0 of %s is at 0x%" PRIx64
                                   "; needs a multiple of %" PRIu64 " bytes",
                         row->name, first, needed);
  }
  return IST_OK;
}

static ist_code check_device(DLDevice device, ist__view *out, ist_error *err) {
  if (ist_device_code_name((int32_t)device.device_type) == NULL) {
    return ist_error_set(err, IST_ERR_DEVICE_CODE,
                         COULD_NOT
                         "its device code is %d; needs one that "
                         "DLPack names",
                         (int)device.device_type);
  }
  out->device = device;
  return IST_OK;
}

static ist_code check(const DLTensor *tensor, bool padded, bool address,
                      ist__view *out, ist_error *err) {
  const ist__dtype *row = NULL;
  ist_code code =
      check_kind(tensor->dtype, tensor->ndim, padded, out, &row, err);
  if (code != IST_OK) return code;
  code = check_device(tensor->device, out, err);
  if (code != IST_OK) return code;
  if (tensor->ndim > 0 && tensor->shape == NULL) {
    return ist_error_set(err, IST_ERR_SHAPE,
                         COULD_NOT "shape is NULL with ndim %" PRId32
                                   "; needs its extents",
                         tensor->ndim);
  }
  bool row_major = false;
  code = check_shape(tensor->shape, tensor->strides, out, &row_major, err);
  if (code != IST_OK) return code;
  code = check_extent(out, row_major, err);
  if (code != IST_OK) return code;
  out->data = tensor->data;
  out->byte_offset = tensor->byte_offset;
  return out->count == 0 ? IST_OK : check_address(out, row, address, err);
}

static ist_code check_lanes(const DLTensor *tensor, bool padded, bool address,
                            ist__view *out, ist_error *err) {
  ist__lanes lanes;
  ist_code code = ist__lanes_unfold(tensor, padded, &lanes, err);
  if (code != IST_OK) return code;
  return check(&lanes.tensor, padded, address, out, err);
}

ist_code ist__view_check(const DLTensor *tensor, bool padded, bool address,
                         ist__view *out, ist_error *err) {
  ist_code code;
  if (tensor == NULL) {
    code = ist_error_set(err, IST_ERR_ARGUMENT,
                         COULD_NOT "it is NULL; needs a DLTensor");
  } else if (tensor->dtype.lanes != 1) {
    code = check_lanes(tensor, padded, address, out, err);
  } else {
    code = check(tensor, padded, address, out, err);
  }
  if (code != IST_OK) memset(out, 0, sizeof *out);
  return code;
}

// Writes shape and strides, and counts the elements: at least one and at most
// 2^56, so that 16 bytes each stay below IST_MAX_EXTENT.
static bool plain_shape(const DLTensor *tensor, ist__view *out) {
  uint64_t count = 1;
  for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
    int64_t extent = tensor->shape[i];
    if (extent < 1 || (extent > 1 && tensor->strides != NULL &&
                       tensor->strides[i] != (int64_t)count)) {
      return false;
    }
    out->shape[i] = extent;
    out->strides[i] = (int64_t)count;
    if (!ist__mul_u64(count, (uint64_t)extent, &count) ||
        count > IST_MAX_EXTENT / 16) {
      return false;
    }
  }
  out->count = count;
  return true;
}

static bool plain_address(const DLTensor *tensor, uint64_t alignment,
                          uint64_t nbytes) {
  uint64_t first, end;
  return tensor->data != NULL && tensor->byte_offset <= IST_MAX_EXTENT &&
         ist__add_u64((uintptr_t)tensor->data, tensor->byte_offset, &first) &&
         ist__add_u64(first, nbytes, &end) && end <= UINTPTR_MAX &&
         (first & (alignment - 1)) == 0;
}

bool ist__view_check_plain(const DLTensor *tensor, ist__view *out) {
  const ist__dtype *row = ist__dtype_find(tensor->dtype);
  if (row == NULL || row->bits < 8 || tensor->dtype.lanes != 1 ||
      tensor->device.device_type != kDLCPU || tensor->ndim < 0 ||
      tensor->ndim > IST_MAX_NDIM ||
      (tensor->ndim > 0 && tensor->shape == NULL) ||
      !plain_shape(tensor, out)) {
    return false;
  }
  uint64_t nbytes = out->count * (row->bits / 8u);
  if (!plain_address(tensor, ist__dtype_alignment(row), nbytes)) return false;
  out->data = tensor->data;
  out->byte_offset = tensor->byte_offset;
  out->device = tensor->device;
  out->dtype = tensor->dtype;
  out->dtype_number = row->number;
  out->ndim = tensor->ndim;
  out->layout = IST_LAYOUT_ROW_MAJOR;
  out->padded = false;
  out->nbytes = nbytes;
  out->lowest = 0;
  out->highest = nbytes;
  return true;
}

ist_code ist__view_dense(DLDataType dtype, int32_t ndim, const int64_t *shape,
                         bool padded, ist__view *out, ist_error *err) {
  DLTensor tensor = {.device = {kDLCPU, 0},
                     .ndim = ndim,
                     .dtype = dtype,
                     .shape = (int64_t *)shape};
  return ist__view_check(&tensor, padded, false, out, err);
}

void ist__view_copy(const ist__view *view, ist__view *out) {
  memcpy(out, view, offsetof(ist__view, shape));
  memcpy(out->shape, view->shape, (size_t)view->ndim * sizeof(int64_t));
  memcpy(out->strides, view->strides, (size_t)view->ndim * sizeof(int64_t));
}

void ist__view_borrow(ist__view *view, DLTensor *out) {
  *out = (DLTensor){.data = view->data,
                    .device = view->device,
                    .ndim = view->ndim,
                    .dtype = view->dtype,
                    .shape = view->shape,
                    .strides = view->strides,
                    .byte_offset = view->byte_offset};
}

bool ist__view_same_shape(const ist__view *a, const ist__view *b) {
  return a->dtype_number == b->dtype_number && a->ndim == b->ndim &&
         memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(int64_t)) == 0;
}

int64_t ist__view_order_code(const ist__view *view) {
  int32_t order[IST_MAX_NDIM];
  ist__layout_order(view->ndim, view->shape, view->strides, order);
  return ist__layout_order_code(view->ndim, order);
}
