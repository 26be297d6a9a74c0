// SPDX-License-Identifier: Apache-2.0
// map.c: POSIX maps.

#define _POSIX_C_SOURCE 200809L

#include "io/map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errno_text.h"
#include "io/label.h"

// Past what errno says: what a thing that is no file is.
static const char *kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

static ist_code open_file(const char *path, int *out, ist_error *err) {
  // Not blocked by a pipe without a writer; without meaning for files.
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    int reason = errno;
    return ist__error_native(err, IST_ERR_FILE_OPEN, reason,
                             "cannot open %s: %s; needs a file that can be "
                             "read",
                             ist__label_make(path).text,
                             ist__errno_text_make(reason).text);
  }
  *out = fd;
  return IST_OK;
}

static ist_code file_size(int fd, const char *path, size_t *out,
                          ist_error *err) {
  struct stat facts;
  ist__label name = ist__label_make(path);
  if (fstat(fd, &facts) != 0) {
    int reason = errno;
    return ist__error_native(err, IST_ERR_IO, reason,
                             "%s could not be read or written: %s; needs a "
                             "file that can be looked at",
                             name.text, ist__errno_text_make(reason).text);
  }
  if (!S_ISREG(facts.st_mode)) {
    return ist_error_set(
        err, IST_ERR_FILE_OPEN,
        "cannot open %s: it is %s; needs a file that can be read", name.text,
        kind_of(facts.st_mode));
  }
  if (facts.st_size <= 0) {
    return ist_error_set(err, IST_ERR_FILE_TRUNCATED,
                         "cannot read %s: the file ends after 0 bytes; needs "
                         "the header of .npy or .safetensors",
                         name.text);
  }
  *out = (size_t)facts.st_size;
  return IST_OK;
}

ist_code ist__map_open(const char *path, ist__map *out, ist_error *err) {
  *out = (ist__map){0};
  int fd = -1;
  size_t size = 0;
  ist_code code = open_file(path, &fd, err);
  if (code != IST_OK) return code;
  code = file_size(fd, path, &size, err);
  if (code == IST_OK) {
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    int reason = errno;
    if (bytes != MAP_FAILED) {
      *out = (ist__map){bytes, size};
    } else {
      code = ist__error_native(
          err, reason == ENOMEM ? IST_ERR_NO_ALLOCATION : IST_ERR_IO, reason,
          "%s could not be read or written: it was not to be mapped (%s); "
          "needs %zu bytes of addresses",
          ist__label_make(path).text, ist__errno_text_make(reason).text, size);
    }
  }
  close(fd);
  return code;
}

void ist__map_close(ist__map *map) {
  if (map->bytes != NULL) munmap((void *)map->bytes, map->size);
  *map = (ist__map){0};
}
