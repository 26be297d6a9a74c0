// SPDX-License-Identifier: Apache-2.0
// command_discover.h: the plugins that are installed here, found by looking
// only: none is loaded, no Python is started.
//
// Where, in this order:
//   1. PJRT_NAMES_AND_LIBRARY_PATHS, "name:path,name:path";
//   2. in each folder of packages: jax_plugins/NAME/*.so,
//   xla_plugins/NAME/*.so;
//   3. there, the entry points jax_plugins and xla_plugins of what is
//   installed;
//   4. there, installed files named *pjrt*.so, and libtpu.so.
// A library counts when it exports GetPjrtApi. The folders of packages are
// those of ISTHMUS_SITE_PACKAGES (with ":" between; the Python package's
// command sets it), else of VIRTUAL_ENV, else of the python3 on PATH.

#ifndef ISTHMUS_CLI_COMMAND_DISCOVER_H_
#define ISTHMUS_CLI_COMMAND_DISCOVER_H_

#include <glob.h>
#include <sys/types.h>

#include "command.h"

// More of either is hostile; what is broken takes no good one's place.
enum {
  IST__MOST_PLUGINS = 1024,
  IST__MOST_BROKEN = 64
};

typedef struct ist__plugin_entry {
  char name[96];
  char path[4096];    // as it was found
  char found_by[96];  // "PJRT_NAMES_AND_LIBRARY_PATHS", "xla_plugins", ...
  char problem[128];  // why it is no plugin, or ""
  bool is_there;      // and then which file it is
  dev_t device;
  ino_t inode;
} ist__plugin_entry;

typedef struct ist__plugins {
  ist_context *context;
  size_t count, room, broken_count;
  size_t left_out;  // there was no place for them
  ist__plugin_entry *at;
} ist__plugins;

// Gives *out, freed by ist__plugins_free. Fails: NO_ALLOCATION.
ist_code ist__plugins_find(ist_context *context, ist__plugins **out,
                           ist_error *err);

void ist__plugins_free(ist__plugins *plugins);

// The plugin to take: the one called name, or, for NULL, the only one, or the
// only one that PJRT_NAMES_AND_LIBRARY_PATHS names. NULL, with err, otherwise.
const ist__plugin_entry *ist__plugins_choose(const ist__plugins *plugins,
                                             const char *name, ist_error *err);

// Adds a plugin, once for each file. For the two sources of this module.
void ist__plugins_add(ist__plugins *plugins, const char *name, const char *path,
                      const char *found_by);
// Adds one that is broken.
void ist__plugins_add_broken(ist__plugins *plugins, const char *name,
                             const char *path, const char *found_by,
                             const char *problem);

// Finds what fits a pattern below a folder, in order; the folder's own name is
// no pattern. False when nothing does; else out is freed by globfree.
bool ist__plugins_glob(const char *folder, const char *pattern, glob_t *out);

// Looks through one folder of packages.
void ist__plugins_scan(ist__plugins *plugins, const char *site);

#endif  // ISTHMUS_CLI_COMMAND_DISCOVER_H_
