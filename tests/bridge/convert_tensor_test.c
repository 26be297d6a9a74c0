// SPDX-License-Identifier: Apache-2.0
// convert_tensor_test.c: tensors in another floating-point dtype: what is
// given, what the receipt says, what is refused. That every dtype and layout
// converts right is in tests/support/conformance_convert.c.

#include <stdlib.h>

#include "support/producer.h"

static const DLDataType float32 = {kDLFloat, 32, 1};
static const DLDataType bfloat16 = {kDLBfloat, 16, 1};
static const DLDataType float8 = {kDLFloat8_e4m3fn, 8, 1};
static const DLDataType float4 = {kDLFloat4_e2m1fn, 4, 1};
static const DLDataType int32 = {kDLInt, 32, 1};

typedef struct world {
  counted_context c;
  ist_backend *far;  // template, its addresses are not the host's
  producer s;
  ist_tensor *tensor;
} world;

static void begin(world *w, const DLDataType dtype) {
  counted_context_begin(&w->c);
  ist_option option = {.name = "addressable", .kind = IST_OPTION_BOOL};
  ist_backend_options how = {
      .struct_size = sizeof how, .options = &option, .option_count = 1};
  ist_error err;
  assert_ok(ist_backend_open(w->c.context, "template", &how, &w->far, &err),
            err);
  producer_init_dense(&w->s);
  w->s.versioned.dl_tensor.dtype = dtype;
  assert_ok(ist_tensor_import(ist_context_host(w->c.context), &w->s.versioned,
                              NULL, &w->tensor, NULL, &err),
            err);
}

static void end(world *w) {
  ist_tensor_release(w->tensor);
  assert_int_equal(w->s.deleted, 1);
  producer_free(&w->s);
  ist_backend_release(w->far);
  counted_context_end(&w->c);
}

static ist_tensor *convert(ist_tensor *t, DLDataType dtype,
                           const ist_convert_options *options,
                           ist_receipt *receipt) {
  ist_tensor *out;
  ist_error err;
  *receipt = (ist_receipt){.struct_size = sizeof *receipt};
  assert_ok(ist_tensor_convert(t, dtype, options, &out, receipt, &err), err);
  return out;
}

// What a short conversion tells.
typedef struct ear {
  uint64_t told[8];
  uint64_t total;
  int calls;
} ear;

static bool hear(void *self, uint64_t done, uint64_t total) {
  ear *e = self;
  assert_true(e->calls < (int)COUNT_OF(e->told));
  e->told[e->calls++] = done;
  e->total = total;
  return true;
}

static void assert_reason(const ist_receipt *receipt, uint32_t index,
                          const char *name) {
  assert_true(index < receipt->reason_count);
  assert_string_equal(ist_reason_name(receipt->reasons[index].id), name);
}

static void convert__gives_private_memory_on_the_host(void **state) {
  (void)state;
  world w;
  begin(&w, float32);
  ist_receipt receipt;
  ist_tensor *t = convert(w.tensor, bfloat16, NULL, &receipt);
  assert_int_equal(receipt.route, IST_ROUTE_COPY);
  assert_int_equal(receipt.hops, 1);
  assert_int_equal(receipt.bytes_moved, 24 * 2);
  assert_int_equal(receipt.reason_count, 1);
  assert_reason(&receipt, 0, "converted");
  assert_string_equal(receipt.source, "host");
  assert_string_equal(receipt.target, "host");
  assert_false(receipt.read_only);
  const DLTensor *view = ist_tensor_view(t);
  assert_int_equal((uintptr_t)view->data % 64, 0);
  assert_int_equal(((const uint16_t *)view->data)[23], 0x41b8);  // 23
  ist_tensor_info info = {.struct_size = sizeof info};
  ist_error err;
  assert_ok(ist_tensor_describe(t, &info, &err), err);
  assert_true(info.copied);
  assert_false(info.read_only);
  assert_int_equal(info.nbytes, 48);
  ist_tensor_release(t);
  end(&w);
}

static void convert__outlives_its_source(void **state) {
  (void)state;
  world w;
  begin(&w, float32);
  ist_receipt receipt;
  ist_tensor *t = convert(w.tensor, float8, NULL, &receipt);
  ist_tensor_release(w.tensor);
  w.tensor = NULL;
  assert_int_equal(w.s.deleted, 1);
  w.s.memory[1] = 7;
  assert_int_equal(((const uint8_t *)ist_tensor_view(t)->data)[1], 0x38);
  ist_tensor_release(t);
  end(&w);
}

static void convert__copies_what_is_of_the_dtype_already(void **state) {
  (void)state;
  world w;
  begin(&w, float32);
  ist_receipt receipt;
  ist_tensor *t = convert(w.tensor, float32, NULL, &receipt);
  assert_ptr_not_equal(ist_tensor_view(t)->data, producer_data(&w.s));
  assert_values_of(ist_tensor_view(t), &w.s);
  assert_int_equal(receipt.bytes_moved, 96);
  assert_reason(&receipt, 0, "same_dtype");
  ist_tensor_release(t);
  end(&w);
}

static void convert__copies_out_what_lies_on_a_device(void **state) {
  (void)state;
  world w;
  begin(&w, float32);
  ist_tensor *there;
  ist_error err;
  assert_ok(ist_tensor_move(w.tensor, ist_backend_device(w.far, 0), NULL,
                            &there, NULL, &err),
            err);
  ist_receipt receipt;
  ist_tensor *t = convert(there, bfloat16, NULL, &receipt);
  assert_int_equal(receipt.route, IST_ROUTE_STAGE);
  assert_int_equal(receipt.hops, 2);
  assert_int_equal(receipt.bytes_moved, 96 + 48);
  assert_reason(&receipt, 0, "converted");
  assert_reason(&receipt, 1, "staged");
  assert_string_equal(receipt.source, "template#0");
  assert_int_equal(((const uint16_t *)ist_tensor_view(t)->data)[23], 0x41b8);
  ist_tensor_release(t);
  ist_tensor_release(there);
  end(&w);
}

// A backend copies out as its elements are packed; nobody copies them again
// before they are converted, and what is told adds up to what was moved.
static void convert__copies_packed_elements_out_once(void **state) {
  (void)state;
  world w;
  begin(&w, float4);
  ist_tensor *there;
  ist_error err;
  assert_ok(ist_tensor_move(w.tensor, ist_backend_device(w.far, 0), NULL,
                            &there, NULL, &err),
            err);
  static const DLDataType targets[] = {
      {kDLFloat, 32, 1}, {kDLFloat6_e2m3fn, 6, 1}, {kDLFloat4_e2m1fn, 4, 1}};
  for (int n = 0; n < 2 * (int)COUNT_OF(targets); n++) {
    ear heard = {0};
    ist_convert_options options = {.struct_size = sizeof options,
                                   .padded = n % 2 != 0,
                                   .progress = hear,
                                   .progress_self = &heard};
    ist_receipt receipt;
    ist_tensor *t = convert(there, targets[n / 2], &options, &receipt);
    ist_tensor_info info = {.struct_size = sizeof info};
    assert_ok(ist_tensor_describe(t, &info, &err), err);
    assert_int_equal(receipt.hops, 2);
    assert_int_equal(receipt.bytes_moved, 12 + info.nbytes);
    assert_int_equal(heard.total, receipt.bytes_moved);
    assert_int_equal(heard.calls, 3);
    assert_int_equal(heard.told[0], 0);
    assert_int_equal(heard.told[1], 12);
    assert_int_equal(heard.told[2], receipt.bytes_moved);
    ist_tensor_release(t);
  }
  ist_tensor_release(there);
  end(&w);
}

static void convert__saturates_when_asked(void **state) {
  (void)state;
  world w;
  begin(&w, float32);
  ist_convert_options options = {.struct_size = sizeof options};
  w.s.memory[0] = 1e6F;
  ist_receipt receipt;
  ist_tensor *t = convert(w.tensor, float8, &options, &receipt);
  assert_int_equal(((const uint8_t *)ist_tensor_view(t)->data)[0], 0x7f);
  ist_tensor_release(t);
  options.saturate = true;
  t = convert(w.tensor, float8, &options, &receipt);
  assert_int_equal(((const uint8_t *)ist_tensor_view(t)->data)[0], 0x7e);
  ist_tensor_release(t);
  end(&w);
}

static void convert__packs_narrow_elements_unless_asked(void **state) {
  (void)state;
  world w;
  begin(&w, float32);
  ist_convert_options options = {.struct_size = sizeof options, .padded = true};
  ist_tensor_info info = {.struct_size = sizeof info};
  ist_receipt receipt;
  ist_error err;
  ist_tensor *t = convert(w.tensor, float4, NULL, &receipt);
  assert_ok(ist_tensor_describe(t, &info, &err), err);
  assert_int_equal(info.nbytes, 12);
  assert_false(info.padded);
  assert_int_equal(((const uint8_t *)ist_tensor_view(t)->data)[1], 0x54);
  ist_tensor_release(t);
  t = convert(w.tensor, float4, &options, &receipt);
  assert_ok(ist_tensor_describe(t, &info, &err), err);
  assert_int_equal(info.nbytes, 24);
  assert_true(info.padded);
  assert_int_equal(((const uint8_t *)ist_tensor_view(t)->data)[3], 0x5);
  ist_tensor_release(t);
  end(&w);
}

static void assert_not_converted(ist_tensor *t, DLDataType dtype, ist_code code,
                                 const char *words) {
  ist_tensor *out = (void *)t;
  ist_receipt receipt = {.struct_size = sizeof receipt, .hops = 7};
  ist_error err = {0};
  ist_code got = ist_tensor_convert(t, dtype, NULL, &out, &receipt, &err);
  assert_refused(got, code, err, words);
  assert_null(out);
  assert_int_equal(receipt.hops, 0);
}

static void convert__refuses_what_is_no_float_on_either_side(void **state) {
  (void)state;
  world w;
  begin(&w, float32);
  assert_not_converted(w.tensor, int32, IST_ERR_DTYPE_MISMATCH,
                       "could not be converted to int32: it is of float32; "
                       "needs floating-point dtypes");
  assert_not_converted(w.tensor, (DLDataType){kDLBool, 8, 1},
                       IST_ERR_DTYPE_MISMATCH, "to bool");
  assert_not_converted(w.tensor, (DLDataType){kDLComplex, 64, 1},
                       IST_ERR_DTYPE_MISMATCH, "to complex64");
  assert_not_converted(w.tensor, (DLDataType){kDLFloat, 24, 1}, IST_ERR_DTYPE,
                       "its dtype has code 2 and 24 bits");
  end(&w);
  begin(&w, int32);
  assert_not_converted(w.tensor, float32, IST_ERR_DTYPE_MISMATCH,
                       "to float32: it is of int32");
  // The dtype that it has is no conversion of values, and refused all the same.
  assert_not_converted(w.tensor, int32, IST_ERR_DTYPE_MISMATCH, "to int32");
  end(&w);
}

// Two lanes of fp4 would be pairs elsewhere: half as many, twice the shape.
static void convert__refuses_more_or_less_than_one_lane(void **state) {
  (void)state;
  world w;
  begin(&w, float32);
  static const uint16_t lanes[] = {0, 2, 3};
  static const DLDataType types[] = {
      {kDLFloat4_e2m1fn, 4, 1}, {kDLFloat, 32, 1}, {kDLFloat8_e4m3fn, 8, 1}};
  for (size_t i = 0; i < COUNT_OF(types); i++) {
    for (size_t n = 0; n < COUNT_OF(lanes); n++) {
      DLDataType dtype = types[i];
      dtype.lanes = lanes[n];
      assert_not_converted(w.tensor, dtype, IST_ERR_LANES, "needs 1 lane");
    }
  }
  end(&w);
}

static void convert__refuses_what_is_not_there(void **state) {
  (void)state;
  world w;
  begin(&w, float32);
  ist_tensor *out = w.tensor;
  ist_error err = {0};
  assert_refused(ist_tensor_convert(NULL, float32, NULL, &out, NULL, &err),
                 IST_ERR_ARGUMENT, err, "is NULL; needs both");
  assert_null(out);
  assert_refused(ist_tensor_convert(w.tensor, float32, NULL, NULL, NULL, &err),
                 IST_ERR_ARGUMENT, err, "is NULL; needs both");
  ist_convert_options unset = {0};
  assert_refused(
      ist_tensor_convert(w.tensor, float32, &unset, &out, NULL, &err),
      IST_ERR_ARGUMENT, err, "struct_size");
  ist_receipt receipt = {0};
  assert_refused(
      ist_tensor_convert(w.tensor, float32, NULL, &out, &receipt, &err),
      IST_ERR_ARGUMENT, err, "struct_size");
  assert_null(out);
  end(&w);
}

static void convert__tells_a_deleted_tensor(void **state) {
  (void)state;
  world w;
  begin(&w, float32);
  ist_error err;
  assert_ok(ist_tensor_delete(w.tensor, &err), err);
  assert_not_converted(w.tensor, bfloat16, IST_ERR_DELETED, "was deleted");
  end(&w);
}

// ---- long conversions

enum {
  many = 3 << 20
};

// A source of many elements, transposed, and what progress was told of it.
typedef struct long_work {
  counted_context c;
  float *memory;
  ist_tensor *tensor;
  uint64_t told[64];
  int calls;
  int go_on;  // calls after which it cancels
} long_work;

static bool listen(void *self, uint64_t done, uint64_t total) {
  long_work *w = self;
  assert_int_equal(total, many);
  assert_true(w->calls < (int)COUNT_OF(w->told));
  w->told[w->calls++] = done;
  return w->calls <= w->go_on;
}

static void begin_long(long_work *w, ist_context *context, bool transposed) {
  w->memory = calloc(many, sizeof *w->memory);
  assert_non_null(w->memory);
  for (int i = 0; i < many; i++) w->memory[i] = (float)(i % 449);
  int64_t shape[2] = {many / 1024, 1024};
  int64_t strides[2] = {1, many / 1024};
  DLTensor view = {w->memory, {kDLCPU, 0}, 2, float32, shape, NULL, 0};
  if (transposed) view.strides = strides;
  ist_error err;
  assert_ok(ist_tensor_wrap(context, &view, NULL, NULL, &w->tensor, &err), err);
}

static void end_long(long_work *w) {
  ist_tensor_release(w->tensor);
  free(w->memory);
}

static void convert__tells_how_far_it_is_between_small_parts(void **state) {
  (void)state;
  for (int transposed = 0; transposed < 2; transposed++) {
    long_work w = {.go_on = 1000};
    counted_context_begin(&w.c);
    begin_long(&w, w.c.context, transposed != 0);
    ist_convert_options options = {
        .struct_size = sizeof options, .progress = listen, .progress_self = &w};
    ist_receipt receipt;
    ist_tensor *t = convert(w.tensor, float8, &options, &receipt);
    assert_int_equal(w.told[0], 0);
    assert_int_equal(w.told[w.calls - 1], many);
    for (int i = 1; i < w.calls; i++) {
      assert_true(w.told[i] > w.told[i - 1]);
      assert_true(w.told[i] - w.told[i - 1] <= 1 << 20);
    }
    ist_tensor_release(t);
    end_long(&w);
    counted_context_end(&w.c);
  }
}

static void convert__makes_nothing_when_it_is_cancelled(void **state) {
  (void)state;
  for (int go_on = 0; go_on < 3; go_on++) {
    long_work w = {.go_on = go_on};
    counted_context_begin(&w.c);
    begin_long(&w, w.c.context, go_on == 1);
    ist_convert_options options = {
        .struct_size = sizeof options, .progress = listen, .progress_self = &w};
    ist_tensor *out = w.tensor;
    ist_error err = {0};
    ist_code code =
        ist_tensor_convert(w.tensor, float8, &options, &out, NULL, &err);
    assert_refused(code, IST_ERR_CANCELLED, err, "progress");
    assert_null(out);
    assert_int_equal(w.calls, go_on + 1);
    end_long(&w);
    counted_context_end(&w.c);
  }
}

static void convert__gives_the_same_with_threads(void **state) {
  (void)state;
  ist_context_options options = {.struct_size = sizeof options, .threads = 3};
  ist_context *context;
  ist_error err;
  assert_ok(ist_context_create(&options, &context, &err), err);
  for (int transposed = 0; transposed < 2; transposed++) {
    long_work w = {0};
    begin_long(&w, context, transposed != 0);
    ist_receipt receipt;
    ist_tensor *t = convert(w.tensor, bfloat16, NULL, &receipt);
    const uint16_t *got = ist_tensor_view(t)->data;
    const int rows = many / 1024;
    for (int i = 0; i < many; i++) {
      int from = transposed != 0 ? i % 1024 * rows + i / 1024 : i;
      // Whole numbers below 512: what bfloat16 cuts off is a tie or nothing.
      int n = from % 449;
      int rounded = n < 256 || n % 2 == 0 ? n : n % 4 == 1 ? n - 1 : n + 1;
      uint32_t bits;
      float value = (float)rounded;
      memcpy(&bits, &value, sizeof bits);
      if (got[i] != bits >> 16) fail_msg("%d: %x, not %x", i, got[i], bits);
    }
    ist_tensor_release(t);
    end_long(&w);
  }
  ist_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convert__gives_private_memory_on_the_host),
      cmocka_unit_test(convert__outlives_its_source),
      cmocka_unit_test(convert__copies_what_is_of_the_dtype_already),
      cmocka_unit_test(convert__copies_out_what_lies_on_a_device),
      cmocka_unit_test(convert__copies_packed_elements_out_once),
      cmocka_unit_test(convert__saturates_when_asked),
      cmocka_unit_test(convert__packs_narrow_elements_unless_asked),
      cmocka_unit_test(convert__refuses_what_is_no_float_on_either_side),
      cmocka_unit_test(convert__refuses_more_or_less_than_one_lane),
      cmocka_unit_test(convert__refuses_what_is_not_there),
      cmocka_unit_test(convert__tells_a_deleted_tensor),
      cmocka_unit_test(convert__tells_how_far_it_is_between_small_parts),
      cmocka_unit_test(convert__makes_nothing_when_it_is_cancelled),
      cmocka_unit_test(convert__gives_the_same_with_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
