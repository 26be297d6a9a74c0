// SPDX-License-Identifier: Apache-2.0
// Outputs whose extents are only known when they are there: they are tensors
// of their true sizes, with right values, viewed where their memory is dense.

#include <stdlib.h>

#include "backend/backend.h"
#include "backend/pjrt/buffer.h"
#include "backend/pjrt/pjrt_tensor.h"
#include "bridge/tensor.h"
#include "support/pjrt_support.h"

static const DLDataType f32 = {kDLFloat, 32, 1};
static const DLDataType i32 = {kDLInt, 32, 1};

#define SET_SIZE(type, bounded, dimension)                                  \
  "func.func @main(%x: tensor<" type                                        \
  ">, %n: tensor<i32>) -> "                                                 \
  "tensor<" bounded                                                         \
  "> {\n"                                                                   \
  "  %0 = \"stablehlo.set_dimension_size\"(%x, %n) {dimension = " dimension \
  " : i64} : (tensor<" type ">, tensor<i32>) -> tensor<" bounded            \
  ">\n  return %0 : tensor<" bounded ">\n}\n"

// A case: a program that cuts dimension `cut` of an input 1, 2, 3, ...
typedef struct row {
  const char *text;
  int32_t ndim;
  int64_t shape[2];
  int cut;
} row;

static const row line = {
    SET_SIZE("8xf32", "?xf32, #stablehlo.bounds<8>", "0"), 1, {8}, 0};
static const row rows_cut = {
    SET_SIZE("4x3xf32", "?x3xf32, #stablehlo.bounds<4, ?>", "0"), 2, {4, 3}, 0};
static const row columns_cut = {
    SET_SIZE("2x4xf32", "2x?xf32, #stablehlo.bounds<?, 4>", "1"), 2, {2, 4}, 1};

static ist_tensor *wrap(pjrt_bench *bench, void *data, DLDataType dtype,
                        int32_t ndim, const int64_t *shape) {
  int64_t dims[2] = {shape[0], shape[1]};
  DLTensor view = {data, {kDLCPU, 0}, ndim, dtype, dims, NULL, 0};
  ist_tensor *tensor = NULL;
  bench_ok(bench, ist_tensor_wrap(bench->context, &view, NULL, NULL, &tensor,
                                  &bench->err));
  return tensor;
}

static ist_program *compile(pjrt_bench *bench, const char *text) {
  ist_program *program = NULL;
  bench_ok(bench,
           ist_program_compile(bench_device(bench, 0), text, strlen(text), NULL,
                               &program, &bench->err));
  return program;
}

static ist_code run(pjrt_bench *bench, ist_program *program, ist_tensor **in,
                    size_t count, const ist_options *options,
                    ist_tensor **out) {
  ist_run how = {.struct_size = sizeof how,
                 .inputs = in,
                 .input_count = count,
                 .outputs = out,
                 .output_count = 1,
                 .options = options};
  return ist_program_run(program, &how, &bench->err);
}

// The output of a row cut to `kept`.
static ist_tensor *cut(pjrt_bench *bench, const row *r, int32_t kept) {
  _Alignas(64) float data[16];
  for (int i = 0; i < 16; i++) data[i] = (float)(i + 1);
  const int64_t none[2] = {0, 0};
  ist_program *program = compile(bench, r->text);
  ist_tensor *in[2] = {wrap(bench, data, f32, r->ndim, r->shape),
                       wrap(bench, &kept, i32, 0, none)};
  ist_tensor *out = NULL;
  bench_ok(bench, run(bench, program, in, 2, NULL, &out));
  bench_ok(bench, ist_tensor_wait(out, &bench->err));
  ist_tensor_release(in[0]);
  ist_tensor_release(in[1]);
  ist_program_release(program);
  return out;
}

// Element (i, j) of the input, as the output must have it.
static void assert_values(const row *r, int32_t kept, const float *got) {
  int64_t rows = r->cut == 0 ? kept : r->shape[0];
  int64_t columns = r->ndim == 1 ? 1 : r->cut == 1 ? kept : r->shape[1];
  int64_t stride = r->ndim == 1 ? 1 : r->shape[1];
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < columns; j++) {
      assert_true(*got++ == (float)(i * stride + j + 1));
    }
  }
}

static void export_one(pjrt_bench *bench, const row *r, int32_t kept,
                       ist_copy copy) {
  ist_tensor *tensor = cut(bench, r, kept);
  ist_options options = {.struct_size = sizeof options, .copy = copy};
  ist_receipt receipt = {.struct_size = sizeof receipt};
  DLManagedTensorVersioned *out = NULL;
  bench_ok(bench,
           ist_tensor_export(tensor, &options, &out, &receipt, &bench->err));
  ist_tensor_release(tensor);
  const DLTensor *view = &out->dl_tensor;
  assert_int_equal(view->ndim, r->ndim);
  int64_t size = 4;
  for (int32_t d = 0; d < r->ndim; d++) {
    assert_int_equal(view->shape[d], d == r->cut ? kept : r->shape[d]);
    size *= view->shape[d];
  }
  bool aliased = copy != IST_COPY_ALWAYS;
  assert_int_equal(receipt.route, aliased ? IST_ROUTE_ALIAS : IST_ROUTE_COPY);
  assert_int_equal(receipt.bytes_moved, aliased ? 0 : size);
  if (kept != 0) {
    assert_values(
        r, kept, (const float *)((const char *)view->data + view->byte_offset));
  }
  out->deleter(out);
}

static void dynamic_output__is_exported_by_its_true_size(void **state) {
  static const row *const all[] = {&line, &rows_cut, &columns_cut};
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  for (size_t i = 0; i < COUNT_OF(all); i++) {
    int32_t most = (int32_t)all[i]->shape[all[i]->cut];
    for (int32_t kept = 0; kept <= most; kept++) {
      export_one(&bench, all[i], kept, IST_COPY_AUTO);
      export_one(&bench, all[i], kept, IST_COPY_ALWAYS);
    }
  }
  bench_close(&bench);
}

static void dynamic_output__is_described_by_its_bound(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_program *program = compile(&bench, columns_cut.text);
  ist_spec spec = {.struct_size = sizeof spec};
  bench_ok(&bench, ist_program_output(program, 0, &spec, &bench.err));
  assert_int_equal(spec.shape[0], 2);
  assert_int_equal(spec.shape[1], 4);
  ist_program_release(program);
  bench_close(&bench);
}

static void dynamic_output__moves_to_the_host(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_tensor *tensor = cut(&bench, &columns_cut, 3), *moved = NULL;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  bench_ok(&bench, ist_tensor_move(tensor, ist_context_host(bench.context),
                                   NULL, &moved, &receipt, &bench.err));
  assert_int_equal(receipt.bytes_moved, 0);
  ist_tensor_release(tensor);
  assert_int_equal(ist_tensor_view(moved)->shape[1], 3);
  assert_values(&columns_cut, 3, ist_tensor_view(moved)->data);
  ist_tensor_release(moved);
  bench_close(&bench);
}

// The device pads it: a program would read the padding.
static void dynamic_output__is_no_input_but_its_copy_is(void **state) {
  static const char negate[] =
      "func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
      "  %0 = stablehlo.negate %x : tensor<2x3xf32>\n"
      "  return %0 : tensor<2x3xf32>\n}\n";
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_tensor *tensor = cut(&bench, &columns_cut, 3), *out = NULL;
  ist_program *program = compile(&bench, negate);
  assert_refused(run(&bench, program, &tensor, 1, NULL, &out),
                 IST_ERR_DYNAMIC_SHAPE, bench.err, "needs a dense copy");
  assert_null(out);
  ist_options options = {.struct_size = sizeof options,
                         .copy = IST_COPY_ALWAYS};
  bench_ok(&bench, run(&bench, program, &tensor, 1, &options, &out));
  float got[6];
  DLTensor to = {got, {kDLCPU, 0}, 2, f32, (int64_t[]){2, 3}, NULL, 0};
  bench_ok(&bench, ist_tensor_copy_into(out, &to, NULL, NULL, &bench.err));
  for (int i = 0; i < 6; i++) got[i] = -got[i];
  assert_values(&columns_cut, 3, got);
  ist_tensor_release(out);
  ist_tensor_release(tensor);
  ist_program_release(program);
  bench_close(&bench);
}

// Both slots answered wrongly by a test's own table over the plugin's.
static int lie_number;

static PJRT_Error *lie_indices(void *args) {
  static const size_t far[1] = {64}, first[1] = {0};
  PJRT_Buffer_DynamicDimensionIndices_Args *a = args;
  a->num_dynamic_dims = lie_number == 0 ? SIZE_MAX : 1;
  a->dynamic_dim_indices = lie_number == 1   ? NULL
                           : lie_number == 2 ? far
                                             : first;
  return NULL;
}

static PJRT_Error *lie_extents(void *args) {
  // Negative, above the bound, another one shrunk, the last a right answer.
  static const int64_t extents[4][2] = {{-1, 4}, {3, 4}, {1, 3}, {1, 4}};
  PJRT_Buffer_UnpaddedDimensions_Args *a = args;
  a->unpadded_dims = lie_number < 6    ? extents[lie_number % 3]
                     : lie_number == 6 ? NULL
                                       : extents[3];
  a->num_dims = lie_number == 7 ? 1 : 2;
  return NULL;
}

static void extents_that_cannot_be__are_the_plugins_fault(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist__pjrt_client *client = bench.backend->self;
  const PJRT_Api *real = client->plugin.pjrt.table;
  size_t size = real->struct_size;
  PJRT_Api *table = calloc(1, size > sizeof *table ? size : sizeof *table);
  assert_non_null(table);
  memcpy(table, real, size);
  table->slot[IST_SLOT_Buffer_DynamicDimensionIndices] = lie_indices;
  table->slot[IST_SLOT_Buffer_UnpaddedDimensions] = lie_extents;
  ist__pjrt_shape shape = {11, 2, (int64_t[]){2, 4}, NULL};
  const float data[8] = {0};
  const ist__pjrt_memory *memory = &client->devices[0].memories[0];
  PJRT_Buffer *buffer = NULL;
  bench_ok(&bench, ist__pjrt_from_host(client, memory, &shape, data, &buffer,
                                       &bench.err));
  client->plugin.pjrt.table = table;
  ist__pjrt_tensor *tensor = NULL;
  for (lie_number = 0; lie_number < 8; lie_number++) {
    assert_refused(
        ist__pjrt_tensor_of(client, memory, buffer, &tensor, &bench.err),
        IST_ERR_DYNAMIC_SHAPE, bench.err, "dynamic dimensions");
    assert_null(tensor);
  }
  table->slot[IST_SLOT_Buffer_UnpaddedDimensions] = NULL;
  assert_refused(
      ist__pjrt_tensor_of(client, memory, buffer, &tensor, &bench.err),
      IST_ERR_DYNAMIC_SHAPE, bench.err, "cannot tell them");
  client->plugin.pjrt.table = real;
  ist__pjrt_destroy(&client->plugin.pjrt, buffer);
  free(table);
  bench_close(&bench);
}

// Memory with gaps is never viewed: its values are copied out.
static PJRT_Error *shrink(void *args) {
  static const int64_t extents[2] = {2, 3};
  PJRT_Buffer_UnpaddedDimensions_Args *a = args;
  a->unpadded_dims = extents;
  a->num_dims = 2;
  return NULL;
}

static PJRT_Error *second_is_dynamic(void *args) {
  static const size_t second[1] = {1};
  PJRT_Buffer_DynamicDimensionIndices_Args *a = args;
  a->num_dynamic_dims = 1;
  a->dynamic_dim_indices = second;
  return NULL;
}

static const PJRT_Api *honest;

static PJRT_Error *to_host_without_gaps(void *args) {
  PJRT_Buffer_ToHostBuffer_Args *a = args;
  const float values[6] = {1, 2, 3, 5, 6, 7};
  if (a->dst != NULL) memcpy(a->dst, values, sizeof values);
  a->dst_size = sizeof values;
  if (a->dst == NULL) return NULL;
  IST_PJRT_ARGS(PJRT_Buffer_ReadyEvent_Args, done);
  done.buffer = a->src;
  PJRT_Error *error = honest->slot[IST_SLOT_Buffer_ReadyEvent](&done);
  a->event = done.event;
  return error;
}

static void padding_between_values__is_never_viewed(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist__pjrt_client *client = bench.backend->self;
  const PJRT_Api *real = client->plugin.pjrt.table;
  size_t size = real->struct_size;
  PJRT_Api *table = calloc(1, size > sizeof *table ? size : sizeof *table);
  assert_non_null(table);
  memcpy(table, real, size);
  honest = real;
  table->slot[IST_SLOT_Buffer_DynamicDimensionIndices] = second_is_dynamic;
  table->slot[IST_SLOT_Buffer_UnpaddedDimensions] = shrink;
  table->slot[IST_SLOT_Buffer_ToHostBuffer] = to_host_without_gaps;
  ist__pjrt_shape shape = {11, 2, (int64_t[]){2, 4}, NULL};
  const float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const ist__pjrt_memory *memory = &client->devices[0].memories[0];
  PJRT_Buffer *buffer = NULL;
  bench_ok(&bench, ist__pjrt_from_host(client, memory, &shape, data, &buffer,
                                       &bench.err));
  client->plugin.pjrt.table = table;
  ist__pjrt_tensor *tensor = NULL;
  bench_ok(&bench,
           ist__pjrt_tensor_of(client, memory, buffer, &tensor, &bench.err));
  ist_loan loan = {.struct_size = sizeof loan};
  assert_refused(ist__pjrt_lend(client, tensor, &loan, &bench.err),
                 IST_ERR_TARGET_LAYOUT, bench.err, "gaps");
  float got[6];
  bench_ok(&bench,
           ist__pjrt_copy_out(client, tensor, got, sizeof got, &bench.err));
  assert_values(&columns_cut, 3, got);
  client->plugin.pjrt.table = real;
  ist__pjrt_release(client, tensor);
  free(table);
  bench_close(&bench);
}

#define ON_REAL_PLUGINS(function)                      \
  {#function " (P1)", function, NULL, NULL, "P1"},     \
      {#function " (P2)", function, NULL, NULL, "P2"}, \
      {#function " (P3)", function, NULL, NULL, "P3"}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_REAL_PLUGINS(dynamic_output__is_exported_by_its_true_size),
      ON_REAL_PLUGINS(dynamic_output__is_described_by_its_bound),
      ON_REAL_PLUGINS(dynamic_output__moves_to_the_host),
      ON_REAL_PLUGINS(dynamic_output__is_no_input_but_its_copy_is),
      ON_EACH_PLUGIN(extents_that_cannot_be__are_the_plugins_fault),
      ON_EACH_PLUGIN(padding_between_values__is_never_viewed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
