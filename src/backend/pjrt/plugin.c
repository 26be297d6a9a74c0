// SPDX-License-Identifier: Apache-2.0
// plugin.c: opens a plugin's file, says exactly why where that is not
// possible, and makes clients.

#define _XOPEN_SOURCE 700
#include "backend/pjrt/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/pjrt/attributes.h"
#include "backend/pjrt/elf_symbol.h"
#include "base/alloc.h"
#include "base/errno_text.h"
#include "base/text.h"

#ifdef PATH_MAX
_Static_assert(PATH_MAX <= IST__PATH_SIZE, "realpath needs as much");
#endif

// ---- loading

// ELF: bytes 18 and 19 of a file name the machine it is for.
static const char *machine_name(unsigned machine) {
  switch (machine) {
    case 3:
      return "i386";
    case 40:
      return "arm";
    case 62:
      return "x86-64";
    case 183:
      return "aarch64";
    case 243:
      return "riscv64";
    default:
      return "another machine";
  }
}

static unsigned own_machine(void) {
#if defined(__x86_64__)
  return 62;
#elif defined(__aarch64__)
  return 183;
#elif defined(__riscv)
  return 243;
#else
  return 0;
#endif
}

// Says why the loader refused a file, from its first bytes where they tell
// more than the loader does.
static ist_code explain_refusal(const char *path, const char *loader,
                                ist_error *err) {
  unsigned char head[20] = {0};
  FILE *file = fopen(path, "rb");
  size_t got = file != NULL ? fread(head, 1, sizeof head, file) : 0;
  if (file != NULL) fclose(file);
  if (got < sizeof head || memcmp(head, "\177ELF", 4) != 0) {
    return ist_error_set(err, IST_ERR_NOT_A_PLUGIN,
                         "plugin %s cannot be opened: it is no shared "
                         "library; needs a PJRT plugin (a .so with "
                         "GetPjrtApi)",
                         path);
  }
  unsigned machine = head[5] == 2 ? (unsigned)(head[18] << 8 | head[19])
                                  : (unsigned)(head[19] << 8 | head[18]);
  if (own_machine() != 0 && machine != own_machine()) {
    return ist_error_set(err, IST_ERR_PLUGIN_LOAD,
                         "plugin %s cannot be opened: it is built for %s; "
                         "needs one for %s",
                         path, machine_name(machine),
                         machine_name(own_machine()));
  }
  // A library that needs its program's symbols, say an extension of Python.
  if (strstr(loader, "undefined symbol") != NULL &&
      ist__elf_exports(path, "GetPjrtApi") == IST__ELF_NO) {
    return ist_error_set(err, IST_ERR_NOT_A_PLUGIN,
                         "plugin %s cannot be used: it has no function "
                         "GetPjrtApi; needs a PJRT plugin",
                         path);
  }
  char line[320];
  ist__text_first_line(loader, strlen(loader), line, sizeof line);
  return ist_error_set(err, IST_ERR_PLUGIN_LOAD,
                       "plugin %s cannot be opened: %s; needs a path to a PJRT "
                       "plugin that loads on this machine",
                       path, line);
}

ist_code ist__plugin_find(const char *path, ist__plugin_file *out,
                          ist_error *err) {
  memset(out, 0, sizeof *out);
  if (path == NULL || path[0] == '\0') {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "pjrt: no plugin was named; needs the path of one");
  }
  // A name without a slash would be looked for along the library path.
  if (realpath(path, out->path) == NULL || stat(out->path, &out->facts) != 0) {
    int why = errno;
    return ist__error_native(err, IST_ERR_PLUGIN_LOAD, why,
                             "plugin %s cannot be opened: %s; needs a path to "
                             "a PJRT plugin",
                             path, ist__errno_text_make(why).text);
  }
  if (S_ISDIR(out->facts.st_mode)) {
    return ist_error_set(err, IST_ERR_NOT_A_PLUGIN,
                         "plugin %s cannot be opened: it is a directory; "
                         "needs a PJRT plugin (a .so with GetPjrtApi)",
                         path);
  }
  // A pipe or a terminal would be waited for.
  if (!S_ISREG(out->facts.st_mode)) {
    return ist_error_set(err, IST_ERR_NOT_A_PLUGIN,
                         "plugin %s cannot be opened: it is no regular file; "
                         "needs a PJRT plugin (a .so with GetPjrtApi)",
                         path);
  }
  return IST_OK;
}

bool ist__plugin_is_same(const ist__plugin_file *a, const ist__plugin_file *b) {
  const struct stat *x = &a->facts, *y = &b->facts;
  return x->st_dev == y->st_dev && x->st_ino == y->st_ino &&
         x->st_size == y->st_size && x->st_mtim.tv_sec == y->st_mtim.tv_sec &&
         x->st_mtim.tv_nsec == y->st_mtim.tv_nsec;
}

// Finds the file to load: the one that was tried, if one was.
static ist_code find_tried(const char *path, const ist__plugin_file *tried,
                           ist__plugin_file *out, ist_error *err) {
  ist_code code =
      ist__plugin_find(tried != NULL ? tried->path : path, out, err);
  if (code != IST_OK || tried == NULL || ist__plugin_is_same(tried, out)) {
    return code;
  }
  return ist_error_set(err, IST_ERR_PLUGIN_LOAD,
                       "plugin %s cannot be opened: its file is another one "
                       "than was tried in a process of its own; needs a file "
                       "that stays as it is",
                       path);
}

static ist_code open_file(const ist__env *env, const char *path,
                          const ist__plugin_file *tried, ist__plugin *out,
                          ist_error *err) {
  ist__plugin_file file;
  ist_code code = find_tried(path, tried, &file, err);
  if (code != IST_OK) return code;
  ist__step(env, "loading the file");
  void *handle = dlopen(file.path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == NULL) {
    const char *loader = dlerror();
    return explain_refusal(path, loader != NULL ? loader : "no reason given",
                           err);
  }
  out->handle = handle;
  snprintf(out->file, sizeof out->file, "%s", file.path);
  // What was opened is what was looked at, unless it was changed in between.
  return find_tried(path, tried, &file, err);
}

static ist_code check_table(const char *path, const PJRT_Api *table,
                            ist__pjrt *pjrt, ist_error *err);

static ist_code greet(const char *path, void *handle, ist__pjrt *pjrt,
                      ist_error *err) {
  typedef const PJRT_Api *(*get_api)(void);
  void *symbol = dlsym(handle, "GetPjrtApi");
  if (symbol == NULL) {
    return ist_error_set(err, IST_ERR_NOT_A_PLUGIN,
                         "plugin %s cannot be used: it has no function "
                         "GetPjrtApi; needs a PJRT plugin",
                         path);
  }
  get_api function;
  memcpy(&function, &symbol, sizeof function);
  ist__step(pjrt->env, "GetPjrtApi");
  return check_table(path, function(), pjrt, err);
}

static ist_code check_table(const char *path, const PJRT_Api *table,
                            ist__pjrt *pjrt, ist_error *err) {
  if (table == NULL || table->struct_size < offsetof(PJRT_Api, slot)) {
    return ist_error_set(err, IST_ERR_NOT_A_PLUGIN,
                         "plugin %s cannot be used: GetPjrtApi gave %s; needs "
                         "a table of at least %zu bytes",
                         path, table == NULL ? "none" : "too short a table",
                         offsetof(PJRT_Api, slot));
  }
  int major = table->pjrt_api_version.major_version;
  int minor = table->pjrt_api_version.minor_version;
  if (major != 0 || minor < IST_PJRT_MIN_MINOR) {
    return ist_error_set(err, IST_ERR_PLUGIN_VERSION,
                         "plugin %s cannot be used: it speaks PJRT API %d.%d; "
                         "needs 0.%d or a later 0.x",
                         path, major, minor, IST_PJRT_MIN_MINOR);
  }
  pjrt->table = table;
  pjrt->minor = minor;
  if (!ist__pjrt_has(pjrt, IST_SLOT_Error_Destroy)) {
    return ist_error_set(err, IST_ERR_PLUGIN_SLOT,
                         "plugin %s cannot be used: it has no "
                         "PJRT_Error_Destroy; needs one, for every call may "
                         "give an error",
                         path);
  }
  return IST_OK;
}

// The attribute of that name, when it is a list of three numbers.
static void read_version(const ist_option *v, const char *wanted, char *out,
                         size_t size) {
  if (v->kind != IST_OPTION_INT64_LIST || v->list_size != 3 ||
      strcmp(v->name, wanted) != 0) {
    return;
  }
  const int64_t *n = v->list;
  snprintf(out, size, "%" PRId64 ".%" PRId64 ".%" PRId64, n[0], n[1], n[2]);
}

// What cannot be read tells no version; a report says why.
static ist_code read_attributes(ist__plugin *plugin, ist_error *err) {
  ist__pjrt_attributes all;
  ist_error cause;
  ist_code code = ist__pjrt_attributes_read(&plugin->pjrt, &all, &cause);
  if (code == IST_ERR_NO_ALLOCATION) {
    return ist_error_set(err, code, "%s", cause.message);
  }
  if (code != IST_OK) return IST_OK;
  for (size_t i = 0; i < all.count; i++) {
    const ist_option *v = &all.at[i].option;
    read_version(v, "stablehlo_current_version", plugin->stablehlo,
                 sizeof plugin->stablehlo);
    read_version(v, "stablehlo_minimum_version", plugin->stablehlo_minimum,
                 sizeof plugin->stablehlo_minimum);
  }
  ist__free(plugin->pjrt.env, all.at);
  return IST_OK;
}

void ist__plugin_file_name(const char *path, char *out, size_t size) {
  const char *slash = path != NULL ? strrchr(path, '/') : NULL;
  snprintf(out, size, "pjrt:%s",
           slash != NULL  ? slash + 1
           : path != NULL ? path
                          : "");
}

ist_code ist__plugin_load(const ist__env *env, const char *path,
                          const ist__plugin_file *tried, ist__plugin *out,
                          ist_error *err) {
  memset(out, 0, sizeof *out);
  out->pjrt.env = env;
  ist__plugin_file_name(path, out->pjrt.name, sizeof out->pjrt.name);
  ist_code code = open_file(env, path, tried, out, err);
  if (code == IST_OK) code = greet(path, out->handle, &out->pjrt, err);
  if (code == IST_OK) {
    IST_PJRT_ARGS(PJRT_Plugin_Initialize_Args, initialize);
    code = ist__pjrt_call(&out->pjrt, IST_SLOT_Plugin_Initialize, &initialize,
                          err);
  }
  if (code == IST_OK) {
    code = read_attributes(out, err);
  }
  if (code != IST_OK) ist__plugin_unload(out);
  return code;
}

ist_code ist__plugin_adopt(const ist__env *env, const PJRT_Api *table,
                           ist__plugin *out, ist_error *err) {
  memset(out, 0, sizeof *out);
  out->pjrt.env = env;
  snprintf(out->pjrt.name, sizeof out->pjrt.name, "pjrt");
  ist_code code = check_table("of the host program", table, &out->pjrt, err);
  if (code == IST_OK) code = read_attributes(out, err);
  return code;
}

void ist__plugin_unload(ist__plugin *plugin) {
  if (plugin->handle != NULL) dlclose(plugin->handle);
  memset(plugin, 0, sizeof *plugin);
}

// ---- clients

static const char *const kind_names[] = {"a string", "an integer",
                                         "a list of integers", "a number",
                                         "true or false"};

static const struct {
  const char *name;
  ist_option_kind kind;
  int64_t minimum;
} known_options[] = {
#define OPTION(name, kind, minimum) {#name, IST_OPTION_##kind, minimum},
#include "backend/pjrt/options.def"
#undef OPTION
};

static ist_code check_known(const ist__pjrt *pjrt, const ist_option *option,
                            ist_error *err) {
  for (size_t i = 0; i < sizeof known_options / sizeof known_options[0]; i++) {
    if (strcmp(known_options[i].name, option->name) != 0) continue;
    ist_option_kind kind = known_options[i].kind;
    if (option->kind != kind) {
      return ist_error_set(err, IST_ERR_OPTION,
                           "%s: option %s cannot be set: it was given %s; "
                           "needs %s",
                           pjrt->name, option->name, kind_names[option->kind],
                           kind_names[kind]);
    }
    if (kind == IST_OPTION_INT64 && option->int64 < known_options[i].minimum) {
      return ist_error_set(err, IST_ERR_OPTION,
                           "%s: option %s cannot be set: it was given %" PRId64
                           "; needs %" PRId64 " or more",
                           pjrt->name, option->name, option->int64,
                           known_options[i].minimum);
    }
    return IST_OK;
  }
  ist__log(pjrt->env, IST_LOG_INFO,
           "%s: option %s is not known here and goes to the plugin unchecked",
           pjrt->name, option->name);
  return IST_OK;
}

ist_code ist__plugin_check_option(const ist__pjrt *pjrt,
                                  const ist_option *option, ist_error *err) {
  if (option->name == NULL || option->name[0] == '\0') {
    return ist_error_set(err, IST_ERR_OPTION,
                         "%s: an option has no name; needs one", pjrt->name);
  }
  bool valid =
      option->kind >= IST_OPTION_STRING && option->kind <= IST_OPTION_BOOL;
  if (valid && option->kind == IST_OPTION_STRING) {
    valid = option->string != NULL;
  }
  if (valid && option->kind == IST_OPTION_INT64_LIST) {
    valid = option->list != NULL || option->list_size == 0;
  }
  if (!valid) {
    return ist_error_set(err, IST_ERR_OPTION,
                         "%s: option %s cannot be set: its value is missing "
                         "or of no known kind; needs a value",
                         pjrt->name, option->name);
  }
  return check_known(pjrt, option, err);
}

_Static_assert(
    (int)IST_OPTION_STRING == (int)PJRT_NamedValue_kString &&
        (int)IST_OPTION_INT64 == (int)PJRT_NamedValue_kInt64 &&
        (int)IST_OPTION_INT64_LIST == (int)PJRT_NamedValue_kInt64List &&
        (int)IST_OPTION_FLOAT == (int)PJRT_NamedValue_kFloat &&
        (int)IST_OPTION_BOOL == (int)PJRT_NamedValue_kBool,
    "a kind of option is cast to PJRT's, and an index of kind_names");

static PJRT_NamedValue named_value(const ist_option *option) {
  PJRT_NamedValue value = {.struct_size = PJRT_NamedValue_SIZE};
  value.name = option->name;
  value.name_size = strlen(option->name);
  value.type = (int32_t)option->kind;
  value.value_size = 1;
  switch (option->kind) {
    case IST_OPTION_STRING:
      value.string_value = option->string;
      value.value_size = strlen(option->string);
      break;
    case IST_OPTION_INT64:
      value.int64_value = option->int64;
      break;
    case IST_OPTION_INT64_LIST:
      value.int64_array_value = option->list;
      value.value_size = option->list_size;
      break;
    case IST_OPTION_FLOAT:
      value.float_value = (float)option->number;
      break;
    case IST_OPTION_BOOL:
      value.bool_value = option->boolean;
      break;
  }
  return value;
}

static ist_code create_client(ist__plugin *plugin, const ist_option *options,
                              size_t count, PJRT_Client **out, ist_error *err) {
  const ist__pjrt *pjrt = &plugin->pjrt;
  PJRT_NamedValue *values = NULL;
  ist_code code = IST_OK;
  if (count > 0) {
    if (count > SIZE_MAX / sizeof *values / 2) {
      return ist_error_set(err, IST_ERR_OPTION,
                           "%s: %zu options are too many; needs fewer",
                           pjrt->name, count);
    }
    values = ist__alloc_zero(pjrt->env, count * sizeof *values);
    if (values == NULL) {
      return ist__error_memory(err, "client options", count * sizeof *values);
    }
  }
  for (size_t i = 0; i < count && code == IST_OK; i++) {
    code = ist__plugin_check_option(pjrt, &options[i], err);
    if (code == IST_OK) values[i] = named_value(&options[i]);
  }
  IST_PJRT_ARGS(PJRT_Client_Create_Args, create);
  create.create_options = values;
  create.num_options = count;
  if (code == IST_OK) {
    code = ist__pjrt_call(pjrt, IST_SLOT_Client_Create, &create, err);
  }
  if (code == IST_OK && create.client == NULL) {
    code = ist_error_set(err, IST_ERR_PLUGIN,
                         "%s: no client could be made: the plugin gave none; "
                         "needs a working plugin",
                         pjrt->name);
  }
  if (code == IST_OK) *out = create.client;
  ist__free(pjrt->env, values);
  return code;
}

ist_code ist__plugin_name(ist__plugin *plugin, PJRT_Client *client,
                          ist_error *err) {
  ist__pjrt *pjrt = &plugin->pjrt;
  IST_PJRT_ARGS(PJRT_Client_PlatformName_Args, get);
  get.client = client;
  ist_code code = ist__pjrt_call(pjrt, IST_SLOT_Client_PlatformName, &get, err);
  if (code != IST_OK) return code;
  char platform[sizeof pjrt->name - 5];
  ist__pjrt_string(get.platform_name, get.platform_name_size, platform,
                   sizeof platform);
  snprintf(pjrt->name, sizeof pjrt->name, "pjrt:%s", platform);
  return IST_OK;
}

ist_code ist__plugin_client(ist__plugin *plugin,
                            const ist_backend_options *options,
                            PJRT_Client **out, ist_error *err) {
  *out = NULL;
  const ist_option *list = options != NULL ? options->options : NULL;
  size_t count = list != NULL ? options->option_count : 0;
  PJRT_Client *client = NULL;
  ist_code code = create_client(plugin, list, count, &client, err);
  if (code != IST_OK) return code;
  code = ist__plugin_name(plugin, client, err);
  if (code == IST_OK) {
    *out = client;
  } else {
    IST_PJRT_ARGS(PJRT_Client_Destroy_Args, destroy);
    destroy.client = client;
    ist__pjrt_end(&plugin->pjrt, IST_SLOT_Client_Destroy, &destroy);
  }
  return code;
}
