// SPDX-License-Identifier: Apache-2.0
// The lying plugin's buffers: their life, and what they tell of themselves.
// How they are made and copied is in lying_transfer.c.

#include <stdlib.h>
#include <string.h>

#include "lying.h"

// Flips bits so high that the address faults when it is used on the host.
#define NOT_AN_ADDRESS 0x5a00000000000000u

size_t lying_type_bits(int32_t type) {
  static const uint8_t bits[34] = {
      0, 8, 8, 16, 32, 64, 8, 16, 32, 64, 16, 32, 64, 16, 64, 128, 8,
      8, 8, 8, 8,  4,  4,  0, 2,  2,  8,  8,  8,  4,  1,  1,  6,   6};
  return type > 0 && type < 34 ? bits[type] : 0;
}

bool lying_buffer_check(const PJRT_Buffer *buffer, const char *slot) {
  if (buffer != NULL && buffer->magic == LYING_MAGIC_BUFFER) return true;
  lying_violate(slot);
  return false;
}

PJRT_Buffer *lying_buffer_new(PJRT_Memory *memory, int32_t type,
                              const int64_t *dims, size_t rank) {
  PJRT_Buffer *buffer = calloc(1, sizeof *buffer);
  if (buffer == NULL) abort();
  buffer->magic = LYING_MAGIC_BUFFER;
  buffer->holders = 1;
  buffer->memory = memory;
  buffer->type = type;
  buffer->rank = rank;
  size_t count = 1;
  for (size_t i = 0; i < rank; i++) {
    buffer->dims[i] = dims[i];
    buffer->minor_to_major[i] = (int64_t)(rank - 1 - i);
    count *= (size_t)dims[i];
  }
  buffer->size = (count * lying_type_bits(type) + 7) / 8;
  atomic_fetch_add(&lying.buffers, 1);
  return buffer;
}

static void free_memory(PJRT_Buffer *buffer) {
  if (buffer->on_delete != NULL)
    buffer->on_delete(buffer->on_delete_ptr, buffer->on_delete_arg);
  buffer->on_delete = NULL;
  if (!buffer->foreign) free(buffer->data);
  buffer->data = NULL;
  buffer->foreign = false;
}

void lying_buffer_drop(PJRT_Buffer *buffer) {
  pthread_mutex_lock(&lying.lock);
  bool last = --buffer->holders == 0;
  pthread_mutex_unlock(&lying.lock);
  if (!last) return;
  free_memory(buffer);
  buffer->magic = 0;
  free(buffer);
  atomic_fetch_sub(&lying.buffers, 1);
}

static PJRT_Error *deleted(const PJRT_Buffer *buffer) {
  if (!buffer->deleted) return NULL;
  return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                     "lying plugin: the buffer has been deleted");
}

LYING_SLOT(Buffer_Destroy) {
  PJRT_Buffer_Destroy_Args *a = args;
  if (!lying_buffer_check(a->buffer, "Buffer_Destroy: not a buffer"))
    return NULL;
  if (a->buffer->external != 0)
    lying_violate("Buffer_Destroy: external references are held");
  if (a->buffer->ready != NULL) lying_event_drop(a->buffer->ready);
  a->buffer->ready = NULL;
  lying_buffer_drop(a->buffer);
  return NULL;
}

LYING_SLOT(Buffer_Delete) {
  PJRT_Buffer_Delete_Args *a = args;
  if (!lying_buffer_check(a->buffer, "Buffer_Delete: not a buffer"))
    return NULL;
  a->buffer->deleted = true;
  if (a->buffer->external == 0 && a->buffer->holders == 1)
    free_memory(a->buffer);
  return NULL;
}

LYING_SLOT(Buffer_IsDeleted) {
  PJRT_Buffer_IsDeleted_Args *a = args;
  a->is_deleted = a->buffer->deleted;
  return NULL;
}

LYING_SLOT(Buffer_ElementType) {
  PJRT_Buffer_ElementType_Args *a = args;
  a->type = a->buffer->type;
  return NULL;
}

LYING_SLOT(Buffer_Dimensions) {
  PJRT_Buffer_Dimensions_Args *a = args;
  a->dims = a->buffer->dims;
  a->num_dims = a->buffer->rank;
  return NULL;
}

LYING_SLOT(Buffer_UnpaddedDimensions) {
  PJRT_Buffer_UnpaddedDimensions_Args *a = args;
  a->unpadded_dims = a->buffer->dims;
  a->num_dims = a->buffer->rank;
  return NULL;
}

LYING_SLOT(Buffer_DynamicDimensionIndices) {
  PJRT_Buffer_DynamicDimensionIndices_Args *a = args;
  a->dynamic_dim_indices = NULL;
  a->num_dynamic_dims = 0;
  return NULL;
}

LYING_SLOT(Buffer_GetMemoryLayout) {
  static const int64_t same[LYING_MAX_RANK];
  static const int64_t tile[2] = {8, 128};
  static const int64_t ones[2] = {1, 1};
  static const size_t tile_size[1] = {2};
  PJRT_Buffer_GetMemoryLayout_Args *a = args;
  memset(&a->layout, 0xa5, sizeof a->layout);  // garbage, as real ones leave
  a->layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  a->layout.tiled.minor_to_major = a->buffer->minor_to_major;
  a->layout.tiled.minor_to_major_size = a->buffer->rank;
  a->layout.tiled.tile_dims = NULL;
  a->layout.tiled.tile_dim_sizes = NULL;
  a->layout.tiled.num_tiles = 0;
  const char *lie = lying.rules.layout;
  if (strcmp(lie, "unsorted") == 0) a->layout.tiled.minor_to_major = same;
  if (strcmp(lie, "short") == 0 && a->buffer->rank > 0)
    a->layout.tiled.minor_to_major_size--;
  if (strcmp(lie, "tiled") == 0) {
    a->layout.tiled.tile_dims = tile;
    a->layout.tiled.tile_dim_sizes = tile_size;
    a->layout.tiled.num_tiles = 1;
  }
  if (strcmp(lie, "tiled_by_one") == 0) {
    a->layout.tiled.tile_dims = ones;
    a->layout.tiled.tile_dim_sizes = tile_size;
    a->layout.tiled.num_tiles = 1;
  }
  if (strcmp(lie, "tiled_untold") == 0) a->layout.tiled.num_tiles = 1;
  return NULL;
}

LYING_SLOT(Buffer_OnDeviceSizeInBytes) {
  PJRT_Buffer_OnDeviceSizeInBytes_Args *a = args;
  a->on_device_size_in_bytes = a->buffer->size;
  return NULL;
}

LYING_SLOT(Buffer_Device) {
  PJRT_Buffer_Device_Args *a = args;
  a->device = a->buffer->memory->device;
  return NULL;
}

LYING_SLOT(Buffer_Memory) {
  PJRT_Buffer_Memory_Args *a = args;
  a->memory = a->buffer->memory;
  return NULL;
}

LYING_SLOT(Buffer_IsOnCpu) {
  PJRT_Buffer_IsOnCpu_Args *a = args;
  a->is_on_cpu = lying.rules.is_on_cpu;
  return NULL;
}

LYING_SLOT(Buffer_ReadyEvent) {
  PJRT_Buffer_ReadyEvent_Args *a = args;
  if (!lying_buffer_check(a->buffer, "Buffer_ReadyEvent: not a buffer"))
    return NULL;
  if (a->buffer->ready == NULL) {
    lying_work nothing = {0};
    a->event = lying_event_new(nothing, a->buffer);
    return NULL;
  }
  lying_event_hold(a->buffer->ready);
  a->event = a->buffer->ready;
  return NULL;
}

static uintptr_t address(const PJRT_Buffer *buffer) {
  uintptr_t real = (uintptr_t)buffer->data;
  if (lying.rules.opaque_shifted) real += 64;
  return lying.rules.addressable ? real : real ^ NOT_AN_ADDRESS;
}

LYING_SLOT(Buffer_UnsafePointer) {
  PJRT_Buffer_UnsafePointer_Args *a = args;
  PJRT_Error *error = deleted(a->buffer);
  if (error == NULL) a->buffer_pointer = address(a->buffer);
  return error;
}

LYING_SLOT(Buffer_OpaqueDeviceMemoryDataPointer) {
  PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args *a = args;
  PJRT_Error *error = deleted(a->buffer);
  if (error == NULL) a->device_memory_ptr = (void *)address(a->buffer);
  return error;
}

static PJRT_Error *count(PJRT_Buffer *buffer, int by) {
  if (!lying_buffer_check(buffer, "external reference: not a buffer"))
    return NULL;
  if (atomic_exchange(&buffer->counting, true))
    lying_violate("external references are counted by two threads at once");
  PJRT_Error *error = by > 0 ? deleted(buffer) : NULL;
  if (error == NULL) {
    buffer->external += by;
    atomic_fetch_add(&lying.externals, by);
    if (buffer->external < 0)
      lying_violate("more external references given back than taken");
    if (buffer->deleted && buffer->external == 0) free_memory(buffer);
  }
  atomic_store(&buffer->counting, false);
  return error;
}

LYING_SLOT(Buffer_IncreaseExternalReferenceCount) {
  PJRT_Buffer_IncreaseExternalReferenceCount_Args *a = args;
  return count(a->buffer, 1);
}

LYING_SLOT(Buffer_DecreaseExternalReferenceCount) {
  PJRT_Buffer_DecreaseExternalReferenceCount_Args *a = args;
  return count(a->buffer, -1);
}
