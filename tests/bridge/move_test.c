// SPDX-License-Identifier: Apache-2.0
// move_test.c: tensors between devices, and into memory of the caller.

#include "support/producer.h"

typedef struct world {
  counted_context c;
  ist_backend *near;  // template, its addresses are the host's
  ist_backend *far;   // template, two devices, its addresses are not
  producer s;
  ist_tensor *tensor;
} world;

static ist_backend *open_template(world *w, bool addressable) {
  ist_option options[] = {
      {.name = "addressable", .kind = IST_OPTION_BOOL, .boolean = addressable},
      {.name = "devices",
       .kind = IST_OPTION_INT64,
       .int64 = addressable ? 1 : 2}};
  ist_backend_options how = {
      .struct_size = sizeof how, .options = options, .option_count = 2};
  ist_backend *backend;
  ist_error err;
  assert_ok(ist_backend_open(w->c.context, "template", &how, &backend, &err),
            err);
  return backend;
}

static void begin(world *w, int ndim, const int64_t *shape,
                  const int64_t *strides, int64_t first) {
  counted_context_begin(&w->c);
  w->near = open_template(w, true);
  w->far = open_template(w, false);
  producer_init(&w->s, ndim, shape, strides, first);
  ist_error err;
  assert_ok(ist_tensor_import(ist_context_host(w->c.context), &w->s.versioned,
                              NULL, &w->tensor, NULL, &err),
            err);
}

static void begin_dense(world *w) {
  int64_t shape[] = {4, 6}, strides[] = {6, 1};
  begin(w, 2, shape, strides, 0);
}

static void end(world *w) {
  ist_tensor_release(w->tensor);
  assert_int_equal(w->s.deleted, 1);
  producer_free(&w->s);
  ist_backend_release(w->near);
  ist_backend_release(w->far);
  counted_context_end(&w->c);
}

static ist_tensor *move(ist_tensor *t, const ist_device *device, ist_copy copy,
                        ist_receipt *receipt) {
  ist_options options = {.struct_size = sizeof options, .copy = copy};
  ist_receipt plan = {.struct_size = sizeof plan};
  ist_error err;
  assert_ok(ist_tensor_plan(t, device, &options, &plan, &err), err);
  ist_tensor *out;
  *receipt = (ist_receipt){.struct_size = sizeof *receipt};
  assert_ok(ist_tensor_move(t, device, &options, &out, receipt, &err), err);
  char planned[2048], done[2048];
  ist_receipt_json(&plan, planned, sizeof planned);
  ist_receipt_json(receipt, done, sizeof done);
  assert_string_equal(planned, done);
  return out;
}

// Values come back through the host, whatever the device.
static void assert_values(ist_tensor *t, const producer *s) {
  DLManagedTensorVersioned *out;
  ist_capability host = {
      .struct_size = sizeof host,
      .can = IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS | IST_CAN_HONOUR_READ_ONLY,
      .layouts = IST_LAYOUT_ANY,
      .alignment = 1,
      .dtypes = ~(uint64_t)0,
      .dl_device = {kDLCPU, 0}};
  ist_options options = {.struct_size = sizeof options, .consumer = &host};
  ist_error err;
  assert_ok(ist_tensor_export(t, &options, &out, NULL, &err), err);
  assert_values_of(&out->dl_tensor, s);
  out->deleter(out);
}

static void move__shares_memory_with_a_device_that_can_view_it(void **state) {
  (void)state;
  world w;
  begin_dense(&w);
  ist_receipt receipt;
  ist_tensor *t =
      move(w.tensor, ist_backend_device(w.near, 0), IST_COPY_AUTO, &receipt);
  assert_int_equal(receipt.route, IST_ROUTE_ALIAS);
  assert_ptr_equal(ist_tensor_view(t)->data, producer_data(&w.s));
  ist_tensor_release(t);
  end(&w);
}

static void move__gathers_what_a_device_cannot_view_once(void **state) {
  (void)state;
  world w;
  int64_t shape[] = {3, 4}, strides[] = {-8, 2};
  begin(&w, 2, shape, strides, 40);
  ist_receipt receipt;
  ist_tensor *t =
      move(w.tensor, ist_backend_device(w.near, 0), IST_COPY_AUTO, &receipt);
  assert_int_equal(receipt.route, IST_ROUTE_COPY);
  assert_int_equal(receipt.bytes_moved, 12 * sizeof(float));
  assert_int_equal((uintptr_t)ist_tensor_view(t)->data % 64, 0);
  assert_values(t, &w.s);
  ist_tensor_release(t);
  end(&w);
}

static void move__stages_through_the_host_to_a_far_device(void **state) {
  (void)state;
  world w;
  int64_t shape[] = {3, 4}, strides[] = {-8, 2};
  begin(&w, 2, shape, strides, 40);
  ist_receipt receipt;
  ist_tensor *t =
      move(w.tensor, ist_backend_device(w.far, 1), IST_COPY_AUTO, &receipt);
  assert_int_equal(receipt.route, IST_ROUTE_STAGE);
  assert_int_equal(receipt.bytes_moved, 2 * 12 * sizeof(float));
  assert_null(ist_tensor_view(t)->data);
  assert_int_equal(ist_tensor_view(t)->device.device_type, kDLExtDev);
  assert_int_equal(ist_tensor_view(t)->device.device_id, 1);
  assert_values(t, &w.s);
  // From one far device to the other there is no way but the host.
  ist_tensor *u =
      move(t, ist_backend_device(w.far, 0), IST_COPY_AUTO, &receipt);
  assert_int_equal(receipt.route, IST_ROUTE_STAGE);
  assert_values(u, &w.s);
  ist_tensor_release(u);
  ist_tensor_release(t);
  end(&w);
}

static void move__stays_where_it_is_without_a_copy(void **state) {
  (void)state;
  world w;
  begin_dense(&w);
  ist_receipt receipt;
  ist_tensor *t =
      move(w.tensor, ist_backend_device(w.far, 0), IST_COPY_AUTO, &receipt);
  assert_int_equal(receipt.route, IST_ROUTE_COPY);
  ist_tensor *same =
      move(t, ist_backend_device(w.far, 0), IST_COPY_NEVER, &receipt);
  assert_ptr_equal(same, t);
  assert_int_equal(receipt.bytes_moved, 0);
  ist_tensor *other =
      move(t, ist_backend_device(w.far, 0), IST_COPY_ALWAYS, &receipt);
  assert_ptr_not_equal(other, t);
  assert_values(other, &w.s);
  ist_tensor_release(other);
  ist_tensor_release(same);
  ist_tensor_release(t);
  end(&w);
}

static void move__refuses_a_copy_that_is_not_wanted(void **state) {
  (void)state;
  world w;
  begin_dense(&w);
  ist_options never = {.struct_size = sizeof never, .copy = IST_COPY_NEVER};
  ist_tensor *t;
  ist_error err;
  ist_code code = ist_tensor_move(w.tensor, ist_backend_device(w.far, 0),
                                  &never, &t, NULL, &err);
  assert_refused(code, IST_ERR_COPY_NEEDED, err, "template#0");
  assert_null(t);
  ist_receipt plan = {.struct_size = sizeof plan};
  assert_ok(ist_tensor_plan(w.tensor, ist_backend_device(w.far, 0), &never,
                            &plan, &err),
            err);
  assert_int_equal(plan.route, IST_ROUTE_REFUSE);
  assert_int_equal(plan.code, IST_ERR_COPY_NEEDED);
  end(&w);
}

// A far tensor's DLPack export is its device's address as it is, for the
// device's own consumers; copy=always brings it to the host.
static void export__hands_out_a_far_address_only_as_its_devices(void **state) {
  (void)state;
  world w;
  begin_dense(&w);
  ist_receipt receipt;
  ist_tensor *t =
      move(w.tensor, ist_backend_device(w.far, 1), IST_COPY_AUTO, &receipt);
  DLManagedTensorVersioned *out;
  ist_error err;
  assert_ok(ist_tensor_export(t, NULL, &out, NULL, &err), err);
  assert_int_equal(out->dl_tensor.device.device_type, kDLExtDev);
  assert_int_equal(out->dl_tensor.device.device_id, 1);
  out->deleter(out);
  ist_options always = {.struct_size = sizeof always, .copy = IST_COPY_ALWAYS};
  assert_ok(ist_tensor_export(t, &always, &out, NULL, &err), err);
  assert_int_equal(out->dl_tensor.device.device_type, kDLCPU);
  assert_values_of(&out->dl_tensor, &w.s);
  out->deleter(out);
  ist_tensor_release(t);
  end(&w);
}

static DLTensor into(float *memory, int64_t *shape, int64_t *strides) {
  return (DLTensor){.data = memory,
                    .device = {kDLCPU, 0},
                    .ndim = 2,
                    .dtype = {kDLFloat, 32, 1},
                    .shape = shape,
                    .strides = strides};
}

static void copy_into__fills_memory_of_any_strides(void **state) {
  (void)state;
  world w;
  begin_dense(&w);
  ist_receipt receipt;
  ist_tensor *far =
      move(w.tensor, ist_backend_device(w.far, 0), IST_COPY_AUTO, &receipt);
  ist_tensor *from[] = {w.tensor, far};
  for (size_t i = 0; i < COUNT_OF(from); i++) {
    float memory[64] = {0};
    int64_t shape[] = {4, 6}, strides[] = {1, -8};
    DLTensor target = into(memory + 48, shape, strides);
    ist_error err;
    assert_ok(ist_tensor_copy_into(from[i], &target, NULL, &receipt, &err),
              err);
    assert_values_of(&target, &w.s);
    assert_int_equal(receipt.hops, i == 0 ? 1 : 2);
    assert_string_equal(ist_reason_name(receipt.reasons[0].id), "into");
  }
  ist_tensor_release(far);
  end(&w);
}

static void copy_into__is_right_when_the_memory_is_the_tensors_own(
    void **state) {
  (void)state;
  world w;
  begin_dense(&w);
  producer before;
  producer_init_dense(&before);
  // The same memory, seen reversed: every element lands where another lies.
  int64_t shape[] = {4, 6}, strides[] = {-6, -1};
  DLTensor target = into(w.s.memory + 23, shape, strides);
  ist_error err;
  assert_ok(ist_tensor_copy_into(w.tensor, &target, NULL, NULL, &err), err);
  assert_values_of(&target, &before);
  producer_free(&before);
  end(&w);
}

static void copy_into__refuses_what_does_not_fit(void **state) {
  (void)state;
  world w;
  begin_dense(&w);
  float memory[64];
  int64_t shape[] = {4, 6}, strides[] = {6, 1};
  ist_error err;
  DLTensor target = into(memory, shape, strides);
  target.dtype.code = kDLInt;
  ist_code code = ist_tensor_copy_into(w.tensor, &target, NULL, NULL, &err);
  assert_refused(code, IST_ERR_DTYPE_MISMATCH, err, "int32");
  target = into(memory, shape, strides);
  target.device.device_type = kDLCUDA;
  code = ist_tensor_copy_into(w.tensor, &target, NULL, NULL, &err);
  assert_refused(code, IST_ERR_NO_ROUTE, err, "not the host's");
  target = into(memory, shape, strides);
  shape[0] = 3;
  code = ist_tensor_copy_into(w.tensor, &target, NULL, NULL, &err);
  assert_refused(code, IST_ERR_SHAPE_MISMATCH, err, "[3,6]");
  shape[0] = 4;
  strides[0] = 0;
  code = ist_tensor_copy_into(w.tensor, &target, NULL, NULL, &err);
  assert_refused(code, IST_ERR_ARGUMENT, err, "overlap");
  end(&w);
}

// Otherwise a wish such as copy=never would be lost without a word.
static void options__without_their_size_are_refused(void **state) {
  (void)state;
  world w;
  begin_dense(&w);
  const ist_device *far = ist_backend_device(w.far, 0);
  ist_options options = {.copy = IST_COPY_NEVER};
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_tensor *out = (void *)&w;
  ist_error err;
  ist_code code =
      ist_tensor_move(w.tensor, far, &options, &out, &receipt, &err);
  assert_refused(code, IST_ERR_ARGUMENT, err, "struct_size is 0");
  assert_null(out);
  code = ist_tensor_plan(w.tensor, NULL, &options, &receipt, &err);
  assert_refused(code, IST_ERR_ARGUMENT, err, "struct_size is 0");
  DLManagedTensorVersioned *managed = (void *)&w;
  code = ist_tensor_export(w.tensor, &options, &managed, &receipt, &err);
  assert_refused(code, IST_ERR_ARGUMENT, err, "struct_size is 0");
  assert_null(managed);
  end(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(move__shares_memory_with_a_device_that_can_view_it),
      cmocka_unit_test(move__gathers_what_a_device_cannot_view_once),
      cmocka_unit_test(move__stages_through_the_host_to_a_far_device),
      cmocka_unit_test(move__stays_where_it_is_without_a_copy),
      cmocka_unit_test(move__refuses_a_copy_that_is_not_wanted),
      cmocka_unit_test(export__hands_out_a_far_address_only_as_its_devices),
      cmocka_unit_test(options__without_their_size_are_refused),
      cmocka_unit_test(copy_into__fills_memory_of_any_strides),
      cmocka_unit_test(copy_into__is_right_when_the_memory_is_the_tensors_own),
      cmocka_unit_test(copy_into__refuses_what_does_not_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
