// SPDX-License-Identifier: Apache-2.0
// copy_avx2_interleave.c: thin transposes with AVX2: a few lines woven to one
// (planes of colours to pixels), and one taken apart to a few.

#if defined(__x86_64__)

#include "tensor/copy_avx2.h"

// ---- two, four, eight and sixteen lines: perfect shuffles
//
// The place of an item in count registers is a number of bits; a round of
// shuffles of registers i and i + count / 2 rotates them by one. As many rounds
// as the lines have bits weave, as many as the items of a register have take
// apart.

FORCE_INLINE __m128i unpack_low(int64_t item, __m128i a, __m128i b) {
  return item == 1   ? _mm_unpacklo_epi8(a, b)
         : item == 2 ? _mm_unpacklo_epi16(a, b)
         : item == 4 ? _mm_unpacklo_epi32(a, b)
                     : _mm_unpacklo_epi64(a, b);
}

FORCE_INLINE __m128i unpack_high(int64_t item, __m128i a, __m128i b) {
  return item == 1   ? _mm_unpackhi_epi8(a, b)
         : item == 2 ? _mm_unpackhi_epi16(a, b)
         : item == 4 ? _mm_unpackhi_epi32(a, b)
                     : _mm_unpackhi_epi64(a, b);
}

FORCE_INLINE void rotate(int64_t item, int count, int rounds, __m128i *a) {
  __m128i b[16];
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < count / 2; i++) {
      b[2 * i] = unpack_low(item, a[i], a[i + count / 2]);
      b[2 * i + 1] = unpack_high(item, a[i], a[i + count / 2]);
    }
    for (int i = 0; i < count; i++) a[i] = b[i];
  }
}

// ---- three lines: one byte shuffle each, then a choice by place
//
// Item e of line p has place 3e + p of the woven line, so that its register
// and its place there are known; no two items of a line have the same place in
// different registers. ITEMS names the item that each place of a line takes.

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

// ---- the loops

FORCE_INLINE int bits_of(int64_t n) {
  return n >= 16 ? 4 : n >= 8 ? 3 : n >= 4 ? 2 : 1;
}

FORCE_INLINE void put(char *to, __m128i v, bool past) {
  if (past) {
    _mm_stream_si128((__m128i *)(void *)to, v);
  } else {
    store_half(to, v);
  }
}

FORCE_INLINE void weave(int64_t item, int count, const ist__transpose *t,
                        bool past) {
  const int64_t items = 16 / item;
  __m128i a[16];
  const char *from = t->from;
  char *to = t->to;
  for (int64_t r = 0; r + items <= t->rows; r += items) {
    for (int i = 0; i < count; i++) a[i] = load_half(from + i * t->from_step);
    if (count == 3) {
      weave_three(item, a);
    } else {
      rotate(item, count, bits_of(count), a);
    }
    for (int i = 0; i < count; i++) put(to + 16 * i, a[i], past);
    from += 16;
    to += 16 * count;
  }
}

FORCE_INLINE void part(int64_t item, int count, const ist__transpose *t,
                       bool past) {
  const int64_t items = 16 / item;
  __m128i a[16];
  const char *from = t->from;
  char *to = t->to;
  for (int64_t c = 0; c + items <= t->columns; c += items) {
    for (int i = 0; i < count; i++) a[i] = load_half(from + 16 * i);
    if (count == 3) {
      part_three(item, a);
    } else {
      rotate(item, count, bits_of(items), a);
    }
    for (int i = 0; i < count; i++) put(to + i * t->to_step, a[i], past);
    from += 16 * count;
    to += 16;
  }
}

// A loop for each item size and count that is less than a square's side.
typedef void (*loop)(int64_t item, int count, const ist__transpose *t,
                     bool past);

FORCE_INLINE void with_count(loop body, int64_t item, int64_t count,
                             const ist__transpose *t, bool past) {
  if (count == 2) body(item, 2, t, past);
  if (count == 3) body(item, 3, t, past);
  if (count == 4 && item < 8) body(item, 4, t, past);
  if (count == 8 && item < 4) body(item, 8, t, past);
  if (count == 16 && item < 2) body(item, 16, t, past);
}

FORCE_INLINE void with_size(loop body, int number, int64_t count,
                            const ist__transpose *t) {
  if (t->stream) {
    if (number == 0) with_count(body, 1, count, t, true);
    if (number == 1) with_count(body, 2, count, t, true);
    if (number == 2) with_count(body, 4, count, t, true);
    if (number == 3) with_count(body, 8, count, t, true);
    _mm_sfence();
  } else {
    if (number == 0) with_count(body, 1, count, t, false);
    if (number == 1) with_count(body, 2, count, t, false);
    if (number == 2) with_count(body, 4, count, t, false);
    if (number == 3) with_count(body, 8, count, t, false);
  }
}

static bool has_loop(int number, int64_t count) {
  bool power = count == 2 || count == 4 || count == 8 || count == 16;
  return number < 4 && (count == 3 || power) && count << number <= 16 + 8;
}

// Steps of size bytes from to until it is a multiple of 16; more than most if
// it never is.
static int64_t steps_to_16(const char *to, int64_t size, int64_t most) {
  int64_t steps = 0;
  while (steps <= most && ((uintptr_t)to + (uintptr_t)(steps * size)) % 16) {
    steps++;
  }
  return steps;
}

bool ist__avx2_interleave(const ist__transpose *t, int number) {
  const int64_t item = (int64_t)1 << number;
  if (!has_loop(number, t->columns)) return false;
  if (t->to_step != t->columns * item) return false;
  ist__transpose edge = *t, body = *t;
  edge.rows = 0;
  if (t->stream) {
    edge.rows = steps_to_16(t->to, t->to_step, 16);
    body.stream = edge.rows <= 16 && edge.rows <= t->rows;
    if (!body.stream) edge.rows = 0;
  }
  ist__copy_baseline.transpose[number](&edge);
  body.from += edge.rows * item;
  body.to += edge.rows * t->to_step;
  body.rows -= edge.rows;
  with_size(weave, number, t->columns, &body);
  int64_t done = body.rows / (16 / item) * (16 / item);
  body.from += done * item;
  body.to += done * t->to_step;
  body.rows -= done;
  if (body.rows > 0) ist__copy_baseline.transpose[number](&body);
  return true;
}

bool ist__avx2_separate(const ist__transpose *t, int number) {
  const int64_t item = (int64_t)1 << number;
  if (!has_loop(number, t->rows)) return false;
  if (t->from_step != t->rows * item) return false;
  ist__transpose edge = *t, body = *t;
  edge.columns = 0;
  if (t->stream) {
    edge.columns = steps_to_16(t->to, item, 16);
    body.stream =
        t->to_step % 16 == 0 && edge.columns <= 16 && edge.columns < t->columns;
    if (!body.stream) edge.columns = 0;
  }
  if (edge.columns > 0) ist__copy_baseline.transpose[number](&edge);
  body.from += edge.columns * t->from_step;
  body.to += edge.columns * item;
  body.columns -= edge.columns;
  with_size(part, number, t->rows, &body);
  int64_t done = body.columns / (16 / item) * (16 / item);
  body.from += done * t->from_step;
  body.to += done * item;
  body.columns -= done;
  if (body.columns > 0) ist__copy_baseline.transpose[number](&body);
  return true;
}

#else

// An empty file is not C.
typedef int ist__copy_avx2_interleave_is_for_x86_64;

#endif
