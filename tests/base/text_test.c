// SPDX-License-Identifier: Apache-2.0
// text_test.c: text never passes its buffer's end, and JSON strings are JSON
// whatever bytes come.

#include "base/text.h"

#include "support/testing.h"

static void text__grows_and_ends_in_nul(void **state) {
  (void)state;
  char buffer[32];
  ist__text text = ist__text_make(buffer, sizeof buffer);
  assert_string_equal(buffer, "");
  ist__text_add(&text, "%d", 12);
  ist__text_add(&text, "-%s", "ab");
  assert_string_equal(buffer, "12-ab");
  assert_int_equal(text.length, 5);
}

// Every size of buffer, text by both ways in: never a byte too far, always a
// NUL, and the length that the whole has.
static void text__is_cut_to_any_room(void **state) {
  (void)state;
  static const char wanted[] = "abc\"d\\\"\\u0001\"12345";
  for (size_t size = 0; size < 40; size++) {
    char buffer[48];
    memset(buffer, '#', sizeof buffer);
    ist__text text = ist__text_make(buffer, size);
    ist__text_add(&text, "%s", "abc");
    ist__text_add_json(&text, "d\"\001");
    ist__text_add(&text, "%d", 12345);
    assert_int_equal(text.length, sizeof wanted - 1);
    for (size_t i = size; i < sizeof buffer; i++) {
      assert_int_equal(buffer[i], '#');
    }
    if (size == 0) continue;
    size_t part = size - 1 < text.length ? size - 1 : text.length;
    // A piece is cut where its own room ends, so what is there is a prefix.
    assert_true(strlen(buffer) <= part);
    assert_memory_equal(buffer, wanted, strlen(buffer));
    if (size > text.length) assert_string_equal(buffer, wanted);
  }
  ist__text none = ist__text_make(NULL, 0);
  ist__text_add(&none, "%d", 12345);
  ist__text_add_json(&none, "ab");
  assert_int_equal(none.length, 9);
}

static const char *json(const char *string) {
  static char buffer[128];
  ist__text text = ist__text_make(buffer, sizeof buffer);
  ist__text_add_json(&text, string);
  assert_int_equal(text.length, strlen(buffer));
  return buffer;
}

static void json__escapes_what_it_must(void **state) {
  (void)state;
  assert_string_equal(json(NULL), "null");
  assert_string_equal(json(""), "\"\"");
  assert_string_equal(json("a\"b\\c/"), "\"a\\\"b\\\\c/\"");
  assert_string_equal(json("\n\t\x1f\x7f"), "\"\\u000a\\u0009\\u001f\\u007f\"");
}

static void json__keeps_valid_utf_eight(void **state) {
  (void)state;
  static const char *const good[] = {
      "\xc2\x80",     "\xdf\xbf",     "\xe0\xa0\x80",     "\xed\x9f\xbf",
      "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
  for (size_t i = 0; i < COUNT_OF(good); i++) {
    char wanted[16] = "\"";
    memcpy(wanted + 1, good[i], strlen(good[i]));
    wanted[1 + strlen(good[i])] = '"';
    assert_string_equal(json(good[i]), wanted);
  }
}

// One U+FFFD for each byte that begins nothing valid.
static void json__replaces_invalid_bytes(void **state) {
  (void)state;
#define R "\\ufffd"
  static const struct {
    const char *in, *out;
  } cases[] = {{"\xff", "\"" R "\""},
               {"\x80", "\"" R "\""},
               {"a\xc2", "\"a" R "\""},
               {"\xc2z", "\"" R "z\""},
               {"\xc0\x80", "\"" R R "\""},              // overlong
               {"\xe0\x80\x80", "\"" R R R "\""},        // overlong
               {"\xed\xa0\x80", "\"" R R R "\""},        // surrogate
               {"\xf4\x90\x80\x80", "\"" R R R R "\""},  // above U+10FFFF
               {"\xe2\x82", "\"" R R "\""},              // cut short
               {"\xf0\x9f\x98q", "\"" R R R "q\""}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    assert_string_equal(json(cases[i].in), cases[i].out);
  }
}

static void first_line__is_the_one_that_says_something(void **state) {
  (void)state;
  char line[16];
  static const struct {
    const char *in, *out;
  } cases[] = {{"", ""},
               {"one", "one"},
               {"one\ntwo", "one"},
               {"\n\n  one\r\n", "one"},
               {" \t\n", ""},
               {"a b\rc", "a b"}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    ist__text_first_line(cases[i].in, strlen(cases[i].in), line, sizeof line);
    assert_string_equal(line, cases[i].out);
  }
  ist__text_first_line("0123456789abcdefgh", 18, line, sizeof line);
  assert_string_equal(line, "0123456789abcde");
  // Only length bytes are there; no NUL is needed.
  static const char raw[] = {'x', 'y', 'z'};
  ist__text_first_line(raw, 2, line, sizeof line);
  assert_string_equal(line, "xy");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text__grows_and_ends_in_nul),
      cmocka_unit_test(text__is_cut_to_any_room),
      cmocka_unit_test(json__escapes_what_it_must),
      cmocka_unit_test(json__keeps_valid_utf_eight),
      cmocka_unit_test(json__replaces_invalid_bytes),
      cmocka_unit_test(first_line__is_the_one_that_says_something),
  };
  return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
