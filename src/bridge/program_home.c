// SPDX-License-Identifier: Apache-2.0
// program_home.c: on what a compiled program depends besides its own text.

#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/errno_text.h"
#include "bridge/compile_cache.h"
#include "io/cache_folder.h"

// ---- the runtime's code

// A name for a file as it is now: whoever changes it changes this.
static bool file_stamp(const char *path, char *out, size_t size) {
  struct stat f;
  if (stat(path, &f) != 0) return false;
  (void)snprintf(out, size, ".code.%jx.%jx.%jx.%jx.%lx.%jx.%lx",
                 (uintmax_t)f.st_dev, (uintmax_t)f.st_ino, (uintmax_t)f.st_size,
                 (uintmax_t)f.st_mtim.tv_sec, f.st_mtim.tv_nsec,
                 (uintmax_t)f.st_ctim.tv_sec, f.st_ctim.tv_nsec);
  return true;
}

static ist_code digest_file(const char *path, char out[static IST_DIGEST_TEXT],
                            ist_error *err) {
  unsigned char part[1 << 15], bytes[IST_DIGEST_SIZE];
  FILE *file = fopen(path, "rbe");
  if (file == NULL) {
    int reason = errno;
    return ist__error_native(err, IST_ERR_FILE_OPEN, reason,
                             "cannot open %s: %s; needs a file that can be "
                             "read",
                             path, ist__errno_text_make(reason).text);
  }
  ist__digest digest;
  ist__digest_begin(&digest);
  size_t got;
  while ((got = fread(part, 1, sizeof part, file)) > 0) {
    ist__digest_add(&digest, part, got);
  }
  bool whole = ferror(file) == 0;
  fclose(file);
  if (!whole) {
    return ist_error_set(err, IST_ERR_IO,
                         "%s could not be read or written: it ended early; "
                         "needs a file that can be read",
                         path);
  }
  ist__digest_end(&digest, bytes);
  ist__digest_text(bytes, out);
  return IST_OK;
}

static bool is_digest(const char *text, size_t size) {
  return size == IST_DIGEST_TEXT - 1 &&
         strspn(text, "0123456789abcdef") >= IST_DIGEST_TEXT - 1;
}

// Several hundred MB take most of a second: what the folder knows is believed,
// since only the user writes there.
static ist_code digest_with(const ist__env *env, const char *path,
                            const char *folder,
                            char out[static IST_DIGEST_TEXT], ist_error *err) {
  char stamp[160];
  ist__cache_folder cache = {.fd = -1};
  bool kept = folder != NULL && file_stamp(path, stamp, sizeof stamp) &&
              ist__cache_folder_open(env, folder, true, IST__CACHE_LIMIT,
                                     &cache, NULL) == IST_OK;
  size_t size = 0;
  char *known = kept ? ist__cache_folder_get(&cache, stamp, &size) : NULL;
  bool found = known != NULL && is_digest(known, size);
  ist_code code = IST_OK;
  if (found) {
    memcpy(out, known, IST_DIGEST_TEXT - 1);
    out[IST_DIGEST_TEXT - 1] = '\0';
  } else {
    code = digest_file(path, out, err);
    if (kept && code == IST_OK) {
      ist__cache_folder_put(&cache, stamp, out, IST_DIGEST_TEXT - 1);
    }
  }
  ist__free(env, known);
  ist__cache_folder_close(&cache);
  return code;
}

// Threads that ask at once each make it, and keep the first.
static ist_code backend_digest(ist_backend *backend, const char *folder,
                               char out[static IST_DIGEST_TEXT],
                               ist_error *err) {
  char *known = atomic_load(&backend->file_digest);
  if (known != NULL) {
    memcpy(out, known, IST_DIGEST_TEXT);
    return IST_OK;
  }
  const ist__env *env = ist__backend_env(backend);
  ist_code code = digest_with(env, backend->facts.file, folder, out, err);
  if (code != IST_OK) return code;
  char *keep = ist__alloc(env, IST_DIGEST_TEXT, 1);
  if (keep == NULL) return ist__error_memory(err, "a digest", IST_DIGEST_TEXT);
  memcpy(keep, out, IST_DIGEST_TEXT);
  char *nobody = NULL;
  if (!atomic_compare_exchange_strong(&backend->file_digest, &nobody, keep)) {
    ist__free(env, keep);
  }
  return IST_OK;
}

// ---- the processor

// The line of /proc/cpuinfo that lists what the processor can do.
static bool read_features(char *line, size_t size) {
  FILE *file = fopen("/proc/cpuinfo", "re");
  bool found = false;
  while (file != NULL && !found &&
         fgets(line, size > INT32_MAX ? INT32_MAX : (int)size, file) != NULL) {
    found = strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0;
  }
  if (file != NULL) fclose(file);
  return found;
}

static void name_machine(char *out, size_t size) {
#if defined(__x86_64__)
  const char *machine = "x86-64";
#elif defined(__aarch64__)
  const char *machine = "aarch64";
#else
  const char *machine = "another";
#endif
  char line[8192];
  char text[IST_DIGEST_TEXT] = "";
  if (read_features(line, sizeof line)) {
    unsigned char bytes[IST_DIGEST_SIZE];
    ist__digest digest;
    ist__digest_begin(&digest);
    ist__digest_add(&digest, line, strlen(line));
    ist__digest_end(&digest, bytes);
    ist__digest_text(bytes, text);
  }
  (void)snprintf(out, size, "%s %.16s", machine, text);
}

ist_code ist__program_home_find(const ist_device *device, const char *folder,
                                ist__program_home *out, ist_error *err) {
  ist_backend *backend = device->backend;
  *out = (ist__program_home){.platform = backend->facts.platform,
                             .version = backend->facts.version,
                             .kind = device->facts.kind};
  if (backend->facts.file == NULL || backend->ops.serialize == NULL) {
    return ist_error_set(err, IST_ERR_NO_PROGRAMS,
                         "%s: a program could not be saved or loaded: the "
                         "backend saves none; needs one that serializes "
                         "programs, with its own file",
                         backend->facts.name);
  }
  if (device->facts.dl_device.device_type == kDLCPU) {
    name_machine(out->machine, sizeof out->machine);
  }
  return backend_digest(backend, folder, out->file, err);
}
