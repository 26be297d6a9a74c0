// SPDX-License-Identifier: Apache-2.0
// context_test.c: a context is made only for a program whose headers fit the
// library, and never with half an allocator.

#include "support/producer.h"

static void context__names_a_header_that_does_not_fit(void **state) {
  (void)state;
  const int32_t wrong[] = {IST_VERSION_NUMBER + 100, IST_VERSION_NUMBER + 10000,
                           0, -1};
  for (size_t i = 0; i < COUNT_OF(wrong); i++) {
    ist_context *context = (ist_context *)&wrong;
    ist_error err;
    ist_code code = ist_context_create_for(wrong[i], NULL, &context, &err);
    assert_refused(code, IST_ERR_HEADER_VERSION, err, IST_VERSION_STRING);
    assert_null(context);
  }
}

static void context__takes_a_header_of_another_patch(void **state) {
  (void)state;
  ist_context *context;
  ist_error err;
  assert_ok(
      ist_context_create_for(IST_VERSION_NUMBER + 1, NULL, &context, &err),
      err);
  ist_context_release(context);
  assert_string_equal(ist_version(), IST_VERSION_STRING);
}

static void context__refuses_half_an_allocator(void **state) {
  (void)state;
  counting_allocator counter;
  counting_allocator_init(&counter);
  for (int half = 0; half < 2; half++) {
    ist_allocator hook = counting_allocator_hook(&counter);
    if (half == 0) hook.allocate = NULL;
    if (half == 1) hook.release = NULL;
    ist_context_options options = {.struct_size = sizeof options,
                                   .allocator = &hook};
    ist_context *context;
    ist_error err;
    ist_code code = ist_context_create(&options, &context, &err);
    assert_refused(code, IST_ERR_ARGUMENT, err, "allocator");
    assert_null(context);
  }
  assert_int_equal(ist_context_create(NULL, NULL, NULL), IST_ERR_ARGUMENT);
}

// A wish in a struct without its size would be read as zeros and lost.
static void options__without_struct_size_are_refused(void **state) {
  (void)state;
  ist_context_options no_context = {0};
  ist_backend_options no_backend = {0};
  ist_file_options no_file = {0};
  ist_receipt no_receipt = {0};
  counted_context c;
  counted_context_begin(&c);
  ist_context *context;
  ist_backend *backend;
  ist_file *file;
  ist_tensor *t;
  ist_error err;
  ist_code code = ist_context_create(&no_context, &context, &err);
  assert_refused(code, IST_ERR_ARGUMENT, err, "sizeof(ist_context_options)");
  code = ist_backend_open(c.context, "host", &no_backend, &backend, &err);
  assert_refused(code, IST_ERR_ARGUMENT, err, "sizeof(ist_backend_options)");
  code = ist_file_open(c.context, "x.npy", &no_file, &file, &err);
  assert_refused(code, IST_ERR_ARGUMENT, err, "sizeof(ist_file_options)");
  producer s;
  producer_init_dense(&s);
  code = ist_tensor_import(ist_context_host(c.context), &s.versioned, NULL, &t,
                           &no_receipt, &err);
  assert_refused(code, IST_ERR_ARGUMENT, err, "sizeof(ist_receipt)");
  assert_null(t);
  assert_int_equal(s.deleted, 0);
  producer_free(&s);
  counted_context_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(context__names_a_header_that_does_not_fit),
      cmocka_unit_test(context__takes_a_header_of_another_patch),
      cmocka_unit_test(context__refuses_half_an_allocator),
      cmocka_unit_test(options__without_struct_size_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
