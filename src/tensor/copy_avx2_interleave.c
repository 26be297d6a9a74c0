// SPDX-License-Identifier: Apache-2.0
// copy_avx2_interleave.c: thin transposes with AVX2: a few lines woven to one
// (planes of colours to pixels), and one taken apart to a few.

#if defined(__x86_64__)

#include <assert.h>

#include "tensor/copy_avx2.h"
#include "tensor/copy_avx2_three.h"

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

// ---- the loops

FORCE_INLINE int bits_of(int64_t n) {
  return n >= 16 ? 4 : n >= 8 ? 3 : n >= 4 ? 2 : 1;
}

FORCE_INLINE void put_half(char *to, __m128i v, bool past) {
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
    for (int i = 0; i < count; i++) put_half(to + 16 * i, a[i], past);
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
  assert(!past);  // separate_past fills a buffer instead
  (void)past;
  for (int64_t c = 0; c + items <= t->columns; c += items) {
    for (int i = 0; i < count; i++) a[i] = load_half(from + 16 * i);
    if (count == 3) {
      part_three(item, a);
    } else {
      rotate(item, count, bits_of(items), a);
    }
    for (int i = 0; i < count; i++) store_half(to + i * t->to_step, a[i]);
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

// What is left where the columns end in the middle of a register.
static void separate_all(const ist__transpose *t, int number) {
  const int64_t items = 16 >> number;
  const int64_t done = t->columns / items * items;
  ist__transpose rest = *t;
  with_size(part, number, t->rows, t);  // t->stream is false
  rest.from += done * t->from_step;
  rest.to += done << number;
  rest.columns -= done;
  if (rest.columns > 0) ist__copy_baseline.transpose[number](&rest);
}

// Bytes of a row in the buffer. Rows written a register at a time, in turn,
// fill no line at once: where their distance is a multiple of 4096, that was
// four times slower than the buffer.
#define ROW 512

static void separate_past(const ist__transpose *t, int number) {
  _Alignas(LINE) char buffer[16 * ROW];
  ist__transpose rest = *t;
  int64_t columns = (ROW - LINE + to_line(t->to)) >> number;
  while (rest.columns > 0) {
    ist__transpose in = rest;
    in.columns = least(columns, rest.columns);
    in.to = buffer;
    in.to_step = ROW;
    in.stream = false;
    separate_all(&in, number);
    for (int64_t r = 0; r < t->rows; r++) {
      write_past(rest.to + r * t->to_step, buffer + r * ROW,
                 in.columns << number);
    }
    rest.from += in.columns * t->from_step;
    rest.to += in.columns << number;
    rest.columns -= in.columns;
    columns = ROW >> number;
  }
  _mm_sfence();
}

bool ist__avx2_separate(const ist__transpose *t, int number) {
  if (!has_loop(number, t->rows)) return false;
  if (t->from_step != t->rows << number) return false;
  if (t->stream) {
    separate_past(t, number);
  } else {
    separate_all(t, number);
  }
  return true;
}

#else

// An empty file is not C.
typedef int ist__copy_avx2_interleave_is_for_x86_64;

#endif
