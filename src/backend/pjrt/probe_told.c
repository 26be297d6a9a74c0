// SPDX-License-Identifier: Apache-2.0
// probe_told.c: what a plugin tells of a buffer and of a device, compared with
// what is known to be true.

#include <string.h>

#include "backend/pjrt/probe_part.h"

static void try_unsafe_pointer(ist__probe *p, PJRT_Buffer *buffer) {
  if (!ist__probe_tries(p, IST__CAPABILITY_unsafe_pointer)) return;
  ist_error err;
  IST_PJRT_ARGS(PJRT_Buffer_UnsafePointer_Args, get);
  get.buffer = buffer;
  ist_code code = ist__pjrt_call(&p->client->plugin.pjrt,
                                 IST_SLOT_Buffer_UnsafePointer, &get, &err);
  if (code == IST_OK) {
    void *address = NULL;
    memcpy(&address, &get.buffer_pointer, sizeof address);
    code = ist__probe_values_at(address, ist__probe_six, sizeof ist__probe_six,
                                &err);
  }
  ist__probe_result(p, IST__CAPABILITY_unsafe_pointer, code, &err);
}

// The truth is where the values were found, or that the host can be viewed.
static void try_is_on_cpu(ist__probe *p, PJRT_Buffer *buffer) {
  if (!ist__probe_tries(p, IST__CAPABILITY_is_on_cpu)) return;
  ist_error err;
  bool on_host = ist__probe_has(p, IST__CAPABILITY_opaque_pointer) ||
                 ist__probe_has(p, IST__CAPABILITY_view);
  IST_PJRT_ARGS(PJRT_Buffer_IsOnCpu_Args, ask);
  ask.buffer = buffer;
  ist_code code = ist__pjrt_call(&p->client->plugin.pjrt,
                                 IST_SLOT_Buffer_IsOnCpu, &ask, &err);
  // Not read as a bool: it may hold any byte.
  bool told = *(const unsigned char *)&ask.is_on_cpu != 0;
  if (code == IST_OK && told && !on_host) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "it says that a buffer is on the host, and the host "
                         "does not find it");
  } else if (code == IST_OK && !told && on_host) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "it says that a buffer is not on the host, where the "
                         "host finds it");
  }
  ist__probe_result(p, IST__CAPABILITY_is_on_cpu, code, &err);
}

// A static buffer has no dynamic dimensions; one that has some takes a program.
static void try_dynamic(ist__probe *p, PJRT_Buffer *buffer) {
  if (!ist__probe_tries(p, IST__CAPABILITY_dynamic_dimensions)) return;
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  ist_error err;
  IST_PJRT_ARGS(PJRT_Buffer_DynamicDimensionIndices_Args, which);
  IST_PJRT_ARGS(PJRT_Buffer_UnpaddedDimensions_Args, sizes);
  which.buffer = buffer;
  sizes.buffer = buffer;
  ist_code code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_DynamicDimensionIndices,
                                 &which, &err);
  if (code == IST_OK) {
    code =
        ist__pjrt_call(pjrt, IST_SLOT_Buffer_UnpaddedDimensions, &sizes, &err);
  }
  if (code == IST_OK && which.num_dynamic_dims != 0) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "dynamic dimensions are told of a static buffer");
  } else if (code == IST_OK &&
             (sizes.num_dims != 2 || sizes.unpadded_dims == NULL ||
              memcmp(sizes.unpadded_dims, ist__probe_six_dims,
                     sizeof ist__probe_six_dims) != 0)) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "other extents are told than the buffer has");
  }
  // What works is said after a program has made one.
  if (code != IST_OK) {
    ist__probe_fails(p, IST__CAPABILITY_dynamic_dimensions, &err);
  }
}

static void try_memory_kinds(ist__probe *p, PJRT_Buffer *buffer) {
  if (!ist__probe_tries(p, IST__CAPABILITY_memory_kinds)) return;
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  const ist__pjrt_device *device = &p->client->devices[p->device];
  ist_error err;
  IST_PJRT_ARGS(PJRT_Buffer_Memory_Args, get);
  get.buffer = buffer;
  ist_code code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_Memory, &get, &err);
  if (code == IST_OK && p->memory->memory == NULL) {
    code = ist_error_set(&err, IST_ERR_PLUGIN, "the device tells no memories");
  }
  if (code == IST_OK && get.memory != p->memory->memory) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "a buffer lies in another memory than was asked for");
  }
  IST_PJRT_ARGS(PJRT_Device_AddressableMemories_Args, list);
  list.device = device->device;
  if (code == IST_OK) {
    code =
        ist__pjrt_call(pjrt, IST_SLOT_Device_AddressableMemories, &list, &err);
  }
  if (code == IST_OK && list.num_memories != device->memory_count) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "its list of memories cannot be: it tells of %zu",
                         list.num_memories);
  }
  if (code == IST_OK) {
    ist__probe_works(p, IST__CAPABILITY_memory_kinds, list.num_memories);
  } else {
    ist__probe_fails(p, IST__CAPABILITY_memory_kinds, &err);
  }
}

void ist__probe_told(ist__probe *p, PJRT_Buffer *buffer) {
  try_unsafe_pointer(p, buffer);
  try_is_on_cpu(p, buffer);
  try_dynamic(p, buffer);
  try_memory_kinds(p, buffer);
}

void ist__probe_stats(ist__probe *p) {
  if (!ist__probe_tries(p, IST__CAPABILITY_memory_stats)) return;
  ist_error err;
  IST_PJRT_ARGS(PJRT_Device_MemoryStats_Args, get);
  get.device = p->client->devices[p->device].device;
  ist_code code = ist__pjrt_call(&p->client->plugin.pjrt,
                                 IST_SLOT_Device_MemoryStats, &get, &err);
  bool has_peak = *(const unsigned char *)&get.peak_bytes_in_use_is_set != 0;
  bool has_limit = *(const unsigned char *)&get.bytes_limit_is_set != 0;
  if (code == IST_OK &&
      (get.bytes_in_use < 0 || (has_limit && get.bytes_limit < 0) ||
       (has_peak && get.peak_bytes_in_use < get.bytes_in_use))) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "what it tells of its memory cannot be");
  }
  ist__probe_result(p, IST__CAPABILITY_memory_stats, code, &err);
}
