// SPDX-License-Identifier: Apache-2.0
// cache_folder.c: files are written under another name and renamed, so that a
// reader sees all of one or none; one process at a time removes old ones.

#define _DEFAULT_SOURCE  // flock

#include "io/cache_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/errno_text.h"
#include "io/label.h"

// What every name in the folder ends with, or begins with when it is a hidden
// one: the folder may be one that its owner keeps other things in.
#define MARK ".isthmus-cache"
#define LOCK MARK ".lock"
#define PART MARK ".part."  // of a file that is being written
#define LOAD MARK ".load."  // of a program that is being loaded

enum {
  HOUR = 3600,
  DAY = 24 * HOUR,
  LONG_UNUSED = 90 * DAY,
  NAME_ROOM = 256  // for the longest name of a file
};

static bool is_hidden(const char *name) {
  return strncmp(name, MARK ".", sizeof MARK) == 0;
}

static bool is_entry(const char *name) {
  size_t length = strlen(name);
  return name[0] != '.' && length > sizeof MARK - 1 &&
         strcmp(name + length - (sizeof MARK - 1), MARK) == 0;
}

// The name in the folder of what callers know as name.
static const char *marked(const char *name, char out[static NAME_ROOM]) {
  int length = name[0] == '.' ? snprintf(out, NAME_ROOM, MARK "%s", name)
                              : snprintf(out, NAME_ROOM, "%s" MARK, name);
  return length > 0 && length < NAME_ROOM ? out : "";
}

// ---- the folder

// Makes what is missing of a path. A folder that is there is not looked at.
static int make_path(const char *path) {
  char part[PATH_MAX];
  size_t length = strlen(path);
  if (length == 0 || length >= sizeof part) return ENAMETOOLONG;
  memcpy(part, path, length + 1);
  for (size_t i = 1; i <= length; i++) {
    if (part[i] != '/' && part[i] != '\0') continue;
    char kept = part[i];
    part[i] = '\0';
    if (mkdir(part, 0700) != 0 && errno != EEXIST) return errno;
    part[i] = kept;
  }
  return 0;
}

static ist_code cannot_use(const char *path, int reason, const char *why,
                           ist_error *err) {
  return ist__error_native(err, IST_ERR_OUTPUT, reason,
                           "the cache %s cannot be used: %s; needs a folder of "
                           "the user's own that nobody else may write to",
                           ist__label_make(path).text, why);
}

ist_code ist__cache_folder_open(const ist__env *env, const char *path,
                                bool make, uint64_t limit,
                                ist__cache_folder *out, ist_error *err) {
  *out = (ist__cache_folder){.env = env, .fd = -1, .limit = limit};
  int reason = make ? make_path(path) : 0;
  if (reason != 0) {
    return cannot_use(path, reason, ist__errno_text_make(reason).text, err);
  }
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    reason = errno;
    return cannot_use(path, reason, ist__errno_text_make(reason).text, err);
  }
  struct stat facts;
  const char *why = NULL;
  if (fstat(fd, &facts) != 0) {
    why = "it cannot be looked at";
  } else if (facts.st_uid != geteuid()) {
    why = "it belongs to another user";
  } else if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    why = "others may write to it";
  }
  if (why != NULL) {
    close(fd);
    return cannot_use(path, 0, why, err);
  }
  out->fd = fd;
  return IST_OK;
}

void ist__cache_folder_close(ist__cache_folder *folder) {
  if (folder->env != NULL && folder->fd >= 0) close(folder->fd);
  *folder = (ist__cache_folder){.fd = -1};
}

// ---- reading

static bool is_ours(const struct stat *facts) {
  return S_ISREG(facts->st_mode) && facts->st_uid == geteuid() &&
         (facts->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static void *read_all(const ist__env *env, int fd, size_t size) {
  char *bytes = ist__alloc(env, size, 64);
  size_t done = 0;
  while (bytes != NULL && done < size) {
    ssize_t got = read(fd, bytes + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      ist__free(env, bytes);
      return NULL;
    }
    done += (size_t)got;
  }
  return bytes;
}

void *ist__cache_folder_get(const ist__cache_folder *folder, const char *name,
                            size_t *out_size) {
  struct stat facts;
  char room[NAME_ROOM];
  void *bytes = NULL;
  *out_size = 0;
  int fd = openat(folder->fd, marked(name, room),
                  O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return NULL;
  if (fstat(fd, &facts) == 0 && is_ours(&facts) && facts.st_size > 0 &&
      (uint64_t)facts.st_size <= folder->limit) {
    bytes = read_all(folder->env, fd, (size_t)facts.st_size);
  }
  if (bytes != NULL) {
    *out_size = (size_t)facts.st_size;
    (void)futimens(fd, NULL);  // else it is removed a little too early
  }
  close(fd);
  return bytes;
}

// ---- removing what is old

typedef struct entry {
  struct timespec used;
  uint64_t size;
  char name[104];
} entry;

typedef struct listing {
  const ist__env *env;
  entry *entries;
  size_t count;
  size_t room;
  uint64_t bytes;
  uint64_t files;
} listing;

static void remember(listing *l, const char *name, const struct stat *facts) {
  l->files++;
  l->bytes += (uint64_t)facts->st_size;
  if (l->env == NULL || strlen(name) >= sizeof l->entries->name) return;
  if (l->count == l->room) {
    size_t room = l->room == 0 ? 64 : 2 * l->room;
    entry *more = ist__alloc(l->env, room * sizeof *more, 16);
    if (more == NULL) return;  // what is not listed is not removed
    if (l->count > 0) memcpy(more, l->entries, l->count * sizeof *more);
    ist__free(l->env, l->entries);
    l->entries = more;
    l->room = room;
  }
  entry *e = &l->entries[l->count++];
  e->used = facts->st_mtim;
  e->size = (uint64_t)facts->st_size;
  (void)snprintf(e->name, sizeof e->name, "%s", name);
}

// A part that nobody has finished for an hour is of a process that died. Loads
// that ended a process are tried again after a day.
static void sweep(int folder, const char *name, const struct stat *facts) {
  long age = LONG_UNUSED;
  if (strncmp(name, PART, sizeof PART - 1) == 0) age = HOUR;
  if (strncmp(name, LOAD, sizeof LOAD - 1) == 0) age = DAY;
  struct timespec now;
  if (strcmp(name, LOCK) != 0 && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
      now.tv_sec - facts->st_mtim.tv_sec > age) {
    (void)unlinkat(folder, name, 0);
  }
}

// Looks at every file of ours. With a listing's env they are also remembered,
// and old parts removed.
static void list(int folder, listing *l) {
  // A stream of its own, since it closes what it was given.
  int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
  if (dir == NULL) {
    if (fd >= 0) close(fd);
    return;
  }
  for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
    struct stat facts;
    if (fstatat(folder, d->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(facts.st_mode)) {
      continue;
    }
    if (is_entry(d->d_name)) {
      remember(l, d->d_name, &facts);
    } else if (l->env != NULL && is_hidden(d->d_name)) {
      sweep(folder, d->d_name, &facts);
    }
  }
  closedir(dir);
}

static int by_use(const void *a, const void *b) {
  const struct timespec *x = &((const entry *)a)->used;
  const struct timespec *y = &((const entry *)b)->used;
  if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
  if (x->tv_nsec != y->tv_nsec) return x->tv_nsec < y->tv_nsec ? -1 : 1;
  return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

// One process at a time; another that comes meanwhile leaves it to this one.
static void evict(const ist__cache_folder *folder) {
  int fd =
      openat(folder->fd, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fd < 0 || fcntl(fd, F_SETLK, &lock) != 0) {
    if (fd >= 0) close(fd);
    return;
  }
  listing l = {.env = folder->env};
  list(folder->fd, &l);
  if (l.bytes > folder->limit && l.count > 0) {
    qsort(l.entries, l.count, sizeof *l.entries, by_use);
  }
  for (size_t i = 0; i < l.count && l.bytes > folder->limit; i++) {
    if (unlinkat(folder->fd, l.entries[i].name, 0) == 0 || errno == ENOENT) {
      l.bytes -= l.entries[i].size;
    }
  }
  ist__free(folder->env, l.entries);
  close(fd);
}

// ---- writing

// A file under a name that no other thread or process has: their own places in
// memory differ, or their numbers, or the file is there already.
static int open_part(int folder, char *name, size_t size) {
  for (unsigned attempt = 0; attempt < 64; attempt++) {
    (void)snprintf(name, size, PART "%ld.%" PRIxPTR ".%u", (long)getpid(),
                   (uintptr_t)name, attempt);
    int fd = openat(folder, name,
                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

static bool write_all(int fd, const char *bytes, size_t size) {
  while (size > 0) {
    ssize_t done = write(fd, bytes, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done;
    size -= (size_t)done;
  }
  return true;
}

bool ist__cache_folder_put(const ist__cache_folder *folder, const char *name,
                           const void *bytes, size_t size) {
  char part[96], room[NAME_ROOM];
  if (size > folder->limit) {
    ist__log(folder->env, IST_LOG_INFO,
             "the cache takes %" PRIu64 " bytes, and a program has %zu",
             folder->limit, size);
    return false;
  }
  int fd = open_part(folder->fd, part, sizeof part);
  bool done = fd >= 0 && write_all(fd, bytes, size);
  if (fd >= 0) done = close(fd) == 0 && done;
  done =
      done && renameat(folder->fd, part, folder->fd, marked(name, room)) == 0;
  if (!done) {
    int reason = errno;
    if (fd >= 0) (void)unlinkat(folder->fd, part, 0);
    ist__log(folder->env, IST_LOG_WARNING,
             "a program was not put into the cache: %s",
             ist__errno_text_make(reason).text);
    return false;
  }
  evict(folder);
  return true;
}

void ist__cache_folder_remove(const ist__cache_folder *folder,
                              const char *name) {
  char room[NAME_ROOM];
  (void)unlinkat(folder->fd, marked(name, room), 0);
}

// ---- loading

// The lock goes with the process that has it, however it ends; the file stays.
bool ist__cache_folder_load_begin(const ist__cache_folder *folder,
                                  const char *who, int *out) {
  char name[NAME_ROOM];
  int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  *out = -1;
  (void)snprintf(name, sizeof name, LOAD "%s", who);
  int fd = openat(folder->fd, name, flags | O_CREAT | O_EXCL, 0600);
  if (fd >= 0) {
    (void)flock(fd, LOCK_SH | LOCK_NB);
    *out = fd;
    return true;
  }
  fd = errno == EEXIST ? openat(folder->fd, name, flags) : -1;
  if (fd < 0) return true;  // gone meanwhile, or no mark can be made here
  bool died = flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  return !died;
}

void ist__cache_folder_load_end(const ist__cache_folder *folder,
                                const char *who, int mark) {
  char name[NAME_ROOM];
  if (mark < 0) return;  // of another process or thread, which removes it
  (void)snprintf(name, sizeof name, LOAD "%s", who);
  (void)unlinkat(folder->fd, name, 0);
  close(mark);
}

void ist__cache_folder_measure(const ist__cache_folder *folder,
                               uint64_t *out_files, uint64_t *out_bytes) {
  listing l = {.env = NULL};
  list(folder->fd, &l);
  *out_files = l.files;
  *out_bytes = l.bytes;
}
