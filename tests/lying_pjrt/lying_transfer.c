// SPDX-License-Identifier: Apache-2.0
// How the lying plugin makes buffers from host memory, as copies and views. How
// they are copied from there is in lying_copy.c.

#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "lying.h"

static bool is_taken(int32_t type) {
  if (lying.rules.types[0] == '\0') return true;
  for (const char *at = lying.rules.types; at != NULL; at = strchr(at, ',')) {
    if (*at == ',') at++;
    if (atoi(at) == type) return true;
  }
  return false;
}

PJRT_Error *lying_check_shape(int32_t type, const int64_t *dims, size_t rank) {
  if (lying_type_bits(type) == 0) return lying_refuse("element type aborts");
  if (type >= 32 && lying.rules.minor < 114)
    return lying_refuse("F6 aborts before 0.114");
  if ((type == 30 || type == 31) && lying.rules.minor < 94)
    return lying_refuse("S1 and U1 abort before 0.94");
  if (!is_taken(type))
    return lying_error(PJRT_Error_Code_UNIMPLEMENTED,
                       "lying plugin: no element type %d", (int)type);
  if (rank > LYING_MAX_RANK)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: rank %zu is too high", rank);
  for (size_t i = 0; i < rank; i++)
    if (dims[i] < 0) return lying_refuse("a negative dimension aborts");
  return NULL;
}

static PJRT_Memory *pick(PJRT_Device *device, PJRT_Memory *memory) {
  if (memory == NULL) return &device->memory[0];
  return LYING_IS(memory, "ignored") ? &memory->device->memory[0] : memory;
}

// Packs a strided host array densely. Sub-byte values take a byte each in
// host arrays and are packed on the device, low bits first.
static void pack(uint8_t *dst, const PJRT_Client_BufferFromHostBuffer_Args *a,
                 const PJRT_Buffer *buffer) {
  size_t count = lying_count(buffer->dims, buffer->rank);
  size_t bits = lying_type_bits(a->type);
  size_t item = bits < 8 ? 1 : bits / 8;
  for (size_t i = 0; i < count; i++) {
    const uint8_t *from = a->data;
    size_t rest = i, place = i, indices[LYING_MAX_RANK];
    int64_t dense = (int64_t)item;
    for (size_t d = a->num_dims; d-- > 0;) {
      size_t index = rest % (size_t)a->dims[d];
      rest /= (size_t)a->dims[d];
      indices[d] = index;
      int64_t stride = a->num_byte_strides != 0 ? a->byte_strides[d] : dense;
      from += (int64_t)index * stride;
      dense *= a->dims[d];
    }
    if (buffer->tiled) place = lying_tiled_place(buffer, indices);
    if (bits >= 8) {
      memcpy(dst + place * item, from, item);
    } else {
      for (size_t b = 0; b < bits; b++) {
        size_t at = place * bits + b;
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

// As real plugins: only the immutable and mutable zero-copy semantics, dense,
// aligned and not packed on the device.
static bool may_alias(const PJRT_Client_BufferFromHostBuffer_Args *a,
                      const PJRT_Memory *memory) {
  size_t bits = lying_type_bits(a->type);
  bool asked = a->host_buffer_semantics == 2 || a->host_buffer_semantics == 3;
  if (LYING_IS(zero_copy, "always")) asked = true;
  if (LYING_IS(zero_copy, "copies") || !asked || !memory->is_host || bits < 8)
    return false;
  if ((uintptr_t)a->data % (size_t)lying.rules.align != 0) return false;
  int64_t dense = (int64_t)bits / 8;
  for (size_t d = a->num_dims; d-- > 0;) {
    if (a->num_byte_strides != 0 && a->byte_strides[d] != dense) return false;
    dense *= a->dims[d];
  }
  return true;
}

static void alias_host(const PJRT_Client_BufferFromHostBuffer_Args *a,
                       PJRT_Buffer *buffer) {
  buffer->data = (void *)(uintptr_t)a->data;
  buffer->foreign = true;
}

static PJRT_Error *copy_host(const PJRT_Client_BufferFromHostBuffer_Args *a,
                             PJRT_Buffer *buffer) {
  buffer->data = lying_take(buffer->memory, buffer->size);
  if (buffer->data == NULL) return lying_no_room(buffer->memory, buffer->size);
  uint8_t *staging = calloc(1, buffer->size + 1);
  if (staging == NULL) abort();
  pack(staging, a, buffer);
  if (LYING_IS(copy_in, "corrupt") && buffer->size > 0)
    staging[buffer->size - 1] ^= 0x20;
  // The host is read during the call, the device is filled by the event.
  lying_work fill = {fill_device, buffer->data, staging, buffer->size,
                     false,       true,         NULL};
  buffer->ready = lying_event_new(fill, buffer);
  return NULL;
}

LYING_SLOT(Client_BufferFromHostBuffer) {
  PJRT_Client_BufferFromHostBuffer_Args *a = args;
  PJRT_Error *error = lying_check_shape(a->type, a->dims, a->num_dims);
  if (error != NULL) return error;
  if (a->device == NULL && a->memory == NULL)
    return lying_refuse("BufferFromHostBuffer: neither device nor memory");
  if (a->device_layout != NULL)
    return lying_refuse("BufferFromHostBuffer: a layout mistags data");
  PJRT_Memory *memory = pick(a->device, a->memory);
  PJRT_Buffer *buffer = lying_buffer_new(memory, a->type, a->dims, a->num_dims);
  if (may_alias(a, memory) && !buffer->tiled) {
    alias_host(a, buffer);
    buffer->host_done = lying_event_open();
    a->done_with_host_buffer = buffer->host_done;
    bool asked = a->host_buffer_semantics >= 2;
    if (!asked) {  // the lie: said to be done, and is not
      lying_event_hold(buffer->host_done);
      lying_event_finish(buffer->host_done);
      lying_event_drop(buffer->host_done);
      buffer->host_done = NULL;
    }
  } else {
    error = copy_host(a, buffer);
    if (error != NULL) {
      lying_buffer_drop(buffer);
      return error;
    }
    lying_work nothing = {0};
    a->done_with_host_buffer = lying_event_new(nothing, NULL);
  }
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
    return lying_refuse("a layout that does not fit");
  if (LYING_IS(permuted, "refused"))
    return lying_error(PJRT_Error_Code_UNIMPLEMENTED,
                       "lying plugin: no layouts");
  if (LYING_IS(permuted, "ignored")) return NULL;
  memcpy(buffer->minor_to_major, layout->tiled.minor_to_major,
         buffer->rank * sizeof(int64_t));
  return NULL;
}

void lying_call_late(void) {
  ist_pjrt_on_delete late = atomic_exchange(&lying.late, NULL);
  if (late != NULL) late(lying.late_ptr, lying.late_arg);
}

static PJRT_Error *check_view(
    const PJRT_Client_CreateViewOfDeviceBuffer_Args *a,
    const PJRT_Memory *memory) {
  if (!memory->is_host || LYING_IS(tiled, "all"))
    return lying_error(PJRT_Error_Code_UNIMPLEMENTED,
                       "lying plugin: host memory is not device memory");
  if (a->on_delete_callback == NULL)
    return lying_refuse("CreateView: a NULL on_delete_callback aborts later");
  if (a->stream != 0)
    return lying_error(PJRT_Error_Code_UNIMPLEMENTED,
                       "lying plugin: no streams");
  if ((uintptr_t)a->device_buffer_ptr % (size_t)lying.rules.align != 0)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: %p is not aligned to %ld bytes",
                       a->device_buffer_ptr, lying.rules.align);
  return lying_check_shape(a->element_type, a->dims, a->num_dims);
}

static void keep_owner(const PJRT_Client_CreateViewOfDeviceBuffer_Args *a,
                       PJRT_Buffer *buffer) {
  buffer->on_delete = a->on_delete_callback;
  buffer->on_delete_arg = a->on_delete_callback_arg;
  buffer->on_delete_ptr = a->device_buffer_ptr;
  buffer->data = a->device_buffer_ptr;
  buffer->foreign = true;
  if (!LYING_IS(view, "copy")) return;
  buffer->data = lying_take(buffer->memory, buffer->size);
  if (buffer->data == NULL) abort();
  buffer->foreign = false;
  if (buffer->size != 0)
    memcpy(buffer->data, a->device_buffer_ptr, buffer->size);
}

// The view that is none, which may be given back at once or never.
static PJRT_Error *no_view(const PJRT_Client_CreateViewOfDeviceBuffer_Args *a) {
  if (LYING_IS(view, "eager")) {
    a->on_delete_callback(a->device_buffer_ptr, a->on_delete_callback_arg);
    return lying_error(PJRT_Error_Code_INTERNAL,
                       "lying plugin: given back and failed");
  }
  lying_call_late();
  lying.late_ptr = a->device_buffer_ptr;
  lying.late_arg = a->on_delete_callback_arg;
  atomic_store(&lying.late, a->on_delete_callback);
  return NULL;
}

LYING_SLOT(Client_CreateViewOfDeviceBuffer) {
  PJRT_Client_CreateViewOfDeviceBuffer_Args *a = args;
  // Before 0.66 the struct ends before `memory`.
  PJRT_Memory *memory =
      pick(a->device, lying.rules.minor < 66 ? NULL : a->memory);
  PJRT_Error *error = check_view(a, memory);
  if (error != NULL) return error;
  if (LYING_IS(view, "eager") || LYING_IS(view, "null")) return no_view(a);
  lying_call_late();
  PJRT_Buffer *buffer =
      lying_buffer_new(memory, a->element_type, a->dims, a->num_dims);
  buffer->tiled = false;  // tagged as what it is
  lying_buffer_measure(buffer);
  if (a->layout != NULL) error = use_layout(buffer, a->layout);
  if (error != NULL) {
    lying_buffer_drop(buffer);
    return error;
  }
  keep_owner(a, buffer);
  a->buffer = buffer;
  return NULL;
}

LYING_SLOT(Client_CreateErrorBuffer) {
  PJRT_Client_CreateErrorBuffer_Args *a = args;
  PJRT_Error *error = lying_check_shape(a->shape_element_type, a->shape_dims,
                                        a->shape_num_dims);
  if (error != NULL) return error;
  if (a->memory == NULL) return lying_refuse("CreateErrorBuffer: no memory");
  PJRT_Buffer *buffer = lying_buffer_new(a->memory, a->shape_element_type,
                                         a->shape_dims, a->shape_num_dims);
  buffer->data = lying_take(a->memory, buffer->size);
  buffer->error = !LYING_IS(error_buffer, "fine");
  a->buffer = buffer;
  return NULL;
}
