// SPDX-License-Identifier: Apache-2.0
// command_stream.c: the streams of the command: tensors on stdin and stdout,
// and whole files into memory.

#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

static ist_code io_error(ist_error *err, const char *what) {
  int number = errno;
  ist_code code = number == ENOSPC || number == EDQUOT || number == EFBIG
                      ? IST_ERR_DISK_FULL
                      : IST_ERR_IO;
  ist_code done = ist_error_set(
      err, code, "%s: %s; needs %s", what, strerror(number),
      code == IST_ERR_DISK_FULL ? "more room" : "a stream that works");
  if (err != NULL) err->native = number;
  return done;
}

// Copies all of one descriptor to another. Returns 0, or -1 with *reading
// telling which side failed.
static int pump(int from, int to, bool *reading) {
  char buffer[65536];
  for (;;) {
    *reading = true;
    ssize_t got = read(from, buffer, sizeof buffer);
    if (got == 0) return 0;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    *reading = false;
    for (ssize_t done = 0; done < got;) {
      ssize_t part = write(to, buffer + done, (size_t)(got - done));
      if (part < 0 && errno == EINTR) continue;
      if (part < 0) return -1;
      done += part;
    }
  }
}

// A name for a temporary file in a fresh folder that only we can enter:
// FOLDER/stream.npy. command_signal.c knows these names too.
typedef struct scratch {
  char folder[1024];
  char file[1024 + 16];
} scratch;

static ist_code scratch_make(scratch *s, ist_error *err) {
  const char *base = getenv("TMPDIR");
  if (base == NULL || base[0] == '\0') base = "/tmp";
  s->file[0] = '\0';
  int length =
      snprintf(s->folder, sizeof s->folder, "%s/isthmus-stdio-XXXXXX", base);
  if (length >= (int)sizeof s->folder || mkdtemp(s->folder) == NULL) {
    s->folder[0] = '\0';
    return io_error(err, "a temporary folder could not be made");
  }
  (void)snprintf(s->file, sizeof s->file, "%s/stream.npy", s->folder);
  return IST_OK;
}

static void scratch_remove(scratch *s) {
  if (s->file[0] != '\0') (void)unlink(s->file);
  if (s->folder[0] != '\0') (void)rmdir(s->folder);
}

void ist__error_rename(ist_error *err, const char *from, const char *to) {
  if (err == NULL) return;
  char *at = strstr(err->message, from);
  if (at == NULL) return;
  char rest[sizeof err->message];
  (void)snprintf(rest, sizeof rest, "%s", at + strlen(from));
  size_t room = sizeof err->message - (size_t)(at - err->message);
  (void)snprintf(at, room, "%s%s", to, rest);
}

// Standard input can be read once.
static ist_code take_stdin(ist__cmd *cmd, ist_error *err) {
  if (cmd->stdin_used) {
    return ist_error_set(err, IST_ERR_PLACE,
                         "- could not be read as a place: standard input is "
                         "named twice; needs it at most once");
  }
  cmd->stdin_used = true;
  return IST_OK;
}

ist_code ist__cmd_stdin_file(ist__cmd *cmd, const ist_file_options *options,
                             ist_file **out, ist_error *err) {
  *out = NULL;
  scratch s = {{0}, {0}};
  int fd = -1;
  ist_code code = IST_OK;
  bool reading = false;
  code = take_stdin(cmd, err);
  if (code != IST_OK) return code;
  code = scratch_make(&s, err);
  if (code != IST_OK) goto done;
  fd = open(s.file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    code = io_error(err, "a temporary file could not be made");
    goto done;
  }
  ist__cmd_progress(cmd, "reading standard input");
  if (pump(STDIN_FILENO, fd, &reading) != 0) {
    code = io_error(err, reading ? "standard input could not be read"
                                 : "a temporary file could not be written");
    goto done;
  }
  code = ist_file_open(cmd->context, s.file, options, out, err);
  if (code != IST_OK) ist__error_rename(err, s.file, "standard input");
done:
  ist__cmd_progress(cmd, NULL);
  if (fd >= 0) (void)close(fd);
  scratch_remove(&s);  // the map stays
  return code;
}

ist_code ist__cmd_stdout_save(ist__cmd *cmd, ist_tensor *tensor,
                              ist_error *err) {
  scratch s = {{0}, {0}};
  int fd = -1;
  bool reading = false;
  ist_options options = {.struct_size = sizeof options};
  ist__cmd_progress(cmd, "writing standard output");
  ist__cmd_watch(cmd, &options);
  ist_code code = scratch_make(&s, err);
  if (code != IST_OK) goto done;
  code = ist_file_save_with(s.file, NULL, &tensor, 1, &options, err);
  if (code != IST_OK) {
    ist__error_rename(err, s.file, "standard output");
    goto done;
  }
  fd = open(s.file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    code = io_error(err, "a temporary file could not be read");
    goto done;
  }
  if (pump(fd, STDOUT_FILENO, &reading) != 0) {
    code = io_error(err, reading ? "a temporary file could not be read"
                                 : "standard output could not be written");
  }
done:
  ist__cmd_progress(cmd, NULL);
  if (fd >= 0) (void)close(fd);
  scratch_remove(&s);
  return code;
}

static ist_code read_error(ist_error *err, const char *path) {
  int number = errno;
  ist_code code =
      ist_error_set(err, IST_ERR_FILE_OPEN,
                    "cannot open %s: %s; needs a file that can be read", path,
                    strerror(number));
  if (err != NULL) err->native = number;
  return code;
}

// Makes room for twice as many bytes. On failure the old ones stay.
static ist_code grow(ist__cmd *cmd, char **data, size_t used, size_t *room,
                     ist_error *err) {
  size_t wanted = *room == 0 ? 65536 : *room * 2;
  char *more = wanted > *room ? ist_allocate(cmd->context, wanted, 16) : NULL;
  if (more == NULL) {
    return ist_error_set(err, IST_ERR_NO_ALLOCATION,
                         "memory for a file was not to be had: the allocator "
                         "gave none; needs %zu bytes",
                         wanted);
  }
  if (used > 0) memcpy(more, *data, used);
  ist_deallocate(cmd->context, *data);
  *data = more;
  *room = wanted;
  return IST_OK;
}

ist_code ist__cmd_read(ist__cmd *cmd, const char *path, char **out,
                       size_t *out_size, ist_error *err) {
  *out = NULL;
  *out_size = 0;
  bool is_stdin = strcmp(path, "-") == 0;
  int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return read_error(err, path);
  ist_code code = is_stdin ? take_stdin(cmd, err) : IST_OK;
  if (code != IST_OK) return code;
  char *data = NULL;
  size_t size = 0;
  size_t room = 0;
  for (;;) {
    if (size + 1 >= room) code = grow(cmd, &data, size, &room, err);
    if (code != IST_OK) goto done;
    ssize_t got = read(fd, data + size, room - size - 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      code = read_error(err, is_stdin ? "standard input" : path);
      goto done;
    }
    if (got == 0) break;
    size += (size_t)got;
  }
  data[size] = '\0';
  *out = data;
  *out_size = size;
  data = NULL;
done:
  if (!is_stdin) (void)close(fd);
  ist_deallocate(cmd->context, data);
  return code;
}
