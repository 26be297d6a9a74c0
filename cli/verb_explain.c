// SPDX-License-Identifier: Apache-2.0
// verb_explain.c: isthmus explain CODE|TEXT|-: the catalog's entry of an error
// of isthmus: by number, by name, or found in a message or a log.

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

static ist_entry entry_of(ist_code code) {
  ist_entry entry = {.struct_size = sizeof entry};
  (void)ist_catalog_find(code, &entry, NULL);
  return entry;
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
    size--;  // the last blank
  }
  f->count = ist_catalog_match(text, size, f->codes, MAX_FOUND);
  if (f->count > MAX_FOUND) f->count = MAX_FOUND;
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
