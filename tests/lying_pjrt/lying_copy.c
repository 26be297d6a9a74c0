// SPDX-License-Identifier: Apache-2.0
// How the lying plugin copies its buffers: to the host, whole and in part, to
// other memories and devices; and how one is seen as another type.

#include <stdlib.h>

#include "lying.h"

void lying_copy_bytes(lying_work *self) {
  if (!self->failed && self->size != 0)
    memcpy(self->dst, self->src, self->size);
}

// ---- to the host

// What is copied out, element by element: from b, in an order of dimensions.
typedef struct unpacking {
  const PJRT_Buffer *buffer;
  size_t item, bits, count;
  int64_t order[LYING_MAX_RANK];  // of the host's array, minor to major
} unpacking;

// Where an element lies on the device; `at` is its place in the host's array.
static size_t place_of(const unpacking *u, size_t at) {
  const PJRT_Buffer *b = u->buffer;
  size_t index[LYING_MAX_RANK] = {0};
  for (size_t k = 0; k < b->rank; k++) {
    size_t d = (size_t)u->order[k];
    index[d] = at % (size_t)b->true_dims[d];
    at /= (size_t)b->true_dims[d];
  }
  if (b->tiled) return lying_tiled_place(b, index);
  size_t place = 0, step = 1;
  for (size_t k = 0; k < b->rank; k++) {
    size_t d = (size_t)b->minor_to_major[k];
    if (LYING_IS(permuted, "swapped")) d = b->rank - 1 - k;
    place += index[d] * step;
    step *= (size_t)b->dims[d];
  }
  return place;
}

static void unpack(lying_work *self) {
  unpacking *u = (unpacking *)(uintptr_t)self->src;
  uint8_t *dst = self->dst;
  const uint8_t *from = u->buffer->data;
  if (u->buffer->error) self->failed = true;
  for (size_t i = 0; i < u->count && !self->failed; i++) {
    size_t at = place_of(u, i);
    if (u->bits >= 8) {
      memcpy(dst + i * u->item, from + at * u->item, u->item);
      continue;
    }
    dst[i] = 0;
    for (size_t k = 0; k < u->bits; k++) {
      size_t bit = at * u->bits + k;
      dst[i] = (uint8_t)(dst[i] | ((from[bit / 8] >> (bit % 8)) & 1) << k);
    }
  }
  size_t size = u->count * u->item;
  if (lying.rules.corrupt != 0 && size != 0 && !self->failed)
    dst[size - 1] = (uint8_t)(dst[size - 1] ^ 0x40);
  free(u);
}

// The host's array is row-major unless it asks for another order.
static PJRT_Error *read_order(const PJRT_Buffer_ToHostBuffer_Args *a,
                              unpacking *u) {
  size_t rank = a->src->rank;
  for (size_t k = 0; k < rank; k++) u->order[k] = (int64_t)(rank - 1 - k);
  if (a->host_layout == NULL || LYING_IS(host_layout, "ignored")) return NULL;
  if (LYING_IS(host_layout, "refused") ||
      a->host_layout->type != PJRT_Buffer_MemoryLayout_Type_Tiled)
    return lying_error(PJRT_Error_Code_UNIMPLEMENTED,
                       "lying plugin: no host layouts");
  if (a->host_layout->tiled.minor_to_major_size != rank)
    return lying_refuse("ToHostBuffer: a layout of another rank");
  for (size_t k = 0; k < rank; k++)
    u->order[k] = a->host_layout->tiled.minor_to_major[k];
  return NULL;
}

LYING_SLOT(Buffer_ToHostBuffer) {
  PJRT_Buffer_ToHostBuffer_Args *a = args;
  if (!lying_buffer_check(a->src, "ToHostBuffer: not a buffer")) return NULL;
  PJRT_Error *error = lying_buffer_deleted(a->src);
  if (error != NULL) return error;
  size_t bits = lying_type_bits(a->src->type);
  unpacking u = {.buffer = a->src,
                 .item = bits < 8 ? 1 : bits / 8,
                 .bits = bits,
                 .count = lying_count(a->src->true_dims, a->src->rank)};
  size_t need = u.count * u.item;
  if (a->dst == NULL) {
    a->dst_size = need;
    return NULL;
  }
  if (a->dst_size < need)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: %zu bytes wanted, %zu given", need,
                       a->dst_size);
  error = read_order(a, &u);
  if (error != NULL) return error;
  unpacking *kept = malloc(sizeof *kept);
  if (kept == NULL) abort();
  *kept = u;
  lying_work work = {unpack, a->dst, kept, need, false, false, NULL};
  a->event = lying_event_new(work, a->src);
  return NULL;
}

static void copy_raw(lying_work *self) {
  lying_copy_bytes(self);
  uint8_t *dst = self->dst;
  if (LYING_IS(copy_raw, "corrupt") && self->size != 0)
    dst[self->size - 1] = (uint8_t)(dst[self->size - 1] ^ 0x10);
}

LYING_SLOT(Buffer_CopyRawToHost) {
  PJRT_Buffer_CopyRawToHost_Args *a = args;
  if (!lying_buffer_check(a->buffer, "CopyRawToHost: not a buffer"))
    return NULL;
  PJRT_Error *error = lying_buffer_deleted(a->buffer);
  if (error != NULL) return error;
  int64_t have = (int64_t)a->buffer->size;
  if (a->offset < 0 || a->transfer_size < 0 || a->offset > have ||
      a->transfer_size > have - a->offset)
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: bytes outside the buffer");
  lying_work work = {copy_raw,
                     a->dst,
                     (char *)a->buffer->data + a->offset,
                     (size_t)a->transfer_size,
                     false,
                     false,
                     NULL};
  a->event = lying_event_new(work, a->buffer);
  return NULL;
}

// ---- to other memories

static void copy_buffer(lying_work *self) {
  PJRT_Buffer *from = (PJRT_Buffer *)(uintptr_t)self->src;
  PJRT_Buffer *to = self->dst;
  uint8_t *bytes = to->data;
  if (from->error) self->failed = true;
  if (!self->failed && to->size != 0) {
    memcpy(bytes, from->data, to->size);
    if (self->size != 0) bytes[to->size - 1] ^= 0x08;
  }
  lying_buffer_drop(from);
}

static PJRT_Error *copy_to(PJRT_Buffer *from, PJRT_Memory *memory,
                           const char *lie, PJRT_Buffer **out) {
  if (!lying_buffer_check(from, "Copy: not a buffer")) return NULL;
  PJRT_Error *error = lying_buffer_deleted(from);
  if (error != NULL) return error;
  if (strcmp(lie, "elsewhere") == 0) memory = from->memory;
  PJRT_Buffer *copy =
      lying_buffer_new(memory, from->type, from->dims, from->rank);
  memcpy(copy->minor_to_major, from->minor_to_major,
         sizeof copy->minor_to_major);
  copy->tiled = from->tiled;
  copy->size = from->size;
  copy->data = lying_take(memory, copy->size);
  if (copy->data == NULL) {
    lying_buffer_drop(copy);
    return lying_no_room(memory, from->size);
  }
  copy->error = from->error;
  pthread_mutex_lock(&lying.lock);
  from->holders++;
  pthread_mutex_unlock(&lying.lock);
  lying_work work = {copy_buffer, copy, from, strcmp(lie, "corrupt") == 0,
                     false,       true, from};
  copy->ready = lying_event_new(work, copy);
  *out = copy;
  return NULL;
}

LYING_SLOT(Buffer_CopyToMemory) {
  PJRT_Buffer_CopyToMemory_Args *a = args;
  return copy_to(a->buffer, a->dst_memory, lying.rules.copy_to_memory,
                 &a->dst_buffer);
}

LYING_SLOT(Buffer_CopyToDevice) {
  PJRT_Buffer_CopyToDevice_Args *a = args;
  return copy_to(a->buffer, &a->dst_device->memory[0],
                 lying.rules.copy_to_device, &a->dst_buffer);
}

// ---- bitcast

// The new buffer gets the memory, with its owner, and the old one is deleted.
static void hand_over(PJRT_Buffer *from, PJRT_Buffer *to) {
  to->data = from->data;
  to->foreign = from->foreign;
  to->on_delete = from->on_delete;
  to->on_delete_arg = from->on_delete_arg;
  to->on_delete_ptr = from->on_delete_ptr;
  to->host_done = from->host_done;
  from->data = NULL;
  from->foreign = false;
  from->on_delete = NULL;
  from->host_done = NULL;
  from->deleted = true;
}

LYING_SLOT(Buffer_Bitcast) {
  PJRT_Buffer_Bitcast_Args *a = args;
  if (!lying_buffer_check(a->buffer, "Bitcast: not a buffer")) return NULL;
  PJRT_Error *error = lying_buffer_deleted(a->buffer);
  if (error == NULL)
    error = lying_check_shape(a->element_type, a->dims, a->num_dims);
  if (error != NULL) return error;
  PJRT_Buffer *to = lying_buffer_new(a->buffer->memory, a->element_type,
                                     a->dims, a->num_dims);
  if (to->size != a->buffer->size || a->buffer->external != 0 || to->tiled ||
      a->buffer->tiled) {
    lying_buffer_drop(to);
    return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                       "lying plugin: no bitcast to another size, of tiles, "
                       "or of what is referenced");
  }
  bool keeps = LYING_IS(bitcast, "keeps");
  if (keeps || LYING_IS(bitcast, "copies")) {
    to->data = lying_take(to->memory, to->size);
    if (to->data == NULL) abort();
    if (to->size != 0) memcpy(to->data, a->buffer->data, to->size);
    a->buffer->deleted = !keeps;
    if (!keeps) lying_buffer_free(a->buffer);
  } else {
    hand_over(a->buffer, to);
  }
  a->out_buffer = to;
  return NULL;
}
