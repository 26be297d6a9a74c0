// SPDX-License-Identifier: Apache-2.0
// command_packages.c: looks through a folder of Python packages for plugins:
// namespace packages, entry points, lists of installed files.

#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/pjrt/elf_symbol.h"
#include "base/regular_file.h"
#include "command_discover.h"

static const char *const groups[] = {"jax_plugins", "xla_plugins"};

enum {
  MOST_LIST = 8 << 20  // bytes of a package's file that is looked at
};

// A folder's or a library's name without the path.
static const char *last_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

bool ist__plugins_glob(const char *folder, const char *pattern, glob_t *out) {
  char whole[2 * 4096];
  size_t used = 0;
  for (const char *c = folder; *c != '\0'; c++) {
    if (used + 2 >= sizeof whole) return false;
    if (strchr("*?[]\\", *c) != NULL) whole[used++] = '\\';
    whole[used++] = *c;
  }
  size_t left = sizeof whole - used;
  int size = snprintf(whole + used, left, "/%s", pattern);
  return size > 0 && (size_t)size < left && glob(whole, 0, NULL, out) == 0;
}

// Calls visit for each path that a pattern below a folder fits, in order.
static void each(ist__plugins *plugins, const char *folder, const char *pattern,
                 void (*visit)(ist__plugins *plugins, const char *path,
                               const void *self),
                 const void *self) {
  glob_t found;
  if (!ist__plugins_glob(folder, pattern, &found)) return;
  for (size_t i = 0; i < found.gl_pathc; i++) {
    visit(plugins, found.gl_pathv[i], self);
  }
  globfree(&found);
}

// What a module of plugins is called, and how it was found.
typedef struct module {
  const char *name, *found_by;
  bool *any;  // it has a plugin
} module;

static void visit_library(ist__plugins *plugins, const char *path,
                          const void *self) {
  const module *m = self;
  if (ist__elf_exports(path, "GetPjrtApi") != IST__ELF_YES) return;
  *m->any = true;
  ist__plugins_add(plugins, m->name, path, m->found_by);
}

static void add_module(ist__plugins *plugins, const char *folder,
                       const char *name, const char *found_by) {
  bool any = false;
  const module m = {name, found_by, &any};
  each(plugins, folder, "*.so", visit_library, &m);
  if (!any) {
    ist__plugins_add_broken(plugins, name, folder, found_by,
                            "no library in it exports GetPjrtApi");
  }
}

static bool is_folder(const char *path) {
  struct stat facts;
  return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static void visit_module(ist__plugins *plugins, const char *path,
                         const void *self) {
  const char *name = last_name(path);
  if (name[0] == '_' || !is_folder(path)) return;
  add_module(plugins, path, name, self);
}

// ---------------------------------------------------------- entry points --

// "NAME = a.module:attribute" in the group of found_by.
static void take_entry(ist__plugins *plugins, const char *site, char *line,
                       const char *group) {
  char name[96], target[256], folder[4096], found_by[96];
  if (sscanf(line, " %95[^= \t\r\n] = %255[^: \t\r\n[]", name, target) != 2) {
    return;
  }
  for (char *c = target; *c != '\0'; c++) {
    if (*c == '.') *c = '/';
  }
  (void)snprintf(found_by, sizeof found_by, "entry point %s", group);
  (void)snprintf(folder, sizeof folder, "%.3800s/%s", site, target);
  // A module that is one file has its library beside it.
  if (!is_folder(folder) && strchr(target, '/') != NULL) {
    *strrchr(folder, '/') = '\0';
  }
  add_module(plugins, folder, name, found_by);
}

// The folder of packages that a file of PACKAGE.dist-info is in.
static bool site_of(const char *path, char out[4096]) {
  if (snprintf(out, 4096, "%s", path) >= 4096) return false;
  for (int i = 0; i < 2; i++) {
    char *slash = strrchr(out, '/');
    if (slash == NULL) return false;
    *slash = '\0';
  }
  return true;
}

// What PACKAGE-VERSION.dist-info in site is called.
static void package_name(const char *path, const char *site, char out[96]) {
  const char *package = path + strlen(site) + 1;
  (void)snprintf(out, 96, "%.*s", (int)strcspn(package, "-"), package);
}

// A file of a package; one that is not to be read is told as broken.
static FILE *open_list(ist__plugins *plugins, const char *path,
                       const char *site) {
  char name[96];
  uint64_t size = 0;
  FILE *file = ist__regular_open(path, MOST_LIST, &size);
  if (file != NULL) return file;
  package_name(path, site, name);
  ist__plugins_add_broken(plugins, name, path, "installed packages",
                          "it is no file of at most 8 MiB that can be read");
  return NULL;
}

static void visit_entry_points(ist__plugins *plugins, const char *path,
                               const void *self) {
  char site[4096], line[512];
  const char *group = NULL;
  FILE *file = site_of(path, site) ? open_list(plugins, path, site) : NULL;
  (void)self;
  if (file == NULL) return;
  while (fgets(line, sizeof line, file) != NULL) {
    char section[32];
    if (sscanf(line, " [%31[^]]]", section) == 1) {
      group = NULL;
      for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (strcmp(section, groups[i]) == 0) group = groups[i];
      }
    } else if (group != NULL && line[0] != '#') {
      take_entry(plugins, site, line, group);
    }
  }
  (void)fclose(file);
}

// ------------------------------------------------- lists of installed files --

static bool is_plugin_name(const char *path) {
  const char *name = last_name(path);
  size_t length = strlen(name);
  return length > 3 && strcmp(name + length - 3, ".so") == 0 &&
         (strstr(name, "pjrt") != NULL || strcmp(name, "libtpu.so") == 0);
}

static void visit_record(ist__plugins *plugins, const char *path,
                         const void *self) {
  char site[4096], line[4096], library[8200], name[96], found_by[96];
  (void)self;
  if (!site_of(path, site)) return;
  FILE *file = open_list(plugins, path, site);
  package_name(path, site, name);
  (void)snprintf(found_by, sizeof found_by, "files of %.80s", name);
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, ",\r\n")] = '\0';
    if (!is_plugin_name(line)) continue;
    (void)snprintf(library, sizeof library, "%s/%s", site, line);
    bool any = false;
    const module m = {name, found_by, &any};
    visit_library(plugins, library, &m);
  }
  if (file != NULL) (void)fclose(file);
}

void ist__plugins_scan(ist__plugins *plugins, const char *site) {
  each(plugins, site, "jax_plugins/*", visit_module, groups[0]);
  each(plugins, site, "xla_plugins/*", visit_module, groups[1]);
  each(plugins, site, "*.dist-info/entry_points.txt", visit_entry_points, NULL);
  each(plugins, site, "*.dist-info/RECORD", visit_record, NULL);
}
