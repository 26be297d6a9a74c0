// SPDX-License-Identifier: Apache-2.0
// copy_avx2_transpose.c: transposes with AVX2, in squares of registers:
// straight to the target where the caches hold it, else through a tile in the
// first cache that is then written in whole lines.

#if defined(__x86_64__)

#include "tensor/copy_avx2.h"

// Rows of a tile in the target.
#define TILE_ROWS 64
#define TILE_ROWS_NARROW 32

// Bytes of a tile's row. Measured on 64 MiB of f32 on Zen 3, as memcpy's time
// over ours: target rows whose distance is a multiple of 512 bytes want long
// pieces (512 bytes 0.8, 256 bytes 0.6, 64 bytes 0.5: neighbouring rows lie in
// the same memory channel), others one line (64 bytes 1.2, 512 bytes 0.8).
#define TILE_BYTES 512

// Distance of rows in the buffer: no multiple of a power of two that would put
// them all in one set of the cache.
#define PITCH (TILE_BYTES + LINE)

// Rows of a tile that is written while the next one is read: two buffers of
// 72 KiB then stay in the second cache, and are on the stack.
#define PIPE_ROWS 128

// How far ahead along a line the source is fetched then.
#define AHEAD (2 * LINE)

// Rows of the target walked before the next columns: few enough for their
// pages to stay in the TLB.
#define BAND 512

// ---- squares: lines of the source by items along a line, to rows of the
// target

#define SQUARE_ROUNDS(count, rounds, low, high)      \
  for (int round = 0; round < (rounds); round++) {   \
    for (int i = 0; i < (count) / 2; i++) {          \
      b[2 * i] = low(a[i], a[i + (count) / 2]);      \
      b[2 * i + 1] = high(a[i], a[i + (count) / 2]); \
    }                                                \
    for (int i = 0; i < (count); i++) a[i] = b[i];   \
  }

// 32 lines of 16 bytes: four perfect shuffles of lines i and i + 8, in both
// halves at once.
FORCE_INLINE void square_1(const char *from, int64_t from_step, char *to,
                           int64_t to_step) {
  __m256i a[16], b[16];
  for (int i = 0; i < 16; i++) {
    a[i] = load_halves(from + i * from_step, from + (i + 16) * from_step);
  }
  SQUARE_ROUNDS(16, 4, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8)
  for (int i = 0; i < 16; i++) store(to + i * to_step, a[i]);
}

// 16 lines of 8 items.
FORCE_INLINE void square_2(const char *from, int64_t from_step, char *to,
                           int64_t to_step) {
  __m256i a[8], b[8];
  for (int i = 0; i < 8; i++) {
    a[i] = load_halves(from + i * from_step, from + (i + 8) * from_step);
  }
  SQUARE_ROUNDS(8, 3, _mm256_unpacklo_epi16, _mm256_unpackhi_epi16)
  for (int i = 0; i < 8; i++) store(to + i * to_step, a[i]);
}

// 8 lines of 4 items.
FORCE_INLINE void square_half_4(const char *from, int64_t from_step, char *to,
                                int64_t to_step) {
  __m256i a[4], b[4];
  for (int i = 0; i < 4; i++) {
    a[i] = load_halves(from + i * from_step, from + (i + 4) * from_step);
  }
  SQUARE_ROUNDS(4, 2, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32)
  for (int i = 0; i < 4; i++) store(to + i * to_step, a[i]);
}

FORCE_INLINE void square_4(const char *from, int64_t from_step, char *to,
                           int64_t to_step) {
  square_half_4(from, from_step, to, to_step);
  square_half_4(from + 16, from_step, to + 4 * to_step, to_step);
}

// 4 lines of 2 items.
FORCE_INLINE void square_half_8(const char *from, int64_t from_step, char *to,
                                int64_t to_step) {
  __m256i a = load_halves(from, from + 2 * from_step);
  __m256i b = load_halves(from + from_step, from + 3 * from_step);
  store(to, _mm256_unpacklo_epi64(a, b));
  store(to + to_step, _mm256_unpackhi_epi64(a, b));
}

FORCE_INLINE void square_8(const char *from, int64_t from_step, char *to,
                           int64_t to_step) {
  square_half_8(from, from_step, to, to_step);
  square_half_8(from + 16, from_step, to + 2 * to_step, to_step);
}

// 2 lines of 2 items.
FORCE_INLINE void square_16(const char *from, int64_t from_step, char *to,
                            int64_t to_step) {
  store(to, load_halves(from, from + from_step));
  store(to + to_step, load_halves(from + 16, from + from_step + 16));
}

typedef void (*square_fn)(const char *, int64_t, char *, int64_t);

// ---- transposes of any size

// A size's square: lines of the source by items along each.
typedef struct kind {
  square_fn square;
  int64_t item;
  int64_t lines;
  int64_t items;
  int64_t pipe_rows;
} kind;

// The squares of a region of at least one. Its last squares begin earlier where
// the sides are no multiple: what they share with those before is written
// twice, alike. With ahead, that many bytes further along each line are
// fetched.
FORCE_INLINE void squares(kind k, const ist__transpose *t, int64_t ahead) {
  const int64_t side = LINE / k.item;  // a line of the source is used at once
  const int64_t wide = k.item == 1 ? k.lines : side;
  for (int64_t c = 0; c < t->columns; c += wide) {
    const int64_t c_end = least(c + wide, t->columns);
    for (int64_t r = 0; r < t->rows; r += side) {
      const int64_t r_end = least(r + side, t->rows);
      for (int64_t i = c; i < c_end && ahead > 0; i++) {
        _mm_prefetch(t->from + i * t->from_step + r * k.item + ahead,
                     _MM_HINT_T0);
      }
      for (int64_t i = c; i < c_end; i += k.lines) {
        const int64_t column = least(i, t->columns - k.lines);
        for (int64_t j = r; j < r_end; j += k.items) {
          const int64_t row = least(j, t->rows - k.items);
          k.square(t->from + row * k.item + column * t->from_step, t->from_step,
                   t->to + row * t->to_step + column * k.item, t->to_step);
        }
      }
    }
  }
}

// A part of t: rows and columns from (row, column) on.
FORCE_INLINE ist__transpose part_of(const ist__transpose *t, int64_t item,
                                    int64_t row, int64_t column, int64_t rows,
                                    int64_t columns) {
  ist__transpose part = *t;
  part.from += row * item + column * t->from_step;
  part.to += row * t->to_step + column * item;
  part.rows = rows;
  part.columns = columns;
  return part;
}

// A row from the buffer.
FORCE_INLINE void write_row(char *to, const char *from, int64_t count,
                            bool past) {
  if (past) {
    write_past(to, from, count);
    return;
  }
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) store(to + i, load(from + i));
  if (i < count) memcpy(to + i, from + i, (size_t)(count - i));
}

// A part through the buffer. Rows without a gap are one row.
FORCE_INLINE void tile(kind k, const ist__transpose *t, int64_t ahead) {
  _Alignas(LINE) char buffer[TILE_ROWS * PITCH];
  const int64_t width = t->columns * k.item;
  ist__transpose in = *t;
  in.to = buffer;
  in.to_step = t->to_step == width ? width : PITCH;
  squares(k, &in, ahead);
  if (t->to_step == width) {
    write_row(t->to, buffer, t->rows * width, t->stream);
    return;
  }
  for (int64_t r = 0; r < t->rows; r++) {
    write_row(t->to + r * t->to_step, buffer + r * PITCH, width, t->stream);
  }
}

// Tiles of at most rows by columns; those at the end begin earlier where less
// than a square would be left.
FORCE_INLINE void tiles(kind k, const ist__transpose *t, int64_t rows,
                        int64_t columns, int64_t ahead) {
  for (int64_t band = 0; band < t->rows; band += BAND) {
    const int64_t band_end = least(band + BAND, t->rows);
    for (int64_t c = 0; c < t->columns; c += columns) {
      const int64_t column = least(c, t->columns - k.lines);
      for (int64_t r = band; r < band_end; r += rows) {
        const int64_t row = least(r, t->rows - k.items);
        ist__transpose part =
            part_of(t, k.item, row, column, least(rows, t->rows - row),
                    least(columns, t->columns - column));
        tile(k, &part, ahead);
      }
    }
  }
}

// ---- large tiles, of which one is filled while the one before is written:
// reads from memory then go on during the writes. On 64 MiB of f32 this made
// 0.94 of memcpy's speed, 0.79 without.

// What is left to write of a tile: rows of whole tiles from row on.
typedef struct pending {
  const char *from;
  char *to;
  int64_t row;
} pending;

FORCE_INLINE void write_piece(char *to, const char *from) {
  if (to_line(to) != 0) {
    write_past(to, from, TILE_BYTES);
    return;
  }
  for (int64_t i = 0; i < TILE_BYTES; i += 32) stream(to + i, load(from + i));
}

// Fills a buffer from a whole tile; in between writes the rows that are pending
// from the one before.
FORCE_INLINE void fill_and_write(kind k, const ist__transpose *t, char *buffer,
                                 pending *last) {
  const int64_t side = LINE / k.item;
  const int64_t steps = t->columns / k.lines * (t->rows / side);
  int64_t step = 0;
  for (int64_t c = 0; c < t->columns; c += k.lines) {
    for (int64_t r = 0; r < t->rows; r += side) {
      const char *from = t->from + r * k.item + c * t->from_step;
      for (int64_t i = 0; i < k.lines; i++) {
        _mm_prefetch(from + i * t->from_step + AHEAD, _MM_HINT_T0);
      }
      for (int64_t j = 0; j < side; j += k.items) {
        k.square(from + j * k.item, t->from_step,
                 buffer + (r + j) * PITCH + c * k.item, PITCH);
      }
      step++;
      for (; last->row < t->rows * step / steps; last->row++) {
        write_piece(last->to + last->row * t->to_step,
                    last->from + last->row * PITCH);
      }
    }
  }
}

// A transpose of whole tiles of k.pipe_rows by TILE_BYTES. Few source lines at
// a time, so that they are read on before others are begun.
FORCE_INLINE void pipeline(kind k, const ist__transpose *t) {
  _Alignas(LINE) char buffers[2][PIPE_ROWS * PITCH];
  const int64_t rows = k.pipe_rows, columns = TILE_BYTES / k.item;
  const int64_t width = columns < 256 ? 256 : columns;
  pending last = {NULL, NULL, rows};
  int filled = 0;
  for (int64_t band = 0; band < t->columns; band += width) {
    const int64_t band_end = least(band + width, t->columns);
    for (int64_t r = 0; r < t->rows; r += 4 * rows) {
      for (int64_t c = band; c < band_end; c += columns) {
        const int64_t r_end = least(r + 4 * rows, t->rows);
        for (int64_t i = r; i < r_end; i += rows) {
          ist__transpose part = part_of(t, k.item, i, c, rows, columns);
          fill_and_write(k, &part, buffers[filled], &last);
          last = (pending){buffers[filled], part.to, 0};
          filled = 1 - filled;
        }
      }
    }
  }
  for (; last.row < rows; last.row++) {
    write_piece(last.to + last.row * t->to_step, last.from + last.row * PITCH);
  }
}

// Squares straight to the target, a block of source lines after the other: the
// first cache holds where they are read.
FORCE_INLINE void straight(kind k, const ist__transpose *t) {
  const int64_t last_row = t->rows - k.items;
  const int64_t last_column = t->columns - k.lines;
  for (int64_t block = 0; block < t->columns; block += TILE_ROWS) {
    const int64_t end = least(block + TILE_ROWS, t->columns);
    for (int64_t r = 0; r < t->rows; r += k.items) {
      const int64_t row = least(r, last_row);
      for (int64_t c = block; c < end; c += k.lines) {
        const int64_t column = least(c, last_column);
        k.square(t->from + row * k.item + column * t->from_step, t->from_step,
                 t->to + row * t->to_step + column * k.item, t->to_step);
      }
    }
  }
}

// Tiles through the buffer, or item by item what is narrower than a square.
FORCE_INLINE void edge(kind k, int number, const ist__transpose *t) {
  if (t->rows >= k.items && t->columns >= k.lines) {
    tiles(k, t, TILE_ROWS, TILE_BYTES / k.item, 0);
  } else if (t->rows > 0 && t->columns > 0) {
    ist__copy_baseline.transpose[number](t);
  }
}

FORCE_INLINE void pipeline_and_edges(kind k, int number,
                                     const ist__transpose *t) {
  const int64_t width = TILE_BYTES / k.item;
  const int64_t rows = t->rows / k.pipe_rows * k.pipe_rows;
  const int64_t columns = t->columns / width * width;
  ist__transpose whole = part_of(t, k.item, 0, 0, rows, columns);
  ist__transpose right =
      part_of(t, k.item, 0, columns, t->rows, t->columns - columns);
  ist__transpose below = part_of(t, k.item, rows, 0, t->rows - rows, columns);
  pipeline(k, &whole);
  edge(k, number, &right);
  edge(k, number, &below);
}

// The first columns end where a line of the target begins; then a line is a
// tile's row.
FORCE_INLINE void narrow_tiles(kind k, const ist__transpose *t) {
  int64_t before = to_line(t->to) / k.item;
  if (t->columns - before < k.lines) before = 0;
  if (before > 0) {
    ist__transpose first =
        part_of(t, k.item, 0, 0, t->rows, before < k.lines ? k.lines : before);
    first.stream = false;
    straight(k, &first);
  }
  ist__transpose rest =
      part_of(t, k.item, 0, before, t->rows, t->columns - before);
  tiles(k, &rest, TILE_ROWS_NARROW, LINE / k.item, AHEAD);
}

// Chooses by where the rows of the target lie: see TILE_BYTES.
FORCE_INLINE void transpose(kind k, int number, const ist__transpose *t) {
  const int64_t width = t->columns * k.item;
  const bool crowded = t->to_step % 512 == 0;
  const bool dense = t->to_step == width && width <= TILE_BYTES;
  const bool lines = t->to_step % LINE == 0 && to_line(t->to) % k.item == 0;
  if (t->rows < k.items || t->columns < k.lines) {
    if (!ist__avx2_interleave(t, number) && !ist__avx2_separate(t, number)) {
      ist__copy_baseline.transpose[number](t);
    }
    return;
  }
  if (!t->stream && !crowded) {
    straight(k, t);
  } else if (!t->stream) {
    tiles(k, t, TILE_ROWS, TILE_BYTES / k.item, 0);
  } else if (!crowded && !dense && lines && k.item >= 4) {
    narrow_tiles(k, t);
  } else if (!dense && t->rows >= k.pipe_rows && width >= TILE_BYTES) {
    pipeline_and_edges(k, number, t);
  } else {
    tiles(k, t, TILE_ROWS, TILE_BYTES / k.item, k.item == 1 ? LINE : AHEAD);
  }
  if (t->stream) _mm_sfence();
}

#define TRANSPOSE(size, number, lines, items, pipe)                        \
  void ist__avx2_transpose_##size(const ist__transpose *t) {               \
    transpose((kind){square_##size, size, lines, items, pipe}, number, t); \
  }
TRANSPOSE(1, 0, 32, 16, 64)
TRANSPOSE(2, 1, 16, 8, PIPE_ROWS)
TRANSPOSE(4, 2, 8, 8, PIPE_ROWS)
TRANSPOSE(8, 3, 4, 4, PIPE_ROWS)
TRANSPOSE(16, 4, 2, 2, PIPE_ROWS)

#else

// An empty file is not C.
typedef int ist__copy_avx2_transpose_is_for_x86_64;

#endif
