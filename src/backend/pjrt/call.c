// SPDX-License-Identifier: Apache-2.0
// call.c: calls slots, and reads the errors that they return.

#define _POSIX_C_SOURCE 200809L  // strnlen
#include "backend/pjrt/call.h"

#include <string.h>

#include "base/text.h"

// Of a plugin's error; more is not read.
#define MAX_MESSAGE ((size_t)1 << 20)
// A chain of extensions that is longer is garbage or a ring.
#define MAX_EXTENSIONS 64

static const char *const slot_names[IST_SLOT_COUNT] = {
#define SLOT(name, minor) "PJRT_" #name,
#include "backend/pjrt/slots.def"
#undef SLOT
};

static const int slot_minors[IST_SLOT_COUNT] = {
#define SLOT(name, minor) minor,
#include "backend/pjrt/slots.def"
#undef SLOT
};

const char *ist__pjrt_slot_name(int slot) {
  return slot_names[slot];
}

bool ist__pjrt_has(const ist__pjrt *pjrt, int slot) {
  size_t end = offsetof(PJRT_Api, slot) +
               ((size_t)slot + 1) * sizeof(pjrt->table->slot[0]);
  return end <= pjrt->table->struct_size && pjrt->table->slot[slot] != NULL;
}

void ist__pjrt_string(const char *text, size_t length, char *out, size_t size) {
  // A length that is too long ends at the terminator, if there is one.
  size_t n = 0;
  if (text != NULL) n = strnlen(text, length < size - 1 ? length : size - 1);
  if (n > 0) memcpy(out, text, n);
  out[n] = '\0';
}

// The two slots that return nothing are kept in the table as all the others.
static void call_void(const ist__pjrt *pjrt, int slot, void *args) {
  ist_pjrt_void_fn function;
  ist_pjrt_fn stored = pjrt->table->slot[slot];
  memcpy(&function, &stored, sizeof function);
  function(args);
}

// The log gets all of a message, line by line; very long lines are cut.
static void log_whole(const ist__pjrt *pjrt, ist_log_level level,
                      const char *text, size_t length) {
  if (pjrt->env->log == NULL) return;
  const char *end = text + length;
  while (text < end) {
    const char *newline = memchr(text, '\n', (size_t)(end - text));
    const char *stop = newline != NULL ? newline : end;
    char line[900];
    ist__pjrt_string(text, (size_t)(stop - text), line, sizeof line);
    if (line[0] != '\0') ist__log(pjrt->env, level, "%s: %s", pjrt->name, line);
    text = stop + 1;
  }
}

static void destroy_error(const ist__pjrt *pjrt, PJRT_Error *error) {
  if (error == NULL || !ist__pjrt_has(pjrt, IST_SLOT_Error_Destroy)) return;
  IST_PJRT_ARGS(PJRT_Error_Destroy_Args, destroy);
  destroy.error = error;
  call_void(pjrt, IST_SLOT_Error_Destroy, &destroy);
}

// Reads an error's code and first meaningful line, and destroys it.
static int32_t read_error(const ist__pjrt *pjrt, PJRT_Error *error,
                          ist_log_level level, char *line, size_t size) {
  int32_t native = PJRT_Error_Code_UNKNOWN;
  ist__pjrt_string("no message", 10, line, size);
  if (ist__pjrt_has(pjrt, IST_SLOT_Error_GetCode)) {
    IST_PJRT_ARGS(PJRT_Error_GetCode_Args, get);
    get.error = error;
    get.code = native;
    PJRT_Error *second = pjrt->table->slot[IST_SLOT_Error_GetCode](&get);
    if (second == NULL) native = get.code;
    destroy_error(pjrt, second);  // unread: errors of errors would not end
  }
  if (ist__pjrt_has(pjrt, IST_SLOT_Error_Message)) {
    // It has no result: a plugin that refuses leaves what was preset.
    IST_PJRT_ARGS(PJRT_Error_Message_Args, get);
    get.error = error;
    call_void(pjrt, IST_SLOT_Error_Message, &get);
    size_t length =
        get.message_size < MAX_MESSAGE ? get.message_size : MAX_MESSAGE;
    if (get.message != NULL && length > 0) {
      length = strnlen(get.message, length);
      ist__text_first_line(get.message, length, line, size);
      log_whole(pjrt, level, get.message, length);
    }
  }
  destroy_error(pjrt, error);
  return native;
}

static ist_code no_slot(const ist__pjrt *pjrt, int slot, ist_error *err) {
  return ist_error_set(err, IST_ERR_PLUGIN_SLOT,
                       "%s: %s cannot be called: the plugin (API 0.%d) has no "
                       "such slot; needs a plugin that has it (API 0.%d or "
                       "later)",
                       pjrt->name, slot_names[slot], pjrt->minor,
                       slot_minors[slot]);
}

// The lock under which a slot counts references, or NULL.
static pthread_mutex_t *lock_of(const ist__pjrt *pjrt, int slot,
                                const void *args) {
  const PJRT_Buffer *buffer;
  if (slot == IST_SLOT_Buffer_IncreaseExternalReferenceCount) {
    const PJRT_Buffer_IncreaseExternalReferenceCount_Args *take = args;
    buffer = take->buffer;
  } else if (slot == IST_SLOT_Buffer_DecreaseExternalReferenceCount) {
    const PJRT_Buffer_DecreaseExternalReferenceCount_Args *give = args;
    buffer = give->buffer;
  } else {
    return NULL;
  }
  if (pjrt->reference_locks == NULL) return NULL;
  // Buffers are allocations of like size: the product's high bits spread them
  // (Knuth, TAOCP 6.4, multiplicative hashing).
  uint64_t spread = (uint64_t)(uintptr_t)buffer * UINT64_C(0x9E3779B97F4A7C15);
  return &pjrt->reference_locks[spread >> 32 & (IST_PJRT_LOCKS - 1)];
}

static PJRT_Error *call_slot(const ist__pjrt *pjrt, int slot, void *args) {
  pthread_mutex_t *lock = lock_of(pjrt, slot, args);
  ist__step(pjrt->env, slot_names[slot]);
  if (lock == NULL) return pjrt->table->slot[slot](args);
  pthread_mutex_lock(lock);
  PJRT_Error *error = pjrt->table->slot[slot](args);
  pthread_mutex_unlock(lock);
  return error;
}

// Turns what a call returned into ours.
static ist_code answer(const ist__pjrt *pjrt, const char *name,
                       PJRT_Error *error, ist_code code, ist_error *err) {
  if (error == NULL) return IST_OK;
  char line[320];
  bool expected = err == NULL || atomic_load(&pjrt->trying) != 0;
  int32_t native =
      read_error(pjrt, error, expected ? IST_LOG_DEBUG : IST_LOG_WARNING, line,
                 sizeof line);
  if (native == PJRT_Error_Code_UNIMPLEMENTED) {
    return ist__error_native(err, IST_ERR_PLUGIN_SLOT, native,
                             "%s: %s cannot be used: the plugin does not "
                             "implement it: %s; needs a plugin that does",
                             pjrt->name, name, line);
  }
  if (native == PJRT_Error_Code_RESOURCE_EXHAUSTED) {
    return ist__error_native(err, IST_ERR_OUT_OF_DEVICE_MEMORY, native,
                             "%s: %s is out of memory: %s; needs memory that "
                             "is free",
                             pjrt->name, name, line);
  }
  // What is said of a program goes on after this.
  const char *needs =
      code == IST_ERR_PROGRAM ? "" : "; needs a call that the plugin can do";
  return ist__error_native(err, code, native, "%s: %s failed: %s (code %d)%s",
                           pjrt->name, name, line, (int)native, needs);
}

static ist_code made_to_fail(const ist__pjrt *pjrt, const char *name,
                             ist_error *err) {
  return ist_error_set(err, IST_ERR_INTERNAL,
                       "%s: %s failed: a test made it fail; needs no hook",
                       pjrt->name, name);
}

// The slots that end what a slot makes; 0, which ends errors, stands for none.
static const uint8_t ends[IST_SLOT_COUNT][2] = {
#define BUFFER IST_SLOT_Buffer_Destroy
#define EVENT IST_SLOT_Event_Destroy
    [IST_SLOT_Client_Create] = {IST_SLOT_Client_Destroy},
    [IST_SLOT_Client_Compile] = {IST_SLOT_LoadedExecutable_Destroy},
    [IST_SLOT_Executable_DeserializeAndLoad] =
        {IST_SLOT_LoadedExecutable_Destroy},
    [IST_SLOT_LoadedExecutable_GetExecutable] = {IST_SLOT_Executable_Destroy},
    [IST_SLOT_LoadedExecutable_Execute] = {BUFFER, EVENT},
    [IST_SLOT_Client_BufferFromHostBuffer] = {BUFFER, EVENT},
    [IST_SLOT_Client_CreateViewOfDeviceBuffer] = {BUFFER},
    [IST_SLOT_Client_CreateErrorBuffer] = {BUFFER},
    [IST_SLOT_Buffer_CopyToMemory] = {BUFFER},
    [IST_SLOT_Buffer_CopyToDevice] = {BUFFER},
    [IST_SLOT_Buffer_Bitcast] = {BUFFER},
    [IST_SLOT_Buffer_ToHostBuffer] = {EVENT},
    [IST_SLOT_Buffer_CopyRawToHost] = {EVENT},
    [IST_SLOT_Buffer_ReadyEvent] = {EVENT},
    [IST_SLOT_Buffer_IncreaseExternalReferenceCount] =
        {IST_SLOT_Buffer_DecreaseExternalReferenceCount},
#undef BUFFER
#undef EVENT
};

// Nothing is made that could not be ended: the slot that is missing, or -1.
static int missing(const ist__pjrt *pjrt, int slot) {
  if (!ist__pjrt_has(pjrt, slot)) return slot;
  for (int i = 0; i < 2; i++) {
    if (ends[slot][i] != 0 && !ist__pjrt_has(pjrt, ends[slot][i])) {
      return ends[slot][i];
    }
  }
  return -1;
}

ist_code ist__pjrt_call_as(const ist__pjrt *pjrt, int slot, void *args,
                           ist_code code, ist_error *err) {
  int lacks = missing(pjrt, slot);
  if (lacks >= 0) return no_slot(pjrt, lacks, err);
  if (ist__call_fails(pjrt->env, slot_names[slot])) {
    // An event is awaited all the same: until then the plugin fills, or reads,
    // memory that the caller frees next.
    if (slot == IST_SLOT_Event_Await) {
      destroy_error(pjrt, pjrt->table->slot[slot](args));
    }
    return made_to_fail(pjrt, slot_names[slot], err);
  }
  return answer(pjrt, slot_names[slot], call_slot(pjrt, slot, args), code, err);
}

ist_code ist__pjrt_call(const ist__pjrt *pjrt, int slot, void *args,
                        ist_error *err) {
  return ist__pjrt_call_as(pjrt, slot, args, IST_ERR_PLUGIN, err);
}

static void log_failure(const ist__pjrt *pjrt, const char *name,
                        PJRT_Error *error) {
  if (error == NULL) return;
  char line[320];
  read_error(pjrt, error, IST_LOG_WARNING, line, sizeof line);
  ist__log(pjrt->env, IST_LOG_WARNING, "%s: %s failed: %s", pjrt->name, name,
           line);
}

void ist__pjrt_end(const ist__pjrt *pjrt, int slot, void *args) {
  if (!ist__pjrt_has(pjrt, slot)) {
    ist__log(pjrt->env, IST_LOG_WARNING, "%s: %s is missing; memory is lost",
             pjrt->name, slot_names[slot]);
    return;
  }
  log_failure(pjrt, slot_names[slot], call_slot(pjrt, slot, args));
}

void ist__pjrt_give_back(ist_pjrt_void_fn deleter, void *what) {
  if (deleter != NULL) deleter(what);
}

ist_code ist__pjrt_await(const ist__pjrt *pjrt, PJRT_Event *event,
                         ist_code code, ist_error *err) {
  if (event == NULL) return IST_OK;
  IST_PJRT_ARGS(PJRT_Event_Await_Args, await);
  await.event = event;
  // Await returns the event's own error, so Event_Error, which aborts when it
  // is asked too early, is never called.
  ist_code result =
      ist__pjrt_call_as(pjrt, IST_SLOT_Event_Await, &await, code, err);
  IST_PJRT_ARGS(PJRT_Event_Destroy_Args, destroy);
  destroy.event = event;
  ist__pjrt_end(pjrt, IST_SLOT_Event_Destroy, &destroy);
  return result;
}

void ist__pjrt_error_free(const ist__pjrt *pjrt, PJRT_Error *error) {
  destroy_error(pjrt, error);
}

// ---- extensions

static const struct {
  int extension;
  size_t offset;
  const char *name;
} functions[IST__FUNCTION_COUNT] = {
#define FUNCTION(number, extension, member) \
  {PJRT_Extension_Type_##extension,         \
   offsetof(PJRT_##extension##_Extension, member), #member},
#include "backend/pjrt/functions.def"
#undef FUNCTION
};

const PJRT_Extension_Base *ist__pjrt_extension_next(
    const ist__pjrt *pjrt, const PJRT_Extension_Base *node, size_t index) {
  if (index >= MAX_EXTENSIONS) return NULL;
  return node == NULL ? pjrt->table->extension_start : node->next;
}

const PJRT_Extension_Base *ist__pjrt_extension(const ist__pjrt *pjrt,
                                               int type) {
  const PJRT_Extension_Base *node = ist__pjrt_extension_next(pjrt, NULL, 0);
  for (size_t i = 1; node != NULL && node->type != type; i++) {
    node = ist__pjrt_extension_next(pjrt, node, i);
  }
  return node;
}

// The function where its node is there and long enough, or NULL.
static ist_pjrt_fn find_function(const ist__pjrt *pjrt,
                                 enum ist__pjrt_function function) {
  ist_pjrt_fn found = NULL;
  const size_t offset = functions[function].offset;
  const PJRT_Extension_Base *node =
      ist__pjrt_extension(pjrt, functions[function].extension);
  if (node != NULL && node->struct_size >= offset + sizeof found) {
    memcpy(&found, (const char *)node + offset, sizeof found);
  }
  return found;
}

// The function that has to be there to end what a function makes.
static enum ist__pjrt_function end_of(enum ist__pjrt_function function) {
  switch (function) {
    case IST__FUNCTION_raw_create:
      return IST__FUNCTION_raw_destroy;
    case IST__FUNCTION_layout_of_buffer:
      return IST__FUNCTION_layout_destroy;
    default:
      return function;
  }
}

ist_code ist__pjrt_function_call(const ist__pjrt *pjrt,
                                 enum ist__pjrt_function function, void *args,
                                 ist_error *err) {
  const char *name = functions[function].name;
  ist_pjrt_fn found = find_function(pjrt, function);
  if (found == NULL || find_function(pjrt, end_of(function)) == NULL) {
    if (found != NULL) name = functions[end_of(function)].name;
    return ist_error_set(err, IST_ERR_PLUGIN_SLOT,
                         "%s: %s cannot be called: the plugin (API 0.%d) does "
                         "not have it; needs a plugin that has it",
                         pjrt->name, name, pjrt->minor);
  }
  if (ist__call_fails(pjrt->env, name)) return made_to_fail(pjrt, name, err);
  ist__step(pjrt->env, name);
  return answer(pjrt, name, found(args), IST_ERR_PLUGIN, err);
}

void ist__pjrt_function_end(const ist__pjrt *pjrt,
                            enum ist__pjrt_function function, void *args) {
  ist_pjrt_fn found = find_function(pjrt, function);
  if (found != NULL) log_failure(pjrt, functions[function].name, found(args));
}
