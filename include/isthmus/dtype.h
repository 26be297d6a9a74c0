// SPDX-License-Identifier: Apache-2.0
// dtype.h: element types and device codes by name and by number, and how
// elements below 8 bits lie. Included by isthmus.h, which says what the words
// below mean.

#ifndef ISTHMUS_DTYPE_H_
#define ISTHMUS_DTYPE_H_

#include <isthmus/dlpack.h>
#include <isthmus/error.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The name of a dtype ("float32", "bfloat16", "float4_e2m1fn"; with lanes
// above 1 "float32x4"), written to buffer and cut to size, its NUL included.
// Borrows buffer. Fails: DTYPE for a dtype without a name.
// Threads: any. Since: 0.1.
IST_API ist_code ist_dtype_name(DLDataType dtype, char *buffer, size_t size);

// The dtype of a name: one that ist_dtype_name writes; torch's, as it prints
// them ("torch.float32") and its own "float4_e2m1fn_x2", which has 2 lanes; or
// NumPy's type string in this machine's byte order ("<f4", "|b1", "=i8"). No
// other short form: "f8" is a float64 here and a float8 there. Borrows name.
// Fails: ARGUMENT, DTYPE. Threads: any. Since: 0.1.
IST_API ist_code ist_dtype_parse(const char *name, DLDataType *out,
                                 ist_error *err);

// The dtype's number in src/tensor/dtype.def, its bit in
// ist_capability.dtypes; -1 for a dtype without a name.
// Borrows nothing. Fails: never. Threads: any. Since: 0.1.
IST_API int32_t ist_dtype_number(DLDataType dtype);

// The name of a DLPack device code ("cpu", "cuda_host", ...), or NULL.
// Lends a static string. Fails: never. Threads: any. Since: 0.1.
IST_API const char *ist_device_code_name(int32_t device_type);

// How elements below 8 bits lie. Other elements lie one way only.
typedef enum ist_packing {
  IST_PACKING_AS_IS = 0,   // as they lie already
  IST_PACKING_PACKED = 1,  // without gaps, the first in the lowest bits
  IST_PACKING_PADDED = 2,  // one to a byte, in its low bits
  IST_PACKING_PAIRS = 3    // exports: packed, and float4_e2m1fn counted by
                           // pairs as torch does (2 lanes, half the last
                           // extent)
} ist_packing;

// Whether packed elements can be counted by pairs.
typedef enum ist_pairs {
  IST_PAIRS_ODD = 0,    // never: the last extent is odd, or there is none
  IST_PAIRS_APART = 1,  // after a copy: those of a pair are not neighbours
  IST_PAIRS_WHOLE = 2   // as they lie
} ist_pairs;

#ifdef __cplusplus
}
#endif

#endif  // ISTHMUS_DTYPE_H_
