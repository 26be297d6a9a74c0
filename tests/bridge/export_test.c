// SPDX-License-Identifier: Apache-2.0
// export_test.c: what an export promises: flags, strides, owners, and the
// table of who may write through an alias.

#include "support/producer.h"

// A producer's tensor imported with a grant.
typedef struct exporter {
  counted_context c;
  producer s;
  ist_tensor *tensor;
} exporter;

static void begin(exporter *e, int ndim, const int64_t *shape,
                  const int64_t *strides, int64_t first, ist_grant grant) {
  counted_context_begin(&e->c);
  producer_init(&e->s, ndim, shape, strides, first);
  ist_options options = {.struct_size = sizeof options, .grant = grant};
  ist_error err;
  assert_ok(ist_tensor_import(ist_context_host(e->c.context), &e->s.versioned,
                              &options, &e->tensor, NULL, &err),
            err);
}

static void begin_dense(exporter *e, ist_grant grant) {
  int64_t shape[] = {4, 6}, strides[] = {6, 1};
  begin(e, 2, shape, strides, 0, grant);
}

static void end(exporter *e) {
  ist_tensor_release(e->tensor);
  assert_int_equal(e->s.deleted, 1);
  producer_free(&e->s);
  counted_context_end(&e->c);
}

// A framework that never writes where READ_ONLY says so, or one that ignores
// it.
static ist_capability framework(bool honours) {
  return (ist_capability){
      .struct_size = sizeof(ist_capability),
      .can = (uint32_t)(IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS |
                        (honours ? IST_CAN_HONOUR_READ_ONLY : 0)),
      .layouts = IST_LAYOUT_ANY,
      .alignment = 1,
      .dtypes = ~(uint64_t)0,
      .dl_device = {kDLCPU, 0}};
}

static void export__views_the_memory_and_writes_strides(void **state) {
  (void)state;
  exporter e;
  begin_dense(&e, IST_GRANT_FROM_SOURCE);
  DLManagedTensorVersioned *out;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_error err;
  assert_ok(ist_tensor_export(e.tensor, NULL, &out, &receipt, &err), err);
  assert_int_equal(out->version.major, 1);
  assert_int_equal(out->version.minor, 3);
  assert_int_equal(out->flags, 0);
  assert_ptr_equal(out->dl_tensor.data, producer_data(&e.s));
  assert_int_equal(out->dl_tensor.byte_offset, 0);
  assert_int_equal(out->dl_tensor.strides[0], 6);
  assert_int_equal(receipt.route, IST_ROUTE_ALIAS);
  out->deleter(out);
  end(&e);
}

static void export__keeps_the_source_alive_until_its_deleter(void **state) {
  (void)state;
  exporter e;
  begin_dense(&e, IST_GRANT_FROM_SOURCE);
  DLManagedTensorVersioned *out;
  ist_error err;
  assert_ok(ist_tensor_export(e.tensor, NULL, &out, NULL, &err), err);
  ist_tensor_release(e.tensor);
  ist_context_release(e.c.context);
  assert_int_equal(e.s.deleted, 0);
  assert_values_of(&out->dl_tensor, &e.s);
  out->deleter(out);
  assert_int_equal(e.s.deleted, 1);
  assert_int_equal(atomic_load(&e.c.counter.live), 0);
  producer_free(&e.s);
}

// dmlc/dlpack#134: a consumer can tell a copy from a view.
static void export__flags_a_copy_as_copied_and_private(void **state) {
  (void)state;
  exporter e;
  begin_dense(&e, IST_GRANT_READ_ONLY);
  ist_options options = {.struct_size = sizeof options,
                         .copy = IST_COPY_ALWAYS};
  DLManagedTensorVersioned *out;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_error err;
  assert_ok(ist_tensor_export(e.tensor, &options, &out, &receipt, &err), err);
  assert_int_equal(out->flags, DLPACK_FLAG_BITMASK_IS_COPIED);
  assert_ptr_not_equal(out->dl_tensor.data, producer_data(&e.s));
  assert_int_equal(receipt.bytes_moved, 24 * sizeof(float));
  assert_values_of(&out->dl_tensor, &e.s);
  out->deleter(out);
  end(&e);
}

typedef struct cell {
  ist_grant grant;
  bool honours;
  ist_read_only wish;
  ist_route route;
  bool flagged;
} cell;

// The table of docs/routes.md, cell by cell (pytorch/pytorch#188554,
// data-apis/array-api#191: read-only memory is never written without a word).
static void export__follows_the_table_of_who_may_write(void **state) {
  (void)state;
  const cell cells[] = {
      {IST_GRANT_WRITABLE, true, IST_READ_ONLY_AUTO, IST_ROUTE_ALIAS, false},
      {IST_GRANT_WRITABLE, false, IST_READ_ONLY_AUTO, IST_ROUTE_ALIAS, false},
      {IST_GRANT_IMMUTABLE, true, IST_READ_ONLY_AUTO, IST_ROUTE_ALIAS, true},
      {IST_GRANT_IMMUTABLE, false, IST_READ_ONLY_AUTO, IST_ROUTE_ALIAS, true},
      {IST_GRANT_IMMUTABLE, false, IST_READ_ONLY_COPY, IST_ROUTE_COPY, false},
      {IST_GRANT_IMMUTABLE, false, IST_READ_ONLY_REFUSE, IST_ROUTE_REFUSE,
       false},
      {IST_GRANT_READ_ONLY, true, IST_READ_ONLY_AUTO, IST_ROUTE_ALIAS, true},
      {IST_GRANT_READ_ONLY, false, IST_READ_ONLY_AUTO, IST_ROUTE_COPY, false},
      {IST_GRANT_READ_ONLY, false, IST_READ_ONLY_ALLOW, IST_ROUTE_ALIAS, true},
      {IST_GRANT_READ_ONLY, false, IST_READ_ONLY_REFUSE, IST_ROUTE_REFUSE,
       false},
  };
  for (size_t i = 0; i < COUNT_OF(cells); i++) {
    const cell *want = &cells[i];
    exporter e;
    begin_dense(&e, want->grant);
    ist_capability consumer = framework(want->honours);
    ist_options options = {.struct_size = sizeof options,
                           .read_only = want->wish,
                           .consumer = &consumer};
    DLManagedTensorVersioned *out;
    ist_receipt receipt = {.struct_size = sizeof receipt};
    ist_receipt plan = {.struct_size = sizeof plan};
    ist_error err;
    assert_ok(ist_tensor_plan(e.tensor, NULL, &options, &plan, &err), err);
    assert_int_equal(plan.route, want->route);
    ist_code code = ist_tensor_export(e.tensor, &options, &out, &receipt, &err);
    if (want->route == IST_ROUTE_REFUSE) {
      assert_refused(code, IST_ERR_READ_ONLY, err, "read-only");
      assert_null(out);
    } else {
      assert_ok(code, err);
      assert_int_equal(receipt.route, want->route);
      bool flagged = (out->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
      assert_int_equal(flagged, want->flagged);
      bool shared = out->dl_tensor.data == (void *)producer_data(&e.s);
      assert_int_equal(shared, want->route == IST_ROUTE_ALIAS);
      out->deleter(out);
    }
    end(&e);
  }
}

static void export__makes_private_what_its_owner_may_still_write(void **state) {
  (void)state;
  exporter e;
  begin_dense(&e, IST_GRANT_WRITABLE);
  ist_options options = {.struct_size = sizeof options,
                         .mutable_source = IST_MUTABLE_COPY};
  DLManagedTensorVersioned *out;
  ist_error err;
  assert_ok(ist_tensor_export(e.tensor, &options, &out, NULL, &err), err);
  e.s.memory[0] = 77;
  assert_true(((float *)out->dl_tensor.data)[0] == 0);
  out->deleter(out);
  end(&e);
}

// A broadcast view is never handed out for writing.
static void export__marks_overlapping_memory_read_only(void **state) {
  (void)state;
  exporter e;
  int64_t shape[] = {5, 3}, strides[] = {0, 1};
  begin(&e, 2, shape, strides, 0, IST_GRANT_WRITABLE);
  DLManagedTensorVersioned *out;
  ist_error err;
  assert_ok(ist_tensor_export(e.tensor, NULL, &out, NULL, &err), err);
  assert_int_equal(out->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  out->deleter(out);
  end(&e);
}

// pytorch/pytorch#188023: a reversed view crosses to a consumer that takes no
// negative strides by one copy, and not at all with copy=never.
static void export__copies_negative_strides_for_who_cannot_take_them(
    void **state) {
  (void)state;
  exporter e;
  int64_t shape[] = {6}, strides[] = {-1};
  begin(&e, 1, shape, strides, 5, IST_GRANT_WRITABLE);
  ist_capability consumer = framework(false);
  consumer.layouts = IST_LAYOUT_ANY & ~(uint32_t)IST_LAYOUT_NEGATIVE;
  ist_options options = {.struct_size = sizeof options, .consumer = &consumer};
  DLManagedTensorVersioned *out;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_error err;
  assert_ok(ist_tensor_export(e.tensor, &options, &out, &receipt, &err), err);
  assert_values_of(&out->dl_tensor, &e.s);
  assert_int_equal(out->dl_tensor.strides[0], 1);
  assert_string_equal(ist_reason_name(receipt.reasons[0].id), "negative");
  out->deleter(out);
  options.copy = IST_COPY_NEVER;
  ist_code code = ist_tensor_export(e.tensor, &options, &out, NULL, &err);
  assert_refused(code, IST_ERR_COPY_NEEDED, err, "negative stride");
  options.source_name = "numpy";
  options.target_name = "torch";
  code = ist_tensor_export(e.tensor, &options, &out, NULL, &err);
  assert_refused(code, IST_ERR_COPY_NEEDED, err, "from numpy to torch:");
  end(&e);
}

static void export__refuses_a_consumer_that_cannot_be(void **state) {
  (void)state;
  exporter e;
  begin_dense(&e, IST_GRANT_WRITABLE);
  const uint64_t alignments[] = {0, 48, 100};
  for (size_t i = 0; i < COUNT_OF(alignments); i++) {
    ist_capability consumer = framework(true);
    consumer.alignment = alignments[i];
    ist_options options = {.struct_size = sizeof options,
                           .copy = IST_COPY_ALWAYS,
                           .consumer = &consumer};
    DLManagedTensorVersioned *out;
    ist_error err;
    ist_code code = ist_tensor_export(e.tensor, &options, &out, NULL, &err);
    assert_refused(code, IST_ERR_ARGUMENT, err, "power of two");
    assert_null(out);
  }
  end(&e);
}

static void export_legacy__never_shares_what_must_not_be_written(void **state) {
  (void)state;
  exporter e;
  begin_dense(&e, IST_GRANT_READ_ONLY);
  DLManagedTensor *out;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_error err;
  assert_ok(ist_tensor_export_legacy(e.tensor, NULL, &out, &receipt, &err),
            err);
  assert_int_equal(receipt.route, IST_ROUTE_COPY);
  assert_ptr_not_equal(out->dl_tensor.data, producer_data(&e.s));
  assert_values_of(&out->dl_tensor, &e.s);
  out->deleter(out);
  end(&e);
}

static void export_legacy__shares_what_may_be_written(void **state) {
  (void)state;
  exporter e;
  begin_dense(&e, IST_GRANT_WRITABLE);
  DLManagedTensor *out;
  ist_error err;
  assert_ok(ist_tensor_export_legacy(e.tensor, NULL, &out, NULL, &err), err);
  assert_ptr_equal(out->dl_tensor.data, producer_data(&e.s));
  out->deleter(out);
  end(&e);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(export__views_the_memory_and_writes_strides),
      cmocka_unit_test(export__keeps_the_source_alive_until_its_deleter),
      cmocka_unit_test(export__flags_a_copy_as_copied_and_private),
      cmocka_unit_test(export__follows_the_table_of_who_may_write),
      cmocka_unit_test(export__makes_private_what_its_owner_may_still_write),
      cmocka_unit_test(export__marks_overlapping_memory_read_only),
      cmocka_unit_test(
          export__copies_negative_strides_for_who_cannot_take_them),
      cmocka_unit_test(export__refuses_a_consumer_that_cannot_be),
      cmocka_unit_test(export_legacy__never_shares_what_must_not_be_written),
      cmocka_unit_test(export_legacy__shares_what_may_be_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
