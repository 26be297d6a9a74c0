// SPDX-License-Identifier: Apache-2.0
// safe_read.c: lets the kernel read an address: it answers EFAULT where the
// processor would send a signal.

#ifdef __linux__
#define _GNU_SOURCE  // process_vm_readv
#else
#define _POSIX_C_SOURCE 200809L
#endif
#include "base/safe_read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/uio.h>
#endif

// A pipe's room (at least 512 bytes, _POSIX_PIPE_BUF) takes all of it at once.
ist__safe_read_result ist__safe_read_by_pipe(const void *address, void *out,
                                             size_t size) {
  int ends[2];
  if (pipe(ends) != 0) return IST__SAFE_READ_NO_MEANS;
  // A child of this process that another thread makes just now may keep them;
  // then it keeps two ends of a pipe that nobody uses.
  (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  ist__safe_read_result result = IST__SAFE_READ_NO_MEANS;
  ssize_t n;
  do {
    n = write(ends[1], address, size);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EFAULT) {
    result = IST__SAFE_READ_NOT_MAPPED;
  } else if (n >= 0 && (size_t)n < size) {
    result = IST__SAFE_READ_NOT_MAPPED;  // it ends before all was read
  } else if (n >= 0) {
    do {
      n = read(ends[0], out, size);
    } while (n < 0 && errno == EINTR);
    if (n >= 0 && (size_t)n == size) result = IST__SAFE_READ_DONE;
  }
  close(ends[0]);
  close(ends[1]);
  return result;
}

ist__safe_read_result ist__safe_read(const void *address, void *out,
                                     size_t size) {
  if (address == NULL) return IST__SAFE_READ_NOT_MAPPED;
  if (size > IST__SAFE_READ_MOST) return IST__SAFE_READ_NO_MEANS;
#ifdef __linux__
  struct iovec to = {.iov_base = out, .iov_len = size};
  struct iovec from = {.iov_len = size};
  memcpy(&from.iov_base, &address, sizeof from.iov_base);  // it is only read
  ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
  if (n >= 0 && (size_t)n == size) return IST__SAFE_READ_DONE;
  // A sandbox may forbid the call, and an emulator may not have it.
  if (n >= 0 || errno == EFAULT) return IST__SAFE_READ_NOT_MAPPED;
#endif
  return ist__safe_read_by_pipe(address, out, size);
}
