// SPDX-License-Identifier: Apache-2.0
// copy_engine.h: what copies of one context share: the inner loops that its
// machine can run, chosen once, and the threads of long copies.

#ifndef ISTHMUS_TENSOR_COPY_ENGINE_H_
#define ISTHMUS_TENSOR_COPY_ENGINE_H_

#include "base/env.h"
#include "base/pool.h"
#include "tensor/convert_kernels.h"
#include "tensor/copy_kernels.h"

struct ist__desk;

// Lives in the context; every environment of the context points to it. A NULL
// engine stands for plain C on the calling thread.
typedef struct ist__copy_engine {
  const ist__copy_kernels *kernels;
  const ist__convert_kernels *convert_kernels;  // NULL: of plain C
  ist_pool pool;                                // run NULL: none
  ist__pool *own_pool;                          // NULL: none, or the caller's
  struct ist__desk *desks;                      // NULL: no pool
} ist__copy_engine;

// Fills an engine from a context's options, which are whole.
// Fails: ARGUMENT, NO_ALLOCATION.
ist_code ist__copy_engine_open(ist__copy_engine *engine, const ist__env *env,
                               const ist_context_options *options,
                               ist_error *err);

// Ends the engine's threads and frees what it holds; zeroed is allowed.
void ist__copy_engine_close(ist__copy_engine *engine, const ist__env *env);

// The inner loops, of plain C without an engine.
static inline const ist__copy_kernels *ist__copy_engine_kernels(
    const ist__copy_engine *engine) {
  return engine != NULL ? engine->kernels : &ist__copy_baseline;
}

#endif  // ISTHMUS_TENSOR_COPY_ENGINE_H_
