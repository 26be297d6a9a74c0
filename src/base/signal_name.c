// SPDX-License-Identifier: Apache-2.0
// signal_name.c: the table of the signals that processes die of.

#define _POSIX_C_SOURCE 200809L
#include "base/signal_name.h"

#include <signal.h>
#include <stdio.h>

static const struct {
  int number;
  const char *name;
} signals[] = {
    {SIGABRT, "SIGABRT"}, {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},
    {SIGFPE, "SIGFPE"},   {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"},
    {SIGKILL, "SIGKILL"}, {SIGTERM, "SIGTERM"}, {SIGSYS, "SIGSYS"},
    {SIGPIPE, "SIGPIPE"},
};

ist__signal_name ist__signal_name_make(int32_t number) {
  ist__signal_name out;
  (void)snprintf(out.text, sizeof out.text, "signal %d", (int)number);
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
    if (signals[i].number != number) continue;
    (void)snprintf(out.text, sizeof out.text, "%s", signals[i].name);
  }
  return out;
}
