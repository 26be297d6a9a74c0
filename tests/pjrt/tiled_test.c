// SPDX-License-Identifier: Apache-2.0
// Memory that is really tiled, as on accelerators: tensors go in and out by the
// plugin's own copies with right values, programs take what lies as they read
// it, the rest is laid out anew or refused with both layouts named, and nothing
// is viewed that is not dense.

#include <stdlib.h>

#include "backend/pjrt/told_layout.h"
#include "support/program_support.h"

static const char twice[] = "lying.twice 11 4 4";

// A tensor of 4 x 4 floats on the device, by copy=how.
static ist_tensor *put(pjrt_bench *bench, float *data, ist_copy how,
                       ist_receipt *receipt) {
  ist_tensor *host = program_wrap(bench, data, f32, 2, (int64_t[]){4, 4}, NULL);
  ist_tensor *tensor = NULL;
  ist_options options = {.struct_size = sizeof options, .copy = how};
  bench_ok(bench, ist_tensor_move(host, bench_device(bench, 0), &options,
                                  &tensor, receipt, &bench->err));
  ist_tensor_release(host);
  return tensor;
}

static void assert_values(pjrt_bench *bench, ist_tensor *tensor, float times) {
  float got[16] = {0};
  program_read(bench, tensor, got);
  for (int i = 0; i < 16; i++) assert_true(got[i] == (float)i * times);
}

static ist_code export_by(pjrt_bench *bench, ist_tensor *tensor, ist_copy how,
                          ist_receipt *receipt) {
  DLManagedTensorVersioned *out = NULL;
  ist_options options = {.struct_size = sizeof options, .copy = how};
  ist_code code =
      ist_tensor_export(tensor, &options, &out, receipt, &bench->err);
  if (code != IST_OK) {
    assert_null(out);
    return code;
  }
  const float *got = (const float *)out->dl_tensor.data;
  assert_int_equal(out->dl_tensor.byte_offset % sizeof *got, 0);
  got += out->dl_tensor.byte_offset / sizeof *got;
  for (int i = 0; i < 16; i++) assert_true(got[i] == (float)(2 * i));
  out->deleter(out);
  return code;
}

static bool has_reason(const ist_receipt *receipt, const char *name) {
  for (uint32_t i = 0; i < receipt->reason_count; i++)
    if (strcmp(ist_reason_name(receipt->reasons[i].id), name) == 0) return true;
  return false;
}

static ist_code run_by(pjrt_bench *bench, ist_program *program, ist_tensor *in,
                       ist_copy how, ist_tensor **out, ist_receipt *receipt) {
  ist_options options = {.struct_size = sizeof options, .copy = how};
  *receipt = (ist_receipt){.struct_size = sizeof *receipt};
  ist_run run = {.struct_size = sizeof run,
                 .inputs = &in,
                 .input_count = 1,
                 .outputs = out,
                 .output_count = 1,
                 .options = &options,
                 .receipts = receipt};
  return ist_program_run(program, &run, &bench->err);
}

static void tiled_memory__holds_right_values(void **state) {
  static const char *const rules[] = {"tiled=all", "tiled=all addressable=1",
                                      "tiled=large", "tiled=turned"};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(rules); i++) {
    pjrt_bench bench;
    bench_open(&bench, "lying", rules[i]);
    float *data = program_floats();
    ist_tensor *there = put(&bench, data, IST_COPY_AUTO, NULL), *other = NULL;
    assert_values(&bench, there, 1);
    bench_ok(&bench, ist_tensor_move(there, bench_device(&bench, 1), NULL,
                                     &other, NULL, &bench.err));
    assert_values(&bench, other, 1);
    ist_tensor_release(other);
    ist_tensor_release(there);
    free(data);
    bench_close(&bench);
  }
}

// Sub-byte elements and odd extents: tiles pad them.
static void tiled_memory__holds_packed_and_odd_shapes(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "tiled=all");
  unsigned char packed[8] = {0x21, 0x43, 0x65, 0x87, 0xa9, 0xcb, 0xed, 0x0f};
  unsigned char got[8] = {0};
  ist_tensor *host = program_wrap(&bench, packed, (DLDataType){kDLInt, 4, 1}, 3,
                                  (int64_t[]){1, 3, 5}, NULL);
  ist_tensor *there = NULL;
  bench_ok(&bench, ist_tensor_move(host, bench_device(&bench, 0), NULL, &there,
                                   NULL, &bench.err));
  program_read(&bench, there, got);
  assert_memory_equal(got, packed, 7);
  assert_int_equal(got[7] & 15, packed[7] & 15);
  ist_tensor_release(host);
  ist_tensor_release(there);
  bench_close(&bench);
}

static void tiled_program__runs_on_what_was_copied_in(void **state) {
  static const char *const rules[] = {"tiled=all", "tiled=all addressable=1",
                                      "tiled=large"};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(rules); i++) {
    pjrt_bench bench;
    bench_open(&bench, "lying", rules[i]);
    ist_program *program = program_compile(&bench, 0, twice, NULL);
    ist_spec spec = {.struct_size = sizeof spec};
    bench_ok(&bench, ist_program_input(program, 0, &spec, &bench.err));
    assert_int_equal(spec.strides[0], 4);
    assert_int_equal(spec.strides[1], 1);
    float *data = program_floats();
    ist_tensor *in = put(&bench, data, IST_COPY_AUTO, NULL), *out = NULL;
    ist_receipt receipt;
    // It lies as the program reads it, so that no copy is needed.
    bench_ok(&bench,
             run_by(&bench, program, in, IST_COPY_NEVER, &out, &receipt));
    assert_int_equal(receipt.route, IST_ROUTE_ALIAS);
    assert_false(has_reason(&receipt, "tiled"));
    assert_values(&bench, out, 2);
    // An output is an input of the next run.
    ist_tensor *again = NULL;
    bench_ok(&bench,
             run_by(&bench, program, out, IST_COPY_NEVER, &again, &receipt));
    assert_values(&bench, again, 4);
    ist_tensor_release(again);
    ist_tensor_release(out);
    ist_tensor_release(in);
    free(data);
    ist_program_release(program);
    bench_close(&bench);
  }
}

// The sizes in bytes are the same, so that a plugin would take it.
static void view__never_goes_into_a_tiled_argument_as_it_is(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "tiled=large addressable=1");
  ist_program *program = program_compile(&bench, 0, twice, NULL);
  float *data = program_floats();
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_tensor *view = put(&bench, data, IST_COPY_NEVER, &receipt), *out = NULL;
  assert_int_equal(receipt.route, IST_ROUTE_ALIAS);
  assert_refused(run_by(&bench, program, view, IST_COPY_NEVER, &out, &receipt),
                 IST_ERR_TARGET_LAYOUT, bench.err, "{1,0} on the device");
  assert_non_null(strstr(bench.err.message, "needs {1,0:T(2,2)}"));
  assert_null(out);
  bench_ok(&bench,
           run_by(&bench, program, view, IST_COPY_AUTO, &out, &receipt));
  assert_values(&bench, out, 2);
  assert_int_equal(receipt.route, IST_ROUTE_STAGE);
  assert_int_equal(receipt.hops, 2);
  assert_int_equal(receipt.bytes_moved, 2 * 16 * sizeof(float));
  assert_int_equal(receipt.reason_count, 2);
  assert_true(has_reason(&receipt, "tiled"));
  assert_true(has_reason(&receipt, "staged"));
  assert_values(&bench, view, 1);
  ist_tensor_release(out);
  ist_tensor_release(view);
  free(data);
  ist_program_release(program);
  bench_close(&bench);
}

static void tiled_output__is_copied_and_never_viewed(void **state) {
  static const struct {
    const char *rules;
    ist_code code;
    const char *words;
  } cases[] = {{"tiled=large addressable=1", IST_ERR_TARGET_LAYOUT, "T(2,2)"},
               {"tiled=turned addressable=1", IST_ERR_TARGET_LAYOUT, "T(2,2)"},
               {"tiled=all", IST_ERR_COPY_NEEDED, "no address"}};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    pjrt_bench bench;
    bench_open(&bench, "lying", cases[i].rules);
    ist_program *program = program_compile(&bench, 0, twice, NULL);
    float *data = program_floats();
    ist_tensor *in = put(&bench, data, IST_COPY_AUTO, NULL), *out = NULL;
    ist_receipt receipt;
    bench_ok(&bench,
             run_by(&bench, program, in, IST_COPY_AUTO, &out, &receipt));
    const DLTensor *told = ist_tensor_view(out);
    assert_int_equal(told->strides[0], 4);
    assert_int_equal(told->strides[1], 1);
    assert_refused(export_by(&bench, out, IST_COPY_NEVER, NULL), cases[i].code,
                   bench.err, cases[i].words);
    bench_ok(&bench, export_by(&bench, out, IST_COPY_AUTO, &receipt));
    assert_int_equal(receipt.route, IST_ROUTE_COPY);
    assert_values(&bench, out, 2);
    ist_tensor_release(out);
    ist_tensor_release(in);
    free(data);
    ist_program_release(program);
    bench_close(&bench);
  }
}

// Nothing says in which order the plugin copies out what is permuted, unless a
// permuted view has shown it.
static void permuted_tiles__are_refused_where_nobody_knows_the_order(
    void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "tiled=turned");
  ist_program *program = program_compile(&bench, 0, twice, NULL);
  float *data = program_floats();
  ist_tensor *in = put(&bench, data, IST_COPY_AUTO, NULL), *out = NULL;
  ist_receipt receipt;
  assert_refused(run_by(&bench, program, in, IST_COPY_AUTO, &out, &receipt),
                 IST_ERR_TARGET_LAYOUT, bench.err, "permuted and tiled T(2,2)");
  assert_null(out);
  ist_tensor_release(in);
  free(data);
  ist_program_release(program);
  bench_close(&bench);
}

// A program that reads tiles in memory without: the copy differs as well.
static void tiles_that_no_copy_has__are_refused_with_both_named(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "");
  bench.lying.set_rules("hlo=tiled");
  ist_program *program = program_compile(&bench, 0, twice, NULL);
  float *data = program_floats();
  ist_tensor *in = put(&bench, data, IST_COPY_AUTO, NULL), *out = NULL;
  ist_receipt receipt;
  int runs = bench.lying.calls("LoadedExecutable_Execute");
  assert_refused(run_by(&bench, program, in, IST_COPY_AUTO, &out, &receipt),
                 IST_ERR_TARGET_LAYOUT, bench.err,
                 "a copy of input 0 lies as {1,0} on the device; needs "
                 "{1,0:T(2,2)}");
  assert_null(out);
  assert_int_equal(bench.lying.calls("LoadedExecutable_Execute"), runs);
  ist_tensor_release(in);
  free(data);
  ist_program_release(program);
  bench_close(&bench);
}

// The copy is the program's, and the caller's tensor stays.
static void copied_input__is_not_donated(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", "tiled=large addressable=1");
  ist_program *program =
      program_compile(&bench, 0, "lying.donate 11 4 4", NULL);
  float *data = program_floats();
  ist_tensor *in = put(&bench, data, IST_COPY_ALWAYS, NULL), *out = NULL;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_run run = {.struct_size = sizeof run,
                 .inputs = &in,
                 .input_count = 1,
                 .outputs = &out,
                 .output_count = 1,
                 .receipts = &receipt,
                 .donate = (size_t[]){0},
                 .donate_count = 1};
  bench_ok(&bench, ist_program_run(program, &run, &bench.err));
  assert_true(has_reason(&receipt, "tiled"));
  assert_false(has_reason(&receipt, "donated"));
  assert_values(&bench, in, 1);
  assert_values(&bench, out, 1);
  ist_tensor_release(out);
  ist_tensor_release(in);
  free(data);
  ist_program_release(program);
  bench_close(&bench);
}

// ---- layouts as numbers

static bool read(ist__told_layout *out, const int64_t *dims,
                 const int64_t *order, const int64_t *tile, size_t tiles) {
  const size_t ranks[6] = {2, 2, 2, 2, 2, 2};
  ist__tiling tiling = {2, dims, order, tile, ranks, tiles, 1};
  return ist__told_layout_read(&tiling, out);
}

static void layouts__are_the_same_only_where_all_elements_are(void **state) {
  (void)state;
  static const int64_t dims[2] = {4, 128}, rows[2] = {1, 0},
                       columns[2] = {0, 1};
  static const int64_t row[2] = {1, 128};
  static const int64_t wide[2] = {8, 128}, two[2] = {2, 2};
  ist__told_layout dense, plain, padded, tiled, turned;
  assert_true(read(&dense, dims, rows, NULL, 0));
  assert_true(read(&plain, dims, rows, row, 1));
  assert_true(read(&padded, dims, rows, wide, 1));
  assert_true(read(&tiled, dims, rows, two, 1));
  assert_true(read(&turned, dims, columns, two, 1));
  // Tiles that change nothing are none; rows that are missing at the end are
  // memory that a dense buffer has not.
  assert_true(plain.dense && plain.tile_count == 0);
  assert_true(padded.dense && padded.tile_count == 1);
  assert_false(tiled.dense);
  assert_true(ist__told_layout_same(&dense, &plain, 2, dims));
  assert_false(ist__told_layout_same(&dense, &padded, 2, dims));
  assert_false(ist__told_layout_same(&padded, &tiled, 2, dims));
  assert_true(ist__told_layout_same(&tiled, &tiled, 2, dims));
  assert_false(ist__told_layout_same(&tiled, &turned, 2, dims));
  // A dimension of one index has no place of its own.
  static const int64_t thin[2] = {1, 128};
  assert_true(read(&dense, thin, rows, NULL, 0));
  assert_true(read(&turned, thin, columns, NULL, 0));
  assert_true(ist__told_layout_same(&dense, &turned, 2, thin));
}

static void hostile_tiles__are_no_layout(void **state) {
  (void)state;
  static const int64_t dims[2] = {4, 128}, rows[2] = {1, 0}, twice_[2] = {1, 1};
  static const int64_t none[2] = {0, 2};
  static const int64_t many[12] = {2, 2, 3, 3, 5, 5, 7, 7, 3, 3, 5, 5};
  ist__told_layout told;
  assert_false(read(&told, dims, twice_, NULL, 0));
  assert_false(read(&told, dims, rows, none, 1));
  assert_false(read(&told, dims, rows, many, 6));
  assert_non_null(strstr(told.why, "more than 4 tiles"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiled_memory__holds_right_values),
      cmocka_unit_test(tiled_memory__holds_packed_and_odd_shapes),
      cmocka_unit_test(tiled_program__runs_on_what_was_copied_in),
      cmocka_unit_test(view__never_goes_into_a_tiled_argument_as_it_is),
      cmocka_unit_test(tiled_output__is_copied_and_never_viewed),
      cmocka_unit_test(
          permuted_tiles__are_refused_where_nobody_knows_the_order),
      cmocka_unit_test(tiles_that_no_copy_has__are_refused_with_both_named),
      cmocka_unit_test(copied_input__is_not_donated),
      cmocka_unit_test(layouts__are_the_same_only_where_all_elements_are),
      cmocka_unit_test(hostile_tiles__are_no_layout),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
