// SPDX-License-Identifier: Apache-2.0
// The lying plugin around a real one: every slot is forwarded, and what the
// real one made and freed is counted.

#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "lying.h"

const PJRT_Api *lying_wrapped(void) {
  const char *path = lying.rules.wrap;
  if (strchr(path, '/') == NULL && getenv(path) != NULL) path = getenv(path);
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void *symbol = handle != NULL ? dlsym(handle, "GetPjrtApi") : NULL;
  if (symbol == NULL) {
    fprintf(stderr, "lying plugin: nothing to wrap: %s\n", dlerror());
    abort();
  }
  const PJRT_Api *(*get)(void);
  memcpy(&get, &symbol, sizeof get);
  const PJRT_Api *api = get();
  if (api == NULL) abort();
  return api;
}

// Outputs that are new things of the real plugin's, and what ends them.
typedef struct birth {
  int slot;
  size_t offset;  // of the output in the argument struct
  atomic_int *live;
} birth;

#define MAKES(name, field, kind) \
  {IST_SLOT_##name, offsetof(PJRT_##name##_Args, field), &lying.kind}
static const birth births[] = {
    MAKES(Client_Create, client, clients),
    MAKES(Client_Compile, executable, executables),
    MAKES(Executable_DeserializeAndLoad, loaded_executable, executables),
    MAKES(LoadedExecutable_GetExecutable, executable, executables),
    MAKES(Client_BufferFromHostBuffer, buffer, buffers),
    MAKES(Client_BufferFromHostBuffer, done_with_host_buffer, events),
    MAKES(Client_CreateViewOfDeviceBuffer, buffer, buffers),
    MAKES(Client_CreateErrorBuffer, buffer, buffers),
    MAKES(Buffer_CopyToMemory, dst_buffer, buffers),
    MAKES(Buffer_CopyToDevice, dst_buffer, buffers),
    MAKES(Buffer_Bitcast, out_buffer, buffers),
    MAKES(Buffer_ReadyEvent, event, events),
    MAKES(Buffer_ToHostBuffer, event, events),
    MAKES(Buffer_CopyRawToHost, event, events),
};
#undef MAKES

static const struct {
  int slot;
  atomic_int *live;
} deaths[] = {
    {IST_SLOT_Client_Destroy, &lying.clients},
    {IST_SLOT_LoadedExecutable_Destroy, &lying.executables},
    {IST_SLOT_Executable_Destroy, &lying.executables},
    {IST_SLOT_Buffer_Destroy, &lying.buffers},
    {IST_SLOT_Event_Destroy, &lying.events},
};

static void count_execution(const PJRT_LoadedExecutable_Execute_Args *a,
                            size_t outputs) {
  for (size_t d = 0; d < a->num_devices; d++) {
    for (size_t i = 0; i < outputs; i++)
      if (a->output_lists[d][i] != NULL) atomic_fetch_add(&lying.buffers, 1);
    if (a->device_complete_events != NULL &&
        a->device_complete_events[d] != NULL)
      atomic_fetch_add(&lying.events, 1);
  }
}

// How many outputs a real program has is asked of the real plugin.
static size_t outputs_of(PJRT_LoadedExecutable *loaded) {
  const PJRT_Api *real = lying.real;
  IST_PJRT_ARGS(PJRT_LoadedExecutable_GetExecutable_Args, get);
  get.loaded_executable = loaded;
  if (real->slot[IST_SLOT_LoadedExecutable_GetExecutable](&get) != NULL)
    abort();
  IST_PJRT_ARGS(PJRT_Executable_NumOutputs_Args, count);
  count.executable = get.executable;
  if (real->slot[IST_SLOT_Executable_NumOutputs](&count) != NULL) abort();
  IST_PJRT_ARGS(PJRT_Executable_Destroy_Args, destroy);
  destroy.executable = get.executable;
  real->slot[IST_SLOT_Executable_Destroy](&destroy);
  return count.num_outputs;
}

static void count(int slot, const void *args) {
  for (size_t i = 0; i < sizeof births / sizeof births[0]; i++) {
    if (births[i].slot != slot) continue;
    void *made;
    memcpy(&made, (const char *)args + births[i].offset, sizeof made);
    if (made != NULL) atomic_fetch_add(births[i].live, 1);
  }
  if (slot == IST_SLOT_LoadedExecutable_Execute) {
    const PJRT_LoadedExecutable_Execute_Args *a = args;
    count_execution(a, outputs_of(a->executable));
  }
  if (slot == IST_SLOT_Buffer_IncreaseExternalReferenceCount)
    atomic_fetch_add(&lying.externals, 1);
  if (slot == IST_SLOT_Buffer_DecreaseExternalReferenceCount)
    atomic_fetch_sub(&lying.externals, 1);
}

PJRT_Error *lying_forward(int slot, void *args) {
  if (slot == IST_SLOT_Error_GetCode) {
    PJRT_Error_GetCode_Args *a = args;
    if (lying_error_is_ours(a->error)) return lying_answer(slot, args);
  }
  for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++)
    if (deaths[i].slot == slot) atomic_fetch_sub(deaths[i].live, 1);
  PJRT_Error *error = lying.real->slot[slot](args);
  if (error == NULL) count(slot, args);
  return error;
}
