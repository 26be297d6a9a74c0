// SPDX-License-Identifier: Apache-2.0
// The lying plugin's extensions, working and broken: RawBuffer (8), Stream (3)
// and Layouts (4).

#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>

#include "lying.h"

struct PJRT_RawBuffer {
  PJRT_Buffer *buffer;  // kept
};

struct PJRT_Layouts_MemoryLayout {
  char text[128];
  bool of_program;
};

struct PJRT_Layouts_SerializedLayout {
  char text[128];
};

#define FUNCTION(extension, name, args)                    \
  static PJRT_Error *enter_##extension##_##name(void *a) { \
    return lying_enter(LYING_##extension##_##name, a);     \
  }
#include "extension_functions.def"
#undef FUNCTION

// ---- RawBuffer

LYING_SLOT(RawBuffer_CreateRawAliasOfBuffer) {
  PJRT_RawBuffer_CreateRawAliasOfBuffer_Args *a = args;
  if (!lying_buffer_check(a->buffer, "RawBuffer: not a buffer")) return NULL;
  PJRT_Error *error = lying_buffer_deleted(a->buffer);
  if (error != NULL) return error;
  PJRT_RawBuffer *raw = calloc(1, sizeof *raw);
  if (raw == NULL) abort();
  raw->buffer = a->buffer;
  pthread_mutex_lock(&lying.lock);
  a->buffer->holders++;
  pthread_mutex_unlock(&lying.lock);
  atomic_fetch_add(&lying.others, 1);
  a->raw_buffer = raw;
  return NULL;
}

LYING_SLOT(RawBuffer_Destroy) {
  PJRT_RawBuffer_Destroy_Args *a = args;
  lying_buffer_drop(a->buffer->buffer);
  free(a->buffer);
  atomic_fetch_sub(&lying.others, 1);
  return NULL;
}

LYING_SLOT(RawBuffer_GetOnDeviceSizeInBytes) {
  PJRT_RawBuffer_GetOnDeviceSizeInBytes_Args *a = args;
  a->on_device_size_in_bytes = a->buffer->buffer->size;
  if (LYING_IS(raw_buffer, "wrong")) a->on_device_size_in_bytes++;
  return NULL;
}

LYING_SLOT(RawBuffer_GetMemorySpace) {
  PJRT_RawBuffer_GetMemorySpace_Args *a = args;
  a->memory_space = a->buffer->buffer->memory;
  return NULL;
}

static PJRT_Error *check_range(const PJRT_RawBuffer *raw, int64_t offset,
                               int64_t size) {
  int64_t have = (int64_t)raw->buffer->size;
  if (offset >= 0 && size >= 0 && offset <= have && size <= have - offset)
    return NULL;
  return lying_error(PJRT_Error_Code_INVALID_ARGUMENT,
                     "lying plugin: bytes outside the buffer");
}

LYING_SLOT(RawBuffer_CopyRawHostToDevice) {
  PJRT_RawBuffer_CopyRawHostToDevice_Args *a = args;
  PJRT_Error *error = check_range(a->buffer, a->offset, a->transfer_size);
  if (error != NULL) return error;
  lying_work work = {lying_copy_bytes,
                     (char *)a->buffer->buffer->data + a->offset,
                     a->src,
                     (size_t)a->transfer_size,
                     false,
                     false,
                     NULL};
  a->event = lying_event_new(work, a->buffer->buffer);
  return NULL;
}

LYING_SLOT(RawBuffer_CopyRawDeviceToHost) {
  PJRT_RawBuffer_CopyRawDeviceToHost_Args *a = args;
  PJRT_Error *error = check_range(a->buffer, a->offset, a->transfer_size);
  if (error != NULL) return error;
  size_t shift = LYING_IS(raw_buffer, "wrong") && a->transfer_size > 0 ? 1 : 0;
  lying_work work = {lying_copy_bytes,
                     a->dst,
                     (char *)a->buffer->buffer->data + a->offset,
                     (size_t)a->transfer_size - shift,
                     false,
                     false,
                     NULL};
  a->event = lying_event_new(work, a->buffer->buffer);
  return NULL;
}

LYING_SLOT(RawBuffer_GetHostPointer) {
  PJRT_RawBuffer_GetHostPointer_Args *a = args;
  const char *lie = LYING_IS(raw_buffer, "wrong") ? "shifted" : "";
  a->host_pointer = a->buffer->buffer->memory->is_host
                        ? (void *)lying_address(a->buffer->buffer, lie)
                        : NULL;
  return NULL;
}

// ---- Stream

LYING_SLOT(Stream_Get) {
  PJRT_Get_Stream_For_External_Ready_Events_Args *a = args;
  a->stream = LYING_IS(stream, "wrong") ? 0 : (intptr_t)a->device;
  return NULL;
}

LYING_SLOT(Stream_Wait) {
  PJRT_Wait_Until_Buffer_Ready_On_Stream_Args *a = args;
  if (!lying_buffer_check(a->buffer, "Stream: not a buffer")) return NULL;
  if (a->stream != (intptr_t)a->buffer->memory->device)
    return lying_refuse("Stream: a stream of nobody");
  return NULL;
}

// ---- Layouts

static PJRT_Layouts_MemoryLayout *layout_new(const int64_t *order,
                                             size_t rank) {
  PJRT_Layouts_MemoryLayout *layout = calloc(1, sizeof *layout);
  if (layout == NULL) abort();
  size_t used = (size_t)snprintf(layout->text, sizeof layout->text, "{");
  for (size_t i = 0; i < rank; i++)
    used += (size_t)snprintf(layout->text + used, sizeof layout->text - used,
                             "%s%d", i > 0 ? "," : "",
                             (int)(order ? order[i] : (int64_t)(rank - 1 - i)));
  snprintf(layout->text + used, sizeof layout->text - used, "}");
  if (LYING_IS(layouts, "wrong"))
    snprintf(layout->text, sizeof layout->text, "}no layout{");
  atomic_fetch_add(&lying.others, 1);
  return layout;
}

LYING_SLOT(Layouts_MemoryLayout_Destroy) {
  PJRT_Layouts_MemoryLayout_Destroy_Args *a = args;
  if (a->layout->of_program) {
    lying_violate("MemoryLayout_Destroy: a layout of an executable's own");
    return NULL;
  }
  free(a->layout);
  atomic_fetch_sub(&lying.others, 1);
  return NULL;
}

static void serialized_free(void *serialized) {
  free(serialized);
  atomic_fetch_sub(&lying.others, 1);
}

LYING_SLOT(Layouts_MemoryLayout_Serialize) {
  PJRT_Layouts_MemoryLayout_Serialize_Args *a = args;
  PJRT_Layouts_SerializedLayout *text = calloc(1, sizeof *text);
  if (text == NULL) abort();
  memcpy(text->text, a->layout->text, sizeof text->text);
  atomic_fetch_add(&lying.others, 1);
  a->serialized_bytes = text->text;
  a->serialized_bytes_size = strlen(text->text);
  a->serialized_layout = text;
  a->serialized_layout_deleter = serialized_free;
  return NULL;
}

LYING_SLOT(Layouts_Client_GetDefaultLayout) {
  PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *a = args;
  PJRT_Error *error = lying_check_shape(a->type, a->dims, a->num_dims);
  if (error == NULL) a->layout = layout_new(NULL, a->num_dims);
  return error;
}

LYING_SLOT(Layouts_Buffer_MemoryLayout) {
  PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *a = args;
  a->layout = layout_new(a->buffer->minor_to_major, a->buffer->rank);
  return NULL;
}

// Real plugins give the executable's own list, the same each time, and abort
// when a layout of it is destroyed. All of a program's are alike here.
static void list_layouts(lying_program *p, size_t count, size_t *out_count,
                         PJRT_Layouts_MemoryLayout ***out) {
  pthread_mutex_lock(&lying.lock);
  for (size_t i = 0; i < 2; i++) {
    if (p->layouts[i] != NULL) continue;
    p->layouts[i] = layout_new(NULL, p->rank);
    p->layouts[i]->of_program = true;
  }
  pthread_mutex_unlock(&lying.lock);
  *out_count = count;
  *out = p->layouts;
}

void lying_program_layouts_free(lying_program *p) {
  for (size_t i = 0; i < 2; i++) {
    if (p->layouts[i] == NULL) continue;
    free(p->layouts[i]);
    atomic_fetch_sub(&lying.others, 1);
  }
}

LYING_SLOT(Layouts_Executable_GetOutputLayouts) {
  PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *a = args;
  lying_program *p = a->executable->program;
  list_layouts(p, p->outputs, &a->num_outputs, &a->layouts);
  return NULL;
}

LYING_SLOT(Layouts_Executable_GetParameterLayouts) {
  PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *a = args;
  list_layouts(a->executable->program, 1, &a->num_parameters, &a->layouts);
  return NULL;
}

// ---- the chain

typedef union node {
  PJRT_Extension_Base base;
  PJRT_Layouts_Extension layouts;
  PJRT_RawBuffer_Extension raw_buffer;
  PJRT_Stream_Extension stream;
  char bytes[256];
} node;

// Breaks a node of `functions` functions as its rule says; false drops it.
static bool spoil_node(node *n, const char *rule, size_t functions, int first) {
  ist_pjrt_fn *slots = (ist_pjrt_fn *)(void *)(&n->base + 1);
  if (strcmp(rule, "none") == 0) return false;
  if (strcmp(rule, "small") == 0) n->base.struct_size = sizeof n->base;
  bool all = strcmp(rule, "null") == 0;
  for (size_t i = 0; i < functions; i++)
    if (all || lying.rules.drop[(size_t)first + i] != 0) slots[i] = NULL;
  if (strcmp(rule, "unimplemented") == 0)
    for (size_t i = 0; i < functions; i++)
      lying.rules.unimplemented[(size_t)first + i] = -1;
  return true;
}

static size_t own_nodes(node out[3]) {
  memset(out, 0, 3 * sizeof out[0]);
  size_t count = 0;
  out[0].base.type = PJRT_Extension_Type_Layouts;
  out[0].base.struct_size = PJRT_Layouts_Extension_SIZE;
  ist_pjrt_fn *at = &out[0].layouts.PJRT_Layouts_MemoryLayout_Destroy;
#define FUNCTION(extension, name, args)                                     \
  if (LYING_##extension##_##name == LYING_RawBuffer_CreateRawAliasOfBuffer) \
    at = &out[1].raw_buffer.PJRT_RawBuffer_CreateRawAliasOfBuffer;          \
  if (LYING_##extension##_##name == LYING_Stream_Get)                       \
    at = &out[2].stream.get_stream;                                         \
  *at++ = enter_##extension##_##name;
#include "extension_functions.def"
#undef FUNCTION
  out[1].base.type = PJRT_Extension_Type_RawBuffer;
  out[1].base.struct_size = PJRT_RawBuffer_Extension_SIZE;
  out[2].base.type = PJRT_Extension_Type_Stream;
  out[2].base.struct_size = PJRT_Stream_Extension_SIZE;
  node kept[3];
  const lying_rules *rules = &lying.rules;
  if (spoil_node(&out[0], rules->layouts, 7,
                 LYING_Layouts_MemoryLayout_Destroy))
    kept[count++] = out[0];
  if (spoil_node(&out[1], rules->raw_buffer, 7,
                 LYING_RawBuffer_CreateRawAliasOfBuffer))
    kept[count++] = out[1];
  if (spoil_node(&out[2], rules->stream, 2, LYING_Stream_Get))
    kept[count++] = out[2];
  memcpy(out, kept, count * sizeof kept[0]);
  return count;
}

// Copies of a wrapped plugin's nodes, but for those that a rule leaves out.
static size_t wrapped_nodes(node *out, size_t most) {
  size_t count = 0;
  for (PJRT_Extension_Base *from = lying.real->extension_start;
       from != NULL && count < most; from = from->next) {
    bool left_out = (from->type == 4 && LYING_IS(layouts, "none")) ||
                    (from->type == 8 && LYING_IS(raw_buffer, "none")) ||
                    (from->type == 3 && LYING_IS(stream, "none"));
    if (left_out || from->struct_size > sizeof out[0]) continue;
    memcpy(&out[count++], from, from->struct_size);
  }
  return count;
}

PJRT_Extension_Base *lying_extensions(void) {
  static node nodes[16];
  if (LYING_IS(chain, "none")) return NULL;
  size_t count =
      lying.real != NULL ? wrapped_nodes(nodes, 16) : own_nodes(nodes);
  if (LYING_IS(chain, "endless")) {
    // The longest chain that there is: each node leads to itself.
    nodes[0].base.type = 99;
    nodes[0].base.next = &nodes[0].base;
    return &nodes[0].base;
  }
  for (size_t i = 0; i < count; i++)
    nodes[i].base.next = i + 1 < count ? &nodes[i + 1].base : NULL;
  if (count > 0 && LYING_IS(chain, "loop"))
    nodes[count - 1].base.next = &nodes[0].base;
  return count > 0 ? &nodes[0].base : NULL;
}
