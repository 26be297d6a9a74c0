// SPDX-License-Identifier: Apache-2.0
// command_json.c: JSON to a file, one value after the other.

#define _POSIX_C_SOURCE 200809L  // strnlen
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "command.h"

// Writes a string in pieces, cut between UTF-8 sequences, so that a string of
// any length needs a buffer of fixed size only.
static void write_string(FILE *file, const char *value) {
  enum {
    PIECE = 512
  };
  if (value == NULL) {
    fputs("null", file);
    return;
  }
  fputc('"', file);
  while (*value != '\0') {
    size_t length = strnlen(value, PIECE);
    if (length == PIECE) {
      size_t cut = length;
      while (cut > length - 4 && ((unsigned char)value[cut] & 0xC0) == 0x80) {
        cut--;
      }
      length = cut;
    }
    char piece[PIECE + 1];
    char quoted[6 * PIECE + 3];
    memcpy(piece, value, length);
    piece[length] = '\0';
    ist__text text = ist__text_make(quoted, sizeof quoted);
    ist__text_add_json(&text, piece);
    fwrite(quoted + 1, 1, text.length - 2, file);
    value += length;
  }
  fputc('"', file);
}

static void begin(ist__json *json, const char *key) {
  if (json->comma) fputs(", ", json->file);
  json->comma = true;
  if (key == NULL) return;
  write_string(json->file, key);
  fputs(": ", json->file);
}

void ist__json_open(ist__json *json, const char *key, char bracket) {
  begin(json, key);
  fputc(bracket, json->file);
  json->comma = false;
}

void ist__json_close(ist__json *json, char bracket) {
  fputc(bracket, json->file);
  json->comma = true;
}

void ist__json_string(ist__json *json, const char *key, const char *value) {
  begin(json, key);
  write_string(json->file, value);
}

void ist__json_int(ist__json *json, const char *key, int64_t value) {
  begin(json, key);
  fprintf(json->file, "%" PRId64, value);
}

void ist__json_uint(ist__json *json, const char *key, uint64_t value) {
  begin(json, key);
  fprintf(json->file, "%" PRIu64, value);
}

void ist__json_real(ist__json *json, const char *key, double value) {
  begin(json, key);
  if (isfinite(value)) {
    fprintf(json->file, "%.9f", value);
  } else {
    fputs("null", json->file);
  }
}

void ist__json_bool(ist__json *json, const char *key, bool value) {
  begin(json, key);
  fputs(value ? "true" : "false", json->file);
}

void ist__json_tensor(ist__json *json, const ist_tensor *tensor) {
  const DLTensor *view = ist_tensor_view(tensor);
  char dtype[64] = "";
  (void)ist_dtype_name(view->dtype, dtype, sizeof dtype);
  ist__json_string(json, "dtype", dtype);
  ist__json_open(json, "shape", '[');
  for (int32_t i = 0; i < view->ndim; i++) {
    ist__json_int(json, NULL, view->shape[i]);
  }
  ist__json_close(json, ']');
  ist__json_open(json, "strides", '[');
  for (int32_t i = 0; i < view->ndim; i++) {
    ist__json_int(json, NULL, view->strides[i]);
  }
  ist__json_close(json, ']');
  ist__json_uint(json, "nbytes", ist__tensor_nbytes(tensor));
}

void ist__json_receipt(ist__json *json, const char *key,
                       const ist_receipt *receipt) {
  char text[8192];
  size_t length = ist_receipt_json(receipt, text, sizeof text);
  begin(json, key);
  // Eight reasons and two places of fixed size always fit.
  fputs(length < sizeof text ? text : "null", json->file);
}

void ist__json_error(ist__json *json, const char *key, const ist_error *err) {
  ist__json_open(json, key, '{');
  ist__json_int(json, "code", err->code);
  ist__json_string(json, "name", ist_code_name(err->code));
  ist__json_string(json, "message", err->message);
  ist__json_close(json, '}');
}

void ist__json_end(ist__json *json) {
  fputc('\n', json->file);
  json->comma = false;
}
