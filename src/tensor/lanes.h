// SPDX-License-Identifier: Apache-2.0
// lanes.h: dtypes of more than one lane. Inside isthmus an element is one
// number; what DLPack counts by lanes is turned into that where it has one
// meaning, refused where it has none or several, and turned back for consumers
// that count 4-bit floats by pairs (torch).

#ifndef ISTHMUS_TENSOR_LANES_H_
#define ISTHMUS_TENSOR_LANES_H_

#include "tensor/view.h"

// A tensor with its lanes unfolded; the arrays are its own.
typedef struct ist__lanes {
  DLTensor tensor;
  int64_t shape[IST_MAX_NDIM];
  int64_t strides[IST_MAX_NDIM];
} ist__lanes;

// Writes the one-lane tensor that has the same elements at the same bytes:
//   float4_e2m1fn with 2 lanes: pairs. The last extent doubles, its stride is
//     one, the other strides double.
//   complex of 32 or 16 bits with 2 lanes: the two parts, complex64 or
//     complex32.
// What has no row in dtype.def, an ndim out of range or no shape is left for
// ist__view_check to refuse. out->tensor points into out.
// Fails: LANES (a vector; complex of 64 bits with 2 lanes, which may be one
// number or two; pairs that are padded, have no dimension, or whose last
// dimension steps by more than one pair), OVERFLOW.
ist_code ist__lanes_unfold(const DLTensor *tensor, bool padded, ist__lanes *out,
                           ist_error *err);

// Can a view's elements be counted by pairs?
// ODD: never, its last extent is odd or there is none. APART: not as it lies:
// the elements of a pair are not neighbours. WHOLE: it can.
ist_pairs ist__lanes_pairs_of(const ist__view *view);

// Makes a view whose pairs are WHOLE count them: half the last extent and half
// the other strides, 2 lanes. Such a view is for writing out only.
void ist__lanes_fold(ist__view *view);

// The dtype of the numbers that a name stands for where values are asked for
// and not a way to count them: of pairs (torch's float4_e2m1fn_x2) the dtype of
// one element, of all else the dtype itself.
DLDataType ist__lanes_values(DLDataType dtype);

#endif  // ISTHMUS_TENSOR_LANES_H_
