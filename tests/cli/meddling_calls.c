// SPDX-License-Identifier: Apache-2.0
// meddling_calls.c: preloaded into the command: does at a known moment what
// another process would do at any: CUT=FILE cuts the file to nothing before the
// first write to a file, STOP=N sends the command signal N when an output is
// whole but not yet renamed.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

typedef ssize_t (*write_fn)(int fd, const void *bytes, size_t size);
typedef int (*fsync_fn)(int fd);

ssize_t write(int fd, const void *bytes, size_t size) {
  const char *victim = getenv("CUT");
  if (fd > 2 && victim != NULL) {
    if (truncate(victim, 0) != 0) abort();
    unsetenv("CUT");
  }
  return ((write_fn)dlsym(RTLD_NEXT, "write"))(fd, bytes, size);
}

int fsync(int fd) {
  const char *number = getenv("STOP");
  if (number != NULL) raise(atoi(number));
  return ((fsync_fn)dlsym(RTLD_NEXT, "fsync"))(fd);
}
