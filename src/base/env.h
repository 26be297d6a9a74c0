// SPDX-License-Identifier: Apache-2.0
// env.h: what every module is handed from its context: the allocator, the log,
// the hook that can make a call fail and how elements are copied. Not for
// process environment.

#ifndef ISTHMUS_BASE_ENV_H_
#define ISTHMUS_BASE_ENV_H_

#include <isthmus/isthmus.h>

// Asked before each call of a backend slot or a plugin slot; true makes the
// call fail with IST_ERR_INTERNAL without being made. Set by tests only.
typedef bool (*ist__call_hook)(void *self, const char *slot);

// Told of each step in a plugin before it is taken, on the thread that takes
// it: a slot's name, or "loading the file". Set by isthmus-probe only.
typedef void (*ist__step_fn)(void *self, const char *step);
// trial is told of each capability whose trial begins, by its name; "": none is
// tried now.

typedef struct ist__env {
  ist_allocator allocator;
  ist_log_fn log;
  void *log_self;
  ist__call_hook call_hook;
  void *call_hook_self;
  ist__step_fn step;  // NULL: nobody is told
  ist__step_fn trial;
  void *step_self;
  // The context's settings for copies of elements, which tensor/ knows; NULL
  // where there is no context.
  const struct ist__copy_engine *copy_engine;
} ist__env;

// The environment of options (NULL allowed): malloc, no log, no hook.
void ist__env_init(ist__env *env, const ist_context_options *options);

// Logs one line, printf style; nothing when there is no log.
void ist__log(const ist__env *env, ist_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Logs text as it is, of any length.
void ist__log_text(const ist__env *env, ist_log_level level, const char *text);

// True when a test wants this call to fail.
static inline bool ist__call_fails(const ist__env *env, const char *slot) {
  return env->call_hook != NULL && env->call_hook(env->call_hook_self, slot);
}

static inline void ist__step(const ist__env *env, const char *step) {
  if (env->step != NULL) env->step(env->step_self, step);
}

static inline void ist__step_trial(const ist__env *env, const char *name) {
  if (env->trial != NULL) env->trial(env->step_self, name);
}

#endif  // ISTHMUS_BASE_ENV_H_
