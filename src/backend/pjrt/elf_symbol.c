// SPDX-License-Identifier: Apache-2.0
// elf_symbol.c: reads the table of dynamic symbols of an ELF file (System V
// gABI, chapters 4 and 5), every number of which is hostile.

#define _POSIX_C_SOURCE 200809L  // fseeko
#include "backend/pjrt/elf_symbol.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "base/regular_file.h"

enum {
  DYNSYM = 11,     // sh_type of the table of dynamic symbols
  SECTION = 64,    // bytes of a section header
  SYMBOL = 24,     // bytes of a symbol
  PIECE = 4096,    // bytes read at once
  MOST_PLACES = 8  // where the name stands among all names
};

// Of a table's bytes; the largest that are known have some tens of millions.
#define MOST_TABLE (UINT64_C(256) << 20)

typedef struct section {
  uint64_t type, offset, size, link;
} section;

static uint64_t number(const unsigned char *at, size_t size) {
  uint64_t value = 0;
  uint32_t four = 0;
  uint16_t two = 0;
  if (size == 8) memcpy(&value, at, 8);
  if (size == 4) memcpy(&four, at, 4);
  if (size == 2) memcpy(&two, at, 2);
  return size == 8 ? value : size == 4 ? four : two;
}

// Reads size bytes at offset, or says that they are not there.
static size_t read_at(FILE *file, uint64_t offset, void *out, size_t size) {
  if (offset > INT64_MAX || fseeko(file, (off_t)offset, SEEK_SET) != 0) {
    return 0;
  }
  return fread(out, 1, size, file);
}

static int read_section(FILE *file, uint64_t table, uint64_t index,
                        section *out) {
  unsigned char raw[SECTION];
  if (index > UINT16_MAX ||
      read_at(file, table + index * SECTION, raw, SECTION) != SECTION) {
    return 0;
  }
  out->type = number(raw + 4, 4);
  out->offset = number(raw + 24, 8);
  out->size = number(raw + 32, 8);
  out->link = number(raw + 40, 4);
  return 1;
}

// Where in a table of names the name stands, its NUL included: names share
// tails, so that it may be the end of another one.
static int find_places(FILE *file, const section *names, const char *name,
                       uint64_t places[MOST_PLACES]) {
  char bytes[PIECE + 32];
  size_t length = strlen(name) + 1;
  int count = 0;
  if (length > 32) return 0;
  for (uint64_t at = 0; at < names->size; at += PIECE) {
    uint64_t left = names->size - at;
    size_t size = left < sizeof bytes ? (size_t)left : sizeof bytes;
    size_t got = read_at(file, names->offset + at, bytes, size);
    for (size_t i = 0; i < PIECE && i + length <= got; i++) {
      if (memcmp(bytes + i, name, length) != 0) continue;
      if (count < MOST_PLACES) places[count++] = at + i;
    }
    if (got < size) break;
  }
  return count;
}

static int is_exported(FILE *file, const section *symbols,
                       const uint64_t *places, int count) {
  unsigned char raw[PIECE / SYMBOL * SYMBOL];
  uint64_t at = 0;
  while (at < symbols->size) {
    size_t got = read_at(file, symbols->offset + at, raw, sizeof raw);
    if (got < SYMBOL) return 0;
    for (size_t i = 0; i + SYMBOL <= got && at + i < symbols->size;
         i += SYMBOL) {
      uint64_t name = number(raw + i, 4);
      if (number(raw + i + 6, 2) == 0) continue;  // it is needed, not given
      for (int k = 0; k < count; k++) {
        if (name == places[k]) return 1;
      }
    }
    at += sizeof raw;
  }
  return 0;
}

static ist__elf_answer search(FILE *file, const char *name) {
  unsigned char head[64];
  const uint16_t one = 1;
  unsigned char order = *(const unsigned char *)&one == 1 ? 1 : 2;
  if (fread(head, 1, sizeof head, file) != sizeof head ||
      memcmp(head, "\177ELF", 4) != 0 || head[4] != 2 || head[5] != order ||
      number(head + 58, 2) != SECTION) {
    return IST__ELF_UNKNOWN;
  }
  uint64_t table = number(head + 40, 8), count = number(head + 60, 2);
  if (table == 0 || table > INT64_MAX / 2) return IST__ELF_UNKNOWN;
  for (uint64_t i = 0; i < count; i++) {
    section symbols, names;
    uint64_t places[MOST_PLACES];
    if (!read_section(file, table, i, &symbols)) return IST__ELF_UNKNOWN;
    if (symbols.type != DYNSYM) continue;
    if (!read_section(file, table, symbols.link, &names) ||
        symbols.offset > INT64_MAX / 2 || names.offset > INT64_MAX / 2 ||
        symbols.size > MOST_TABLE || names.size > MOST_TABLE) {
      return IST__ELF_UNKNOWN;
    }
    int found = find_places(file, &names, name, places);
    return found > 0 && is_exported(file, &symbols, places, found)
               ? IST__ELF_YES
               : IST__ELF_NO;
  }
  return IST__ELF_UNKNOWN;
}

ist__elf_answer ist__elf_exports(const char *path, const char *name) {
  uint64_t size = 0;
  FILE *file = ist__regular_open(path, INT64_MAX, &size);
  if (file == NULL) return IST__ELF_UNKNOWN;
  ist__elf_answer answer = search(file, name);
  fclose(file);
  return answer;
}
