// SPDX-License-Identifier: Apache-2.0
// copy_avx2_three.h: three registers of items woven to one line or taken apart,
// with one byte shuffle each and a choice by place.
//
// Item e of line p has place 3e + p of the woven line, so that its register
// and its place there are known; no two items of a line have the same place in
// different registers. The tables name the item that each place takes.

#ifndef ISTHMUS_TENSOR_COPY_AVX2_THREE_H_
#define ISTHMUS_TENSOR_COPY_AVX2_THREE_H_

#include "tensor/copy_avx2.h"

#define BYTES_1(k) (k)
#define BYTES_2(k) 2 * (k), 2 * (k) + 1
#define BYTES_4(k) BYTES_2(2 * (k)), BYTES_2(2 * (k) + 1)
#define BYTES_8(k) BYTES_4(2 * (k)), BYTES_4(2 * (k) + 1)
#define ITEMS_2(b, i, j) {b(i), b(j)}
#define ITEMS_4(b, i, j, k, l) {b(i), b(j), b(k), b(l)}
#define ITEMS_8(b, i, j, k, l, m, n, o, p) \
  {b(i), b(j), b(k), b(l), b(m), b(n), b(o), b(p)}

typedef struct threes {
  char weave[3][16];
  char part[3][16];
  char place[2][16];  // places 1 and 2 of each three
} threes;

static const threes threes_1 = {
    {{0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5},
     {5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10},
     {10, 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15}},
    {{0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14, 1, 4, 7, 10, 13},
     {1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14},
     {2, 5, 8, 11, 14, 1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15}},
    {{0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0},
     {0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0}}};
static const threes threes_2 = {
    {ITEMS_8(BYTES_2, 0, 3, 6, 1, 4, 7, 2, 5),
     ITEMS_8(BYTES_2, 5, 0, 3, 6, 1, 4, 7, 2),
     ITEMS_8(BYTES_2, 2, 5, 0, 3, 6, 1, 4, 7)},
    {ITEMS_8(BYTES_2, 0, 3, 6, 1, 4, 7, 2, 5),
     ITEMS_8(BYTES_2, 1, 4, 7, 2, 5, 0, 3, 6),
     ITEMS_8(BYTES_2, 2, 5, 0, 3, 6, 1, 4, 7)},
    {{0, 0, -1, -1, 0, 0, 0, 0, -1, -1, 0, 0, 0, 0, -1, -1},
     {0, 0, 0, 0, -1, -1, 0, 0, 0, 0, -1, -1, 0, 0, 0, 0}}};
static const threes threes_4 = {
    {ITEMS_4(BYTES_4, 0, 3, 2, 1), ITEMS_4(BYTES_4, 1, 0, 3, 2),
     ITEMS_4(BYTES_4, 2, 1, 0, 3)},
    {ITEMS_4(BYTES_4, 0, 3, 2, 1), ITEMS_4(BYTES_4, 1, 0, 3, 2),
     ITEMS_4(BYTES_4, 2, 1, 0, 3)},
    {{0, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0},
     {0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0, 0}}};
static const threes threes_8 = {
    {ITEMS_2(BYTES_8, 0, 1), ITEMS_2(BYTES_8, 1, 0), ITEMS_2(BYTES_8, 0, 1)},
    {ITEMS_2(BYTES_8, 0, 1), ITEMS_2(BYTES_8, 1, 0), ITEMS_2(BYTES_8, 0, 1)},
    {{0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1}, {0}}};

FORCE_INLINE const threes *threes_of(int64_t item) {
  return item == 1   ? &threes_1
         : item == 2 ? &threes_2
         : item == 4 ? &threes_4
                     : &threes_8;
}

FORCE_INLINE __m128i choose(const threes *s, __m128i a, __m128i b, __m128i c) {
  __m128i ab = _mm_blendv_epi8(a, b, load_half(s->place[0]));
  return _mm_blendv_epi8(ab, c, load_half(s->place[1]));
}

// Items of a register are one more than a multiple of three, or two more:
// which line a register begins with follows.
FORCE_INLINE void weave_three(int64_t item, __m128i *a) {
  const threes *s = threes_of(item);
  __m128i p[3];
  for (int i = 0; i < 3; i++) {
    p[i] = _mm_shuffle_epi8(a[i], load_half(s->weave[i]));
  }
  __m128i with_1 = choose(s, p[1], p[2], p[0]);
  __m128i with_2 = choose(s, p[2], p[0], p[1]);
  bool one = item == 1 || item == 4;
  a[0] = choose(s, p[0], p[1], p[2]);
  a[1] = one ? with_1 : with_2;
  a[2] = one ? with_2 : with_1;
}

FORCE_INLINE void part_three(int64_t item, __m128i *a) {
  const threes *s = threes_of(item);
  bool one = item == 1 || item == 4;
  __m128i b = one ? a[1] : a[2], c = one ? a[2] : a[1];
  __m128i p[3] = {choose(s, a[0], c, b), choose(s, b, a[0], c),
                  choose(s, c, b, a[0])};
  for (int i = 0; i < 3; i++) {
    a[i] = _mm_shuffle_epi8(p[i], load_half(s->part[i]));
  }
}

// The first of the three lines.
FORCE_INLINE __m128i first_of_three(int64_t item, __m128i a, __m128i b,
                                    __m128i c) {
  const threes *s = threes_of(item);
  bool one = item == 1 || item == 4;
  __m128i v = one ? choose(s, a, c, b) : choose(s, a, b, c);
  return _mm_shuffle_epi8(v, load_half(s->part[0]));
}

#endif  // ISTHMUS_TENSOR_COPY_AVX2_THREE_H_
