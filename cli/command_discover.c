// SPDX-License-Identifier: Apache-2.0
// command_discover.c: the list of installed plugins: where to look, what counts
// once, and which one is taken when none is named.

#define _GNU_SOURCE
#include "command_discover.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/pjrt/elf_symbol.h"

static const char variable[] = "PJRT_NAMES_AND_LIBRARY_PATHS";

// ------------------------------------------------------------- the list --

static bool is_same_file(const ist__plugin_entry *a,
                         const ist__plugin_entry *b) {
  if (!a->is_there || !b->is_there) return strcmp(a->path, b->path) == 0;
  return a->device == b->device && a->inode == b->inode;
}

// A broken entry is listed once for each way that leads to it.
static bool is_listed(const ist__plugins *plugins,
                      const ist__plugin_entry *entry) {
  for (size_t i = 0; i < plugins->count; i++) {
    const ist__plugin_entry *other = &plugins->at[i];
    if (is_same_file(other, entry) &&
        (other->problem[0] == '\0' ||
         strcmp(other->found_by, entry->found_by) == 0)) {
      return true;
    }
  }
  return false;
}

static bool has_room(ist__plugins *plugins, bool broken) {
  size_t good_count = plugins->count - plugins->broken_count;
  if (broken ? plugins->broken_count == IST__MOST_BROKEN
             : good_count == IST__MOST_PLUGINS) {
    return false;
  }
  if (plugins->count < plugins->room) return true;
  size_t room = plugins->room == 0 ? 16 : plugins->room * 2;
  ist__plugin_entry *at = ist_allocate(plugins->context, room * sizeof *at, 16);
  if (at == NULL) return false;
  if (plugins->count > 0) memcpy(at, plugins->at, plugins->count * sizeof *at);
  ist_deallocate(plugins->context, plugins->at);
  plugins->at = at;
  plugins->room = room;
  return true;
}

void ist__plugins_add_broken(ist__plugins *plugins, const char *name,
                             const char *path, const char *found_by,
                             const char *problem) {
  ist__plugin_entry entry = {0};
  struct stat facts;
  bool broken = problem[0] != '\0';
  int size = snprintf(entry.path, sizeof entry.path, "%s", path);
  if (size >= (int)sizeof entry.path) return;
  (void)snprintf(entry.name, sizeof entry.name, "%s", name);
  (void)snprintf(entry.found_by, sizeof entry.found_by, "%s", found_by);
  (void)snprintf(entry.problem, sizeof entry.problem, "%s", problem);
  if (stat(path, &facts) == 0) {
    entry.is_there = true;
    entry.device = facts.st_dev;
    entry.inode = facts.st_ino;
  }
  if (is_listed(plugins, &entry)) return;
  if (!has_room(plugins, broken)) {
    plugins->left_out++;
    return;
  }
  plugins->at[plugins->count++] = entry;
  plugins->broken_count += broken;
}

void ist__plugins_add(ist__plugins *plugins, const char *name, const char *path,
                      const char *found_by) {
  const char *problem = "";
  if (access(path, R_OK) != 0) {
    problem = "the file cannot be read";
  } else if (ist__elf_exports(path, "GetPjrtApi") != IST__ELF_YES) {
    problem = "it is no library that exports GetPjrtApi";
  }
  ist__plugins_add_broken(plugins, name, path, found_by, problem);
}

// ---------------------------------------------------------- where to look --

static void find_in_environment(ist__plugins *plugins) {
  const char *at = getenv(variable);
  while (at != NULL && *at != '\0') {
    size_t length = strcspn(at, ",");
    const char *colon = memchr(at, ':', length);
    char name[96], path[4096];
    size_t head = colon != NULL ? (size_t)(colon - at) : length;
    (void)snprintf(name, sizeof name, "%.*s", (int)head, at);
    if (colon != NULL) {
      (void)snprintf(path, sizeof path, "%.*s", (int)(length - head - 1),
                     colon + 1);
      ist__plugins_add(plugins, name, path, variable);
    } else if (length > 0) {
      ist__plugins_add_broken(plugins, name, name, variable,
                              "it is not of the form NAME:PATH");
    }
    at += length;
    if (*at == ',') at++;
  }
}

// The folders of packages below a prefix: Debian's has another name.
static void scan_prefix(ist__plugins *plugins, const char *prefix) {
  static const char *const folders[] = {
      "lib/python3*/site-packages", "lib64/python3*/site-packages",
      "local/lib/python3*/dist-packages", "lib/python3/dist-packages"};
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    glob_t found;
    if (!ist__plugins_glob(prefix, folders[i], &found)) continue;
    for (size_t k = 0; k < found.gl_pathc; k++) {
      ist__plugins_scan(plugins, found.gl_pathv[k]);
    }
    globfree(&found);
  }
}

// Cuts the last name off a path; false when there is none.
static bool cut(char *path) {
  char *slash = strrchr(path, '/');
  if (slash != NULL) *slash = '\0';
  return slash != NULL;
}

// The prefix of the python3 that a shell would start. In a virtual environment
// it is a link, which is not followed.
static bool python_prefix(char out[4096]) {
  const char *at = getenv("PATH");
  while (at != NULL && *at != '\0') {
    size_t length = strcspn(at, ":");
    char program[4096], mark[4096];
    int size =
        snprintf(program, sizeof program, "%.*s/python3", (int)length, at);
    at += length + (at[length] == ':');
    if (size >= (int)sizeof program || access(program, X_OK) != 0) continue;
    (void)snprintf(out, 4096, "%s", program);
    if (!cut(out) || !cut(out)) continue;
    if (snprintf(mark, sizeof mark, "%.4000s/pyvenv.cfg", out) > 0 &&
        access(mark, F_OK) == 0) {
      return true;
    }
    char *real = out;
    return realpath(program, real) != NULL && cut(real) && cut(real);
  }
  return false;
}

static void find_in_packages(ist__plugins *plugins) {
  const char *sites = getenv("ISTHMUS_SITE_PACKAGES");
  const char *environment = getenv("VIRTUAL_ENV");
  char prefix[4096];
  if (sites != NULL) {
    while (*sites != '\0') {
      size_t length = strcspn(sites, ":");
      if (length > 0 && length < sizeof prefix) {
        (void)snprintf(prefix, sizeof prefix, "%.*s", (int)length, sites);
        ist__plugins_scan(plugins, prefix);
      }
      sites += length + (sites[length] == ':');
    }
  } else if (environment != NULL && environment[0] != '\0') {
    scan_prefix(plugins, environment);
  } else if (python_prefix(prefix)) {
    scan_prefix(plugins, prefix);
  }
}

ist_code ist__plugins_find(ist_context *context, ist__plugins **out,
                           ist_error *err) {
  ist__plugins *plugins = ist_allocate(context, sizeof *plugins, 16);
  *out = plugins;
  if (plugins == NULL) {
    return ist_error_set(err, IST_ERR_NO_ALLOCATION,
                         "memory for the list of plugins was not to be had: "
                         "the allocator gave none; needs %zu bytes",
                         sizeof *plugins);
  }
  *plugins = (ist__plugins){.context = context};
  find_in_environment(plugins);
  find_in_packages(plugins);
  return IST_OK;
}

void ist__plugins_free(ist__plugins *plugins) {
  ist_context *context = plugins->context;
  ist_deallocate(context, plugins->at);
  ist_deallocate(context, plugins);
}

// ----------------------------------------------------------- which one --

static void list_names(const ist__plugins *plugins, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (size_t i = 0; i < plugins->count && used < size; i++) {
    const ist__plugin_entry *entry = &plugins->at[i];
    if (entry->problem[0] != '\0') continue;
    used += (size_t)snprintf(out + used, size - used, "%s%s",
                             used > 0 ? ", " : "", entry->name);
  }
}

const ist__plugin_entry *ist__plugins_choose(const ist__plugins *plugins,
                                             const char *name, ist_error *err) {
  const ist__plugin_entry *first = NULL, *named = NULL;
  size_t count = 0, named_count = 0;
  for (size_t i = 0; i < plugins->count; i++) {
    const ist__plugin_entry *entry = &plugins->at[i];
    if (entry->problem[0] != '\0') continue;
    if (name != NULL && strcmp(entry->name, name) == 0) return entry;
    if (count++ == 0) first = entry;
    if (strcmp(entry->found_by, variable) == 0 && named_count++ == 0) {
      named = entry;
    }
  }
  if (name == NULL && count == 1) return first;
  if (name == NULL && named_count == 1) return named;
  char names[256];
  list_names(plugins, names, sizeof names);
  if (name != NULL || count == 0) {
    (void)ist_error_set(err, IST_ERR_NO_BACKEND,
                        "backend pjrt could not be opened: no plugin %s%swas "
                        "found%s%s; needs the path of one, or a package that "
                        "has one",
                        name != NULL ? name : "", name != NULL ? " " : "",
                        count > 0 ? " among " : "", names);
    return NULL;
  }
  (void)ist_error_set(err, IST_ERR_NO_BACKEND,
                      "backend pjrt could not be opened: no plugin was named, "
                      "and %zu were found (%s); needs the name or the path of "
                      "one",
                      count, names);
  return NULL;
}
