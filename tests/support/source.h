// SPDX-License-Identifier: Apache-2.0
// source.h: a producer for tests: tensors of any dtype and layout, with a count
// of deleter calls, and their values gathered bit by bit.

#ifndef ISTHMUS_TESTS_SUPPORT_SOURCE_H_
#define ISTHMUS_TESTS_SUPPORT_SOURCE_H_

#include <isthmus/isthmus.h>
#include <stdatomic.h>

typedef enum source_layout {
  SOURCE_SCALAR,
  SOURCE_ROW_MAJOR,
  SOURCE_UNALIGNED,  // row-major, at an odd multiple of the item size
  SOURCE_PERMUTED,
  SOURCE_GAPS,
  SOURCE_NEGATIVE,
  SOURCE_BROADCAST,
  SOURCE_EMPTY,
  SOURCE_LAYOUTS
} source_layout;

enum {
  source_room = 2048
};

typedef struct source {
  DLManagedTensorVersioned versioned;
  DLManagedTensor legacy;
  atomic_int deleted;  // deleter calls of either
  int64_t shape[3];
  int64_t strides[3];
  uint32_t layout;  // the set of ist_layout that it should be called
  bool padded;
  uint64_t count;
  _Alignas(64) unsigned char bytes[source_room];
} source;

// Writes a tensor of random elements. padded: sub-byte elements, one to a byte.
void source_make(source *out, DLDataType dtype, source_layout layout,
                 bool padded, uint64_t seed);
const char *source_layout_name(source_layout layout);

// Its address of element 0.
unsigned char *source_address(const source *from);

// Bytes of count elements, dense.
size_t dense_size(DLDataType dtype, bool padded, uint64_t count);

// The elements of a host tensor in row-major order, dense, packed or padded:
// the oracle of every copy. out has room for source_room bytes; all of them are
// written, zero beyond the elements.
void gather_bits(const DLTensor *tensor, bool padded, bool out_padded,
                 unsigned char *out);

#endif  // ISTHMUS_TESTS_SUPPORT_SOURCE_H_
