// SPDX-License-Identifier: Apache-2.0
// hlo_fuzz.c: any bytes as a plugin's optimized program are refused, or every
// shape that is told can be.

#include <stdlib.h>

#include "backend/pjrt/hlo_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise) {
  if (!promise) abort();
}

static bool check(void *self, bool is_result, const ist__hlo_shape *shape) {
  (void)self;
  (void)is_result;
  require(shape->ndim >= 0 && shape->ndim <= IST_MAX_NDIM);
  for (int32_t i = 0; i < shape->ndim; i++) {
    require(shape->dims[i] >= 0);
    if (!shape->has_order) continue;
    int64_t d = shape->minor_to_major[i];
    require(d >= 0 && d < shape->ndim);
    for (int32_t k = 0; k < i; k++) require(shape->minor_to_major[k] != d);
  }
  require(ist__hlo_pjrt_type(shape->type) >= 0);
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ist__hlo_read(data, size, check, NULL);
  return 0;
}
