// SPDX-License-Identifier: Apache-2.0
// call.c: calls slots, and reads the errors that they return.

#define _POSIX_C_SOURCE 200809L  // strnlen
#include "backend/pjrt/call.h"

#include <string.h>

#include "base/text.h"

// Of a plugin's error; more is not read.
#define MAX_MESSAGE ((size_t)1 << 20)

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
    return ist_error_set(err, IST_ERR_INTERNAL,
                         "%s: %s failed: a test made it fail; needs no hook",
                         pjrt->name, slot_names[slot]);
  }
  PJRT_Error *error = call_slot(pjrt, slot, args);
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
                             pjrt->name, slot_names[slot], line);
  }
  if (native == PJRT_Error_Code_RESOURCE_EXHAUSTED) {
    return ist__error_native(err, IST_ERR_OUT_OF_DEVICE_MEMORY, native,
                             "%s: %s is out of memory: %s; needs memory that "
                             "is free",
                             pjrt->name, slot_names[slot], line);
  }
  // What is said of a program goes on after this.
  const char *needs =
      code == IST_ERR_PROGRAM ? "" : "; needs a call that the plugin can do";
  return ist__error_native(err, code, native, "%s: %s failed: %s (code %d)%s",
                           pjrt->name, slot_names[slot], line, (int)native,
                           needs);
}

ist_code ist__pjrt_call(const ist__pjrt *pjrt, int slot, void *args,
                        ist_error *err) {
  return ist__pjrt_call_as(pjrt, slot, args, IST_ERR_PLUGIN, err);
}

void ist__pjrt_end(const ist__pjrt *pjrt, int slot, void *args) {
  if (!ist__pjrt_has(pjrt, slot)) {
    ist__log(pjrt->env, IST_LOG_WARNING, "%s: %s is missing; memory is lost",
             pjrt->name, slot_names[slot]);
    return;
  }
  PJRT_Error *error = call_slot(pjrt, slot, args);
  if (error == NULL) return;
  char line[320];
  read_error(pjrt, error, IST_LOG_WARNING, line, sizeof line);
  ist__log(pjrt->env, IST_LOG_WARNING, "%s: %s failed: %s", pjrt->name,
           slot_names[slot], line);
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
