// SPDX-License-Identifier: Apache-2.0
// safetensors_header.c: the JSON of a .safetensors header becomes entries.
//
// The text is first checked against the grammar (json_check.c), so that the
// tokens of jsmn, which forgives a missing comma or colon, can be trusted.

#include "io/safetensors_header.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "io/json_check.h"
#include "io/label.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

// Parent links make its time linear.
#define JSMN_STATIC
#define JSMN_STRICT
#define JSMN_PARENT_LINKS
#include <jsmn.h>

// What is being read. i-th numbers below are those of tokens.
typedef struct reading {
  ist__label path;
  const char *text;
  jsmntok_t *tokens;
  size_t count;
  ist__entry *entries;
  size_t entry_count;
  int64_t *shapes;  // where the next shape goes
  char *names;      // where the next name goes
  bool metadata;    // was seen
  ist_error *err;
} reading;

static ist_code malformed(const reading *r, const char *name,
                          const char *wrong) {
  if (name == NULL) {
    return ist_error_set(r->err, IST_ERR_FILE_FORMAT,
                         "cannot read %s: its header %s; needs a header of "
                         ".safetensors",
                         r->path.text, wrong);
  }
  return ist_error_set(
      r->err, IST_ERR_FILE_FORMAT,
      "cannot read %s: its header has tensor '%s', which %s; needs dtype, "
      "shape and data_offsets as .safetensors defines them",
      r->path.text, ist__label_make(name).text, wrong);
}

static size_t token_size(const reading *r, size_t i) {
  return (size_t)(r->tokens[i].end - r->tokens[i].start);
}

// True for a string that says text, escapes resolved.
static bool token_is(const reading *r, size_t i, const char *text) {
  char plain[128];
  size_t size = token_size(r, i);
  if (r->tokens[i].type != JSMN_STRING || size > sizeof plain) return false;
  size = ist__json_decode(r->text + r->tokens[i].start, size, plain);
  return size == strlen(text) && memcmp(plain, text, size) == 0;
}

// The token after value i and all that it holds.
static size_t after(const reading *r, size_t i) {
  int end = r->tokens[i].end;
  for (i++; i < r->count && r->tokens[i].start < end;) i++;
  return i;
}

// A whole number that is written as one: no sign, point or exponent. Exact.
static bool whole(const reading *r, size_t i, uint64_t *out) {
  if (r->tokens[i].type != JSMN_PRIMITIVE) return false;
  uint64_t value = 0;
  for (int k = r->tokens[i].start; k < r->tokens[i].end; k++) {
    char c = r->text[k];
    if (c < '0' || c > '9' || !ist__mul_u64(value, 10, &value) ||
        !ist__add_u64(value, (uint64_t)(c - '0'), &value)) {
      return false;
    }
  }
  *out = value;
  return true;
}

static ist_code read_metadata(reading *r, size_t i) {
  static const char wrong[] = "has __metadata__ that is not text for text";
  if (r->metadata) return malformed(r, NULL, "has __metadata__ twice");
  r->metadata = true;
  if (r->tokens[i].type != JSMN_OBJECT) return malformed(r, NULL, wrong);
  size_t end = after(r, i);
  for (i++; i < end; i += 2) {
    if (r->tokens[i + 1].type != JSMN_STRING) {
      return malformed(r, NULL, wrong);
    }
  }
  return IST_OK;
}

static ist_code read_dtype(reading *r, size_t i, ist__entry *entry) {
  if (r->tokens[i].type != JSMN_STRING) {
    return malformed(r, entry->name, "has a dtype that is not a string");
  }
  for (int32_t k = 0; k < ist__dtype_count(); k++) {
    const ist__dtype *row = ist__dtype_at(k);
    if (row->safetensors == NULL || !token_is(r, i, row->safetensors)) {
      continue;
    }
    entry->dtype = (DLDataType){row->code, row->bits, 1};
    return IST_OK;
  }
  size_t size = token_size(r, i);
  return ist_error_set(
      r->err, IST_ERR_FILE_DTYPE,
      "cannot read %s: its items are of dtype \"%.*s\" (tensor '%s'); needs a "
      "dtype of .safetensors that isthmus knows",
      r->path.text, (int)(size < 32 ? size : 32), r->text + r->tokens[i].start,
      ist__label_make(entry->name).text);
}

static ist_code read_shape(reading *r, size_t i, ist__entry *entry) {
  static const char wrong[] = "has a shape that is not a list of whole numbers";
  if (r->tokens[i].type != JSMN_ARRAY) return malformed(r, entry->name, wrong);
  int ndim = r->tokens[i].size;
  if (ndim > IST_MAX_NDIM) {
    return malformed(r, entry->name, "has more than 64 dimensions");
  }
  int64_t *shape = r->shapes;
  for (int k = 0; k < ndim; k++) {
    uint64_t extent;
    if (!whole(r, i + 1 + (size_t)k, &extent)) {
      return malformed(r, entry->name, wrong);
    }
    if (extent > INT64_MAX) {
      return malformed(r, entry->name, "has an extent above 2**63 - 1");
    }
    shape[k] = (int64_t)extent;
  }
  r->shapes += ndim;
  entry->shape = shape;
  entry->ndim = ndim;
  return IST_OK;
}

static ist_code read_offsets(reading *r, size_t i, ist__entry *entry) {
  uint64_t begin, end;
  if (r->tokens[i].type != JSMN_ARRAY || r->tokens[i].size != 2 ||
      !whole(r, i + 1, &begin) || !whole(r, i + 2, &end)) {
    return malformed(r, entry->name,
                     "has data_offsets that are not two whole numbers");
  }
  if (end < begin) {
    return malformed(r, entry->name,
                     "has data_offsets that end before they "
                     "begin");
  }
  entry->offset = begin;
  entry->nbytes = end - begin;
  return IST_OK;
}

// dtype and shape must give the size that the offsets give.
static ist_code check_size(const reading *r, const ist__entry *entry) {
  ist__view view;
  uint64_t bits;
  if (ist__view_dense(entry->dtype, entry->ndim, entry->shape, false, &view,
                      NULL) != IST_OK) {
    return malformed(r, entry->name, "has a shape whose size overflows");
  }
  if (!ist__mul_u64(view.count, entry->dtype.bits, &bits) || bits % 8 != 0) {
    return malformed(r, entry->name, "does not fill whole bytes");
  }
  if (bits / 8 != entry->nbytes) {
    return ist_error_set(r->err, IST_ERR_FILE_FORMAT,
                         "cannot read %s: its header has tensor '%s' with "
                         "data_offsets of %" PRIu64 " bytes; needs %" PRIu64
                         " for its dtype and shape",
                         r->path.text, ist__label_make(entry->name).text,
                         entry->nbytes, bits / 8);
  }
  return IST_OK;
}

static ist_code read_fields(reading *r, size_t i, ist__entry *entry) {
  static const struct {
    const char *name;
    ist_code (*read)(reading *, size_t, ist__entry *);
  } fields[] = {{"dtype", read_dtype},
                {"shape", read_shape},
                {"data_offsets", read_offsets}};
  unsigned seen = 0;
  size_t end = after(r, i);
  // Other fields are passed over, as the reference implementation does.
  for (i++; i < end; i = after(r, i + 1)) {
    for (unsigned k = 0; k < 3; k++) {
      if (!token_is(r, i, fields[k].name)) continue;
      if ((seen & (1U << k)) != 0) {
        return malformed(r, entry->name, "has a field twice");
      }
      seen |= 1U << k;
      ist_code code = fields[k].read(r, i + 1, entry);
      if (code != IST_OK) return code;
    }
  }
  if (seen != 7) {
    return malformed(r, entry->name,
                     "lacks one of dtype, shape and data_offsets");
  }
  return check_size(r, entry);
}

static ist_code read_pair(reading *r, size_t i) {
  size_t size = ist__json_decode(r->text + r->tokens[i].start, token_size(r, i),
                                 r->names);
  r->names[size] = '\0';
  if (strlen(r->names) != size) {
    return malformed(r, r->names, "has a NUL in its name");
  }
  if (strcmp(r->names, "__metadata__") == 0) return read_metadata(r, i + 1);
  ist__entry *entry = &r->entries[r->entry_count++];
  entry->name = r->names;
  r->names += size + 1;
  if (r->tokens[i + 1].type != JSMN_OBJECT) {
    return malformed(r, entry->name, "is not described by an object");
  }
  return read_fields(r, i + 1, entry);
}

// One block for entries, their index, shapes and names: each tensor is a pair
// of the root, each extent a token, each name a string of the text.
static ist_code make_room(const ist__env *env, reading *r, size_t text_size,
                          ist__safetensors *out) {
  size_t pairs = (size_t)r->tokens[0].size;
  size_t extents = r->count;
  if (extents / IST_MAX_NDIM > pairs) extents = pairs * IST_MAX_NDIM;
  size_t size = pairs * (sizeof *out->entries + sizeof *out->by_name) +
                extents * sizeof *r->shapes + text_size + pairs + 1;
  char *block = ist__alloc_zero(env, size);
  if (block == NULL) {
    return ist__error_memory(r->err, "the header of a file", size);
  }
  out->block = block;
  out->entries = r->entries = (void *)block;
  block += pairs * sizeof *out->entries;
  out->by_name = (void *)block;
  block += pairs * sizeof *out->by_name;
  r->shapes = (void *)block;
  r->names = block + extents * sizeof *r->shapes;
  return IST_OK;
}

static ist_code tokenise(const ist__env *env, reading *r, size_t size) {
  size_t at;
  const char *wrong = ist__json_check(r->text, size, &r->count, &at);
  if (wrong != NULL) {
    return ist_error_set(r->err, IST_ERR_FILE_FORMAT,
                         "cannot read %s: its header %s, at byte %zu; needs "
                         "JSON (RFC 8259)",
                         r->path.text, wrong, at + 8);
  }
  size_t room = r->count * sizeof *r->tokens;
  r->tokens = ist__alloc(env, room, _Alignof(jsmntok_t));
  if (r->tokens == NULL) {
    return ist__error_memory(r->err, "the tokens of a header", room);
  }
  jsmn_parser parser;
  jsmn_init(&parser);
  int found = jsmn_parse(&parser, r->text, size, r->tokens, (unsigned)r->count);
  if (found < 0 || (size_t)found != r->count) {
    return malformed(r, NULL, "is not understood");  // unreachable: checked
  }
  if (r->tokens[0].type != JSMN_OBJECT) {
    return malformed(r, NULL, "is not a JSON object");
  }
  return IST_OK;
}

ist_code ist__safetensors_header_read(const ist__env *env, const char *text,
                                      size_t size, const char *path,
                                      ist__safetensors *out, ist_error *err) {
  memset(out, 0, sizeof *out);
  reading r = {.path = ist__label_make(path), .text = text, .err = err};
  ist_code code = tokenise(env, &r, size);
  if (code == IST_OK) code = make_room(env, &r, size, out);
  for (size_t i = 1; code == IST_OK && i < r.count; i = after(&r, i + 1)) {
    code = read_pair(&r, i);
  }
  ist__free(env, r.tokens);
  if (code == IST_OK) {
    out->count = r.entry_count;
  } else {
    ist__safetensors_free(env, out);
  }
  return code;
}
