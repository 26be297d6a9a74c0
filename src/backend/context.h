// SPDX-License-Identifier: Apache-2.0
// context.h: the context's inside: the environment of every module, the
// engine of its copies, the pool of its blocks and the host backend that lives
// in it.

#ifndef ISTHMUS_BACKEND_CONTEXT_H_
#define ISTHMUS_BACKEND_CONTEXT_H_

#include "backend/block_pool.h"
#include "backend/pjrt/verdict.h"
#include "base/env.h"
#include "base/refcount.h"
#include "tensor/copy_engine.h"

struct ist_context {
  ist__env env;
  ist__refcount refs;
  ist__copy_engine copy_engine;
  ist__block_pool block_pool;
  ist__verdicts verdicts;
  // Lives as long as the context and counts its holders on the context.
  ist_backend *host;
};

// The hook that can make the n-th call of a slot fail. Tests only; set it
// before other threads use the context.
void ist__context_set_call_hook(ist_context *context, ist__call_hook hook,
                                void *self);

#endif  // ISTHMUS_BACKEND_CONTEXT_H_
