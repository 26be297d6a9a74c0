// SPDX-License-Identifier: Apache-2.0
// convert_kernels.c: which tables of conversion loops this machine can run.

#include "tensor/convert_kernels.h"

#include "base/cpu.h"

const ist__convert_kernels *ist__convert_kernels_at(int32_t index) {
  const ist__convert_kernels *found[2];
  int32_t count = 0;
#if defined(__x86_64__)
  if (ist__cpu_has_avx2_f16c()) found[count++] = &ist__convert_avx2;
#endif
  found[count++] = &ist__convert_baseline;
  return index >= 0 && index < count ? found[index] : NULL;
}

const ist__convert_kernels *ist__convert_kernels_best(void) {
  return ist__convert_kernels_at(0);
}
