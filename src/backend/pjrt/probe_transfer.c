// SPDX-License-Identifier: Apache-2.0
// probe_transfer.c: copies to another memory and to another device, of a
// row-major buffer and of a permuted view.

#include <string.h>

#include "backend/pjrt/probe_part.h"

// Makes the copy that is tried. Gives the buffer, or NULL and the error.
typedef PJRT_Buffer *(*transfer)(ist__probe *p, PJRT_Buffer *buffer,
                                 const void *target, ist_error *err);

static PJRT_Buffer *to_memory(ist__probe *p, PJRT_Buffer *buffer,
                              const void *target, ist_error *err) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  const ist__pjrt_memory *memory = target;
  IST_PJRT_ARGS(PJRT_Buffer_CopyToMemory_Args, copy);
  copy.buffer = buffer;
  copy.dst_memory = memory->memory;
  ist_code code =
      ist__pjrt_call(pjrt, IST_SLOT_Buffer_CopyToMemory, &copy, err);
  if (code != IST_OK) return NULL;
  if (copy.dst_buffer == NULL) {
    ist__pjrt_no_buffer(pjrt, IST_SLOT_Buffer_CopyToMemory, err);
  }
  return copy.dst_buffer;
}

static PJRT_Buffer *to_device(ist__probe *p, PJRT_Buffer *buffer,
                              const void *target, ist_error *err) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  const ist__pjrt_device *device = target;
  IST_PJRT_ARGS(PJRT_Buffer_CopyToDevice_Args, copy);
  copy.buffer = buffer;
  copy.dst_device = device->device;
  ist_code code =
      ist__pjrt_call(pjrt, IST_SLOT_Buffer_CopyToDevice, &copy, err);
  if (code != IST_OK) return NULL;
  if (copy.dst_buffer == NULL) {
    ist__pjrt_no_buffer(pjrt, IST_SLOT_Buffer_CopyToDevice, err);
  }
  return copy.dst_buffer;
}

// Where the copy lies. A plugin that does not tell is believed.
static ist_code check_place(ist__probe *p, PJRT_Buffer *buffer,
                            const PJRT_Memory *memory,
                            const PJRT_Device *device, ist_error *err) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  IST_PJRT_ARGS(PJRT_Buffer_Memory_Args, in);
  IST_PJRT_ARGS(PJRT_Buffer_Device_Args, on);
  in.buffer = buffer;
  on.buffer = buffer;
  if (memory != NULL &&
      ist__pjrt_call(pjrt, IST_SLOT_Buffer_Memory, &in, NULL) == IST_OK &&
      in.memory != memory) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "the copy lies in another memory");
  }
  if (device != NULL &&
      ist__pjrt_call(pjrt, IST_SLOT_Buffer_Device, &on, NULL) == IST_OK &&
      on.device != device) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "the copy lies on another device");
  }
  return IST_OK;
}

// The values of a copy of a permuted view: by columns in memory where the copy
// is permuted too and comes out in the order of the device.
static ist_code check_permuted(ist__probe *p, PJRT_Buffer *copy,
                               ist_error *err) {
  static const int32_t logical[6] = {1, 3, -5, -2, 40000, 6};
  int64_t order[2] = {0, 0};
  ist_code code = ist__pjrt_order(&p->client->plugin.pjrt, copy, 2,
                                  ist__probe_six_dims, order, err);
  if (code != IST_OK) return code;
  bool by_columns = order[0] == 0 && p->memory->physical_order;
  code = ist__probe_comes_out(p, copy, by_columns ? ist__probe_six : logical,
                              sizeof logical, err);
  if (code != IST_ERR_PLUGIN) return code;
  return ist_error_set(err, IST_ERR_PLUGIN,
                       "other values come out of the copy of a permuted view");
}

static ist_code try_one(ist__probe *p, transfer copy, const void *target,
                        bool permuted, ist_error *err) {
  static const int64_t transposed[2] = {0, 1};
  const ist__pjrt_shape shape = {4, 2, ist__probe_six_dims, transposed};
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  const PJRT_Memory *memory =
      copy == to_memory ? ((const ist__pjrt_memory *)target)->memory : NULL;
  const PJRT_Device *device =
      copy == to_device ? ((const ist__pjrt_device *)target)->device : NULL;
  memcpy(p->block->bytes, ist__probe_six, sizeof ist__probe_six);
  PJRT_Buffer *from = permuted ? ist__probe_viewed(p, &shape, 0, err)
                               : ist__probe_copied(p, err);
  if (from == NULL) return err->code;
  PJRT_Buffer *to = copy(p, from, target, err);
  ist_code code = to != NULL ? ist__pjrt_ready(pjrt, to, err) : err->code;
  if (code == IST_OK) code = check_place(p, to, memory, device, err);
  if (code == IST_OK && permuted) code = check_permuted(p, to, err);
  if (code == IST_OK && !permuted) {
    code =
        ist__probe_comes_out(p, to, ist__probe_six, sizeof ist__probe_six, err);
  }
  ist__pjrt_destroy(pjrt, to);
  ist__pjrt_destroy(pjrt, from);
  return code;
}

static ist_code try_both(ist__probe *p, transfer copy, const void *target,
                         ist_error *err) {
  ist_code code = try_one(p, copy, target, false, err);
  if (code == IST_OK && ist__probe_has(p, IST__CAPABILITY_view_permuted)) {
    code = try_one(p, copy, target, true, err);
  }
  return code;
}

static void try_memories(ist__probe *p) {
  if (!ist__probe_tries(p, IST__CAPABILITY_copy_to_memory)) return;
  const ist__pjrt_device *device = &p->client->devices[p->device];
  ist_code code = IST_OK;
  ist_error err;
  uint64_t reached = 0;
  for (size_t m = 0; m < device->memory_count && code == IST_OK; m++) {
    const ist__pjrt_memory *memory = &device->memories[m];
    if (memory == p->memory || memory->memory == NULL) continue;
    code = try_both(p, to_memory, memory, &err);
    if (code == IST_OK) reached++;
  }
  if (code != IST_OK) {
    ist__probe_fails(p, IST__CAPABILITY_copy_to_memory, &err);
  } else if (reached == 0) {
    ist__probe_says(p, IST__CAPABILITY_copy_to_memory,
                    "not tried: the device has no other memory");
  } else {
    ist__probe_works(p, IST__CAPABILITY_copy_to_memory, reached);
  }
}

void ist__probe_transfers(ist__probe *p) {
  const ist__pjrt_client *client = p->client;
  ist_error err;
  try_memories(p);
  if (client->device_count < 2) {
    ist__probe_says(p, IST__CAPABILITY_copy_to_device,
                    "not tried: the client has no other device");
    return;
  }
  if (!ist__probe_tries(p, IST__CAPABILITY_copy_to_device)) return;
  size_t other = (p->device + 1) % client->device_count;
  ist_code code = try_both(p, to_device, &client->devices[other], &err);
  ist__probe_result(p, IST__CAPABILITY_copy_to_device, code, &err);
}
