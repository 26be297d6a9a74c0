// SPDX-License-Identifier: Apache-2.0
// copy_baseline_bits.c: in plain C, copies that change how a value lies in its
// bytes: bytes turned round, and elements narrower than a byte packed or not.

#include <string.h>

#include "tensor/copy_kernels.h"

// ---- bytes turned round

static inline uint16_t turn_2(uint16_t v) {
  return (uint16_t)(v >> 8 | v << 8);
}

static inline uint32_t turn_4(uint32_t v) {
  v = v >> 16 | v << 16;
  return (v >> 8 & 0x00FF00FFU) | (v & 0x00FF00FFU) << 8;
}

static inline uint64_t turn_8(uint64_t v) {
  uint64_t high = turn_4((uint32_t)v);
  return high << 32 | turn_4((uint32_t)(v >> 32));
}

// Steps that are constants where there is no gap make a loop that compilers
// turn into vectors.
#define SWAP(size, type)                                                     \
  static inline void turn_all_##size(const ist__run *run, int64_t from_step, \
                                     int64_t to_step) {                      \
    for (int64_t i = 0; i < run->count; i++) {                               \
      type value;                                                            \
      memcpy(&value, run->from + i * from_step, sizeof value);               \
      value = turn_##size(value);                                            \
      memcpy(run->to + i * to_step, &value, sizeof value);                   \
    }                                                                        \
  }                                                                          \
  void ist__baseline_swap_##size(const ist__run *run) {                      \
    if (run->from_step == (size) && run->to_step == (size)) {                \
      turn_all_##size(run, size, size);                                      \
    } else {                                                                 \
      turn_all_##size(run, run->from_step, run->to_step);                    \
    }                                                                        \
  }
SWAP(2, uint16_t)
SWAP(4, uint32_t)
SWAP(8, uint64_t)

// ---- elements narrower than a byte
//
// group elements fill whole bytes: 8, 4 or 2 of them one byte, four of 6 bits
// three.

static inline void unpack_group(const unsigned char *from, unsigned char *to,
                                unsigned bits, unsigned count) {
  unsigned word = 0;
  for (unsigned i = 0; i < (count * bits + 7) / 8; i++) {
    word |= (unsigned)from[i] << 8 * i;
  }
  for (unsigned i = 0; i < count; i++) {
    to[i] = (unsigned char)(word >> i * bits & ((1U << bits) - 1));
  }
}

static inline void pack_group(const unsigned char *from, unsigned char *to,
                              unsigned bits, unsigned count) {
  unsigned word = 0;
  for (unsigned i = 0; i < count; i++) {
    word |= (from[i] & ((1U << bits) - 1)) << i * bits;
  }
  for (unsigned i = 0; i < (count * bits + 7) / 8; i++) {
    to[i] = (unsigned char)(word >> 8 * i);
  }
}

// Inlined with constants; the last group may be short.
static inline void unpack_all(const ist__bits *b, unsigned bits,
                              unsigned group) {
  const unsigned char *from = b->from;
  unsigned char *to = b->to;
  uint64_t left = b->count;
  for (; left >= group; left -= group) {
    unpack_group(from, to, bits, group);
    from += group * bits / 8;
    to += group;
  }
  unpack_group(from, to, bits, (unsigned)left);
}

static inline void pack_all(const ist__bits *b, unsigned bits, unsigned group) {
  const unsigned char *from = b->from;
  unsigned char *to = b->to;
  uint64_t left = b->count;
  for (; left >= group; left -= group) {
    pack_group(from, to, bits, group);
    from += group;
    to += group * bits / 8;
  }
  pack_group(from, to, bits, (unsigned)left);
}

void ist__baseline_unpack(const ist__bits *b) {
  switch (b->bits) {
    case 1:
      unpack_all(b, 1, 8);
      return;
    case 2:
      unpack_all(b, 2, 4);
      return;
    case 4:
      unpack_all(b, 4, 2);
      return;
    default:
      unpack_all(b, 6, 4);
  }
}

void ist__baseline_pack(const ist__bits *b) {
  switch (b->bits) {
    case 1:
      pack_all(b, 1, 8);
      return;
    case 2:
      pack_all(b, 2, 4);
      return;
    case 4:
      pack_all(b, 4, 2);
      return;
    default:
      pack_all(b, 6, 4);
  }
}
