// SPDX-License-Identifier: Apache-2.0
// child_wire.c: writes and reads the lines between the library and the program
// isthmus-probe.

#include "backend/pjrt/child_wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

// ---- options

// The kinds cross as their numbers, which are those of PJRT (plugin.c).
_Static_assert(IST_OPTION_STRING == 0 && IST_OPTION_INT64 == 1 &&
                   IST_OPTION_INT64_LIST == 2 && IST_OPTION_FLOAT == 3 &&
                   IST_OPTION_BOOL == 4,
               "a request of another build of this version would be misread");

static void add_value(const ist_option *option, ist__text *out) {
  switch (option->kind) {
    case IST_OPTION_STRING:
      ist__text_add(out, "%s", option->string);
      break;
    case IST_OPTION_INT64:
      ist__text_add(out, "%" PRId64, option->int64);
      break;
    case IST_OPTION_INT64_LIST:
      for (size_t i = 0; i < option->list_size; i++) {
        ist__text_add(out, i == 0 ? "%" PRId64 : ",%" PRId64, option->list[i]);
      }
      break;
    case IST_OPTION_FLOAT:
      ist__text_add(out, "%a", option->number);
      break;
    case IST_OPTION_BOOL:
      ist__text_add(out, "%d", option->boolean ? 1 : 0);
      break;
  }
}

void ist__child_request(const ist_option *options, size_t count,
                        ist__text *out) {
  for (size_t i = 0; i < count; i++) {
    ist__text size = ist__text_make(NULL, 0);
    add_value(&options[i], &size);
    ist__text_add(out, "option %d %zu %zu\n%s", (int)options[i].kind,
                  strlen(options[i].name), size.length, options[i].name);
    add_value(&options[i], out);
    ist__text_add(out, "\n");
  }
}

static bool read_list(char *value, ist_option *option, int64_t *numbers) {
  option->list = numbers;
  while (*value != '\0') {
    char *end = value;
    numbers[option->list_size++] = strtoll(value, &end, 10);
    if (end == value || (*end != ',' && *end != '\0')) return false;
    value = *end == ',' ? end + 1 : end;
  }
  return true;
}

static bool read_value(char *value, ist_option *option, int64_t *numbers) {
  char *end = value;
  switch (option->kind) {
    case IST_OPTION_STRING:
      option->string = value;
      return true;
    case IST_OPTION_INT64:
      option->int64 = strtoll(value, &end, 10);
      break;
    case IST_OPTION_INT64_LIST:
      return read_list(value, option, numbers);
    case IST_OPTION_FLOAT:
      option->number = strtod(value, &end);
      break;
    case IST_OPTION_BOOL:
      option->boolean = strcmp(value, "1") == 0;
      return option->boolean || strcmp(value, "0") == 0;
  }
  return end != value && *end == '\0';
}

// One option at *at; *at is where the next one begins.
static bool read_option(char **at, const char *end, ist_option *out,
                        int64_t *numbers) {
  int kind = -1, length = 0;
  size_t name = 0, value = 0;
  if (sscanf(*at, "option %d %zu %zu%n", &kind, &name, &value, &length) != 3 ||
      (*at)[length] != '\n' || kind < IST_OPTION_STRING ||
      kind > IST_OPTION_BOOL) {
    return false;
  }
  char *text = *at + length + 1;
  size_t left = (size_t)(end - text);
  if (name >= left || value >= left - name || text[name + value] != '\n') {
    return false;
  }
  *at = text + name + value + 1;
  text[name + value] = '\0';
  // Name and value touch, so there is no place for the NUL between them: the
  // name moves one to the left, over the newline that ends the line of sizes.
  memmove(text - 1, text, name);
  text[name - 1] = '\0';
  *out = (ist_option){.name = text - 1, .kind = (ist_option_kind)kind};
  return name > 0 && strlen(text - 1) == name && strlen(text + name) == value &&
         read_value(text + name, out, numbers);
}

int ist__child_options(char *bytes, size_t size, ist_option *options, int room,
                       int64_t *numbers) {
  char *at = bytes;
  int count = 0;
  size_t used = 0;
  while (at < bytes + size) {
    if (count == room ||
        !read_option(&at, bytes + size, &options[count], numbers + used)) {
      return -1;
    }
    used += options[count++].list_size;
  }
  return count;
}

// ---- what is to be done

void ist__child_task(int32_t device, uint64_t losses,
                     char out[IST__CHILD_TASK]) {
  if (device < 0) {
    (void)snprintf(out, IST__CHILD_TASK, "open");
  } else {
    (void)snprintf(out, IST__CHILD_TASK, "report:%" PRId32 ":%" PRIx64, device,
                   losses);
  }
}

bool ist__child_task_read(const char *task, int32_t *device, uint64_t *losses) {
  char again[IST__CHILD_TASK];
  *device = -1;
  *losses = 0;
  if (strcmp(task, "open") == 0) return true;
  if (sscanf(task, "report:%" SCNd32 ":%" SCNx64, device, losses) != 2 ||
      *device < 0) {
    return false;
  }
  ist__child_task(*device, *losses, again);
  return strcmp(task, again) == 0;
}

// ---- the answer

static void read_refusal(ist__child_answer *answer, const char *text) {
  int code = 0, length = 0;
  int32_t native = 0;
  if (sscanf(text, "%d %" SCNd32 " %n", &code, &native, &length) != 2 ||
      code <= IST_OK || ist_code_name((ist_code)code) == NULL || length == 0 ||
      text[length] == '\0') {
    return;
  }
  answer->refused = true;
  (void)ist__error_native(&answer->err, (ist_code)code, native, "%s",
                          text + length);
}

static bool read_end(ist__child_answer *answer, const char *text) {
  char word[8] = "";
  int32_t number = 0;
  if (sscanf(text, "%7s %" SCNd32, word, &number) != 2) return false;
  ist__child_end end = strcmp(word, "exit") == 0     ? IST__CHILD_EXIT
                       : strcmp(word, "signal") == 0 ? IST__CHILD_SIGNAL
                       : strcmp(word, "late") == 0   ? IST__CHILD_LATE
                                                     : IST__CHILD_UNKNOWN;
  if (end == IST__CHILD_UNKNOWN) return false;
  answer->end = end;
  answer->number = number;
  return true;
}

static const char *after(const char *line, const char *word) {
  size_t length = strlen(word);
  return strncmp(line, word, length) == 0 ? line + length : NULL;
}

// One line, without its newline. True for the last one.
static bool read_line(ist__child_answer *answer) {
  const char *line = answer->line, *rest = NULL;
  if (!answer->greeted) {
    answer->greeted = strcmp(line, "isthmus-probe " IST__CHILD_VERSION) == 0;
  } else if ((rest = after(line, "step ")) != NULL) {
    ist__text_first_line(rest, strlen(rest), answer->step, sizeof answer->step);
  } else if ((rest = after(line, "trial ")) != NULL) {
    ist__text_first_line(rest, strlen(rest), answer->trial,
                         sizeof answer->trial);
  } else if (answer->passed || answer->refused) {
    rest = after(line, "ended ");
    return rest != NULL && read_end(answer, rest);
  } else if (strcmp(line, "passed") == 0) {
    answer->passed = true;
  } else if ((rest = after(line, "refused ")) != NULL) {
    read_refusal(answer, rest);
  } else if ((rest = after(line, "ended ")) != NULL) {
    return read_end(answer, rest);
  }
  return false;
}

bool ist__child_read(ist__child_answer *answer, const char *bytes,
                     size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (bytes[i] != '\n') {
      if (answer->used < sizeof answer->line) {
        answer->line[answer->used++] = bytes[i];
      }
      continue;
    }
    bool whole = answer->used < sizeof answer->line;
    answer->line[whole ? answer->used : 0] = '\0';
    answer->used = 0;
    if (whole && read_line(answer)) return true;
  }
  return false;
}
