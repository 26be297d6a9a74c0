// SPDX-License-Identifier: Apache-2.0
// Buffers that no bridge may touch, at every door: deleted, with an error in
// place of values, without an address, tiled, a tuple. Each is refused with
// its own code, nothing is left behind, and what is known of it stays known.
// Dynamic extents are in dynamic_shape_test.c.

#include <stdlib.h>

#include "backend/backend.h"
#include "backend/pjrt/buffer.h"
#include "backend/pjrt/pjrt_tensor.h"
#include "bridge/tensor.h"
#include "support/pjrt_support.h"

static const DLDataType f32 = {kDLFloat, 32, 1};

static const char real_text[] =
    "func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {\n"
    "  %0 = stablehlo.add %x, %x : tensor<6xf32>\n"
    "  return %0 : tensor<6xf32>\n}\n";

typedef struct guard {
  pjrt_bench bench;
  ist_tensor *tensor;  // an output, in memory of the plugin's own
  ist_program *program;
} guard;

static void guard_open(guard *g, const char *key, const char *rules) {
  bench_open(&g->bench, key, rules);
  float data[6] = {0, 1, 2, 3, 4, 5};
  DLTensor memory = {data, {kDLCPU, 0}, 1, f32, (int64_t[]){6}, NULL, 0};
  ist_tensor *in = NULL;
  bench_ok(&g->bench, ist_tensor_wrap(g->bench.context, &memory, NULL, NULL,
                                      &in, &g->bench.err));
  const char *text =
      strcmp(key, "lying") == 0 ? "lying.identity 11 6" : real_text;
  bench_ok(&g->bench,
           ist_program_compile(bench_device(&g->bench, 0), text, strlen(text),
                               NULL, &g->program, &g->bench.err));
  g->tensor = NULL;
  ist_run run = {.struct_size = sizeof run,
                 .inputs = &in,
                 .input_count = 1,
                 .outputs = &g->tensor,
                 .output_count = 1};
  bench_ok(&g->bench, ist_program_run(g->program, &run, &g->bench.err));
  ist_tensor_release(in);
}

static void guard_close(guard *g) {
  ist_tensor_release(g->tensor);
  ist_program_release(g->program);
  bench_close(&g->bench);
}

static const ist__pjrt *pjrt_of(const guard *g) {
  const ist__pjrt_client *client = g->bench.backend->self;
  return &client->plugin.pjrt;
}

// ---- the doors; each leaves its outputs NULL

static ist_code by_wait(guard *g, ist_copy copy) {
  (void)copy;
  return ist_tensor_wait(g->tensor, &g->bench.err);
}

static ist_code by_export(guard *g, ist_copy copy) {
  ist_options options = {.struct_size = sizeof options, .copy = copy};
  DLManagedTensorVersioned *out = (void *)g;
  ist_code code =
      ist_tensor_export(g->tensor, &options, &out, NULL, &g->bench.err);
  if (code != IST_OK) assert_null(out);
  if (code == IST_OK) out->deleter(out);
  return code;
}

static ist_code by_legacy_export(guard *g, ist_copy copy) {
  ist_options options = {.struct_size = sizeof options, .copy = copy};
  DLManagedTensor *out = (void *)g;
  ist_code code =
      ist_tensor_export_legacy(g->tensor, &options, &out, NULL, &g->bench.err);
  if (code != IST_OK) assert_null(out);
  if (code == IST_OK) out->deleter(out);
  return code;
}

static ist_code by_move(guard *g, const ist_device *device, ist_copy copy) {
  ist_options options = {.struct_size = sizeof options, .copy = copy};
  ist_tensor *out = (void *)g;
  ist_code code =
      ist_tensor_move(g->tensor, device, &options, &out, NULL, &g->bench.err);
  if (code != IST_OK) assert_null(out);
  ist_tensor_release(out);
  return code;
}

static ist_code by_move_to_host(guard *g, ist_copy copy) {
  return by_move(g, ist_context_host(g->bench.context), copy);
}

static ist_code by_move_to_a_device(guard *g, ist_copy copy) {
  return by_move(g, bench_device(&g->bench, 1), copy);
}

static ist_code by_copy_into(guard *g, ist_copy copy) {
  (void)copy;
  float got[6];
  DLTensor to = {got, {kDLCPU, 0}, 1, f32, (int64_t[]){6}, NULL, 0};
  return ist_tensor_copy_into(g->tensor, &to, NULL, NULL, &g->bench.err);
}

static ist_code by_run(guard *g, ist_copy copy) {
  ist_options options = {.struct_size = sizeof options, .copy = copy};
  ist_tensor *out = (void *)g;
  ist_run run = {.struct_size = sizeof run,
                 .inputs = &g->tensor,
                 .input_count = 1,
                 .outputs = &out,
                 .output_count = 1,
                 .options = &options};
  ist_code code = ist_program_run(g->program, &run, &g->bench.err);
  if (code != IST_OK) assert_null(out);
  ist_tensor_release(out);
  return code;
}

typedef ist_code (*door)(guard *g, ist_copy copy);

static const struct {
  const char *name;
  door door;
} doors[] = {
    {"wait", by_wait},
    {"export", by_export},
    {"legacy export", by_legacy_export},
    {"move to the host", by_move_to_host},
    {"move to a device", by_move_to_a_device},
    {"copy into", by_copy_into},
    {"run", by_run},
};

// Every door, with every wish, answers with one code.
static void assert_every_door(guard *g, ist_code wanted, const char *words) {
  for (size_t i = 0; i < COUNT_OF(doors); i++) {
    for (int copy = IST_COPY_AUTO; copy <= IST_COPY_ALWAYS; copy++) {
      ist_code code = doors[i].door(g, (ist_copy)copy);
      if (code != wanted) {
        fail_msg("%s, copy %d: %d: %s", doors[i].name, copy, (int)code,
                 g->bench.err.message);
      }
      assert_refused(code, wanted, g->bench.err, words);
    }
  }
  // What was known is known: nothing of it needs the plugin.
  ist_tensor_info info = {.struct_size = sizeof info};
  bench_ok(&g->bench, ist_tensor_describe(g->tensor, &info, &g->bench.err));
  assert_int_equal(info.nbytes, 24);
  assert_int_equal(ist_tensor_view(g->tensor)->shape[0], 6);
}

// ---- what they refuse

static PJRT_Buffer **inside(const guard *g) {
  return &((ist__pjrt_tensor *)g->tensor->buffer)->buffer;
}

static void deleted_buffer__is_refused_at_every_door(void **state) {
  guard g;
  guard_open(&g, *state, NULL);
  IST_PJRT_ARGS(PJRT_Buffer_Delete_Args, delete_it);
  delete_it.buffer = *inside(&g);
  ist__pjrt_end(pjrt_of(&g), IST_SLOT_Buffer_Delete, &delete_it);
  assert_every_door(&g, IST_ERR_DELETED, "deleted");
  guard_close(&g);
}

// A buffer with an error, of any plugin of 0.82 or later, in the tensor's
// place.
static void errored_buffer__is_refused_at_every_door(void **state) {
  guard g;
  guard_open(&g, *state, NULL);
  const ist__pjrt_client *client = g.bench.backend->self;
  const ist__pjrt_memory *memory = &client->devices[0].memories[0];
  int64_t six = 6;
  static const char text[] = "the reactor has melted";
  IST_PJRT_ARGS(PJRT_Client_CreateErrorBuffer_Args, make);
  make.client = client->client;
  make.error_code = PJRT_Error_Code_DATA_LOSS;
  make.error_message = text;
  make.error_message_size = sizeof text - 1;
  make.shape_element_type = 11;
  make.shape_dims = &six;
  make.shape_num_dims = 1;
  make.memory = memory->memory;
  ist_code code = ist__pjrt_call(pjrt_of(&g), IST_SLOT_Client_CreateErrorBuffer,
                                 &make, &g.bench.err);
  if (code == IST_ERR_PLUGIN_SLOT) {
    guard_close(&g);
    print_message("the plugin makes no buffers with errors\n");
    skip();
  }
  bench_ok(&g.bench, code);
  ist__pjrt_destroy(pjrt_of(&g), *inside(&g));
  *inside(&g) = make.buffer;
  bool lies = strcmp(*state, "lying") == 0;
  assert_every_door(&g, IST_ERR_BUFFER,
                    lies ? "completes with an error" : text);
  guard_close(&g);
}

// The slow path is left, and the fast one says why it is not.
static void assert_copies_only(guard *g, ist_code never, const char *words) {
  static const door with_address[] = {by_export, by_legacy_export,
                                      by_move_to_host};
  for (size_t i = 0; i < COUNT_OF(with_address); i++) {
    assert_refused(with_address[i](g, IST_COPY_NEVER), never, g->bench.err,
                   words);
    bench_ok(&g->bench, with_address[i](g, IST_COPY_AUTO));
    bench_ok(&g->bench, with_address[i](g, IST_COPY_ALWAYS));
  }
  bench_ok(&g->bench, by_copy_into(g, IST_COPY_AUTO));
  bench_ok(&g->bench, by_run(g, IST_COPY_AUTO));
  bench_ok(&g->bench, by_wait(g, IST_COPY_AUTO));
}

static PJRT_Error *no_address(void *args) {
  PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args *a = args;
  a->device_memory_ptr = NULL;
  return NULL;
}

static PJRT_Error *tiled_layout(void *args) {
  static const int64_t order[1] = {0}, tile[3] = {4, 2, 1};
  static const size_t size[2] = {1, 2};
  PJRT_Buffer_GetMemoryLayout_Args *a = args;
  a->layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  a->layout.tiled.minor_to_major = order;
  a->layout.tiled.minor_to_major_size = 1;
  a->layout.tiled.tile_dims = tile;
  a->layout.tiled.tile_dim_sizes = size;
  a->layout.tiled.num_tiles = 2;
  return NULL;
}

// The plugin's own table with one slot that answers otherwise.
static PJRT_Api *table_with(guard *g, int slot, ist_pjrt_fn answer) {
  ist__pjrt_client *client = g->bench.backend->self;
  const PJRT_Api *real = client->plugin.pjrt.table;
  size_t size = real->struct_size;
  PJRT_Api *table = calloc(1, size > sizeof *table ? size : sizeof *table);
  assert_non_null(table);
  memcpy(table, real, size < sizeof *table ? size : sizeof *table);
  table->slot[slot] = answer;
  client->plugin.pjrt.table = table;
  return table;
}

static void buffer_without_an_address__is_copied_and_never_viewed(
    void **state) {
  guard g;
  guard_open(&g, *state, NULL);
  ist__pjrt_client *client = g.bench.backend->self;
  const PJRT_Api *real = client->plugin.pjrt.table;
  PJRT_Api *table =
      table_with(&g, IST_SLOT_Buffer_OpaqueDeviceMemoryDataPointer, no_address);
  assert_copies_only(&g, IST_ERR_NOT_ADDRESSABLE, "tells no address");
  client->plugin.pjrt.table = real;
  free(table);
  guard_close(&g);
}

static void tiled_buffer__is_copied_and_its_tile_is_named(void **state) {
  guard g;
  guard_open(&g, *state, NULL);
  ist__pjrt_client *client = g.bench.backend->self;
  const PJRT_Api *real = client->plugin.pjrt.table;
  PJRT_Api *table =
      table_with(&g, IST_SLOT_Buffer_GetMemoryLayout, tiled_layout);
  ((ist__pjrt_tensor *)g.tensor->buffer)->order_known = false;
  assert_refused(by_export(&g, IST_COPY_NEVER), IST_ERR_TARGET_LAYOUT,
                 g.bench.err, "tiled T(4)(2,1)");
  bench_ok(&g.bench, by_export(&g, IST_COPY_AUTO));
  bench_ok(&g.bench, by_copy_into(&g, IST_COPY_AUTO));
  client->plugin.pjrt.table = real;
  free(table);
  guard_close(&g);
}

static void tuple__is_refused_when_its_program_is_compiled(void **state) {
  static const char text[] =
      "func.func @main(%x: tuple<tensor<2xf32>>) -> tensor<2xf32> {\n"
      "  %0 = stablehlo.get_tuple_element %x[0] : "
      "(tuple<tensor<2xf32>>) -> tensor<2xf32>\n"
      "  return %0 : tensor<2xf32>\n}\n";
  guard g;
  guard_open(&g, *state, NULL);
  ist_program *program = (void *)&g;
  ist_code code =
      ist_program_compile(bench_device(&g.bench, 0), text, strlen(text), NULL,
                          &program, &g.bench.err);
  assert_refused(code, IST_ERR_TUPLE, g.bench.err, "is a tuple");
  assert_null(program);
  guard_close(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_PLUGIN(deleted_buffer__is_refused_at_every_door),
      ON_EACH_PLUGIN(errored_buffer__is_refused_at_every_door),
      ON_EACH_PLUGIN(buffer_without_an_address__is_copied_and_never_viewed),
      ON_EACH_PLUGIN(tiled_buffer__is_copied_and_its_tile_is_named),
      {"tuple__is_refused_when_its_program_is_compiled (P1)",
       tuple__is_refused_when_its_program_is_compiled, NULL, NULL, "P1"},
      {"tuple__is_refused_when_its_program_is_compiled (P2)",
       tuple__is_refused_when_its_program_is_compiled, NULL, NULL, "P2"},
      {"tuple__is_refused_when_its_program_is_compiled (P3)",
       tuple__is_refused_when_its_program_is_compiled, NULL, NULL, "P3"},
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
