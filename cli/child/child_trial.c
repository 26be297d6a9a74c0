// SPDX-License-Identifier: Apache-2.0
// child_trial.c: opens a plugin as ist_backend_open does, in this process.

#define _GNU_SOURCE  // prctl
#include "child_trial.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "backend/context.h"
#include "backend/pjrt/pjrt_report.h"
#include "base/alloc.h"

// Reads standard input to its end, however long it is: the options of a host
// that holds them as well. *out ends in a NUL. NULL when it cannot be read.
static char *read_input(const ist__env *env, size_t *out_size) {
  size_t room = 64 * 1024, used = 0;
  char *bytes = ist__alloc(env, room, 1);
  while (bytes != NULL) {
    if (used == room - 1) {
      char *more = ist__alloc(env, 2 * room, 1);
      if (more != NULL) memcpy(more, bytes, used);
      ist__free(env, bytes);
      bytes = more;
      room *= 2;
      continue;
    }
    ssize_t got = read(STDIN_FILENO, bytes + used, room - 1 - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      bytes[used] = '\0';
      *out_size = used;
      if (got == 0) return bytes;
      ist__free(env, bytes);
      return NULL;
    }
    used += (size_t)got;
  }
  return NULL;
}

bool ist__trial_read(ist__trial_request *request) {
  ist__env env;
  size_t size = 0;
  ist__env_init(&env, NULL);
  request->bytes = read_input(&env, &size);
  if (request->bytes == NULL || size / IST__CHILD_OPTION >= INT_MAX) {
    return false;
  }
  int room = (int)(size / IST__CHILD_OPTION) + 1;
  request->options = ist__alloc(&env, (size_t)room * sizeof *request->options,
                                _Alignof(max_align_t));
  request->numbers =
      ist__alloc(&env, (size / 2 + 1) * sizeof(int64_t), _Alignof(max_align_t));
  if (request->options == NULL || request->numbers == NULL) return false;
  request->count = ist__child_options(request->bytes, size, request->options,
                                      room, request->numbers);
  return request->count >= 0;
}

static void say(ist__trial_step *step, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(ist__trial_step *step, const char *format, ...) {
  va_list args;
  va_start(args, format);
  (void)vsnprintf(step->verdict, sizeof step->verdict - 1, format, args);
  va_end(args);
  atomic_store(&step->has_verdict, true);
}

static void note(_Atomic(uint64_t) out[8], const char *name) {
  uint64_t words[8] = {0};
  size_t length = strlen(name);
  memcpy(words, name, length < sizeof words ? length : sizeof words - 1);
  for (int i = 0; i < 8; i++) {
    atomic_store_explicit(&out[i], words[i], memory_order_relaxed);
  }
}

static void note_step(void *self, const char *name) {
  note(((ist__trial_step *)self)->words, name);
}

static void note_trial(void *self, const char *name) {
  note(((ist__trial_step *)self)->capability, name);
}

void ist__trial_step_text(const _Atomic(uint64_t) words[8], char out[64]) {
  uint64_t copy[8];
  for (int i = 0; i < 8; i++) copy[i] = atomic_load(&words[i]);
  memcpy(out, copy, sizeof copy);
  out[63] = '\0';
}

// What a user would be warned of: it is in the log when the plugin is refused.
static void say_log(void *self, ist_log_level level, const char *text) {
  (void)self;
  if (level == IST_LOG_WARNING) fprintf(stderr, "%s\n", text);
}

// No dump of memory for a crash that is expected, no life without the program
// that watches, and where memory runs out, this process goes before the host.
static void be_modest(pid_t parent) {
  struct rlimit none = {0, 0};
  (void)setrlimit(RLIMIT_CORE, &none);
#ifdef __linux__
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    ssize_t done = write(fd, "1000", 4);
    (void)done;
    (void)close(fd);
  }
#endif
  if (getppid() != parent) _exit(1);
}

static ist_code make_report(ist_backend *backend,
                            const ist__trial_request *request, ist_error *err) {
  ist__pjrt_losses losses = {.set = request->losses};
  ist_pjrt_report *report = NULL;
  const ist_device *device =
      ist_backend_device(backend, (size_t)request->device);
  if (device == NULL) {
    return ist_error_set(err, IST_ERR_NO_DEVICE,
                         "a report cannot be made: the plugin has no device %d "
                         "this time; needs as many devices as before",
                         (int)request->device);
  }
  ist_code code = ist__pjrt_report_make(device, &losses, &report, err);
  ist_pjrt_report_release(report);
  return code;
}

noreturn void ist__trial_plugin(const ist__trial_request *request, pid_t parent,
                                ist__trial_step *step) {
  be_modest(parent);
  ist_context_options how = {.struct_size = sizeof how, .log = say_log};
  ist_backend_options options = {.struct_size = sizeof options,
                                 .path = request->path,
                                 .options = request->options,
                                 .option_count = (size_t)request->count,
                                 .trusted = true};
  ist_context *context = NULL;
  ist_backend *backend = NULL;
  ist_error err = {0};
  ist_code code = ist_context_create(&how, &context, &err);
  if (code == IST_OK) {
    context->env.step = note_step;
    context->env.trial = note_trial;
    context->env.step_self = step;
    code = ist_backend_open(context, "pjrt", &options, &backend, &err);
    if (code == IST_OK && request->device >= 0) {
      code = make_report(backend, request, &err);
    }
    ist_backend_release(backend);
  }
  if (code == IST_OK) {
    say(step, "passed");
  } else {
    say(step, "refused %d %d %s", (int)code, (int)err.native, err.message);
  }
  // Without exit handlers: the plugin's are not the question, and a thread of
  // its own may still run.
  _exit(0);
}
