// SPDX-License-Identifier: Apache-2.0
// What else a PJRT plugin is used for costs in C, against the bare calls:
// running a tiny program, a copying import, opening. Views and exports have
// benches of their own, which ./dev bench pjrt runs too.

#include <isthmus/isthmus.h>
#include <stdlib.h>
#include <string.h>

#include "bare_pjrt.h"
#include "bench_clock.h"

typedef struct pjrt_bench {
  ist_context *context;
  ist_backend *backend;
  const ist_device *device;
  const char *path;
  bare_pjrt bare;
  // A program that adds a tensor to itself, and its input.
  ist_program *program;
  ist_tensor *input;
  PJRT_LoadedExecutable *executable;
  PJRT_Buffer *argument;
  bool waits;
  // A large block to be copied, and warm memory for memcpy.
  DLManagedTensorVersioned source;
  int64_t count;
  float *warm;
} pjrt_bench;

enum {
  ELEMENTS = 1024,
  F32 = 11  // PJRT_Buffer_Type
};

static _Alignas(64) float data[ELEMENTS];

static const char program_text[] =
    "func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {\n"
    "  %y = stablehlo.add %x, %x : tensor<1024xf32>\n"
    "  return %y : tensor<1024xf32>\n"
    "}\n";

static void nothing(DLManagedTensorVersioned *source) {
  (void)source;
}

static void on_delete(void *pointer, void *arg) {
  (void)pointer;
  (void)arg;
}

static void need(ist_code code, const char *what, const ist_error *err) {
  if (code != IST_OK) bench_fail(what, err->message);
}

// ---- a tiny program

static void run(void *self, size_t times) {
  pjrt_bench *bench = self;
  ist_error err;
  for (size_t i = 0; i < times; i++) {
    ist_tensor *output = NULL;
    ist_run run = {.struct_size = sizeof run,
                   .inputs = &bench->input,
                   .input_count = 1,
                   .outputs = &output,
                   .output_count = 1};
    need(ist_program_run(bench->program, &run, &err), "run", &err);
    if (bench->waits) need(ist_tensor_wait(output, &err), "run", &err);
    ist_tensor_release(output);
  }
}

static void bare_run(void *self, size_t times) {
  pjrt_bench *bench = self;
  const int64_t kept = 0;
  for (size_t i = 0; i < times; i++) {
    PJRT_Buffer *const arguments[] = {bench->argument};
    PJRT_Buffer *const *const lists[] = {arguments};
    PJRT_Buffer *results[] = {NULL};
    PJRT_Buffer **const outputs[] = {results};
    PJRT_ExecuteOptions options = {.struct_size = PJRT_ExecuteOptions_SIZE};
    options.non_donatable_input_indices = &kept;
    options.num_non_donatable_input_indices = 1;
    IST_PJRT_ARGS(PJRT_LoadedExecutable_Execute_Args, execute);
    execute.executable = bench->executable;
    execute.options = &options;
    execute.argument_lists = lists;
    execute.num_devices = 1;
    execute.num_args = 1;
    execute.output_lists = outputs;
    bare_call(&bench->bare, IST_SLOT_LoadedExecutable_Execute, &execute);
    if (bench->waits) bare_await(&bench->bare, results[0]);
    bare_destroy(&bench->bare, results[0]);
  }
}

static PJRT_LoadedExecutable *bare_compile(const bare_pjrt *bare) {
  PJRT_Program program = {.struct_size = PJRT_Program_SIZE};
  program.code = (char *)(uintptr_t)program_text;
  program.code_size = strlen(program_text);
  program.format = "mlir";
  program.format_size = 4;
  // CompileOptionsProto: one replica, one partition.
  static const char options[] = {0x1a, 0x04, 0x20, 0x01, 0x28, 0x01};
  IST_PJRT_ARGS(PJRT_Client_Compile_Args, compile);
  compile.client = bare->client;
  compile.program = &program;
  compile.compile_options = options;
  compile.compile_options_size = sizeof options;
  bare_call(bare, IST_SLOT_Client_Compile, &compile);
  return compile.executable;
}

static void time_runs(pjrt_bench *bench, const bench_plan *plan) {
  int64_t shape[] = {ELEMENTS};
  const DLTensor view = {.data = data,
                         .device = {kDLCPU, 0},
                         .ndim = 1,
                         .dtype = {kDLFloat, 32, 1},
                         .shape = shape};
  ist_program_options named = {.struct_size = sizeof named, .name = "add"};
  ist_tensor *host = NULL;
  ist_error err;
  need(ist_tensor_wrap(bench->context, &view, NULL, NULL, &host, &err), "wrap",
       &err);
  need(ist_tensor_move(host, bench->device, NULL, &bench->input, NULL, &err),
       "move", &err);
  need(ist_program_compile(bench->device, program_text, strlen(program_text),
                           &named, &bench->program, &err),
       "compile", &err);
  bench->executable = bare_compile(&bench->bare);
  bench->argument = bare_view(&bench->bare, data, ELEMENTS, on_delete);
  bench_pair(plan, "run a tiny program, no wait", run, bare_run, bench);
  bench->waits = true;
  bench_pair(plan, "run a tiny program, awaited", run, bare_run, bench);
  bare_destroy(&bench->bare, bench->argument);
  ist_program_release(bench->program);
  ist_tensor_release(bench->input);
  ist_tensor_release(host);
}

// ---- a copying import

static void copy_in(void *self, size_t times) {
  pjrt_bench *bench = self;
  ist_options options = {.struct_size = sizeof options,
                         .copy = IST_COPY_ALWAYS};
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_error err;
  for (size_t i = 0; i < times; i++) {
    ist_tensor *tensor = NULL;
    need(ist_tensor_import(bench->device, &bench->source, &options, &tensor,
                           &receipt, &err),
         "copy", &err);
    need(ist_tensor_wait(tensor, &err), "copy", &err);
    if (receipt.hops != 1 ||
        receipt.bytes_moved != (uint64_t)bench->count * sizeof(float)) {
      bench_fail("copy", "more than one copy was made");
    }
    ist_tensor_release(tensor);
  }
}

static void bare_memcpy(void *self, size_t times) {
  pjrt_bench *bench = self;
  void *(*volatile copy)(void *, const void *, size_t) = memcpy;
  for (size_t i = 0; i < times; i++) {
    copy(bench->warm, bench->source.dl_tensor.data,
         (size_t)bench->count * sizeof(float));
  }
}

static void bare_copy_in(void *self, size_t times) {
  pjrt_bench *bench = self;
  for (size_t i = 0; i < times; i++) {
    IST_PJRT_ARGS(PJRT_Client_BufferFromHostBuffer_Args, from);
    from.client = bench->bare.client;
    from.data = bench->source.dl_tensor.data;
    from.type = F32;
    from.dims = &bench->count;
    from.num_dims = 1;
    from.device = bench->bare.device;
    bare_call(&bench->bare, IST_SLOT_Client_BufferFromHostBuffer, &from);
    bare_await_event(&bench->bare, from.done_with_host_buffer);
    bare_await(&bench->bare, from.buffer);
    bare_destroy(&bench->bare, from.buffer);
  }
}

// Memory of the host's with its pages there, in huge pages, as pool blocks are.
static ist_tensor *make_warm(const pjrt_bench *bench) {
  ist_spec spec = {.struct_size = sizeof spec,
                   .dtype = {kDLFloat, 32, 1},
                   .ndim = 1,
                   .shape = {bench->count}};
  ist_tensor *tensor = NULL;
  ist_error err;
  need(ist_tensor_empty(bench->context, &spec, 0, &tensor, &err), "empty",
       &err);
  memset(ist_tensor_view(tensor)->data, 1, (size_t)bench->count * 4);
  return tensor;
}

static void time_copies(pjrt_bench *bench, const bench_plan *plan) {
  const char *mib = getenv("BENCH_MIB");
  bench->count = (mib != NULL ? strtol(mib, NULL, 10) : 256) * (1 << 18);
  bench_plan few = {.rounds = plan->rounds / 20 + 3, .iterations = 1};
  ist_tensor *from = make_warm(bench), *to = make_warm(bench);
  bench->warm = ist_tensor_view(to)->data;
  bench->source = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
      .deleter = nothing,
      .dl_tensor = *ist_tensor_view(from)};
  bench_pair(&few, "copying import / memcpy to warm memory", copy_in,
             bare_memcpy, bench);
  few.rounds = 5;
  bench_pair(&few, "copying import / the plugin's own copy", copy_in,
             bare_copy_in, bench);
  ist_tensor_release(from);
  ist_tensor_release(to);
}

// ---- opening

static void open_backend(void *self, size_t times) {
  pjrt_bench *bench = self;
  ist_backend_options options = {
      .struct_size = sizeof options, .path = bench->path, .trusted = true};
  ist_error err;
  for (size_t i = 0; i < times; i++) {
    ist_backend *backend = NULL;
    need(ist_backend_open(bench->context, "pjrt", &options, &backend, &err),
         "open", &err);
    ist_backend_release(backend);
  }
}

static void bare_client(void *self, size_t times) {
  pjrt_bench *bench = self;
  for (size_t i = 0; i < times; i++) {
    IST_PJRT_ARGS(PJRT_Client_Create_Args, create);
    bare_call(&bench->bare, IST_SLOT_Client_Create, &create);
    IST_PJRT_ARGS(PJRT_Client_Destroy_Args, destroy);
    destroy.client = create.client;
    bare_call(&bench->bare, IST_SLOT_Client_Destroy, &destroy);
  }
}

int main(int argc, char **argv) {
  bench_plan plan = bench_arguments(argc, argv);
  if (!plan.plugin) bench_fail("pjrt", "needs a plugin");
  pjrt_bench bench = {.path = plan.plugin};
  ist_backend_options options = {
      .struct_size = sizeof options, .path = plan.plugin, .trusted = true};
  ist_error err;
  need(ist_context_create(NULL, &bench.context, &err), "context", &err);
  need(ist_backend_open(bench.context, "pjrt", &options, &bench.backend, &err),
       "open", &err);
  bench.device = ist_backend_device(bench.backend, 0);
  bench.bare = bare_open(plan.plugin);
  time_runs(&bench, &plan);
  time_copies(&bench, &plan);
  bench_plan few = {.rounds = 3, .iterations = 1};
  bench_pair(&few, "open again and close / a bare client", open_backend,
             bare_client, &bench);
  ist_backend_release(bench.backend);
  ist_context_release(bench.context);
  return 0;
}
