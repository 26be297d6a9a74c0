// SPDX-License-Identifier: Apache-2.0
// program_text.c: finds whether a program is written for several copies of
// itself.

#include "backend/pjrt/program_text.h"

#include <stdbool.h>
#include <string.h>

// The number after "= " at text, or 0.
static uint64_t number_after(const char *text, const char *end) {
  while (text < end && (*text == ' ' || *text == '=')) text++;
  uint64_t number = 0;
  for (; text < end && *text >= '0' && *text <= '9'; text++) {
    if (number < UINT32_MAX) number = number * 10 + (uint64_t)(*text - '0');
  }
  return number;
}

static uint64_t largest(const char *key, const char *text, const char *end) {
  size_t length = strlen(key);
  uint64_t found = 0;
  while ((size_t)(end - text) >= length) {
    const char *at = memchr(text, key[0], (size_t)(end - text));
    if (at == NULL || (size_t)(end - at) < length) break;
    text = at + 1;
    if (memcmp(at, key, length) != 0) continue;
    uint64_t number = number_after(at + length, end);
    if (number > found) found = number;
  }
  return found;
}

bool ist__program_text_is_bytecode(const void *code, size_t size) {
  return size >= 4 && memcmp(code, "ML\xefR", 4) == 0;
}

uint64_t ist__program_text_number(const char *key, const void *code,
                                  size_t size) {
  const char *text = code;
  if (ist__program_text_is_bytecode(code, size)) return 0;
  return largest(key, text, text + size);
}

// MLIR's bytecode begins with four bytes, its own version in one byte (as long
// as that is below 64) and the producer's name up to a zero; StableHLO's
// portable artifacts have "StableHLO_v1.13.3" there.
bool ist__program_text_version(const void *code, size_t size, char *out,
                               size_t out_size) {
  static const char producer[] = "StableHLO_v";
  const char *text = code;
  size_t at = 5 + sizeof producer - 1, n = 0;
  if (!ist__program_text_is_bytecode(code, size) || size <= at ||
      memcmp(text + 5, producer, sizeof producer - 1) != 0) {
    return false;
  }
  while (at < size && n + 1 < out_size &&
         ((text[at] >= '0' && text[at] <= '9') || text[at] == '.')) {
    out[n++] = text[at++];
  }
  out[n] = '\0';
  return n > 0 && at < size && text[at] == '\0';
}

// Names of StableHLO's operations, of Shardy's, and of a custom call.
static const char *const collectives[] = {
    "all_reduce",           "all_gather",         "all_to_all",
    "reduce_scatter",       "collective_permute", "collective_broadcast",
    "replica_id",           "partition_id",       "manual_computation",
    "SPMDFullToShardShape",
};

// In bytecode a name is a string between zeros, in its portable form with a
// version: "all_reduce_v1".
static bool ends_in_bytecode(const char *at, const char *end) {
  if (end - at > 2 && at[0] == '_' && at[1] == 'v') at += 2;
  while (at < end && *at >= '0' && *at <= '9') at++;
  return at < end && *at == '\0';
}

// In text it comes after "stablehlo." or "sdy.", or as a symbol.
static bool ends_in_text(const char *at, const char *end) {
  static const char more[] =
      "_.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return at == end || *at == '\0' || strchr(more, *at) == NULL;
}

static bool names(const char *name, const void *code, size_t size) {
  const char *text = code, *end = text + size;
  size_t length = strlen(name);
  bool bytecode = ist__program_text_is_bytecode(code, size);
  while ((size_t)(end - text) >= length) {
    const char *at = memchr(text, name[0], (size_t)(end - text));
    if (at == NULL || (size_t)(end - at) < length) break;
    text = at + 1;
    if (at == code || memcmp(at, name, length) != 0) continue;
    if (bytecode ? at[-1] == '\0' && ends_in_bytecode(at + length, end)
                 : (at[-1] == '.' || at[-1] == '@') &&
                       ends_in_text(at + length, end)) {
      return true;
    }
  }
  return false;
}

const char *ist__program_text_collective(const void *code, size_t size) {
  for (size_t i = 0; i < sizeof collectives / sizeof collectives[0]; i++) {
    if (names(collectives[i], code, size)) return collectives[i];
  }
  return NULL;
}
