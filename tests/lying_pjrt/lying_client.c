// SPDX-License-Identifier: Apache-2.0
// The lying plugin's clients, devices and memories.

#include <stdlib.h>

#include "lying.h"

static const char *const kinds[2] = {"device", "pinned_host"};

static PJRT_Error *read_options(const PJRT_Client_Create_Args *a,
                                size_t *devices) {
  for (size_t i = 0; i < a->num_options; i++) {
    const PJRT_NamedValue *v = &a->create_options[i];
    if (v->struct_size != PJRT_NamedValue_SIZE)
      lying_violate("Client_Create: an option without struct_size");
    if (strncmp(v->name, "cpu_device_count", v->name_size) != 0)
      return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                         "lying plugin: no option named %.*s",
                         (int)v->name_size, v->name);
    if (v->type != PJRT_NamedValue_kInt64) {
      lying_violate("Client_Create: an option of a wrong type");
      return lying_error(PJRT_Error_Code_INVALID_ARGUMENT, "wrong type");
    }
    *devices = (size_t)v->int64_value;
  }
  return NULL;
}

LYING_SLOT(Client_Create) {
  PJRT_Client_Create_Args *a = args;
  size_t devices = (size_t)lying.rules.devices;
  PJRT_Error *error = read_options(a, &devices);
  if (error != NULL) return error;
  if (devices > LYING_MAX_DEVICES)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: too many devices");
  PJRT_Client *client = calloc(1, sizeof *client);
  if (client == NULL) abort();
  client->magic = LYING_MAGIC_CLIENT;
  client->device_count = devices;
  for (size_t i = 0; i < devices; i++) {
    PJRT_Device *device = &client->device[i];
    client->devices[i] = device;
    device->client = client;
    device->description.id = (int)i;
    for (size_t k = 0; k < 2; k++) {
      device->memory[k].id = (int)(2 * i + k);
      device->memory[k].kind = kinds[k];
      device->memory[k].is_host = LYING_IS(addressable, "1") ||
                                  (k == 1 && LYING_IS(addressable, "pinned"));
      device->memory[k].device = device;
      device->memories[k] = &device->memory[k];
    }
  }
  atomic_fetch_add(&lying.clients, 1);
  a->client = client;
  return NULL;
}

LYING_SLOT(Client_Destroy) {
  PJRT_Client_Destroy_Args *a = args;
  if (a->client == NULL || a->client->magic != LYING_MAGIC_CLIENT) {
    lying_violate("Client_Destroy: not a client");
    return NULL;
  }
  lying_call_late();
  lying_wait_for_work();
  if (atomic_load(&lying.buffers) != 0)
    lying_violate("Client_Destroy: buffers are alive");
  a->client->magic = 0;
  free(a->client);
  atomic_fetch_sub(&lying.clients, 1);
  return NULL;
}

LYING_SLOT(Client_PlatformName) {
  PJRT_Client_PlatformName_Args *a = args;
  a->platform_name = lying_text(lying.rules.platform, &a->platform_name_size);
  return NULL;
}

LYING_SLOT(Client_PlatformVersion) {
  PJRT_Client_PlatformVersion_Args *a = args;
  a->platform_version =
      lying_text(lying.rules.version, &a->platform_version_size);
  return NULL;
}

LYING_SLOT(Client_Devices) {
  PJRT_Client_Devices_Args *a = args;
  a->devices = a->client->devices;
  a->num_devices = a->client->device_count;
  return NULL;
}

LYING_SLOT(Client_AddressableDevices) {
  PJRT_Client_AddressableDevices_Args *a = args;
  a->addressable_devices = a->client->devices;
  a->num_addressable_devices = a->client->device_count;
  return NULL;
}

LYING_SLOT(DeviceDescription_Id) {
  PJRT_DeviceDescription_Id_Args *a = args;
  a->id = a->device_description->id;
  return NULL;
}

LYING_SLOT(DeviceDescription_Kind) {
  PJRT_DeviceDescription_Kind_Args *a = args;
  a->device_kind = lying_text("liar", &a->device_kind_size);
  return NULL;
}

LYING_SLOT(DeviceDescription_ToString) {
  PJRT_DeviceDescription_ToString_Args *a = args;
  a->to_string = lying_text("a lying device", &a->to_string_size);
  return NULL;
}

LYING_SLOT(Device_GetDescription) {
  PJRT_Device_GetDescription_Args *a = args;
  a->device_description = &a->device->description;
  return NULL;
}

LYING_SLOT(Device_IsAddressable) {
  PJRT_Device_IsAddressable_Args *a = args;
  a->is_addressable = true;
  return NULL;
}

LYING_SLOT(Device_LocalHardwareId) {
  PJRT_Device_LocalHardwareId_Args *a = args;
  a->local_hardware_id = a->device->description.id;
  return NULL;
}

LYING_SLOT(Device_AddressableMemories) {
  PJRT_Device_AddressableMemories_Args *a = args;
  a->memories = a->device->memories;
  a->num_memories = (size_t)lying.rules.memories;
  return NULL;
}

LYING_SLOT(Device_DefaultMemory) {
  PJRT_Device_DefaultMemory_Args *a = args;
  a->memory = &a->device->memory[0];
  return NULL;
}

LYING_SLOT(Memory_Id) {
  PJRT_Memory_Id_Args *a = args;
  a->id = a->memory->id;
  return NULL;
}

LYING_SLOT(Memory_Kind) {
  PJRT_Memory_Kind_Args *a = args;
  a->kind = lying_text(a->memory->kind, &a->kind_size);
  return NULL;
}

LYING_SLOT(Client_ProcessIndex) {
  ((PJRT_Client_ProcessIndex_Args *)args)->process_index = 0;
  return NULL;
}

LYING_SLOT(Client_AddressableMemories) {
  PJRT_Client_AddressableMemories_Args *a = args;
  a->addressable_memories = a->client->device[0].memories;
  a->num_addressable_memories =
      a->client->device_count != 0 ? (size_t)lying.rules.memories : 0;
  return NULL;
}

static PJRT_Error *look_up(PJRT_Client *client, int id, PJRT_Device **out) {
  if (id >= 0 && (size_t)id < client->device_count) {
    *out = client->devices[id];
    return NULL;
  }
  return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                     "lying plugin: no device %d", id);
}

LYING_SLOT(Client_LookupDevice) {
  PJRT_Client_LookupDevice_Args *a = args;
  return look_up(a->client, a->id, &a->device);
}

LYING_SLOT(Client_LookupAddressableDevice) {
  PJRT_Client_LookupAddressableDevice_Args *a = args;
  return look_up(a->client, a->local_hardware_id, &a->addressable_device);
}

LYING_SLOT(DeviceDescription_ProcessIndex) {
  ((PJRT_DeviceDescription_ProcessIndex_Args *)args)->process_index = 0;
  return NULL;
}

LYING_SLOT(DeviceDescription_DebugString) {
  PJRT_DeviceDescription_DebugString_Args *a = args;
  a->debug_string = lying_text("a lying device", &a->debug_string_size);
  return NULL;
}

LYING_SLOT(Memory_ToString) {
  PJRT_Memory_ToString_Args *a = args;
  a->to_string = lying_text(a->memory->kind, &a->to_string_size);
  return NULL;
}

LYING_SLOT(Memory_DebugString) {
  PJRT_Memory_DebugString_Args *a = args;
  a->debug_string = lying_text(a->memory->kind, &a->debug_string_size);
  return NULL;
}

LYING_SLOT(Memory_AddressableByDevices) {
  PJRT_Memory_AddressableByDevices_Args *a = args;
  a->devices = &a->memory->device->client->devices[a->memory->id / 2];
  a->num_devices = 1;
  return NULL;
}

LYING_SLOT(Device_MemoryStats) {
  PJRT_Device_MemoryStats_Args *a = args;
  PJRT_Memory *memory = &a->device->memory[0];
  a->bytes_in_use = (int64_t)atomic_load(&memory->used);
  a->peak_bytes_in_use = (int64_t)atomic_load(&memory->most);
  a->peak_bytes_in_use_is_set = true;
  a->num_allocs = (int64_t)atomic_load(&memory->count);
  a->num_allocs_is_set = true;
  a->bytes_limit = lying.rules.room != 0 ? lying.rules.room : INT64_C(1) << 30;
  a->bytes_limit_is_set = true;
  return NULL;
}
