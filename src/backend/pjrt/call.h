// SPDX-License-Identifier: Apache-2.0
// call.h: the one place that calls a slot of a PJRT plugin. Everything else
// here goes through it: it checks that the slot exists, lets a test make the
// call fail, and turns the plugin's error into ours.

#ifndef ISTHMUS_BACKEND_PJRT_CALL_H_
#define ISTHMUS_BACKEND_PJRT_CALL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "backend/pjrt/abi.h"
#include "base/env.h"
#include "base/error.h"

// The locks of one client's buffers; one lock for all cost a fifth more with
// eight threads on two cores.
enum {
  IST_PJRT_LOCKS = 16
};

// A plugin's table, with what a message about it needs.
typedef struct ist__pjrt {
  const PJRT_Api *table;
  const ist__env *env;
  int minor;
  // Plugins crash when two threads count external references of one buffer at
  // once: those two slots are called under one of these, by the buffer's
  // address, and nothing else is. NULL before there is a client.
  pthread_mutex_t *reference_locks;
  // While it is only tried out what a plugin can do, refusals are expected:
  // the log has them for debugging, and a user is not warned. Counts who tries.
  atomic_uint trying;
  char name[64];  // "pjrt:cpu"; before a client exists "pjrt:FILE.so"
} ist__pjrt;

// Functions of extensions that are called: IST__FUNCTION_stream_get and so on.
enum ist__pjrt_function {
#define FUNCTION(name, extension, member) IST__FUNCTION_##name,
#include "backend/pjrt/functions.def"
#undef FUNCTION
  IST__FUNCTION_COUNT
};

// "PJRT_Buffer_Delete"; index is one of enum ist_pjrt_slot.
const char *ist__pjrt_slot_name(int slot);

// True when the slot lies inside the table and is not NULL.
bool ist__pjrt_has(const ist__pjrt *pjrt, int slot);

// Calls a slot with its argument struct. The log gets all that the plugin says
// of a failure: as a warning, or for debugging where err is NULL, for then the
// caller can do without. On failure args may hold anything
// that the plugin wrote: look at no output.
// Fails: PLUGIN_SLOT (not there, or answers that it is not implemented),
// OUT_OF_DEVICE_MEMORY, PLUGIN (the plugin's own error, its code in native),
// INTERNAL (a test).
ist_code ist__pjrt_call(const ist__pjrt *pjrt, int slot, void *args,
                        ist_error *err);

// The same with another code in place of PLUGIN.
ist_code ist__pjrt_call_as(const ist__pjrt *pjrt, int slot, void *args,
                           ist_code code, ist_error *err);

// Calls a slot that ends something (Destroy, Delete, Decrease). It is never
// made to fail by a test; what the plugin answers is logged only.
void ist__pjrt_end(const ist__pjrt *pjrt, int slot, void *args);

// The node after node in the plugin's chain of extensions; NULL asks for the
// first. A chain that does not end is cut: index counts the nodes before.
const PJRT_Extension_Base *ist__pjrt_extension_next(
    const ist__pjrt *pjrt, const PJRT_Extension_Base *node, size_t index);

// The first node of a type in the chain, or NULL.
const PJRT_Extension_Base *ist__pjrt_extension(const ist__pjrt *pjrt, int type);

// ist__pjrt_call and ist__pjrt_end for a function of an extension.
ist_code ist__pjrt_function_call(const ist__pjrt *pjrt,
                                 enum ist__pjrt_function function, void *args,
                                 ist_error *err);
void ist__pjrt_function_end(const ist__pjrt *pjrt,
                            enum ist__pjrt_function function, void *args);

// Frees an error that a callback was given; NULL is none.
void ist__pjrt_error_free(const ist__pjrt *pjrt, PJRT_Error *error);

// Calls what a plugin gave to free something of its own with; NULL: nothing.
void ist__pjrt_give_back(ist_pjrt_void_fn deleter, void *what);

// The reading ends of the ABI's (pointer, size) strings: copies at most
// size - 1 bytes, the rest is cut; NULL gives "".
void ist__pjrt_string(const char *text, size_t length, char *out, size_t size);

// An event that a slot gave, or NULL: waits for it, reads its error and
// destroys it. code is that of an error of the event.
ist_code ist__pjrt_await(const ist__pjrt *pjrt, PJRT_Event *event,
                         ist_code code, ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_CALL_H_
