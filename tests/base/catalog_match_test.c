// SPDX-License-Identifier: Apache-2.0
// catalog_match_test.c: an error of ours is found in a text by its number, its
// name and its words, and nothing else is.

#include <isthmus/isthmus.h>
#include <stdio.h>

#include "support/testing.h"

static ist_code only(const char *text) {
  ist_code codes[4];
  size_t count = ist_catalog_match(text, strlen(text), codes, 4);
  assert_true(count <= 1);
  assert_int_equal(codes[count], IST_OK);
  return codes[0];
}

static void match__knows_each_code_by_number_and_name(void **state) {
  (void)state;
  for (size_t i = 0; ist_catalog_code(i) != IST_OK; i++) {
    ist_code code = ist_catalog_code(i);
    ist_entry entry = {.struct_size = sizeof entry};
    assert_int_equal(ist_catalog_find(code, &entry, NULL), IST_OK);
    char number[16];
    snprintf(number, sizeof number, "%d", (int)code);
    assert_int_equal(only(number), code);
    assert_int_equal(only(entry.name), code);
    assert_int_equal(only(entry.slug), code);
    assert_int_equal(only(entry.title), code);
  }
}

static void match__finds_messages_made_by_the_library(void **state) {
  (void)state;
  ist_error err;
  ist_place place = {.struct_size = sizeof place};
  assert_int_equal(ist_place_parse("nowhere", &place, &err), IST_ERR_PLACE);
  assert_int_equal(only(err.message), IST_ERR_PLACE);
}

static void match__finds_nothing_where_nothing_is(void **state) {
  (void)state;
  static const char *const texts[] = {
      "",      "-1",           "0",      "99999999999999999999",
      "999",   "IST_ERR_",     "\n\n",   "NOT_IST_ERR_SHAPE",
      "shap",  "IST_ERR_SHAP", "a: b",   "IST_ERR_SHAPES",
      "202 x", "\xff\xfe",     "needs ", "other\ncannot open x: y; needs a z"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    assert_int_equal(only(texts[i]), IST_OK);
  assert_int_equal(ist_catalog_match(NULL, 3, NULL, 0), 0);
}

static void match__keeps_the_order_and_the_room(void **state) {
  (void)state;
  static const char text[] =
      "[IST_ERR_IO 402] [IST_ERR_SHAPE 202]\n[IST_ERR_IO]\nIST_ERR_ARITY";
  ist_code codes[3] = {IST_ERR_INTERNAL, IST_ERR_INTERNAL, IST_ERR_INTERNAL};
  assert_int_equal(ist_catalog_match(text, sizeof text - 1, codes, 3), 3);
  assert_int_equal(codes[0], IST_ERR_IO);
  assert_int_equal(codes[1], IST_ERR_SHAPE);
  assert_int_equal(codes[2], IST_ERR_ARITY);
  codes[1] = IST_ERR_INTERNAL;
  assert_int_equal(ist_catalog_match(text, 16, codes, 1), 1);
  assert_int_equal(codes[0], IST_ERR_IO);
  assert_int_equal(codes[1], IST_ERR_INTERNAL);
  assert_int_equal(ist_catalog_match(text, sizeof text - 1, NULL, 0), 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(match__knows_each_code_by_number_and_name),
      cmocka_unit_test(match__finds_messages_made_by_the_library),
      cmocka_unit_test(match__finds_nothing_where_nothing_is),
      cmocka_unit_test(match__keeps_the_order_and_the_room),
  };
  return cmocka_run_group_tests_name("catalog_match", tests, NULL, NULL);
}
