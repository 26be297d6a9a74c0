// SPDX-License-Identifier: Apache-2.0
// command_signal.c: what happens when the command is stopped in the middle: a
// mapped file that another process cut short (SIGBUS), Ctrl-C, a lost terminal.
// No half of an output file is left, and SIGBUS is told like other errors.

#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

enum {
  MAX_DESCRIPTOR = 256
};

static const char bus_message[] =
    "isthmus: a mapped file could not be read: another process cut it short "
    "meanwhile; needs files that keep their size "
    "[IST_ERR_FILE_TRUNCATED 211]\n";
_Static_assert(IST_ERR_FILE_TRUNCATED == 211, "bus_message names the number");

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), size = strlen(end);
  return length >= size && memcmp(text + length - size, end, size) == 0;
}

// Removes the file that a descriptor writes to when it is one of ours that is
// not done: src/io/output.c writes to .isthmus-PID-N.part, command_stream.c to
// isthmus-stdio-XXXXXX/stream.npy. A handler gets no closure and the command
// has no globals, so that the kernel is asked. Safe in a handler: only calls
// that POSIX lists as such (readlink, unlink, rmdir) and string.h.
static void remove_unfinished(int fd) {
  static const char digits[] = "0123456789";
  char link[32] = "/proc/self/fd/";
  char path[4096];
  size_t at = strlen(link);
  if (fd >= 100) link[at++] = digits[fd / 100];
  if (fd >= 10) link[at++] = digits[fd / 10 % 10];
  link[at++] = digits[fd % 10];
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0 || path[0] != '/') return;
  path[length] = '\0';
  char *name = strrchr(path, '/') + 1;
  bool part = strncmp(name, ".isthmus-", 9) == 0 && ends_with(name, ".part");
  bool stream = strcmp(name, "stream.npy") == 0;
  if (!part && !stream) return;
  char *folder = name - 1;
  *folder = '\0';
  const char *above = strrchr(path, '/');
  bool scratch = above != NULL && strncmp(above, "/isthmus-stdio-", 15) == 0;
  *folder = '/';
  if (part || scratch) (void)unlink(path);
  if (!scratch) return;
  *folder = '\0';
  (void)rmdir(path);
}

static void clean_up(void) {
  for (int fd = 3; fd < MAX_DESCRIPTOR; fd++) remove_unfinished(fd);
}

static void on_bus(int number) {
  (void)number;
  clean_up();
  ssize_t done = write(STDERR_FILENO, bus_message, sizeof bus_message - 1);
  (void)done;
  _exit(IST__EXIT_FAILED);
}

// Cleans up, and dies of the signal as if it had not been caught.
static void on_stop(int number) {
  clean_up();
  struct sigaction action = {0};
  action.sa_handler = SIG_DFL;
  (void)sigaction(number, &action, NULL);
  (void)raise(number);
}

// A descriptor that stands closed would become the next file opened, and what
// we print would go into it. These take its place and fail when used.
static void fill_descriptors(void) {
  static const int modes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (int fd = 0; fd <= 2; fd++) {
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
      // The lowest free number is fd: all below it are open.
      (void)!open("/dev/null", modes[fd]);
    }
  }
}

static void handle(int number, void (*handler)(int)) {
  struct sigaction action = {0};
  if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN) {
    return;  // nohup
  }
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  (void)sigaction(number, &action, NULL);
}

void ist__cmd_guard(void) {
  fill_descriptors();
  // Writes that fail are told by their results.
  (void)signal(SIGPIPE, SIG_IGN);
  (void)signal(SIGXFSZ, SIG_IGN);
  handle(SIGBUS, on_bus);
  handle(SIGINT, on_stop);
  handle(SIGTERM, on_stop);
  handle(SIGHUP, on_stop);
}
