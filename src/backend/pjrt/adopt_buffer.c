// SPDX-License-Identifier: Apache-2.0
// adopt_buffer.c: finds out what a buffer of a host program is, by asking the
// plugin for each thing.

#include "backend/pjrt/adopt_buffer.h"

#include "backend/pjrt/buffer.h"

static ist_code not_addressable(const ist__pjrt *pjrt, const char *what,
                                ist_error *err) {
  return ist_error_set(err, IST_ERR_NOT_ADDRESSABLE,
                       "%s: the buffer cannot be adopted: %s; needs one on a "
                       "device that the backend's client addresses",
                       pjrt->name, what);
}

static ist_code find_device(const ist__pjrt_client *client, PJRT_Buffer *buffer,
                            size_t *out, ist_error *err) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  IST_PJRT_ARGS(PJRT_Buffer_Device_Args, get);
  get.buffer = buffer;
  ist_code code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_Device, &get, err);
  if (code != IST_OK) return code;
  for (size_t d = 0; d < client->device_count; d++) {
    if (client->devices[d].device == get.device) {
      *out = d;
      return IST_OK;
    }
  }
  return not_addressable(pjrt,
                         "it is on no device of this client's that is "
                         "addressable here, or of another client",
                         err);
}

// A plugin that does not tell memories has one for each device.
static ist_code find_memory(const ist__pjrt_client *client,
                            const ist__pjrt_device *device, PJRT_Buffer *buffer,
                            size_t *out, ist_error *err) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  IST_PJRT_ARGS(PJRT_Buffer_Memory_Args, get);
  get.buffer = buffer;
  ist_code code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_Memory, &get, err);
  bool told = code == IST_OK;
  if (!told && code != IST_ERR_PLUGIN_SLOT) return code;
  for (size_t m = 0; m < device->memory_count; m++) {
    const ist__pjrt_memory *memory = &device->memories[m];
    if (told ? memory->memory == get.memory : memory->is_default) {
      *out = m;
      return IST_OK;
    }
  }
  return not_addressable(pjrt, "it is in no memory of its device that is known",
                         err);
}

// What is known already is told now: whether a buffer was deleted, or making it
// has failed. Nothing is waited for.
static ist_code check_values(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                             ist_error *err) {
  ist_code code = ist__pjrt_alive(pjrt, buffer, err);
  if (code != IST_OK) return code;
  IST_PJRT_ARGS(PJRT_Buffer_ReadyEvent_Args, get);
  get.buffer = buffer;
  code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_ReadyEvent, &get, err);
  if (code != IST_OK || get.event == NULL) return code;
  IST_PJRT_ARGS(PJRT_Event_IsReady_Args, ask);
  ask.event = get.event;
  bool known =
      ist__pjrt_call(pjrt, IST_SLOT_Event_IsReady, &ask, NULL) == IST_OK &&
      ask.is_ready;
  if (known) return ist__pjrt_await(pjrt, get.event, IST_ERR_BUFFER, err);
  IST_PJRT_ARGS(PJRT_Event_Destroy_Args, destroy);
  destroy.event = get.event;
  ist__pjrt_end(pjrt, IST_SLOT_Event_Destroy, &destroy);
  return IST_OK;
}

ist_code ist__pjrt_buffer_adopt(ist__pjrt_client *client, PJRT_Buffer *buffer,
                                size_t *device, size_t *memory,
                                ist__pjrt_tensor **out, ist_error *err) {
  *out = NULL;
  ist_code code = find_device(client, buffer, device, err);
  if (code != IST_OK) return code;
  ist__pjrt_device *found = &client->devices[*device];
  code = find_memory(client, found, buffer, memory, err);
  if (code == IST_OK) {
    code = check_values(&client->plugin.pjrt, buffer, err);
  }
  if (code == IST_OK) {
    code = ist__pjrt_tensor_of(client, &found->memories[*memory], buffer, out,
                               err);
  }
  if (code == IST_OK) (*out)->is_borrowed = true;
  return code;
}
