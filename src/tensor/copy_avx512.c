// SPDX-License-Identifier: Apache-2.0
// copy_avx512.c: the AVX2 table with wider loops where a shuffle bounds them
// and the caches hold both sides: steps of two, the other direction, bytes
// turned round. What memory bounds (transposes, all that is written past the
// caches) stays as it is.

#if defined(__x86_64__)

#include <immintrin.h>

#include "tensor/copy_avx2.h"

FORCE_INLINE __m512i load_line(const char *p) {
  return _mm512_loadu_si512((const void *)p);
}

FORCE_INLINE void store_line(char *p, __m512i v) {
  _mm512_storeu_si512((void *)p, v);
}

// The numbers of count items: first, first + step, ...
FORCE_INLINE __m512i numbers(int64_t item, int first, int step) {
  _Alignas(LINE) char bytes[LINE];
  for (int i = 0; i < LINE / (int)item; i++) {
    const int number = first + i * step;
    const int16_t two = (int16_t)number;
    const int32_t four = number;
    const int64_t eight = number;
    if (item == 2) memcpy(bytes + 2 * i, &two, 2);
    if (item == 4) memcpy(bytes + 4 * i, &four, 4);
    if (item == 8) memcpy(bytes + 8 * i, &eight, 8);
  }
  return load_line(bytes);
}

// ---- runs of 64 target bytes at a time; the AVX2 loops take what is left

FORCE_INLINE __m512i choose(int64_t item, __m512i a, __m512i order, __m512i b) {
  return item == 2   ? _mm512_permutex2var_epi16(a, order, b)
         : item == 4 ? _mm512_permutex2var_epi32(a, order, b)
                     : _mm512_permutex2var_epi64(a, order, b);
}

// A vector of every second item ends one item after it: the last of those is
// left.
FORCE_INLINE void every_second(int64_t item, ist__run *rest) {
  const __m512i order = numbers(item, 0, 2);
  const int64_t n = LINE / item;
  for (; rest->count > n; rest->count -= n) {
    store_line(rest->to, choose(item, load_line(rest->from), order,
                                load_line(rest->from + LINE)));
    rest->from += 2 * LINE;
    rest->to += LINE;
  }
}

FORCE_INLINE void backward(int64_t item, ist__run *rest) {
  const int64_t n = LINE / item;
  const __m512i order = numbers(item, (int)n - 1, -1);
  for (; rest->count >= n; rest->count -= n) {
    const __m512i v = load_line(rest->from - LINE + item);
    store_line(rest->to, choose(item, v, order, v));
    rest->from -= LINE;
    rest->to += LINE;
  }
}

FORCE_INLINE void run_of(int64_t item, ist__run *rest) {
  if (rest->stream || rest->to_step != item) return;
  if (rest->count * item < 2 * LINE) return;  // not worth the numbers
  if (rest->from_step == 2 * item) every_second(item, rest);
  if (rest->from_step == -item) backward(item, rest);
}

#define RUN(size)                                    \
  static void run_##size(const ist__run *run) {      \
    ist__run rest = *run;                            \
    run_of(size, &rest);                             \
    if (rest.count > 0) ist__avx2_run_##size(&rest); \
  }
RUN(2)
RUN(4)
RUN(8)

// ---- bytes turned round

FORCE_INLINE void turn(int64_t item, ist__run *rest) {
  _Alignas(LINE) char bytes[LINE];
  if (rest->stream || rest->to_step != item || rest->from_step != item) return;
  // Places are counted within 16 bytes.
  for (int i = 0; i < LINE; i++) bytes[i] = (char)((i ^ ((int)item - 1)) % 16);
  const __m512i order = load_line(bytes);
  const int64_t n = LINE / item;
  for (; rest->count >= n; rest->count -= n) {
    store_line(rest->to, _mm512_shuffle_epi8(load_line(rest->from), order));
    rest->from += LINE;
    rest->to += LINE;
  }
}

#define SWAP(size)                                    \
  static void swap_##size(const ist__run *run) {      \
    ist__run rest = *run;                             \
    turn(size, &rest);                                \
    if (rest.count > 0) ist__avx2_swap_##size(&rest); \
  }
SWAP(2)
SWAP(4)
SWAP(8)

const ist__copy_kernels ist__copy_avx512 = {
    .name = "avx512",
    .run = {ist__avx2_run_1, run_2, run_4, run_8, ist__avx2_run_16},
    .transpose = {ist__avx2_transpose_1, ist__avx2_transpose_2,
                  ist__avx2_transpose_4, ist__avx2_transpose_8,
                  ist__avx2_transpose_16},
    .swap = {swap_2, swap_4, swap_8},
    .unpack = ist__avx2_unpack,
    .pack = ist__avx2_pack,
};

#else

// An empty file is not C.
typedef int ist__copy_avx512_is_for_x86_64;

#endif
