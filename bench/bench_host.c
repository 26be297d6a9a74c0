// SPDX-License-Identifier: Apache-2.0
// What crossing costs on the host: import a DLPack tensor and export it again,
// against one malloc and free of a small block.

#include "bench_clock.h"

#include <isthmus/isthmus.h>
#include <stdlib.h>

typedef struct host_bench {
  const ist_device *host;
  DLManagedTensorVersioned source;
  size_t deleted;
} host_bench;

static void count_deleted(DLManagedTensorVersioned *source) {
  ++*(size_t *)source->manager_ctx;
}

static void cross(void *self, size_t times) {
  host_bench *bench = self;
  ist_error err;
  for (size_t i = 0; i < times; i++) {
    ist_tensor *tensor = NULL;
    DLManagedTensorVersioned *out = NULL;
    if (ist_tensor_import(bench->host, &bench->source, NULL, &tensor, NULL,
                          &err) ||
        ist_tensor_export(tensor, NULL, &out, NULL, &err)) {
      bench_fail("host", err.message);
    }
    if (out->dl_tensor.data != bench->source.dl_tensor.data) {
      bench_fail("host", "the export is not the memory that came in");
    }
    ist_tensor_release(tensor);
    out->deleter(out);
  }
}

static void allocate(void *self, size_t times) {
  (void)self;
  for (size_t i = 0; i < times; i++) {
    void *volatile block = malloc(96);  // volatile: not to be left out
    if (!block) bench_fail("host", "malloc gave NULL");
    free(block);
  }
}

int main(int argc, char **argv) {
  bench_plan plan = bench_arguments(argc, argv);
  static _Alignas(64) float data[1024];
  int64_t shape[] = {32, 32};
  int64_t strides[] = {32, 1};
  ist_context *context = NULL;
  ist_error err;
  if (ist_context_create(NULL, &context, &err)) {
    bench_fail("host", err.message);
  }
  host_bench bench = {.host = ist_context_host(context)};
  bench.source = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
      .manager_ctx = &bench.deleted,
      .deleter = count_deleted,
      .dl_tensor = {.data = data,
                    .device = {kDLCPU, 0},
                    .ndim = 2,
                    .dtype = {kDLFloat, 32, 1},
                    .shape = shape,
                    .strides = strides}};
  bench_pair(&plan, "import + export", cross, allocate, &bench);
  if (bench.deleted != plan.iterations * (plan.rounds + 1)) {
    bench_fail("host", "a source was not freed exactly once");
  }
  ist_context_release(context);
  return 0;
}
