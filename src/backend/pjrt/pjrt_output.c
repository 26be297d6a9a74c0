// SPDX-License-Identifier: Apache-2.0
// pjrt_output.c: a buffer that a program made becomes a buffer of the backend:
// what the plugin tells of it is read, checked and kept.

#include <string.h>

#include "backend/pjrt/buffer.h"
#include "backend/pjrt/pjrt_tensor.h"
#include "base/alloc.h"

static ist_code read_dtype(const ist__pjrt *pjrt,
                           const ist__pjrt_memory *memory, PJRT_Buffer *buffer,
                           const ist__dtype **out, ist_error *err) {
  IST_PJRT_ARGS(PJRT_Buffer_ElementType_Args, get);
  get.buffer = buffer;
  ist_code code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_ElementType, &get, err);
  if (code != IST_OK) return code;
  for (int32_t n = 0; n < ist__dtype_count(); n++) {
    const ist__dtype *dtype = ist__dtype_at(n);
    if (dtype->pjrt != 0 && dtype->pjrt == get.type &&
        (memory->capability->dtypes >> n & 1) != 0) {
      *out = dtype;
      return IST_OK;
    }
  }
  return ist_error_set(err, IST_ERR_TARGET_DTYPE,
                       "%s: an output cannot be a tensor: its PJRT element "
                       "type is %d; needs one that DLPack has",
                       pjrt->name, (int)get.type);
}

static ist_code bad_dynamic(const ist__pjrt *pjrt, const char *why,
                            ist_error *err) {
  return ist_error_set(err, IST_ERR_DYNAMIC_SHAPE,
                       "%s: an output cannot be a tensor: it has dynamic "
                       "dimensions, and %s; needs extents that the plugin "
                       "tells",
                       pjrt->name, why);
}

// The dimensions that are only known once the values are there, as bits.
static ist_code read_dynamic(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                             uint64_t *out, ist_error *err) {
  *out = 0;
  IST_PJRT_ARGS(PJRT_Buffer_DynamicDimensionIndices_Args, get);
  get.buffer = buffer;
  ist_code code =
      ist__pjrt_call(pjrt, IST_SLOT_Buffer_DynamicDimensionIndices, &get, err);
  // A plugin that has no such slot has no such buffers.
  if (code == IST_ERR_PLUGIN_SLOT) return IST_OK;
  if (code != IST_OK || get.num_dynamic_dims == 0) return code;
  if (get.num_dynamic_dims > IST_MAX_NDIM || get.dynamic_dim_indices == NULL) {
    return bad_dynamic(pjrt, "which ones is not told", err);
  }
  for (size_t i = 0; i < get.num_dynamic_dims; i++) {
    if (get.dynamic_dim_indices[i] >= IST_MAX_NDIM) {
      return bad_dynamic(pjrt, "which ones is not told", err);
    }
    *out |= UINT64_C(1) << get.dynamic_dim_indices[i];
  }
  return IST_OK;
}

// Puts the true extents in place of the padded ones. They are values like any
// other: known when the buffer is ready.
static ist_code read_true_dims(const ist__pjrt *pjrt, PJRT_Buffer *buffer,
                               uint64_t dynamic, ist__pjrt_tensor *tensor,
                               ist_error *err) {
  int64_t *dims = ist__pjrt_tensor_dims(tensor);
  ist_code code = ist__pjrt_ready(pjrt, buffer, err);
  if (code != IST_OK) return code;
  IST_PJRT_ARGS(PJRT_Buffer_UnpaddedDimensions_Args, get);
  get.buffer = buffer;
  code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_UnpaddedDimensions, &get, err);
  if (code == IST_ERR_PLUGIN_SLOT) {
    return bad_dynamic(pjrt, "the plugin cannot tell them", err);
  }
  if (code != IST_OK) return code;
  if (get.num_dims != (size_t)tensor->ndim || get.unpadded_dims == NULL) {
    return bad_dynamic(pjrt, "the plugin tells another number of them", err);
  }
  for (int32_t i = 0; i < tensor->ndim; i++) {
    int64_t told = get.unpadded_dims[i];
    bool may_shrink = (dynamic >> i & 1) != 0;
    if (told < 0 || told > dims[i] || (told != dims[i] && !may_shrink)) {
      return bad_dynamic(pjrt, "the plugin tells extents that cannot be", err);
    }
    dims[i] = told;
  }
  tensor->dynamic = true;
  return IST_OK;
}

static ist_code read_dims(ist__pjrt_client *client, PJRT_Buffer *buffer,
                          uint64_t dynamic, ist__pjrt_tensor **out,
                          ist_error *err) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  IST_PJRT_ARGS(PJRT_Buffer_Dimensions_Args, get);
  get.buffer = buffer;
  ist_code code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_Dimensions, &get, err);
  if (code != IST_OK) return code;
  if (get.num_dims > IST_MAX_NDIM || (get.num_dims > 0 && get.dims == NULL)) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "%s: an output cannot be a tensor: it has %zu "
                         "dimensions; needs at most %d",
                         pjrt->name, get.num_dims, IST_MAX_NDIM);
  }
  ist__pjrt_tensor *tensor =
      ist__pjrt_tensor_make(client, (int32_t)get.num_dims, err);
  if (tensor == NULL) return IST_ERR_NO_ALLOCATION;
  bool valid = true;
  for (size_t i = 0; i < get.num_dims; i++) {
    ist__pjrt_tensor_dims(tensor)[i] = get.dims[i];
    valid = valid && get.dims[i] >= 0;
  }
  if (!valid || !ist__pjrt_tensor_count(tensor)) {
    code = ist_error_set(err, IST_ERR_PLUGIN,
                         "%s: an output cannot be a tensor: the plugin tells "
                         "a size that cannot be; needs a working plugin",
                         pjrt->name);
  } else if (dynamic != 0) {
    code = read_true_dims(pjrt, buffer, dynamic, tensor, err);
    if (code == IST_OK) ist__pjrt_tensor_count(tensor);
  }
  if (code == IST_OK) {
    *out = tensor;
  } else {
    ist__free(client->env, tensor);
  }
  return code;
}

ist_code ist__pjrt_tensor_read_layout(const ist__pjrt *pjrt,
                                      PJRT_Buffer *buffer,
                                      ist__pjrt_tensor *tensor,
                                      ist_error *err) {
  const int64_t *dims = ist__pjrt_tensor_dims(tensor);
  int64_t *order = ist__pjrt_tensor_order(tensor);
  ist__told_layout told;
  ist_code code =
      ist__pjrt_layout(pjrt, buffer, tensor->ndim, dims, &told, err);
  if (code != IST_OK) return code;
  for (int32_t i = 0; i < tensor->ndim; i++) order[i] = told.order[i];
  tensor->order_known = true;
  tensor->tiled = !told.dense;
  tensor->permuted = !ist__pjrt_is_row_major(tensor->ndim, dims, order);
  if (tensor->permuted &&
      (tensor->dynamic || tensor->dtype->bits < 8 ||
       (tensor->memory->capability->layouts & IST_LAYOUT_PERMUTED) == 0)) {
    return ist_error_set(err, IST_ERR_TARGET_LAYOUT,
                         "%s: a buffer cannot be a tensor: it is permuted%s%s, "
                         "which this memory cannot be trusted with; needs "
                         "row-major order",
                         pjrt->name, told.dense ? "" : " and ", told.why);
  }
  return IST_OK;
}

ist_code ist__pjrt_tensor_of(ist__pjrt_client *client,
                             const ist__pjrt_memory *memory,
                             PJRT_Buffer *buffer, ist__pjrt_tensor **out,
                             ist_error *err) {
  *out = NULL;
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  const ist__dtype *dtype = NULL;
  ist__pjrt_tensor *tensor = NULL;
  ist_code code = read_dtype(pjrt, memory, buffer, &dtype, err);
  uint64_t dynamic = 0;
  if (code == IST_OK) code = read_dynamic(pjrt, buffer, &dynamic, err);
  if (code == IST_OK) code = read_dims(client, buffer, dynamic, &tensor, err);
  if (code != IST_OK) return code;
  tensor->memory = memory;
  tensor->dtype = dtype;
  code = ist__pjrt_tensor_read_layout(pjrt, buffer, tensor, err);
  if (code != IST_OK) {
    ist__free(client->env, tensor);
    return code;
  }
  tensor->buffer = buffer;
  *out = tensor;
  return IST_OK;
}
