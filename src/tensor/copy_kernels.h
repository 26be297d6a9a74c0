// SPDX-License-Identifier: Apache-2.0
// copy_kernels.h: the inner loops of a strided copy, one table for each
// instruction set. What is walked, and in which order, is strided_copy.c's.

#ifndef ISTHMUS_TENSOR_COPY_KERNELS_H_
#define ISTHMUS_TENSOR_COPY_KERNELS_H_

#include <stdbool.h>
#include <stdint.h>

// Item sizes 1, 2, 4, 8 and 16 are numbers 0 to 4.
#define IST__ITEM_SIZES 5

// A run: count items, steps in bytes (any sign, zero in from for a broadcast).
// stream: the target is large and is not read soon: write past the caches.
typedef struct ist__run {
  const char *from;
  char *to;
  int64_t from_step;
  int64_t to_step;
  int64_t count;
  bool stream;
} ist__run;

// A transpose: item (r, c) goes from r * item + c * from_step to r * to_step +
// c * item: the source is contiguous along rows, the target along columns.
typedef struct ist__transpose {
  const char *from;
  char *to;
  int64_t from_step;
  int64_t to_step;
  int64_t rows;
  int64_t columns;
  bool stream;
} ist__transpose;

typedef struct ist__copy_kernels {
  const char *name;
  void (*run[IST__ITEM_SIZES])(const ist__run *run);
  void (*transpose[IST__ITEM_SIZES])(const ist__transpose *transpose);
} ist__copy_kernels;

// Plain C: always there.
extern const ist__copy_kernels ist__copy_baseline;

#if defined(__x86_64__)
// AVX2, for machines that ist__cpu_has_avx2.
extern const ist__copy_kernels ist__copy_avx2;
#endif

// The fastest table that this machine can run.
const ist__copy_kernels *ist__copy_kernels_best(void);
// Table number index of those that this machine can run, NULL after the last.
const ist__copy_kernels *ist__copy_kernels_at(int32_t index);

#endif  // ISTHMUS_TENSOR_COPY_KERNELS_H_
