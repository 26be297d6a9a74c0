// SPDX-License-Identifier: Apache-2.0
// copy_kernels.c: which tables of inner loops this machine can run.

#include "tensor/copy_kernels.h"

#include <stddef.h>

#include "base/cpu.h"

const ist__copy_kernels *ist__copy_kernels_at(int32_t index) {
  const ist__copy_kernels *found[3];
  int32_t count = 0;
#if defined(__x86_64__)
  if (ist__cpu_has_avx512()) found[count++] = &ist__copy_avx512;
  if (ist__cpu_has_avx2()) found[count++] = &ist__copy_avx2;
#endif
#if defined(__aarch64__)
  found[count++] = &ist__copy_neon;
#endif
  found[count++] = &ist__copy_baseline;
  return index >= 0 && index < count ? found[index] : NULL;
}

const ist__copy_kernels *ist__copy_kernels_best(void) {
  return ist__copy_kernels_at(0);
}
