// SPDX-License-Identifier: Apache-2.0
// fuzz_input.h: what every fuzz target needs: its entry, a promise that ends
// the process when it is broken, and numbers from the bytes of an input.

#ifndef ISTHMUS_TESTS_FUZZ_FUZZ_INPUT_H_
#define ISTHMUS_TESTS_FUZZ_FUZZ_INPUT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// The entry that libFuzzer calls; replay_test.c calls it by the target's name.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool promise) {
  if (!promise) abort();
}

typedef struct fuzz_input {
  const uint8_t *at;
  size_t left;
} fuzz_input;

// A number of that many bytes, the lowest first; zeros after the end.
static inline uint64_t fuzz_take(fuzz_input *in, size_t bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes && in->left > 0; i++, in->left--) {
    number |= (uint64_t)*in->at++ << (8 * i);
  }
  return number;
}

// A number from 0 to limit - 1 (at most 256), of one byte.
static inline int32_t fuzz_below(fuzz_input *in, int32_t limit) {
  return (int32_t)(fuzz_take(in, 1) % (uint64_t)limit);
}

#endif  // ISTHMUS_TESTS_FUZZ_FUZZ_INPUT_H_
