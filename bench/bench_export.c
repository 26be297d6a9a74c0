// SPDX-License-Identifier: Apache-2.0
// What exporting from a PJRT plugin costs in C, against the bare calls that
// any export needs: type, dimensions, layout, ready event, an external
// reference, the address, and the end of the reference.

#include <isthmus/isthmus.h>
#include <string.h>

#include "bare_pjrt.h"
#include "bench_clock.h"

typedef struct export_bench {
  ist_tensor *tensor;
  bare_pjrt bare;
  PJRT_Buffer *buffer;
} export_bench;

static _Alignas(64) float data[1024];

// Adds a tensor to itself: its output is memory of the plugin's own.
static const char program_text[] =
    "func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {\n"
    "  %y = stablehlo.add %x, %x : tensor<1024xf32>\n"
    "  return %y : tensor<1024xf32>\n"
    "}\n";

static void on_delete(void *pointer, void *arg) {
  (void)pointer;
  (void)arg;
}

static void export(void *self, size_t times) {
  export_bench *bench = self;
  ist_error err;
  for (size_t i = 0; i < times; i++) {
    DLManagedTensorVersioned *out = NULL;
    if (ist_tensor_export(bench->tensor, NULL, &out, NULL, &err)) {
      bench_fail("export", err.message);
    }
    out->deleter(out);
  }
}

static void bare_calls(void *self, size_t times) {
  export_bench *bench = self;
  const bare_pjrt *bare = &bench->bare;
  for (size_t i = 0; i < times; i++) {
    IST_PJRT_ARGS(PJRT_Buffer_ElementType_Args, type);
    type.buffer = bench->buffer;
    bare_call(bare, IST_SLOT_Buffer_ElementType, &type);
    IST_PJRT_ARGS(PJRT_Buffer_Dimensions_Args, dims);
    dims.buffer = bench->buffer;
    bare_call(bare, IST_SLOT_Buffer_Dimensions, &dims);
    IST_PJRT_ARGS(PJRT_Buffer_GetMemoryLayout_Args, layout);
    layout.buffer = bench->buffer;
    bare_call(bare, IST_SLOT_Buffer_GetMemoryLayout, &layout);
    bare_await(bare, bench->buffer);
    IST_PJRT_ARGS(PJRT_Buffer_IncreaseExternalReferenceCount_Args, hold);
    hold.buffer = bench->buffer;
    bare_call(bare, IST_SLOT_Buffer_IncreaseExternalReferenceCount, &hold);
    IST_PJRT_ARGS(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, where);
    where.buffer = bench->buffer;
    bare_call(bare, IST_SLOT_Buffer_OpaqueDeviceMemoryDataPointer, &where);
    IST_PJRT_ARGS(PJRT_Buffer_DecreaseExternalReferenceCount_Args, drop);
    drop.buffer = bench->buffer;
    bare_call(bare, IST_SLOT_Buffer_DecreaseExternalReferenceCount, &drop);
  }
}

// The output of a program that ran once.
static ist_tensor *output_of(const ist_device *device, ist_tensor *input) {
  ist_program *program = NULL;
  ist_tensor *output = NULL;
  ist_error err;
  ist_run run = {.struct_size = sizeof run,
                 .inputs = &input,
                 .input_count = 1,
                 .outputs = &output,
                 .output_count = 1};
  if (ist_program_compile(
          device, program_text, strlen(program_text),
          &(ist_program_options){.struct_size = sizeof(ist_program_options),
                                 .name = "add"},
          &program, &err) ||
      ist_program_run(program, &run, &err) || ist_tensor_wait(output, &err)) {
    bench_fail("export", err.message);
  }
  ist_program_release(program);
  return output;
}

int main(int argc, char **argv) {
  bench_plan plan = bench_arguments(argc, argv);
  if (!plan.plugin) bench_fail("export", "needs a plugin");
  ist_backend_options options = {
      .struct_size = sizeof options, .path = plan.plugin, .trusted = true};
  ist_context *context = NULL;
  ist_backend *backend = NULL;
  ist_tensor *input = NULL;
  ist_error err;
  int64_t shape[] = {1024};
  const DLTensor view = {.data = data,
                         .device = {kDLCPU, 0},
                         .ndim = 1,
                         .dtype = {kDLFloat, 32, 1},
                         .shape = shape};
  if (ist_context_create(NULL, &context, &err) ||
      ist_backend_open(context, "pjrt", &options, &backend, &err) ||
      ist_tensor_wrap(context, &view, NULL, NULL, &input, &err)) {
    bench_fail("export", err.message);
  }
  export_bench bench = {.bare = bare_open(plan.plugin)};
  bench.tensor = output_of(ist_backend_device(backend, 0), input);
  bench.buffer = bare_view(&bench.bare, data, 1024, on_delete);
  bench_pair(&plan, "export an output", export, bare_calls, &bench);
  bare_destroy(&bench.bare, bench.buffer);
  ist_tensor_release(bench.tensor);
  ist_tensor_release(input);
  ist_backend_release(backend);
  ist_context_release(context);
  return 0;
}
