// SPDX-License-Identifier: Apache-2.0
// error_test.c: an error is one line that fits, in memory of the caller's.

#include "base/error.h"

#include "base/text.h"

#include "support/testing.h"

static void error__keeps_code_and_message(void **state) {
  (void)state;
  ist_error error = {.native = 5};
  assert_int_equal(ist_error_set(&error, IST_ERR_SHAPE, "%s is %d", "x", -1),
                   IST_ERR_SHAPE);
  assert_int_equal(error.code, IST_ERR_SHAPE);
  assert_int_equal(error.native, 0);
  assert_string_equal(error.message, "x is -1");
  assert_int_equal(ist__error_native(&error, IST_ERR_IO, 28, "disk"),
                   IST_ERR_IO);
  assert_int_equal(error.native, 28);
}

static void error__may_be_null(void **state) {
  (void)state;
  assert_int_equal(ist_error_set(NULL, IST_ERR_SHAPE, "%d", 1), IST_ERR_SHAPE);
  assert_int_equal(ist__error_native(NULL, IST_ERR_IO, 2, "x"), IST_ERR_IO);
  assert_int_equal(ist__error_memory(NULL, "x", 1), IST_ERR_NO_ALLOCATION);
  ist__error_clear(NULL);
}

static void error__is_cut_to_its_room(void **state) {
  (void)state;
  struct {
    ist_error error;
    char after[8];
  } holder = {.after = "untold"};
  char longer[2000];
  memset(longer, 'm', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  ist_error_set(&holder.error, IST_ERR_SHAPE, "%s", longer);
  assert_int_equal(strlen(holder.error.message),
                   sizeof holder.error.message - 1);
  assert_string_equal(holder.after, "untold");
}

static void error__is_one_line(void **state) {
  (void)state;
  ist_error error;
  ist_error_set(&error, IST_ERR_SHAPE, "a path \"x\ny\r\nz\": bad");
  assert_string_equal(error.message, "a path \"x y  z\": bad");
}

// A path of any bytes must not make a message that Python cannot decode.
static void error__is_valid_utf_eight(void **state) {
  (void)state;
  ist_error error;
  ist_error_set(&error, IST_ERR_SHAPE, "a \xc3\xa9\xff\xc3 \x01z");
  assert_string_equal(error.message, "a \xc3\xa9?? \x20z");
  ist_error_set(&error, IST_ERR_SHAPE, "ends \xe2\x82");
  assert_string_equal(error.message, "ends ??");
  // A character across the end of the room goes whole.
  for (int width = 499; width < 505; width++) {
    ist_error_set(&error, IST_ERR_SHAPE, "%*s\xe2\x82\xac and more", width, "");
    size_t length = strlen(error.message);
    assert_true(length >= 500);
    const char *c = error.message;
    while (*c != '\0') {
      size_t step = ist__text_utf8_length(c, SIZE_MAX);
      assert_true(step > 0);
      c += step;
    }
    assert_null(strchr(error.message, '?'));
  }
}

static void error__clear_leaves_nothing(void **state) {
  (void)state;
  ist_error error;
  ist__error_native(&error, IST_ERR_IO, 28, "disk");
  ist__error_clear(&error);
  assert_int_equal(error.code, IST_OK);
  assert_int_equal(error.native, 0);
  assert_string_equal(error.message, "");
}

static void error__memory_tells_what_and_how_much(void **state) {
  (void)state;
  ist_error error;
  ist_code code = ist__error_memory(&error, "a tensor", UINT64_C(1) << 40);
  assert_refused(code, IST_ERR_NO_ALLOCATION, error,
                 "needs 1099511627776 bytes");
  assert_non_null(strstr(error.message, "a tensor"));
}

static void error__every_code_has_a_name_of_its_own(void **state) {
  (void)state;
  size_t count = 0;
  while (ist_catalog_code(count) != IST_OK) {
    ist_code code = ist_catalog_code(count);
    const char *name = ist_code_name(code);
    assert_non_null(name);
    assert_int_equal(strncmp(name, "IST_ERR_", 8), 0);
    for (size_t k = 0; k < count; k++) {
      assert_true(ist_catalog_code(k) < code);
      assert_string_not_equal(ist_code_name(ist_catalog_code(k)), name);
    }
    count++;
  }
  assert_true(count > 50);
  assert_string_equal(ist_code_name(IST_OK), "IST_OK");
  assert_null(ist_code_name((ist_code)1));
  assert_null(ist_code_name((ist_code)-1));
  assert_null(ist_code_name((ist_code)100000));
}

static void version__is_that_of_the_header(void **state) {
  (void)state;
  assert_string_equal(ist_version(), IST_VERSION_STRING);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(error__keeps_code_and_message),
      cmocka_unit_test(error__may_be_null),
      cmocka_unit_test(error__is_cut_to_its_room),
      cmocka_unit_test(error__is_one_line),
      cmocka_unit_test(error__is_valid_utf_eight),
      cmocka_unit_test(error__clear_leaves_nothing),
      cmocka_unit_test(error__memory_tells_what_and_how_much),
      cmocka_unit_test(error__every_code_has_a_name_of_its_own),
      cmocka_unit_test(version__is_that_of_the_header),
  };
  return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
