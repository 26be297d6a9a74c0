// SPDX-License-Identifier: Apache-2.0
// program_names.c: reads the head of a function of MLIR text: parentheses that
// are balanced, and strings.

#include "backend/pjrt/program_names.h"

#include <string.h>

#include "backend/pjrt/program_text.h"
#include "base/alloc.h"

typedef struct cursor {
  const char *at;
  const char *end;
} cursor;

typedef struct name {
  const char *at;
  size_t size;
} name;

static void skip_blanks(cursor *c) {
  while (c->at < c->end && memchr(" \t\r\n", *c->at, 4) != NULL) c->at++;
}

static bool begins(const cursor *c, const char *word) {
  size_t length = strlen(word);
  return (size_t)(c->end - c->at) >= length && memcmp(c->at, word, length) == 0;
}

// Past a string's closing quote.
static void skip_string(cursor *c) {
  for (c->at++; c->at < c->end && *c->at != '"'; c->at++) {
    if (*c->at == '\\' && c->at + 1 < c->end) c->at++;
  }
  if (c->at < c->end) c->at++;
}

// The value of key = "...", when the cursor is at key.
static bool read_attribute(cursor c, const char *key, name *out) {
  if (!begins(&c, key)) return false;
  c.at += strlen(key);
  skip_blanks(&c);
  if (c.at == c.end || *c.at++ != '=') return false;
  skip_blanks(&c);
  if (c.at == c.end || *c.at != '"') return false;
  out->at = c.at + 1;
  skip_string(&c);
  if (c.at[-1] != '"' || c.at <= out->at) return false;
  out->size = (size_t)(c.at - 1 - out->at);
  return true;
}

// Past one argument or result, up to its comma or the closing parenthesis; an
// attribute of that key on the way is its name.
static void skip_one(cursor *c, const char *key, name *out) {
  int depth = 0;
  while (c->at < c->end) {
    char ch = *c->at;
    if (depth == 0 && (ch == ',' || ch == ')')) return;
    if (ch == '"') {
      skip_string(c);
      continue;
    }
    if (begins(c, "->")) {
      c->at += 2;  // no bracket
      continue;
    }
    if (memchr("(<[{", ch, 4) != NULL) depth++;
    if (memchr(")>]}", ch, 4) != NULL && depth > 0) depth--;
    if (ch == key[0]) read_attribute(*c, key, out);
    c->at++;
  }
}

static bool is_word(char ch) {
  return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
         (ch >= '0' && ch <= '9') || ch == '_' || ch == '.' || ch == '-' ||
         ch == '$';
}

// %arg3 and %3 say no more than the argument's number does.
static bool is_number(name n) {
  if (n.size >= 3 && memcmp(n.at, "arg", 3) == 0) {
    n.at += 3;
    n.size -= 3;
  }
  size_t i = 0;
  while (i < n.size && n.at[i] >= '0' && n.at[i] <= '9') i++;
  return i == n.size;
}

static void tell(bool is_output, name n, ist__name_visit visit, void *self) {
  for (size_t i = 0; i < n.size; i++) {
    if ((unsigned char)n.at[i] < ' ' || n.at[i] == 0x7f) n.size = 0;
  }
  visit(self, is_output, n.size != 0 ? n.at : "", n.size);
}

// The list after an opening parenthesis. False when it does not end.
static bool read_list(cursor *c, bool is_output, ist__name_visit visit,
                      void *self) {
  const char *key = is_output ? "jax.result_info" : "jax.arg_info";
  skip_blanks(c);
  while (c->at < c->end && *c->at != ')') {
    name found = {NULL, 0};
    if (!is_output && *c->at == '%') {
      found.at = ++c->at;
      while (c->at < c->end && is_word(*c->at)) c->at++;
      found.size = (size_t)(c->at - found.at);
      if (is_number(found)) found.size = 0;
    }
    skip_one(c, key, &found);
    if (c->at == c->end) return false;
    tell(is_output, found, visit, self);
    if (*c->at == ',') c->at++;
    skip_blanks(c);
  }
  if (c->at == c->end) return false;
  c->at++;
  return true;
}

// To what follows "@main", outside strings and comments.
static bool find_main(cursor *c) {
  while (c->at < c->end) {
    if (*c->at == '"') {
      skip_string(c);
    } else if (begins(c, "//")) {
      const char *line = memchr(c->at, '\n', (size_t)(c->end - c->at));
      c->at = line != NULL ? line : c->end;
    } else if (begins(c, "@main(")) {
      c->at += 6;
      return true;
    } else {
      c->at++;
    }
  }
  return false;
}

void ist__program_names_visit(const char *text, size_t size,
                              ist__name_visit visit, void *self) {
  cursor c = {text, text + size};
  if (ist__program_text_is_bytecode(text, size) || !find_main(&c) ||
      !read_list(&c, false, visit, self)) {
    return;
  }
  skip_blanks(&c);
  if (!begins(&c, "->")) return;
  c.at += 2;
  skip_blanks(&c);
  if (c.at == c.end || *c.at != '(') return;  // one result, without a name
  c.at++;
  read_list(&c, true, visit, self);
}

static void count_one(void *self, bool is_output, const char *text,
                      size_t size) {
  (void)text;
  (void)size;
  size_t *counts = self;
  counts[is_output]++;
}

typedef struct filler {
  ist__program_names *names;
  size_t next;
} filler;

static void fill_one(void *self, bool is_output, const char *text,
                     size_t size) {
  (void)is_output;  // they come in order
  filler *f = self;
  char *to = f->names->text[f->next++];
  if (size >= IST_MAX_NAME) size = IST_MAX_NAME - 1;
  memcpy(to, text, size);
  to[size] = '\0';
}

ist__program_names *ist__program_names_read(const ist__env *env,
                                            const char *text, size_t size) {
  size_t counts[2] = {0, 0};
  ist__program_names_visit(text, size, count_one, counts);
  ist__program_names *names = ist__alloc_zero(
      env, sizeof *names + (counts[0] + counts[1]) * IST_MAX_NAME);
  if (names == NULL) return NULL;
  names->input_count = counts[0];
  names->output_count = counts[1];
  filler f = {names, 0};
  ist__program_names_visit(text, size, fill_one, &f);
  return names;
}

const char *ist__program_names_at(const ist__program_names *names,
                                  bool is_output, size_t index) {
  if (names == NULL) return "";
  size_t count = is_output ? names->output_count : names->input_count;
  if (index >= count) return "";
  return names->text[is_output ? names->input_count + index : index];
}
