// SPDX-License-Identifier: Apache-2.0
// output.c: write beside, sync, rename.

// realpath and PATH_MAX are of X/Open.
#define _XOPEN_SOURCE 700

#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/errno_text.h"
#include "base/error.h"
#include "io/label.h"

// Room for the name that a file has while it is written.
#define TEMPORARY_ROOM 64
// One write call moves less than 2 GiB on Linux (write(2)).
#define LARGEST_WRITE ((uint64_t)1 << 30)

// What umask(2) takes its part from, and what a replaced file hands down.
#define ANYBODYS 0666
#define PERMISSIONS 0777

static ist_code failed(const char *path, int reason, bool opening,
                       ist_error *err) {
  bool full = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
  bool machine =
      reason == EIO || reason == ENOMEM || reason == EMFILE || reason == ENFILE;
  if (full) {
    return ist__error_native(err, IST_ERR_DISK_FULL, reason,
                             "%s could not be written: no space is left: %s; "
                             "needs room on the disk",
                             ist__label_make(path).text,
                             ist__errno_text_make(reason).text);
  }
  if (reason == EFAULT) {
    // The bytes to write are a map that has lost its pages.
    return ist__error_native(err, IST_ERR_FILE_TRUNCATED, reason,
                             "%s could not be written: a mapped file that it "
                             "is written from was cut short meanwhile; needs "
                             "files that keep their size",
                             ist__label_make(path).text);
  }
  if (opening && !machine) {
    return ist__error_native(err, IST_ERR_OUTPUT, reason,
                             "cannot write %s: it is in no folder that can be "
                             "written (%s); needs the name of a file",
                             ist__label_make(path).text,
                             ist__errno_text_make(reason).text);
  }
  return ist__error_native(err, IST_ERR_IO, reason,
                           "%s could not be read or written: %s; needs a disk "
                           "that can be written",
                           ist__label_make(path).text,
                           ist__errno_text_make(reason).text);
}

static ist_code refused(const char *path, const char *what, ist_error *err) {
  return ist_error_set(err, IST_ERR_OUTPUT,
                       "cannot write %s: it is %s; needs the name of a file",
                       ist__label_make(path).text, what);
}

// A rename over a device or a pipe would put a file in its place.
static ist_code check_target(const char *path, ist__output *output,
                             ist_error *err) {
  struct stat facts;
  size_t length = strlen(path);
  if (length == 0 || path[length - 1] == '/') {
    return refused(path, length == 0 ? "no name" : "a folder", err);
  }
  if (stat(path, &facts) == 0) {
    output->replaces = true;
    output->mode = facts.st_mode & PERMISSIONS;
    if (S_ISREG(facts.st_mode)) return IST_OK;
    return refused(
        path, S_ISDIR(facts.st_mode) ? "a folder" : "no regular file", err);
  }
  if (errno == ENOENT) {
    if (lstat(path, &facts) != 0) return IST_OK;
    return refused(path, "a symbolic link to nothing", err);
  }
  return failed(path, errno, true, err);
}

static char *copy_text(const ist__env *env, const char *text, size_t extra) {
  size_t length = strlen(text);
  char *copy = ist__alloc(env, length + extra + 1, 1);
  if (copy != NULL) memcpy(copy, text, length + 1);
  return copy;
}

// Where the file really goes: the target of a link, so that the link stays.
static ist_code find_target(ist__output *output, const char *path,
                            ist_error *err) {
  ist_code code = check_target(path, output, err);
  if (code != IST_OK) return code;
  char real[PATH_MAX];
  if (output->replaces) {
    if (realpath(path, real) == NULL) return failed(path, errno, true, err);
    path = real;
  }
  output->target = copy_text(output->env, path, 0);
  output->temporary = copy_text(output->env, path, TEMPORARY_ROOM);
  if (output->target == NULL || output->temporary == NULL) {
    return ist__error_memory(err, "the name of a file", strlen(path) + 1);
  }
  return IST_OK;
}

// The new file is never open to more people than the one that it replaces,
// not even while it is written. Where a file system refuses the change of
// mode, the file stays its owner's alone.
static ist_code create(ist__output *output, ist_error *err) {
  char *name = strrchr(output->temporary, '/');
  name = name == NULL ? output->temporary : name + 1;
  int reason = EEXIST;
  mode_t mode = output->replaces ? S_IRUSR | S_IWUSR : ANYBODYS;
  for (int i = 0; i < 10000 && reason == EEXIST; i++) {
    snprintf(name, TEMPORARY_ROOM, ".isthmus-%ld-%d.part", (long)getpid(), i);
    output->fd = open(output->temporary,
                      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, mode);
    if (output->fd >= 0) {
      if (output->replaces) (void)fchmod(output->fd, output->mode);
      return IST_OK;
    }
    reason = errno;
  }
  return failed(output->target, reason, true, err);
}

static void forget(ist__output *output) {
  if (output->env == NULL) return;
  ist__free(output->env, output->target);
  ist__free(output->env, output->temporary);
  *output = (ist__output){.fd = -1};
}

ist_code ist__output_open(const ist__env *env, const char *path,
                          ist__output *out, ist_error *err) {
  *out = (ist__output){.env = env, .fd = -1};
  ist_code code = find_target(out, path, err);
  if (code == IST_OK) code = create(out, err);
  if (code != IST_OK) forget(out);
  return code;
}

ist_code ist__output_write(ist__output *output, const void *bytes,
                           uint64_t size, ist_error *err) {
  const char *at = bytes;
  while (size > 0) {
    size_t part = (size_t)(size < LARGEST_WRITE ? size : LARGEST_WRITE);
    ssize_t done = write(output->fd, at, part);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      return failed(output->target, done < 0 ? errno : EIO, false, err);
    }
    at += done;
    size -= (uint64_t)done;
  }
  return IST_OK;
}

// After a crash of the machine the new name should be there too; file systems
// that cannot sync a folder do without.
static void sync_folder(const ist__output *output) {
  char *slash = strrchr(output->temporary, '/');
  if (slash != NULL) slash[slash == output->temporary ? 1 : 0] = '\0';
  int fd = open(slash == NULL ? "." : output->temporary,
                O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fsync(fd);
  close(fd);
}

ist_code ist__output_commit(ist__output *output, ist_error *err) {
  int reason = 0;
  // EINVAL: a file system that has nothing to sync.
  if (fsync(output->fd) != 0 && errno != EINVAL) reason = errno;
  if (close(output->fd) != 0 && reason == 0 && errno != EINTR) reason = errno;
  output->fd = -1;
  if (reason == 0 && rename(output->temporary, output->target) != 0) {
    reason = errno;
  }
  if (reason != 0) {
    ist_code code = failed(output->target, reason, false, err);
    ist__output_discard(output);
    return code;
  }
  sync_folder(output);
  forget(output);
  return IST_OK;
}

void ist__output_discard(ist__output *output) {
  if (output->env == NULL) return;
  if (output->fd >= 0) close(output->fd);
  (void)unlink(output->temporary);
  forget(output);
}
