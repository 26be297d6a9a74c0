// SPDX-License-Identifier: Apache-2.0
// The lying plugin's table: GetPjrtApi, the rules in front of every slot, and
// the functions by which a test steers and questions the plugin.

#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lying.h"

lying_state lying = {.lock = PTHREAD_MUTEX_INITIALIZER,
                     .changed = PTHREAD_COND_INITIALIZER};

static const struct {
  const char *name;
  int minor;
} slots[IST_SLOT_COUNT] = {
#define SLOT(name, minor) {#name, minor},
#include "backend/pjrt/slots.def"
#undef SLOT
};

void lying_violate(const char *what) {
  pthread_mutex_lock(&lying.lock);
  snprintf(lying.violation, sizeof lying.violation, "%s", what);
  pthread_mutex_unlock(&lying.lock);
  atomic_fetch_add(&lying.violations, 1);
}

PJRT_Error *lying_error(int32_t code, const char *format, ...) {
  PJRT_Error *error = calloc(1, sizeof *error);
  if (error == NULL) abort();
  error->code = code;
  va_list list;
  va_start(list, format);
  vsnprintf(error->message, sizeof error->message, format, list);
  va_end(list);
  atomic_fetch_add(&lying.errors, 1);
  return error;
}

static int slot_index(const char *name) {
  if (strncmp(name, "PJRT_", 5) == 0) name += 5;
  for (int i = 0; i < IST_SLOT_COUNT; i++)
    if (strcmp(slots[i].name, name) == 0) return i;
  fprintf(stderr, "lying plugin: no slot named %s\n", name);
  abort();
}

// What ends something cannot be undone when it fails, so fail_any spares it.
static bool is_an_end(int slot) {
  return strstr(slots[slot].name, "_Destroy") != NULL ||
         strstr(slots[slot].name, "_Delete") != NULL ||
         strstr(slots[slot].name, "_Decrease") != NULL;
}

static PJRT_Error *enter(int slot, void *args) {
  const lying_rules *rules = &lying.rules;
  int n = atomic_fetch_add(&lying.calls[slot], 1) + 1;
  if (rules->unimplemented[slot])
    return lying_error(PJRT_Error_Code_UNIMPLEMENTED,
                       "lying plugin: %s is not implemented", slots[slot].name);
  if (rules->fail_at[slot] == n)
    return lying_error(PJRT_Error_Code_INTERNAL,
                       "lying plugin: %s fails on call %d", slots[slot].name,
                       n);
  if (!is_an_end(slot)) {
    int total = atomic_fetch_add(&lying.total_calls, 1) + 1;
    if (rules->fail_any == total)
      return lying_error(PJRT_Error_Code_INTERNAL,
                         "lying plugin: call %d (%s) fails", total,
                         slots[slot].name);
  }
  if (*(size_t *)args < 2 * sizeof(size_t)) {
    lying_violate("struct_size is too small");
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "Unexpected PJRT_%s_Args size", slots[slot].name);
  }
  if (lying_impl[slot] == NULL)
    return lying_error(PJRT_Error_Code_UNIMPLEMENTED,
                       "lying plugin: %s is not there", slots[slot].name);
  return lying_impl[slot](args);
}

#define SLOT(name, minor)                       \
  static PJRT_Error *enter_##name(void *args) { \
    return enter(IST_SLOT_##name, args);        \
  }
#include "backend/pjrt/slots.def"
#undef SLOT

static void error_destroy(void *args) {
  PJRT_Error_Destroy_Args *a = args;
  if (a->error == NULL) return;
  free(a->error);
  atomic_fetch_sub(&lying.errors, 1);
}

// Like real plugins: multi-line, and nothing is said when the size is wrong.
static void error_message(void *args) {
  PJRT_Error_Message_Args *a = args;
  if (a->message != NULL || a->message_size != 0)
    lying_violate("Error_Message: the message is not preset to NULL");
  a->message = a->error->message;
  a->message_size = strlen(a->error->message);
}

PJRT_Error *lying_Error_GetCode(void *args) {
  PJRT_Error_GetCode_Args *a = args;
  a->code = a->error->code;
  return NULL;
}

PJRT_Error *lying_Plugin_Initialize(void *args) {
  (void)args;
  return NULL;
}

PJRT_Error *lying_Plugin_Attributes(void *args) {
  static const int64_t version[3] = {1, 2, 3};
  static PJRT_NamedValue values[2];
  PJRT_Plugin_Attributes_Args *a = args;
  static const char *const names[2] = {"stablehlo_current_version",
                                       "stablehlo_minimum_version"};
  for (int i = 0; i < 2; i++) {
    values[i].struct_size = PJRT_NamedValue_SIZE;
    values[i].name = names[i];
    values[i].name_size = strlen(names[i]);
    values[i].type = PJRT_NamedValue_kInt64List;
    values[i].int64_array_value = version;
    values[i].value_size = 3;
  }
  a->attributes = values;
  a->num_attributes = 2;
  return NULL;
}

static void apply_flag(lying_rules *r, const char *key, const char *value) {
  long n = strtol(value, NULL, 0);
  if (strcmp(key, "minor") == 0)
    r->minor = (int)n;
  else if (strcmp(key, "major") == 0)
    r->major = (int)n;
  else if (strcmp(key, "struct_size") == 0)
    r->struct_size = (size_t)n;
  else if (strcmp(key, "fail_any") == 0)
    r->fail_any = (int)n;
  else if (strcmp(key, "devices") == 0)
    r->devices = (int)n;
  else if (strcmp(key, "addressable") == 0)
    r->addressable = n != 0;
  else if (strcmp(key, "align") == 0)
    r->align = (size_t)n;
  else if (strcmp(key, "is_on_cpu") == 0)
    r->is_on_cpu = n != 0;
  else if (strcmp(key, "delay_events") == 0)
    r->delay_events = n != 0;
  else if (strcmp(key, "event_error") == 0)
    r->event_error = n != 0;
  else if (strcmp(key, "corrupt") == 0)
    r->corrupt = n != 0;
  else {
    fprintf(stderr, "lying plugin: no rule named %s\n", key);
    abort();
  }
}

static void apply(lying_rules *r, const char *key, char *value) {
  if (strcmp(key, "drop") == 0) {
    r->drop[slot_index(value)] = true;
  } else if (strcmp(key, "unimplemented") == 0) {
    r->unimplemented[slot_index(value)] = true;
  } else if (strcmp(key, "fail") == 0) {
    char *colon = strchr(value, ':');
    if (colon == NULL) abort();
    *colon = 0;
    r->fail_at[slot_index(value)] = atoi(colon + 1);
  } else if (strcmp(key, "view") == 0) {
    r->view_copies = strcmp(value, "copy") == 0;
    r->view_eager = strcmp(value, "eager") == 0;
    r->view_null = strcmp(value, "null") == 0;
  } else if (strcmp(key, "opaque") == 0) {
    r->opaque_shifted = strcmp(value, "shifted") == 0;
  } else if (strcmp(key, "memory") == 0) {
    r->memory_ignored = strcmp(value, "ignored") == 0;
  } else if (strcmp(key, "program") == 0) {
    r->program_wrong = strcmp(value, "wrong") == 0;
  } else if (strcmp(key, "executable") == 0) {
    r->executable_null = strcmp(value, "null") == 0;
  } else if (strcmp(key, "platform") == 0) {
    snprintf(r->platform, sizeof r->platform, "%s", value);
  } else if (strcmp(key, "layout") == 0) {
    snprintf(r->layout, sizeof r->layout, "%s", value);
  } else if (strcmp(key, "hlo") == 0) {
    snprintf(r->hlo, sizeof r->hlo, "%s", value);
  } else {
    apply_flag(r, key, value);
  }
}

// Takes effect for calls from now on, and for the next GetPjrtApi.
LYING_EXPORT void lying_set_rules(const char *text) {
  lying_rules r = {
      .minor = 114, .devices = 2, .align = 64, .struct_size = sizeof(PJRT_Api)};
  snprintf(r.platform, sizeof r.platform, "lying");
  char *copy = strdup(text != NULL ? text : "");
  if (copy == NULL) abort();
  char *rest = NULL;
  for (char *word = strtok_r(copy, " ", &rest); word != NULL;
       word = strtok_r(NULL, " ", &rest)) {
    char *equals = strchr(word, '=');
    if (equals == NULL) abort();
    *equals = 0;
    apply(&r, word, equals + 1);
  }
  free(copy);
  for (int i = 0; i < IST_SLOT_COUNT; i++) atomic_store(&lying.calls[i], 0);
  atomic_store(&lying.total_calls, 0);
  atomic_store(&lying.violations, 0);
  lying.rules = r;
  lying.have_rules = true;
}

LYING_EXPORT int lying_live(const char *kind) {
  if (strcmp(kind, "errors") == 0) return atomic_load(&lying.errors);
  if (strcmp(kind, "events") == 0) return atomic_load(&lying.events);
  if (strcmp(kind, "buffers") == 0) return atomic_load(&lying.buffers);
  if (strcmp(kind, "clients") == 0) return atomic_load(&lying.clients);
  if (strcmp(kind, "externals") == 0) return atomic_load(&lying.externals);
  if (strcmp(kind, "executables") == 0) return atomic_load(&lying.executables);
  return -1;
}

// How often a slot was called, or all that can fail when the name is NULL.
LYING_EXPORT int lying_calls(const char *slot) {
  if (slot == NULL) return atomic_load(&lying.total_calls);
  return atomic_load(&lying.calls[slot_index(slot)]);
}

// How often the caller did what kills real plugins; `what` gets the last one.
LYING_EXPORT int lying_violations(const char **what) {
  if (what != NULL) *what = lying.violation;
  return atomic_load(&lying.violations);
}

LYING_EXPORT const PJRT_Api *GetPjrtApi(void) {
  static PJRT_Api api;
  if (!lying.have_rules) lying_set_rules(getenv("LYING_PJRT_RULES"));
  const lying_rules *rules = &lying.rules;
  static const ist_pjrt_fn all[IST_SLOT_COUNT] = {
#define SLOT(name, minor) enter_##name,
#include "backend/pjrt/slots.def"
#undef SLOT
  };
  memset(&api, 0, sizeof api);
  api.pjrt_api_version.struct_size = PJRT_Api_Version_SIZE;
  api.pjrt_api_version.major_version = rules->major;
  api.pjrt_api_version.minor_version = rules->minor;
  size_t count = 0;
  for (size_t i = 0; i < IST_SLOT_COUNT; i++) {
    if (slots[i].minor > rules->minor) continue;
    count = i + 1;
    if (!rules->drop[i]) api.slot[i] = all[i];
  }
  ist_pjrt_void_fn destroy = error_destroy, message = error_message;
  if (api.slot[IST_SLOT_Error_Destroy] != NULL)
    memcpy(&api.slot[IST_SLOT_Error_Destroy], &destroy, sizeof destroy);
  if (api.slot[IST_SLOT_Error_Message] != NULL)
    memcpy(&api.slot[IST_SLOT_Error_Message], &message, sizeof message);
  api.struct_size = offsetof(PJRT_Api, slot) + count * sizeof(ist_pjrt_fn);
  if (rules->struct_size < api.struct_size)
    api.struct_size = rules->struct_size;
  return &api;
}
