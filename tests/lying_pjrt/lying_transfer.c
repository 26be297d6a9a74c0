// SPDX-License-Identifier: Apache-2.0
// How the lying plugin makes buffers from host memory, as copies and views,
// and copies them back.

#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "lying.h"

#define MAX_ALIGN 4096

static PJRT_Error *refuse(const char *what) {
  lying_violate(what);
  return lying_error(PJRT_Error_Code_INVALID_ARGUMENT, "lying plugin: %s",
                     what);
}

static PJRT_Error *check_shape(int32_t type, const int64_t *dims, size_t rank) {
  if (lying_type_bits(type) == 0) return refuse("element type aborts");
  if (type >= 32 && lying.rules.minor < 114)
    return refuse("F6 aborts before 0.114");
  if ((type == 30 || type == 31) && lying.rules.minor < 94)
    return refuse("S1 and U1 abort before 0.94");
  if (rank > LYING_MAX_RANK)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: rank %zu is too high", rank);
  for (size_t i = 0; i < rank; i++)
    if (dims[i] < 0) return refuse("a negative dimension aborts");
  return NULL;
}

static PJRT_Memory *pick(PJRT_Device *device, PJRT_Memory *memory) {
  if (memory == NULL) return &device->memory[0];
  return lying.rules.memory_ignored ? &memory->device->memory[0] : memory;
}

void *lying_device_memory(size_t size) {
  void *data = NULL;
  if (posix_memalign(&data, MAX_ALIGN, size != 0 ? size : 1) != 0) abort();
  memset(data, 0xee, size);
  return data;
}

// Packs a strided host array densely. Sub-byte values take a byte each in
// host arrays and are packed on the device, low bits first.
static void pack(uint8_t *dst, const PJRT_Client_BufferFromHostBuffer_Args *a,
                 size_t count) {
  size_t bits = lying_type_bits(a->type);
  size_t item = bits < 8 ? 1 : bits / 8;
  for (size_t i = 0; i < count; i++) {
    const uint8_t *from = a->data;
    size_t rest = i;
    int64_t dense = (int64_t)item;
    for (size_t d = a->num_dims; d-- > 0;) {
      size_t index = rest % (size_t)a->dims[d];
      rest /= (size_t)a->dims[d];
      int64_t stride = a->num_byte_strides != 0 ? a->byte_strides[d] : dense;
      from += (int64_t)index * stride;
      dense *= a->dims[d];
    }
    if (bits >= 8) {
      memcpy(dst + i * item, from, item);
    } else {
      for (size_t b = 0; b < bits; b++) {
        size_t at = i * bits + b;
        uint8_t bit = (uint8_t)((*from >> b) & 1);
        uint8_t mask = (uint8_t)(1u << (at % 8));
        dst[at / 8] = (uint8_t)(bit ? dst[at / 8] | mask : dst[at / 8] & ~mask);
      }
    }
  }
}

static void fill_device(lying_work *self) {
  if (!self->failed && self->size != 0)
    memcpy(self->dst, self->src, self->size);
  void *staging = (void *)(uintptr_t)self->src;
  free(staging);
  self->src = NULL;
}

LYING_SLOT(Client_BufferFromHostBuffer) {
  PJRT_Client_BufferFromHostBuffer_Args *a = args;
  PJRT_Error *error = check_shape(a->type, a->dims, a->num_dims);
  if (error != NULL) return error;
  if (a->device == NULL && a->memory == NULL)
    return refuse("BufferFromHostBuffer: neither device nor memory");
  if (a->device_layout != NULL)
    return refuse("BufferFromHostBuffer: a layout mistags data");
  PJRT_Memory *memory = pick(a->device, a->memory);
  PJRT_Buffer *buffer = lying_buffer_new(memory, a->type, a->dims, a->num_dims);
  buffer->data = lying_device_memory(buffer->size);
  size_t count = 1;
  for (size_t i = 0; i < buffer->rank; i++) count *= (size_t)buffer->dims[i];
  uint8_t *staging = lying_device_memory(buffer->size);
  memset(staging, 0, buffer->size);
  pack(staging, a, count);
  // The host is read during the call, the device is filled by the event.
  lying_work fill = {fill_device, buffer->data, staging, buffer->size, false};
  buffer->ready = lying_event_new(fill, buffer);
  lying_work nothing = {0};
  a->done_with_host_buffer = lying_event_new(nothing, NULL);
  a->buffer = buffer;
  return NULL;
}

static PJRT_Error *use_layout(PJRT_Buffer *buffer,
                              const PJRT_Buffer_MemoryLayout *layout) {
  if (layout->type != PJRT_Buffer_MemoryLayout_Type_Tiled)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: strides are not taken");
  if (lying_type_bits(buffer->type) < 8)
    return lying_error(PJRT_Error_Code_UNIMPLEMENTED,
                       "lying plugin: no layout for packed types");
  if (layout->tiled.minor_to_major_size != buffer->rank ||
      layout->tiled.num_tiles != 0)
    return refuse("a layout that does not fit");
  memcpy(buffer->minor_to_major, layout->tiled.minor_to_major,
         buffer->rank * sizeof(int64_t));
  return NULL;
}

void lying_call_late(void) {
  ist_pjrt_on_delete late = atomic_exchange(&lying.late, NULL);
  if (late != NULL) late(lying.late_ptr, lying.late_arg);
}

static PJRT_Error *check_view(
    const PJRT_Client_CreateViewOfDeviceBuffer_Args *a) {
  if (!lying.rules.addressable)
    return lying_error(PJRT_Error_Code_UNIMPLEMENTED,
                       "lying plugin: host memory is not device memory");
  if (a->on_delete_callback == NULL)
    return refuse("CreateView: a NULL on_delete_callback aborts later");
  if (a->stream != 0)
    return lying_error(PJRT_Error_Code_UNIMPLEMENTED,
                       "lying plugin: no streams");
  if ((uintptr_t)a->device_buffer_ptr % lying.rules.align != 0)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: %p is not aligned to %zu bytes",
                       a->device_buffer_ptr, lying.rules.align);
  return check_shape(a->element_type, a->dims, a->num_dims);
}

LYING_SLOT(Client_CreateViewOfDeviceBuffer) {
  PJRT_Client_CreateViewOfDeviceBuffer_Args *a = args;
  PJRT_Error *error = check_view(a);
  if (error != NULL) return error;
  if (lying.rules.view_eager) {
    a->on_delete_callback(a->device_buffer_ptr, a->on_delete_callback_arg);
    return lying_error(PJRT_Error_Code_INTERNAL,
                       "lying plugin: given back and failed");
  }
  lying_call_late();
  if (lying.rules.view_null) {
    lying.late_ptr = a->device_buffer_ptr;
    lying.late_arg = a->on_delete_callback_arg;
    atomic_store(&lying.late, a->on_delete_callback);
    return NULL;
  }
  // Before 0.66 the struct ends before `memory`.
  PJRT_Memory *memory =
      pick(a->device, lying.rules.minor < 66 ? NULL : a->memory);
  PJRT_Buffer *buffer =
      lying_buffer_new(memory, a->element_type, a->dims, a->num_dims);
  if (a->layout != NULL) error = use_layout(buffer, a->layout);
  if (error != NULL) {
    lying_buffer_drop(buffer);
    return error;
  }
  buffer->on_delete = a->on_delete_callback;
  buffer->on_delete_arg = a->on_delete_callback_arg;
  buffer->on_delete_ptr = a->device_buffer_ptr;
  if (lying.rules.view_copies) {
    buffer->data = lying_device_memory(buffer->size);
    if (buffer->size != 0)
      memcpy(buffer->data, a->device_buffer_ptr, buffer->size);
  } else {
    buffer->data = a->device_buffer_ptr;
    buffer->foreign = true;
  }
  a->buffer = buffer;
  return NULL;
}

LYING_SLOT(Client_CreateErrorBuffer) {
  PJRT_Client_CreateErrorBuffer_Args *a = args;
  PJRT_Error *error =
      check_shape(a->shape_element_type, a->shape_dims, a->shape_num_dims);
  if (error != NULL) return error;
  PJRT_Buffer *buffer = lying_buffer_new(a->memory, a->shape_element_type,
                                         a->shape_dims, a->shape_num_dims);
  buffer->data = lying_device_memory(buffer->size);
  buffer->error = true;
  a->buffer = buffer;
  return NULL;
}

// Values leave as a row-major host array, whatever the layout here is.
static void unpack(lying_work *self) {
  if (self->failed) return;
  const PJRT_Buffer *b = self->src;
  uint8_t *dst = self->dst;
  size_t bits = lying_type_bits(b->type);
  size_t item = bits < 8 ? 1 : bits / 8;
  for (size_t i = 0; i < self->size / item; i++) {
    size_t index[LYING_MAX_RANK];
    size_t rest = i;
    for (size_t d = b->rank; d-- > 0;) {
      index[d] = rest % (size_t)b->dims[d];
      rest /= (size_t)b->dims[d];
    }
    size_t at = 0, step = 1;
    for (size_t k = 0; k < b->rank; k++) {
      size_t d = (size_t)b->minor_to_major[k];
      at += index[d] * step;
      step *= (size_t)b->dims[d];
    }
    const uint8_t *from = b->data;
    if (bits >= 8) {
      memcpy(dst + i * item, from + at * item, item);
      continue;
    }
    dst[i] = 0;
    for (size_t k = 0; k < bits; k++) {
      size_t bit = at * bits + k;
      dst[i] = (uint8_t)(dst[i] | ((from[bit / 8] >> (bit % 8)) & 1) << k);
    }
  }
  if (lying.rules.corrupt && self->size != 0)
    dst[self->size - 1] = (uint8_t)(dst[self->size - 1] ^ 0x40);
}

LYING_SLOT(Buffer_ToHostBuffer) {
  PJRT_Buffer_ToHostBuffer_Args *a = args;
  if (!lying_buffer_check(a->src, "ToHostBuffer: not a buffer")) return NULL;
  if (a->src->deleted)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: the buffer has been deleted");
  size_t count = 1;
  for (size_t i = 0; i < a->src->rank; i++) count *= (size_t)a->src->dims[i];
  size_t bits = lying_type_bits(a->src->type);
  size_t need = count * (bits < 8 ? 1 : bits / 8);
  if (a->dst == NULL) {
    a->dst_size = need;
    return NULL;
  }
  if (a->dst_size < need)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: %zu bytes wanted, %zu given", need,
                       a->dst_size);
  lying_work work = {unpack, a->dst, a->src, need, false};
  a->event = lying_event_new(work, a->src);
  return NULL;
}
