// SPDX-License-Identifier: Apache-2.0
// packing_test.c: elements below a byte, packed and one to a byte, and what
// changes between the two: every door, both ways, value by value against
// gather_bits; and fp4 counted by pairs (dmlc/dlpack#158,
// pytorch/pytorch#148791).

#include "support/producer.h"
#include "support/sample.h"
#include "tensor/dtype.h"

typedef struct world {
  counted_context c;
  ist_backend *card;  // its memory has no address here
} world;

static int begin(void **state) {
  static world w;
  counted_context_begin(&w.c);
  ist_option options[] = {{.name = "addressable", .kind = IST_OPTION_BOOL}};
  ist_backend_options how = {
      .struct_size = sizeof how, .options = options, .option_count = 1};
  ist_error error;
  assert_ok(ist_backend_open(w.c.context, "template", &how, &w.card, &error),
            error);
  *state = &w;
  return 0;
}

static int end(void **state) {
  world *w = *state;
  ist_backend_release(w->card);
  counted_context_end(&w->c);
  return 0;
}

static const ist_device *host_of(const world *w) {
  return ist_context_host(w->c.context);
}

// One small dtype in one layout, imported to the host.
typedef struct subject {
  sample from;
  DLDataType dtype;
  ist_tensor *tensor;
} subject;

static void subject_make(world *w, int32_t number, int layout, bool padded,
                         subject *out) {
  ist_error error;
  out->dtype = ist__dtype_of(ist__dtype_at(number));
  sample_make(&out->from, out->dtype, (sample_layout)layout, padded,
              (uint64_t)(number * 10 + layout));
  assert_ok(ist_tensor_import(host_of(w), &out->from.versioned, NULL,
                              &out->tensor, NULL, &error),
            error);
}

static void subject_end(subject *s) {
  ist_tensor_release(s->tensor);
  assert_int_equal(s->from.deleted, 1);
}

// The elements of a dense tensor are the sample's.
static void check_values(const subject *s, const DLTensor *got, bool padded) {
  unsigned char want[sample_room], have[sample_room];
  gather_bits(&s->from.versioned.dl_tensor, s->from.padded, false, want);
  gather_bits(got, padded, false, have);
  assert_memory_equal(have, want, sample_room);
}

// Runs check for every small dtype, layout and packing of the source.
typedef void (*check_fn)(world *w, subject *s);

static void for_each(world *w, check_fn check) {
  for (int32_t i = 0; i < ist__dtype_count(); i++) {
    if (ist__dtype_at(i)->bits >= 8) continue;
    for (int layout = 0; layout < SAMPLE_LAYOUTS; layout++) {
      for (int padded = 0; padded < 2; padded++) {
        subject s;
        subject_make(w, i, layout, padded != 0, &s);
        check(w, &s);
        subject_end(&s);
      }
    }
  }
}

static const ist_packing both[] = {IST_PACKING_PACKED, IST_PACKING_PADDED};

static uint64_t bytes_of(const subject *s, ist_packing packing) {
  return dense_size(s->dtype, packing == IST_PACKING_PADDED, s->from.count);
}

static void check_receipt(const subject *s, const ist_receipt *receipt,
                          ist_packing packing) {
  bool same = s->from.padded == (packing == IST_PACKING_PADDED);
  if (receipt->route == IST_ROUTE_ALIAS) {
    assert_true(same);
    assert_int_equal(receipt->bytes_moved, 0);
    return;
  }
  assert_int_equal(receipt->route, IST_ROUTE_COPY);
  assert_int_equal(receipt->hops, 1);
  assert_int_equal(receipt->bytes_moved, bytes_of(s, packing));
  assert_string_equal(ist_reason_name(receipt->reasons[0].id),
                      s->from.padded ? "padded" : "packed");
}

static void check_export(world *w, subject *s) {
  (void)w;
  for (size_t i = 0; i < COUNT_OF(both); i++) {
    bool padded = both[i] == IST_PACKING_PADDED;
    ist_options options = {.struct_size = sizeof options, .packing = both[i]};
    DLManagedTensorVersioned *out;
    ist_receipt receipt = {.struct_size = sizeof receipt};
    ist_error error;
    assert_ok(ist_tensor_export(s->tensor, &options, &out, &receipt, &error),
              error);
    bool flag = (out->flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0;
    assert_int_equal(flag, padded);
    assert_int_equal((out->flags & DLPACK_FLAG_BITMASK_IS_COPIED) != 0,
                     receipt.route != IST_ROUTE_ALIAS);
    check_receipt(s, &receipt, both[i]);
    check_values(s, &out->dl_tensor, padded);
    out->deleter(out);
    options.copy = IST_COPY_NEVER;
    ist_code code = ist_tensor_export(s->tensor, &options, &out, NULL, &error);
    if (padded == s->from.padded) {
      assert_ok(code, error);
      out->deleter(out);
    } else {
      assert_refused(code, IST_ERR_COPY_NEEDED, error, "needs copy=auto");
      assert_null(out);
    }
  }
}

static void packing__an_export_lies_as_asked(void **state) {
  for_each(*state, check_export);
}

static void check_move(world *w, subject *s) {
  for (size_t i = 0; i < COUNT_OF(both); i++) {
    bool padded = both[i] == IST_PACKING_PADDED;
    ist_options options = {.struct_size = sizeof options, .packing = both[i]};
    ist_tensor *moved;
    ist_receipt planned = {.struct_size = sizeof planned};
    ist_receipt receipt = {.struct_size = sizeof receipt};
    ist_tensor_info info = {.struct_size = sizeof info};
    ist_error error;
    assert_ok(
        ist_tensor_plan(s->tensor, host_of(w), &options, &planned, &error),
        error);
    assert_ok(ist_tensor_move(s->tensor, host_of(w), &options, &moved, &receipt,
                              &error),
              error);
    assert_int_equal(planned.route, receipt.route);
    assert_int_equal(planned.bytes_moved, receipt.bytes_moved);
    check_receipt(s, &receipt, both[i]);
    assert_ok(ist_tensor_describe(moved, &info, &error), error);
    assert_int_equal(info.padded, padded);
    assert_int_equal(info.nbytes, bytes_of(s, both[i]));
    check_values(s, ist_tensor_view(moved), padded);
    ist_tensor_release(moved);
  }
}

static void packing__a_move_lies_as_asked(void **state) {
  for_each(*state, check_move);
}

static void check_copy_into(world *w, subject *s) {
  (void)w;
  for (size_t i = 0; i < COUNT_OF(both); i++) {
    unsigned char bytes[sample_room];
    memset(bytes, 0xA5, sizeof bytes);
    DLTensor target = s->from.versioned.dl_tensor;
    target.data = bytes;
    target.byte_offset = 0;
    target.strides = NULL;
    ist_options options = {.struct_size = sizeof options, .packing = both[i]};
    ist_receipt receipt = {.struct_size = sizeof receipt};
    ist_error error;
    assert_ok(
        ist_tensor_copy_into(s->tensor, &target, &options, &receipt, &error),
        error);
    size_t size = (size_t)bytes_of(s, both[i]);
    assert_int_equal(receipt.bytes_moved, size);
    assert_int_equal(bytes[size], 0xA5);
    int64_t strides[3];
    target.strides = strides;
    int64_t dense = 1;
    for (int32_t d = target.ndim - 1; d >= 0; d--) {
      strides[d] = dense;
      dense *= target.shape[d];
    }
    check_values(s, &target, both[i] == IST_PACKING_PADDED);
  }
}

static void packing__memory_is_filled_as_it_lies(void **state) {
  for_each(*state, check_copy_into);
}

// A card keeps them packed: in by packing, out by unpacking, each seen in the
// receipt.
static void check_card(world *w, subject *s) {
  const ist_device *device = ist_backend_device(w->card, 0);
  ist_tensor *there;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_tensor_info info = {.struct_size = sizeof info};
  ist_error error;
  assert_ok(ist_tensor_move(s->tensor, device, NULL, &there, &receipt, &error),
            error);
  assert_ok(ist_tensor_describe(there, &info, &error), error);
  assert_false(info.padded);
  ist_options options = {.struct_size = sizeof options,
                         .packing = IST_PACKING_PADDED};
  DLManagedTensorVersioned *out;
  assert_ok(ist_tensor_export(there, &options, &out, &receipt, &error), error);
  assert_int_equal(receipt.route, IST_ROUTE_STAGE);
  assert_int_equal(receipt.bytes_moved, bytes_of(s, IST_PACKING_PACKED) +
                                            bytes_of(s, IST_PACKING_PADDED));
  check_values(s, &out->dl_tensor, true);
  out->deleter(out);
  ist_tensor *back;
  assert_ok(
      ist_tensor_move(there, host_of(w), &options, &back, &receipt, &error),
      error);
  check_values(s, ist_tensor_view(back), true);
  ist_tensor_release(back);
  ist_tensor *none = there;
  ist_code code =
      ist_tensor_move(s->tensor, device, &options, &none, NULL, &error);
  assert_refused(code, IST_ERR_TARGET_DTYPE, error, "one to a byte");
  assert_null(none);
  ist_tensor_release(there);
}

static void packing__a_device_packs_and_its_export_unpacks(void **state) {
  for_each(*state, check_card);
}

// A tensor without a version cannot say that it is padded.
static void packing__a_legacy_export_is_packed_or_refused(void **state) {
  world *w = *state;
  subject s;
  subject_make(w, 27, SAMPLE_ROW_MAJOR, true, &s);
  DLManagedTensor *out;
  ist_error error;
  ist_options options = {.struct_size = sizeof options};
  assert_ok(ist_tensor_export_legacy(s.tensor, &options, &out, NULL, &error),
            error);
  check_values(&s, &out->dl_tensor, false);
  out->deleter(out);
  options.packing = IST_PACKING_PADDED;
  ist_code code =
      ist_tensor_export_legacy(s.tensor, &options, &out, NULL, &error);
  assert_refused(code, IST_ERR_TARGET_DTYPE, error, "one to a byte");
  subject_end(&s);
}

static void packing__refuses_words_that_there_are_not(void **state) {
  world *w = *state;
  subject s;
  subject_make(w, 27, SAMPLE_ROW_MAJOR, false, &s);
  ist_options options = {.struct_size = sizeof options,
                         .packing = (ist_packing)4};
  DLManagedTensorVersioned *out;
  ist_tensor *moved;
  ist_error error;
  assert_int_equal(ist_tensor_export(s.tensor, &options, &out, NULL, &error),
                   IST_ERR_ARGUMENT);
  options.packing = IST_PACKING_PAIRS;
  ist_code code =
      ist_tensor_move(s.tensor, host_of(w), &options, &moved, NULL, &error);
  assert_refused(code, IST_ERR_ARGUMENT, error, "packing is pairs");
  options.packing = IST_PACKING_AS_IS;
  options.source_packing = IST_PACKING_PAIRS;
  assert_int_equal(ist_tensor_export(s.tensor, &options, &out, NULL, &error),
                   IST_ERR_ARGUMENT);
  subject_end(&s);
}

// ---------------------------------------------------------------- pairs --

// 4 x 6 packed fp4, bytes 0, 1, 2 ...
typedef struct weights {
  unsigned char bytes[64];
  int64_t shape[2], strides[2];
  DLManagedTensorVersioned managed;
} weights;

static void nothing(DLManagedTensorVersioned *self) {
  (void)self;
}

static ist_tensor *weights_make(world *w, weights *out, DLDataType dtype,
                                const int64_t *shape, const int64_t *strides) {
  for (int i = 0; i < 64; i++) out->bytes[i] = (unsigned char)(i * 7);
  memcpy(out->shape, shape, sizeof out->shape);
  memcpy(out->strides, strides, sizeof out->strides);
  out->managed =
      (DLManagedTensorVersioned){.version = {1, 3},
                                 .deleter = nothing,
                                 .dl_tensor = {.data = out->bytes,
                                               .device = {kDLCPU, 0},
                                               .ndim = 2,
                                               .dtype = dtype,
                                               .shape = out->shape,
                                               .strides = out->strides}};
  ist_tensor *tensor;
  ist_error error;
  assert_ok(
      ist_tensor_import(host_of(w), &out->managed, NULL, &tensor, NULL, &error),
      error);
  return tensor;
}

static void pairs__cross_out_and_in_without_a_byte_moved(void **state) {
  world *w = *state;
  weights weight;
  int64_t shape[] = {4, 6}, strides[] = {8, 1};
  ist_tensor *tensor = weights_make(
      w, &weight, (DLDataType){kDLFloat4_e2m1fn, 4, 1}, shape, strides);
  ist_options options = {.struct_size = sizeof options,
                         .packing = IST_PACKING_PAIRS,
                         .copy = IST_COPY_NEVER};
  DLManagedTensorVersioned *out;
  ist_tensor *back;
  ist_error error;
  assert_ok(ist_tensor_export(tensor, &options, &out, NULL, &error), error);
  const DLTensor *there = &out->dl_tensor;
  assert_int_equal(there->dtype.lanes, 2);
  assert_int_equal(there->shape[0], 4);
  assert_int_equal(there->shape[1], 3);
  assert_int_equal(there->strides[0], 4);
  assert_int_equal(there->strides[1], 1);
  assert_ptr_equal(there->data, weight.bytes);
  options.packing = IST_PACKING_AS_IS;
  assert_ok(ist_tensor_import(host_of(w), out, &options, &back, NULL, &error),
            error);
  const DLTensor *view = ist_tensor_view(back);
  assert_int_equal(view->dtype.lanes, 1);
  assert_int_equal(view->shape[1], 6);
  assert_int_equal(view->strides[0], 8);
  assert_ptr_equal(view->data, weight.bytes);
  ist_tensor_release(back);
  ist_tensor_release(tensor);
}

static void pairs__that_lie_apart_are_one_copy(void **state) {
  world *w = *state;
  weights weight;
  int64_t shape[] = {4, 6}, strides[] = {7, 1};
  ist_tensor *tensor = weights_make(
      w, &weight, (DLDataType){kDLFloat4_e2m1fn, 4, 1}, shape, strides);
  ist_options options = {.struct_size = sizeof options,
                         .packing = IST_PACKING_PAIRS};
  DLManagedTensorVersioned *out;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_error error;
  assert_ok(ist_tensor_export(tensor, &options, &out, &receipt, &error), error);
  assert_int_equal(receipt.route, IST_ROUTE_COPY);
  assert_int_equal(receipt.bytes_moved, 12);
  assert_string_equal(ist_reason_name(receipt.reasons[0].id), "pairs_apart");
  assert_int_equal(out->dl_tensor.shape[1], 3);
  assert_int_equal(out->dl_tensor.strides[0], 3);
  unsigned char want[sample_room];
  gather_bits(&weight.managed.dl_tensor, false, false, want);
  assert_memory_equal(out->dl_tensor.data, want, 12);
  out->deleter(out);
  options.copy = IST_COPY_NEVER;
  ist_code code = ist_tensor_export(tensor, &options, &out, NULL, &error);
  assert_refused(code, IST_ERR_COPY_NEEDED, error, "not neighbours");
  ist_tensor_release(tensor);
}

static void pairs__of_an_odd_dimension_are_refused(void **state) {
  world *w = *state;
  weights weight;
  int64_t shape[] = {4, 5}, strides[] = {5, 1};
  ist_tensor *tensor = weights_make(
      w, &weight, (DLDataType){kDLFloat4_e2m1fn, 4, 1}, shape, strides);
  ist_options options = {.struct_size = sizeof options,
                         .packing = IST_PACKING_PAIRS,
                         .target_name = "torch"};
  DLManagedTensorVersioned *out;
  ist_error error;
  for (int copy = IST_COPY_AUTO; copy <= IST_COPY_ALWAYS; copy++) {
    options.copy = (ist_copy)copy;
    ist_code code = ist_tensor_export(tensor, &options, &out, NULL, &error);
    assert_refused(code, IST_ERR_LANES, error,
                   "needs a last dimension of even extent");
    assert_null(out);
  }
  ist_tensor_release(tensor);
}

// Other dtypes are only packed by it.
static void pairs__are_of_fp4_alone(void **state) {
  world *w = *state;
  weights weight;
  int64_t shape[] = {4, 6}, strides[] = {6, 1};
  ist_tensor *tensor =
      weights_make(w, &weight, (DLDataType){kDLInt, 4, 1}, shape, strides);
  ist_options options = {.struct_size = sizeof options,
                         .packing = IST_PACKING_PAIRS};
  DLManagedTensorVersioned *out;
  ist_error error;
  assert_ok(ist_tensor_export(tensor, &options, &out, NULL, &error), error);
  assert_int_equal(out->dl_tensor.dtype.lanes, 1);
  assert_int_equal(out->dl_tensor.shape[1], 6);
  out->deleter(out);
  ist_tensor_release(tensor);
}

// What counts by pairs can be filled too.
static void pairs__are_filled_where_they_lie(void **state) {
  world *w = *state;
  weights weight;
  int64_t shape[] = {4, 6}, strides[] = {6, 1}, pairs[] = {4, 3};
  ist_tensor *tensor = weights_make(
      w, &weight, (DLDataType){kDLFloat4_e2m1fn, 4, 1}, shape, strides);
  unsigned char bytes[12] = {0};
  DLTensor target = {.data = bytes,
                     .device = {kDLCPU, 0},
                     .ndim = 2,
                     .dtype = {kDLFloat4_e2m1fn, 4, 2},
                     .shape = pairs};
  ist_error error;
  assert_ok(ist_tensor_copy_into(tensor, &target, NULL, NULL, &error), error);
  assert_memory_equal(bytes, weight.bytes, sizeof bytes);
  ist_tensor_release(tensor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(packing__an_export_lies_as_asked),
      cmocka_unit_test(packing__a_move_lies_as_asked),
      cmocka_unit_test(packing__memory_is_filled_as_it_lies),
      cmocka_unit_test(packing__a_device_packs_and_its_export_unpacks),
      cmocka_unit_test(packing__a_legacy_export_is_packed_or_refused),
      cmocka_unit_test(packing__refuses_words_that_there_are_not),
      cmocka_unit_test(pairs__cross_out_and_in_without_a_byte_moved),
      cmocka_unit_test(pairs__that_lie_apart_are_one_copy),
      cmocka_unit_test(pairs__of_an_odd_dimension_are_refused),
      cmocka_unit_test(pairs__are_of_fp4_alone),
      cmocka_unit_test(pairs__are_filled_where_they_lie),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
