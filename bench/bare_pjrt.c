// SPDX-License-Identifier: Apache-2.0
// A PJRT plugin called with nothing in between (see bare_pjrt.h).

#include "bare_pjrt.h"

#include <dlfcn.h>
#include <string.h>

#include "bench_clock.h"

// PJRT_Buffer_Type F32.
enum {
  BARE_F32 = 11
};

void bare_call(const bare_pjrt *bare, enum ist_pjrt_slot slot, void *args) {
  PJRT_Error *error = bare->api->slot[slot](args);
  if (!error) return;
  IST_PJRT_ARGS(PJRT_Error_Message_Args, message);
  message.error = error;
  (void)bare->api->slot[IST_SLOT_Error_Message](&message);
  bench_fail("plugin", message.message ? message.message : "no message");
}

bare_pjrt bare_open(const char *path) {
  bare_pjrt bare = {0};
  const PJRT_Api *(*get_api)(void) = NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) bench_fail("plugin", dlerror());
  void *symbol = dlsym(library, "GetPjrtApi");
  if (!symbol) bench_fail(path, "no GetPjrtApi");
  memcpy(&get_api, &symbol, sizeof get_api);
  bare.api = get_api();

  IST_PJRT_ARGS(PJRT_Plugin_Initialize_Args, start);
  bare_call(&bare, IST_SLOT_Plugin_Initialize, &start);
  IST_PJRT_ARGS(PJRT_Client_Create_Args, create);
  bare_call(&bare, IST_SLOT_Client_Create, &create);
  bare.client = create.client;
  IST_PJRT_ARGS(PJRT_Client_AddressableDevices_Args, devices);
  devices.client = bare.client;
  bare_call(&bare, IST_SLOT_Client_AddressableDevices, &devices);
  if (!devices.num_addressable_devices) bench_fail(path, "no device");
  bare.device = devices.addressable_devices[0];
  return bare;
}

PJRT_Buffer *bare_view(const bare_pjrt *bare, float *data, int64_t count,
                       ist_pjrt_on_delete on_delete) {
  IST_PJRT_ARGS(PJRT_Client_CreateViewOfDeviceBuffer_Args, view);
  view.client = bare->client;
  view.device_buffer_ptr = data;
  view.dims = &count;
  view.num_dims = 1;
  view.element_type = BARE_F32;
  view.device = bare->device;
  view.on_delete_callback = on_delete;
  bare_call(bare, IST_SLOT_Client_CreateViewOfDeviceBuffer, &view);
  return view.buffer;
}

void bare_await_event(const bare_pjrt *bare, PJRT_Event *event) {
  IST_PJRT_ARGS(PJRT_Event_Await_Args, wait);
  wait.event = event;
  bare_call(bare, IST_SLOT_Event_Await, &wait);
  IST_PJRT_ARGS(PJRT_Event_Destroy_Args, end);
  end.event = event;
  bare_call(bare, IST_SLOT_Event_Destroy, &end);
}

void bare_await(const bare_pjrt *bare, PJRT_Buffer *buffer) {
  IST_PJRT_ARGS(PJRT_Buffer_ReadyEvent_Args, ready);
  ready.buffer = buffer;
  bare_call(bare, IST_SLOT_Buffer_ReadyEvent, &ready);
  bare_await_event(bare, ready.event);
}

void bare_destroy(const bare_pjrt *bare, PJRT_Buffer *buffer) {
  IST_PJRT_ARGS(PJRT_Buffer_Destroy_Args, destroy);
  destroy.buffer = buffer;
  bare_call(bare, IST_SLOT_Buffer_Destroy, &destroy);
}
