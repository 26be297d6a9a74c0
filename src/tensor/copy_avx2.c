// SPDX-License-Identifier: Apache-2.0
// copy_avx2.c: the table of the inner loops with AVX2; they are in the files
// named copy_avx2_*.c.

#if defined(__x86_64__)

#include "tensor/copy_avx2.h"

const ist__copy_kernels ist__copy_avx2 = {
    .name = "avx2",
    .run = {ist__avx2_run_1, ist__avx2_run_2, ist__avx2_run_4, ist__avx2_run_8,
            ist__avx2_run_16},
    .transpose = {ist__avx2_transpose_1, ist__avx2_transpose_2,
                  ist__avx2_transpose_4, ist__avx2_transpose_8,
                  ist__avx2_transpose_16},
    .swap = {ist__avx2_swap_2, ist__avx2_swap_4, ist__avx2_swap_8},
    .unpack = ist__avx2_unpack,
    .pack = ist__avx2_pack,
};

#else

// An empty file is not C.
typedef int ist__copy_avx2_is_for_x86_64;

#endif
