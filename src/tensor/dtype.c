// SPDX-License-Identifier: Apache-2.0
// dtype.c: element types, type codes and device codes by number and by name.

#include "tensor/dtype.h"

#include <string.h>

#include "base/text.h"

static const ist__dtype rows[] = {
#define IST_DTYPE(number, name, code, bits, npy, format, safetensors, pjrt, \
                  torch, torch_lanes, jax)                                  \
  [number] = {number,      name, code,  bits,        npy, format,           \
              safetensors, pjrt, torch, torch_lanes, jax},
#include "tensor/dtype.def"
#undef IST_DTYPE
};

enum {
  row_count = sizeof rows / sizeof rows[0]
};
// Each row has a bit in ist_capability.dtypes.
_Static_assert(row_count <= 64, "dtype.def has more than 64 rows");

// The row number of a code and a width plus one, 0 for none: one lookup, since
// every import makes one. A row of this table is 129 bytes.
enum {
  code_count = kDLFloat4_e2m1fn + 1,
  width_count = 128 + 1
};
static const uint8_t index_of[code_count][width_count] = {
#define IST_DTYPE(number, name, code, bits, npy, format, safetensors, pjrt, \
                  torch, torch_lanes, jax)                                  \
  [code][bits] = (number) + 1,
#include "tensor/dtype.def"
#undef IST_DTYPE
};

const ist__dtype *ist__dtype_find(DLDataType dtype) {
  if (dtype.code >= code_count || dtype.bits >= width_count) return NULL;
  uint8_t place = index_of[dtype.code][dtype.bits];
  return place == 0 ? NULL : &rows[place - 1];
}

const ist__dtype *ist__dtype_at(int32_t number) {
  return number >= 0 && number < row_count ? &rows[number] : NULL;
}

int32_t ist__dtype_count(void) {
  return row_count;
}

uint64_t ist__dtype_all(void) {
  return UINT64_MAX >> (64 - row_count);
}

int32_t ist_dtype_number(DLDataType dtype) {
  const ist__dtype *row = ist__dtype_find(dtype);
  return row == NULL || dtype.lanes != 1 ? -1 : row->number;
}

ist_code ist_dtype_name(DLDataType dtype, char *buffer, size_t size) {
  ist__text text = ist__text_make(buffer, buffer == NULL ? 0 : size);
  const ist__dtype *row = ist__dtype_find(dtype);
  if (row == NULL || dtype.lanes == 0) return IST_ERR_DTYPE;
  ist__text_add(&text, "%s", row->name);
  if (dtype.lanes > 1) ist__text_add(&text, "x%u", (unsigned)dtype.lanes);
  return IST_OK;
}

// The row whose name is the first length bytes of name.
static const ist__dtype *find_name(const char *name, size_t length) {
  for (size_t i = 0; i < row_count; i++) {
    if (strlen(rows[i].name) == length &&
        memcmp(rows[i].name, name, length) == 0) {
      return &rows[i];
    }
  }
  return NULL;
}

// Lanes of "x4"; 0 when text is not that, or not between 2 and 65535.
static uint16_t parse_lanes(const char *text) {
  if (text[0] != 'x' || text[1] < '1' || text[1] > '9') return 0;
  unsigned lanes = 0;
  for (text++; *text != '\0'; text++) {
    if (*text < '0' || *text > '9') return 0;
    lanes = lanes * 10 + (unsigned)(*text - '0');
    if (lanes > UINT16_MAX) return 0;
  }
  return (uint16_t)(lanes > 1 ? lanes : 0);
}

// "float32", "float32x4". The whole first: the "x64" of complex64 are no lanes.
static const ist__dtype *parse_name(const char *name, uint16_t *out_lanes) {
  *out_lanes = 1;
  const ist__dtype *row = find_name(name, strlen(name));
  if (row != NULL) return row;
  const char *tail = strrchr(name, 'x');
  uint16_t lanes = tail == NULL ? 0 : parse_lanes(tail);
  if (lanes == 0) return NULL;
  *out_lanes = lanes;
  return find_name(name, (size_t)(tail - name));
}

// torch's word for a dtype: "torch.float32", or the one name of its own,
// "float4_e2m1fn_x2".
static const ist__dtype *parse_torch(const char *name, uint16_t *out_lanes) {
  static const char prefix[] = "torch.";
  bool prefixed = strncmp(name, prefix, sizeof prefix - 1) == 0;
  if (prefixed) name += sizeof prefix - 1;
  for (size_t i = 0; i < row_count; i++) {
    if (rows[i].torch == NULL || strcmp(rows[i].torch, name) != 0) continue;
    *out_lanes = rows[i].torch_lanes;
    return &rows[i];
  }
  return NULL;
}

const ist__dtype *ist__dtype_of_type_string(const char *text) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  const char native = '>';
#else
  const char native = '<';
#endif
  if (text[0] == '\0') return NULL;
  for (size_t i = 0; i < row_count; i++) {
    const ist__dtype *row = &rows[i];
    if (row->npy == NULL || strcmp(row->npy, text + 1) != 0) continue;
    bool known = text[0] == native || text[0] == '=' ||
                 (text[0] == '|' && row->bits == 8);
    return known ? row : NULL;
  }
  return NULL;
}

ist_code ist_dtype_parse(const char *name, DLDataType *out, ist_error *err) {
  if (out != NULL) *out = (DLDataType){0, 0, 0};
  if (name == NULL || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a dtype could not be parsed: %s is NULL; needs a "
                         "name and a place for the dtype",
                         name == NULL ? "name" : "out");
  }
  uint16_t lanes = 1;
  const ist__dtype *row = parse_name(name, &lanes);
  if (row == NULL) row = parse_torch(name, &lanes);
  if (row == NULL) row = ist__dtype_of_type_string(name);
  if (row == NULL) {
    return ist_error_set(err, IST_ERR_DTYPE,
                         "a dtype could not be parsed: \"%s\" is no name of "
                         "one; needs a DLPack name such as float32, bfloat16 "
                         "or float8_e4m3fn",
                         name);
  }
  *out = (DLDataType){row->code, row->bits, lanes};
  return IST_OK;
}

const char *ist__type_code_name(uint8_t code) {
  static const char *const names[] = {
#define IST_TYPE_CODE(number, name) [number] = name,
#include "tensor/type_code.def"
#undef IST_TYPE_CODE
  };
  return code < sizeof names / sizeof names[0] ? names[code] : "unknown";
}

const char *ist_device_code_name(int32_t device_type) {
  switch (device_type) {
#define IST_DEVICE_CODE(number, name, is_host, is_handle) \
  case number:                                            \
    return name;
#include "tensor/device_code.def"
#undef IST_DEVICE_CODE
    default:
      return NULL;
  }
}

bool ist__device_code_is_host(int32_t device_type) {
  switch (device_type) {
#define IST_DEVICE_CODE(number, name, is_host, is_handle) \
  case number:                                            \
    return is_host;
#include "tensor/device_code.def"
#undef IST_DEVICE_CODE
    default:
      return false;
  }
}

bool ist__device_code_is_handle(int32_t device_type) {
  switch (device_type) {
#define IST_DEVICE_CODE(number, name, is_host, is_handle) \
  case number:                                            \
    return is_handle;
#include "tensor/device_code.def"
#undef IST_DEVICE_CODE
    default:
      return false;
  }
}
