// SPDX-License-Identifier: Apache-2.0
// A program that speaks PJRT itself hands one of its buffers out over DLPack.
// What isthmus adds is in main; the rest is the program as it was.

#include <dlfcn.h>
#include <isthmus/pjrt.h>
#include <pjrt_c_api.h>  // may also come first
#include <stdio.h>

// Ends the program on an error of the plugin's.
static void must(const PJRT_Api *api, PJRT_Error *error) {
  if (error == NULL) return;
  PJRT_Error_Message_Args get = {
      .struct_size = PJRT_Error_Message_Args_STRUCT_SIZE, .error = error};
  api->PJRT_Error_Message(&get);
  fprintf(stderr, "%.*s\n", (int)get.message_size, get.message);
  _Exit(1);
}

static const PJRT_Api *load(const char *path) {
  void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const PJRT_Api *(*get)(void) = NULL;
  if (plugin != NULL) *(void **)&get = dlsym(plugin, "GetPjrtApi");
  if (get == NULL) {
    fprintf(stderr, "%s: no plugin: %s\n", path, dlerror());
    _Exit(1);
  }
  const PJRT_Api *api = get();
  PJRT_Plugin_Initialize_Args begin = {
      .struct_size = PJRT_Plugin_Initialize_Args_STRUCT_SIZE};
  must(api, api->PJRT_Plugin_Initialize(&begin));
  return api;
}

static PJRT_Buffer *make(const PJRT_Api *api, PJRT_Client *client) {
  static const float values[6] = {0, 1, 2, 3, 4, 5};
  static const int64_t dims[2] = {2, 3};
  PJRT_Client_AddressableDevices_Args list = {
      .struct_size = PJRT_Client_AddressableDevices_Args_STRUCT_SIZE,
      .client = client};
  must(api, api->PJRT_Client_AddressableDevices(&list));
  PJRT_Client_BufferFromHostBuffer_Args from = {
      .struct_size = PJRT_Client_BufferFromHostBuffer_Args_STRUCT_SIZE,
      .client = client,
      .data = values,
      .type = PJRT_Buffer_Type_F32,
      .dims = dims,
      .num_dims = 2,
      .device = list.addressable_devices[0]};
  must(api, api->PJRT_Client_BufferFromHostBuffer(&from));
  PJRT_Event_Destroy_Args end = {
      .struct_size = PJRT_Event_Destroy_Args_STRUCT_SIZE,
      .event = from.done_with_host_buffer};
  must(api, api->PJRT_Event_Destroy(&end));
  return from.buffer;
}

int main(int argc, char **argv) {
  const PJRT_Api *api = load(argc > 1 ? argv[1] : "");
  PJRT_Client_Create_Args create = {.struct_size =
                                        PJRT_Client_Create_Args_STRUCT_SIZE};
  must(api, api->PJRT_Client_Create(&create));
  PJRT_Buffer *buffer = make(api, create.client);

  // isthmus takes both: it destroys the buffer with its tensor, and the client
  // with the last of all that was made on it.
  const ist_pjrt_client_options client = {.struct_size = sizeof client,
                                          .ownership = IST_PJRT_TAKE};
  const ist_pjrt_buffer_options take = {.struct_size = sizeof take,
                                        .ownership = IST_PJRT_TAKE};
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_context *context = NULL;
  ist_backend *backend = NULL;
  ist_tensor *tensor = NULL;
  DLManagedTensorVersioned *out = NULL;
  ist_error err = {0};
  if (ist_context_create(NULL, &context, &err) ||
      ist_pjrt_client_adopt(context, api, create.client, &client, &backend,
                            &err) ||
      ist_pjrt_buffer_adopt(backend, buffer, &take, &tensor, &err) ||
      ist_tensor_export(tensor, NULL, &out, &receipt, &err)) {
    fprintf(stderr, "%s\n", err.message);
    return 1;
  }
  ist_tensor_release(tensor);
  ist_backend_release(backend);
  ist_context_release(context);

  // Any consumer of DLPack takes it from here; its deleter ends it all.
  const float *values = out->dl_tensor.data;
  printf("out: %s, %llu bytes moved, last value %g\n",
         ist_route_name(receipt.route), (unsigned long long)receipt.bytes_moved,
         (double)values[5]);
  out->deleter(out);
  return 0;
}
