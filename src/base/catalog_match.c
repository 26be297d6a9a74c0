// SPDX-License-Identifier: Apache-2.0
// catalog_match.c: finds the errors of ours that a text names or words: the
// text of an exception, a line of the command, a log.

#include <string.h>

#include "base/error.h"

// Codes found so far, each once; those beyond room are counted only.
typedef struct found {
  ist_code *codes;
  size_t room;
  size_t count;
} found;

static void add(found *f, ist_code code) {
  size_t kept = f->count < f->room ? f->count : f->room;
  for (size_t i = 0; i < kept; i++) {
    if (f->codes[i] == code) return;
  }
  if (f->count < f->room) f->codes[f->count] = code;
  f->count++;
}

// Not of ctype.h, which follows the locale.
static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_word(char c) {
  char l = lower(c);
  return is_digit(c) || (l >= 'a' && l <= 'z') || c == '_';
}

// Compares ignoring case, - and _ being one.
static bool same_name(const char *text, size_t size, const char *name) {
  if (strlen(name) != size) return false;
  for (size_t i = 0; i < size; i++) {
    char c = text[i] == '-' ? '_' : lower(text[i]);
    if (c != lower(name[i])) return false;
  }
  return true;
}

static bool same_number(const char *text, size_t size, ist_code code) {
  long number = 0;
  for (size_t i = 0; i < size; i++) {
    if (!is_digit(text[i]) || number > 9999) return false;
    number = number * 10 + (text[i] - '0');
  }
  return size > 0 && number == (long)code;
}

// "210", "IST_ERR_FILE_FORMAT", "FILE_FORMAT", "file-format".
static bool by_name(const char *text, size_t size, found *f) {
  for (size_t i = 0; ist_catalog_code(i) != IST_OK; i++) {
    ist_code code = ist_catalog_code(i);
    const char *name = ist_code_name(code);
    if (same_number(text, size, code) || same_name(text, size, name) ||
        same_name(text, size, name + strlen("IST_ERR_"))) {
      add(f, code);
      return true;
    }
  }
  return false;
}

// Every name of a code that stands in the text as a word.
static bool names_in(const char *text, size_t length, found *f) {
  static const char prefix[] = "IST_ERR_";
  bool any = false;
  for (size_t at = 0; at + sizeof prefix - 1 <= length; at++) {
    if (memcmp(text + at, prefix, sizeof prefix - 1) != 0) continue;
    if (at > 0 && is_word(text[at - 1])) continue;
    size_t size = 0;
    while (at + size < length && is_word(text[at + size])) size++;
    for (size_t i = 0; ist_catalog_code(i) != IST_OK; i++) {
      const char *name = ist_code_name(ist_catalog_code(i));
      if (strlen(name) != size || memcmp(name, text + at, size) != 0) continue;
      add(f, ist_catalog_code(i));
      any = true;
    }
  }
  return any;
}

static const char *find(const char *at, const char *end, const char *literal,
                        size_t size) {
  for (; size <= (size_t)(end - at); at++) {
    if (memcmp(at, literal, size) == 0) return at;
  }
  return NULL;
}

// How many characters of a message's general form ("{file} could not be read:
// {actual}") stand in the text, in order; 0 when one is missing.
static size_t form_score(const char *form, const char *at, const char *end) {
  size_t score = 0;
  while (*form != '\0') {
    if (*form == '{') {
      const char *close = strchr(form, '}');
      if (close == NULL) return 0;
      form = close + 1;
      continue;
    }
    size_t size = strcspn(form, "{");
    const char *hit = find(at, end, form, size);
    if (hit == NULL) return 0;
    score += size;
    at = hit + size;
    form += size;
  }
  return score;
}

// The code whose general form fits the line best.
static void by_form(const char *line, size_t length, found *f) {
  size_t best = 0;
  ist_code code = IST_OK;
  for (size_t i = 0; ist_catalog_code(i) != IST_OK; i++) {
    ist_entry entry = {.struct_size = sizeof entry};
    (void)ist_catalog_find(ist_catalog_code(i), &entry, NULL);
    size_t score = form_score(entry.title, line, line + length);
    if (score <= best) continue;
    best = score;
    code = entry.code;
  }
  if (best > 0) add(f, code);
}

size_t ist_catalog_match(const char *text, size_t size, ist_code *out,
                         size_t room) {
  found f = {out, out == NULL ? 0 : room, 0};
  for (size_t i = 0; i < f.room; i++) out[i] = IST_OK;
  if (text == NULL || by_name(text, size, &f)) return f.count;
  const char *end = text + size;
  bool is_log = memchr(text, '\n', size) != NULL;
  while (text < end) {
    const char *newline = memchr(text, '\n', (size_t)(end - text));
    size_t length = (size_t)((newline == NULL ? end : newline) - text);
    bool ours = !is_log || find(text, text + length, "isthmus", 7) != NULL;
    if (!names_in(text, length, &f) && ours) by_form(text, length, &f);
    text += newline == NULL ? length : length + 1;
  }
  return f.count;
}
