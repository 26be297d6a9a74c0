// SPDX-License-Identifier: Apache-2.0
// probe_extension.c: the extensions RawBuffer, Layouts and Stream, used on a
// few bytes where the plugin's chain has them.

#include <string.h>

#include "backend/pjrt/probe_part.h"

// ---- RawBuffer

static ist_code check_raw_facts(ist__probe *p, PJRT_RawBuffer *raw,
                                ist_error *err) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  IST_PJRT_ARGS(PJRT_RawBuffer_GetOnDeviceSizeInBytes_Args, size);
  IST_PJRT_ARGS(PJRT_RawBuffer_GetMemorySpace_Args, space);
  size.buffer = raw;
  space.buffer = raw;
  ist_code code =
      ist__pjrt_function_call(pjrt, IST__FUNCTION_raw_size, &size, err);
  if (code == IST_OK) {
    code = ist__pjrt_function_call(pjrt, IST__FUNCTION_raw_memory, &space, err);
  }
  if (code != IST_OK) return code;
  if (size.on_device_size_in_bytes < sizeof ist__probe_six) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "it tells of fewer bytes than the buffer has");
  }
  if (p->memory->memory != NULL && space.memory_space != p->memory->memory) {
    return ist_error_set(err, IST_ERR_PLUGIN, "it lies in another memory");
  }
  return IST_OK;
}

static ist_code check_raw_bytes(ist__probe *p, PJRT_RawBuffer *raw,
                                ist_error *err) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  int32_t got[6] = {0};
  IST_PJRT_ARGS(PJRT_RawBuffer_CopyRawDeviceToHost_Args, copy);
  copy.buffer = raw;
  copy.dst = got;
  copy.transfer_size = sizeof got;
  ist_code code =
      ist__pjrt_function_call(pjrt, IST__FUNCTION_raw_copy_out, &copy, err);
  if (code == IST_OK) {
    code = ist__pjrt_await(pjrt, copy.event, IST_ERR_BUFFER, err);
  }
  if (code != IST_OK || memcmp(got, ist__probe_six, sizeof got) == 0) {
    return code;
  }
  return ist_error_set(err, IST_ERR_PLUGIN, "other bytes came out");
}

// Memory of the device has no host pointer: none is told, or an error.
static ist_code check_raw_pointer(ist__probe *p, PJRT_RawBuffer *raw,
                                  ist_error *err) {
  IST_PJRT_ARGS(PJRT_RawBuffer_GetHostPointer_Args, get);
  get.buffer = raw;
  if (ist__pjrt_function_call(&p->client->plugin.pjrt,
                              IST__FUNCTION_raw_pointer, &get,
                              NULL) != IST_OK ||
      get.host_pointer == NULL) {
    return IST_OK;
  }
  return ist__probe_values_at(get.host_pointer, ist__probe_six,
                              sizeof ist__probe_six, err);
}

static void try_raw_buffer(ist__probe *p, PJRT_Buffer *buffer) {
  if (!ist__probe_tries(p, IST__CAPABILITY_raw_buffer)) return;
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  ist_error err;
  IST_PJRT_ARGS(PJRT_RawBuffer_CreateRawAliasOfBuffer_Args, make);
  make.buffer = buffer;
  ist_code code =
      ist__pjrt_function_call(pjrt, IST__FUNCTION_raw_create, &make, &err);
  if (code == IST_OK && make.raw_buffer == NULL) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "it gave no raw buffer and no error");
  }
  if (code == IST_OK) {
    code = check_raw_facts(p, make.raw_buffer, &err);
    if (code == IST_OK) code = check_raw_bytes(p, make.raw_buffer, &err);
    if (code == IST_OK) code = check_raw_pointer(p, make.raw_buffer, &err);
    IST_PJRT_ARGS(PJRT_RawBuffer_Destroy_Args, destroy);
    destroy.buffer = make.raw_buffer;
    ist__pjrt_function_end(pjrt, IST__FUNCTION_raw_destroy, &destroy);
  }
  ist__probe_result(p, IST__CAPABILITY_raw_buffer, code, &err);
}

// ---- Layouts

ist_code ist__probe_layout_text(ist__probe *p,
                                PJRT_Layouts_MemoryLayout *layout,
                                const char *want, ist_error *err) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  char text[64];
  IST_PJRT_ARGS(PJRT_Layouts_MemoryLayout_Serialize_Args, get);
  get.layout = layout;
  ist_code code =
      ist__pjrt_function_call(pjrt, IST__FUNCTION_layout_serialize, &get, err);
  if (code != IST_OK) return code;
  ist__pjrt_string(get.serialized_bytes, get.serialized_bytes_size, text,
                   sizeof text);
  if (get.serialized_layout_deleter != NULL) {
    get.serialized_layout_deleter(get.serialized_layout);
  }
  // Tiles may follow the order.
  size_t length = strlen(want);
  if (strncmp(text, want, length) == 0 &&
      (text[length] == '}' || text[length] == ':')) {
    return IST_OK;
  }
  return ist_error_set(err, IST_ERR_PLUGIN,
                       "it tells the layout \"%s\" of a row-major one", text);
}

static void try_layouts(ist__probe *p, PJRT_Buffer *buffer) {
  if (!ist__probe_tries(p, IST__CAPABILITY_layouts)) return;
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  ist_error err;
  IST_PJRT_ARGS(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, get);
  get.buffer = buffer;
  ist_code code =
      ist__pjrt_function_call(pjrt, IST__FUNCTION_layout_of_buffer, &get, &err);
  if (code == IST_OK && get.layout == NULL) {
    code =
        ist_error_set(&err, IST_ERR_PLUGIN, "it gave no layout and no error");
  }
  if (code == IST_OK) {
    code = ist__probe_layout_text(p, get.layout, "{1,0", &err);
    IST_PJRT_ARGS(PJRT_Layouts_MemoryLayout_Destroy_Args, destroy);
    destroy.layout = get.layout;
    ist__pjrt_function_end(pjrt, IST__FUNCTION_layout_destroy, &destroy);
  }
  ist__probe_result(p, IST__CAPABILITY_layouts, code, &err);
}

// ---- Stream

// The device's stream is told, and made to wait for a buffer.
static void try_stream(ist__probe *p, PJRT_Buffer *buffer) {
  if (!ist__probe_tries(p, IST__CAPABILITY_stream)) return;
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  ist_error err;
  IST_PJRT_ARGS(PJRT_Get_Stream_For_External_Ready_Events_Args, get);
  IST_PJRT_ARGS(PJRT_Wait_Until_Buffer_Ready_On_Stream_Args, wait);
  get.device = p->client->devices[p->device].device;
  ist_code code =
      ist__pjrt_function_call(pjrt, IST__FUNCTION_stream_get, &get, &err);
  if (code == IST_OK && get.stream == 0) {
    code = ist_error_set(&err, IST_ERR_PLUGIN, "no stream is told");
  }
  if (code == IST_OK) {
    wait.stream = get.stream;
    wait.buffer = buffer;
    code =
        ist__pjrt_function_call(pjrt, IST__FUNCTION_stream_wait, &wait, &err);
  }
  ist__probe_result(p, IST__CAPABILITY_stream, code, &err);
}

void ist__probe_extensions(ist__probe *p, PJRT_Buffer *buffer) {
  try_raw_buffer(p, buffer);
  try_layouts(p, buffer);
  if (p->memory->is_default) try_stream(p, buffer);
}
