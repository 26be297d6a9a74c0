// SPDX-License-Identifier: Apache-2.0
// pjrt_support.c: see pjrt_support.h.

#include "support/pjrt_support.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *find(void *handle, const char *name) {
  void *symbol = dlsym(handle, name);
  if (symbol == NULL) fail_msg("the lying plugin has no %s", name);
  return symbol;
}

lying_levers lying_find(void) {
  lying_levers lying;
  const char *path = getenv("ISTHMUS_LYING_PJRT");
  assert_non_null(path);
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == NULL) fail_msg("%s", dlerror());
  void *symbol;
#define FIND(member, name)     \
  symbol = find(handle, name); \
  memcpy(&lying.member, &symbol, sizeof symbol)
  FIND(set_rules, "lying_set_rules");
  FIND(live, "lying_live");
  FIND(calls, "lying_calls");
  FIND(events, "lying_events");
  FIND(violations, "lying_violations");
  FIND(release_events, "lying_release_events");
  FIND(pending_events, "lying_pending_events");
#undef FIND
  dlclose(handle);
  return lying;
}

void lying_assert_clean(const lying_levers *lying) {
  static const char *const kinds[] = {"errors",  "events",    "buffers",
                                      "clients", "externals", "executables",
                                      "others"};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (lying->live(kinds[i]) != 0)
      fail_msg("%d %s are alive", lying->live(kinds[i]), kinds[i]);
  const char *what = "";
  if (lying->violations(&what) != 0) fail_msg("%s", what);
}

const char *plugin_path(const char *key) {
  const char *path = NULL;
  if (strcmp(key, "lying") == 0) {
    path = getenv("ISTHMUS_LYING_PJRT");
    if (path == NULL) fail_msg("ISTHMUS_LYING_PJRT is not set");
  }
  if (strcmp(key, "P1") == 0) path = getenv("ISTHMUS_P1");
  if (strcmp(key, "P2") == 0) path = getenv("ISTHMUS_P2");
  if (strcmp(key, "P3") == 0) path = getenv("ISTHMUS_P3");
  if (path == NULL) {
    print_message("plugin %s is not on this machine\n", key);
    skip();
  }
  return path;
}

static void keep_log(void *self, ist_log_level level, const char *text) {
  pjrt_bench *bench = self;
  if (level == IST_LOG_DEBUG) return;
  size_t used = strlen(bench->log);
  snprintf(bench->log + used, sizeof bench->log - used, "%s|", text);
}

void bench_context(pjrt_bench *bench, const char *key, const char *rules) {
  memset(bench, 0, sizeof *bench);
  bench->key = key;
  plugin_path(key);
  if (strcmp(key, "lying") == 0) {
    bench->lying = lying_find();
    bench->lying.set_rules(rules != NULL ? rules : "addressable=1");
  }
  counting_allocator_init(&bench->counts);
  ist_allocator allocator = counting_allocator_hook(&bench->counts);
  ist_context_options options = {.struct_size = sizeof options,
                                 .allocator = &allocator,
                                 .log = keep_log,
                                 .log_self = bench};
  bench_ok(bench, ist_context_create(&options, &bench->context, &bench->err));
}

void bench_open(pjrt_bench *bench, const char *key, const char *rules) {
  bench_context(bench, key, rules);
  ist_backend_options options = {
      .struct_size = sizeof options, .path = plugin_path(key), .trusted = true};
  bench_ok(bench, ist_backend_open(bench->context, "pjrt", &options,
                                   &bench->backend, &bench->err));
}

void bench_close(pjrt_bench *bench) {
  ist_backend_release(bench->backend);
  ist_context_release(bench->context);
  // A plugin may give its last view back on a thread of its own, a little
  // later than the call that destroyed it returned.
  for (long turn = 0; turn < 20000000; turn++) {
    if (atomic_load(&bench->counts.live) == 0) break;
    sched_yield();
  }
  assert_int_equal(atomic_load(&bench->counts.live), 0);
  if (strcmp(bench->key, "lying") == 0) lying_assert_clean(&bench->lying);
}

const ist_device *bench_device(pjrt_bench *bench, size_t index) {
  const ist_device *device = ist_backend_device(bench->backend, index);
  assert_non_null(device);
  return device;
}

static void source_delete(DLManagedTensorVersioned *managed) {
  source_tensor *source = managed->manager_ctx;
  atomic_fetch_add(&source->deleted, 1);
  sem_post(&source->gone);
}

void source_make(source_tensor *source, void *data, DLDataType dtype,
                 int32_t ndim, const int64_t *dims) {
  memset(source, 0, sizeof *source);
  memcpy(source->dims, dims, 2 * (size_t)ndim * sizeof(int64_t));
  sem_init(&source->gone, 0, 0);
  DLTensor *tensor = &source->managed.dl_tensor;
  source->managed.version = (DLPackVersion){1, 3};
  source->managed.manager_ctx = source;
  source->managed.deleter = source_delete;
  tensor->data = data;
  tensor->device = (DLDevice){kDLCPU, 0};
  tensor->dtype = dtype;
  tensor->ndim = ndim;
  tensor->shape = source->dims;
  tensor->strides = source->dims + ndim;
}

void source_assert_gone(source_tensor *source) {
  while (sem_wait(&source->gone) != 0) continue;
  assert_int_equal(atomic_load(&source->deleted), 1);
  sem_destroy(&source->gone);
}
