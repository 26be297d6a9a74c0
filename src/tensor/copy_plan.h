// SPDX-License-Identifier: Apache-2.0
// copy_plan.h: how a copy between two strided views is walked: as few and as
// long pieces as the two layouts allow, and the inner loop for a piece.

#ifndef ISTHMUS_TENSOR_COPY_PLAN_H_
#define ISTHMUS_TENSOR_COPY_PLAN_H_

#include "tensor/copy_kernels.h"
#include "tensor/view.h"

// One dimension of both sides; steps in bytes.
typedef struct ist__axis {
  int64_t extent;
  int64_t from;
  int64_t to;
} ist__axis;

// How a plane, the two innermost axes, is copied.
typedef enum ist__plane_way {
  IST__PLANE_RUNS = 0,       // row by row
  IST__PLANE_TRANSPOSE = 1,  // the source lies close along its rows, the target
                             // along its columns
  IST__PLANE_TILES = 2,      // like that, but neither without gaps
  IST__PLANE_LINES = 3,      // as runs, of few bytes without gaps
  IST__PLANE_BATCH = 4       // tiny planes: the columns run over many of them,
                             // the last outer axis and the rows over one
} ist__plane_way;

// axes[0 .. count - 1], outermost first; the last two are a plane's rows and
// columns. count is at least 2: an axis that is not there has extent 1.
typedef struct ist__copy_plan {
  const char *from;  // of the first item
  char *to;
  int64_t item;    // bytes; a power of two, at most 16
  int32_t number;  // of the item size, as in ist__copy_kernels
  ist__plane_way way;
  int32_t count;
  ist__axis axes[IST_MAX_NDIM + 2];
} ist__copy_plan;

// Plans a copy of whole bytes (padded, or 8 bits and more) between views of
// one shape with elements.
void ist__copy_plan_make(const ist__view *source, const ist__view *target,
                         ist__copy_plan *out);

#endif  // ISTHMUS_TENSOR_COPY_PLAN_H_
