// SPDX-License-Identifier: Apache-2.0
// The lying plugin's buffers: their life, and what they tell of themselves.
// How they are made and copied is in lying_transfer.c.

#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "lying.h"

// Flips bits so high that the address faults when it is used on the host.
#define NOT_AN_ADDRESS 0x5a00000000000000u

size_t lying_type_bits(int32_t type) {
  static const uint8_t bits[34] = {
      0, 8, 8, 16, 32, 64, 8, 16, 32, 64, 16, 32, 64, 16, 64, 128, 8,
      8, 8, 8, 8,  4,  4,  0, 2,  2,  8,  8,  8,  4,  1,  1,  6,   6};
  return type > 0 && type < 34 ? bits[type] : 0;
}

size_t lying_count(const int64_t *dims, size_t rank) {
  size_t count = 1;
  for (size_t i = 0; i < rank; i++) count *= (size_t)dims[i];
  return count;
}

// ---- memory

void *lying_take(PJRT_Memory *memory, size_t size) {
  void *data = NULL;
  size_t used = atomic_fetch_add(&memory->used, size) + size;
  if (lying.rules.room != 0 && used > (size_t)lying.rules.room) {
    atomic_fetch_sub(&memory->used, size);
    return NULL;
  }
  if (posix_memalign(&data, 4096, size != 0 ? size : 1) != 0) abort();
  memset(data, 0xee, size);
  atomic_fetch_add(&memory->count, 1);
  size_t most = atomic_load(&memory->most);
  while (used > most &&
         !atomic_compare_exchange_weak(&memory->most, &most, used))
    continue;
  return data;
}

void lying_give(PJRT_Memory *memory, void *data, size_t size) {
  if (data != NULL) atomic_fetch_sub(&memory->used, size);
  free(data);
}

PJRT_Error *lying_no_room(const PJRT_Memory *memory, size_t size) {
  return lying_error(PJRT_Error_Code_RESOURCE_EXHAUSTED,
                     "lying plugin: out of memory: %zu bytes wanted, %zu of "
                     "%ld are in use",
                     size, atomic_load(&memory->used), lying.rules.room);
}

// ---- life

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
  for (size_t i = 0; i < rank; i++) {
    buffer->dims[i] = dims[i];
    buffer->true_dims[i] = dims[i];
    buffer->minor_to_major[i] = (int64_t)(rank - 1 - i);
  }
  buffer->tiled = lying_tiles_shape(dims, rank);
  lying_buffer_measure(buffer);
  atomic_fetch_add(&lying.buffers, 1);
  return buffer;
}

void lying_buffer_free(PJRT_Buffer *buffer) {
  if (!buffer->foreign) lying_give(buffer->memory, buffer->data, buffer->size);
  buffer->data = NULL;
  buffer->foreign = false;
  ist_pjrt_on_delete on_delete = buffer->on_delete;
  buffer->on_delete = NULL;
  if (on_delete != NULL)
    on_delete(buffer->on_delete_ptr, buffer->on_delete_arg);
  PJRT_Event *done = buffer->host_done;
  buffer->host_done = NULL;
  if (done != NULL) lying_event_finish(done);
}

void lying_buffer_drop(PJRT_Buffer *buffer) {
  pthread_mutex_lock(&lying.lock);
  bool last = --buffer->holders == 0;
  pthread_mutex_unlock(&lying.lock);
  if (!last) return;
  lying_buffer_free(buffer);
  buffer->magic = 0;
  free(buffer);
  atomic_fetch_sub(&lying.buffers, 1);
}

PJRT_Error *lying_buffer_deleted(const PJRT_Buffer *buffer) {
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
  if (LYING_IS(delete, "ignored") || a->buffer->deleted) return NULL;
  a->buffer->deleted = true;
  if (LYING_IS(external_reference, "ignored") && !a->buffer->foreign &&
      a->buffer->data != NULL) {
    memset(a->buffer->data, 0xdd, a->buffer->size);  // as good as gone
  } else if (a->buffer->external == 0 && a->buffer->holders == 1) {
    lying_buffer_free(a->buffer);
  }
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
  a->unpadded_dims = a->buffer->true_dims;
  a->num_dims = a->buffer->rank;
  return NULL;
}

LYING_SLOT(Buffer_DynamicDimensionIndices) {
  static const size_t first[1];
  PJRT_Buffer_DynamicDimensionIndices_Args *a = args;
  a->dynamic_dim_indices = a->buffer->dynamic ? first : NULL;
  a->num_dynamic_dims = a->buffer->dynamic ? 1 : 0;
  return NULL;
}

LYING_SLOT(Buffer_GetMemoryLayout) {
  static const int64_t tile[2] = {2, 2};
  static const size_t tile_size[1] = {2};
  PJRT_Buffer_GetMemoryLayout_Args *a = args;
  memset(&a->layout, 0xa5, sizeof a->layout);  // garbage, as real ones leave
  a->layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  a->layout.tiled.minor_to_major = a->buffer->minor_to_major;
  a->layout.tiled.minor_to_major_size = a->buffer->rank;
  a->layout.tiled.tile_dims = NULL;
  a->layout.tiled.tile_dim_sizes = NULL;
  a->layout.tiled.num_tiles = 0;
  if (a->buffer->tiled) {
    a->layout.tiled.tile_dims = tile;
    a->layout.tiled.tile_dim_sizes = tile_size;
    a->layout.tiled.num_tiles = 1;
  }
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
  a->is_on_cpu = a->buffer->memory->is_host;
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

uintptr_t lying_address(const PJRT_Buffer *buffer, const char *lie) {
  uintptr_t real = (uintptr_t)buffer->data;
  if (strcmp(lie, "shifted") == 0) real += 64;
  if (strcmp(lie, "null") == 0) return 0;
  bool faults = !buffer->memory->is_host || strcmp(lie, "handle") == 0;
  return faults ? real ^ NOT_AN_ADDRESS : real;
}

LYING_SLOT(Buffer_UnsafePointer) {
  PJRT_Buffer_UnsafePointer_Args *a = args;
  PJRT_Error *error = lying_buffer_deleted(a->buffer);
  if (error == NULL)
    a->buffer_pointer = lying_address(a->buffer, lying.rules.unsafe);
  return error;
}

LYING_SLOT(Buffer_OpaqueDeviceMemoryDataPointer) {
  PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args *a = args;
  PJRT_Error *error = lying_buffer_deleted(a->buffer);
  if (error == NULL)
    a->device_memory_ptr = (void *)lying_address(a->buffer, lying.rules.opaque);
  return error;
}

static PJRT_Error *count(PJRT_Buffer *buffer, int by) {
  if (!lying_buffer_check(buffer, "external reference: not a buffer"))
    return NULL;
  if (atomic_exchange(&buffer->counting, true))
    lying_violate("external references are counted by two threads at once");
  PJRT_Error *error = by > 0 ? lying_buffer_deleted(buffer) : NULL;
  if (error == NULL) {
    buffer->external += by;
    atomic_fetch_add(&lying.externals, by);
    if (buffer->external < 0)
      lying_violate("more external references given back than taken");
    if (buffer->deleted && buffer->external == 0) lying_buffer_free(buffer);
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
