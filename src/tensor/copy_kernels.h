// SPDX-License-Identifier: Apache-2.0
// copy_kernels.h: the inner loops of a strided copy, one table for each
// instruction set. What is walked, and in which order, is strided_copy.c's.

#ifndef ISTHMUS_TENSOR_COPY_KERNELS_H_
#define ISTHMUS_TENSOR_COPY_KERNELS_H_

#include <stdbool.h>
#include <stdint.h>

// Item sizes 1, 2, 4, 8 and 16 are numbers 0 to 4.
#define IST__ITEM_SIZES 5

// Numbers of 2, 4 and 8 bytes are numbers 0 to 2 where bytes are turned round.
#define IST__SWAP_SIZES 3

// A target of more bytes than this is written past the caches (stream), which
// do not hold it beside its source. Measured on Zen 3 with 32 MiB of third
// cache, some of it in use by others: memcpy of 4 MiB makes 38 GB/s, of 6 MiB
// 16 GB/s, of which writing past them makes 17 to 21 at any size.
#define IST__STREAM_BYTES (4 << 20)

// A run: count items, steps in bytes (any sign, zero in from for a broadcast).
// stream: the target is large and is not read soon: write past the caches.
typedef struct ist__run {
  const char *from;
  char *to;
  int64_t from_step;
  int64_t to_step;
  int64_t count;
  bool stream;
} ist__run;

// A transpose: item (r, c) goes from r * item + c * from_step to r * to_step +
// c * item: the source is contiguous along rows, the target along columns.
typedef struct ist__transpose {
  const char *from;
  char *to;
  int64_t from_step;
  int64_t to_step;
  int64_t rows;
  int64_t columns;
  bool stream;
} ist__transpose;

// Elements of 1, 2, 4 or 6 bits, without a gap: one to a byte on one side, from
// the lowest bit of the first byte on the other. count is of elements; both
// sides begin with a whole byte.
typedef struct ist__bits {
  const unsigned char *from;
  unsigned char *to;
  uint64_t count;
  unsigned bits;
  bool stream;
} ist__bits;

// Lines: count runs of bytes that lie together on both sides, steps in bytes
// (any sign, zero in from for a broadcast).
typedef struct ist__lines {
  const char *from;
  char *to;
  int64_t from_step;
  int64_t to_step;
  int64_t count;
  int64_t bytes;  // of a line, at least 1
} ist__lines;

// The inner loops of one instruction set. They allocate nothing; a streamed
// transpose takes up to 160 KiB of stack.
typedef struct ist__copy_kernels {
  const char *name;
  void (*run[IST__ITEM_SIZES])(const ist__run *run);
  void (*transpose[IST__ITEM_SIZES])(const ist__transpose *transpose);
  // A run with the bytes of each item turned round.
  void (*swap[IST__SWAP_SIZES])(const ist__run *run);
  // To one element a byte, its upper bits zero.
  void (*unpack)(const ist__bits *bits);
  // From one element a byte, whose upper bits are dropped; what the last byte
  // of the target has left is zero.
  void (*pack)(const ist__bits *bits);
  void (*lines)(const ist__lines *lines);  // NULL: ist__copy_lines
} ist__copy_kernels;

// Plain C, for every machine.
void ist__copy_lines(const ist__lines *lines);

// Plain C: always there.
extern const ist__copy_kernels ist__copy_baseline;
void ist__baseline_swap_2(const ist__run *run);
void ist__baseline_swap_4(const ist__run *run);
void ist__baseline_swap_8(const ist__run *run);
void ist__baseline_unpack(const ist__bits *bits);
void ist__baseline_pack(const ist__bits *bits);

#if defined(__x86_64__)
// AVX2, for machines that ist__cpu_has_avx2.
extern const ist__copy_kernels ist__copy_avx2;
// AVX-512, for machines that ist__cpu_has_avx512.
extern const ist__copy_kernels ist__copy_avx512;
#endif

#if defined(__aarch64__)
// NEON: part of every aarch64.
extern const ist__copy_kernels ist__copy_neon;
#endif

// The fastest table that this machine can run.
const ist__copy_kernels *ist__copy_kernels_best(void);
// Table number index of those that this machine can run, NULL after the last.
const ist__copy_kernels *ist__copy_kernels_at(int32_t index);

#endif  // ISTHMUS_TENSOR_COPY_KERNELS_H_
