// SPDX-License-Identifier: Apache-2.0
// pjrt_tensor.c: buffers of a PJRT client as a backend's buffers.

#include "backend/pjrt/pjrt_tensor.h"

#include <inttypes.h>
#include <string.h>

#include "backend/block.h"
#include "backend/pjrt/foreign.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "tensor/layout.h"
#include "tensor/strided_copy.h"

// ---- making the struct

ist__pjrt_tensor *ist__pjrt_tensor_make(const ist__pjrt_client *client,
                                        int32_t ndim, ist_error *err) {
  size_t size = sizeof(ist__pjrt_tensor) + 2 * (size_t)ndim * sizeof(int64_t);
  ist__pjrt_tensor *tensor =
      ist__alloc(client->env, size, _Alignof(max_align_t));
  if (tensor == NULL) {
    ist__error_memory(err, "a buffer's description", size);
    return NULL;
  }
  // Field by field, without the adoption and the numbers, which are the
  // caller's: an import has no time to clear them.
  tensor->buffer = NULL;
  tensor->memory = NULL;
  tensor->dtype = NULL;
  tensor->count = 0;
  tensor->ndim = ndim;
  tensor->is_view = false;
  tensor->is_borrowed = false;
  tensor->returned = NULL;
  tensor->returned_self = NULL;
  tensor->permuted = false;
  tensor->order_known = false;
  tensor->tiled = false;
  tensor->dynamic = false;
  return tensor;
}

bool ist__pjrt_is_row_major(int32_t ndim, const int64_t *dims,
                            const int64_t *order) {
  int64_t strides[IST_MAX_NDIM];
  return ist__layout_from_minor_to_major(ndim, dims, order, strides) &&
         ist__layout_of(ndim, dims, strides) == IST_LAYOUT_ROW_MAJOR;
}

bool ist__pjrt_tensor_count(ist__pjrt_tensor *tensor) {
  uint64_t count = 1;
  for (int32_t i = 0; i < tensor->ndim; i++) {
    if (!ist__mul_u64(count, (uint64_t)ist__pjrt_tensor_dims(tensor)[i],
                      &count)) {
      return false;
    }
  }
  // Also as bytes and as the signed numbers that strides are.
  if (count > INT64_MAX / 16) return false;
  tensor->count = count;
  return true;
}

static ist__pjrt_shape shape_of(ist__pjrt_tensor *tensor) {
  return (ist__pjrt_shape){
      .type = tensor->dtype->pjrt,
      .ndim = tensor->ndim,
      .dims = ist__pjrt_tensor_dims(tensor),
      .minor_to_major =
          tensor->permuted ? ist__pjrt_tensor_order(tensor) : NULL};
}

// The dtype of a placement, when its memory carries it as it lies.
static ist_code placed_dtype(const ist__pjrt_client *client,
                             const ist_placement *source,
                             const ist__pjrt_memory *memory,
                             const ist__dtype **out, ist_error *err) {
  const char *name = client->plugin.pjrt.name;
  const ist__dtype *dtype = ist__dtype_find(source->view->dtype);
  if (dtype == NULL || source->view->dtype.lanes != 1 ||
      (memory->capability->dtypes >> dtype->number & 1) == 0) {
    return ist_error_set(err, IST_ERR_TARGET_DTYPE,
                         "%s: a tensor of %s cannot be placed in memory %s: "
                         "the plugin does not carry that dtype; needs another "
                         "dtype",
                         name, dtype != NULL ? dtype->name : "that dtype",
                         memory->kind);
  }
  if (source->padded && dtype->bits < 8) {
    return ist_error_set(err, IST_ERR_TARGET_LAYOUT,
                         "%s: a tensor of %s cannot be placed: its elements "
                         "take a byte each; needs packed ones",
                         name, dtype->name);
  }
  *out = dtype;
  return IST_OK;
}

// Fills in extents, order and count of what is dense and row-major and has
// elements, which is most: in one loop. False: nothing is known yet.
static bool placed_row_major(const DLTensor *view, ist__pjrt_tensor *tensor) {
  int64_t *dims = ist__pjrt_tensor_dims(tensor);
  int64_t *order = ist__pjrt_tensor_order(tensor);
  uint64_t count = 1;
  for (int32_t i = view->ndim - 1; i >= 0; i--) {
    int64_t extent = view->shape[i];
    if (extent < 1 || (extent > 1 && view->strides[i] != (int64_t)count) ||
        !ist__mul_u64(count, (uint64_t)extent, &count) ||
        count > INT64_MAX / 16) {
      return false;
    }
    dims[i] = extent;
    order[view->ndim - 1 - i] = i;
  }
  tensor->count = count;
  return true;
}

// Fills in extents and order; packed elements come in row-major only.
static ist_code placed_order(const ist__pjrt_client *client,
                             const DLTensor *view, ist__pjrt_tensor *tensor,
                             ist_error *err) {
  if (placed_row_major(view, tensor)) return IST_OK;
  const char *name = client->plugin.pjrt.name;
  int64_t *order = ist__pjrt_tensor_order(tensor);
  if (view->ndim > 0) {
    memcpy(ist__pjrt_tensor_dims(tensor), view->shape,
           (size_t)view->ndim * sizeof(int64_t));
  }
  if (!ist__pjrt_tensor_count(tensor)) {
    return ist_error_set(err, IST_ERR_OVERFLOW,
                         "%s: a tensor cannot be placed: its size overflows; "
                         "needs a size that fits in memory",
                         name);
  }
  if (!ist__layout_minor_to_major(view->ndim, view->shape, view->strides,
                                  order)) {
    return ist_error_set(err, IST_ERR_TARGET_LAYOUT,
                         "%s: a tensor cannot be viewed: its elements are not "
                         "dense; needs a dense order of dimensions",
                         name);
  }
  tensor->permuted = !ist__pjrt_is_row_major(view->ndim, view->shape, order);
  if (tensor->permuted && tensor->dtype->bits < 8) {
    return ist_error_set(err, IST_ERR_TARGET_LAYOUT,
                         "%s: a permuted tensor of %s cannot be viewed: its "
                         "elements are packed; needs row-major order",
                         name, tensor->dtype->name);
  }
  return IST_OK;
}

// The description of a placement, whose numbers were checked by the caller.
static ist_code describe(const ist__pjrt_client *client,
                         const ist_placement *source, ist__pjrt_tensor **out,
                         ist_error *err) {
  *out = NULL;
  const ist__pjrt_device *device = &client->devices[source->device];
  const ist__pjrt_memory *memory = &device->memories[source->memory];
  const ist__dtype *dtype = NULL;
  ist_code code = placed_dtype(client, source, memory, &dtype, err);
  if (code != IST_OK) return code;
  ist__pjrt_tensor *tensor =
      ist__pjrt_tensor_make(client, source->view->ndim, err);
  if (tensor == NULL) return IST_ERR_NO_ALLOCATION;
  tensor->memory = memory;
  tensor->dtype = dtype;
  code = placed_order(client, source->view, tensor, err);
  if (code == IST_OK) {
    *out = tensor;
  } else {
    ist__free(client->env, tensor);
  }
  return code;
}

static char *placed_bytes(const ist_placement *source) {
  const DLTensor *view = source->view;
  return view->data == NULL ? NULL : (char *)view->data + view->byte_offset;
}

// ---- views

// Views data through the tensor's own adoption. Takes tensor: a failure frees
// it.
static ist_code view_data(ist__pjrt_client *client, ist__pjrt_tensor *tensor,
                          void *data, ist_release_fn release, void *self,
                          ist_error *err) {
  ist__pjrt_shape shape = shape_of(tensor);
  ist__pjrt_adoption *kept = &tensor->adoption;
  kept->client = client;
  kept->release = release;
  kept->self = self;
  ist_code code = ist__pjrt_view_foreign_in(&kept, tensor->memory, &shape, data,
                                            &tensor->buffer, err);
  if (code != IST_OK) {
    ist__free(client->env, kept);
    return code;
  }
  tensor->is_view = true;
  tensor->order_known = true;
  return IST_OK;
}

ist_code ist__pjrt_adopt(void *self, const ist_placement *source, void **out,
                         ist_error *err) {
  ist__pjrt_client *client = self;
  ist__pjrt_tensor *tensor = NULL;
  ist_code code = describe(client, source, &tensor, err);
  if (code != IST_OK) return code;
  code = view_data(client, tensor, placed_bytes(source), source->release,
                   source->release_self, err);
  if (code == IST_OK) *out = tensor;
  return code;
}

PJRT_Buffer *ist__pjrt_tensor_free(const ist__pjrt_client *client,
                                   ist__pjrt_tensor *tensor) {
  PJRT_Buffer *buffer = tensor->buffer;
  if (tensor->is_view) {
    ist__pjrt_adoption_leave(&tensor->adoption, NULL);
  } else {
    ist__free(client->env, tensor);
  }
  return buffer;
}

void ist__pjrt_release(void *self, void *buffer) {
  ist__pjrt_client *client = self;
  ist__pjrt_tensor *tensor = buffer;
  ist_release_fn returned = tensor->returned;
  void *returned_self = tensor->returned_self;
  PJRT_Buffer *ours = tensor->is_borrowed ? NULL : tensor->buffer;
  if (tensor->is_view) {
    ist__pjrt_adoption_leave(&tensor->adoption, ours);
  } else {
    ist__pjrt_destroy(&client->plugin.pjrt, ours);
    ist__free(client->env, tensor);
  }
  if (returned != NULL) returned(returned_self);
}

// ---- copies

// Describes dense host elements of a tensor's shape, in an order.
static void host_view(const ist__pjrt_tensor *tensor, void *data, bool padded,
                      const int64_t *order, ist__view *out) {
  memset(out, 0, sizeof *out);
  bool small = tensor->dtype->bits < 8;
  out->data = data;
  out->device = (DLDevice){kDLCPU, 0};
  out->dtype = (DLDataType){tensor->dtype->code, tensor->dtype->bits, 1};
  out->dtype_number = tensor->dtype->number;
  out->ndim = tensor->ndim;
  out->padded = padded && small;
  out->count = tensor->count;
  out->nbytes = (tensor->count * tensor->dtype->bits + 7) / 8;
  out->highest = out->padded ? tensor->count : out->nbytes;
  const int64_t *dims = tensor->numbers;
  if (tensor->ndim > 0) {
    memcpy(out->shape, dims, (size_t)tensor->ndim * sizeof(int64_t));
  }
  // Both were checked when the tensor was made.
  if (order != NULL) {
    ist__layout_from_minor_to_major(tensor->ndim, dims, order, out->strides);
  } else {
    ist__layout_row_major(tensor->ndim, dims, out->strides);
  }
  out->layout = ist__layout_of(tensor->ndim, out->shape, out->strides);
}

// The size that plugins read and write on the host: no element under a byte.
static uint64_t host_bytes(const ist__pjrt_tensor *tensor) {
  uint64_t item = tensor->dtype->bits < 8 ? 1 : tensor->dtype->bits / 8u;
  return tensor->count * item;
}

static void *staging(const ist__pjrt_client *client,
                     const ist__pjrt_tensor *tensor, ist_error *err) {
  uint64_t size = host_bytes(tensor);
  void *memory = ist__alloc(client->env, (size_t)size, 64);
  if (memory == NULL) ist__error_memory(err, "a copy between", size);
  return memory;
}

// Where the plugin can view memory it views a copy in a block of ours: its own
// copy takes several times as long, and elements under a byte it takes unpacked
// only, which would be a second copy. Takes tensor: a failure frees it.
static ist_code copy_in_viewed(ist__pjrt_client *client,
                               ist__pjrt_tensor *tensor, void *data,
                               ist_error *err) {
  ist__view from, to;
  host_view(tensor, data, false, NULL, &from);
  host_view(tensor, NULL, false, NULL, &to);
  to.data = ist__block_make(client->context, to.nbytes,
                            tensor->memory->capability->alignment);
  if (to.data == NULL) {
    ist__free(client->env, tensor);
    return ist__error_memory(err, "a copy", to.nbytes);
  }
  ist__strided_copy(client->env->copy_engine, &from, &to);
  ist_code code =
      view_data(client, tensor, to.data, ist__block_release, to.data, err);
  if (code != IST_OK) ist__block_release(to.data);
  return code;
}

// The same by the plugin's own copy. Takes tensor: a failure frees it.
static ist_code copy_in_plain(ist__pjrt_client *client,
                              ist__pjrt_tensor *tensor, void *data,
                              ist_error *err) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  void *unpacked = NULL;
  ist_code code = IST_OK;
  if (tensor->dtype->bits < 8 && tensor->count > 0) {
    unpacked = staging(client, tensor, err);
    if (unpacked == NULL) {
      code = IST_ERR_NO_ALLOCATION;
      goto done;
    }
    ist__view from, to;
    host_view(tensor, data, false, NULL, &from);
    host_view(tensor, unpacked, true, NULL, &to);
    ist__strided_copy(client->env->copy_engine, &from, &to);
    data = unpacked;
  }
  ist__pjrt_shape shape = shape_of(tensor);
  code = ist__pjrt_from_host(client, tensor->memory, &shape, data,
                             &tensor->buffer, err);
  if (code == IST_OK && tensor->memory->tiled) {
    code = ist__pjrt_tensor_read_layout(pjrt, tensor->buffer, tensor, err);
    if (code != IST_OK) ist__pjrt_destroy(pjrt, tensor->buffer);
  }
done:
  ist__free(client->env, unpacked);
  if (code != IST_OK) ist__free(client->env, tensor);
  return code;
}

// A description of what can be copied in.
static ist_code describe_copy(const ist__pjrt_client *client,
                              const ist_placement *source,
                              ist__pjrt_tensor **out, ist_error *err) {
  ist_code code = describe(client, source, out, err);
  if (code != IST_OK || !(*out)->permuted) return code;
  ist__free(client->env, *out);
  *out = NULL;
  return ist_error_set(err, IST_ERR_TARGET_LAYOUT,
                       "%s: a tensor cannot be copied in: it is permuted; "
                       "needs row-major order",
                       client->plugin.pjrt.name);
}

ist_code ist__pjrt_copy_in(void *self, const ist_placement *source, void **out,
                           ist_error *err) {
  ist__pjrt_client *client = self;
  ist__pjrt_tensor *tensor = NULL;
  ist_code code = describe_copy(client, source, &tensor, err);
  if (code != IST_OK) return code;
  // Where the plugin's own copies lie in tiles, programs take them so.
  bool views = (tensor->memory->capability->can & IST_CAN_ADOPT) != 0 &&
               !tensor->memory->tiled && tensor->count > 0;
  code = views ? copy_in_viewed(client, tensor, placed_bytes(source), err)
               : copy_in_plain(client, tensor, placed_bytes(source), err);
  if (code == IST_OK) *out = tensor;
  return code;
}

ist_code ist__pjrt_copy_in_plainly(ist__pjrt_client *client,
                                   const ist_placement *source,
                                   ist__pjrt_tensor **out, ist_error *err) {
  ist__pjrt_tensor *tensor = NULL;
  *out = NULL;
  ist_code code = describe_copy(client, source, &tensor, err);
  if (code != IST_OK) return code;
  code = copy_in_plain(client, tensor, placed_bytes(source), err);
  if (code == IST_OK) *out = tensor;
  return code;
}

// Copies straight from the plugin's memory, whose addresses are lent here.
static ist_code copy_out_lent(ist__pjrt_client *client,
                              ist__pjrt_tensor *tensor, const int64_t *order,
                              void *target, ist_error *err) {
  ist_loan loan = {.struct_size = sizeof loan};
  ist_code code = ist__pjrt_lend(client, tensor, &loan, err);
  if (code != IST_OK) return code;
  ist__view from, to;
  host_view(tensor, loan.data, false, order, &from);
  host_view(tensor, target, false, NULL, &to);
  ist__strided_copy(client->env->copy_engine, &from, &to);
  ist__pjrt_reclaim(client, tensor);
  return IST_OK;
}

ist_code ist__pjrt_copy_out(void *self, void *buffer, void *target,
                            uint64_t nbytes, ist_error *err) {
  ist__pjrt_client *client = self;
  ist__pjrt_tensor *tensor = buffer;
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  uint64_t payload = (tensor->count * tensor->dtype->bits + 7) / 8;
  if (nbytes != payload) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "%s: a buffer cannot be copied out: room of %" PRIu64
                         " bytes; needs %" PRIu64,
                         pjrt->name, nbytes, payload);
  }
  ist_code code = ist__pjrt_ready(pjrt, tensor->buffer, err);
  if (code != IST_OK || nbytes == 0) return code;
  bool reorder = tensor->permuted && tensor->memory->physical_order;
  if (!reorder && tensor->dtype->bits >= 8) {
    return ist__pjrt_to_host(pjrt, tensor->buffer, target, nbytes, err);
  }
  const int64_t *order = reorder ? ist__pjrt_tensor_order(tensor) : NULL;
  if ((tensor->memory->capability->can & IST_CAN_LEND) != 0 &&
      !tensor->dynamic && !tensor->tiled) {
    return copy_out_lent(client, tensor, order, target, err);
  }
  void *between = staging(client, tensor, err);
  if (between == NULL) return IST_ERR_NO_ALLOCATION;
  code =
      ist__pjrt_to_host(pjrt, tensor->buffer, between, host_bytes(tensor), err);
  if (code == IST_OK) {
    ist__view from, to;
    host_view(tensor, between, true, order, &from);
    host_view(tensor, target, false, NULL, &to);
    ist__strided_copy(client->env->copy_engine, &from, &to);
  }
  ist__free(client->env, between);
  return code;
}

// ---- lending, waiting, looking

ist_code ist__pjrt_wait(void *self, void *buffer, ist_error *err) {
  ist__pjrt_client *client = self;
  ist__pjrt_tensor *tensor = buffer;
  return ist__pjrt_ready(&client->plugin.pjrt, tensor->buffer, err);
}

// Where a loan would look, which decides whether the address is one.
static ist_code check_memory(const ist__pjrt *pjrt,
                             const ist__pjrt_tensor *tensor, ist_error *err) {
  IST_PJRT_ARGS(PJRT_Buffer_Memory_Args, get);
  get.buffer = tensor->buffer;
  if (ist__pjrt_call(pjrt, IST_SLOT_Buffer_Memory, &get, NULL) != IST_OK ||
      tensor->memory->memory == NULL || get.memory == tensor->memory->memory) {
    return IST_OK;
  }
  return ist_error_set(err, IST_ERR_NOT_ADDRESSABLE,
                       "%s: the buffer cannot be viewed: it lies in another "
                       "memory than %s; needs it there",
                       pjrt->name, tensor->memory->kind);
}

// The layout of a buffer that was copied in, or that a program made, is the
// plugin's own choice: it is asked before a loan.
static ist_code check_order(const ist__pjrt *pjrt, ist__pjrt_tensor *tensor,
                            ist_error *err) {
  int64_t order[IST_MAX_NDIM] = {0};
  if (tensor->order_known && !tensor->tiled) return IST_OK;
  ist_code code = ist__pjrt_order(pjrt, tensor->buffer, tensor->ndim,
                                  ist__pjrt_tensor_dims(tensor), order, err);
  if (code == IST_OK) code = check_memory(pjrt, tensor, err);
  if (code != IST_OK) return code;
  const int64_t *dims = ist__pjrt_tensor_dims(tensor);
  int64_t has[IST_MAX_NDIM], needs[IST_MAX_NDIM];
  bool same = ist__pjrt_is_row_major(tensor->ndim, dims, order);
  if (tensor->permuted) {
    same = ist__layout_from_minor_to_major(tensor->ndim, dims, order, has) &&
           ist__layout_from_minor_to_major(
               tensor->ndim, dims, ist__pjrt_tensor_order(tensor), needs);
    for (int32_t i = 0; same && i < tensor->ndim; i++) {
      same = dims[i] <= 1 || has[i] == needs[i];
    }
  }
  if (same) return IST_OK;
  return ist_error_set(err, IST_ERR_TARGET_LAYOUT,
                       "%s: the buffer cannot be viewed: the plugin keeps "
                       "it in another order; needs %s order",
                       pjrt->name,
                       tensor->permuted ? "the program's" : "row-major");
}

// Nothing says how a plugin lays out the true extents inside the padded ones.
// What it copies out is compared with what lies at its address: equal bytes
// are the values, whatever the layout was meant to be.
static ist_code check_dense(ist__pjrt_client *client, ist__pjrt_tensor *tensor,
                            const void *address, ist_error *err) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  uint64_t size = host_bytes(tensor);
  if (size == 0) return IST_OK;
  bool dense = false;
  if (tensor->dtype->bits >= 8 &&
      (tensor->memory->capability->can & IST_CAN_HOST_ADDRESS) != 0) {
    void *values = staging(client, tensor, err);
    if (values == NULL) return IST_ERR_NO_ALLOCATION;
    ist_code code = ist__pjrt_to_host(pjrt, tensor->buffer, values, size, err);
    dense = code == IST_OK && memcmp(values, address, (size_t)size) == 0;
    ist__free(client->env, values);
    if (code != IST_OK) return code;
  }
  if (dense) return IST_OK;
  return ist_error_set(err, IST_ERR_TARGET_LAYOUT,
                       "%s: the buffer cannot be viewed: its dynamic "
                       "dimensions may leave gaps in memory; needs dense "
                       "values",
                       pjrt->name);
}

ist_code ist__pjrt_lend(void *self, void *buffer, ist_loan *out,
                        ist_error *err) {
  ist__pjrt_client *client = self;
  ist__pjrt_tensor *tensor = buffer;
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  // The pointer is told for buffers that are not ready or hold an error too.
  ist_code code = ist__pjrt_ready(pjrt, tensor->buffer, err);
  if (code == IST_OK) code = check_order(pjrt, tensor, err);
  if (code == IST_OK) code = ist__pjrt_hold(pjrt, tensor->buffer, err);
  if (code != IST_OK) return code;
  void *address = NULL;
  code = ist__pjrt_address(pjrt, tensor->buffer, &address, err);
  if (code == IST_OK && address == NULL && tensor->count > 0) {
    code = ist_error_set(err, IST_ERR_NOT_ADDRESSABLE,
                         "%s: the buffer cannot be viewed: the plugin tells "
                         "no address; needs one",
                         pjrt->name);
  }
  if (code == IST_OK && tensor->dynamic) {
    code = check_dense(client, tensor, address, err);
  }
  if (code != IST_OK) {
    ist__pjrt_unhold(pjrt, tensor->buffer);
    return code;
  }
  out->data = address;
  return IST_OK;
}

// Delete keeps the memory until the last external reference; there is none.
ist_code ist__pjrt_discard(void *self, void *buffer, ist_error *err) {
  ist__pjrt_client *client = self;
  ist__pjrt_tensor *tensor = buffer;
  if (tensor->is_borrowed) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "%s: the buffer cannot be deleted: it was borrowed of "
                         "the host program; needs one that was taken",
                         client->plugin.pjrt.name);
  }
  IST_PJRT_ARGS(PJRT_Buffer_Delete_Args, delete_it);
  delete_it.buffer = tensor->buffer;
  return ist__pjrt_call(&client->plugin.pjrt, IST_SLOT_Buffer_Delete,
                        &delete_it, err);
}

void ist__pjrt_reclaim(void *self, void *buffer) {
  const ist__pjrt_client *client = self;
  ist__pjrt_tensor *tensor = buffer;
  ist__pjrt_unhold(&client->plugin.pjrt, tensor->buffer);
}

ist_code ist__pjrt_inspect(void *self, void *buffer, ist_spec *out,
                           ist_error *err) {
  (void)self;
  (void)err;
  ist__pjrt_tensor *tensor = buffer;
  const int64_t *dims = ist__pjrt_tensor_dims(tensor);
  out->dtype = (DLDataType){tensor->dtype->code, tensor->dtype->bits, 1};
  out->ndim = tensor->ndim;
  if (tensor->ndim > 0) {
    memcpy(out->shape, dims, (size_t)tensor->ndim * sizeof(int64_t));
  }
  // What lies in tiles is told as what it is copied out to.
  if (tensor->tiled) {
    ist__layout_row_major(tensor->ndim, dims, out->strides);
  } else {
    ist__layout_from_minor_to_major(
        tensor->ndim, dims, ist__pjrt_tensor_order(tensor), out->strides);
  }
  return IST_OK;
}
