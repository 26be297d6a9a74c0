// SPDX-License-Identifier: Apache-2.0
// error.c: one failure, written into memory of the caller's.

#include "base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char *ist_version(void) {
  return IST_VERSION_STRING;
}

static ist_code report(ist_error *err, ist_code code, int32_t native,
                       const char *format, va_list args) {
  if (err == NULL) return code;
  err->code = code;
  err->native = native;
  vsnprintf(err->message, sizeof err->message, format, args);
  // One line, whatever a path or a plugin put into it.
  for (char *c = err->message; *c != '\0'; c++) {
    if (*c == '\n' || *c == '\r') *c = ' ';
  }
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

void ist__error_clear(ist_error *err) {
  if (err == NULL) return;
  err->code = IST_OK;
  err->native = 0;
  err->message[0] = '\0';
}
