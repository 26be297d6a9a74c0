// SPDX-License-Identifier: Apache-2.0
// copy_kernels_test.c: every table of inner loops that this machine can run
// does what a loop over items does, and reads and writes no byte beside the
// items.

#include "tensor/copy_kernels.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/guard_page.h"
#include "support/testing.h"

// What a test lays its items into: a whole number of pages between guards.
enum {
  arena_size = 1 << 20
};

// Both sides of a test, and what the target must become.
typedef struct desk {
  guarded from;
  guarded to;
  char *expected;
  uint64_t seed;
} desk;

static int open_desk(void **state) {
  desk *d = calloc(1, sizeof *d);
  d->from = guarded_make(arena_size);
  d->to = guarded_make(arena_size);
  d->expected = malloc(arena_size);
  d->seed = 4711;
  for (size_t i = 0; i < arena_size; i++) {
    d->from.start[i] = (char)next_random(&d->seed);
  }
  memset(d->to.start, 0x5A, arena_size);
  memset(d->expected, 0x5A, arena_size);
  *state = d;
  return 0;
}

static int close_desk(void **state) {
  desk *d = *state;
  guarded_free(&d->from);
  guarded_free(&d->to);
  free(d->expected);
  free(d);
  return 0;
}

// Where an extent of size bytes begins in an arena: at the lower guard, at the
// upper one, or at any place of a line.
static int64_t place(uint64_t *seed, int64_t size) {
  switch (random_below(seed, 3)) {
    case 0:
      return 0;
    case 1:
      return arena_size - size;
    default:
      return random_below(seed, 64);
  }
}

// Steps of a walk over count items: lowest is the first byte below the start,
// size the bytes from there to the end of the last item.
typedef struct reach {
  int64_t lowest;
  int64_t size;
} reach;

static reach add_reach(reach r, int64_t step, int64_t count) {
  int64_t way = count > 0 ? step * (count - 1) : 0;
  r.size += way < 0 ? -way : way;
  if (way < 0) r.lowest -= way;
  return r;
}

// Compares the bytes from first on, and puts the target back as it was.
static bool target_is_right(desk *d, int64_t first, int64_t size) {
  // A few lines beside the extent are enough to find a stray write.
  int64_t begin = first > 256 ? first - 256 : 0;
  int64_t end =
      first + size + 256 < arena_size ? first + size + 256 : arena_size;
  size_t count = (size_t)(end - begin);
  bool same = memcmp(d->to.start + begin, d->expected + begin, count) == 0;
  memset(d->to.start + begin, 0x5A, count);
  memset(d->expected + begin, 0x5A, count);
  return same;
}

// ---- runs

static void check_run(desk *d, const ist__copy_kernels *kernels, int number,
                      int64_t count, int64_t from_step, int64_t to_step) {
  int64_t item = (int64_t)1 << number;
  reach from = add_reach((reach){0, item}, from_step, count);
  reach to = add_reach((reach){0, item}, to_step, count);
  int64_t read = place(&d->seed, from.size);
  int64_t write = place(&d->seed, to.size);
  ist__run run = {
      .from = d->from.start + read + from.lowest,
      .to = d->to.start + write + to.lowest,
      .from_step = from_step,
      .to_step = to_step,
      .count = count,
      .stream = random_below(&d->seed, 2) != 0,
  };
  char *expected = d->expected + write + to.lowest;
  for (int64_t i = 0; i < count; i++) {
    memcpy(expected + i * to_step, run.from + i * from_step, (size_t)item);
  }
  kernels->run[number](&run);
  if (target_is_right(d, write, to.size)) return;
  fail_msg("%s: run of %lld items of %lld bytes, steps %lld to %lld%s",
           kernels->name, (long long)count, (long long)item,
           (long long)from_step, (long long)to_step,
           run.stream ? ", streamed" : "");
}

// Now and then some bytes more, so that a step is no multiple of the item: a
// plan makes such steps where it widens items that lie together.
static int64_t odd_bytes(uint64_t *seed, int64_t item) {
  return random_below(seed, 4) == 0 ? random_below(seed, item) : 0;
}

static void check_runs(desk *d, const ist__copy_kernels *kernels,
                       int64_t count) {
  static const int64_t steps[] = {1, 0, 2, -1, 3, 4, -2, 5, 7, -3, -4, 16};
  for (int number = 0; number < IST__ITEM_SIZES; number++) {
    int64_t item = (int64_t)1 << number;
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
      check_run(d, kernels, number, count, steps[i] * item, item);
      int64_t from_step = steps[i] * item + odd_bytes(&d->seed, item);
      check_run(d, kernels, number, count, from_step, item);
      if (random_below(&d->seed, 8) != 0) continue;
      int64_t to_step = item * (1 + random_below(&d->seed, 5));
      to_step += odd_bytes(&d->seed, item);
      if (random_below(&d->seed, 2) != 0) to_step = -to_step;
      check_run(d, kernels, number, count, from_step, to_step);
    }
  }
}

static void run__equals_items_one_by_one_for_every_table(void **state) {
  const ist__copy_kernels *kernels;
  for (int32_t k = 0; (kernels = ist__copy_kernels_at(k)) != NULL; k++) {
    for (int64_t count = 0; count < 300; count++) {
      check_runs(*state, kernels, count);
    }
  }
}

static void run__equals_items_one_by_one_when_long(void **state) {
  const ist__copy_kernels *kernels;
  for (int32_t k = 0; (kernels = ist__copy_kernels_at(k)) != NULL; k++) {
    check_runs(*state, kernels, 4001);
  }
}

// ---- transposes

static void check_transpose(desk *d, const ist__copy_kernels *kernels,
                            int number, ist__transpose t) {
  int64_t item = (int64_t)1 << number;
  reach from = add_reach((reach){0, t.rows * item}, t.from_step, t.columns);
  reach to = add_reach((reach){0, t.columns * item}, t.to_step, t.rows);
  if (from.size > arena_size - 64 || to.size > arena_size - 64) return;
  int64_t read = place(&d->seed, from.size);
  int64_t write = place(&d->seed, to.size);
  t.from = d->from.start + read + from.lowest;
  t.to = d->to.start + write + to.lowest;
  char *expected = d->expected + write + to.lowest;
  for (int64_t r = 0; r < t.rows; r++) {
    for (int64_t c = 0; c < t.columns; c++) {
      memcpy(expected + r * t.to_step + c * item,
             t.from + r * item + c * t.from_step, (size_t)item);
    }
  }
  kernels->transpose[number](&t);
  if (target_is_right(d, write, to.size)) return;
  fail_msg("%s: transpose of %lld x %lld items of %lld bytes, %lld to %lld%s",
           kernels->name, (long long)t.rows, (long long)t.columns,
           (long long)item, (long long)t.from_step, (long long)t.to_step,
           t.stream ? ", streamed" : "");
}

// Steps that are dense, or have a gap, of whole items or not, or keep to lines
// or to places where rows fall into one set of a cache; a source's also
// backward, or overlapping.
static int64_t make_up_step(uint64_t *seed, int64_t size, int64_t item,
                            bool source) {
  switch (random_below(seed, source ? 7 : 5)) {
    case 0:
      return size + item * random_below(seed, 9) + odd_bytes(seed, item);
    case 1:
      return (size + 63) / 64 * 64;
    case 2:
      return (size + 511) / 512 * 512;
    case 5:
      return -size - item * random_below(seed, 3) - odd_bytes(seed, item);
    case 6:
      return item * random_below(seed, 3) + odd_bytes(seed, item);
    default:
      return size;
  }
}

static void check_transposes(desk *d, const ist__copy_kernels *kernels,
                             int64_t rows, int64_t columns) {
  for (int number = 0; number < IST__ITEM_SIZES; number++) {
    int64_t item = (int64_t)1 << number;
    ist__transpose t = {
        .from_step = make_up_step(&d->seed, rows * item, item, true),
        .to_step = make_up_step(&d->seed, columns * item, item, false),
        .rows = rows,
        .columns = columns,
        .stream = random_below(&d->seed, 2) != 0,
    };
    check_transpose(d, kernels, number, t);
  }
}

static void transpose__equals_items_one_by_one_for_every_table(void **state) {
  desk *d = *state;
  const ist__copy_kernels *kernels;
  for (int32_t k = 0; (kernels = ist__copy_kernels_at(k)) != NULL; k++) {
    for (int64_t rows = 0; rows <= 70; rows++) {
      for (int i = 0; i < 8; i++) {
        int64_t most = random_below(&d->seed, 4) == 0 ? 200 : 40;
        int64_t columns = random_below(&d->seed, most);
        check_transposes(d, kernels, rows, columns);
        check_transposes(d, kernels, columns, rows);
      }
    }
  }
}

// The few columns of a picture's colours, and back, at every length of the
// rest.
static void transpose__equals_items_one_by_one_when_thin(void **state) {
  desk *d = *state;
  const ist__copy_kernels *kernels;
  for (int32_t k = 0; (kernels = ist__copy_kernels_at(k)) != NULL; k++) {
    for (int64_t length = 0; length <= 300; length++) {
      int64_t thin = 2 + random_below(&d->seed, 16);
      check_transposes(d, kernels, length, thin);
      check_transposes(d, kernels, thin, length);
      check_transposes(d, kernels, length, 3);
      check_transposes(d, kernels, 3, length);
    }
  }
}

static void transpose__equals_items_one_by_one_when_large(void **state) {
  desk *d = *state;
  static const int64_t shapes[][2] = {{300, 520}, {257, 129}, {640, 64},
                                      {31, 700},  {700, 33},  {128, 512}};
  const ist__copy_kernels *kernels;
  for (int32_t k = 0; (kernels = ist__copy_kernels_at(k)) != NULL; k++) {
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
      for (int round = 0; round < 2; round++) {
        check_transposes(d, kernels, shapes[i][0], shapes[i][1]);
      }
    }
  }
}

// ---- bytes turned round

static void check_swap(desk *d, const ist__copy_kernels *kernels, int number,
                       int64_t count, int64_t from_step, int64_t to_step) {
  int64_t size = (int64_t)2 << number;
  reach from = add_reach((reach){0, size}, from_step, count);
  reach to = add_reach((reach){0, size}, to_step, count);
  int64_t read = place(&d->seed, from.size);
  int64_t write = place(&d->seed, to.size);
  ist__run run = {
      .from = d->from.start + read + from.lowest,
      .to = d->to.start + write + to.lowest,
      .from_step = from_step,
      .to_step = to_step,
      .count = count,
      .stream = random_below(&d->seed, 2) != 0,
  };
  char *expected = d->expected + write + to.lowest;
  for (int64_t i = 0; i < count; i++) {
    for (int64_t b = 0; b < size; b++) {
      expected[i * to_step + b] = run.from[i * from_step + size - 1 - b];
    }
  }
  kernels->swap[number](&run);
  if (target_is_right(d, write, to.size)) return;
  fail_msg("%s: swap of %lld items of %lld bytes, steps %lld to %lld%s",
           kernels->name, (long long)count, (long long)size,
           (long long)from_step, (long long)to_step,
           run.stream ? ", streamed" : "");
}

static void swap__turns_each_item_round_for_every_table(void **state) {
  desk *d = *state;
  const ist__copy_kernels *kernels;
  for (int32_t k = 0; (kernels = ist__copy_kernels_at(k)) != NULL; k++) {
    for (int64_t count = 0; count < 300; count++) {
      for (int number = 0; number < IST__SWAP_SIZES; number++) {
        int64_t size = (int64_t)2 << number;
        int64_t step =
            size * (random_below(&d->seed, 7) - 3) + odd_bytes(&d->seed, size);
        check_swap(d, kernels, number, count, size, size);
        check_swap(d, kernels, number, count, step, size);
        check_swap(d, kernels, number, count, step, 2 * size);
        check_swap(d, kernels, number, 9 * count, size, size);
      }
    }
  }
}

// ---- elements narrower than a byte

static unsigned bit_at(const char *bytes, uint64_t bit) {
  return (unsigned char)bytes[bit / 8] >> bit % 8 & 1U;
}

static void check_bits(desk *d, const ist__copy_kernels *kernels, bool packs,
                       uint64_t count, unsigned bits) {
  int64_t packed = (int64_t)(count * bits + 7) / 8;
  int64_t from_size = packs ? (int64_t)count : packed;
  int64_t to_size = packs ? packed : (int64_t)count;
  int64_t write = place(&d->seed, to_size);
  const char *from = d->from.start + place(&d->seed, from_size);
  char *expected = d->expected + write;
  memset(expected, 0, (size_t)to_size);
  for (uint64_t i = 0; i < count; i++) {
    for (unsigned b = 0; b < bits; b++) {
      uint64_t read = packs ? i * 8 + b : i * bits + b;
      uint64_t written = packs ? i * bits + b : i * 8 + b;
      unsigned byte = (unsigned char)expected[written / 8];
      byte |= bit_at(from, read) << written % 8;
      expected[written / 8] = (char)byte;
    }
  }
  ist__bits work = {(const unsigned char *)from,
                    (unsigned char *)d->to.start + write, count, bits,
                    random_below(&d->seed, 2) != 0};
  (packs ? kernels->pack : kernels->unpack)(&work);
  if (target_is_right(d, write, to_size)) return;
  fail_msg("%s: %s of %llu elements of %u bits%s", kernels->name,
           packs ? "pack" : "unpack", (unsigned long long)count, bits,
           work.stream ? ", streamed" : "");
}

static void bits__are_packed_and_unpacked_by_every_table(void **state) {
  static const unsigned widths[] = {1, 2, 4, 6};
  const ist__copy_kernels *kernels;
  for (int32_t k = 0; (kernels = ist__copy_kernels_at(k)) != NULL; k++) {
    for (uint64_t count = 0; count < 300; count++) {
      for (size_t i = 0; i < COUNT_OF(widths); i++) {
        check_bits(*state, kernels, false, count, widths[i]);
        check_bits(*state, kernels, true, count, widths[i]);
        if (count % 16 != 0) continue;
        check_bits(*state, kernels, false, 11 * count, widths[i]);
        check_bits(*state, kernels, true, 40 * count + 3, widths[i]);
      }
    }
  }
}

// ---- tables

static void tables__end_with_the_baseline_and_begin_with_the_best(
    void **state) {
  (void)state;
  const ist__copy_kernels *last = NULL;
  const ist__copy_kernels *kernels;
  for (int32_t k = 0; (kernels = ist__copy_kernels_at(k)) != NULL; k++) {
    print_message("kernels: %s\n", kernels->name);
    last = kernels;
  }
  assert_ptr_equal(last, &ist__copy_baseline);
  assert_ptr_equal(ist__copy_kernels_best(), ist__copy_kernels_at(0));
  assert_null(ist__copy_kernels_at(-1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tables__end_with_the_baseline_and_begin_with_the_best),
      cmocka_unit_test(run__equals_items_one_by_one_for_every_table),
      cmocka_unit_test(run__equals_items_one_by_one_when_long),
      cmocka_unit_test(transpose__equals_items_one_by_one_for_every_table),
      cmocka_unit_test(transpose__equals_items_one_by_one_when_thin),
      cmocka_unit_test(transpose__equals_items_one_by_one_when_large),
      cmocka_unit_test(swap__turns_each_item_round_for_every_table),
      cmocka_unit_test(bits__are_packed_and_unpacked_by_every_table),
  };
  return cmocka_run_group_tests(tests, open_desk, close_desk);
}
