// SPDX-License-Identifier: Apache-2.0
// error.h: filling a caller-owned error. ist_error_set itself is public, in
// <isthmus/backend.h>, since backends of others report with it too.

#ifndef ISTHMUS_BASE_ERROR_H_
#define ISTHMUS_BASE_ERROR_H_

#include <isthmus/backend.h>

// As ist_error_set, with the errno or the plugin's own code kept in native.
ist_code ist__error_native(ist_error *err, ist_code code, int32_t native,
                           const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Reports that size bytes for what could not be had.
ist_code ist__error_memory(ist_error *err, const char *what, uint64_t size);

// Makes what a backend wrote into err, whatever it is, the text of one line
// that ist_error promises, for code.
void ist__error_seal(ist_error *err, ist_code code);

// Refuses a growable struct of a caller that has no struct_size: it would be
// read as all zeros, and its wishes lost without a word. NULL is allowed.
ist_code ist__struct_check(const void *from, const char *type, ist_error *err);

// Refuses as ist__struct_check does, else reads from into to, of size bytes, as
// ist__struct_read does: what every function that takes options begins with.
ist_code ist__options_read(void *to, size_t size, const void *from,
                           const char *type, ist_error *err);

// Makes err clean: IST_OK, no text.
void ist__error_clear(ist_error *err);

#endif  // ISTHMUS_BASE_ERROR_H_
