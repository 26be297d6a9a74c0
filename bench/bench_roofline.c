// SPDX-License-Identifier: Apache-2.0
// The simplest loops that read, write or copy memory, each with plain and with
// non-temporal stores: what no copy of the same bytes can be faster than. Built
// as a shared library; run by bench_roofline.py.

#include <string.h>

#include "bench_clock.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

// size is a multiple of a line, addresses start at one.
enum {
  line_bytes = 64
};

typedef void (*probe_fn)(char *to, const char *from, size_t size);

static void copy_libc(char *to, const char *from, size_t size) {
  void *(*volatile copy)(void *, const void *, size_t) = memcpy;
  copy(to, from, size);
}

static void write_libc(char *to, const char *from, size_t size) {
  void *(*volatile set)(void *, int, size_t) = memset;
  (void)from;
  set(to, 1, size);
}

#if defined(__SSE2__)

typedef struct line {
  __m128i part[4];
} line;

static line load_line(const char *from) {
  const __m128i *at = (const __m128i *)from;
  return (line){{_mm_load_si128(at), _mm_load_si128(at + 1),
                 _mm_load_si128(at + 2), _mm_load_si128(at + 3)}};
}

static void store_line(char *to, line l) {
  for (int i = 0; i < 4; i++) _mm_store_si128((__m128i *)to + i, l.part[i]);
}

static void stream_line(char *to, line l) {
  for (int i = 0; i < 4; i++) _mm_stream_si128((__m128i *)to + i, l.part[i]);
}

static void copy_plain(char *to, const char *from, size_t size) {
  for (size_t i = 0; i < size; i += line_bytes) {
    store_line(to + i, load_line(from + i));
  }
}

static void copy_stream(char *to, const char *from, size_t size) {
  for (size_t i = 0; i < size; i += line_bytes) {
    stream_line(to + i, load_line(from + i));
  }
  _mm_sfence();
}

static void write_plain(char *to, const char *from, size_t size) {
  const line ones = load_line(from);
  for (size_t i = 0; i < size; i += line_bytes) store_line(to + i, ones);
}

static void write_stream(char *to, const char *from, size_t size) {
  const line ones = load_line(from);
  for (size_t i = 0; i < size; i += line_bytes) stream_line(to + i, ones);
  _mm_sfence();
}

static void read_lines(char *to, const char *from, size_t size) {
  __m128i sum[4] = {_mm_setzero_si128(), _mm_setzero_si128(),
                    _mm_setzero_si128(), _mm_setzero_si128()};
  for (size_t i = 0; i < size; i += line_bytes) {
    line l = load_line(from + i);
    for (int k = 0; k < 4; k++) sum[k] = _mm_xor_si128(sum[k], l.part[k]);
  }
  for (int k = 0; k < 4; k++) _mm_store_si128((__m128i *)to + k, sum[k]);
}

static __m128i fold_line(__m128i sum, line l) {
  __m128i low = _mm_xor_si128(l.part[0], l.part[1]);
  __m128i high = _mm_xor_si128(l.part[2], l.part[3]);
  return _mm_xor_si128(sum, _mm_xor_si128(low, high));
}

// Four pages side by side: several streams keep more lines on their way than
// one. size is a multiple of the four pages.
enum {
  page_bytes = 4096,
  page_count = 4
};

static void read_pages(char *to, const char *from, size_t size) {
  __m128i sum = _mm_setzero_si128();
  for (size_t i = 0; i < size; i += page_count * page_bytes) {
    for (size_t at = i; at < i + page_bytes; at += line_bytes) {
      for (size_t k = 0; k < page_count; k++) {
        sum = fold_line(sum, load_line(from + at + k * page_bytes));
      }
    }
  }
  _mm_store_si128((__m128i *)to, sum);
}

// The row of a square of 4-byte items of size bytes, or nearly: what a
// transpose steps by on one of its sides.
static size_t row_of(size_t size) {
  size_t row = line_bytes;
  while (row * row < 4 * size) row *= 2;
  return row;
}

// Some lines of each row, then the next ones of each.
static inline void read_columns(char *to, const char *from, size_t size,
                                size_t lines) {
  const size_t row = row_of(size);
  const size_t chunk = lines * line_bytes;
  __m128i sum = _mm_setzero_si128();
  for (size_t c = 0; c < row; c += chunk) {
    for (size_t r = c; r < size; r += row) {
      for (size_t at = r; at < r + chunk; at += line_bytes) {
        sum = fold_line(sum, load_line(from + at));
      }
    }
  }
  _mm_store_si128((__m128i *)to, sum);
}

// The same, asking for what comes four rows later: prefetches beyond the block
// do nothing.
static void read_columns_early(char *to, const char *from, size_t size) {
  const size_t row = row_of(size);
  const size_t chunk = 4 * line_bytes;
  __m128i sum = _mm_setzero_si128();
  for (size_t c = 0; c < row; c += chunk) {
    for (size_t r = c; r < size; r += row) {
      for (size_t at = r; at < r + chunk; at += line_bytes) {
        _mm_prefetch((const char *)((uintptr_t)from + at + 4 * row),
                     _MM_HINT_T0);
        sum = fold_line(sum, load_line(from + at));
      }
    }
  }
  _mm_store_si128((__m128i *)to, sum);
}

// Sixteen rows side by side, each from its start to its end.
static void read_rows(char *to, const char *from, size_t size) {
  const size_t row = row_of(size);
  __m128i sum = _mm_setzero_si128();
  for (size_t r = 0; r < size; r += 16 * row) {
    for (size_t c = 0; c < row; c += line_bytes) {
      for (size_t at = r + c; at < r + 16 * row; at += row) {
        sum = fold_line(sum, load_line(from + at));
      }
    }
  }
  _mm_store_si128((__m128i *)to, sum);
}

static inline void write_columns(char *to, const char *from, size_t size,
                                 size_t lines) {
  const size_t row = row_of(size);
  const size_t chunk = lines * line_bytes;
  const line ones = load_line(from);
  for (size_t c = 0; c < row; c += chunk) {
    for (size_t r = c; r < size; r += row) {
      for (size_t at = r; at < r + chunk; at += line_bytes) {
        stream_line(to + at, ones);
      }
    }
  }
  _mm_sfence();
}

static void read_columns_1(char *to, const char *from, size_t size) {
  read_columns(to, from, size, 1);
}
static void read_columns_4(char *to, const char *from, size_t size) {
  read_columns(to, from, size, 4);
}
static void read_columns_16(char *to, const char *from, size_t size) {
  read_columns(to, from, size, 16);
}
static void write_columns_1(char *to, const char *from, size_t size) {
  write_columns(to, from, size, 1);
}
static void write_columns_4(char *to, const char *from, size_t size) {
  write_columns(to, from, size, 4);
}
static void write_columns_16(char *to, const char *from, size_t size) {
  write_columns(to, from, size, 16);
}

#else  // plain C: what a compiler makes of it; no non-temporal stores

static void read_lines(char *to, const char *from, size_t size) {
  uint64_t sum[8] = {0};
  for (size_t i = 0; i < size; i += line_bytes) {
    uint64_t words[8];
    memcpy(words, from + i, sizeof words);
    for (int k = 0; k < 8; k++) sum[k] ^= words[k];
  }
  memcpy(to, sum, sizeof sum);
}

#endif

typedef struct probe {
  const char *name;
  probe_fn run;
} probe;

static const probe probes[] = {
    {"memcpy", copy_libc},
    {"memset", write_libc},
    {"read", read_lines},
#if defined(__SSE2__)
    {"read, 4 pages at once", read_pages},
    {"copy", copy_plain},
    {"copy, non-temporal", copy_stream},
    {"write", write_plain},
    {"write, non-temporal", write_stream},
    {"read, 1 line of each row", read_columns_1},
    {"read, 4 lines of each row", read_columns_4},
    {"read, 4 lines of each row, prefetched", read_columns_early},
    {"read, 16 lines of each row", read_columns_16},
    {"read, 16 rows side by side", read_rows},
    {"write, non-temporal, 1 line of each row", write_columns_1},
    {"write, non-temporal, 4 lines of each row", write_columns_4},
    {"write, non-temporal, 16 lines of each row", write_columns_16},
#endif
};

// The name of probe number index, NULL after the last.
const char *bench_probe_name(size_t index) {
  return index < sizeof probes / sizeof *probes ? probes[index].name : NULL;
}

// Nanoseconds of one run of a probe, repeated `times` times.
double bench_probe_run(size_t index, char *to, const char *from, size_t size,
                       size_t times) {
  int64_t start = bench_thread_now();
  for (size_t i = 0; i < times; i++) probes[index].run(to, from, size);
  return (double)(bench_thread_now() - start) / (double)times;
}
