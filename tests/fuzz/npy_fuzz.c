// SPDX-License-Identifier: Apache-2.0
// npy_fuzz.c: any bytes after the magic of a .npy file.

#define _GNU_SOURCE  // memfd_create

#include "fuzz/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char magic[] = "\x93NUMPY";
  size_t head = sizeof magic - 1;
  if (size < head) return 0;
  uint8_t *file = malloc(size);
  require(file != NULL);
  memcpy(file, magic, head);
  memcpy(file + head, data + head, size - head);
  fuzz_file(file, size);
  free(file);
  return 0;
}
