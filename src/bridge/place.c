// SPDX-License-Identifier: Apache-2.0
// place.c: takes the name of a place apart.
//
// A path may hold the signs that end it, # and :. Where a file of the longer
// name exists, that is meant; else the last such sign ends the path. %23, %3A
// and %25 stand for #, : and %; any other % stands for itself.

#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/structs.h"
#include "io/file_kind.h"
#include "io/label.h"

static ist_code refuse(const char *text, const char *actual, const char *needs,
                       ist_error *err) {
  return ist_error_set(err, IST_ERR_PLACE,
                       "%s could not be read as a place: %s; needs %s",
                       ist__label_make(text).text, actual, needs);
}

static int escaped_sign(const char *at) {
  if (at[0] != '%') return 0;
  if (at[1] == '2' && at[2] == '3') return '#';
  if (at[1] == '2' && at[2] == '5') return '%';
  if (at[1] == '3' && (at[2] == 'A' || at[2] == 'a')) return ':';
  return 0;
}

// Writes the text from begin to end with its escapes resolved. False, and ""
// written, when it does not fit.
static bool resolve(const char *begin, const char *end, char *out,
                    size_t room) {
  size_t length = 0;
  while (begin < end) {
    int sign = end - begin >= 3 ? escaped_sign(begin) : 0;
    if (length + 1 == room) {
      out[0] = '\0';
      return false;
    }
    out[length++] = sign != 0 ? (char)sign : *begin;
    begin += sign != 0 ? 3 : 1;
  }
  out[length] = '\0';
  return true;
}

static bool is_file(const char *path) {
  struct stat facts;
  return stat(path, &facts) == 0 && !S_ISDIR(facts.st_mode);
}

static const char *last_sign(const char *begin, const char *end, char sign) {
  while (end > begin) {
    if (*--end == sign) return end;
  }
  return NULL;
}

// Finds the longest part of text, up to its end or to a sign, that names a
// file; path holds it. NULL when there is none.
static const char *longest_file(const char *text, char sign, char *path,
                                size_t room) {
  const char *end = text + strlen(text);
  while (end != NULL) {
    if (resolve(text, end, path, room) && is_file(path)) return end;
    end = last_sign(text, end, sign);
  }
  return NULL;
}

static bool read_number(const char *begin, const char *end, size_t *out) {
  size_t value = 0;
  if (begin == end) return false;
  for (; begin < end; begin++) {
    if (*begin < '0' || *begin > '9') return false;
    size_t digit = (size_t)(*begin - '0');
    if (value > (SIZE_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  return true;
}

// What follows a #: DEVICE, and where memory is allowed /MEMORY.
static ist_code read_device(const char *text, const char *after,
                            bool with_memory, ist_place *out, ist_error *err) {
  const char *end = after + strlen(after);
  const char *slash = with_memory ? strchr(after, '/') : NULL;
  if (!read_number(after, slash != NULL ? slash : end, &out->device)) {
    return refuse(text, "what follows # is not the number of a device",
                  with_memory ? "#DEVICE or #DEVICE/MEMORY" : "#DEVICE", err);
  }
  if (slash == NULL) return IST_OK;
  if (slash + 1 == end ||
      !resolve(slash + 1, end, out->memory, sizeof out->memory)) {
    return refuse(text, "its kind of memory is empty or too long",
                  "#DEVICE/MEMORY with at most 63 bytes of memory", err);
  }
  return IST_OK;
}

static ist_code read_plugin(const char *text, ist_place *out, ist_error *err) {
  const char *path = text + strlen("pjrt:");
  const char *end = longest_file(path, '#', out->path, sizeof out->path);
  if (end == NULL) {
    const char *all = path + strlen(path);
    end = last_sign(path, all, '#');
    if (end == NULL) end = all;
    if (!resolve(path, end, out->path, sizeof out->path)) {
      return refuse(text, "its path is too long", "at most 4095 bytes", err);
    }
  }
  if (out->path[0] == '\0') {
    return refuse(text, "it names no plugin",
                  "pjrt:PLUGIN.so[#DEVICE[/MEMORY]]", err);
  }
  out->kind = IST_PLACE_PJRT;
  return *end == '\0' ? IST_OK : read_device(text, end + 1, true, out, err);
}

static ist__file_kind kind_of_content(const char *path) {
  struct stat facts;
  unsigned char first[IST__FILE_KIND_BYTES];
  // Opening a pipe would wait for a writer.
  if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return IST__FILE_UNKNOWN;
  }
  FILE *file = fopen(path, "rb");
  if (file == NULL) return IST__FILE_UNKNOWN;
  size_t size = fread(first, 1, sizeof first, file);
  fclose(file);
  return ist__file_kind_of_bytes(first, size);
}

// The end of the path of a file that is still to be written: the whole name,
// or else the last part before a colon, whose ending tells a kind.
static const char *new_file(const char *text, char *path, size_t room) {
  const char *end = text + strlen(text);
  while (end != NULL) {
    if (resolve(text, end, path, room) &&
        ist__file_kind_of_name(path) != IST__FILE_UNKNOWN) {
      return end;
    }
    end = last_sign(text, end, ':');
  }
  path[0] = '\0';
  return NULL;
}

static ist_code read_file(const char *text, ist_place *out, ist_error *err) {
  static const char forms[] =
      "host, template[#DEVICE], pjrt:PLUGIN.so[#DEVICE[/MEMORY]], FILE.npy, "
      "FILE.safetensors[:TENSOR] or -";
  bool exists = true;
  const char *end = longest_file(text, ':', out->path, sizeof out->path);
  if (end == NULL) {
    exists = false;
    end = new_file(text, out->path, sizeof out->path);
  }
  if (end == NULL) {
    return refuse(text, "it is no file and no kind of place", forms, err);
  }
  ist__file_kind kind = ist__file_kind_of_name(out->path);
  bool named = *end == ':';
  // An ending is a wish when a file is written, and may mislead in a source.
  if (exists && (named || kind == IST__FILE_UNKNOWN)) {
    ist__file_kind content = kind_of_content(out->path);
    if (content != IST__FILE_UNKNOWN) kind = content;
  }
  if (kind == IST__FILE_UNKNOWN) {
    return refuse(text, "the file is neither .npy nor .safetensors", forms,
                  err);
  }
  out->kind = kind == IST__FILE_NPY ? IST_PLACE_NPY : IST_PLACE_SAFETENSORS;
  if (!named) return IST_OK;
  if (kind == IST__FILE_NPY) {
    return refuse(text, "a .npy file holds one tensor, without a name",
                  "FILE.npy", err);
  }
  const char *name = end + 1;
  if (*name == '\0' ||
      !resolve(name, name + strlen(name), out->tensor, sizeof out->tensor)) {
    return refuse(text, "the name of its tensor is empty or too long",
                  "FILE.safetensors:TENSOR with at most 1023 bytes of name",
                  err);
  }
  return IST_OK;
}

static ist_code read_place(const char *text, ist_place *out, ist_error *err) {
  if (strcmp(text, "-") == 0) {
    out->kind = IST_PLACE_STREAM;
    return IST_OK;
  }
  if (strcmp(text, "host") == 0) return IST_OK;
  if (strcmp(text, "template") == 0 || strncmp(text, "template#", 9) == 0) {
    out->kind = IST_PLACE_TEMPLATE;
    return text[8] == '\0' ? IST_OK
                           : read_device(text, text + 9, false, out, err);
  }
  if (strncmp(text, "pjrt:", 5) == 0) return read_plugin(text, out, err);
  if (strcmp(text, "opencl") == 0 || strncmp(text, "opencl:", 7) == 0) {
    return ist_error_set(err, IST_ERR_NOT_IN_VERSION,
                         "not in this version: OpenCL devices (%s); needs a "
                         "later one",
                         ist__label_make(text).text);
  }
  return read_file(text, out, err);
}

ist_code ist_place_parse(const char *text, ist_place *out, ist_error *err) {
  ist_place place = {.struct_size = sizeof place, .kind = IST_PLACE_HOST};
  if (ist__struct_ok(out)) ist__struct_write(out, &place, sizeof place);
  if (text == NULL || !ist__struct_ok(out)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a place: %s is NULL; needs a text and an ist_place "
                         "with its struct_size",
                         text == NULL ? "text" : "out or its struct_size");
  }
  ist_code code = read_place(text, &place, err);
  if (code == IST_OK) ist__struct_write(out, &place, sizeof place);
  return code;
}
