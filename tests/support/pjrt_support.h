// SPDX-License-Identifier: Apache-2.0
// pjrt_support.h: what the tests of PJRT share: the lying plugin's levers, the
// real plugins' paths, an open backend with its counts.

#ifndef TESTS_SUPPORT_PJRT_SUPPORT_H
#define TESTS_SUPPORT_PJRT_SUPPORT_H

#include <semaphore.h>

#include "support/counting_allocator.h"
#include "support/testing.h"

// The lying plugin's own functions, found by dlsym.
typedef struct lying_levers {
  void (*set_rules)(const char *rules);
  int (*live)(const char *kind);
  int (*calls)(const char *slot);
  int (*events)(void);
  int (*violations)(const char **what);
  int (*release_events)(void);
  int (*pending_events)(void);
} lying_levers;

// Finds the levers; the test fails when the plugin was not built.
lying_levers lying_find(void);
// The test fails unless nothing of the plugin is alive and nothing was done
// that kills real plugins.
void lying_assert_clean(const lying_levers *lying);

// The path of "lying", "P1", "P2" or "P3"; skips the test when it is not here.
const char *plugin_path(const char *key);

// One open backend with all that a test asks of it afterwards.
typedef struct pjrt_bench {
  counting_allocator counts;
  ist_context *context;
  ist_backend *backend;
  const char *key;
  lying_levers lying;  // when key is "lying"
  char log[4096];      // the last log texts, joined
  ist_error err;
} pjrt_bench;

// Opens a plugin by key; rules are for the lying plugin (NULL: addressable).
void bench_open(pjrt_bench *bench, const char *key, const char *rules);
// Makes the context only, with its log and its counts.
void bench_context(pjrt_bench *bench, const char *key, const char *rules);
// Closes, and asserts that nothing is left.
void bench_close(pjrt_bench *bench);
const ist_device *bench_device(pjrt_bench *bench, size_t index);

// A managed tensor of the test's own whose deleter is counted. It views data,
// which the test keeps.
typedef struct source_tensor {
  DLManagedTensorVersioned managed;
  int64_t dims[2 * IST_MAX_NDIM];
  atomic_int deleted;
  sem_t gone;
} source_tensor;

// dims are ndim extents, then ndim strides.
void source_make(source_tensor *source, void *data, DLDataType dtype,
                 int32_t ndim, const int64_t *dims);
// Waits for the deleter, which may run on a thread of a plugin's, and asserts
// that it was called once.
void source_assert_gone(source_tensor *source);

// A table row for each plugin; the key is the test's state.
#define ON_EACH_PLUGIN(function)                         \
  {#function " (lying)", function, NULL, NULL, "lying"}, \
      {#function " (P1)", function, NULL, NULL, "P1"},   \
      {#function " (P2)", function, NULL, NULL, "P2"},   \
      {#function " (P3)", function, NULL, NULL, "P3"}

#define bench_ok(bench, call)                                   \
  do {                                                          \
    if ((call) != IST_OK) fail_msg("%s", (bench)->err.message); \
  } while (0)

#endif
