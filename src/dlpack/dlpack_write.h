// SPDX-License-Identifier: Apache-2.0
// dlpack_write.h: a view and its owner become a managed tensor of either kind.

#ifndef ISTHMUS_DLPACK_DLPACK_WRITE_H_
#define ISTHMUS_DLPACK_DLPACK_WRITE_H_

#include "base/alloc.h"
#include "tensor/view.h"

// What is written. release(self) is called once by the deleter.
typedef struct ist__export {
  const ist__view *view;  // borrowed
  uint64_t flags;         // DLPACK_FLAG_BITMASK_*
  ist_release_fn release;
  void *release_self;
  const ist__env *env;  // lives until release returns
} ist__export;

// One allocation each; strides always written; for address devices byte_offset
// is folded into data, for handle devices (OpenCL, Vulkan, Metal, WebGPU,
// Hexagon) kept. NULL when memory is not to be had: release is then not called.
DLManagedTensorVersioned *ist__dlpack_write(const ist__export *what);
DLManagedTensor *ist__dlpack_write_legacy(const ist__export *what);

#endif  // ISTHMUS_DLPACK_DLPACK_WRITE_H_
