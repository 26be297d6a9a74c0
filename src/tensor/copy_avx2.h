// SPDX-License-Identifier: Apache-2.0
// copy_avx2.h: what the files of the AVX2 tables share: moves of a register, a
// line written past the caches, and the names of the loops.

#ifndef ISTHMUS_TENSOR_COPY_AVX2_H_
#define ISTHMUS_TENSOR_COPY_AVX2_H_

#include <immintrin.h>
#include <string.h>

#include "tensor/copy_kernels.h"

// Bytes of a cache line.
#define LINE 64

// Bytes of a buffer in the first cache, from which is then written past the
// others.
#define CHUNK 4096

// Loops take their item size and their shuffles as arguments that are constant
// where they are called: only inlined do they become one loop for each size.
#define FORCE_INLINE static inline __attribute__((always_inline))

FORCE_INLINE __m256i load(const void *p) {
  return _mm256_loadu_si256(p);
}
FORCE_INLINE void store(void *p, __m256i v) {
  _mm256_storeu_si256(p, v);
}
FORCE_INLINE __m128i load_half(const char *p) {
  return _mm_loadu_si128((const __m128i *)(const void *)p);
}
FORCE_INLINE void store_half(char *p, __m128i v) {
  _mm_storeu_si128((__m128i *)(void *)p, v);
}
// p is a multiple of 32.
FORCE_INLINE void stream(void *p, __m256i v) {
  _mm256_stream_si256(p, v);
}
// past: past the caches, where p is a multiple of 32.
FORCE_INLINE void put(void *p, __m256i v, bool past) {
  if (past) {
    stream(p, v);
  } else {
    store(p, v);
  }
}

// 16 bytes of each of two places.
FORCE_INLINE __m256i load_halves(const char *low, const char *high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load_half(low)),
                                 load_half(high), 1);
}

// Bytes from p to the next line.
FORCE_INLINE int64_t to_line(const char *p) {
  return (int64_t)(-(uintptr_t)p % LINE);
}

FORCE_INLINE int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// count bytes, whole lines of them past the caches.
FORCE_INLINE void write_past(char *to, const char *from, int64_t count) {
  int64_t i = least(to_line(to), count);
  if (i > 0) memcpy(to, from, (size_t)i);
  for (; i + LINE <= count; i += LINE) {
    __m256i low = load(from + i), high = load(from + i + 32);
    stream(to + i, low);
    stream(to + i + 32, high);
  }
  if (i < count) memcpy(to + i, from + i, (size_t)(count - i));
}

// Thin transposes whose items lie dense on the thin side, two to four of them:
// columns beside each other in the target, or rows in the source. False when
// the shape is another one.
bool ist__avx2_interleave(const ist__transpose *t, int number);
bool ist__avx2_separate(const ist__transpose *t, int number);

void ist__avx2_run_1(const ist__run *run);
void ist__avx2_run_2(const ist__run *run);
void ist__avx2_run_4(const ist__run *run);
void ist__avx2_run_8(const ist__run *run);
void ist__avx2_run_16(const ist__run *run);

void ist__avx2_transpose_1(const ist__transpose *t);
void ist__avx2_transpose_2(const ist__transpose *t);
void ist__avx2_transpose_4(const ist__transpose *t);
void ist__avx2_transpose_8(const ist__transpose *t);
void ist__avx2_transpose_16(const ist__transpose *t);

void ist__avx2_swap_2(const ist__run *run);
void ist__avx2_swap_4(const ist__run *run);
void ist__avx2_swap_8(const ist__run *run);
void ist__avx2_unpack(const ist__bits *bits);
void ist__avx2_pack(const ist__bits *bits);

#endif  // ISTHMUS_TENSOR_COPY_AVX2_H_
