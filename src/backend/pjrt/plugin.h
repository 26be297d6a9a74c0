// SPDX-License-Identifier: Apache-2.0
// plugin.h: a plugin's file, loaded and greeted, and a client made with typed
// options. Not for devices or tensors.

#ifndef ISTHMUS_BACKEND_PJRT_PLUGIN_H_
#define ISTHMUS_BACKEND_PJRT_PLUGIN_H_

#include <sys/stat.h>

#include "backend/pjrt/call.h"

// The oldest minor version that isthmus speaks: from it on slots are only
// ever appended to the table.
#define IST_PJRT_MIN_MINOR 57

typedef struct ist__plugin {
  ist__pjrt pjrt;
  void *handle;
  char file[4096];             // its path, without links; "": not known
  char stablehlo[32];          // the newest StableHLO it reads, "1.13.3", or ""
  char stablehlo_minimum[32];  // the oldest, or ""
} ist__plugin;

// Room for an absolute path with its NUL.
#define IST__PATH_SIZE 4096

// A plugin's file, before anything of it has run.
typedef struct ist__plugin_file {
  char path[IST__PATH_SIZE];  // absolute, without links
  struct stat facts;
} ist__plugin_file;

// Looks where a plugin's file is, and refuses what would hang or cannot be one.
// Fails: ARGUMENT, PLUGIN_LOAD, NOT_A_PLUGIN.
ist_code ist__plugin_find(const char *path, ist__plugin_file *out,
                          ist_error *err);

// Whether two looks saw the same file, unchanged.
bool ist__plugin_is_same(const ist__plugin_file *a, const ist__plugin_file *b);

// "pjrt:FILE.so": what a plugin is called before it has a client.
void ist__plugin_file_name(const char *path, char *out, size_t size);

// Loads a plugin's file, checks its version and initialises it. Where tried is
// not NULL, it is that file which is loaded, whatever path leads to by now, and
// none when it has changed. A plugin is never unmapped again: its threads and
// exit handlers may still run. Fails: ARGUMENT, PLUGIN_LOAD, NOT_A_PLUGIN,
// PLUGIN_VERSION, PLUGIN_SLOT, PLUGIN.
ist_code ist__plugin_load(const ist__env *env, const char *path,
                          const ist__plugin_file *tried, ist__plugin *out,
                          ist_error *err);

// The same for a table that a host program has loaded and initialised: only its
// version is checked. Fails: NOT_A_PLUGIN, PLUGIN_VERSION.
ist_code ist__plugin_adopt(const ist__env *env, const PJRT_Api *table,
                           ist__plugin *out, ist_error *err);

// Lets go of the file; the code stays mapped.
void ist__plugin_unload(ist__plugin *plugin);

// Makes a client. Options whose type is known are checked first: a wrong one
// makes some plugins abort. Names the plugin by its platform from then on.
// Gives *out. Fails: OPTION, PLUGIN_SLOT, PLUGIN.
ist_code ist__plugin_client(ist__plugin *plugin,
                            const ist_backend_options *options,
                            PJRT_Client **out, ist_error *err);

// Names the plugin by a client's platform. Fails: PLUGIN_SLOT, PLUGIN.
ist_code ist__plugin_name(ist__plugin *plugin, PJRT_Client *client,
                          ist_error *err);

// Looks at one option before a plugin sees it. Fails: OPTION.
ist_code ist__plugin_check_option(const ist__pjrt *pjrt,
                                  const ist_option *option, ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_PLUGIN_H_
