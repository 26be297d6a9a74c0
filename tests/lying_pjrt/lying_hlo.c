// SPDX-License-Identifier: Apache-2.0
// The lying plugin's programs, read and told: the text that describes one and
// the few bytes of protobuf that OptimizedProgram answers.

#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>

#include "lying.h"

// ---- the optimized program

static size_t put_varint(char *to, uint64_t value) {
  size_t n = 0;
  do {
    to[n++] = (char)((value & 127) | (value > 127 ? 128 : 0));
    value >>= 7;
  } while (value != 0);
  return n;
}

static size_t put_bytes(char *to, int field, const char *bytes, size_t size) {
  size_t n = put_varint(to, (uint64_t)field << 3 | 2);
  n += put_varint(to + n, size);
  memcpy(to + n, bytes, size);
  return n + size;
}

// XLA numbers a few element types otherwise than PJRT does.
static uint64_t xla_type(int32_t type) {
  switch (type) {
    case 13:
      return 16;  // BF16
    case 14:
      return 15;  // C64
    case 15:
      return 18;  // C128
    default:
      return (uint64_t)type;
  }
}

static size_t put_shape(char *to, const lying_program *p, bool is_result) {
  size_t n = put_varint(to, 2 << 3);
  n += put_varint(to + n, xla_type(p->type));
  char dims[160], layout[64], order[64];
  size_t dims_size = 0, order_size = 0;
  bool tiled = lying_tiles_shape(p->dims, p->rank);
  int64_t minor_to_major[LYING_MAX_RANK];
  for (size_t i = 0; i < p->rank; i++)
    minor_to_major[i] = (int64_t)(p->rank - 1 - i);
  if (tiled && is_result && LYING_IS(tiled, "turned"))
    lying_turn(minor_to_major, p->rank);
  for (size_t i = 0; i < p->rank; i++) {
    dims_size += put_varint(dims + dims_size, (uint64_t)p->dims[i]);
    order_size += put_varint(order + order_size, (uint64_t)minor_to_major[i]);
  }
  n += put_bytes(to + n, 3, dims, dims_size);
  if (is_result && p->dynamic) n += put_bytes(to + n, 6, "\1", 1);
  size_t layout_size = put_bytes(layout, 1, order, order_size);
  // One tile, of two by two.
  if (LYING_IS(hlo, "tiled") || tiled)
    layout_size += put_bytes(layout + layout_size, 6, "\x0a\x02\x02\x02", 4);
  if (LYING_IS(hlo, "tiled_by_one"))
    layout_size += put_bytes(layout + layout_size, 6, "\x0a\x02\x01\x01", 4);
  return n + put_bytes(to + n, 5, layout, layout_size);
}

// One shape, or a tuple of as many as the program has outputs.
static size_t put_result(char *to, const lying_program *p) {
  char shape[300];
  size_t size = put_shape(shape, p, true);
  if (p->outputs == 1) return put_bytes(to, 2, shape, size);
  char tuple[700];
  size_t n = put_varint(tuple, 2 << 3);
  n += put_varint(tuple + n, 13);
  for (size_t i = 0; i < p->outputs; i++)
    n += put_bytes(tuple + n, 4, shape, size);
  return put_bytes(to, 2, tuple, n);
}

void lying_program_write_hlo(lying_program *p) {
  char shape[300], both[1000], module[1100];
  size_t shape_size = put_shape(shape, p, false);
  size_t both_size = put_bytes(both, 1, shape, shape_size);
  both_size += put_result(both + both_size, p);
  size_t module_size = put_bytes(module, 4, both, both_size);
  p->hlo_size = put_bytes(p->hlo, 1, module, module_size);
}

// ---- texts

// "@main(%x: tensor<2x3xf32> ..." with one addition or none.
static bool parse_stablehlo(lying_program *p, char *text) {
  char *at = strstr(text, "@main(%x: tensor<");
  if (at == NULL) return false;
  at += strlen("@main(%x: tensor<");
  p->donates = strstr(at, "tf.aliasing_output") != NULL ||
               strstr(at, "jax.buffer_donor") != NULL;
  while (*at >= '0' && *at <= '9' && p->rank < LYING_MAX_RANK) {
    p->dims[p->rank++] = strtoll(at, &at, 10);
    if (*at == 'x') at++;
  }
  if (strncmp(at, "f32>", 4) != 0) return false;
  p->type = 11;
  bool adds = strstr(at, " = stablehlo.add %x, %x :") != NULL;
  snprintf(p->name, sizeof p->name, adds ? "twice" : "identity");
  return adds || strstr(at, "return %x :") != NULL;
}

static PJRT_Error *parse_words(lying_program *p, char *text) {
  char *rest = NULL;
  char *word = strtok_r(text, " \n", &rest);
  snprintf(p->name, sizeof p->name, "%s", word != NULL ? word : "");
  word = strtok_r(NULL, " \n", &rest);
  p->type = word != NULL ? atoi(word) : 0;
  if (lying_type_bits(p->type) == 0)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: a program without a type");
  while ((word = strtok_r(NULL, " \n", &rest)) != NULL &&
         p->rank < LYING_MAX_RANK)
    p->dims[p->rank++] = atoll(word);
  p->donates = strcmp(p->name, "donate") == 0;
  p->dynamic = strcmp(p->name, "dynamic") == 0 && p->rank > 0;
  if (strcmp(p->name, "pair") == 0) p->outputs = 2;
  return NULL;
}

PJRT_Error *lying_program_parse(lying_program *p, const char *code,
                                size_t size) {
  char text[sizeof p->code + 1];
  if (size > sizeof p->code) size = sizeof p->code;
  memcpy(text, code, size);
  text[size] = '\0';
  memcpy(p->code, text, size);
  p->code_size = size;
  p->outputs = 1;
  PJRT_Error *error = NULL;
  if (strncmp(text, "lying.", 6) == 0) {
    error = parse_words(p, text + 6);
  } else if (!parse_stablehlo(p, text)) {
    error = lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "\n\nlying plugin: this is no program\n  at line 1");
  }
  // Each output is told of, one after the other.
  for (size_t o = 0; o < 2; o++) {
    p->types[o] = p->type;
    p->ranks[o] = p->rank;
    memmove(p->dims + o * p->rank, p->dims, p->rank * sizeof p->dims[0]);
  }
  return error;
}
