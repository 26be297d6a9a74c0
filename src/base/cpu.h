// SPDX-License-Identifier: Apache-2.0
// cpu.h: what the processor can do, asked at run time.

#ifndef ISTHMUS_BASE_CPU_H_
#define ISTHMUS_BASE_CPU_H_

#include <stdbool.h>

#if defined(__x86_64__)
static inline bool ist__cpu_has_avx2(void) {
  return __builtin_cpu_supports("avx2") != 0;
}

// AVX-512 for 32-bit and 16-bit items; also asks whether the system saves its
// registers.
static inline bool ist__cpu_has_avx512(void) {
  return ist__cpu_has_avx2() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0;
}

// F16C: float16 to float32 and back.
static inline bool ist__cpu_has_avx2_f16c(void) {
  return ist__cpu_has_avx2() && __builtin_cpu_supports("f16c") != 0;
}
#endif

#endif  // ISTHMUS_BASE_CPU_H_
