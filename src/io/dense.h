// SPDX-License-Identifier: Apache-2.0
// dense.h: the bytes of a view as a file holds them: without gaps, and with
// sub-byte elements packed or one to a byte as its format wants.

#ifndef ISTHMUS_IO_DENSE_H_
#define ISTHMUS_IO_DENSE_H_

#include "base/env.h"
#include "base/watch.h"
#include "tensor/view.h"

typedef struct ist__dense {
  const void *bytes;
  uint64_t nbytes;
  bool column_major;
  void *owned;  // what was allocated for it, or NULL: bytes are the view's own
} ist__dense;

// True when a view is dense and its first dimension varies fastest, and it is
// not row-major as well.
bool ist__dense_is_column_major(const ist__view *view);

// How a file wants its elements.
typedef struct ist__dense_wish {
  bool padded;        // sub-byte elements, one to a byte
  bool column_ok;     // column-major counts as right
  ist__watch *watch;  // told as one hop; NULL: nobody
} ist__dense_wish;

// Lends the view's own bytes where they lie right, else copies them.
// Gives *out. Fails: OVERFLOW, NO_ALLOCATION, CANCELLED.
ist_code ist__dense_make(const ist__env *env, const ist__view *view,
                         const ist__dense_wish *wish, ist__dense *out,
                         ist_error *err);

// Frees what make allocated; a zeroed struct is allowed.
void ist__dense_free(const ist__env *env, ist__dense *dense);

// Copies nbytes of elements of a dtype with the bytes of each number turned
// round; both parts of a complex number are turned by themselves.
void ist__dense_swap(const ist__env *env, DLDataType dtype, const void *from,
                     void *to, uint64_t nbytes);

#endif  // ISTHMUS_IO_DENSE_H_
