// SPDX-License-Identifier: Apache-2.0
// copy_avx2.c: the table of the inner loops with AVX2, and the runs: steps of
// two and reversals by shuffles.

#if defined(__x86_64__)

#include "tensor/copy_avx2.h"

// ---- runs

// Every second item of 64 source bytes, in 32.
static inline __m256i evens_1(__m256i a, __m256i b) {
  const __m256i low = _mm256_set1_epi16(0xFF);
  __m256i packed =
      _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
  return _mm256_permute4x64_epi64(packed, 0xD8);
}
static inline __m256i evens_2(__m256i a, __m256i b) {
  const __m256i low = _mm256_set1_epi32(0xFFFF);
  __m256i packed =
      _mm256_packus_epi32(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
  return _mm256_permute4x64_epi64(packed, 0xD8);
}
static inline __m256i evens_4(__m256i a, __m256i b) {
  __m256 packed =
      _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88);
  return _mm256_permute4x64_epi64(_mm256_castps_si256(packed), 0xD8);
}
static inline __m256i evens_8(__m256i a, __m256i b) {
  return _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(a, b), 0xD8);
}

// The items of 32 bytes in the other order.
static inline __m256i reverse_1(__m256i a) {
  const __m256i order =
      _mm256_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 15,
                       14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(a, order), 0x4E);
}
static inline __m256i reverse_2(__m256i a) {
  const __m256i order =
      _mm256_setr_epi8(14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1, 14,
                       15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1);
  return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(a, order), 0x4E);
}
static inline __m256i reverse_4(__m256i a) {
  return _mm256_permute4x64_epi64(_mm256_shuffle_epi32(a, 0x1B), 0x4E);
}
static inline __m256i reverse_8(__m256i a) {
  return _mm256_permute4x64_epi64(a, 0x1B);
}

// Runs of 32 target bytes at a time, by a step's shuffle; what is left goes to
// plain C. Never reads past the last item: a vector of every second item ends
// one item after it, so the last one of those is left too.
#define RUN(item, number)                                                \
  static void run_##item(const ist__run *run) {                          \
    const int64_t n = 32 / item;                                         \
    ist__run rest = *run;                                                \
    if (run->to_step == item && run->from_step == 2 * item) {            \
      for (; rest.count > n; rest.count -= n) {                          \
        __m256i v = evens_##item(load(rest.from), load(rest.from + 32)); \
        store(rest.to, v);                                               \
        rest.from += 64;                                                 \
        rest.to += 32;                                                   \
      }                                                                  \
    } else if (run->to_step == item && run->from_step == -item) {        \
      for (; rest.count >= n; rest.count -= n) {                         \
        store(rest.to, reverse_##item(load(rest.from - 32 + item)));     \
        rest.from -= 32;                                                 \
        rest.to += 32;                                                   \
      }                                                                  \
    }                                                                    \
    if (rest.count > 0) ist__copy_baseline.run[number](&rest);           \
  }
RUN(1, 0)
RUN(2, 1)
RUN(4, 2)
RUN(8, 3)

static void run_16(const ist__run *run) {
  ist__copy_baseline.run[4](run);
}

const ist__copy_kernels ist__copy_avx2 = {
    .name = "avx2",
    .run = {run_1, run_2, run_4, run_8, run_16},
    .transpose = {ist__avx2_transpose_1, ist__avx2_transpose_2,
                  ist__avx2_transpose_4, ist__avx2_transpose_8,
                  ist__avx2_transpose_16},
};

#else

// An empty file is not C.
typedef int ist__copy_avx2_is_for_x86_64;

#endif
