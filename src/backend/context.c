// SPDX-License-Identifier: Apache-2.0
// context.c: making and freeing a context.

#include "backend/context.h"

#include "backend/backend.h"
#include "backend/host.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/structs.h"

// Before 1.0 a minor version may change the interface; after it only adds.
static ist_code check_header(int32_t version, ist_error *err) {
  int32_t major = version / 10000, minor = version / 100 % 100;
  bool fits = major == IST_VERSION_MAJOR &&
              (IST_VERSION_MAJOR == 0 ? minor == IST_VERSION_MINOR
                                      : minor <= IST_VERSION_MINOR);
  if (fits) return IST_OK;
  return ist_error_set(err, IST_ERR_HEADER_VERSION,
                       "a context could not be made: the program was built "
                       "with the headers of isthmus %d.%d.%d, the library is "
                       "%s; needs headers and library of one version",
                       (int)major, (int)minor, (int)(version % 100),
                       IST_VERSION_STRING);
}

ist_code ist_context_create_for(int32_t header_version,
                                const ist_context_options *options,
                                ist_context **out, ist_error *err) {
  if (out != NULL) *out = NULL;
  ist_code code = check_header(header_version, err);
  return code != IST_OK ? code : (ist_context_create)(options, out, err);
}

// The parentheses keep the header's macro away.
ist_code(ist_context_create)(const ist_context_options *options,
                             ist_context **out, ist_error *err) {
  if (out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a context could not be made: out is NULL; needs a "
                         "place for it");
  }
  *out = NULL;
  ist_context_options known;
  ist_code fits = ist__options_read(&known, sizeof known, options,
                                    "ist_context_options", err);
  if (fits != IST_OK) return fits;
  const ist_allocator *a = known.allocator;
  if (a != NULL && (a->allocate == NULL || a->release == NULL)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a context could not be made: the allocator lacks "
                         "allocate or release; needs both, or none");
  }
  ist__env env;
  ist__env_init(&env, &known);
  ist_context *context = ist__alloc_zero(&env, sizeof *context);
  if (context == NULL)
    return ist__error_memory(err, "a context", sizeof *context);
  env.copy_engine = &context->copy_engine;
  context->env = env;
  ist__refcount_init(&context->refs);
  ist__block_pool_open(&context->block_pool, known.block_pool_bytes);
  ist_code code = ist__verdicts_open(&context->verdicts, &env, &known, err);
  if (code == IST_OK) {
    code = ist__copy_engine_open(&context->copy_engine, &env, &known, err);
  }
  if (code == IST_OK) code = ist__host_open(context, &context->host, err);
  if (code != IST_OK) {
    ist__verdicts_close(&context->verdicts, &env);
    ist__copy_engine_close(&context->copy_engine, &env);
    ist__block_pool_close(&context->block_pool, &env);
    ist__free(&env, context);
    return code;
  }
  *out = context;
  return IST_OK;
}

void ist_context_retain(ist_context *context) {
  if (context != NULL) ist__refcount_take(&context->refs);
}

void ist_context_release(ist_context *context) {
  if (context == NULL || !ist__refcount_drop(&context->refs)) return;
  ist__env env = context->env;
  ist__verdicts_close(&context->verdicts, &env);
  ist__backend_free(context->host);
  ist__copy_engine_close(&context->copy_engine, &env);
  ist__block_pool_close(&context->block_pool, &env);
  ist__free(&env, context);
}

const ist_device *ist_context_host(ist_context *context) {
  return context == NULL ? NULL : ist_backend_device(context->host, 0);
}

void ist__context_set_call_hook(ist_context *context, ist__call_hook hook,
                                void *self) {
  context->env.call_hook = hook;
  context->env.call_hook_self = self;
}

void *ist_allocate(ist_context *context, size_t size, size_t alignment) {
  if (context == NULL || !ist__is_power_of_two(alignment)) return NULL;
  return ist__alloc(&context->env, size, alignment);
}

void ist_deallocate(ist_context *context, void *pointer) {
  if (context != NULL) ist__free(&context->env, pointer);
}
