// SPDX-License-Identifier: Apache-2.0
// safetensors_write.c: the header of a .safetensors file, and the order of its
// tensors that keeps as many of them aligned as the format, which allows no
// holes, lets.
//
// Tensors go by the largest power of two, 64 at most, that divides their size,
// largest first: then each begins at a multiple of its own power, which is
// never below its element size, and all whose size is a multiple of 64 begin
// at a multiple of 64.

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "io/label.h"
#include "io/safetensors.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

// One tensor to be placed.
typedef struct piece {
  const char *name;
  uint64_t nbytes;
  uint64_t alignment;
  size_t number;  // of the entry
} piece;

static int compare_pieces(const void *left, const void *right) {
  const piece *a = left, *b = right;
  if (a->alignment != b->alignment) return a->alignment > b->alignment ? -1 : 1;
  return a->number < b->number ? -1 : a->number > b->number;
}

static int compare_names(const void *left, const void *right) {
  const piece *a = left, *b = right;
  return strcmp(a->name, b->name);
}

static bool is_utf8(const char *name) {
  while (*name != '\0') {
    size_t length = ist__text_utf8_length(name, SIZE_MAX);
    if (length == 0) return false;
    name += length;
  }
  return true;
}

static ist_code check_name(const char *name, const char *path, ist_error *err) {
  const char *wrong = NULL;
  if (name == NULL) {
    wrong = "has no name; needs a name for each tensor";
  } else if (strcmp(name, "__metadata__") == 0) {
    wrong = "has the name that the format keeps for itself; needs another";
  } else if (!is_utf8(name)) {
    wrong = "has a name that is not UTF-8; needs UTF-8";
  }
  if (wrong == NULL) return IST_OK;
  return ist_error_set(err, IST_ERR_ARGUMENT, "cannot write %s: tensor '%s' %s",
                       ist__label_make(path).text, ist__label_make(name).text,
                       wrong);
}

static ist_code measure(const ist__entry *entry, const char *path, piece *out,
                        ist_error *err) {
  ist__view view;
  uint64_t bits = 0;
  const ist__dtype *row = ist__dtype_find(entry->dtype);
  ist_code code = check_name(entry->name, path, err);
  if (code != IST_OK) return code;
  if (row == NULL || row->safetensors == NULL || entry->dtype.lanes != 1) {
    return ist_error_set(
        err, IST_ERR_FILE_DTYPE,
        "cannot write %s: tensor '%s' is of dtype %s with %u "
        "lanes; needs a dtype of .safetensors and one lane",
        ist__label_make(path).text, ist__label_make(entry->name).text,
        row == NULL ? "(unknown)" : row->name, entry->dtype.lanes);
  }
  code = ist__view_dense(entry->dtype, entry->ndim, entry->shape, false, &view,
                         err);
  if (code != IST_OK) return code;
  if (!ist__mul_u64(view.count, row->bits, &bits) || bits % 8 != 0) {
    return ist_error_set(err, IST_ERR_FILE_DTYPE,
                         "cannot write %s: tensor '%s' has %" PRIu64
                         " elements of %u bits; needs whole bytes",
                         ist__label_make(path).text,
                         ist__label_make(entry->name).text, view.count,
                         row->bits);
  }
  uint64_t nbytes = bits / 8;
  uint64_t power = nbytes & (~nbytes + 1);
  bool aligned = nbytes % IST__SAFETENSORS_ALIGNMENT == 0;
  out->name = entry->name;
  out->nbytes = nbytes;
  out->alignment = aligned ? IST__SAFETENSORS_ALIGNMENT : power;
  return IST_OK;
}

static ist_code check_unique(piece *pieces, size_t count, const char *path,
                             ist_error *err) {
  qsort(pieces, count, sizeof *pieces, compare_names);
  for (size_t i = 1; i < count; i++) {
    if (strcmp(pieces[i - 1].name, pieces[i].name) != 0) continue;
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "cannot write %s: two tensors are named '%s'; needs "
                         "each name once",
                         ist__label_make(path).text,
                         ist__label_make(pieces[i].name).text);
  }
  return IST_OK;
}

// False when the bytes of all tensors together do not fit a number.
static bool write_text(const ist__entry *entries, const piece *pieces,
                       size_t count, ist__text *text) {
  uint64_t begin = 0;
  ist__text_add(text, "{");
  for (size_t i = 0; i < count; i++) {
    const ist__entry *entry = &entries[pieces[i].number];
    uint64_t end;
    if (!ist__add_u64(begin, pieces[i].nbytes, &end)) return false;
    if (i > 0) ist__text_add(text, ",");
    ist__text_add_json(text, entry->name);
    ist__text_add(text, ":{\"dtype\":\"%s\",\"shape\":[",
                  ist__dtype_find(entry->dtype)->safetensors);
    for (int32_t k = 0; k < entry->ndim; k++) {
      ist__text_add(text, k == 0 ? "%" PRId64 : ",%" PRId64, entry->shape[k]);
    }
    ist__text_add(text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin,
                  end);
    begin = end;
  }
  ist__text_add(text, "}");
  return true;
}

// Writes the header into its block, whose size is known by then.
static void fill(ist__safetensors_plan *plan, const ist__entry *entries,
                 const piece *pieces, size_t count) {
  uint64_t length = plan->header_size - 8;
  ist__text text = ist__text_make(plan->header + 8, (size_t)length + 1);
  write_text(entries, pieces, count, &text);
  memset(plan->header + 8 + text.length, ' ', (size_t)length - text.length);
  for (int i = 0; i < 8; i++) {
    plan->header[i] = (char)(length >> (8 * i) & 0xFF);
  }
  for (size_t i = 0; i < count; i++) plan->order[i] = pieces[i].number;
}

static ist_code make_plan(const ist__env *env, const char *path,
                          const ist__entry *entries, const piece *pieces,
                          size_t count, ist__safetensors_plan *out,
                          ist_error *err) {
  ist__text text = ist__text_make(NULL, 0);
  bool fits = write_text(entries, pieces, count, &text);
  if (!fits || text.length > IST__SAFETENSORS_MAX_HEADER - 64) {
    return ist_error_set(err, IST_ERR_FILE_FORMAT,
                         "cannot write %s: its header would have %zu bytes; "
                         "needs at most %d, and fewer than 2**64 bytes of data",
                         ist__label_make(path).text, text.length,
                         IST__SAFETENSORS_MAX_HEADER);
  }
  size_t header_size = (8 + text.length + 63) / 64 * 64;
  size_t size = count * sizeof *out->order + header_size + 1;
  char *block = ist__alloc(env, size, _Alignof(max_align_t));
  if (block == NULL) return ist__error_memory(err, "a header", size);
  out->block = block;
  out->order = (void *)block;
  out->header = block + count * sizeof *out->order;
  out->header_size = header_size;
  fill(out, entries, pieces, count);
  return IST_OK;
}

ist_code ist__safetensors_plan_make(const ist__env *env, const char *path,
                                    const ist__entry *entries, size_t count,
                                    ist__safetensors_plan *out,
                                    ist_error *err) {
  memset(out, 0, sizeof *out);
  size_t size = count * sizeof(piece);
  if (count > SIZE_MAX / sizeof(piece) - 1) {
    return ist__error_memory(err, "a header", UINT64_MAX);
  }
  piece *pieces = ist__alloc(env, size, _Alignof(max_align_t));
  if (pieces == NULL) return ist__error_memory(err, "a header", size);
  ist_code code = IST_OK;
  for (size_t i = 0; code == IST_OK && i < count; i++) {
    pieces[i].number = i;
    code = measure(&entries[i], path, &pieces[i], err);
  }
  if (code == IST_OK) code = check_unique(pieces, count, path, err);
  if (code == IST_OK) {
    qsort(pieces, count, sizeof *pieces, compare_pieces);
    code = make_plan(env, path, entries, pieces, count, out, err);
  }
  ist__free(env, pieces);
  return code;
}

void ist__safetensors_plan_free(const ist__env *env,
                                ist__safetensors_plan *plan) {
  ist__free(env, plan->block);
  memset(plan, 0, sizeof *plan);
}
