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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(context__names_a_header_that_does_not_fit),
      cmocka_unit_test(context__takes_a_header_of_another_patch),
      cmocka_unit_test(context__refuses_half_an_allocator),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
