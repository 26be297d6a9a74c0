// SPDX-License-Identifier: Apache-2.0
// program_tiles.c: compares tiles, and copies through the host where they
// differ.

#include "backend/pjrt/program_tiles.h"

#include "backend/pjrt/buffer.h"
#include "base/alloc.h"
#include "tensor/layout.h"

// A view is dense, as it was made, whatever the plugin tells of it: nobody has
// moved its elements.
static ist_code layout_of(const ist__tiled_input *in, ist__pjrt_tensor *tensor,
                          ist__told_layout *out, ist_error *err) {
  if (tensor->is_view) {
    ist__told_layout_dense(tensor->ndim, ist__pjrt_tensor_order(tensor), out);
    return IST_OK;
  }
  return ist__pjrt_layout(&in->client->plugin.pjrt, tensor->buffer,
                          tensor->ndim, ist__pjrt_tensor_dims(tensor), out,
                          err);
}

static ist_code compare(const ist__tiled_input *in, ist__pjrt_tensor *tensor,
                        const char *what, ist_error *err) {
  ist__told_layout lies;
  const ist__told_layout *want = &in->argument->layout;
  ist_code code = layout_of(in, tensor, &lies, err);
  if (code != IST_OK) return code;
  if (ist__told_layout_same(&lies, want, tensor->ndim,
                            ist__pjrt_tensor_dims(tensor))) {
    return IST_OK;
  }
  char has[IST_TOLD_TEXT], needs[IST_TOLD_TEXT];
  ist__told_layout_text(&lies, tensor->ndim, has, sizeof has);
  ist__told_layout_text(want, tensor->ndim, needs, sizeof needs);
  return ist_error_set(err, IST_ERR_TARGET_LAYOUT,
                       "%s: the program cannot run: %s %zu lies as %s on the "
                       "device; needs %s, as the program reads it",
                       in->client->plugin.pjrt.name, what, in->index, has,
                       needs);
}

// The values, dense and row-major, go in again by the plugin's own copy.
static ist_code copy_anew(const ist__tiled_input *in, ist__pjrt_tensor **out,
                          ist_error *err) {
  ist__pjrt_client *client = in->client;
  ist__pjrt_tensor *tensor = in->tensor;
  const ist__dtype *dtype = tensor->dtype;
  const ist__pjrt_device *device = &client->devices[in->device];
  int64_t strides[IST_MAX_NDIM];
  uint64_t size = (tensor->count * dtype->bits + 7) / 8;
  void *values = ist__alloc(client->env, (size_t)size, 64);
  if (values == NULL) return ist__error_memory(err, "a copy between", size);
  ist__layout_row_major(tensor->ndim, ist__pjrt_tensor_dims(tensor), strides);
  DLTensor view = {.data = values,
                   .device = {kDLCPU, 0},
                   .ndim = tensor->ndim,
                   .dtype = {dtype->code, dtype->bits, 1},
                   .shape = ist__pjrt_tensor_dims(tensor),
                   .strides = strides};
  ist_placement place = {.struct_size = sizeof place,
                         .device = in->device,
                         .memory = (size_t)(tensor->memory - device->memories),
                         .view = &view};
  ist_code code = ist__pjrt_copy_out(client, tensor, values, size, err);
  if (code == IST_OK) {
    code = ist__pjrt_copy_in_plainly(client, &place, out, err);
  }
  ist__free(client->env, values);
  return code;
}

ist_code ist__pjrt_lay_out(const ist__tiled_input *in, PJRT_Buffer **out,
                           ist_error *err) {
  *out = NULL;
  ist__pjrt_tensor *copy = NULL;
  ist_code code = compare(in, in->tensor, "input", err);
  if (code != IST_ERR_TARGET_LAYOUT || !in->may_copy) return code;
  code = copy_anew(in, &copy, err);
  if (code != IST_OK) return code;
  code = compare(in, copy, "a copy of input", err);
  if (code != IST_OK) {
    ist__pjrt_release(in->client, copy);
    return code;
  }
  *out = ist__pjrt_tensor_free(in->client, copy);
  return IST_OK;
}
