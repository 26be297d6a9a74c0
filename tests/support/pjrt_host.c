// SPDX-License-Identifier: Apache-2.0
// pjrt_host.c: see pjrt_host.h.

#include "support/pjrt_host.h"

#include <dlfcn.h>

void host_call(const pjrt_host *host, int slot, void *args) {
  PJRT_Error *error = host->api->slot[slot](args);
  if (error == NULL) return;
  IST_PJRT_ARGS(PJRT_Error_Message_Args, get);
  get.error = error;
  host->api->slot[IST_SLOT_Error_Message](&get);
  fail_msg("slot %d: %.*s", slot, (int)get.message_size, get.message);
}

void host_open(pjrt_host *host, const char *key, const char *rules) {
  atomic_init(&host->returned, 0);
  bench_context(&host->bench, key, rules);
  void *handle = dlopen(plugin_path(key), RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) fail_msg("%s", dlerror());
  const PJRT_Api *(*get_api)(void);
  void *symbol = dlsym(handle, "GetPjrtApi");
  memcpy(&get_api, &symbol, sizeof symbol);
  host->api = get_api();
  IST_PJRT_ARGS(PJRT_Plugin_Initialize_Args, initialize);
  host_call(host, IST_SLOT_Plugin_Initialize, &initialize);
  IST_PJRT_ARGS(PJRT_Client_Create_Args, create);
  host_call(host, IST_SLOT_Client_Create, &create);
  host->client = create.client;
}

void host_close(pjrt_host *host) {
  ist_backend_release(host->bench.backend);
  host->bench.backend = NULL;
  if (host->client != NULL) {
    IST_PJRT_ARGS(PJRT_Client_Destroy_Args, destroy);
    destroy.client = host->client;
    host_call(host, IST_SLOT_Client_Destroy, &destroy);
  }
  bench_close(&host->bench);
}

void host_client_returned(void *self) {
  pjrt_host *host = self;
  atomic_fetch_add(&host->returned, 1);
}

void host_adopt(pjrt_host *host, ist_pjrt_ownership ownership) {
  bool borrows = ownership == IST_PJRT_BORROW;
  ist_pjrt_client_options how = {
      .struct_size = sizeof how,
      .ownership = ownership,
      .release = borrows ? host_client_returned : NULL,
      .release_self = host};
  bench_ok(&host->bench,
           ist_pjrt_client_adopt(host->bench.context, host->api, host->client,
                                 &how, &host->bench.backend, &host->bench.err));
  if (!borrows) host->client = NULL;
}

PJRT_Buffer *host_buffer(const pjrt_host *host, size_t device) {
  static const float values[6] = {0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f};
  static const int64_t dims[2] = {2, 3};
  IST_PJRT_ARGS(PJRT_Client_AddressableDevices_Args, list);
  list.client = host->client;
  host_call(host, IST_SLOT_Client_AddressableDevices, &list);
  assert_true(device < list.num_addressable_devices);
  IST_PJRT_ARGS(PJRT_Client_BufferFromHostBuffer_Args, from);
  from.client = host->client;
  from.data = values;
  from.type = 11;  // F32
  from.dims = dims;
  from.num_dims = 2;
  from.device = list.addressable_devices[device];
  host_call(host, IST_SLOT_Client_BufferFromHostBuffer, &from);
  IST_PJRT_ARGS(PJRT_Event_Destroy_Args, destroy);
  destroy.event = from.done_with_host_buffer;
  host_call(host, IST_SLOT_Event_Destroy, &destroy);
  return from.buffer;
}

void host_destroy_buffer(const pjrt_host *host, PJRT_Buffer *buffer) {
  IST_PJRT_ARGS(PJRT_Buffer_Destroy_Args, destroy);
  destroy.buffer = buffer;
  host_call(host, IST_SLOT_Buffer_Destroy, &destroy);
}

void host_delete_buffer(const pjrt_host *host, PJRT_Buffer *buffer) {
  IST_PJRT_ARGS(PJRT_Buffer_Delete_Args, delete_it);
  delete_it.buffer = buffer;
  host_call(host, IST_SLOT_Buffer_Delete, &delete_it);
}

void host_assert_values(const pjrt_host *host, PJRT_Buffer *buffer) {
  float got[6] = {0};
  IST_PJRT_ARGS(PJRT_Buffer_ToHostBuffer_Args, copy);
  copy.src = buffer;
  copy.dst = got;
  copy.dst_size = sizeof got;
  host_call(host, IST_SLOT_Buffer_ToHostBuffer, &copy);
  IST_PJRT_ARGS(PJRT_Event_Await_Args, await);
  await.event = copy.event;
  host_call(host, IST_SLOT_Event_Await, &await);
  IST_PJRT_ARGS(PJRT_Event_Destroy_Args, destroy);
  destroy.event = copy.event;
  host_call(host, IST_SLOT_Event_Destroy, &destroy);
  for (int i = 0; i < 6; i++) assert_true(got[i] == (float)i + 0.5f);
}
