// SPDX-License-Identifier: Apache-2.0
// compile_cache.c: looks for a program before it is compiled, and keeps it
// after.

#include "bridge/compile_cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/structs.h"
#include "base/surroundings.h"
#include "bridge/program_saved.h"
#include "io/cache_folder.h"

// Room for a folder's path, as in ist_cache_info.
#define PATH_ROOM 4096
// A key in hexadecimal, and ".exe".
#define NAME_ROOM (IST_DIGEST_TEXT + 8)

// ---- where

void ist__cache_default_folder(char *out, size_t size) {
  static const char *const names[][2] = {{"ISTHMUS_CACHE_DIR", ""},
                                         {"XDG_CACHE_HOME", "/isthmus"},
                                         {"HOME", "/.cache/isthmus"}};
  out[0] = '\0';
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *at = getenv(names[i][0]);
    // XDG: a path that is not absolute is not looked at.
    if (at == NULL || at[0] == '\0' || (i > 0 && at[0] != '/')) continue;
    if (strlen(at) + strlen(names[i][1]) >= size) continue;
    (void)snprintf(out, size, "%s%s", at, names[i][1]);
    return;
  }
}

bool ist__cache_enabled(void) {
  const char *wish = getenv("ISTHMUS_CACHE");
  return wish == NULL || strcmp(wish, "off") != 0;
}

const char *ist__cache_folder_of(const ist_program_options *options, char *room,
                                 size_t size) {
  if (options->cache != IST_CACHE_ON || !ist__cache_enabled()) return NULL;
  if (options->cache_folder != NULL) return options->cache_folder;
  ist__cache_default_folder(room, size);
  return room[0] != '\0' ? room : NULL;
}

// ---- what

static void add_text(ist__digest *digest, const char *text) {
  ist__digest_add_part(digest, text, strlen(text));
}

static void make_name(const ist__program_wish *wish,
                      const ist__program_home *home, const void *code,
                      size_t size, char out[static NAME_ROOM]) {
  int32_t counts[3] = {wish->replicas > 0 ? wish->replicas : 1,
                       wish->partitions > 0 ? wish->partitions : 1,
                       wish->options.portable ? 1 : 0};
  unsigned char bytes[IST_DIGEST_SIZE];
  ist__digest digest;
  ist__digest_begin(&digest);
  add_text(&digest, "isthmus " IST_VERSION_STRING);
  add_text(&digest, home->platform);
  add_text(&digest, home->version);
  add_text(&digest, home->file);
  add_text(&digest, home->kind);
  add_text(&digest, home->machine);
  // Flags change what comes of a program. A plugin may read them when it is
  // opened, and when it compiles.
  char surroundings[IST_DIGEST_TEXT];
  ist__surroundings_digest(surroundings);
  add_text(&digest, wish->device->backend->settings);
  add_text(&digest, surroundings);
  ist__digest_add_part(&digest, counts, sizeof counts);
  ist__digest_add_part(&digest, code, size);
  ist__digest_end(&digest, bytes);
  ist__digest_text(bytes, out);
  memcpy(out + IST_DIGEST_TEXT - 1, ".exe", 5);
}

// ---- looking and keeping

// The runtime whose code loads a program, as the name of a file.
static void name_loader(const ist__program_home *home,
                        char out[static IST_DIGEST_TEXT]) {
  unsigned char bytes[IST_DIGEST_SIZE];
  ist__digest digest;
  ist__digest_begin(&digest);
  add_text(&digest, home->platform);
  add_text(&digest, home->version);
  add_text(&digest, home->file);
  ist__digest_end(&digest, bytes);
  ist__digest_text(bytes, out);
}

// Nobody tries out loading in another process first: a plugin that ends the
// process by it does so once, and its programs are compiled from then on.
static ist_code load(const ist__program_wish *wish,
                     const ist__program_home *home,
                     const ist__cache_folder *folder, const void *bytes,
                     size_t size, ist_program **out, ist_error *err) {
  char loader[IST_DIGEST_TEXT];
  int mark = -1;
  name_loader(home, loader);
  if (!ist__cache_folder_load_begin(folder, loader, &mark)) {
    return ist_error_set(err, IST_ERR_PROGRAM,
                         "%s: a program could not be loaded: loading one has "
                         "ended a process within a day; needs a plugin that "
                         "loads what it saves",
                         wish->device->backend->facts.name);
  }
  ist_code code = ist__program_from_bytes(wish, home, bytes, size, out, err);
  ist__cache_folder_load_end(folder, loader, mark);
  return code;
}

// What is there and cannot be used is removed: it is in the way of what can.
static bool look_for(const ist__program_wish *wish,
                     const ist__program_home *home,
                     const ist__cache_folder *folder, const char *name,
                     ist_program **out) {
  const ist__env *env = ist__backend_env(wish->device->backend);
  size_t size = 0;
  void *bytes = ist__cache_folder_get(folder, name, &size);
  if (bytes == NULL) return false;
  ist_error cause;
  ist_code code = load(wish, home, folder, bytes, size, out, &cause);
  ist__free(env, bytes);
  if (code == IST_OK) {
    (*out)->from_cache = true;
    return true;
  }
  ist__log(env, IST_LOG_WARNING, "the cache's %s is not used: %s", name,
           cause.message);
  ist__cache_folder_remove(folder, name);
  return false;
}

static void keep(const ist_program *program, const ist__program_home *home,
                 const ist__cache_folder *folder, const char *name) {
  const ist__env *env = ist__program_env(program);
  char *bytes = NULL;
  size_t size = 0;
  ist_error cause;
  if (ist__program_to_bytes(program, home, &bytes, &size, &cause) == IST_OK) {
    ist__cache_folder_put(folder, name, bytes, size);
  } else {
    ist__log(env, IST_LOG_INFO, "a program is not kept: %s", cause.message);
  }
  ist__free(env, bytes);
}

// What does not begin with a - is the name of a file of flags.
static bool flags_are_in_a_file(void) {
  const char *flags = getenv("XLA_FLAGS");
  if (flags == NULL) return false;
  flags += strspn(flags, " \t\r\n");
  return flags[0] != '\0' && flags[0] != '-';
}

// Opens the folder and finds on what programs depend. False, with the reason in
// the log, where there is no cache to use.
static bool prepare(const ist__program_wish *wish, ist__program_home *home,
                    ist__cache_folder *folder) {
  char path[PATH_ROOM];
  const ist__env *env = ist__backend_env(wish->device->backend);
  uint64_t limit = wish->options.cache_limit != 0 ? wish->options.cache_limit
                                                  : IST__CACHE_LIMIT;
  ist_error cause;
  *folder = (ist__cache_folder){.fd = -1};
  const char *at = ist__cache_folder_of(&wish->options, path, sizeof path);
  if (at == NULL) return false;
  if (flags_are_in_a_file()) {
    ist__log(env, IST_LOG_WARNING,
             "no cache: XLA_FLAGS names a file, which may change");
    return false;
  }
  ist_code code = ist__cache_folder_open(env, at, true, limit, folder, &cause);
  if (code == IST_OK) {
    code = ist__program_home_find(wish->device, at, home, &cause);
  }
  if (code == IST_OK) return true;
  ist__log(env, IST_LOG_WARNING, "no cache: %s", cause.message);
  ist__cache_folder_close(folder);
  return false;
}

ist_code ist__compile_cached(const ist__program_wish *wish, const void *code,
                             size_t size, ist_program **out, ist_error *err) {
  ist__program_home home;
  ist__cache_folder folder;
  if (!prepare(wish, &home, &folder)) {
    return ist__program_make(wish, code, size, ist__backend_compile, out, err);
  }
  char name[NAME_ROOM];
  make_name(wish, &home, code, size, name);
  ist_code result = IST_OK;
  if (!look_for(wish, &home, &folder, name, out)) {
    result =
        ist__program_make(wish, code, size, ist__backend_compile, out, err);
    if (result == IST_OK) keep(*out, &home, &folder, name);
  }
  ist__cache_folder_close(&folder);
  return result;
}

// ---- facts

ist_code ist_cache_describe(ist_context *context, const char *folder,
                            ist_cache_info *out, ist_error *err) {
  if (context == NULL || !ist__struct_ok(out)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "the cache could not be described: context is NULL or "
                         "out has no struct_size; needs both");
  }
  ist_cache_info info = {.struct_size = sizeof info,
                         .enabled = ist__cache_enabled(),
                         .limit = IST__CACHE_LIMIT};
  if (folder != NULL && strlen(folder) < sizeof info.folder) {
    (void)snprintf(info.folder, sizeof info.folder, "%s", folder);
  } else if (folder == NULL) {
    ist__cache_default_folder(info.folder, sizeof info.folder);
  }
  ist__cache_folder open;
  ist_error cause = {0};
  if (info.folder[0] != '\0') {
    ist_code code = ist__cache_folder_open(&context->env, info.folder, false,
                                           info.limit, &open, &cause);
    info.usable = code == IST_OK || cause.native == ENOENT;
    if (code == IST_OK) {
      ist__cache_folder_measure(&open, &info.entries, &info.nbytes);
      ist__cache_folder_close(&open);
    }
  }
  ist__struct_write(out, &info, sizeof info);
  return IST_OK;
}
