// SPDX-License-Identifier: Apache-2.0
// dtype.h: the element types, from dtype.def, the type codes, from
// type_code.def, and the device codes, from device_code.def. The lookups by
// name are public, in isthmus.h.

#ifndef ISTHMUS_TENSOR_DTYPE_H_
#define ISTHMUS_TENSOR_DTYPE_H_

#include "base/error.h"

// One row of dtype.def; number is its place there and never changes.
typedef struct ist__dtype {
  int32_t number;
  const char *name;  // DLPack's: "float8_e4m3fn"
  uint8_t code;
  uint8_t bits;
  const char *npy;     // numpy's type string without byte order: "f4", or NULL
  const char *format;  // the struct module's: "f", or NULL
  const char *safetensors;  // "F32", or NULL
  int32_t pjrt;             // PJRT_Buffer_Type, or 0
  const char *torch;        // attribute of torch, or NULL
  uint16_t torch_lanes;     // elements that torch counts as one, or 0
  const char *jax;          // dtype of jax's arrays, or NULL
} ist__dtype;

// The row of a dtype (lanes are not looked at), or NULL.
const ist__dtype *ist__dtype_find(DLDataType dtype);
// The row of a number, or NULL.
const ist__dtype *ist__dtype_at(int32_t number);
// How many rows there are.
int32_t ist__dtype_count(void);
// The set of all of them, as in ist_capability.dtypes.
uint64_t ist__dtype_all(void);

// The dtype of a row, one lane.
static inline DLDataType ist__dtype_of(const ist__dtype *row) {
  return (DLDataType){row->code, row->bits, 1};
}

// The bytes that an element's address must be a multiple of: the size of the
// number, for complex of one of its two parts (C11 6.2.5p13 gives complex the
// alignment of an array of its parts; NumPy and torch make such views), 1 for
// sub-byte elements.
static inline uint64_t ist__dtype_alignment(const ist__dtype *row) {
  unsigned parts = row->code == kDLComplex ? 2 : 1;
  return row->bits < 8 ? 1 : row->bits / (8 * parts);
}

// The row of NumPy's type string in this machine's byte order ("<f4", "|u1"),
// or NULL.
const ist__dtype *ist__dtype_of_type_string(const char *text);

// DLPack's word for a type code ("opaque handle"), or "unknown".
const char *ist__type_code_name(uint8_t code);

// True for device codes whose addresses this process can read and write:
// cpu, cuda_host, rocm_host, cuda_managed, tpu_host.
bool ist__device_code_is_host(int32_t device_type);
// True for device codes whose data is a handle: byte_offset is never added.
bool ist__device_code_is_handle(int32_t device_type);

#endif  // ISTHMUS_TENSOR_DTYPE_H_
