// SPDX-License-Identifier: Apache-2.0
// copy_baseline.c: the inner loops in plain C, for every machine, and for the
// edges of the wider ones.

#include <string.h>

#include "tensor/copy_kernels.h"

// Items of a tile's side: two sides of 32 lines stay in a first cache.
#define TILE 32

typedef struct item16 {
  uint64_t half[2];
} item16;

// The loops of one item type. memcpy of a fixed size is one move, whatever the
// alignment.
#define KERNELS(name, type)                                                    \
  static void run_##name(const ist__run *run) {                                \
    const char *from = run->from;                                              \
    char *to = run->to;                                                        \
    const int64_t from_step = run->from_step, to_step = run->to_step;          \
    const int64_t count = run->count, item = (int64_t)sizeof(type);            \
    if (from_step == item && to_step == item) {                                \
      memcpy(to, from, (size_t)(count * item));                                \
      return;                                                                  \
    }                                                                          \
    type value;                                                                \
    if (from_step == 0) {                                                      \
      memcpy(&value, from, sizeof value);                                      \
      for (int64_t i = 0; i < count; i++) {                                    \
        memcpy(to + i * to_step, &value, sizeof value);                        \
      }                                                                        \
      return;                                                                  \
    }                                                                          \
    for (int64_t i = 0; i < count; i++) {                                      \
      memcpy(&value, from + i * from_step, sizeof value);                      \
      memcpy(to + i * to_step, &value, sizeof value);                          \
    }                                                                          \
  }                                                                            \
  static void tile_##name(const ist__transpose *t, int64_t row,                \
                          int64_t column) {                                    \
    const int64_t item = (int64_t)sizeof(type);                                \
    int64_t rows = t->rows - row < TILE ? t->rows - row : TILE;                \
    int64_t columns = t->columns - column < TILE ? t->columns - column : TILE; \
    const char *from = t->from + row * item + column * t->from_step;           \
    char *to = t->to + row * t->to_step + column * item;                       \
    for (int64_t r = 0; r < rows; r++) {                                       \
      for (int64_t c = 0; c < columns; c++) {                                  \
        type value;                                                            \
        memcpy(&value, from + r * item + c * t->from_step, sizeof value);      \
        memcpy(to + r * t->to_step + c * item, &value, sizeof value);          \
      }                                                                        \
    }                                                                          \
  }                                                                            \
  static void tiles_##name(const ist__transpose *t) {                          \
    for (int64_t row = 0; row < t->rows; row += TILE) {                        \
      for (int64_t column = 0; column < t->columns; column += TILE) {          \
        tile_##name(t, row, column);                                           \
      }                                                                        \
    }                                                                          \
  }                                                                            \
  /* Few columns, each a run of its own in the source: interleaves them. */    \
  static inline void interleave_##name(const ist__transpose *t,                \
                                       const int64_t columns) {                \
    const int64_t item = (int64_t)sizeof(type);                                \
    for (int64_t r = 0; r < t->rows; r++) {                                    \
      for (int64_t c = 0; c < columns; c++) {                                  \
        memcpy(t->to + r * t->to_step + c * item,                              \
               t->from + r * item + c * t->from_step, sizeof(type));           \
      }                                                                        \
    }                                                                          \
  }                                                                            \
  /* Few rows: takes them apart, reading the source once. */                   \
  static inline void separate_##name(const ist__transpose *t,                  \
                                     const int64_t rows) {                     \
    const int64_t item = (int64_t)sizeof(type);                                \
    for (int64_t c = 0; c < t->columns; c++) {                                 \
      for (int64_t r = 0; r < rows; r++) {                                     \
        memcpy(t->to + r * t->to_step + c * item,                              \
               t->from + r * item + c * t->from_step, sizeof(type));           \
      }                                                                        \
    }                                                                          \
  }                                                                            \
  static void transpose_##name(const ist__transpose *t) {                      \
    if (t->columns == 2) {                                                     \
      interleave_##name(t, 2);                                                 \
    } else if (t->columns == 3) {                                              \
      interleave_##name(t, 3);                                                 \
    } else if (t->columns == 4) {                                              \
      interleave_##name(t, 4);                                                 \
    } else if (t->rows == 2) {                                                 \
      separate_##name(t, 2);                                                   \
    } else if (t->rows == 3) {                                                 \
      separate_##name(t, 3);                                                   \
    } else if (t->rows == 4) {                                                 \
      separate_##name(t, 4);                                                   \
    } else {                                                                   \
      tiles_##name(t);                                                         \
    }                                                                          \
  }

KERNELS(1, uint8_t)
KERNELS(2, uint16_t)
KERNELS(4, uint32_t)
KERNELS(8, uint64_t)
KERNELS(16, item16)

const ist__copy_kernels ist__copy_baseline = {
    .name = "baseline",
    .run = {run_1, run_2, run_4, run_8, run_16},
    .transpose = {transpose_1, transpose_2, transpose_4, transpose_8,
                  transpose_16},
    .swap = {ist__baseline_swap_2, ist__baseline_swap_4, ist__baseline_swap_8},
    .unpack = ist__baseline_unpack,
    .pack = ist__baseline_pack,
};
