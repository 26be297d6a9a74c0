// SPDX-License-Identifier: Apache-2.0
// json_check_test.c: what is JSON and what is not, and what strings say.

#define _XOPEN_SOURCE 700

#include "io/json_check.h"

#include "io/io_fixture.h"

static const char *check(const char *text, size_t size, size_t *out_tokens) {
  size_t at;
  char *exact = (char *)exact_copy(text, size);
  const char *wrong = ist__json_check(exact, size, out_tokens, &at);
  assert_true(at <= size);
  free(exact);
  return wrong;
}

static void json_check__accepts_json_and_counts(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t tokens;
  } cases[] = {{"{}", 1},
               {"[]", 1},
               {" \t\r\n{ } \n", 1},
               {"0", 1},
               {"-0.5e+10", 1},
               {"1E5", 1},
               {"true", 1},
               {"[true,false,null]", 4},
               {"{\"a\":{\"b\":[1,2,{}]}}", 8},
               {"[[[[]]],[]]", 5},
               {"\"\"", 1},
               {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"", 1},
               {"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t tokens;
    assert_null(check(cases[i].text, strlen(cases[i].text), &tokens));
    assert_int_equal(tokens, cases[i].tokens);
  }
}

static void json_check__refuses_what_is_not_json(void **state) {
  (void)state;
  static const char *const cases[] = {
      "", " ", "{", "}", "[", "]", "{]", "[}", "[1", "[1,", "[1,]", "[,1]",
      "[1 2]", "[1:2]", "{\"a\"}", "{\"a\":}", "{\"a\" 1}", "{\"a\":1,}", "{,}",
      "{1:2}", "{\"a\":1 \"b\":2}", "{\"a\":1}}", "{}{}", "{} x", "nul", "True",
      "'a'", "01", "-", "+1", ".5", "1.", "1e", "1e+", "0x1", "1_000", "NaN",
      "Infinity", "-Infinity", "\"", "\"abc", "\"\\\"", "\"\\x41\"",
      "\"\\u12\"", "\"\\u12g4\"", "\"\n\"", "\"\x01\"", "\"\\ud800\"",
      "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\\ud800\\ud800\"", "\"\\ud83d\\",
      "\"\\ud83d\\u", "\"\\u", "\"\\", "/* */ {}", "{}//",
      // Not UTF-8: bare continuation, overlong, surrogate, above U+10FFFF, cut.
      "\"\x80\"", "\"\xc0\xaf\"", "\"\xe0\x80\xaf\"", "\"\xed\xa0\x80\"",
      "\"\xf4\x90\x80\x80\"", "\"\xf5\x80\x80\x80\"", "\"\xe2\x82\"",
      "\"\xf0\x9f\x98", "\"\xff\"", "\xef\xbb\xbf{}"};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t tokens;
    const char *wrong = check(cases[i], strlen(cases[i]), &tokens);
    if (wrong == NULL) print_error("accepted: %s\n", cases[i]);
    assert_non_null(wrong);
    assert_int_equal(tokens, 0);
  }
  size_t tokens;
  assert_non_null(check("\"a\0b\"", 5, &tokens));
  assert_non_null(check("{}\0", 3, &tokens));
}

static void json_check__limits_nesting(void **state) {
  (void)state;
  char text[2 * IST__JSON_DEPTH + 2];
  memset(text, '[', IST__JSON_DEPTH);
  memset(text + IST__JSON_DEPTH, ']', IST__JSON_DEPTH);
  size_t tokens;
  assert_null(check(text, 2 * IST__JSON_DEPTH, &tokens));
  memset(text, '[', IST__JSON_DEPTH + 1);
  memset(text + IST__JSON_DEPTH + 1, ']', IST__JSON_DEPTH + 1);
  const char *wrong = check(text, sizeof text, &tokens);
  assert_string_equal(wrong, "is nested deeper than 128");
}

static void json_check__takes_no_stack_or_time_for_a_bomb(void **state) {
  (void)state;
  size_t size = 4 << 20;
  char *text = malloc(size);
  assert_non_null(text);
  static const char signs[] = {'[', '{', '"', '\\', '9', ' ', ','};
  for (size_t i = 0; i < sizeof signs; i++) {
    memset(text, signs[i], size);
    size_t tokens, at;
    const char *wrong = ist__json_check(text, size, &tokens, &at);
    // A row of nines is a number.
    assert_int_equal(wrong == NULL, signs[i] == '9');
  }
  free(text);
}

static void json_decode__writes_what_escapes_say(void **state) {
  (void)state;
  static const struct {
    const char *inner, *text;
  } cases[] = {{"", ""},
               {"plain \xc3\xa9", "plain \xc3\xa9"},
               {"\\\"\\\\\\/", "\"\\/"},
               {"\\b\\f\\n\\r\\t", "\b\f\n\r\t"},
               {"\\u0041\\u00e9\\u20ac", "A\xc3\xa9\xe2\x82\xac"},
               {"x\\ud83d\\ude00y", "x\xf0\x9f\x98\x80y"},
               {"\\uD7FF\\uE000", "\xed\x9f\xbf\xee\x80\x80"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t size = strlen(cases[i].inner);
    char *out = malloc(size + 1);
    assert_non_null(out);
    size_t written = ist__json_decode(cases[i].inner, size, out);
    assert_int_equal(written, strlen(cases[i].text));
    assert_memory_equal(out, cases[i].text, written);
    free(out);
  }
  char out[6];
  assert_int_equal(ist__json_decode("\\u0000", 6, out), 1);
  assert_int_equal(out[0], 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(json_check__accepts_json_and_counts),
      cmocka_unit_test(json_check__refuses_what_is_not_json),
      cmocka_unit_test(json_check__limits_nesting),
      cmocka_unit_test(json_check__takes_no_stack_or_time_for_a_bomb),
      cmocka_unit_test(json_decode__writes_what_escapes_say)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
