// SPDX-License-Identifier: Apache-2.0
// Reads the lying plugin's rules (rules.def) from a text. What is no rule ends
// the process: a test that mistypes one would test nothing.

#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>

#include "lying.h"

static const char *const names[LYING_FUNCTION_COUNT] = {
#define SLOT(name, minor) #name,
#include "backend/pjrt/slots.def"
#undef SLOT
#define FUNCTION(extension, name, args) #extension "_" #name,
#include "extension_functions.def"
#undef FUNCTION
};

typedef enum kind {
  KIND_NUMBER,
  KIND_WORD,
  KIND_TEXT,
  KIND_CALLS
} kind;

static const struct {
  const char *name;
  kind kind;
  size_t offset;
  long number;        // a number's fallback
  const char *words;  // of a word, parted by |, or a text's fallback
} rules[] = {
#define NUMBER(name, fallback, what) \
  {#name, KIND_NUMBER, offsetof(lying_rules, name), fallback, ""},
#define WORD(name, words, what) \
  {#name, KIND_WORD, offsetof(lying_rules, name), 0, words},
#define TEXT(name, fallback, what) \
  {#name, KIND_TEXT, offsetof(lying_rules, name), 0, fallback},
#define CALLS(name, what) \
  {#name, KIND_CALLS, offsetof(lying_rules, name), 0, ""},
#include "rules.def"
#undef NUMBER
#undef WORD
#undef TEXT
#undef CALLS
};

#define RULE_COUNT (sizeof rules / sizeof rules[0])

static void give_up(const char *what, const char *which) {
  fprintf(stderr, "lying plugin: %s: %s\n", what, which);
  abort();
}

const char *lying_name(int function) {
  return names[function];
}

int lying_function(const char *name) {
  if (strncmp(name, "PJRT_", 5) == 0) name += 5;
  for (int i = 0; i < LYING_FUNCTION_COUNT; i++)
    if (strcmp(names[i], name) == 0) return i;
  give_up("no slot of this name", name);
  return -1;
}

static bool is_word_of(const char *word, const char *words) {
  size_t size = strlen(word);
  while (*words != '\0') {
    size_t length = strcspn(words, "|");
    if (length == size && strncmp(words, word, size) == 0) return true;
    words += length + (words[length] == '|');
  }
  return false;
}

static void apply(size_t rule, char *value, lying_rules *out) {
  void *field = (char *)out + rules[rule].offset;
  switch (rules[rule].kind) {
    case KIND_NUMBER: {
      char *end = NULL;
      *(long *)field = strtol(value, &end, 0);
      if (end == value || *end != '\0') give_up("no number", value);
      return;
    }
    case KIND_WORD:
      if (!is_word_of(value, rules[rule].words)) give_up("no such word", value);
      strcpy(field, value);  // it is no longer than what it was compared with
      return;
    case KIND_TEXT:
      snprintf(field, sizeof out->wrap, "%s", value);
      return;
    case KIND_CALLS: {
      char *colon = strchr(value, ':');
      if (colon != NULL) *colon++ = '\0';
      ((int *)field)[lying_function(value)] = colon ? atoi(colon) : -1;
      return;
    }
  }
}

static void parse_word(char *word, lying_rules *out) {
  char *equals = strchr(word, '=');
  if (equals == NULL) give_up("a rule without a value", word);
  *equals = '\0';
  for (size_t i = 0; i < RULE_COUNT; i++)
    if (strcmp(rules[i].name, word) == 0) {
      apply(i, equals + 1, out);
      return;
    }
  give_up("no rule of this name", word);
}

void lying_rules_parse(const char *text, lying_rules *out) {
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < RULE_COUNT; i++) {
    void *field = (char *)out + rules[i].offset;
    if (rules[i].kind == KIND_NUMBER) *(long *)field = rules[i].number;
    if (rules[i].kind == KIND_TEXT) strcpy(field, rules[i].words);
  }
  char *copy = strdup(text != NULL ? text : "");
  if (copy == NULL) abort();
  char *rest = NULL;
  for (char *word = strtok_r(copy, " ", &rest); word != NULL;
       word = strtok_r(NULL, " ", &rest))
    parse_word(word, out);
  free(copy);
}
