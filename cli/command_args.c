// SPDX-License-Identifier: Apache-2.0
// command_args.c: the command line: which verb, which options, which operands.
// Options may stand anywhere; after "--" nothing is an option.

#define _GNU_SOURCE  // getopt_long
#include <getopt.h>
#include <string.h>

#include "command.h"

const ist__verb ist__verbs[IST__VERB_COUNT] = {
#define IST_VERB(name, text, operands, summary) \
  {#text, operands, summary, ist__verb_##text},
#include "verbs.def"
};

// Sets of verbs, as verbs.def writes them.
enum {
#define IST_VERB(name, text, operands, summary) \
  name = 1 << IST__VERB_NUMBER_##name,
#include "verbs.def"
  ALL = (1 << IST__VERB_COUNT) - 1
};

// What getopt_long returns for each option: above any letter.
enum {
  FIRST_OPTION = 1000,
#define IST_OPTION(name, verbs, text, letter, argument, help) OPTION_##name,
#include "verbs.def"
  LAST_OPTION
};

enum {
  OPTION_COUNT = LAST_OPTION - FIRST_OPTION - 1
};

static const struct {
  int verbs;
  const char *text, *argument;
  int letter;
} options[OPTION_COUNT] = {
#define IST_OPTION(name, verbs, text, letter, argument, help) \
  {verbs, text, argument, letter},
#include "verbs.def"
};

// Verbs of the contract that this version does not have.
static const char *const later[] = {"matrix", "errors", "tap"};

// The options of one verb, as getopt_long wants them.
typedef struct grammar {
  struct option longs[OPTION_COUNT + 1];
  char letters[2 * OPTION_COUNT + 3];
} grammar;

static void grammar_of(int verb, grammar *out) {
  memset(out, 0, sizeof *out);
  // "-": operands are given in order, so that -o A B can take B; ":": a
  // missing argument is told apart from an unknown option.
  strcpy(out->letters, "-:");
  size_t length = 2;
  size_t count = 0;
  for (int i = 0; i < OPTION_COUNT; i++) {
    if ((options[i].verbs & (1 << verb)) == 0) continue;
    bool argument = options[i].argument[0] != '\0';
    out->longs[count++] = (struct option){
        options[i].text, argument ? required_argument : no_argument, NULL,
        FIRST_OPTION + 1 + i};
    if (options[i].letter == 0) continue;
    out->letters[length++] = (char)options[i].letter;
    if (argument) out->letters[length++] = ':';
  }
}

// The option that getopt_long found: by number, or by its letter.
static int option_number(int found) {
  if (found > FIRST_OPTION) return found;
  for (int i = 0; i < OPTION_COUNT; i++) {
    if (options[i].letter == found) return FIRST_OPTION + 1 + i;
  }
  return found;
}

// Finds text in a list "a|b|c" of an option; out is its place there.
static bool word_of(int option, const char *text, int *out) {
  const char *word = options[option - FIRST_OPTION - 1].argument;
  size_t size = strlen(text);
  for (int i = 0;; i++) {
    size_t length = strcspn(word, "|");
    if (length == size && memcmp(word, text, size) == 0) {
      *out = i;
      return true;
    }
    if (word[length] == '\0') return false;
    word += length + 1;
  }
}

// Sets one member of cmd->wish. Returns -1, or an exit code.
static int take_word(ist__cmd *cmd, int option, const char *text) {
  int word = 0;
  if (!word_of(option, text, &word)) {
    return ist__cmd_usage(cmd, "--%s cannot be '%s'; needs %s",
                          options[option - FIRST_OPTION - 1].text, text,
                          options[option - FIRST_OPTION - 1].argument);
  }
  switch (option) {
    case OPTION_COPY:
      cmd->wish.copy = (ist_copy)word;
      break;
    case OPTION_READ_ONLY:
      cmd->wish.read_only = (ist_read_only)word;
      break;
    case OPTION_MUTABLE_SOURCE:
      cmd->wish.mutable_source = (ist_mutable_source)word;
      break;
    default:
      cmd->wish.grant = (ist_grant)(word + 1);
      break;
  }
  return -1;
}

// Keeps a list of numbers for route, once it can be read. Returns -1, or an
// exit code.
static int take_numbers(ist__cmd *cmd, int option, const char *text) {
  int64_t numbers[IST_MAX_NDIM];
  size_t count = 0;
  ist_error err = {0};
  char name[32];
  (void)snprintf(name, sizeof name, "--%s",
                 options[option - FIRST_OPTION - 1].text);
  size_t room = option == OPTION_ADDRESS ? 1 : IST_MAX_NDIM;
  ist_code code = ist__cmd_integers(name, text, numbers, room, &count, &err);
  if (code == IST_OK && option == OPTION_ADDRESS &&
      (count != 1 || numbers[0] < 0)) {
    code = ist_error_set(&err, IST_ERR_ARGUMENT,
                         "--address cannot be '%s'; needs a number of 0 or "
                         "more",
                         text);
  }
  if (code != IST_OK) return ist__cmd_usage(cmd, "%s", err.message);
  if (option == OPTION_SHAPE) cmd->shape = text;
  if (option == OPTION_STRIDES) cmd->strides = text;
  if (option == OPTION_ADDRESS) cmd->address = text;
  return -1;
}

static void add(ist__words *words, const char *text) {
  words->at[words->count++] = text;
}

// True for an option that is a wish alone.
static bool take_flag(ist__cmd *cmd, int option) {
  if (option == OPTION_TRUSTED) {
    cmd->trusted = true;
  } else if (option == OPTION_JUNIT) {
    cmd->junit = true;
  } else if (option == OPTION_SATURATE) {
    cmd->saturate = true;
  } else if (option == OPTION_PORTABLE) {
    cmd->portable = true;
  } else if (option == OPTION_NO_CACHE) {
    cmd->no_cache = true;
  } else {
    return false;
  }
  return true;
}

// Takes one option with its argument. Returns -1, or an exit code.
static int take(ist__cmd *cmd, int option, const char *argument) {
  ist_error err = {0};
  if (take_flag(cmd, option)) return -1;
  switch (option) {
    case OPTION_HELP:
      ist__cmd_help(cmd->verb, stdout);
      return IST__EXIT_OK;
    case OPTION_VERSION:
      printf("isthmus %s\n", ist_version());
      return IST__EXIT_OK;
    case OPTION_JSON:
      cmd->json = true;
      break;
    case OPTION_PLUGIN:
      add(&cmd->plugins, argument);
      break;
    case OPTION_OUTPUT:
      add(&cmd->outputs, argument);
      break;
    case OPTION_VIA:
      add(&cmd->vias, argument);
      break;
    case OPTION_OPTION:
      if (ist__cmd_option(cmd, argument, &err) == IST_OK) break;
      return err.code == IST_ERR_NO_ALLOCATION
                 ? ist__cmd_fail(cmd, &err)
                 : ist__cmd_usage(cmd, "%s", err.message);
    case OPTION_DTYPE:
      cmd->dtype = argument;
      break;
    case OPTION_ASTYPE:
      cmd->astype = argument;
      break;
    case OPTION_SHAPE:
    case OPTION_STRIDES:
    case OPTION_ADDRESS:
      return take_numbers(cmd, option, argument);
    default:
      return take_word(cmd, option, argument);
  }
  return -1;
}

// Says what getopt_long could not read.
static int misread(ist__cmd *cmd, int found, char **argv) {
  const char *text = argv[optind - 1];
  if (found == ':') {
    return ist__cmd_usage(cmd, "option '%s' needs an argument", text);
  }
  if (optopt > 0 && optopt < FIRST_OPTION && strncmp(text, "--", 2) != 0) {
    return ist__cmd_usage(cmd, "unknown option '-%c'", optopt);
  }
  if (optopt > FIRST_OPTION) {
    return ist__cmd_usage(cmd, "option '%s' takes no argument", text);
  }
  return ist__cmd_usage(cmd, "unknown option '%s'", text);
}

// Reads what follows the verb. Returns -1, or an exit code.
static int parse_verb(ist__cmd *cmd, int argc, char **argv) {
  grammar g;
  grammar_of((int)(cmd->verb - ist__verbs), &g);
  bool output_follows = false;
  optind = 0;  // glibc: start anew
  opterr = 0;
  int found = 0;
  while ((found = getopt_long(argc, argv, g.letters, g.longs, NULL)) != -1) {
    if (found == ':' || found == '?') return misread(cmd, found, argv);
    if (found == 1) {  // an operand
      add(output_follows ? &cmd->outputs : &cmd->operands, optarg);
      continue;
    }
    int option = option_number(found);
    output_follows = option == OPTION_OUTPUT;
    int exit_code = take(cmd, option, optarg);
    if (exit_code >= 0) return exit_code;
  }
  while (optind < argc) add(&cmd->operands, argv[optind++]);
  return -1;
}

// Room for every word of the command line in every list.
static ist_code make_room(ist__cmd *cmd, int argc, ist_error *err) {
  size_t count = (size_t)argc + 1;
  const char **words = ist_allocate(cmd->context, 4 * count * sizeof *words,
                                    _Alignof(const char *));
  cmd->opened_room = count;
  cmd->opened = ist_allocate(cmd->context, count * sizeof *cmd->opened,
                             _Alignof(ist__opened));
  cmd->options = ist_allocate(cmd->context, count * sizeof *cmd->options,
                              _Alignof(ist_option));
  cmd->operands.at = words;
  if (words == NULL || cmd->opened == NULL || cmd->options == NULL) {
    return ist_error_set(err, IST_ERR_NO_ALLOCATION,
                         "memory for the command line was not to be had: the "
                         "allocator gave none; needs %zu bytes",
                         count * sizeof *cmd->opened);
  }
  cmd->outputs.at = words + count;
  cmd->plugins.at = words + 2 * count;
  cmd->vias.at = words + 3 * count;
  return IST_OK;
}

// Names the verb. Returns -1, or an exit code.
static int find_verb(ist__cmd *cmd, const char *name) {
  for (int i = 0; i < IST__VERB_COUNT; i++) {
    if (strcmp(name, ist__verbs[i].name) == 0) {
      cmd->verb = &ist__verbs[i];
      return -1;
    }
  }
  for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
    if (strcmp(name, later[i]) != 0) continue;
    ist_error err = {0};
    (void)ist_error_set(&err, IST_ERR_NOT_IN_VERSION,
                        "not in this version: %s; needs one later than %s",
                        name, ist_version());
    return ist__cmd_fail(cmd, &err);
  }
  if (name[0] == '-' && name[1] != '\0') {
    return ist__cmd_usage(cmd, "unknown option '%s'", name);
  }
  return ist__cmd_usage(cmd, "there is no verb '%s'", name);
}

int ist__cmd_parse(ist__cmd *cmd, int argc, char **argv) {
  ist_error err = {0};
  if (make_room(cmd, argc, &err) != IST_OK) return ist__cmd_fail(cmd, &err);
  int at = 1;
  // --json may stand before the verb.
  while (at < argc &&
         (strcmp(argv[at], "--json") == 0 || strcmp(argv[at], "-j") == 0)) {
    cmd->json = true;
    at++;
  }
  if (at >= argc) return ist__cmd_usage(cmd, "no verb is given");
  const char *first = argv[at];
  if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 ||
      strcmp(first, "help") == 0) {
    int exit_code = at + 1 < argc ? find_verb(cmd, argv[at + 1]) : -1;
    if (exit_code < 0) ist__cmd_help(cmd->verb, stdout);
    return exit_code < 0 ? IST__EXIT_OK : exit_code;
  }
  if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
    printf("isthmus %s\n", ist_version());
    return IST__EXIT_OK;
  }
  int exit_code = find_verb(cmd, first);
  if (exit_code >= 0) return exit_code;
  return parse_verb(cmd, argc - at, argv + at);
}
