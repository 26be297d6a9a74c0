// SPDX-License-Identifier: Apache-2.0
// command_help.c: the help texts, written from verbs.def.

#include <string.h>

#include "command.h"

enum {
#define IST_VERB(name, text, operands, summary) \
  name = 1 << IST__VERB_NUMBER_##name,
#include "verbs.def"
  ALL = (1 << IST__VERB_COUNT) - 1
};

static const struct {
  int verbs;
  const char *text, *argument, *help;
  int letter;
} options[] = {
#define IST_OPTION(name, verbs, text, letter, argument, help) \
  {verbs, text, argument, help, letter},
#include "verbs.def"
};

// Prints text from column 0, indented and folded at 80 columns.
static void fold(FILE *file, const char *text, int indent) {
  int column = 0;
  while (*text != '\0') {
    int length = (int)strcspn(text, " ");
    if (column > 0 && column + 1 + length > 79) {
      fputc('\n', file);
      column = 0;
    }
    if (column == 0) {
      fprintf(file, "%*s", indent, "");
      column = indent;
    } else {
      fputc(' ', file);
      column++;
    }
    fprintf(file, "%.*s", length, text);
    column += length;
    text += length;
    text += strspn(text, " ");
  }
  fputc('\n', file);
}

static void help_options(int verb, FILE *file) {
  fputs("\noptions:\n", file);
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
    if ((options[i].verbs & verb) == 0) continue;
    if (options[i].letter != 0) {
      fprintf(file, "  -%c, ", options[i].letter);
    } else {
      fputs("      ", file);
    }
    fprintf(file, "--%s%s%s\n", options[i].text,
            options[i].argument[0] == '\0' ? "" : " ", options[i].argument);
    fold(file, options[i].help, 10);
  }
}

static void help_verb(const ist__verb *verb, FILE *file) {
  fprintf(file, "usage: isthmus %s [options]%s%s\n\n", verb->name,
          verb->operands[0] == '\0' ? "" : " ", verb->operands);
  fold(file, verb->summary, 2);
  help_options(1 << (verb - ist__verbs), file);
}

void ist__cmd_help(const ist__verb *verb, FILE *file) {
  if (verb != NULL) {
    help_verb(verb, file);
  } else {
    fputs(
        "usage: isthmus VERB [options] [operands]\n\n"
        "  Hands tensors to device runtimes, and says how they crossed.\n\n"
        "verbs:\n",
        file);
    for (int i = 0; i < IST__VERB_COUNT; i++) {
      const char *operands = ist__verbs[i].operands;
      fprintf(file, "  %s%s%s\n", ist__verbs[i].name,
              operands[0] == '\0' ? "" : " ", operands);
      fold(file, ist__verbs[i].summary, 10);
    }
    fputs("\noptions:\n", file);
    fputs("  --help, VERB --help, --version, --json\n", file);
  }
  fputs(
      "\nplaces: host, template[#DEVICE], pjrt:PLUGIN.so[#DEVICE[/MEMORY]],\n"
      "  FILE.npy, FILE.safetensors[:TENSOR], - (.npy on stdin or stdout);\n"
      "  %23 and %3A stand for # and : in names\n"
      "exit codes: 0 done, 1 refused or failed, 2 wrong command line\n",
      file);
}
