// SPDX-License-Identifier: Apache-2.0
// verb_doctor.c: isthmus doctor: what is on this machine, and what each memory
// can do, found by trying. Plugins that are installed are listed; opened are
// only those that the command line or PJRT_NAMES_AND_LIBRARY_PATHS names.

#define _GNU_SOURCE  // _SC_NPROCESSORS_ONLN, _SC_PHYS_PAGES
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "backend/pjrt/child.h"
#include "command_discover.h"

static const char plugins_variable[] = "PJRT_NAMES_AND_LIBRARY_PATHS";

typedef struct doctor {
  ist__cmd *cmd;
  ist__json json;
  ist__json *to;  // NULL: text
  bool good;
  ist_error err;  // the first thing that went wrong
} doctor;

static void say_machine(doctor *d) {
  struct utsname name;
  if (uname(&name) < 0) memset(&name, 0, sizeof name);
  int64_t processors = sysconf(_SC_NPROCESSORS_ONLN);
  int64_t page = sysconf(_SC_PAGESIZE);
  int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * page;
  if (d->to == NULL) {
    fprintf(d->cmd->report,
            "isthmus %s\n%s %s %s, %" PRId64 " processors, %" PRId64
            " MiB of memory, pages of %" PRId64 " bytes\n",
            ist_version(), name.sysname, name.release, name.machine, processors,
            memory >> 20, page);
    return;
  }
  ist__json_string(d->to, "isthmus", ist_version());
  ist__json_open(d->to, "machine", '{');
  ist__json_string(d->to, "system", name.sysname);
  ist__json_string(d->to, "release", name.release);
  ist__json_string(d->to, "architecture", name.machine);
  ist__json_int(d->to, "processors", processors);
  ist__json_int(d->to, "memory_bytes", memory);
  ist__json_int(d->to, "page_bytes", page);
  ist__json_close(d->to, '}');
}

// The idle memory that is kept for the next tensor.
static void say_block_pool(doctor *d) {
  ist_block_pool_info pool = {.struct_size = sizeof pool};
  if (ist_context_block_pool(d->cmd->context, &pool, NULL) != IST_OK) return;
  if (d->to == NULL) {
    fprintf(d->cmd->report,
            "pool of blocks: keeps at most %" PRIu64 " MiB idle; %" PRIu64
            " MiB idle, %" PRIu64 " MiB in use\n",
            pool.bound >> 20, pool.held >> 20, pool.in_use >> 20);
    return;
  }
  ist__json_open(d->to, "block_pool", '{');
  ist__json_uint(d->to, "bound_bytes", pool.bound);
  ist__json_uint(d->to, "held_bytes", pool.held);
  ist__json_uint(d->to, "in_use_bytes", pool.in_use);
  ist__json_uint(d->to, "peak_bytes", pool.peak);
  ist__json_uint(d->to, "hits", pool.hits);
  ist__json_uint(d->to, "misses", pool.misses);
  ist__json_close(d->to, '}');
}

// What could not be opened is said in its place. failing: it was asked for on
// the command line, so that the verb fails too.
static void say_missing(doctor *d, const char *place, const ist_error *err,
                        bool failing) {
  if (failing) {
    if (d->good) d->err = *err;
    d->good = false;
  }
  if (d->to != NULL) {
    ist__json_open(d->to, NULL, '{');
    ist__json_string(d->to, "place", place);
    ist__json_error(d->to, "error", err);
    ist__json_close(d->to, '}');
    return;
  }
  FILE *file = d->cmd->report;
  fputs(ist__style_bold(d->cmd), file);
  ist__print_safe(file, place);
  fprintf(file, "%s\n  not opened: ", ist__style_end(d->cmd));
  ist__print_safe(file, err->message);
  fprintf(file, " [%s %d]\n", ist_code_name(err->code), err->code);
}

static void say_backend(doctor *d, const char *kind, const char *path,
                        const char *place, bool failing) {
  ist_backend *backend = NULL;
  ist_error err = {0};
  if (ist__cmd_backend(d->cmd, kind, path, &backend, &err) != IST_OK) {
    say_missing(d, place, &err, failing);
    return;
  }
  const ist__telling telling = {
      .backend = backend, .place = place, .json = d->to};
  if (!ist__cmd_say_backend(d->cmd, &telling, &err)) {
    if (d->good) d->err = err;
    d->good = false;
  }
}

static void say_plugin(doctor *d, const char *path, bool failing) {
  char place[4096 + 8];
  (void)snprintf(place, sizeof place, "pjrt:%.4095s", path);
  say_backend(d, "pjrt", path, place, failing);
}

static bool is_in_environment(const ist__plugin_entry *entry) {
  return strcmp(entry->found_by, plugins_variable) == 0;
}

static void say_environment(doctor *d, const ist__plugins *plugins) {
  for (size_t i = 0; i < plugins->count; i++) {
    if (is_in_environment(&plugins->at[i])) {
      say_plugin(d, plugins->at[i].path, false);
    }
  }
}

static void say_installed_json(doctor *d, const ist__plugins *plugins,
                               const char *probe) {
  ist__json_open(d->to, "plugins", '[');
  for (size_t i = 0; i < plugins->count; i++) {
    const ist__plugin_entry *entry = &plugins->at[i];
    ist__json_open(d->to, NULL, '{');
    ist__json_string(d->to, "name", entry->name);
    ist__json_string(d->to, "path", entry->path);
    ist__json_string(d->to, "found_by", entry->found_by);
    ist__json_string(d->to, "problem",
                     entry->problem[0] != '\0' ? entry->problem : NULL);
    ist__json_close(d->to, '}');
  }
  ist__json_close(d->to, ']');
  ist__json_uint(d->to, "plugins_left_out", plugins->left_out);
  ist__json_string(d->to, "probe_program", probe);
}

// What is installed, and the program in which plugins are opened first.
static void say_installed(doctor *d, const ist__plugins *plugins) {
  char probe[IST__PATH_SIZE];
  bool there = ist__child_program(NULL, "", probe, NULL) == IST_OK;
  if (d->to != NULL) {
    say_installed_json(d, plugins, there ? probe : NULL);
    return;
  }
  FILE *file = d->cmd->report;
  fputs(plugins->count > 0 ? "plugins\n" : "no PJRT plugin is installed\n",
        file);
  for (size_t i = 0; i < plugins->count; i++) {
    const ist__plugin_entry *entry = &plugins->at[i];
    fputs("  ", file);
    ist__print_safe(file, entry->name);
    fputs(": ", file);
    ist__print_safe(file, entry->path);
    fputs("\n    found by ", file);
    ist__print_safe(file, entry->found_by);
    if (entry->problem[0] != '\0')
      fprintf(file, "; broken: %s", entry->problem);
    fputc('\n', file);
  }
  if (plugins->left_out > 0) {
    fprintf(file, "  and %zu more, which are broken or too many to list\n",
            plugins->left_out);
  }
  fputs("unknown plugins are opened first in ", file);
  ist__print_safe(file, there ? probe : "nothing: isthmus-probe is not there");
  fputc('\n', file);
}

// The folder of compiled programs.
static void say_cache(doctor *d) {
  ist_cache_info info = {.struct_size = sizeof info};
  (void)ist_cache_describe(d->cmd->context, NULL, &info, NULL);
  if (d->to != NULL) {
    ist__json_open(d->to, "cache", '{');
    ist__json_bool(d->to, "enabled", info.enabled);
    if (info.enabled) {
      ist__json_string(d->to, "folder", info.folder);
      ist__json_bool(d->to, "usable", info.usable);
      ist__json_uint(d->to, "programs", info.entries);
      ist__json_uint(d->to, "nbytes", info.nbytes);
      ist__json_uint(d->to, "limit", info.limit);
    }
    ist__json_close(d->to, '}');
    return;
  }
  FILE *file = d->cmd->report;
  if (!info.enabled) {
    fputs("compiled programs are not kept: ISTHMUS_CACHE=off\n", file);
    return;
  }
  fputs("compiled programs in ", file);
  ist__print_safe(file, info.folder[0] != '\0' ? info.folder : "no folder");
  fprintf(file, ": %" PRIu64 " of %" PRIu64 " bytes of at most %" PRIu64 "%s\n",
          info.entries, info.nbytes, info.limit,
          info.usable ? "" : ", not used: others may write there");
}

int ist__verb_doctor(ist__cmd *cmd) {
  doctor d = {.cmd = cmd, .json = {.file = cmd->report}, .good = true};
  if (cmd->operands.count > 0) {
    return ist__cmd_usage(cmd, "it takes no operand like '%s'",
                          cmd->operands.at[0]);
  }
  ist__plugins *plugins = NULL;
  ist_error err = {0};
  if (ist__plugins_find(cmd->context, &plugins, &err) != IST_OK) {
    return ist__cmd_fail(cmd, &err);
  }
  if (cmd->json) d.to = &d.json;
  if (d.to != NULL) ist__json_open(d.to, NULL, '{');
  say_machine(&d);
  say_block_pool(&d);
  say_cache(&d);
  if (d.to != NULL) ist__json_open(d.to, "backends", '[');
  say_backend(&d, "host", "", "host", true);
  // The options of the command line are for the plugins.
  size_t option_count = cmd->option_count;
  cmd->option_count = 0;
  say_backend(&d, "template", "", "template", true);
  cmd->option_count = option_count;
  for (size_t i = 0; i < cmd->plugins.count; i++) {
    say_plugin(&d, cmd->plugins.at[i], true);
  }
  say_environment(&d, plugins);
  if (d.to != NULL) ist__json_close(d.to, ']');
  say_installed(&d, plugins);
  ist__plugins_free(plugins);
  if (d.to != NULL) {
    if (!d.good) ist__json_error(d.to, "error", &d.err);
    ist__json_close(d.to, '}');
    ist__json_end(d.to);
    cmd->json = false;  // the error has been said in the document
  }
  return d.good ? IST__EXIT_OK : ist__cmd_fail(cmd, &d.err);
}
