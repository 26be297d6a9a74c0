// SPDX-License-Identifier: Apache-2.0
// file_kind.c: .npy begins with its magic bytes; .safetensors with a length of
// 8 bytes, which is not large, and then {.

#include "io/file_kind.h"

#include <stdint.h>
#include <string.h>

#include "io/npy.h"
#include "io/safetensors.h"

ist__file_kind ist__file_kind_of_bytes(const void *bytes, size_t size) {
  const unsigned char *first = bytes;
  if (size >= IST__NPY_MAGIC_SIZE &&
      memcmp(first, IST__NPY_MAGIC, IST__NPY_MAGIC_SIZE) == 0) {
    return IST__FILE_NPY;
  }
  if (size < IST__FILE_KIND_BYTES || first[8] != '{') return IST__FILE_UNKNOWN;
  uint64_t length = 0;
  for (int i = 8; i-- > 0;) length = length << 8 | first[i];
  return length <= IST__SAFETENSORS_MAX_HEADER ? IST__FILE_SAFETENSORS
                                               : IST__FILE_UNKNOWN;
}

static int ends_with(const char *name, const char *ending) {
  size_t length = strlen(name), size = strlen(ending);
  return length > size && strcmp(name + length - size, ending) == 0;
}

ist__file_kind ist__file_kind_of_name(const char *name) {
  if (ends_with(name, ".npy")) return IST__FILE_NPY;
  if (ends_with(name, ".safetensors")) return IST__FILE_SAFETENSORS;
  return IST__FILE_UNKNOWN;
}
