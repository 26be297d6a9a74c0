// SPDX-License-Identifier: Apache-2.0
// safetensors_fuzz.c: any bytes as a .safetensors file whose length of the
// header, the first eight bytes, may be right: else few inputs get beyond it.

#define _GNU_SOURCE  // memfd_create

#include "fuzz/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 9) return 0;
  uint8_t *file = malloc(size);
  require(file != NULL);
  memcpy(file, data, size);
  if (data[7] == 1) {
    // No file has so long a header: the rest up to the last '}' is meant.
    size_t length = size;
    while (length > 9 && data[length - 1] != '}') length--;
    for (size_t i = 0; i < 8; i++) file[i] = (uint8_t)((length - 8) >> 8 * i);
  }
  fuzz_file(file, size);
  free(file);
  return 0;
}
