// SPDX-License-Identifier: Apache-2.0
// copy_engine.h: what copies of one context share: the inner loops that its
// machine can run, chosen once.

#ifndef ISTHMUS_TENSOR_COPY_ENGINE_H_
#define ISTHMUS_TENSOR_COPY_ENGINE_H_

#include "tensor/copy_kernels.h"

// Lives in the context; every environment of the context points to it. A NULL
// engine stands for plain C on the calling thread.
typedef struct ist__copy_engine {
  const ist__copy_kernels *kernels;
} ist__copy_engine;

#endif  // ISTHMUS_TENSOR_COPY_ENGINE_H_
