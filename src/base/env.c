// SPDX-License-Identifier: Apache-2.0
// env.c: the allocator, log and hook handed to every module.

#include "base/env.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"

void ist__env_init(ist__env *env, const ist_context_options *options) {
  *env = (ist__env){.allocator = ist__malloc_allocator()};
  if (options == NULL) return;
  if (options->allocator != NULL) env->allocator = *options->allocator;
  env->log = options->log;
  env->log_self = options->log_self;
}

void ist__log(const ist__env *env, ist_log_level level, const char *format,
              ...) {
  if (env->log == NULL) return;
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  env->log(env->log_self, level, text);
}

void ist__log_text(const ist__env *env, ist_log_level level, const char *text) {
  if (env->log != NULL) env->log(env->log_self, level, text);
}
