// SPDX-License-Identifier: Apache-2.0
// command_option.c: values on the command line: NAME[:TYPE]=VALUE for a
// backend, and lists of integers.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

enum {
  MAX_LIST = 64
};

static bool read_integer(const char *text, const char **end, int64_t *out) {
  char *stop = NULL;
  errno = 0;
  long long value = strtoll(text, &stop, 0);
  *end = stop;
  *out = value;
  return stop != text && errno == 0 && strchr(" \t\n\v\f\r+", *text) == NULL;
}

ist_code ist__cmd_integers(const char *what, const char *text, int64_t *out,
                           size_t room, size_t *out_count, ist_error *err) {
  *out_count = 0;
  size_t count = 0;
  const char *at = text;
  while (*at != '\0') {
    const char *end = at;
    if (count == room) {
      return ist_error_set(err, IST_ERR_ARGUMENT,
                           "%s could not be read: more than %zu numbers; "
                           "needs fewer",
                           what, room);
    }
    bool good = read_integer(at, &end, &out[count]);
    if (!good || (*end != '\0' && (*end != ',' || end[1] == '\0'))) {
      return ist_error_set(err, IST_ERR_ARGUMENT,
                           "%s could not be read: '%s'; needs integers of 64 "
                           "bits with commas between",
                           what, text);
    }
    count++;
    at = *end == ',' ? end + 1 : end;
  }
  *out_count = count;
  return IST_OK;
}

static bool is_bool(const char *text, bool *out) {
  *out = strcmp(text, "true") == 0;
  return *out || strcmp(text, "false") == 0;
}

static bool is_integer(const char *text, int64_t *out) {
  const char *end = text;
  return read_integer(text, &end, out) && *end == '\0';
}

static bool is_float(const char *text, double *out) {
  char *end = NULL;
  if (strchr(" \t\n\v\f\r", *text) != NULL) return false;
  *out = strtod(text, &end);
  return end != text && *end == '\0';
}

static bool looks_like_list(const char *text) {
  return *text != '\0' && strchr(text, ',') != NULL &&
         strspn(text, "0123456789-,") == strlen(text);
}

// Which kind a type's name is; false when there is no such type.
static bool kind_of(const char *type, size_t length, ist_option_kind *out) {
  static const char *const names[] = {"string", "int", "ints", "float", "bool"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strlen(names[i]) == length && memcmp(names[i], type, length) == 0) {
      *out = (ist_option_kind)i;
      return true;
    }
  }
  return false;
}

static ist_option_kind guess_kind(const char *value) {
  int64_t integer = 0;
  double number = 0;
  bool boolean = false;
  if (is_bool(value, &boolean)) return IST_OPTION_BOOL;
  if (is_integer(value, &integer)) return IST_OPTION_INT64;
  if (looks_like_list(value)) return IST_OPTION_INT64_LIST;
  if (is_float(value, &number)) return IST_OPTION_FLOAT;
  return IST_OPTION_STRING;
}

static ist_code read_list(ist__cmd *cmd, const char *value, ist_option *option,
                          ist_error *err) {
  int64_t *list =
      ist_allocate(cmd->context, MAX_LIST * sizeof *list, _Alignof(int64_t));
  if (list == NULL) {
    return ist_error_set(err, IST_ERR_NO_ALLOCATION,
                         "memory for an option was not to be had: the "
                         "allocator gave none; needs %zu bytes",
                         MAX_LIST * sizeof *list);
  }
  option->list = list;
  return ist__cmd_integers(option->name, value, list, MAX_LIST,
                           &option->list_size, err);
}

// Fills the member that option->kind names.
static ist_code read_value(ist__cmd *cmd, const char *value, ist_option *option,
                           ist_error *err) {
  bool good = true;
  switch (option->kind) {
    case IST_OPTION_STRING:
      option->string = value;
      break;
    case IST_OPTION_INT64:
      good = is_integer(value, &option->int64);
      break;
    case IST_OPTION_INT64_LIST:
      return read_list(cmd, value, option, err);
    case IST_OPTION_FLOAT:
      good = is_float(value, &option->number);
      break;
    case IST_OPTION_BOOL:
      good = is_bool(value, &option->boolean);
      break;
  }
  if (good) return IST_OK;
  return ist_error_set(err, IST_ERR_OPTION,
                       "option %s could not be read: '%s'; needs a value of "
                       "its type",
                       option->name, value);
}

ist_code ist__cmd_option(ist__cmd *cmd, const char *text, ist_error *err) {
  const char *equal = strchr(text, '=');
  size_t length = equal == NULL ? 0 : (size_t)(equal - text);
  const char *colon = length == 0 ? NULL : memchr(text, ':', length);
  ist_option_kind kind = IST_OPTION_STRING;
  if (length == 0 || colon == text ||
      (colon != NULL &&
       !kind_of(colon + 1, (size_t)(equal - colon - 1), &kind))) {
    return ist_error_set(err, IST_ERR_OPTION,
                         "an option could not be read: '%s'; needs "
                         "NAME[:string|int|ints|float|bool]=VALUE",
                         text);
  }
  if (colon == NULL) kind = guess_kind(equal + 1);
  size_t size = colon == NULL ? length : (size_t)(colon - text);
  char *name = ist_allocate(cmd->context, size + 1, 1);
  if (name == NULL) {
    return ist_error_set(err, IST_ERR_NO_ALLOCATION,
                         "memory for an option was not to be had: the "
                         "allocator gave none; needs %zu bytes",
                         size + 1);
  }
  memcpy(name, text, size);
  name[size] = '\0';
  // Counted at once, so that ist__cmd_finish frees it.
  ist_option *option = &cmd->options[cmd->option_count++];
  *option = (ist_option){.name = name, .kind = kind};
  return read_value(cmd, equal + 1, option, err);
}
