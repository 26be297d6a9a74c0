// SPDX-License-Identifier: Apache-2.0
// copy_avx2.c: the inner loops with AVX2: transposes in blocks whose lines are
// one cache line on both sides, steps of two and reversals by shuffles.
//
// A block reads each source line whole and writes each target line whole, so
// nothing has to stay in a cache between blocks; large targets are written
// past the caches, through a buffer of one block.

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "tensor/copy_kernels.h"

// Bytes of a cache line.
#define LINE 64

// Blocks of a tile's sides, measured on 4096 x 4096: tiles of 4 x 16 lines
// keep the pages of both sides in the TLB.
#define TILE_ROWS 8
#define TILE_COLUMNS 8

static inline __m256i load(const char *p) {
  return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline void store(char *p, __m256i v) {
  _mm256_storeu_si256((__m256i *)(void *)p, v);
}
static inline __m128i load_half(const char *p) {
  return _mm_loadu_si128((const __m128i *)(const void *)p);
}
static inline void store_half(char *p, __m128i v) {
  _mm_storeu_si128((__m128i *)(void *)p, v);
}

// ---- squares: n items each way, source lines at from + i * from_step

static inline void square_1(const char *from, int64_t from_step, char *to,
                            int64_t to_step) {
  __m128i a[16], b[16];
  for (int i = 0; i < 16; i++) a[i] = load_half(from + i * from_step);
  // Four rounds of the perfect shuffle of lines i and i + 8.
  for (int round = 0; round < 4; round++) {
    for (int i = 0; i < 8; i++) {
      b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
      b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
    }
    for (int i = 0; i < 16; i++) a[i] = b[i];
  }
  for (int i = 0; i < 16; i++) store_half(to + i * to_step, a[i]);
}

static inline void square_2(const char *from, int64_t from_step, char *to,
                            int64_t to_step) {
  __m128i a[8], b[8];
  for (int i = 0; i < 8; i++) a[i] = load_half(from + i * from_step);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 4; i++) {
      b[2 * i] = _mm_unpacklo_epi16(a[i], a[i + 4]);
      b[2 * i + 1] = _mm_unpackhi_epi16(a[i], a[i + 4]);
    }
    for (int i = 0; i < 8; i++) a[i] = b[i];
  }
  for (int i = 0; i < 8; i++) store_half(to + i * to_step, a[i]);
}

static inline void square_4(const char *from, int64_t from_step, char *to,
                            int64_t to_step) {
  __m256i a[8], b[8];
  for (int i = 0; i < 8; i++) a[i] = load(from + i * from_step);
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm256_unpacklo_epi32(a[i], a[i + 1]);
    b[i + 1] = _mm256_unpackhi_epi32(a[i], a[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    a[i] = _mm256_unpacklo_epi64(b[i], b[i + 2]);
    a[i + 1] = _mm256_unpackhi_epi64(b[i], b[i + 2]);
    a[i + 2] = _mm256_unpacklo_epi64(b[i + 1], b[i + 3]);
    a[i + 3] = _mm256_unpackhi_epi64(b[i + 1], b[i + 3]);
  }
  for (int i = 0; i < 4; i++) {
    store(to + i * to_step, _mm256_permute2x128_si256(a[i], a[i + 4], 0x20));
    store(to + (i + 4) * to_step,
          _mm256_permute2x128_si256(a[i], a[i + 4], 0x31));
  }
}

static inline void square_8(const char *from, int64_t from_step, char *to,
                            int64_t to_step) {
  __m256i a0 = load(from), a1 = load(from + from_step);
  __m256i a2 = load(from + 2 * from_step), a3 = load(from + 3 * from_step);
  __m256i b0 = _mm256_unpacklo_epi64(a0, a1);
  __m256i b1 = _mm256_unpackhi_epi64(a0, a1);
  __m256i b2 = _mm256_unpacklo_epi64(a2, a3);
  __m256i b3 = _mm256_unpackhi_epi64(a2, a3);
  store(to, _mm256_permute2x128_si256(b0, b2, 0x20));
  store(to + to_step, _mm256_permute2x128_si256(b1, b3, 0x20));
  store(to + 2 * to_step, _mm256_permute2x128_si256(b0, b2, 0x31));
  store(to + 3 * to_step, _mm256_permute2x128_si256(b1, b3, 0x31));
}

static inline void square_16(const char *from, int64_t from_step, char *to,
                             int64_t to_step) {
  (void)from_step;
  (void)to_step;
  store_half(to, load_half(from));
}

typedef void (*square_fn)(const char *, int64_t, char *, int64_t);

// ---- transposes of any size

// One block of LINE / item items each way, as squares of side items, through
// two buffers: lines that lie a power of two apart share few places of a cache,
// so that each is read, and written, whole and once.
static inline __attribute__((always_inline)) void block(
    square_fn square, int64_t side, int64_t item, const ist__transpose *t,
    const char *from, char *to) {
  _Alignas(LINE) char in[LINE * LINE];
  _Alignas(LINE) char out[LINE * LINE];
  const int64_t n = LINE / item;
  for (int64_t i = 0; i < n; i++) {
    const char *line = from + i * t->from_step;
    __m256i low = load(line), high = load(line + 32);
    store(in + i * LINE, low);
    store(in + i * LINE + 32, high);
  }
  for (int64_t c = 0; c < n; c += side) {
    for (int64_t r = 0; r < n; r += side) {
      square(in + r * item + c * LINE, LINE, out + r * LINE + c * item, LINE);
    }
  }
  for (int64_t i = 0; i < n; i++) {
    __m256i low = load(out + i * LINE), high = load(out + i * LINE + 32);
    char *line = to + i * t->to_step;
    if (t->stream) {
      _mm256_stream_si256((__m256i *)(void *)line, low);
      _mm256_stream_si256((__m256i *)(void *)(line + 32), high);
    } else {
      store(line, low);
      store(line + 32, high);
    }
  }
}

// Blocks of the tile that begins at item (row, column); rows and columns are
// multiples of a block's side.
static inline __attribute__((always_inline)) void tile(
    square_fn square, int64_t side, int64_t item, const ist__transpose *t,
    int64_t row, int64_t column, int64_t rows, int64_t columns) {
  const int64_t n = LINE / item;
  int64_t row_end = row + TILE_ROWS * n < rows ? row + TILE_ROWS * n : rows;
  int64_t column_end =
      column + TILE_COLUMNS * n < columns ? column + TILE_COLUMNS * n : columns;
  for (int64_t c = column; c < column_end; c += n) {
    for (int64_t r = row; r < row_end; r += n) {
      block(square, side, item, t, t->from + r * item + c * t->from_step,
            t->to + r * t->to_step + c * item);
    }
  }
}

// A part of t: rows and columns from (row, column) on.
static ist__transpose part_of(const ist__transpose *t, int64_t item,
                              int64_t row, int64_t column, int64_t rows,
                              int64_t columns) {
  ist__transpose part = *t;
  part.from += row * item + column * t->from_step;
  part.to += row * t->to_step + column * item;
  part.rows = rows;
  part.columns = columns;
  return part;
}

static inline __attribute__((always_inline)) void whole(
    square_fn square, int64_t side, int64_t item, const ist__transpose *t) {
  const int64_t n = LINE / item;
  int64_t rows = t->rows / n * n, columns = t->columns / n * n;
  for (int64_t r = 0; r < rows; r += TILE_ROWS * n) {
    for (int64_t c = 0; c < columns; c += TILE_COLUMNS * n) {
      tile(square, side, item, t, r, c, rows, columns);
    }
  }
}

// The first columns, up to where the target's lines begin: how many.
static int64_t columns_before_line(const ist__transpose *t, int64_t item) {
  uintptr_t past = (uintptr_t)t->to % LINE;
  if (past == 0 || past % (uintptr_t)item != 0) return 0;
  int64_t before = (int64_t)(LINE - past) / item;
  return before < t->columns ? before : t->columns;
}

// What is left beside the blocks: squares, then plain C at the very edge.
static inline __attribute__((always_inline)) void strip(
    square_fn square, int64_t side, int64_t item, int number,
    const ist__transpose *t) {
  void (*edge)(const ist__transpose *) = ist__copy_baseline.transpose[number];
  int64_t rows = t->rows / side * side, columns = t->columns / side * side;
  if (columns == 0) rows = 0;
  if (rows == 0) columns = 0;
  for (int64_t r = 0; r < rows; r += side) {
    for (int64_t c = 0; c < columns; c += side) {
      square(t->from + r * item + c * t->from_step, t->from_step,
             t->to + r * t->to_step + c * item, t->to_step);
    }
  }
  if (columns < t->columns) {
    ist__transpose right =
        part_of(t, item, 0, columns, t->rows, t->columns - columns);
    edge(&right);
  }
  if (rows < t->rows && columns > 0) {
    ist__transpose below = part_of(t, item, rows, 0, t->rows - rows, columns);
    edge(&below);
  }
}

static inline __attribute__((always_inline)) void transpose(
    square_fn square, int64_t side, int64_t item, int number,
    const ist__transpose *all) {
  const int64_t n = LINE / item;
  int64_t before = all->stream ? columns_before_line(all, item) : 0;
  if (before > 0) {
    ist__transpose first = part_of(all, item, 0, 0, all->rows, before);
    strip(square, side, item, number, &first);
  }
  ist__transpose t =
      part_of(all, item, 0, before, all->rows, all->columns - before);
  t.stream =
      all->stream && (uintptr_t)t.to % LINE == 0 && t.to_step % LINE == 0;
  whole(square, side, item, &t);
  int64_t rows = t.rows / n * n, columns = t.columns / n * n;
  if (columns == 0) rows = 0;
  if (columns < t.columns) {
    ist__transpose right =
        part_of(&t, item, 0, columns, t.rows, t.columns - columns);
    strip(square, side, item, number, &right);
  }
  if (rows < t.rows && columns > 0) {
    ist__transpose below = part_of(&t, item, rows, 0, t.rows - rows, columns);
    strip(square, side, item, number, &below);
  }
  if (t.stream) _mm_sfence();
}

#define TRANSPOSE(item, number, side)                     \
  static void transpose_##item(const ist__transpose *t) { \
    transpose(square_##item, side, item, number, t);      \
  }
TRANSPOSE(1, 0, 16)
TRANSPOSE(2, 1, 8)
TRANSPOSE(4, 2, 8)
TRANSPOSE(8, 3, 4)
TRANSPOSE(16, 4, 1)

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
    .transpose = {transpose_1, transpose_2, transpose_4, transpose_8,
                  transpose_16},
};

#else

// An empty file is not C.
typedef int ist__copy_avx2_is_for_x86_64;

#endif
