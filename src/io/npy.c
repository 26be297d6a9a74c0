// SPDX-License-Identifier: Apache-2.0
// npy.c: reads a .npy file as hostile bytes.

#include "io/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/label.h"
#include "io/npy_header.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

// What is being read, for the functions below.
typedef struct reading {
  ist__label path;
  const unsigned char *bytes;
  size_t size;
  const char *dtype;  // of the options, or NULL
  ist_error *err;
} reading;

// A type string, taken apart: "<f4".
typedef struct type_string {
  char order;  // '<' '>' '|' '='
  char kind;
  uint64_t size;
  char text[24];  // cut, for messages
} type_string;

uint64_t ist__npy_item_size(DLDataType dtype) {
  return ((uint64_t)dtype.bits + 7) / 8;
}

static uint64_t little_endian(const unsigned char *bytes, size_t size) {
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

// Finds the header text: its begin and its size.
static ist_code find_header(const reading *r, size_t *out_begin,
                            size_t *out_size) {
  size_t known = r->size < IST__NPY_MAGIC_SIZE ? r->size : IST__NPY_MAGIC_SIZE;
  if (memcmp(r->bytes, IST__NPY_MAGIC, known) != 0) {
    return ist_error_set(r->err, IST_ERR_FILE_FORMAT,
                         "cannot read %s: its header does not begin as one of "
                         ".npy; needs \\x93NUMPY",
                         r->path.text);
  }
  unsigned major = r->size > 6 ? r->bytes[6] : 1;
  unsigned minor = r->size > 7 ? r->bytes[7] : 0;
  if (major < 1 || major > 3 || minor != 0) {
    return ist_error_set(
        r->err, IST_ERR_FILE_FORMAT,
        "cannot read %s: its header is of version %u.%u; needs 1.0, 2.0 or 3.0",
        r->path.text, major, minor);
  }
  size_t begin = major == 1 ? 10 : 12;
  uint64_t length = 0;
  if (r->size >= begin) length = little_endian(r->bytes + 8, begin - 8);
  if (r->size < begin || r->size - begin < length) {
    return ist_error_set(r->err, IST_ERR_FILE_TRUNCATED,
                         "cannot read %s: the file ends after %zu bytes; "
                         "needs %" PRIu64 " for its header",
                         r->path.text, r->size, (uint64_t)begin + length);
  }
  *out_begin = begin;
  *out_size = (size_t)length;
  return IST_OK;
}

static ist_code refuse_dtype(const reading *r, const type_string *type,
                             const char *what) {
  return ist_error_set(
      r->err, IST_ERR_FILE_DTYPE,
      "cannot read %s: its items are %s ('%s'); needs numbers or booleans",
      r->path.text, what, type->text);
}

static ist_code split_type(const reading *r, const ist__npy_header *header,
                           type_string *out) {
  memset(out, 0, sizeof *out);
  size_t size = header->descr_size;
  snprintf(out->text, sizeof out->text, "%.*s", (int)(size < 20 ? size : 20),
           header->descr);
  ist__label clean = ist__label_make(out->text);
  memcpy(out->text, clean.text, sizeof out->text);
  const char *at = header->descr;
  const char *end = at + size;
  out->order = '=';
  if (at < end && *at != '\0' && strchr("<>|=", *at) != NULL) {
    out->order = *at++;
  }
  if (at < end) out->kind = *at++;
  for (; at < end && *at >= '0' && *at <= '9'; at++) {
    if (out->size < UINT32_MAX)
      out->size = out->size * 10 + (uint64_t)(*at - '0');
  }
  bool unit = (out->kind == 'M' || out->kind == 'm') && at < end && *at == '[';
  if (out->kind == '\0' || (at != end && !unit)) {
    return refuse_dtype(r, out, "of a type that is not named rightly");
  }
  return IST_OK;
}

// What items are that no tensor can have, or NULL.
static const char *foreign_items(const type_string *type) {
  switch (type->kind) {
    case 'O':
      return "Python objects";
    case 'S':
    case 'a':
      return "byte strings";
    case 'U':
      return "unicode strings";
    case 'T':
      return "strings of any length";
    case 'M':
      return "dates (datetime64)";
    case 'm':
      return "time spans (timedelta64)";
    case 'f':
      return type->size > 8 ? "long doubles" : NULL;
    case 'c':
      return type->size > 16 ? "complex long doubles" : NULL;
    default:
      return NULL;
  }
}

static const ist__dtype *numpy_dtype(const type_string *type) {
  char name[24];
  snprintf(name, sizeof name, "%c%" PRIu64, type->kind, type->size);
  for (int32_t i = 0; i < ist__dtype_count(); i++) {
    const ist__dtype *row = ist__dtype_at(i);
    if (row->npy != NULL && strcmp(row->npy, name) == 0) return row;
  }
  // ml_dtypes before NumPy's own: its float8_e5m2 alone is of kind 'f'.
  if (strcmp(name, "f1") == 0) {
    return ist__dtype_find((DLDataType){kDLFloat8_e5m2, 8, 1});
  }
  return NULL;
}

// The dtype that the caller says raw items are.
static ist_code asked_dtype(const reading *r, const type_string *type,
                            DLDataType *out) {
  DLDataType dtype;
  if (ist_dtype_parse(r->dtype, &dtype, NULL) != IST_OK) {
    return ist_error_set(r->err, IST_ERR_FILE_DTYPE,
                         "cannot read %s: its items are to be of dtype '%s', "
                         "which there is not; needs the name of one, such as "
                         "bfloat16",
                         r->path.text, ist__label_make(r->dtype).text);
  }
  if (dtype.lanes != 1 || ist__npy_item_size(dtype) != type->size) {
    return ist_error_set(r->err, IST_ERR_FILE_DTYPE,
                         "cannot read %s: its items are of %" PRIu64
                         " bytes ('%s'); needs %" PRIu64
                         " to be read as %s (to convert: astype, --astype)",
                         r->path.text, type->size, type->text,
                         ist__npy_item_size(dtype) * dtype.lanes, r->dtype);
  }
  *out = dtype;
  return IST_OK;
}

static ist_code find_dtype(const reading *r, const ist__npy_header *header,
                           ist__entry *out) {
  type_string type;
  ist_code code = split_type(r, header, &type);
  if (code != IST_OK) return code;
  const char *foreign = foreign_items(&type);
  if (foreign != NULL) return refuse_dtype(r, &type, foreign);
  const ist__dtype *row = type.kind == 'V' ? NULL : numpy_dtype(&type);
  if (type.kind != 'V' && row == NULL) {
    return refuse_dtype(r, &type, "of an unknown type");
  }
  if (row != NULL) out->dtype = (DLDataType){row->code, row->bits, 1};
  if (row == NULL && r->dtype == NULL) {
    return ist_error_set(r->err, IST_ERR_FILE_DTYPE,
                         "cannot read %s: its items are raw bytes ('%s'), as "
                         "NumPy saves bfloat16 and smaller types; needs the "
                         "dtype they have (dtype, --dtype)",
                         r->path.text, type.text);
  }
  if (r->dtype != NULL) {
    DLDataType asked;
    code = asked_dtype(r, &type, &asked);
    if (code != IST_OK) return code;
    if (row != NULL && (row->code != asked.code || row->bits != asked.bits)) {
      return ist_error_set(r->err, IST_ERR_FILE_DTYPE,
                           "cannot read %s: its items are %s ('%s'); needs raw "
                           "bytes to be read as %s",
                           r->path.text, row->name, type.text, r->dtype);
    }
    out->dtype = asked;
  }
  out->padded = out->dtype.bits < 8;
  char foreign_order = '>';
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  foreign_order = '<';
#endif
  out->swapped = type.order == foreign_order && type.size > 1;
  return IST_OK;
}

static ist_code find_extent(const reading *r, ist__npy *npy) {
  ist__view view;
  ist__entry *entry = &npy->entry;
  if (ist__view_dense(entry->dtype, entry->ndim, npy->shape, entry->padded,
                      &view, NULL) != IST_OK) {
    char shape[96];
    ist__view_shape_text(entry->ndim, npy->shape, shape, sizeof shape);
    return ist_error_set(r->err, IST_ERR_FILE_FORMAT,
                         "cannot read %s: its header has a shape whose size "
                         "overflows (%s); needs at most 2**60 bytes",
                         r->path.text, shape);
  }
  entry->nbytes = view.nbytes;
  if (r->size - entry->offset < entry->nbytes) {
    return ist_error_set(r->err, IST_ERR_FILE_TRUNCATED,
                         "cannot read %s: the file ends after %zu bytes; "
                         "needs %" PRIu64 ", %" PRIu64 " of them for its array",
                         r->path.text, r->size, entry->offset + entry->nbytes,
                         entry->nbytes);
  }
  return IST_OK;
}

ist_code ist__npy_parse(const void *bytes, size_t size, const char *path,
                        const char *dtype, ist__npy *out, ist_error *err) {
  memset(out, 0, sizeof *out);
  reading r = {ist__label_make(path), bytes, size, dtype, err};
  size_t begin = 0;
  size_t length = 0;
  ist__npy_header header;
  ist__npy npy = {.entry = {.name = ""}};
  ist_code code = find_header(&r, &begin, &length);
  if (code != IST_OK) return code;
  const char *wrong =
      ist__npy_header_read((const char *)bytes + begin, length, &header);
  if (wrong != NULL) {
    return ist_error_set(err, IST_ERR_FILE_FORMAT,
                         "cannot read %s: its header %s; needs the header that "
                         "NumPy writes",
                         r.path.text, wrong);
  }
  if (header.structured) {
    return ist_error_set(err, IST_ERR_FILE_DTYPE,
                         "cannot read %s: its items are structured (fields); "
                         "needs numbers or booleans",
                         r.path.text);
  }
  code = find_dtype(&r, &header, &npy.entry);
  if (code != IST_OK) return code;
  npy.entry.ndim = header.ndim;
  npy.entry.column_major = header.fortran_order && header.ndim > 1;
  npy.entry.offset = begin + length;
  memcpy(npy.shape, header.shape, sizeof npy.shape);
  code = find_extent(&r, &npy);
  if (code != IST_OK) return code;
  *out = npy;
  out->entry.shape = out->shape;
  return IST_OK;
}
