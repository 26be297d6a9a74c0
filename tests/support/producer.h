// SPDX-License-Identifier: Apache-2.0
// producer.h: managed tensors of a producer that counts how often its deleter
// is called, and a context whose memory is counted.

#ifndef ISTHMUS_TESTS_SUPPORT_PRODUCER_H_
#define ISTHMUS_TESTS_SUPPORT_PRODUCER_H_

#include <stdatomic.h>

#include "support/counting_allocator.h"
#include "support/testing.h"

// A producer's tensor: 64-aligned float32 memory 0, 1, 2, ... of COUNT
// elements, seen through shape and strides.
typedef struct producer {
  DLManagedTensorVersioned versioned;
  DLManagedTensor legacy;
  int64_t shape[4];
  int64_t strides[4];
  float *memory;
  atomic_int deleted;  // calls of either deleter
} producer;

#define PRODUCER_COUNT 64

// A view of ndim dimensions that begins at element first of the memory.
void producer_init(producer *s, int ndim, const int64_t *shape,
                   const int64_t *strides, int64_t first);
// The same, dense 4 x 6.
void producer_init_dense(producer *s);
void producer_free(producer *s);
// Element 0.
float *producer_data(const producer *s);

// A context on a counting allocator. end asserts that all is given back.
typedef struct counted_context {
  counting_allocator counter;
  ist_allocator hook;
  ist_context *context;
} counted_context;

void counted_context_begin(counted_context *c);
void counted_context_end(counted_context *c);

// Asserts that a host-readable view holds the source's elements in order.
void assert_values_of(const DLTensor *view, const producer *s);

#endif  // ISTHMUS_TESTS_SUPPORT_PRODUCER_H_
