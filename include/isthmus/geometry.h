// SPDX-License-Identifier: Apache-2.0
// geometry.h: what strides do, and whether a consumer can take them: numbers
// only. Part of isthmus.h, which explains the words used below.

#ifndef ISTHMUS_GEOMETRY_H_
#define ISTHMUS_GEOMETRY_H_

#include <isthmus/error.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Most dimensions a tensor may have.
#define IST_MAX_NDIM 64

// Properties of a geometry; row-major without gaps is 0. Also the set that a
// consumer accepts as it is.
typedef enum ist_layout {
  IST_LAYOUT_ROW_MAJOR = 0,
  IST_LAYOUT_PERMUTED = 1,  // dense, but the strides do not fall
  IST_LAYOUT_GAPS = 2,      // elements of the extent that are not the tensor's
  IST_LAYOUT_NEGATIVE = 4,  // a stride below zero
  IST_LAYOUT_OVERLAP = 8,   // two indices, one address (broadcast too)
  IST_LAYOUT_ANY = 15
} ist_layout;

// How a geometry fits the layouts that a consumer accepts.
typedef enum ist_fit_kind {
  IST_FIT_NONE = 0,      // only a copy of it does
  IST_FIT_PERMUTED = 1,  // as it is, once its dimensions are in order
  IST_FIT_AS_IS = 2
} ist_fit_kind;

typedef struct ist_fit {
  size_t struct_size;
  ist_fit_kind kind;
  uint32_t layout;     // set of ist_layout: what the geometry is
  uint32_t against;    // those of them that the consumer does not accept
  int64_t order_code;  // order as one number, for ist_offer.order; 0 for more
                       // than 14 dimensions, or none
  // Dimension order[k] becomes dimension k: its strides then fall. Of a
  // geometry that is not permuted 0, 1, 2, ...; written up to ndim.
  int32_t order[IST_MAX_NDIM];
} ist_fit;

// Compares a geometry (strides in elements, NULL: row-major) with a set of
// ist_layout, such as ist_capability.layouts. Dimensions of extent 0 and 1 have
// no stride that counts. Two indices at one address are found exactly for up to
// two dimensions and with a bounded search beyond; what would take longer
// counts as an overlap. Borrows all. Fails: ARGUMENT, NDIM, SHAPE, OVERFLOW.
// Threads: any. Since: 0.1.
IST_API ist_code ist_layout_fit(int32_t ndim, const int64_t *shape,
                                const int64_t *strides, uint32_t accepted,
                                ist_fit *out, ist_error *err);

#ifdef __cplusplus
}
#endif

#endif  // ISTHMUS_GEOMETRY_H_
