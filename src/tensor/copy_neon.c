// SPDX-License-Identifier: Apache-2.0
// copy_neon.c: the inner loops with NEON: squares of registers for transposes,
// and loads and stores that weave two to four registers for thin ones and for
// runs with a step. Nothing is written past the caches: STNP, a hint, is not
// used.

#if defined(__aarch64__)

#include <arm_neon.h>
#include <string.h>

#include "tensor/copy_kernels.h"

// Loops take their item size as a constant: only inlined do they become one
// loop for each.
#define FORCE_INLINE static inline __attribute__((always_inline))

// Items of a block's side: its lines stay in a first cache.
#define BLOCK 64

FORCE_INLINE uint8x16_t load(const char *p) {
  return vld1q_u8((const uint8_t *)p);
}

FORCE_INLINE void store(char *p, uint8x16_t v) {
  vst1q_u8((uint8_t *)p, v);
}

FORCE_INLINE int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// ---- squares

#define ZIP(which, bits, a, b)                     \
  vreinterpretq_u8_u##bits(vzip##which##q_u##bits( \
      vreinterpretq_u##bits##_u8(a), vreinterpretq_u##bits##_u8(b)))

FORCE_INLINE uint8x16_t zip_low(int64_t item, uint8x16_t a, uint8x16_t b) {
  return item == 1   ? vzip1q_u8(a, b)
         : item == 2 ? ZIP(1, 16, a, b)
         : item == 4 ? ZIP(1, 32, a, b)
                     : ZIP(1, 64, a, b);
}

FORCE_INLINE uint8x16_t zip_high(int64_t item, uint8x16_t a, uint8x16_t b) {
  return item == 1   ? vzip2q_u8(a, b)
         : item == 2 ? ZIP(2, 16, a, b)
         : item == 4 ? ZIP(2, 32, a, b)
                     : ZIP(2, 64, a, b);
}

// As many lines as items fill a register: perfect shuffles of lines i and
// i + side / 2, which rotate the place of an item by a bit each.
FORCE_INLINE void square(int64_t item, const char *from, int64_t from_step,
                         char *to, int64_t to_step) {
  const int side = (int)(16 / item);
  uint8x16_t a[16], b[16];
  for (int i = 0; i < side; i++) a[i] = load(from + i * from_step);
  for (int round = 1; round < side; round *= 2) {
    for (int i = 0; i < side / 2; i++) {
      b[2 * i] = zip_low(item, a[i], a[i + side / 2]);
      b[2 * i + 1] = zip_high(item, a[i], a[i + side / 2]);
    }
    for (int i = 0; i < side; i++) a[i] = b[i];
  }
  for (int i = 0; i < side; i++) store(to + i * to_step, a[i]);
}

// The squares of a block; the last ones begin earlier where the sides are no
// multiple.
FORCE_INLINE void block(int64_t item, const ist__transpose *t, int64_t row,
                        int64_t column) {
  const int64_t side = 16 / item;
  const int64_t row_end = least(row + BLOCK, t->rows);
  const int64_t column_end = least(column + BLOCK, t->columns);
  for (int64_t r = row; r < row_end; r += side) {
    const int64_t i = least(r, t->rows - side);
    for (int64_t c = column; c < column_end; c += side) {
      const int64_t k = least(c, t->columns - side);
      square(item, t->from + i * item + k * t->from_step, t->from_step,
             t->to + i * t->to_step + k * item, t->to_step);
    }
  }
}

// ---- thin transposes: two to four lines woven to one, or one taken apart

// Two to four registers, unwoven or to weave. Items that were joined into wider
// ones may lie at no multiple of those, where C has no pointer to them.
#define WOVEN(bits, count, lines)                               \
  FORCE_INLINE lines load_##bits##_##count(const char *from) {  \
    uint##bits##_t items[(count) * 128 / (bits)];               \
    if ((uintptr_t)from % sizeof items[0] == 0) {               \
      return vld##count##q_u##bits(                             \
          (const uint##bits##_t *)(const void *)from);          \
    }                                                           \
    memcpy(items, from, sizeof items);                          \
    return vld##count##q_u##bits(items);                        \
  }                                                             \
  FORCE_INLINE void store_##bits##_##count(char *to, lines v) { \
    uint##bits##_t items[(count) * 128 / (bits)];               \
    if ((uintptr_t)to % sizeof items[0] == 0) {                 \
      vst##count##q_u##bits((uint##bits##_t *)(void *)to, v);   \
      return;                                                   \
    }                                                           \
    vst##count##q_u##bits(items, v);                            \
    memcpy(to, items, sizeof items);                            \
  }

#define WOVENS(bits, lanes)                  \
  WOVEN(bits, 2, uint##bits##x##lanes##x2_t) \
  WOVEN(bits, 3, uint##bits##x##lanes##x3_t) \
  WOVEN(bits, 4, uint##bits##x##lanes##x4_t)
WOVENS(8, 16)
WOVENS(16, 8)
WOVENS(32, 4)
WOVENS(64, 2)

FORCE_INLINE int number_of(int64_t item) {
  return item == 1 ? 0 : item == 2 ? 1 : item == 4 ? 2 : 3;
}

// lines is the type of count registers that the instructions of that count use.
#define THIN(size, bits, count, lines)                          \
  static void weave_##size##_##count(const ist__transpose *t) { \
    const int64_t items = 16 / (size);                          \
    ist__transpose rest = *t;                                   \
    for (; rest.rows >= items; rest.rows -= items) {            \
      lines v;                                                  \
      for (int i = 0; i < (count); i++) {                       \
        memcpy(&v.val[i], rest.from + i * t->from_step, 16);    \
      }                                                         \
      store_##bits##_##count(rest.to, v);                       \
      rest.from += 16;                                          \
      rest.to += 16 * (count);                                  \
    }                                                           \
    ist__copy_baseline.transpose[number_of(size)](&rest);       \
  }                                                             \
  static void part_##size##_##count(const ist__transpose *t) {  \
    const int64_t items = 16 / (size);                          \
    ist__transpose rest = *t;                                   \
    for (; rest.columns >= items; rest.columns -= items) {      \
      lines v = load_##bits##_##count(rest.from);               \
      for (int i = 0; i < (count); i++) {                       \
        memcpy(rest.to + i * t->to_step, &v.val[i], 16);        \
      }                                                         \
      rest.from += 16 * (count);                                \
      rest.to += 16;                                            \
    }                                                           \
    ist__copy_baseline.transpose[number_of(size)](&rest);       \
  }

#define THINS(size, bits, lanes)                  \
  THIN(size, bits, 2, uint##bits##x##lanes##x2_t) \
  THIN(size, bits, 3, uint##bits##x##lanes##x3_t) \
  THIN(size, bits, 4, uint##bits##x##lanes##x4_t)
THINS(1, 8, 16)
THINS(2, 16, 8)
THINS(4, 32, 4)
THINS(8, 64, 2)

typedef void (*transpose_fn)(const ist__transpose *t);

// By item size, then by two to four.
static const transpose_fn weaves[][3] = {{weave_1_2, weave_1_3, weave_1_4},
                                         {weave_2_2, weave_2_3, weave_2_4},
                                         {weave_4_2, weave_4_3, weave_4_4},
                                         {weave_8_2, weave_8_3, weave_8_4}};
static const transpose_fn parts[][3] = {{part_1_2, part_1_3, part_1_4},
                                        {part_2_2, part_2_3, part_2_4},
                                        {part_4_2, part_4_3, part_4_4},
                                        {part_8_2, part_8_3, part_8_4}};

FORCE_INLINE bool is_thin(int64_t count) {
  return count >= 2 && count <= 4;
}

FORCE_INLINE void transpose(int64_t item, int number, const ist__transpose *t) {
  const int64_t side = 16 / item;
  if (is_thin(t->columns) && t->to_step == t->columns * item) {
    weaves[number][t->columns - 2](t);
  } else if (is_thin(t->rows) && t->from_step == t->rows * item) {
    parts[number][t->rows - 2](t);
  } else if (t->rows < side || t->columns < side) {
    ist__copy_baseline.transpose[number](t);
  } else {
    for (int64_t r = 0; r < t->rows; r += BLOCK) {
      for (int64_t c = 0; c < t->columns; c += BLOCK) block(item, t, r, c);
    }
  }
}

#define TRANSPOSE(size, number)                           \
  static void transpose_##size(const ist__transpose *t) { \
    transpose(size, number, t);                           \
  }
TRANSPOSE(1, 0)
TRANSPOSE(2, 1)
TRANSPOSE(4, 2)
TRANSPOSE(8, 3)

static void transpose_16(const ist__transpose *t) {
  ist__copy_baseline.transpose[4](t);
}

// ---- runs

// 16 bytes with their items in the other order.
FORCE_INLINE uint8x16_t reversed(int64_t item, uint8x16_t v) {
  if (item == 1) v = vrev64q_u8(v);
  if (item == 2) {
    v = vreinterpretq_u8_u16(vrev64q_u16(vreinterpretq_u16_u8(v)));
  }
  if (item == 4) {
    v = vreinterpretq_u8_u32(vrev64q_u32(vreinterpretq_u32_u8(v)));
  }
  return vextq_u8(v, v, 8);
}

FORCE_INLINE void backward(int64_t item, ist__run *rest) {
  const int64_t n = 16 / item;
  for (; rest->count >= n; rest->count -= n) {
    store(rest->to, reversed(item, load(rest->from - 16 + item)));
    rest->from -= 16;
    rest->to += 16;
  }
}

// Every second, third or fourth item. A load of so many registers ends after
// the last item that is wanted, so that the last ones are left.
#define STEP(size, bits, way, lines)                \
  static void step_##size##_##way(ist__run *rest) { \
    const int64_t n = 16 / (size);                  \
    for (; rest->count > n; rest->count -= n) {     \
      lines v = load_##bits##_##way(rest->from);    \
      memcpy(rest->to, &v.val[0], 16);              \
      rest->from += 16 * (way);                     \
      rest->to += 16;                               \
    }                                               \
  }

#define STEPS(size, bits, lanes)                  \
  STEP(size, bits, 2, uint##bits##x##lanes##x2_t) \
  STEP(size, bits, 3, uint##bits##x##lanes##x3_t) \
  STEP(size, bits, 4, uint##bits##x##lanes##x4_t)
STEPS(1, 8, 16)
STEPS(2, 16, 8)
STEPS(4, 32, 4)
STEPS(8, 64, 2)

FORCE_INLINE void fill(int64_t item, ist__run *rest) {
  char pattern[16];
  const int64_t n = 16 / item;
  for (int64_t i = 0; i < 16; i += item) {
    memcpy(pattern + i, rest->from, (size_t)item);
  }
  const uint8x16_t v = load(pattern);
  for (; rest->count >= n; rest->count -= n) {
    store(rest->to, v);
    rest->to += 16;
  }
}

#define RUN(size, number)                                       \
  static void run_##size(const ist__run *run) {                 \
    ist__run rest = *run;                                       \
    if (run->to_step == (size)) {                               \
      if (run->from_step == 2 * (size)) step_##size##_2(&rest); \
      if (run->from_step == 3 * (size)) step_##size##_3(&rest); \
      if (run->from_step == 4 * (size)) step_##size##_4(&rest); \
      if (run->from_step == -(size)) backward(size, &rest);     \
      if (run->from_step == 0) fill(size, &rest);               \
    }                                                           \
    ist__copy_baseline.run[number](&rest);                      \
  }
RUN(1, 0)
RUN(2, 1)
RUN(4, 2)
RUN(8, 3)

static void run_16(const ist__run *run) {
  ist__copy_baseline.run[4](run);
}

// ---- bytes turned round

typedef void (*run_fn)(const ist__run *run);

FORCE_INLINE uint8x16_t turned(int64_t item, uint8x16_t v) {
  return item == 2 ? vrev16q_u8(v) : item == 4 ? vrev32q_u8(v) : vrev64q_u8(v);
}

FORCE_INLINE void turn(int64_t item, run_fn edge, const ist__run *run) {
  ist__run rest = *run;
  if (run->from_step == item && run->to_step == item) {
    const int64_t n = 16 / item;
    for (; rest.count >= n; rest.count -= n) {
      store(rest.to, turned(item, load(rest.from)));
      rest.from += 16;
      rest.to += 16;
    }
  }
  edge(&rest);
}

static void swap_2(const ist__run *run) {
  turn(2, ist__baseline_swap_2, run);
}

static void swap_4(const ist__run *run) {
  turn(4, ist__baseline_swap_4, run);
}

static void swap_8(const ist__run *run) {
  turn(8, ist__baseline_swap_8, run);
}

// ---- elements of four bits

static void unpack(const ist__bits *b) {
  ist__bits rest = *b;
  for (; b->bits == 4 && rest.count >= 32; rest.count -= 32) {
    uint8x16_t v = vld1q_u8(rest.from);
    uint8x16x2_t pair = {{vandq_u8(v, vdupq_n_u8(15)), vshrq_n_u8(v, 4)}};
    vst2q_u8(rest.to, pair);
    rest.from += 16;
    rest.to += 32;
  }
  ist__baseline_unpack(&rest);
}

static void pack(const ist__bits *b) {
  ist__bits rest = *b;
  for (; b->bits == 4 && rest.count >= 32; rest.count -= 32) {
    uint8x16x2_t pair = vld2q_u8(rest.from);
    // The low half of the second goes above that of the first.
    vst1q_u8(rest.to,
             vsliq_n_u8(vandq_u8(pair.val[0], vdupq_n_u8(15)), pair.val[1], 4));
    rest.from += 32;
    rest.to += 16;
  }
  ist__baseline_pack(&rest);
}

const ist__copy_kernels ist__copy_neon = {
    .name = "neon",
    .run = {run_1, run_2, run_4, run_8, run_16},
    .transpose = {transpose_1, transpose_2, transpose_4, transpose_8,
                  transpose_16},
    .swap = {swap_2, swap_4, swap_8},
    .unpack = unpack,
    .pack = pack,
};

#else

// An empty file is not C.
typedef int ist__copy_neon_is_for_aarch64;

#endif
