// SPDX-License-Identifier: Apache-2.0
// fuzz_pool.h: an engine whose pool makes its calls in turn on the calling
// thread, so that an input with any number of threads runs the same each time.

#ifndef ISTHMUS_TESTS_FUZZ_FUZZ_POOL_H_
#define ISTHMUS_TESTS_FUZZ_FUZZ_POOL_H_

#include "fuzz/fuzz_input.h"
#include "tensor/copy_engine.h"

static inline void fuzz_pool_run(void *self, size_t count,
                                 void (*task)(void *work, size_t index),
                                 void *work) {
  (void)self;
  for (size_t i = 0; i < count; i++) task(work, i);
}

// threads: 1 to 256. Ended by ist__copy_engine_close.
static inline void fuzz_engine_open(ist__copy_engine *engine, ist__env *env,
                                    int32_t threads) {
  ist_pool pool = {.threads = threads, .run = fuzz_pool_run};
  ist_context_options options = {.struct_size = sizeof options, .pool = &pool};
  ist__env_init(env, &options);
  require(ist__copy_engine_open(engine, env, &options, NULL) == IST_OK);
}

#endif  // ISTHMUS_TESTS_FUZZ_FUZZ_POOL_H_
