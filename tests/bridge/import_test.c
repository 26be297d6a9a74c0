// SPDX-License-Identifier: Apache-2.0
// import_test.c: what an import promises: the source is freed exactly once,
// receipts agree with addresses, refusals leave everything as it was.

#include "support/producer.h"

static const ist_options never = {.struct_size = sizeof never,
                                  .copy = IST_COPY_NEVER};
static const ist_options always = {.struct_size = sizeof always,
                                   .copy = IST_COPY_ALWAYS};

static void import__views_host_memory_at_its_own_address(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  producer s;
  producer_init_dense(&s);
  ist_tensor *t;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_error err;
  assert_ok(ist_tensor_import(ist_context_host(c.context), &s.versioned, NULL,
                              &t, &receipt, &err),
            err);
  assert_ptr_equal(ist_tensor_view(t)->data, producer_data(&s));
  assert_int_equal(receipt.route, IST_ROUTE_ALIAS);
  assert_int_equal(receipt.bytes_moved, 0);
  assert_string_equal(receipt.source, "cpu");
  assert_string_equal(receipt.target, "host");
  ist_tensor_release(t);
  producer_free(&s);
  counted_context_end(&c);
}

static void import__frees_source_exactly_once(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  for (int legacy = 0; legacy < 2; legacy++) {
    producer s;
    producer_init_dense(&s);
    ist_tensor *t;
    ist_error err;
    const ist_device *host = ist_context_host(c.context);
    assert_ok(
        legacy ? ist_tensor_import_legacy(host, &s.legacy, NULL, &t, NULL, &err)
               : ist_tensor_import(host, &s.versioned, NULL, &t, NULL, &err),
        err);
    ist_tensor_retain(t);
    ist_tensor_release(t);
    assert_int_equal(s.deleted, 0);
    ist_tensor_release(t);
    assert_int_equal(s.deleted, 1);
    producer_free(&s);
  }
  counted_context_end(&c);
}

static void import__frees_a_copied_source_before_it_returns(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  producer s;
  producer_init_dense(&s);
  ist_tensor *t;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_error err;
  assert_ok(ist_tensor_import(ist_context_host(c.context), &s.versioned,
                              &always, &t, &receipt, &err),
            err);
  assert_int_equal(s.deleted, 1);
  assert_int_equal(receipt.route, IST_ROUTE_COPY);
  assert_int_equal(receipt.bytes_moved, 24 * sizeof(float));
  assert_ptr_not_equal(ist_tensor_view(t)->data, producer_data(&s));
  assert_values_of(ist_tensor_view(t), &s);
  ist_tensor_release(t);
  producer_free(&s);
  counted_context_end(&c);
}

// E10 dmlc/dlpack#39: a NULL deleter is allowed.
static void import__takes_a_source_without_a_deleter(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  producer s;
  producer_init_dense(&s);
  s.versioned.deleter = NULL;
  ist_tensor *t;
  ist_error err;
  assert_ok(ist_tensor_import(ist_context_host(c.context), &s.versioned, NULL,
                              &t, NULL, &err),
            err);
  ist_tensor_release(t);
  producer_free(&s);
  counted_context_end(&c);
}

static void import__leaves_a_refused_source_with_its_caller(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  producer s;
  producer_init_dense(&s);
  s.shape[0] = -4;
  ist_tensor *t = (ist_tensor *)&s;
  ist_receipt receipt = {.struct_size = sizeof receipt, .hops = 7};
  ist_error err;
  ist_code code = ist_tensor_import(ist_context_host(c.context), &s.versioned,
                                    NULL, &t, &receipt, &err);
  assert_refused(code, IST_ERR_SHAPE, err, "-4");
  assert_null(t);
  assert_int_equal(receipt.hops, 0);
  assert_int_equal(s.deleted, 0);
  producer_free(&s);
  counted_context_end(&c);
}

static void import__refuses_a_device_that_no_backend_serves(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  producer s;
  producer_init_dense(&s);
  s.versioned.dl_tensor.device.device_type = kDLCUDA;
  ist_tensor *t;
  ist_error err;
  ist_code code = ist_tensor_import(ist_context_host(c.context), &s.versioned,
                                    NULL, &t, NULL, &err);
  assert_refused(code, IST_ERR_NO_ROUTE, err, "cuda");
  assert_int_equal(s.deleted, 0);
  producer_free(&s);
  counted_context_end(&c);
}

// jax-ml/jax#22346, pytorch/pytorch#96318: pinned and managed memory is memory
// of the host for a host consumer.
static void import__takes_pinned_and_managed_memory_as_the_hosts(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  const DLDeviceType codes[] = {kDLCUDAHost, kDLROCMHost, kDLCUDAManaged};
  for (size_t i = 0; i < COUNT_OF(codes); i++) {
    producer s;
    producer_init_dense(&s);
    s.versioned.dl_tensor.device.device_type = codes[i];
    ist_tensor *t;
    ist_error err;
    assert_ok(ist_tensor_import(ist_context_host(c.context), &s.versioned,
                                &never, &t, NULL, &err),
              err);
    assert_ptr_equal(ist_tensor_view(t)->data, producer_data(&s));
    assert_int_equal(ist_tensor_view(t)->device.device_type, kDLCPU);
    ist_tensor_release(t);
    producer_free(&s);
  }
  counted_context_end(&c);
}

static ist_grant grant_of(ist_context *context, producer *s, bool legacy,
                          ist_grant told) {
  ist_options options = {.struct_size = sizeof options, .grant = told};
  ist_tensor *t;
  ist_error err;
  const ist_device *host = ist_context_host(context);
  assert_ok(
      legacy
          ? ist_tensor_import_legacy(host, &s->legacy, &options, &t, NULL, &err)
          : ist_tensor_import(host, &s->versioned, &options, &t, NULL, &err),
      err);
  ist_tensor_info info = {.struct_size = sizeof info};
  assert_ok(ist_tensor_describe(t, &info, &err), err);
  assert_int_equal(info.read_only, info.grant != IST_GRANT_WRITABLE);
  ist_tensor_release(t);
  return info.grant;
}

// wjakob/nanobind#1122, numpy/numpy#28599: the flag is followed; a tensor
// without version says nothing, so it is not written unless its producer is
// known.
static void import__knows_who_may_write(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  producer s;
  producer_init_dense(&s);
  ist_context *x = c.context;
  assert_int_equal(grant_of(x, &s, false, IST_GRANT_FROM_SOURCE),
                   IST_GRANT_WRITABLE);
  assert_int_equal(grant_of(x, &s, true, IST_GRANT_FROM_SOURCE),
                   IST_GRANT_READ_ONLY);
  assert_int_equal(grant_of(x, &s, true, IST_GRANT_WRITABLE),
                   IST_GRANT_WRITABLE);
  assert_int_equal(grant_of(x, &s, true, IST_GRANT_IMMUTABLE),
                   IST_GRANT_IMMUTABLE);
  s.versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  assert_int_equal(grant_of(x, &s, false, IST_GRANT_FROM_SOURCE),
                   IST_GRANT_READ_ONLY);
  producer_free(&s);
  counted_context_end(&c);
}

static void import__never_lets_a_flagged_source_be_written(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  producer s;
  producer_init_dense(&s);
  s.versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  assert_int_not_equal(grant_of(c.context, &s, false, IST_GRANT_WRITABLE),
                       IST_GRANT_WRITABLE);
  producer_free(&s);
  counted_context_end(&c);
}

static void import__refuses_options_out_of_range(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  producer s;
  producer_init_dense(&s);
  ist_options wrong[] = {
      {.struct_size = sizeof(ist_options), .copy = (ist_copy)9},
      {.struct_size = sizeof(ist_options), .read_only = (ist_read_only)9},
      {.struct_size = sizeof(ist_options), .grant = (ist_grant)9},
      {.struct_size = sizeof(ist_options), .memory = "nowhere"}};
  for (size_t i = 0; i < COUNT_OF(wrong); i++) {
    ist_tensor *t;
    assert_int_not_equal(
        ist_tensor_import(ist_context_host(c.context), &s.versioned, &wrong[i],
                          &t, NULL, NULL),
        IST_OK);
    assert_null(t);
  }
  assert_int_equal(s.deleted, 0);
  producer_free(&s);
  counted_context_end(&c);
}

static void count_release(void *self) {
  ++*(int *)self;
}

static void wrap__releases_the_memory_once_and_only_on_success(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  producer s;
  producer_init_dense(&s);
  int released = 0;
  ist_tensor *t;
  ist_error err;
  DLTensor view = s.versioned.dl_tensor;
  assert_ok(
      ist_tensor_wrap(c.context, &view, count_release, &released, &t, &err),
      err);
  ist_tensor_release(t);
  assert_int_equal(released, 1);
  view.ndim = 65;
  ist_code code =
      ist_tensor_wrap(c.context, &view, count_release, &released, &t, &err);
  assert_refused(code, IST_ERR_NDIM, err, "65");
  view = s.versioned.dl_tensor;
  view.device.device_type = kDLCUDA;
  code = ist_tensor_wrap(c.context, &view, count_release, &released, &t, &err);
  assert_refused(code, IST_ERR_NO_ROUTE, err, "host");
  assert_int_equal(released, 1);
  producer_free(&s);
  counted_context_end(&c);
}

static void empty__is_zero_dense_and_aligned(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  const size_t alignments[] = {0, 1, 64, 4096};
  for (size_t i = 0; i < COUNT_OF(alignments); i++) {
    ist_spec spec = {.struct_size = sizeof spec,
                     .dtype = {kDLFloat, 64, 1},
                     .ndim = 2,
                     .shape = {3, 5}};
    ist_tensor *t;
    ist_error err;
    assert_ok(ist_tensor_empty(c.context, &spec, alignments[i], &t, &err), err);
    const DLTensor *view = ist_tensor_view(t);
    size_t needed = alignments[i] < 64 ? 64 : alignments[i];
    assert_int_equal((uintptr_t)view->data % needed, 0);
    assert_int_equal(view->strides[0], 5);
    for (int k = 0; k < 15; k++) assert_true(((double *)view->data)[k] == 0);
    ist_tensor_release(t);
  }
  ist_spec spec = {.struct_size = sizeof spec, .dtype = {kDLFloat, 64, 1}};
  ist_tensor *t;
  ist_error err;
  ist_code code = ist_tensor_empty(c.context, &spec, 48, &t, &err);
  assert_refused(code, IST_ERR_ARGUMENT, err, "48");
  spec.struct_size = 0;
  code = ist_tensor_empty(c.context, &spec, 0, &t, &err);
  assert_refused(code, IST_ERR_ARGUMENT, err, "spec has no struct_size");
  counted_context_end(&c);
}

// A spec that ends where its struct_size says.
static void empty__reads_no_further_than_the_spec_goes(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  size_t *spec = test_malloc(sizeof *spec);
  *spec = sizeof *spec;
  ist_tensor *t;
  ist_error err;
  ist_code code =
      ist_tensor_empty(c.context, (const ist_spec *)spec, 0, &t, &err);
  assert_refused(code, IST_ERR_DTYPE, err, "0 bits");
  assert_null(t);
  test_free(spec);
  counted_context_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(import__views_host_memory_at_its_own_address),
      cmocka_unit_test(import__frees_source_exactly_once),
      cmocka_unit_test(import__frees_a_copied_source_before_it_returns),
      cmocka_unit_test(import__takes_a_source_without_a_deleter),
      cmocka_unit_test(import__leaves_a_refused_source_with_its_caller),
      cmocka_unit_test(import__refuses_a_device_that_no_backend_serves),
      cmocka_unit_test(import__takes_pinned_and_managed_memory_as_the_hosts),
      cmocka_unit_test(import__knows_who_may_write),
      cmocka_unit_test(import__never_lets_a_flagged_source_be_written),
      cmocka_unit_test(import__refuses_options_out_of_range),
      cmocka_unit_test(wrap__releases_the_memory_once_and_only_on_success),
      cmocka_unit_test(empty__is_zero_dense_and_aligned),
      cmocka_unit_test(empty__reads_no_further_than_the_spec_goes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
