// SPDX-License-Identifier: Apache-2.0
// view.h: an address with its geometry, validated: what every tensor from
// outside becomes before anything else looks at it.

#ifndef ISTHMUS_TENSOR_VIEW_H_
#define ISTHMUS_TENSOR_VIEW_H_

#include "base/error.h"

// A validated geometry. The promises of ist__view_check hold for every one:
// 0 <= ndim <= IST_MAX_NDIM; no extent is negative; strides are present and
// normal (a dimension of extent 0 or 1, and every dimension of an empty tensor,
// has the stride that a dense row-major tensor of that shape has); element
// count, byte count and every address fit (and no extent passes 2^60 bytes, so
// that offsets in bits fit an int64_t); dtype is known and has one lane (those
// of several are turned into it, or refused: lanes.h).
typedef struct ist__view {
  void *data;            // NULL only when there are no elements or no address
  uint64_t byte_offset;  // of element 0 from data
  DLDevice device;
  DLDataType dtype;
  int32_t dtype_number;
  int32_t ndim;
  uint32_t layout;   // set of ist_layout
  bool padded;       // sub-byte elements, one to a byte
  uint64_t count;    // elements
  uint64_t nbytes;   // payload: dense size in bytes
  uint64_t lowest;   // bytes that the extent reaches below element 0
  uint64_t highest;  // bytes from element 0 to the end of the extent
  int64_t shape[IST_MAX_NDIM];
  int64_t strides[IST_MAX_NDIM];  // in elements
} ist__view;

// Validates a tensor from outside and writes its normal form; of the arrays of
// out only the first ndim entries are written. padded: the sub-byte padded flag
// of its producer. A NULL data pointer with elements is an error unless address
// is false (memory without addresses here). No byte of data is read. Alignment
// is that of ist__dtype_alignment; an empty tensor's address is not looked at.
// On failure out is all zeros.
// Fails: ARGUMENT, NDIM, SHAPE, OVERFLOW, NULL_DATA, DTYPE, LANES, MISALIGNED,
// DEVICE_CODE.
ist_code ist__view_check(const DLTensor *tensor, bool padded, bool address,
                         ist__view *out, ist_error *err);

// The short way for what most tensors are: elements of whole bytes and one lane
// in memory of device code cpu, at least one of them, dense and row-major. True
// writes what ist__view_check writes, which then succeeds; false says nothing,
// and leaves in out what it pleases.
bool ist__view_check_plain(const DLTensor *tensor, ist__view *out);

// The dense row-major view of a spec's dtype and shape on the host, data NULL.
// Fails: NDIM, SHAPE, OVERFLOW, DTYPE, LANES.
ist_code ist__view_dense(DLDataType dtype, int32_t ndim, const int64_t *shape,
                         bool padded, ist__view *out, ist_error *err);

// Copies a view; of its arrays only the first ndim entries.
void ist__view_copy(const ist__view *view, ist__view *out);

// Writes a DLTensor that borrows the view's arrays.
void ist__view_borrow(ist__view *view, DLTensor *out);

// Address of element 0. Summed as a number: an empty tensor's address was not
// looked at, and may lie anywhere.
static inline char *ist__view_address(const ist__view *view) {
  if (view->data == NULL) return NULL;
  return (char *)((uintptr_t)view->data + view->byte_offset);
}

// The order in which the view's strides fall, as ist_fit.order_code.
int64_t ist__view_order_code(const ist__view *view);

// True when dtype and shape are equal.
bool ist__view_same_shape(const ist__view *a, const ist__view *b);

// Writes the shape as "[2,3]" for messages, cut to size.
void ist__view_shape_text(int32_t ndim, const int64_t *shape, char *buffer,
                          size_t size);

#endif  // ISTHMUS_TENSOR_VIEW_H_
