// SPDX-License-Identifier: Apache-2.0
// dlpack_write.c: managed tensors for others. One allocation holds the struct,
// its shape and its strides, and the owner to release.

#include "dlpack/dlpack_write.h"

#include "tensor/dtype.h"

// What the deleter needs; found through manager_ctx.
typedef struct owner {
  ist_release_fn release;
  void *release_self;
  const ist__env *env;
  void *block;  // the allocation that holds this too
} owner;

typedef struct versioned_block {
  DLManagedTensorVersioned managed;
  owner owner;
  int64_t numbers[];  // shape, then strides
} versioned_block;

typedef struct legacy_block {
  DLManagedTensor managed;
  owner owner;
  int64_t numbers[];
} legacy_block;

// The memory first: release may take the last holder of env with it.
static void let_go(const owner *from) {
  owner mine = *from;
  ist__free(mine.env, mine.block);
  if (mine.release != NULL) mine.release(mine.release_self);
}

static void delete_versioned(DLManagedTensorVersioned *self) {
  let_go(self->manager_ctx);
}

static void delete_legacy(DLManagedTensor *self) {
  let_go(self->manager_ctx);
}

static size_t numbers_size(const ist__view *view) {
  return 2 * (size_t)view->ndim * sizeof(int64_t);
}

static owner make_owner(const ist__export *what, void *block) {
  return (owner){what->release, what->release_self, what->env, block};
}

// A rank of 0 has arrays too: some readers insist on pointers.
static DLTensor make_tensor(const ist__view *view, int64_t *numbers) {
  // Loops: most tensors have too few dimensions for two calls of memcpy.
  for (int32_t i = 0; i < view->ndim; i++) {
    numbers[i] = view->shape[i];
    numbers[view->ndim + i] = view->strides[i];
  }
  DLTensor tensor = {.data = view->data,
                     .device = view->device,
                     .ndim = view->ndim,
                     .dtype = view->dtype,
                     .shape = numbers,
                     .strides = numbers + view->ndim,
                     .byte_offset = view->byte_offset};
  // Many consumers lose byte_offset (pytorch/pytorch#170432, NVIDIA/warp#1573),
  // but a handle is no address to add to (pytorch/pytorch#182924).
  if (!ist__device_code_is_handle((int32_t)view->device.device_type)) {
    tensor.data = ist__view_address(view);
    tensor.byte_offset = 0;
  }
  return tensor;
}

DLManagedTensorVersioned *ist__dlpack_write(const ist__export *what) {
  size_t size = sizeof(versioned_block) + numbers_size(what->view);
  versioned_block *block =
      ist__alloc(what->env, size, _Alignof(versioned_block));
  if (block == NULL) return NULL;
  block->owner = make_owner(what, block);
  block->managed = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
      .manager_ctx = &block->owner,
      .deleter = delete_versioned,
      .flags = what->flags,
      .dl_tensor = make_tensor(what->view, block->numbers)};
  return &block->managed;
}

DLManagedTensor *ist__dlpack_write_legacy(const ist__export *what) {
  size_t size = sizeof(legacy_block) + numbers_size(what->view);
  legacy_block *block = ist__alloc(what->env, size, _Alignof(legacy_block));
  if (block == NULL) return NULL;
  block->owner = make_owner(what, block);
  block->managed =
      (DLManagedTensor){.dl_tensor = make_tensor(what->view, block->numbers),
                        .manager_ctx = &block->owner,
                        .deleter = delete_legacy};
  return &block->managed;
}
