// SPDX-License-Identifier: Apache-2.0
// crashing.c: a plugin that ends its process, or otherwise misbehaves, where
// the environment says: CRASHING_PJRT="HOW WHERE;HOW WHERE". WHERE is load,
// GetPjrtApi or a slot ("PJRT_Client_Create"); all else is as in the lying
// plugin, which ISTHMUS_LYING_PJRT names. HOW:
//   abort segv exit0 exit3 hang   ends the process, or never ends
//   words     says last words among a trace, and aborts
//   garbage   writes what looks like a verdict to standard output, and aborts
//   flood     says 2 MiB of text, and aborts
//   grow      takes memory until there is none, and aborts
//   linger    leaves a process behind that holds what it inherits, and goes on
//   orphan    the same, and aborts
//   forges    writes a verdict to every low descriptor, and aborts
//   closes    closes every descriptor that is not its own, and goes on
//   inherits  says what it has inherited, and aborts

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/pjrt/abi.h"

#define CRASHING_EXPORT __attribute__((visibility("default")))

static void say(const char *text) {
  if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(9);
}

static void leave_a_process(void) {
  if (fork() != 0) return;
  for (;;) pause();
}

// The descriptor that the test leaves open, standard input and the signals.
static void say_inherited(void) {
  char byte, text[160];
  struct sigaction action;
  sigset_t mask;
  sigaction(SIGTERM, NULL, &action);
  sigprocmask(SIG_BLOCK, NULL, &mask);
  (void)snprintf(text, sizeof text,
                 "descriptor %s, input %s, signal %s, mask %s\n",
                 fcntl(777, F_GETFD) < 0 ? "closed" : "open",
                 read(STDIN_FILENO, &byte, 1) == 0 ? "empty" : "there",
                 action.sa_handler == SIG_DFL ? "default" : "set",
                 sigismember(&mask, SIGUSR1) ? "set" : "empty");
  say(text);
  abort();
}

static void take_all_memory(void) {
  enum {
    STEP = 16 << 20
  };
  char *more = NULL;
  while ((more = malloc(STEP)) != NULL) memset(more, 1, STEP);
  say("no memory is left\n");
  abort();
}

static void each_descriptor(bool forge) {
  for (int fd = 3; fd < 1024; fd++) {
    ssize_t done = forge ? write(fd, "passed\n", 7) : close(fd);
    (void)done;
  }
}

static void misbehave(const char *how) {
  if (strcmp(how, "forges") == 0) each_descriptor(true);
  if (strcmp(how, "closes") == 0) {
    each_descriptor(false);
    return;
  }
  if (strcmp(how, "segv") == 0) raise(SIGSEGV);
  if (strcmp(how, "exit0") == 0) exit(0);
  if (strcmp(how, "exit3") == 0) exit(3);
  if (strcmp(how, "grow") == 0) take_all_memory();
  if (strcmp(how, "inherits") == 0) say_inherited();
  while (strcmp(how, "hang") == 0) pause();
  if (strcmp(how, "linger") == 0 || strcmp(how, "orphan") == 0) {
    leave_a_process();
    if (strcmp(how, "linger") == 0) return;
  }
  if (strcmp(how, "words") == 0) {
    say("starting\nF0101 client.cc:7] Check failed: device \033[1mpresent\n"
        "*** Check failure stack trace: ***\n    @     0x7f00  Fatal()\n\n");
  }
  if (strcmp(how, "garbage") == 0) {
    printf("\npassed\nisthmus-probe 2\npassed\nended exit 0\n");
    fflush(stdout);
  }
  for (int i = 0; strcmp(how, "flood") == 0 && i < 1 << 15; i++) {
    say("a line of some sixty bytes, said over and over again, no end..\n");
  }
  abort();
}

static const char *how_at(const char *where) {
  const char *rule = getenv("CRASHING_PJRT");
  size_t length = strlen(where);
  static char how[32];
  while (rule != NULL && *rule != '\0') {
    size_t first = strcspn(rule, " ;"), size = strcspn(rule, ";");
    if (rule[first] == ' ' && size - first - 1 == length &&
        strncmp(rule + first + 1, where, length) == 0) {
      (void)snprintf(how, sizeof how, "%.*s", (int)first, rule);
      return how;
    }
    rule += size + (rule[size] == ';' ? 1 : 0);
  }
  return NULL;
}

__attribute__((constructor)) static void when_loaded(void) {
  const char *how = how_at("load");
  if (how != NULL) misbehave(how);
}

static PJRT_Api table;
static ist_pjrt_fn before[IST_SLOT_COUNT];

#define SLOT(name, minor)                    \
  static PJRT_Error *at_##name(void *args) { \
    const char *how = how_at("PJRT_" #name); \
    if (how != NULL) misbehave(how);         \
    return before[IST_SLOT_##name](args);    \
  }
#include "backend/pjrt/slots.def"
#undef SLOT

static const ist_pjrt_fn misbehaving[IST_SLOT_COUNT] = {
#define SLOT(name, minor) at_##name,
#include "backend/pjrt/slots.def"
#undef SLOT
};

CRASHING_EXPORT const PJRT_Api *GetPjrtApi(void) {
  typedef const PJRT_Api *(*get_api)(void);
  static const char *const names[IST_SLOT_COUNT] = {
#define SLOT(name, minor) "PJRT_" #name,
#include "backend/pjrt/slots.def"
#undef SLOT
  };
  const char *how = how_at("GetPjrtApi");
  if (how != NULL) misbehave(how);
  void *lying = dlopen(getenv("ISTHMUS_LYING_PJRT"), RTLD_NOW | RTLD_LOCAL);
  void *symbol = lying != NULL ? dlsym(lying, "GetPjrtApi") : NULL;
  if (symbol == NULL) return NULL;
  get_api get;
  memcpy(&get, &symbol, sizeof get);
  table = *get();
  for (int i = 0; i < IST_SLOT_COUNT; i++) {
    if (how_at(names[i]) == NULL) continue;
    before[i] = table.slot[i];
    table.slot[i] = misbehaving[i];
  }
  return &table;
}
