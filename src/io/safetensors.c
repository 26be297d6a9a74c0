// SPDX-License-Identifier: Apache-2.0
// safetensors.c: reads a .safetensors file as hostile bytes: the length of its
// header, and how its tensors lie. The header itself: safetensors_header.c.

#include "io/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/label.h"
#include "io/safetensors_header.h"

static ist_code find_header(const unsigned char *bytes, size_t size,
                            const char *path, uint64_t *out_size,
                            ist_error *err) {
  ist__label name = ist__label_make(path);
  if (size < 8) {
    return ist_error_set(err, IST_ERR_FILE_TRUNCATED,
                         "cannot read %s: the file ends after %zu bytes; "
                         "needs 8 for the length of its header",
                         name.text, size);
  }
  uint64_t length = 0;
  for (int i = 8; i-- > 0;) length = length << 8 | bytes[i];
  if (length > IST__SAFETENSORS_MAX_HEADER) {
    return ist_error_set(err, IST_ERR_FILE_FORMAT,
                         "cannot read %s: its header has %" PRIu64
                         " bytes; needs at most %d",
                         name.text, length, IST__SAFETENSORS_MAX_HEADER);
  }
  if (length > size - 8) {
    return ist_error_set(err, IST_ERR_FILE_TRUNCATED,
                         "cannot read %s: the file ends after %zu bytes; "
                         "needs %" PRIu64 " for its header",
                         name.text, size, length + 8);
  }
  if (length == 0 || bytes[8] != '{') {
    return ist_error_set(err, IST_ERR_FILE_FORMAT,
                         "cannot read %s: its header does not begin with {; "
                         "needs a header of .safetensors",
                         name.text);
  }
  *out_size = length;
  return IST_OK;
}

// By place; tensors without bytes come before one that begins where they lie.
static int compare_places(const void *left, const void *right) {
  const ist__entry *a = left, *b = right;
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  if (a->nbytes != b->nbytes) return a->nbytes < b->nbytes ? -1 : 1;
  return strcmp(a->name, b->name);
}

static int compare_names(const void *left, const void *right) {
  const ist__entry *const *a = left, *const *b = right;
  return strcmp((*a)->name, (*b)->name);
}

static ist_code check_places(const ist__safetensors *parsed, uint64_t begin,
                             uint64_t size, const char *path, ist_error *err) {
  ist__label file = ist__label_make(path);
  uint64_t end = 0;
  for (size_t i = 0; i < parsed->count; i++) {
    const ist__entry *entry = &parsed->entries[i];
    ist__label name = ist__label_make(entry->name);
    // offset + nbytes is the second of data_offsets: it fits, and begin too.
    if (entry->offset + entry->nbytes > size) {
      return ist_error_set(err, IST_ERR_FILE_TRUNCATED,
                           "cannot read %s: the file ends after %" PRIu64
                           " bytes; needs %" PRIu64 ", where tensor '%s' ends",
                           file.text, begin + size,
                           begin + entry->offset + entry->nbytes, name.text);
    }
    if (entry->offset != end) {
      return ist_error_set(
          err, IST_ERR_FILE_FORMAT,
          "cannot read %s: its header has tensor '%s', which %s: it begins at "
          "byte %" PRIu64 " of the data; needs %" PRIu64
          ", where the one before it ends",
          file.text, name.text,
          entry->offset < end ? "overlaps another" : "leaves a hole",
          entry->offset, end);
    }
    end += entry->nbytes;
  }
  if (end != size) {
    return ist_error_set(err, IST_ERR_FILE_FORMAT,
                         "cannot read %s: its header has tensors of %" PRIu64
                         " bytes, but %" PRIu64
                         " follow it; needs no byte after the last tensor",
                         file.text, end, size);
  }
  return IST_OK;
}

static ist_code index_names(ist__safetensors *parsed, const char *path,
                            ist_error *err) {
  for (size_t i = 0; i < parsed->count; i++) {
    parsed->by_name[i] = &parsed->entries[i];
  }
  if (parsed->count == 0) return IST_OK;
  qsort(parsed->by_name, parsed->count, sizeof *parsed->by_name, compare_names);
  for (size_t i = 1; i < parsed->count; i++) {
    const char *name = parsed->by_name[i]->name;
    if (strcmp(parsed->by_name[i - 1]->name, name) != 0) continue;
    return ist_error_set(err, IST_ERR_FILE_FORMAT,
                         "cannot read %s: its header has two tensors named "
                         "'%s'; needs each name once",
                         ist__label_make(path).text,
                         ist__label_make(name).text);
  }
  return IST_OK;
}

ist_code ist__safetensors_parse(const ist__env *env, const void *bytes,
                                size_t size, const char *path,
                                ist__safetensors *out, ist_error *err) {
  memset(out, 0, sizeof *out);
  uint64_t length = 0;
  ist_code code = find_header(bytes, size, path, &length, err);
  if (code != IST_OK) return code;
  const char *text = (const char *)bytes + 8;
  code =
      ist__safetensors_header_read(env, text, (size_t)length, path, out, err);
  if (code != IST_OK) return code;
  if (out->count > 0) {
    qsort(out->entries, out->count, sizeof *out->entries, compare_places);
  }
  code = index_names(out, path, err);
  if (code == IST_OK)
    code = check_places(out, 8 + length, size - 8 - length, path, err);
  if (code != IST_OK) {
    ist__safetensors_free(env, out);
    return code;
  }
  for (size_t i = 0; i < out->count; i++) {
    out->entries[i].offset += 8 + length;
  }
  return IST_OK;
}

void ist__safetensors_free(const ist__env *env, ist__safetensors *parsed) {
  ist__free(env, parsed->block);
  memset(parsed, 0, sizeof *parsed);
}

const ist__entry *ist__safetensors_find(const ist__safetensors *parsed,
                                        const char *name) {
  ist__entry wanted = {.name = name};
  const ist__entry *key = &wanted;
  if (parsed->count == 0) return NULL;
  const ist__entry **found = bsearch(&key, parsed->by_name, parsed->count,
                                     sizeof *parsed->by_name, compare_names);
  return found == NULL ? NULL : *found;
}
