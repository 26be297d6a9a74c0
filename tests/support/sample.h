// SPDX-License-Identifier: Apache-2.0
// sample.h: a producer for tests: tensors of any dtype and layout, with a count
// of deleter calls, and their values gathered bit by bit.

#ifndef ISTHMUS_TESTS_SUPPORT_SAMPLE_H_
#define ISTHMUS_TESTS_SUPPORT_SAMPLE_H_

#include <isthmus/isthmus.h>
#include <stdatomic.h>

typedef enum sample_layout {
  SAMPLE_SCALAR,
  SAMPLE_ROW_MAJOR,
  SAMPLE_UNALIGNED,  // row-major, at an odd multiple of the item size
  SAMPLE_PERMUTED,
  SAMPLE_GAPS,
  SAMPLE_NEGATIVE,
  SAMPLE_BROADCAST,
  SAMPLE_EMPTY,
  SAMPLE_ONES,  // row-major: a stride of an extent of 1 says nothing
  SAMPLE_LAYOUTS
} sample_layout;

enum {
  sample_room = 2048
};

typedef struct sample {
  DLManagedTensorVersioned versioned;
  DLManagedTensor legacy;
  atomic_int deleted;  // deleter calls of either
  int64_t shape[3];
  int64_t strides[3];
  uint32_t layout;  // the set of ist_layout that it should be called
  bool padded;
  uint64_t count;
  _Alignas(64) unsigned char bytes[sample_room];
} sample;

// Writes a tensor of random elements. padded: sub-byte elements, one to a byte.
void sample_make(sample *out, DLDataType dtype, sample_layout layout,
                 bool padded, uint64_t seed);
const char *sample_layout_name(sample_layout layout);

// Its address of element 0.
unsigned char *sample_address(const sample *from);

// Bytes of count elements, dense.
size_t dense_size(DLDataType dtype, bool padded, uint64_t count);

// The elements of a host tensor in row-major order, dense, packed or padded:
// the oracle of every copy. out has room for sample_room bytes; all of them are
// written, zero beyond the elements.
void gather_bits(const DLTensor *tensor, bool padded, bool out_padded,
                 unsigned char *out);

#endif  // ISTHMUS_TESTS_SUPPORT_SAMPLE_H_
