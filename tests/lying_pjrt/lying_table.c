// SPDX-License-Identifier: Apache-2.0
// The lying plugin's table: GetPjrtApi, the rules in front of every call, and
// the functions by which a test steers and questions the plugin.

#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>

#include "lying.h"

lying_state lying = {.lock = PTHREAD_MUTEX_INITIALIZER,
                     .changed = PTHREAD_COND_INITIALIZER};

static const int minors[IST_SLOT_COUNT] = {
#define SLOT(name, minor) minor,
#include "backend/pjrt/slots.def"
#undef SLOT
};

// What real plugins ask for, which for structs that grew is not the end.
static const size_t sizes[LYING_FUNCTION_COUNT] = {
#define SLOT(name, minor) (size_t)PJRT_##name##_Args_SIZE,
#include "backend/pjrt/slots.def"
#undef SLOT
#define FUNCTION(extension, name, args) (size_t)args##_SIZE,
#include "extension_functions.def"
#undef FUNCTION
};

static size_t size_wanted(int function) {
  switch (function) {
    case IST_SLOT_Device_MemoryStats:
      return offsetof(PJRT_Device_MemoryStats_Args, peak_pool_bytes_is_set) + 1;
    case IST_SLOT_Executable_DeserializeAndLoad:
      return offsetof(PJRT_Executable_DeserializeAndLoad_Args, load_options);
    case IST_SLOT_Client_CreateErrorBuffer:
      return offsetof(PJRT_Client_CreateErrorBuffer_Args, payload);
    case IST_SLOT_Executable_GetCompiledMemoryStats:
      return 112;
    case IST_SLOT_Client_CreateViewOfDeviceBuffer:
      return 16;  // of this slot nobody looks at the size
    default:
      return sizes[function];
  }
}

// What ends something cannot be undone when it fails: fail_any spares it, and
// its other failures come after it was done.
static bool is_an_end(int function) {
  const char *name = lying_name(function);
  return strstr(name, "_Destroy") != NULL || strstr(name, "_Delete") != NULL ||
         strstr(name, "_Decrease") != NULL;
}

static bool has(const int *calls, int function, int n) {
  return calls[function] == -1 || calls[function] == n;
}

// What the rules answer in place of the plugin, or NULL.
static PJRT_Error *rule_failure(int function, int n) {
  const lying_rules *rules = &lying.rules;
  const char *name = lying_name(function);
  if (has(rules->die, function, n)) {
    fprintf(stderr, "lying plugin: dies in %s\n", name);
    abort();
  }
  if (has(rules->unimplemented, function, n))
    return lying_error(PJRT_Error_Code_UNIMPLEMENTED,
                       "lying plugin: %s is not implemented", name);
  if (has(rules->fail, function, n))
    return lying_error(PJRT_Error_Code_INTERNAL,
                       "lying plugin: %s fails on call %d", name, n);
  if (has(rules->exhausted, function, n))
    return lying_error(PJRT_Error_Code_RESOURCE_EXHAUSTED,
                       "lying plugin: %s has no room", name);
  if (is_an_end(function)) return NULL;
  int total = atomic_fetch_add(&lying.total_calls, 1) + 1;
  if (rules->fail_any != total) return NULL;
  return lying_error(PJRT_Error_Code_INTERNAL,
                     "lying plugin: call %d (%s) fails", total, name);
}

PJRT_Error *lying_answer(int function, void *args) {
  size_t given = *(size_t *)args;
  if (given < size_wanted(function))
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "Unexpected PJRT_%s_Args size: expected %zu, got %zu. "
                       "The plugin is a lying one.",
                       lying_name(function), size_wanted(function), given);
  if (lying_impl[function] == NULL)
    return lying_error(PJRT_Error_Code_UNIMPLEMENTED,
                       "lying plugin: %s is not there", lying_name(function));
  return lying_impl[function](args);
}

PJRT_Error *lying_enter(int function, void *args) {
  int n = atomic_fetch_add(&lying.calls[function], 1) + 1;
  PJRT_Error *failure = rule_failure(function, n);
  if (failure != NULL && !is_an_end(function)) return failure;
  if (has(lying.rules.null, function, n)) return failure;
  bool forwards = lying.real != NULL && function < IST_SLOT_COUNT;
  PJRT_Error *error =
      forwards ? lying_forward(function, args) : lying_answer(function, args);
  if (failure != NULL) return failure;
  return error != NULL ? error : lying_spoil(function, args);
}

#define SLOT(name, minor)                       \
  static PJRT_Error *enter_##name(void *args) { \
    return lying_enter(IST_SLOT_##name, args);  \
  }
#include "backend/pjrt/slots.def"
#undef SLOT

static void enter_void(int slot, void *args,
                       void (*ours)(void *args, PJRT_Error *error)) {
  PJRT_Error *error = ((PJRT_Error_Destroy_Args *)args)->error;
  atomic_fetch_add(&lying.calls[slot], 1);
  if (error == NULL || lying_error_is_ours(error)) {
    ours(args, error);
  } else if (lying.real != NULL) {
    lying_forward(slot, args);
  } else {
    lying_violate("an error that is none");
  }
}

static void destroy(void *args, PJRT_Error *error) {
  (void)args;
  if (error == NULL) return;
  pthread_mutex_lock(&lying.lock);
  PJRT_Error **at = &lying.living;
  while (*at != error) at = &(*at)->next;
  *at = error->next;
  pthread_mutex_unlock(&lying.lock);
  free(error);
  atomic_fetch_sub(&lying.errors, 1);
}

// Like real plugins: multi-line, and nothing is said when the size is wrong.
static void message(void *args, PJRT_Error *error) {
  PJRT_Error_Message_Args *a = args;
  if (a->message != NULL || a->message_size != 0)
    lying_violate("Error_Message: the message is not preset to NULL");
  if (a->struct_size < PJRT_Error_Message_Args_SIZE || error == NULL) return;
  bool spoilt = LYING_IS(strings, "huge") || LYING_IS(strings, "unterminated");
  a->message = error->message;
  a->message_size = strlen(error->message);
  if (LYING_IS(strings, "null")) a->message = NULL;
  if (spoilt) a->message = lying_text("a spoilt message", &a->message_size);
}

static void error_destroy(void *args) {
  enter_void(IST_SLOT_Error_Destroy, args, destroy);
}

static void error_message(void *args) {
  enter_void(IST_SLOT_Error_Message, args, message);
}

// ---- levers

// Takes effect for calls from now on, and for the next GetPjrtApi.
LYING_EXPORT void lying_set_rules(const char *text) {
  lying_rules rules;
  lying_rules_parse(text, &rules);
  for (int i = 0; i < LYING_FUNCTION_COUNT; i++)
    atomic_store(&lying.calls[i], 0);
  atomic_store(&lying.total_calls, 0);
  atomic_store(&lying.total_events, 0);
  atomic_store(&lying.violations, 0);
  lying.rules = rules;
  lying.have_rules = true;
}

LYING_EXPORT int lying_live(const char *kind) {
  if (strcmp(kind, "errors") == 0) return atomic_load(&lying.errors);
  if (strcmp(kind, "events") == 0) return atomic_load(&lying.events);
  if (strcmp(kind, "buffers") == 0) return atomic_load(&lying.buffers);
  if (strcmp(kind, "clients") == 0) return atomic_load(&lying.clients);
  if (strcmp(kind, "externals") == 0) return atomic_load(&lying.externals);
  if (strcmp(kind, "executables") == 0) return atomic_load(&lying.executables);
  if (strcmp(kind, "others") == 0) return atomic_load(&lying.others);
  return -1;
}

// How often a slot was called, or all that can fail when the name is NULL.
LYING_EXPORT int lying_calls(const char *slot) {
  if (slot == NULL) return atomic_load(&lying.total_calls);
  return atomic_load(&lying.calls[lying_function(slot)]);
}

// How many events there were since the rules were set.
LYING_EXPORT int lying_events(void) {
  return atomic_load(&lying.total_events);
}

// How often the caller did what kills real plugins; `what` gets the last one.
LYING_EXPORT int lying_violations(const char **what) {
  if (what != NULL) *what = lying.violation;
  return atomic_load(&lying.violations);
}

// ---- the table

// A table that may be longer than what we know: a wrapped plugin's newest slots
// go through as they are.
typedef union long_table {
  PJRT_Api api;
  char bytes[4096];
} long_table;

static void fill_slots(long_table *table, size_t count) {
  static const ist_pjrt_fn all[IST_SLOT_COUNT] = {
#define SLOT(name, minor) enter_##name,
#include "backend/pjrt/slots.def"
#undef SLOT
  };
  PJRT_Api *api = &table->api;
  for (size_t i = 0; i < count && i < IST_SLOT_COUNT; i++) {
    bool missing = lying.real != NULL && lying.real->slot[i] == NULL;
    if (lying.rules.drop[i] == 0 && !missing) api->slot[i] = all[i];
  }
  ist_pjrt_void_fn destroys = error_destroy, tells = error_message;
  if (api->slot[IST_SLOT_Error_Destroy] != NULL)
    memcpy(&api->slot[IST_SLOT_Error_Destroy], &destroys, sizeof destroys);
  if (api->slot[IST_SLOT_Error_Message] != NULL)
    memcpy(&api->slot[IST_SLOT_Error_Message], &tells, sizeof tells);
}

// How many slots a plugin of that minor has, of those that we know.
static size_t slots_of(int minor) {
  size_t count = 0;
  for (size_t i = 0; i < IST_SLOT_COUNT; i++)
    if (minors[i] <= minor) count = i + 1;
  return count;
}

LYING_EXPORT const PJRT_Api *GetPjrtApi(void) {
  static long_table table;
  if (!lying.have_rules) lying_set_rules(getenv("LYING_PJRT_RULES"));
  const lying_rules *rules = &lying.rules;
  if (LYING_IS(table, "null")) return NULL;
  lying.real = rules->wrap[0] != '\0' ? lying_wrapped() : NULL;
  const PJRT_Api *real = lying.real;
  PJRT_Api *api = &table.api;
  memset(&table, 0, sizeof table);
  int minor = real != NULL ? real->pjrt_api_version.minor_version : 114;
  if (rules->minor != 0) minor = (int)rules->minor;
  lying.rules.minor = minor;
  size_t count = slots_of(minor);
  api->struct_size = offsetof(PJRT_Api, slot) + count * sizeof(ist_pjrt_fn);
  if (real != NULL) {
    size_t size =
        real->struct_size < sizeof table ? real->struct_size : sizeof table;
    if (rules->minor == 0 || size < api->struct_size) api->struct_size = size;
    size_t known = sizeof(PJRT_Api);
    if (size > known)
      memcpy(table.bytes + known, (const char *)real + known, size - known);
    count = (api->struct_size - offsetof(PJRT_Api, slot)) / sizeof(ist_pjrt_fn);
  }
  api->pjrt_api_version.struct_size = PJRT_Api_Version_SIZE;
  api->pjrt_api_version.major_version = (int)rules->major;
  api->pjrt_api_version.minor_version = minor;
  fill_slots(&table, count);
  api->extension_start = lying_extensions();
  if (rules->struct_size != 0 && (size_t)rules->struct_size < api->struct_size)
    api->struct_size = (size_t)rules->struct_size;
  return api;
}
