// SPDX-License-Identifier: Apache-2.0
// What importing a view into a PJRT plugin costs in C, against the plugin's
// own view of foreign memory, called bare; each with its release.

#include <isthmus/isthmus.h>

#include "bare_pjrt.h"
#include "bench_clock.h"

typedef struct view_bench {
  const ist_device *device;
  DLManagedTensorVersioned source;
  bare_pjrt bare;
} view_bench;

static _Alignas(64) float data[1024];
static int64_t shape[] = {1024};
static int64_t strides[] = {1};

static void nothing(DLManagedTensorVersioned *source) {
  (void)source;
}

static void on_delete(void *pointer, void *arg) {
  (void)pointer;
  (void)arg;
}

static void import(void *self, size_t times) {
  view_bench *bench = self;
  ist_options options = {.struct_size = sizeof options, .copy = IST_COPY_NEVER};
  ist_error err;
  for (size_t i = 0; i < times; i++) {
    ist_tensor *tensor = NULL;
    if (ist_tensor_import(bench->device, &bench->source, &options, &tensor,
                          NULL, &err)) {
      bench_fail("view", err.message);
    }
    ist_tensor_release(tensor);
  }
}

static void create_view(void *self, size_t times) {
  view_bench *bench = self;
  for (size_t i = 0; i < times; i++) {
    bare_destroy(&bench->bare, bare_view(&bench->bare, data, 1024, on_delete));
  }
}

int main(int argc, char **argv) {
  bench_plan plan = bench_arguments(argc, argv);
  if (!plan.plugin) bench_fail("view", "needs a plugin");
  ist_backend_options options = {
      .struct_size = sizeof options, .path = plan.plugin, .trusted = true};
  ist_context *context = NULL;
  ist_backend *backend = NULL;
  ist_error err;
  if (ist_context_create(NULL, &context, &err) ||
      ist_backend_open(context, "pjrt", &options, &backend, &err)) {
    bench_fail("view", err.message);
  }
  view_bench bench = {.device = ist_backend_device(backend, 0),
                      .bare = bare_open(plan.plugin)};
  bench.source = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
      .deleter = nothing,
      .dl_tensor = {.data = data,
                    .device = {kDLCPU, 0},
                    .ndim = 1,
                    .dtype = {kDLFloat, 32, 1},
                    .shape = shape,
                    .strides = strides}};
  bench_pair(&plan, "import a view", import, create_view, &bench);
  ist_backend_release(backend);
  ist_context_release(context);
  return 0;
}
