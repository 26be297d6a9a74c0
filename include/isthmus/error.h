// SPDX-License-Identifier: Apache-2.0
// error.h: the codes and the caller-owned error of every call that can fail,
// and the catalog that explains them.
// Included by isthmus.h, which explains the words used below.

#ifndef ISTHMUS_ERROR_H_
#define ISTHMUS_ERROR_H_

#include <isthmus/version.h>
#include <stddef.h>
#include <stdint.h>

#if defined(ISTHMUS_STATIC)
#define IST_API
#elif defined(_WIN32)
#define IST_API __declspec(dllimport)
#else
#define IST_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

// What went wrong, banded by who must act: 1xx the caller, 2xx the producer of
// the tensor, file or program, 3xx the target backend or device, 4xx the
// machine, 9xx isthmus itself. Numbers are never changed or used again. The
// list is src/base/catalog.def; each code has an entry in catalog/.
typedef enum ist_code {
  IST_OK = 0,
  IST_ERR_ARGUMENT = 101,
  IST_ERR_NOT_IN_VERSION = 102,
  IST_ERR_PLACE = 103,
  IST_ERR_COPY_NEEDED = 104,
  IST_ERR_READ_ONLY = 105,
  IST_ERR_CLOSED = 106,
  IST_ERR_SHAPE_MISMATCH = 107,
  IST_ERR_DTYPE_MISMATCH = 108,
  IST_ERR_OPTION = 109,
  IST_ERR_CONSUMED = 110,
  IST_ERR_NAME_NEEDED = 111,
  IST_ERR_NAME_UNKNOWN = 112,
  IST_ERR_ARITY = 113,
  IST_ERR_OUTPUT = 114,
  IST_ERR_REQUIRES_GRAD = 115,
  IST_ERR_NOT_A_TENSOR = 116,
  IST_ERR_NARROWING = 117,
  IST_ERR_HEADER_VERSION = 118,
  IST_ERR_CANCELLED = 119,
  IST_ERR_DONATED = 120,
  IST_ERR_NDIM = 201,
  IST_ERR_SHAPE = 202,
  IST_ERR_OVERFLOW = 203,
  IST_ERR_NULL_DATA = 204,
  IST_ERR_DTYPE = 205,
  IST_ERR_LANES = 206,
  IST_ERR_MISALIGNED = 207,
  IST_ERR_DLPACK_VERSION = 208,
  IST_ERR_DEVICE_CODE = 209,
  IST_ERR_FILE_FORMAT = 210,
  IST_ERR_FILE_TRUNCATED = 211,
  IST_ERR_FILE_DTYPE = 212,
  IST_ERR_PROGRAM = 213,
  IST_ERR_PRODUCER = 214,
  IST_ERR_PACKING = 215,
  IST_ERR_ARTIFACT = 216,
  IST_ERR_NO_BACKEND = 301,
  IST_ERR_PLUGIN_LOAD = 302,
  IST_ERR_NOT_A_PLUGIN = 303,
  IST_ERR_PLUGIN_VERSION = 304,
  IST_ERR_PLUGIN_SLOT = 305,
  IST_ERR_PLUGIN = 306,
  IST_ERR_NO_DEVICE = 307,
  IST_ERR_NO_MEMORY_KIND = 308,
  IST_ERR_TARGET_DTYPE = 309,
  IST_ERR_TARGET_LAYOUT = 310,
  IST_ERR_NOT_ADDRESSABLE = 311,
  IST_ERR_DELETED = 312,
  IST_ERR_BUFFER = 313,
  IST_ERR_NO_PROGRAMS = 314,
  IST_ERR_BACKEND_ABI = 315,
  IST_ERR_NO_ROUTE = 316,
  IST_ERR_DYNAMIC_SHAPE = 317,
  IST_ERR_TUPLE = 318,
  IST_ERR_CONSUMER = 319,
  IST_ERR_PLUGIN_CRASHED = 320,
  IST_ERR_PROBE_MISSING = 321,
  IST_ERR_PROGRAM_VERSION = 322,
  IST_ERR_OUT_OF_DEVICE_MEMORY = 323,
  IST_ERR_NO_ALLOCATION = 401,
  IST_ERR_IO = 402,
  IST_ERR_FILE_OPEN = 403,
  IST_ERR_DISK_FULL = 404,
  IST_ERR_NO_FRAMEWORK = 405,
  IST_ERR_INTERNAL = 901
} ist_code;

// One failure, in memory of the caller's own; nothing is allocated to report.
// message is one line, UTF-8, always ended by a NUL: what could not be done:
// actual; needs required. native is the errno or the plugin's own code, or 0.
typedef struct ist_error {
  ist_code code;
  int32_t native;
  char message[504];
} ist_error;

// The library's version, "major.minor.patch", to compare with
// IST_VERSION_STRING of the header. Lends a static string.
// Fails: never. Threads: any. Since: 0.1.
IST_API const char *ist_version(void);

// The code's stable name, "IST_ERR_SHAPE", or NULL when there is none.
// Lends a static string. Fails: never. Threads: any. Since: 0.1.
IST_API const char *ist_code_name(ist_code code);

// --------------------------------------------------------------- catalog --

// One entry of the catalog of errors, compiled in from catalog/.
typedef struct ist_entry {
  size_t struct_size;
  ist_code code;
  const char *name;      // "IST_ERR_SHAPE"
  const char *slug;      // stable, for addresses of pages
  const char *title;     // the message's general form
  const char *meaning;   // what it means, a paragraph
  const char *solution;  // what to do, first the isthmus call that crosses
} ist_entry;

// The entry of a code. Lends its strings, which are static.
// Fails: ARGUMENT for a number that is no code. Threads: any. Since: 0.1.
IST_API ist_code ist_catalog_find(ist_code code, ist_entry *out,
                                  ist_error *err);

// Code number index of the list, in order, IST_OK after the last.
// Borrows nothing. Fails: never. Threads: any. Since: 0.1.
IST_API ist_code ist_catalog_code(size_t index);

// Finds the errors of isthmus that a text names or words, in order: a text
// that is a code's number or name ("210", "IST_ERR_SHAPE", "file-format"), and
// line by line each IST_ERR_ name, or the message that a line is. In a text of
// several lines only a line that names isthmus is taken for a message. Writes
// the first room codes, IST_OK after them; returns how many there are (those
// beyond room counted again when they come again). out may be NULL.
// Borrows all. Fails: never. Threads: any. Since: 0.1.
IST_API size_t ist_catalog_match(const char *text, size_t size, ist_code *out,
                                 size_t room);

#ifdef __cplusplus
}
#endif

#endif  // ISTHMUS_ERROR_H_
