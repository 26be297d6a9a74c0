// SPDX-License-Identifier: Apache-2.0
// buffer.c: one PJRT_Buffer, call by call.

#include "backend/pjrt/buffer.h"
#include <inttypes.h>
#include <string.h>

bool ist__pjrt_type_is_safe(int minor, int32_t type) {
  if (type < 1 || type == 23) {
    return false;  // INVALID, TOKEN
  }
  if (type == 30 || type == 31) {
    return minor >= 94;  // S1, U1
  }
  if (type == 32 || type == 33) {
    return minor >= 114;  // F6
  }
  return type <= 29;
}

static ist_code check_shape(const ist__pjrt *pjrt, const ist__pjrt_shape *shape,
                            ist_error *err) {
  if (!ist__pjrt_type_is_safe(pjrt->minor, shape->type)) {
    return ist_error_set(err, IST_ERR_TARGET_DTYPE,
                         "%s: a buffer of PJRT element type %d cannot be made: "
                         "the plugin (API 0.%d) does not know it; needs a "
                         "newer plugin or another dtype",
                         pjrt->name, (int)shape->type, pjrt->minor);
  }
  for (int32_t i = 0; i < shape->ndim; i++) {
    if (shape->dims[i] < 0) {
      return ist_error_set(err, IST_ERR_SHAPE,
                           "%s: a buffer cannot be made: dimension %d is "
                           "%" PRId64 "; needs 0 or more",
                           pjrt->name, (int)i, shape->dims[i]);
    }
  }
  return IST_OK;
}

ist_code ist__pjrt_no_buffer(const ist__pjrt *pjrt, int slot, ist_error *err) {
  return ist_error_set(err, IST_ERR_PLUGIN,
                       "%s: %s gave no buffer and no error; needs a working "
                       "plugin",
                       pjrt->name, ist__pjrt_slot_name(slot));
}

static PJRT_Buffer_MemoryLayout tiled_layout(const ist__pjrt_shape *shape) {
  PJRT_Buffer_MemoryLayout layout = {.struct_size =
                                         PJRT_Buffer_MemoryLayout_SIZE};
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_SIZE;
  layout.tiled.minor_to_major = shape->minor_to_major;
  layout.tiled.minor_to_major_size = (size_t)shape->ndim;
  return layout;
}

ist_code ist__pjrt_view(const ist__pjrt_client *client,
                        const ist__pjrt_memory *memory,
                        const ist__pjrt_shape *shape, void *data,
                        ist_pjrt_on_delete on_delete, void *arg,
                        PJRT_Buffer **out, ist_error *err) {
  *out = NULL;
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  ist_code code = check_shape(pjrt, shape, err);
  if (code != IST_OK) return code;
  PJRT_Buffer_MemoryLayout layout;
  bool told = shape->minor_to_major != NULL;
  if (told) layout = tiled_layout(shape);
  // Every field is named, so that none is cleared first.
  PJRT_Client_CreateViewOfDeviceBuffer_Args view = {
      .struct_size = PJRT_Client_CreateViewOfDeviceBuffer_Args_SIZE,
      .extension_start = NULL,
      .client = client->client,
      .device_buffer_ptr = data,
      .dims = shape->dims,
      .num_dims = (size_t)shape->ndim,
      .element_type = shape->type,
      .layout = told ? &layout : NULL,
      .device = memory->device,
      .on_delete_callback = on_delete,
      .on_delete_callback_arg = arg,
      .stream = 0,
      .buffer = NULL,
      .memory = memory->is_default ? NULL : memory->memory};
  code = ist__pjrt_call(pjrt, IST_SLOT_Client_CreateViewOfDeviceBuffer, &view,
                        err);
  if (code != IST_OK) return code;
  *out = view.buffer;
  return IST_OK;
}

// An event that is not there stands for nothing: neither that values were
// copied nor that they are known.
static ist_code await_given(const ist__pjrt *pjrt, int slot, PJRT_Event *event,
                            ist_error *err) {
  if (event == NULL) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "%s: %s gave no event and no error; needs a working "
                         "plugin",
                         pjrt->name, ist__pjrt_slot_name(slot));
  }
  return ist__pjrt_await(pjrt, event, IST_ERR_BUFFER, err);
}

ist_code ist__pjrt_from_host(const ist__pjrt_client *client,
                             const ist__pjrt_memory *memory,
                             const ist__pjrt_shape *shape, const void *data,
                             PJRT_Buffer **out, ist_error *err) {
  static const char nothing[64];
  *out = NULL;
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  ist_code code = check_shape(pjrt, shape, err);
  if (code != IST_OK) return code;
  IST_PJRT_ARGS(PJRT_Client_BufferFromHostBuffer_Args, from);
  from.client = client->client;
  from.data = data != NULL ? data : nothing;  // an empty tensor's
  from.type = shape->type;
  from.dims = shape->dims;
  from.num_dims = (size_t)shape->ndim;
  from.host_buffer_semantics =
      PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  from.device = memory->device;
  from.memory = memory->is_default ? NULL : memory->memory;
  // device_layout stays NULL: two of three plugins mistag data with one.
  code = ist__pjrt_call(pjrt, IST_SLOT_Client_BufferFromHostBuffer, &from, err);
  if (code != IST_OK) return code;
  if (from.buffer == NULL) {
    code = ist__pjrt_no_buffer(pjrt, IST_SLOT_Client_BufferFromHostBuffer, err);
  }
  if (code == IST_OK) {
    code =
        ist__pjrt_await(pjrt, from.done_with_host_buffer, IST_ERR_BUFFER, err);
  } else {
    ist__pjrt_await(pjrt, from.done_with_host_buffer, IST_ERR_BUFFER, NULL);
  }
  if (code == IST_OK) {
    *out = from.buffer;
  } else {
    ist__pjrt_destroy(pjrt, from.buffer);
  }
  return code;
}

ist_code ist__pjrt_to_host(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                           void *target, uint64_t size, ist_error *err) {
  // Without a target a plugin tells the size; it trusts ours blindly else.
  // host_layout stays NULL: one of three plugins ignores it.
  IST_PJRT_ARGS(PJRT_Buffer_ToHostBuffer_Args, ask);
  ask.src = buffer;
  ist_code code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_ToHostBuffer, &ask, err);
  if (code != IST_OK) return code;
  if (ask.dst_size != size) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "%s: a buffer cannot be copied out: the plugin gives "
                         "%zu bytes; needs %" PRIu64,
                         pjrt->name, ask.dst_size, size);
  }
  if (size == 0) return IST_OK;
  IST_PJRT_ARGS(PJRT_Buffer_ToHostBuffer_Args, copy);
  copy.src = buffer;
  copy.dst = target;
  copy.dst_size = (size_t)size;
  code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_ToHostBuffer, &copy, err);
  if (code != IST_OK) return code;
  return await_given(pjrt, IST_SLOT_Buffer_ToHostBuffer, copy.event, err);
}

// A plugin that does not tell is believed; one that fails to tell is not: it
// may abort on what comes next.
ist_code ist__pjrt_alive(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                         ist_error *err) {
  IST_PJRT_ARGS(PJRT_Buffer_IsDeleted_Args, ask);
  ask.buffer = buffer;
  ist_code code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_IsDeleted, &ask, err);
  if (code == IST_ERR_PLUGIN_SLOT) return IST_OK;
  if (code != IST_OK || !ask.is_deleted) return code;
  return ist_error_set(err, IST_ERR_DELETED,
                       "%s: the buffer cannot be read: it was deleted or "
                       "given away; needs one that lives",
                       pjrt->name);
}

ist_code ist__pjrt_ready(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                         ist_error *err) {
  ist_code code = ist__pjrt_alive(pjrt, buffer, err);
  if (code != IST_OK) return code;
  IST_PJRT_ARGS(PJRT_Buffer_ReadyEvent_Args, get);
  get.buffer = buffer;
  code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_ReadyEvent, &get, err);
  if (code != IST_OK) return code;
  return await_given(pjrt, IST_SLOT_Buffer_ReadyEvent, get.event, err);
}

ist_code ist__pjrt_address(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                           void **out, ist_error *err) {
  *out = NULL;
  IST_PJRT_ARGS(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, get);
  get.buffer = buffer;
  ist_code code = ist__pjrt_call(
      pjrt, IST_SLOT_Buffer_OpaqueDeviceMemoryDataPointer, &get, err);
  if (code == IST_OK) *out = get.device_memory_ptr;
  return code;
}

ist_code ist__pjrt_hold(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                        ist_error *err) {
  IST_PJRT_ARGS(PJRT_Buffer_IncreaseExternalReferenceCount_Args, take);
  take.buffer = buffer;
  return ist__pjrt_call(pjrt, IST_SLOT_Buffer_IncreaseExternalReferenceCount,
                        &take, err);
}

void ist__pjrt_unhold(const ist__pjrt *pjrt, PJRT_Buffer *buffer) {
  IST_PJRT_ARGS(PJRT_Buffer_DecreaseExternalReferenceCount_Args, give);
  give.buffer = buffer;
  ist__pjrt_end(pjrt, IST_SLOT_Buffer_DecreaseExternalReferenceCount, &give);
}

// What is wrong with an answer of GetMemoryLayout, or NULL; the layout in out.
static const char *read_layout(const PJRT_Buffer_MemoryLayout *layout,
                               int32_t ndim, const int64_t *dims,
                               ist__told_layout *out) {
  if (layout->type != PJRT_Buffer_MemoryLayout_Type_Tiled) {
    return "given by strides";
  }
  const PJRT_Buffer_MemoryLayout_Tiled *tiled = &layout->tiled;
  if (tiled->minor_to_major_size != (size_t)ndim ||
      (ndim > 0 && tiled->minor_to_major == NULL)) {
    return "of another rank";
  }
  if (tiled->num_tiles != 0 &&
      (tiled->tile_dims == NULL || tiled->tile_dim_sizes == NULL)) {
    return "tiled by tiles that are not told";
  }
  ist__tiling tiling = {ndim,
                        dims,
                        tiled->minor_to_major,
                        tiled->tile_dims,
                        tiled->tile_dim_sizes,
                        tiled->num_tiles,
                        1};
  return ist__told_layout_read(&tiling, out) ? NULL : out->why;
}

static ist_code no_dense_order(const ist__pjrt *pjrt, const char *fault,
                               ist_error *err) {
  return ist_error_set(err, IST_ERR_TARGET_LAYOUT,
                       "%s: the buffer cannot be viewed: its layout is %s; "
                       "needs a dense order of dimensions",
                       pjrt->name, fault);
}

ist_code ist__pjrt_layout(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                          int32_t ndim, const int64_t *dims,
                          ist__told_layout *out, ist_error *err) {
  // The nested struct_size of the answer is garbage on real plugins.
  IST_PJRT_ARGS(PJRT_Buffer_GetMemoryLayout_Args, get);
  get.buffer = buffer;
  ist_code code =
      ist__pjrt_call(pjrt, IST_SLOT_Buffer_GetMemoryLayout, &get, err);
  if (code != IST_OK) return code;
  const char *fault = read_layout(&get.layout, ndim, dims, out);
  return fault == NULL ? IST_OK : no_dense_order(pjrt, fault, err);
}

ist_code ist__pjrt_order(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                         int32_t ndim, const int64_t *dims,
                         int64_t *minor_to_major, ist_error *err) {
  ist__told_layout layout;
  ist_code code = ist__pjrt_layout(pjrt, buffer, ndim, dims, &layout, err);
  if (code != IST_OK) return code;
  if (!layout.dense) return no_dense_order(pjrt, layout.why, err);
  if (ndim > 0) {
    memcpy(minor_to_major, layout.order, (size_t)ndim * sizeof(int64_t));
  }
  return IST_OK;
}

void ist__pjrt_destroy(const ist__pjrt *pjrt, PJRT_Buffer *buffer) {
  if (buffer == NULL) return;
  IST_PJRT_ARGS(PJRT_Buffer_Destroy_Args, destroy);
  destroy.buffer = buffer;
  ist__pjrt_end(pjrt, IST_SLOT_Buffer_Destroy, &destroy);
}
