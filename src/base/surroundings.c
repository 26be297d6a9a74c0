// SPDX-License-Identifier: Apache-2.0
// surroundings.c: digests the environment.

#include "base/surroundings.h"

#include <stdbool.h>
#include <string.h>

extern char **environ;

// Names, and with a * at the end beginnings of them.
static const char *const silent[] = {
    "_",         "PWD",      "OLDPWD",    "SHLVL",    "COLUMNS", "LINES",
    "TERM*",     "SSH_*",    "DISPLAY",   "WINDOWID", "XDG_*",   "HISTFILE",
    "ISTHMUS_*", "PYTEST_*", "COLORTERM", "STY",      "TMUX*",
};

static bool is_silent(const char *variable) {
  size_t size = strcspn(variable, "=");
  for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
    size_t length = strlen(silent[i]);
    bool open = silent[i][length - 1] == '*';
    if (open ? strncmp(variable, silent[i], length - 1) == 0
             : size == length && strncmp(variable, silent[i], size) == 0) {
      return true;
    }
  }
  return false;
}

void ist__surroundings_digest(char out[static IST_DIGEST_TEXT]) {
  unsigned char sum[IST_DIGEST_SIZE] = {0};
  for (char **at = environ; at != NULL && *at != NULL; at++) {
    if (is_silent(*at)) continue;
    unsigned char one[IST_DIGEST_SIZE];
    ist__digest digest;
    ist__digest_begin(&digest);
    ist__digest_add(&digest, *at, strlen(*at));
    ist__digest_end(&digest, one);
    // A sum of numbers is the same in every order.
    unsigned carry = 0;
    for (int i = 0; i < IST_DIGEST_SIZE; i++) {
      carry += (unsigned)sum[i] + one[i];
      sum[i] = (unsigned char)carry;
      carry >>= 8;
    }
  }
  ist__digest_text(sum, out);
}
