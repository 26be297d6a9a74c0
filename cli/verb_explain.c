// SPDX-License-Identifier: Apache-2.0
// verb_explain.c: isthmus explain CODE|TEXT|-: the catalog's entry of an error
// of isthmus: by number, by name, or found in a message or a log.

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

enum {
  MAX_FOUND = 64
};

// Codes found so far, each once.
typedef struct found {
  ist_code codes[MAX_FOUND];
  size_t count;
} found;

static void add(found *f, ist_code code) {
  for (size_t i = 0; i < f->count; i++) {
    if (f->codes[i] == code) return;
  }
  if (f->count < MAX_FOUND) f->codes[f->count++] = code;
}

static ist_entry entry_of(ist_code code) {
  ist_entry entry = {.struct_size = sizeof entry};
  (void)ist_catalog_find(code, &entry, NULL);
  return entry;
}

static bool is_word(char c) {
  return isalnum((unsigned char)c) != 0 || c == '_';
}

// Compares ignoring case, - and _ being one.
static bool same_name(const char *a, const char *b) {
  for (; *a != '\0' && *b != '\0'; a++, b++) {
    int x = *a == '-' ? '_' : tolower((unsigned char)*a);
    int y = *b == '-' ? '_' : tolower((unsigned char)*b);
    if (x != y) return false;
  }
  return *a == *b;
}

// "210", "IST_ERR_FILE_FORMAT", "FILE_FORMAT", "file-format".
static bool by_name(const char *text, ist_code *out) {
  char *end = NULL;
  long number = strtol(text, &end, 10);
  bool is_number = isdigit((unsigned char)text[0]) != 0 && *end == '\0';
  for (size_t i = 0; ist_catalog_code(i) != IST_OK; i++) {
    ist_code code = ist_catalog_code(i);
    const char *name = ist_code_name(code);
    if (is_number ? number == (long)code
                  : same_name(text, name) ||
                        same_name(text, name + strlen("IST_ERR_"))) {
      *out = code;
      return true;
    }
  }
  return false;
}

// Every name of a code that stands in the text as a word.
static bool names_in(const char *text, size_t length, found *f) {
  static const char prefix[] = "IST_ERR_";
  size_t before = f->count;
  bool any = false;
  const char *end = text + length;
  for (const char *at = text; at + sizeof prefix - 1 <= end; at++) {
    if (memcmp(at, prefix, sizeof prefix - 1) != 0) continue;
    if (at > text && is_word(at[-1])) continue;
    size_t size = 0;
    while (at + size < end && is_word(at[size])) size++;
    for (size_t i = 0; ist_catalog_code(i) != IST_OK; i++) {
      const char *name = ist_code_name(ist_catalog_code(i));
      if (strlen(name) != size || memcmp(name, at, size) != 0) continue;
      add(f, ist_catalog_code(i));
      any = true;
    }
  }
  return any || f->count > before;
}

static const char *find(const char *at, const char *end, const char *literal,
                        size_t size) {
  for (; at + size <= end; at++) {
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
static bool by_form(const char *line, size_t length, ist_code *out) {
  size_t best = 0;
  for (size_t i = 0; ist_catalog_code(i) != IST_OK; i++) {
    ist_code code = ist_catalog_code(i);
    size_t score = form_score(entry_of(code).title, line, line + length);
    if (score <= best) continue;
    best = score;
    *out = code;
  }
  return best > 0;
}

// Looks for errors of ours line by line. In a log, a line without a code's name
// must name isthmus to be taken for one: general forms are general.
static void search(const char *text, size_t size, bool is_log, found *f) {
  const char *end = text + size;
  while (text < end) {
    const char *newline = memchr(text, '\n', (size_t)(end - text));
    size_t length = (size_t)((newline == NULL ? end : newline) - text);
    ist_code code = IST_OK;
    bool ours = !is_log || find(text, text + length, "isthmus", 7) != NULL;
    if (!names_in(text, length, f) && ours && by_form(text, length, &code)) {
      add(f, code);
    }
    text += newline == NULL ? length : length + 1;
  }
}

// Prints a paragraph, indented and folded at 80 columns; each line of it
// begins with mark.
static void paragraph(FILE *file, const char *text, const char *mark) {
  int column = 0;
  while (*text != '\0') {
    int length = (int)strcspn(text, " \n");
    if (column > 0 && column + 1 + length > 79) {
      fputc('\n', file);
      column = fprintf(file, "%*s", (int)strlen(mark), "");
    } else if (column == 0) {
      column = fprintf(file, "%s", mark);
    } else {
      fputc(' ', file);
      column++;
    }
    fprintf(file, "%.*s", length, text);
    column += length;
    text += length;
    if (*text == '\n') {
      fputc('\n', file);
      column = 0;
    }
    text += strspn(text, " \n");
  }
  fputc('\n', file);
}

static void say_text(ist__cmd *cmd, const found *f) {
  FILE *file = cmd->report;
  for (size_t i = 0; i < f->count; i++) {
    ist_entry entry = entry_of(f->codes[i]);
    fprintf(file, "%s%s%s%s %d (%s)\n", i == 0 ? "" : "\n",
            ist__style_bold(cmd), entry.name, ist__style_end(cmd), entry.code,
            entry.slug);
    paragraph(file, entry.title, "  ");
    fputc('\n', file);
    paragraph(file, entry.meaning, "  ");
    fputs("\n  What to do:\n", file);
    paragraph(file, entry.solution, "  - ");
  }
}

static void say_json(ist__cmd *cmd, const found *f) {
  ist__json json = {.file = cmd->report};
  ist__json_open(&json, NULL, '[');
  for (size_t i = 0; i < f->count; i++) {
    ist_entry entry = entry_of(f->codes[i]);
    ist__json_open(&json, NULL, '{');
    ist__json_int(&json, "code", entry.code);
    ist__json_string(&json, "name", entry.name);
    ist__json_string(&json, "slug", entry.slug);
    ist__json_string(&json, "title", entry.title);
    ist__json_string(&json, "meaning", entry.meaning);
    ist__json_string(&json, "solution", entry.solution);
    ist__json_close(&json, '}');
  }
  ist__json_close(&json, ']');
  ist__json_end(&json);
}

// All operands are one text: its quotes may have been forgotten.
static ist_code gather(ist__cmd *cmd, found *f, ist_error *err) {
  const ist__words *words = &cmd->operands;
  ist_code code = IST_OK;
  char *text = NULL;
  size_t size = 0;
  bool is_log = words->count == 1 && strcmp(words->at[0], "-") == 0;
  if (is_log) {
    code = ist__cmd_read(cmd, "-", &text, &size, err);
    if (code != IST_OK) return code;
  } else if (words->count == 1 && by_name(words->at[0], &code)) {
    add(f, code);
    return IST_OK;
  } else {
    for (size_t i = 0; i < words->count; i++) size += strlen(words->at[i]) + 1;
    text = ist_allocate(cmd->context, size, 1);
    if (text == NULL) {
      return ist_error_set(err, IST_ERR_NO_ALLOCATION,
                           "memory for a text was not to be had: the allocator "
                           "gave none; needs %zu bytes",
                           size);
    }
    size = 0;
    for (size_t i = 0; i < words->count; i++) {
      size_t length = strlen(words->at[i]);
      memcpy(text + size, words->at[i], length);
      text[size + length] = ' ';
      size += length + 1;
    }
  }
  search(text, size, is_log, f);
  ist_deallocate(cmd->context, text);
  return IST_OK;
}

int ist__verb_explain(ist__cmd *cmd) {
  found f = {.count = 0};
  ist_error err = {0};
  if (cmd->operands.count == 0) {
    return ist__cmd_usage(cmd, "it needs a code, a text or -");
  }
  if (gather(cmd, &f, &err) != IST_OK) return ist__cmd_fail(cmd, &err);
  if (f.count == 0) {
    (void)ist_error_set(&err, IST_ERR_ARGUMENT,
                        "nothing could be explained: no error of isthmus was "
                        "found; needs a code's number, its name or a message");
    return ist__cmd_fail(cmd, &err);
  }
  if (cmd->json) {
    say_json(cmd, &f);
  } else {
    say_text(cmd, &f);
  }
  return IST__EXIT_OK;
}
