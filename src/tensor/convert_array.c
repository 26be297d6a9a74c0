// SPDX-License-Identifier: Apache-2.0
// convert_array.c: which loops convert between two dtypes: a table for sources
// of a byte, one loop from or to float32, else two through a buffer of it.

#include "tensor/convert_array.h"

#include <string.h>

#include "tensor/convert.h"

// Elements of the buffer between two loops: 4 KiB, a small part of a cache.
#define BUFFER_COUNT 1024

// Elements below which filling a table costs more than it saves.
#define TABLE_COUNT 256

static size_t element_size(const ist__float_format *f) {
  return (size_t)(ist__float_bits(f) + 7) / 8;
}

bool ist__conversion_exists(int32_t from, int32_t to) {
  return from != to && ist__float_format_find(from) != NULL &&
         ist__float_format_find(to) != NULL;
}

static void store(void *to, size_t index, size_t size, uint64_t code) {
  uint8_t byte = (uint8_t)code;
  uint16_t half = (uint16_t)code;
  uint32_t single = (uint32_t)code;
  char *at = (char *)to + index * size;
  switch (size) {
    case 1:
      memcpy(at, &byte, sizeof byte);
      break;
    case 2:
      memcpy(at, &half, sizeof half);
      break;
    case 4:
      memcpy(at, &single, sizeof single);
      break;
    default:
      memcpy(at, &code, sizeof code);
      break;
  }
}

static void fill_table(ist__conversion *c) {
  for (uint64_t byte = 0; byte < 256; byte++) {
    store(&c->table, (size_t)byte, c->to_size,
          ist__convert_one(c->from, c->to, c->saturate, byte));
  }
}

static void one_by_one(const ist__conversion *c, const uint8_t *from, void *to,
                       size_t count) {
  for (size_t i = 0; i < count; i++) {
    store(to, i, c->to_size,
          ist__convert_one(c->from, c->to, c->saturate, from[i]));
  }
}

// The loop that makes float32 of a wider source than a byte; NULL for float32.
static ist__convert_loop *widening(const ist__convert_kernels *k,
                                   const ist__conversion *c) {
  switch (c->from->number) {
    case ist__number_float16:
      return k->float16_to_float32;
    case ist__number_bfloat16:
      return k->bfloat16_to_float32;
    case ist__number_float64:
      return c->to->number == ist__number_float32 ? k->float64_to_float32
                                                  : k->float64_to_odd;
    default:
      return NULL;
  }
}

static ist__convert_loop *narrowing_to_byte(const ist__convert_kernels *k,
                                            int32_t to) {
  switch (to) {
#define IST_FLOAT_BYTE_FORMAT(number, name, exponent, mantissa, bias, kind) \
  case ist__number_##name:                                                  \
    return k->float32_to_byte[ist__byte_##name];
#include "tensor/float_format.def"
    default:
      return NULL;  // float32
  }
}

// The loop that makes the target of float32; NULL for float32.
static ist__convert_loop *narrowing(const ist__convert_kernels *k,
                                    const ist__conversion *c) {
  switch (c->to->number) {
    case ist__number_float16:
      return k->float32_to_float16;
    case ist__number_bfloat16:
      return k->float32_to_bfloat16;
    case ist__number_float64:
      return k->float32_to_float64;
    default:
      return narrowing_to_byte(k, c->to->number);
  }
}

// What the loop to the target does with NaNs: as encode_nan in convert.c.
static ist__nan nan_of(const ist__conversion *c) {
  int32_t from = c->from->number;
  if (c->to->number == ist__number_float64) {
    return from == ist__number_float16 ? IST__NAN_KEPT : IST__NAN_QUIET;
  }
  return from == ist__number_bfloat16 ? IST__NAN_PLAIN : IST__NAN_KEPT;
}

void ist__conversion_make(const ist__convert_kernels *kernels, int32_t from,
                          int32_t to, bool saturate, uint64_t count,
                          ist__conversion *out) {
  const ist__convert_kernels *k = kernels;
  if (k == NULL) k = &ist__convert_baseline;
  out->from = ist__float_format_find(from);
  out->to = ist__float_format_find(to);
  out->saturate = saturate;
  out->from_size = element_size(out->from);
  out->to_size = element_size(out->to);
  out->first = NULL;
  out->second = NULL;
  out->first_nan = out->second_nan = nan_of(out);
  if (out->from_size == 1) {
    if (count < TABLE_COUNT) return;
    int number = out->to_size == 8 ? 3 : (int)out->to_size / 2;
    out->first = k->look_up[number];
    fill_table(out);
    return;
  }
  out->first = widening(k, out);
  out->second = narrowing(k, out);
  if (out->first == NULL) {
    out->first = out->second;
    out->second = NULL;
  }
}

void ist__conversion_run(const ist__conversion *conversion, const void *from,
                         void *to, size_t count, bool stream) {
  const ist__conversion *c = conversion;
  ist__convert_how first = {c->saturate, stream, c->first_nan, &c->table};
  if (c->first == NULL) {
    one_by_one(c, from, to, count);
    return;
  }
  if (c->second == NULL) {
    c->first(from, to, count, &first);
    return;
  }
  // On the way only the rounding to odd may change a number: never saturate.
  first.saturate = false;
  first.stream = false;
  ist__convert_how second = {c->saturate, stream, c->second_nan, NULL};
  _Alignas(64) uint32_t buffer[BUFFER_COUNT];
  const char *in = from;
  char *out = to;
  while (count > 0) {
    size_t part = count < BUFFER_COUNT ? count : BUFFER_COUNT;
    c->first(in, buffer, part, &first);
    c->second(buffer, out, part, &second);
    in += part * c->from_size;
    out += part * c->to_size;
    count -= part;
  }
}
