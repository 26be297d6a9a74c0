// SPDX-License-Identifier: Apache-2.0
// verdict.c: the list of verdicts of a context.

#define _POSIX_C_SOURCE 200809L  // st_mtim
#include "backend/pjrt/verdict.h"

#include <string.h>
#include <unistd.h>

#include "backend/pjrt/capability.h"
#include "backend/pjrt/child.h"
#include "backend/pjrt/child_wire.h"
#include "base/alloc.h"
#include "base/error.h"

extern char **environ;

enum {
  GRACE_MS = 10 * 1000
};

typedef struct verdict_key {
  dev_t device;
  ino_t inode;
  off_t size;
  struct timespec mtime;
  uint64_t surroundings;  // options and environment, hashed
  int32_t report;         // its device; -1: of opening
} verdict_key;

struct ist__origin {
  ist__plugin_file file;
  size_t request_size;
  char *request;  // both in the same allocation
  char *path;     // as the caller had it
};

typedef struct ist__verdict {
  struct ist__verdict *next;
  verdict_key key;
  bool done;                  // false: a child is at work
  bool held;                  // stays when nobody waits for it
  uint32_t users;             // openers that wait, or read it
  ist_error err;              // IST_OK: it may be opened
  size_t path_at, path_size;  // where err has the first opener's path, or 0, 0
  ist__pjrt_losses losses;    // of a report
} ist__verdict;

ist_code ist__verdicts_open(ist__verdicts *verdicts, const ist__env *env,
                            const ist_context_options *options,
                            ist_error *err) {
  pthread_mutex_init(&verdicts->lock, NULL);
  pthread_cond_init(&verdicts->changed, NULL);
  if (options->probe_deadline_ms < 0) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a context could not be made: probe_deadline_ms is "
                         "%d; needs 0 or more",
                         (int)options->probe_deadline_ms);
  }
  verdicts->grace_ms = GRACE_MS;
  verdicts->deadline_ms = options->probe_deadline_ms;
  if (options->probe_program != NULL) {
    size_t size = strlen(options->probe_program) + 1;
    verdicts->program = ist__alloc(env, size, 1);
    if (verdicts->program == NULL) {
      return ist__error_memory(err, "the path of isthmus-probe", size);
    }
    memcpy(verdicts->program, options->probe_program, size);
  }
  return IST_OK;
}

static void free_all(const ist__env *env, ist__verdict *gone) {
  while (gone != NULL) {
    ist__verdict *next = gone->next;
    ist__free(env, gone);
    gone = next;
  }
}

void ist__verdicts_close(ist__verdicts *verdicts, const ist__env *env) {
  free_all(env, verdicts->first);
  ist__free(env, verdicts->program);
  pthread_cond_destroy(&verdicts->changed);
  pthread_mutex_destroy(&verdicts->lock);
}

// FNV-1a, 64 bits.
static uint64_t hash(uint64_t from, const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    from = (from ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
  }
  return from;
}

static verdict_key key_of(const ist__child *child) {
  const struct stat *facts = &child->file->facts;
  verdict_key key = {.device = facts->st_dev,
                     .inode = facts->st_ino,
                     .size = facts->st_size,
                     .mtime = facts->st_mtim,
                     .report = child->report};
  uint64_t sum = UINT64_C(14695981039346656037);
  sum = hash(sum, child->request, child->request_size);
  for (char **at = environ; at != NULL && *at != NULL; at++) {
    sum = hash(sum, *at, strlen(*at) + 1);
  }
  key.surroundings = sum;
  return key;
}

static bool is_same(const verdict_key *a, const verdict_key *b) {
  return a->device == b->device && a->inode == b->inode && a->size == b->size &&
         a->mtime.tv_sec == b->mtime.tv_sec &&
         a->mtime.tv_nsec == b->mtime.tv_nsec &&
         a->surroundings == b->surroundings && a->report == b->report;
}

// ---- under the lock

static ist__verdict *find(const ist__verdicts *verdicts,
                          const verdict_key *key) {
  for (ist__verdict *v = verdicts->first; v != NULL; v = v->next) {
    if (is_same(&v->key, key) && (!v->done || v->held)) return v;
  }
  return NULL;
}

// Takes a verdict out of the list; it goes into another one, *gone, since the
// user's allocator is never called under the lock.
static void forget(ist__verdicts *verdicts, ist__verdict *old,
                   ist__verdict **gone) {
  ist__verdict **at = &verdicts->first;
  while (*at != old) at = &(*at)->next;
  *at = old->next;
  verdicts->count--;
  old->next = *gone;
  *gone = old;
}

// Those in use stay: there are no more of them than openers.
static void make_room(ist__verdicts *verdicts, ist__verdict **gone) {
  ist__verdict *oldest = NULL;
  if (verdicts->count < IST__MOST_VERDICTS) return;
  for (ist__verdict *v = verdicts->first; v != NULL; v = v->next) {
    if (v->users == 0) oldest = v;
  }
  if (oldest != NULL) forget(verdicts, oldest, gone);
}

static void add(ist__verdicts *verdicts, ist__verdict *made,
                ist__verdict **gone) {
  make_room(verdicts, gone);
  made->next = verdicts->first;
  verdicts->first = made;
  verdicts->count++;
}

// Lets go of a verdict that is done.
static void leave(ist__verdicts *verdicts, ist__verdict *verdict,
                  ist__verdict **gone) {
  if (--verdict->users == 0 && !verdict->held) forget(verdicts, verdict, gone);
}

// ---- asking

// What came of it, with the plugin called as this opener calls it.
static ist_code pass_on(const ist__verdict *verdict, const char *path,
                        ist_error *err) {
  const ist_error *cause = &verdict->err;
  if (cause->code == IST_OK) return IST_OK;
  size_t at = verdict->path_at, size = verdict->path_size;
  return ist__error_native(err, cause->code, cause->native, "%.*s%s%s", (int)at,
                           cause->message, size > 0 ? path : "",
                           cause->message + at + size);
}

// Makes the child and tells all who wait what came of it.
static void settle(ist__verdicts *verdicts, const ist__env *env,
                   const ist__child *child, ist__verdict *verdict) {
  bool held = false;
  ist_error cause = {0};
  ist__pjrt_losses losses = {0};
  (void)ist__child_try(env, child, &losses, &held, &cause);
  // It may be another file that was tried: then it is of neither.
  ist__plugin_file now;
  held = held && ist__plugin_find(child->file->path, &now, NULL) == IST_OK &&
         ist__plugin_is_same(child->file, &now);
  pthread_mutex_lock(&verdicts->lock);
  verdict->losses = losses;
  verdict->err = cause;
  const char *path = strstr(cause.message, child->path);
  if (path != NULL) {
    verdict->path_at = (size_t)(path - cause.message);
    verdict->path_size = strlen(child->path);
  }
  verdict->held = held;
  verdict->done = true;
  pthread_cond_broadcast(&verdicts->changed);
  pthread_mutex_unlock(&verdicts->lock);
}

static ist_code ask(ist__verdicts *verdicts, const ist__env *env,
                    const ist__child *child, ist__pjrt_losses *losses,
                    ist_error *err) {
  verdict_key key = key_of(child);
  ist__verdict *made = ist__alloc_zero(env, sizeof *made), *gone = NULL;
  if (made == NULL) {
    return ist__error_memory(err, "a plugin's verdict", sizeof *made);
  }
  made->key = key;
  pthread_mutex_lock(&verdicts->lock);
  ist__verdict *verdict = find(verdicts, &key);
  bool mine = verdict == NULL;
  if (mine) {
    verdict = made;
    add(verdicts, made, &gone);
  }
  verdict->users++;
  pthread_mutex_unlock(&verdicts->lock);
  if (!mine) ist__free(env, made);
  if (mine) settle(verdicts, env, child, verdict);
  pthread_mutex_lock(&verdicts->lock);
  while (!verdict->done) {
    pthread_cond_wait(&verdicts->changed, &verdicts->lock);
  }
  const ist__verdict found = *verdict;
  leave(verdicts, verdict, &gone);
  pthread_mutex_unlock(&verdicts->lock);
  free_all(env, gone);
  *losses = found.losses;
  return pass_on(&found, child->path, err);
}

// What is wrong with an option is said without a child.
static ist_code check_options(const ist__env *env,
                              const ist_backend_options *options,
                              ist_error *err) {
  ist__pjrt pjrt = {.env = env};
  ist_code code = IST_OK;
  ist__plugin_file_name(options->path, pjrt.name, sizeof pjrt.name);
  for (size_t i = 0; i < options->option_count && code == IST_OK; i++) {
    code = ist__plugin_check_option(&pjrt, &options->options[i], err);
  }
  return code;
}

// Everything that names the plugin and its client once more.
static ist_code make_origin(const ist__env *env,
                            const ist_backend_options *options,
                            const ist__plugin_file *file, ist__origin **out,
                            ist_error *err) {
  ist__text text = ist__text_make(NULL, 0);
  ist__child_request(options->options, options->option_count, &text);
  size_t path_size = strlen(options->path) + 1;
  size_t size = sizeof(ist__origin) + text.length + 1 + path_size;
  ist__origin *origin = ist__alloc_zero(env, size);
  if (origin == NULL) {
    return ist__error_memory(err, "a request to isthmus-probe", size);
  }
  *origin = (ist__origin){.file = *file, .request_size = text.length};
  origin->request = (char *)(origin + 1);
  origin->path = origin->request + text.length + 1;
  text = ist__text_make(origin->request, text.length + 1);
  ist__child_request(options->options, options->option_count, &text);
  memcpy(origin->path, options->path, path_size);
  *out = origin;
  return IST_OK;
}

const ist__plugin_file *ist__origin_file(const ist__origin *origin) {
  return origin != NULL ? &origin->file : NULL;
}

void ist__origin_free(const ist__env *env, ist__origin *origin) {
  ist__free(env, origin);
}

static ist__child child_of(const ist__verdicts *verdicts,
                           const ist__origin *origin, int32_t report) {
  return (ist__child){.program = verdicts->program,
                      .deadline_ms = verdicts->deadline_ms,
                      .grace_ms = verdicts->grace_ms,
                      .report = report,
                      .path = origin->path,
                      .file = &origin->file,
                      .request = origin->request,
                      .request_size = origin->request_size};
}

ist_code ist__verdict_ask(ist__verdicts *verdicts, const ist__env *env,
                          const ist_backend_options *options, ist__origin **out,
                          ist_error *err) {
  ist__plugin_file file;
  ist__origin *origin = NULL;
  ist__pjrt_losses none = {0};
  *out = NULL;
  ist_code code = ist__plugin_find(options->path, &file, err);
  if (code == IST_OK) code = check_options(env, options, err);
  if (code == IST_OK) code = make_origin(env, options, &file, &origin, err);
  if (code != IST_OK) return code;
  ist__child child = child_of(verdicts, origin, -1);
  code = ask(verdicts, env, &child, &none, err);
  if (code == IST_OK && options->reports) {
    // What comes of it is held, and is told to who asks for the report.
    child.report = 0;
    (void)ask(verdicts, env, &child, &none, NULL);
  }
  if (code == IST_OK) {
    *out = origin;
  } else {
    ist__origin_free(env, origin);
  }
  return code;
}

// The one that is loaded, not what its name stands for by now.
static ist_code check_file(const ist__origin *origin, ist_error *err) {
  ist__plugin_file now;
  ist_code code = ist__plugin_find(origin->file.path, &now, err);
  if (code != IST_OK) return code;
  if (ist__plugin_is_same(&origin->file, &now)) return IST_OK;
  return ist_error_set(err, IST_ERR_PLUGIN_LOAD,
                       "plugin %s cannot be opened: for a report, since its "
                       "file has changed after it was opened; needs a path to "
                       "a PJRT plugin that stays as it is",
                       origin->path);
}

ist_code ist__verdict_report(ist__verdicts *verdicts, const ist__env *env,
                             const ist__origin *origin, size_t device,
                             ist__pjrt_losses *out, ist_error *err) {
  *out = (ist__pjrt_losses){0};
  ist_code code = check_file(origin, err);
  if (code != IST_OK) return code;
  ist__child child = child_of(verdicts, origin, (int32_t)device);
  return ask(verdicts, env, &child, out, err);
}
