// SPDX-License-Identifier: Apache-2.0
// text_test.c: text never passes its buffer's end, and JSON strings are JSON
// whatever bytes come.

#include "base/text.h"

#include <stdlib.h>

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

// What RFC 3629 says, computed: the bytes of a code point.
static size_t encode(uint32_t point, unsigned char *out) {
  if (point < 0x80) {
    out[0] = (unsigned char)point;
    return 1;
  }
  size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  for (size_t i = length; i-- > 1; point >>= 6) {
    out[i] = (unsigned char)(0x80 | (point & 0x3F));
  }
  out[0] = (unsigned char)(lead[length] | point);
  return length;
}

// All code points, surrogates and what lies above the last one too.
static void utf_eight__is_known_to_the_last_code_point(void **state) {
  (void)state;
  for (uint32_t point = 0; point < 0x120000; point++) {
    unsigned char bytes[5] = {0};
    size_t length = encode(point, bytes);
    bool good = point <= 0x10FFFF && !(point >= 0xD800 && point <= 0xDFFF);
    assert_int_equal(ist__text_utf8_length(bytes, length), good ? length : 0);
    assert_int_equal(ist__text_utf8_length(bytes, SIZE_MAX), good ? length : 0);
  }
}

// Text that ends where its memory ends, cut at each place, ends in no NUL.
static void utf_eight__needs_the_bytes_that_are_left(void **state) {
  (void)state;
  static const uint32_t points[] = {0x41, 0xE9, 0x20AC, 0x1F600};
  for (size_t i = 0; i < COUNT_OF(points); i++) {
    unsigned char bytes[4];
    size_t length = encode(points[i], bytes);
    for (size_t left = 0; left <= length; left++) {
      unsigned char *part = malloc(left > 0 ? left : 1);
      assert_non_null(part);
      memcpy(part, bytes, left);
      assert_int_equal(ist__text_utf8_length(part, left),
                       left < length ? 0 : length);
      free(part);
    }
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
      cmocka_unit_test(utf_eight__is_known_to_the_last_code_point),
      cmocka_unit_test(utf_eight__needs_the_bytes_that_are_left),
      cmocka_unit_test(first_line__is_the_one_that_says_something),
  };
  return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
