// SPDX-License-Identifier: Apache-2.0
// json_check.c: the grammar of RFC 8259, without recursion and in one pass.

#include "io/json_check.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

typedef struct scan {
  const unsigned char *at;
  const unsigned char *end;
  size_t tokens;
  size_t depth;
  char open[IST__JSON_DEPTH];  // '{' or '['
} scan;

static int peek(const scan *s) {
  return s->at < s->end ? *s->at : -1;
}

static void skip_blanks(scan *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' ||
                            *s->at == '\r')) {
    s->at++;
  }
}

static int hex_digit(unsigned char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The unit of the four digits after \u, or -1.
static int32_t read_unit(const unsigned char *digits, size_t left) {
  if (left < 4) return -1;
  int32_t unit = 0;
  for (int i = 0; i < 4; i++) {
    int digit = hex_digit(digits[i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

// The code point of an escape that begins at s (a backslash), and its size in
// *out_size; -1 when it is none.
static int32_t read_escape(const unsigned char *s, size_t left,
                           size_t *out_size) {
  static const char plain[] = "\"\\/bfnrt";
  static const char meant[] = "\"\\/\b\f\n\r\t";
  if (left < 2) return -1;
  *out_size = 2;
  const char *found = s[1] != 0 ? strchr(plain, s[1]) : NULL;
  if (found != NULL) return meant[found - plain];
  if (s[1] != 'u') return -1;
  *out_size = 6;
  int32_t unit = read_unit(s + 2, left - 2);
  if (unit < 0xD800 || unit > 0xDFFF) return unit;
  if (unit > 0xDBFF || left < 12 || s[6] != '\\' || s[7] != 'u') return -1;
  int32_t low = read_unit(s + 8, left - 8);
  if (low < 0xDC00 || low > 0xDFFF) return -1;
  *out_size = 12;
  return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
}

static const char *check_string(scan *s) {
  s->tokens++;
  s->at++;
  while (s->at < s->end && *s->at != '"') {
    size_t left = (size_t)(s->end - s->at);
    size_t size = 0;
    if (*s->at < 0x20) return "has a control character in a string";
    if (*s->at == '\\') {
      if (read_escape(s->at, left, &size) < 0) return "has a bad escape";
    } else {
      size = *s->at < 0x80 ? 1 : ist__text_utf8_length(s->at, left);
      if (size == 0) return "is not UTF-8";
    }
    s->at += size;
  }
  if (s->at == s->end) return "ends inside a string";
  s->at++;
  return NULL;
}

static bool digits(scan *s) {
  const unsigned char *begin = s->at;
  while (s->at < s->end && *s->at >= '0' && *s->at <= '9') s->at++;
  return s->at != begin;
}

static const char *check_number(scan *s) {
  static const char wrong[] = "has a malformed number";
  if (peek(s) == '-') s->at++;
  if (peek(s) == '0') {
    s->at++;
  } else if (!digits(s)) {
    return wrong;
  }
  if (peek(s) == '.') {
    s->at++;
    if (!digits(s)) return wrong;
  }
  if (peek(s) == 'e' || peek(s) == 'E') {
    s->at++;
    if (peek(s) == '+' || peek(s) == '-') s->at++;
    if (!digits(s)) return wrong;
  }
  return NULL;
}

static const char *check_scalar(scan *s) {
  static const char *const words[] = {"true", "false", "null"};
  int c = peek(s);
  if (c == '"') return check_string(s);
  s->tokens++;
  if (c == '-' || (c >= '0' && c <= '9')) return check_number(s);
  for (size_t i = 0; i < 3; i++) {
    size_t size = strlen(words[i]);
    if ((size_t)(s->end - s->at) >= size &&
        memcmp(s->at, words[i], size) == 0) {
      s->at += size;
      return NULL;
    }
  }
  return c < 0 ? "ends where a value is due" : "has a sign that is no value";
}

static const char *check_key(scan *s) {
  skip_blanks(s);
  if (peek(s) != '"') return "has a key that is not a string";
  const char *wrong = check_string(s);
  if (wrong != NULL) return wrong;
  skip_blanks(s);
  if (peek(s) != ':') return "has a key without a colon";
  s->at++;
  return NULL;
}

// Opens what begins here. *out_more: a value comes next.
static const char *check_open(scan *s, bool *out_more) {
  char kind = (char)*s->at++;
  s->tokens++;
  if (s->depth == IST__JSON_DEPTH) return "is nested deeper than 128";
  s->open[s->depth++] = kind;
  skip_blanks(s);
  *out_more = peek(s) != (kind == '{' ? '}' : ']');
  return *out_more && kind == '{' ? check_key(s) : NULL;
}

// Goes past what may follow a value. *out_more: a value comes next.
static const char *check_after(scan *s, bool *out_more) {
  *out_more = false;
  while (s->depth > 0) {
    char kind = s->open[s->depth - 1];
    skip_blanks(s);
    if (peek(s) == ',') {
      s->at++;
      *out_more = true;
      return kind == '{' ? check_key(s) : NULL;
    }
    if (peek(s) != (kind == '{' ? '}' : ']')) {
      return "lacks a comma or a closing bracket";
    }
    s->at++;
    s->depth--;
  }
  return NULL;
}

const char *ist__json_check(const char *text, size_t size, size_t *out_tokens,
                            size_t *out_at) {
  const unsigned char *begin = (const unsigned char *)text;
  scan s = {.at = begin, .end = begin + size};
  const char *wrong = NULL;
  bool more = true;
  while (more && wrong == NULL) {
    skip_blanks(&s);
    if (peek(&s) == '{' || peek(&s) == '[') {
      wrong = check_open(&s, &more);
      if (more) continue;
    } else {
      wrong = check_scalar(&s);
    }
    if (wrong == NULL) wrong = check_after(&s, &more);
  }
  skip_blanks(&s);
  if (wrong == NULL && s.at != s.end) wrong = "goes on after its end";
  *out_tokens = wrong == NULL ? s.tokens : 0;
  *out_at = (size_t)(s.at - begin);
  return wrong;
}

static size_t encode(int32_t point, char *out) {
  uint32_t p = (uint32_t)point;
  if (p < 0x80) {
    out[0] = (char)p;
    return 1;
  }
  size_t length = p < 0x800 ? 2 : p < 0x10000 ? 3 : 4;
  static const unsigned char first[] = {0, 0, 0xC0, 0xE0, 0xF0};
  for (size_t i = length - 1; i > 0; i--) {
    out[i] = (char)(0x80 | (p & 0x3F));
    p >>= 6;
  }
  out[0] = (char)(first[length] | p);
  return length;
}

size_t ist__json_decode(const char *inner, size_t size, char *out) {
  size_t written = 0;
  for (size_t i = 0; i < size;) {
    if (inner[i] != '\\') {
      out[written++] = inner[i++];
      continue;
    }
    size_t length = 0;
    int32_t point =
        read_escape((const unsigned char *)inner + i, size - i, &length);
    assert(point >= 0);  // the text was checked
    written += encode(point, out + written);
    i += length;
  }
  return written;
}
