// SPDX-License-Identifier: Apache-2.0
// copy_engine.c: an engine from a context's options.

#include "tensor/copy_engine.h"

#include "base/error.h"
#include "tensor/ranges.h"

static ist_code check(const ist_context_options *options, ist_error *err) {
  const ist_pool *pool = options->pool;
  if (options->threads < 0 || options->threads > IST_MAX_THREADS) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a context could not be made: %d threads were asked "
                         "for; needs 0 to %d",
                         (int)options->threads, IST_MAX_THREADS);
  }
  if (pool == NULL) return IST_OK;
  if (options->threads > 1) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a context could not be made: both a pool and %d "
                         "threads were given; needs one of them",
                         (int)options->threads);
  }
  if (pool->run == NULL || pool->threads < 1) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a context could not be made: the pool lacks run, or "
                         "has %d threads; needs run, and 1 thread or more",
                         (int)pool->threads);
  }
  return IST_OK;
}

ist_code ist__copy_engine_open(ist__copy_engine *engine, const ist__env *env,
                               const ist_context_options *options,
                               ist_error *err) {
  *engine = (ist__copy_engine){
      .kernels = ist__copy_kernels_best(),
      .convert_kernels = ist__convert_kernels_best(),
  };
  ist_code code = check(options, err);
  if (code != IST_OK) return code;
  if (options->pool != NULL) {
    engine->pool = *options->pool;
    if (engine->pool.threads > IST_MAX_THREADS) {
      engine->pool.threads = IST_MAX_THREADS;
    }
  } else if (options->threads > 1) {
    engine->own_pool = ist__pool_make(env, options->threads);
    if (engine->own_pool == NULL) {
      return ist__error_memory(err, "a pool", sizeof(void *));
    }
    engine->pool =
        (ist_pool){engine->own_pool, options->threads, ist__pool_run};
  }
  if (engine->pool.run == NULL) return IST_OK;
  engine->desks = ist__desks_make(env);
  if (engine->desks != NULL) return IST_OK;
  ist__copy_engine_close(engine, env);
  return ist__error_memory(err, "a pool's desks", sizeof(void *));
}

void ist__copy_engine_close(ist__copy_engine *engine, const ist__env *env) {
  ist__pool_free(env, engine->own_pool);
  ist__desks_free(env, engine->desks);
  *engine = (ist__copy_engine){0};
}
