// SPDX-License-Identifier: Apache-2.0
// text.c: text into buffers of fixed size.

#include "base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void add_bytes(ist__text *text, const char *bytes, size_t count) {
  if (text->length + 1 < text->size) {
    size_t room = text->size - text->length - 1;
    size_t part = count < room ? count : room;
    memcpy(text->buffer + text->length, bytes, part);
    text->buffer[text->length + part] = '\0';
  }
  text->length += count;
}

void ist__text_add(ist__text *text, const char *format, ...) {
  size_t used = text->length < text->size ? text->length : text->size;
  char *end = used < text->size ? text->buffer + used : NULL;
  va_list args;
  va_start(args, format);
  int count = vsnprintf(end, text->size - used, format, args);
  va_end(args);
  if (count > 0) text->length += (size_t)count;
}

size_t ist__text_utf8_length(const void *string, size_t left) {
  const unsigned char *s = string;
  static const struct {
    unsigned char first, last, low, high, length;
  } forms[] = {{0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2},
               {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
               {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
               {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4},
               {0xF4, 0xF4, 0x80, 0x8F, 4}};
  if (left == 0) return 0;
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    if (s[0] < forms[i].first || s[0] > forms[i].last) continue;
    if (forms[i].length == 1) return 1;
    if (left < forms[i].length) return 0;
    if (s[1] < forms[i].low || s[1] > forms[i].high) return 0;
    for (size_t k = 2; k < forms[i].length; k++) {
      if ((s[k] & 0xC0) != 0x80) return 0;
    }
    return forms[i].length;
  }
  return 0;
}

void ist__text_add_json(ist__text *text, const char *string) {
  if (string == NULL) {
    ist__text_add(text, "null");
    return;
  }
  add_bytes(text, "\"", 1);
  const unsigned char *s = (const unsigned char *)string;
  while (*s != '\0') {
    size_t length = ist__text_utf8_length(s, SIZE_MAX);
    if (length == 0) {
      add_bytes(text, "\\ufffd", 6);
      s++;
    } else if (*s == '"' || *s == '\\') {
      ist__text_add(text, "\\%c", *s++);
    } else if (*s < 0x20 || *s == 0x7F) {
      ist__text_add(text, "\\u%04x", (unsigned)*s++);
    } else {
      add_bytes(text, (const char *)s, length);
      s += length;
    }
  }
  add_bytes(text, "\"", 1);
}

void ist__text_first_line(const char *message, size_t length, char *buffer,
                          size_t size) {
  ist__text line = ist__text_make(buffer, size);
  size_t i = 0;
  while (i < length && isspace((unsigned char)message[i])) i++;
  size_t end = i;
  while (end < length && message[end] != '\n' && message[end] != '\r' &&
         message[end] != '\0') {
    end++;
  }
  add_bytes(&line, message + i, end - i);
}

bool ist__text_number(const char *text, int32_t least, int32_t most,
                      int32_t *out) {
  int64_t number = 0;
  const char *at = text;
  for (; *at >= '0' && *at <= '9' && number <= most; at++) {
    number = number * 10 + (*at - '0');
  }
  if (at == text || *at != '\0' || number < least || number > most) {
    return false;
  }
  *out = (int32_t)number;
  return true;
}
