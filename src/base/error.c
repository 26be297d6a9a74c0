// SPDX-License-Identifier: Apache-2.0
// error.c: one failure, written into memory of the caller's.

#include "base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/structs.h"
#include "base/text.h"

const char *ist_version(void) {
  return IST_VERSION_STRING;
}

// One line of UTF-8, whatever a path or a plugin put into it; a character that
// the end of the room has cut is dropped.
static void make_one_line(char *text, bool is_cut) {
  for (char *c = text; *c != '\0';) {
    size_t length = ist__text_utf8_length(c, SIZE_MAX);
    if (length == 0) {
      bool at_end = is_cut && strlen(c) < 4;
      *c++ = at_end ? '\0' : '?';
      if (at_end) return;
    } else {
      if ((unsigned char)*c < 0x20) *c = ' ';
      c += length;
    }
  }
}

static ist_code report(ist_error *err, ist_code code, int32_t native,
                       const char *format, va_list args) {
  if (err == NULL) return code;
  err->code = code;
  err->native = native;
  int length = vsnprintf(err->message, sizeof err->message, format, args);
  bool is_cut = length < 0 || (size_t)length >= sizeof err->message;
  make_one_line(err->message, is_cut);
  return code;
}

ist_code ist_error_set(ist_error *err, ist_code code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  report(err, code, 0, format, args);
  va_end(args);
  return code;
}

ist_code ist__error_native(ist_error *err, ist_code code, int32_t native,
                           const char *format, ...) {
  va_list args;
  va_start(args, format);
  report(err, code, native, format, args);
  va_end(args);
  return code;
}

ist_code ist__error_memory(ist_error *err, const char *what, uint64_t size) {
  return ist_error_set(err, IST_ERR_NO_ALLOCATION,
                       "memory for %s was not to be had: the allocator gave "
                       "none; needs %" PRIu64 " bytes",
                       what, size);
}

void ist__error_seal(ist_error *err, ist_code code) {
  err->code = code;
  bool is_cut = memchr(err->message, '\0', sizeof err->message) == NULL;
  err->message[sizeof err->message - 1] = '\0';
  make_one_line(err->message, is_cut);
}

ist_code ist__struct_check(const void *from, const char *type, ist_error *err) {
  if (from == NULL || ist__struct_ok(from)) return IST_OK;
  return ist_error_set(err, IST_ERR_ARGUMENT,
                       "%s could not be read: struct_size is %zu; needs "
                       "sizeof(%s)",
                       type, *(const size_t *)from, type);
}

ist_code ist__options_read(void *to, size_t size, const void *from,
                           const char *type, ist_error *err) {
  ist_code code = ist__struct_check(from, type, err);
  if (code == IST_OK) ist__struct_read(to, size, from);
  return code;
}

void ist__error_clear(ist_error *err) {
  if (err == NULL) return;
  err->code = IST_OK;
  err->native = 0;
  err->message[0] = '\0';
}
