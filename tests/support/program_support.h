// SPDX-License-Identifier: Apache-2.0
// program_support.h: what the tests of programs on plugins share: compiling,
// running and reading in one line each.

#ifndef TESTS_SUPPORT_PROGRAM_SUPPORT_H
#define TESTS_SUPPORT_PROGRAM_SUPPORT_H

#include "support/pjrt_support.h"

static const DLDataType f32 = {kDLFloat, 32, 1};
static const DLDataType i32 = {kDLInt, 32, 1};

// Compiles a program or fails the test; options NULL: named "test".
ist_program *program_compile(pjrt_bench *bench, size_t device, const char *text,
                             const ist_program_options *options);

// A host tensor that views data.
ist_tensor *program_wrap(pjrt_bench *bench, void *data, DLDataType dtype,
                         int32_t ndim, int64_t *shape, int64_t *strides);

ist_code program_run(pjrt_bench *bench, ist_program *program,
                     ist_tensor **inputs, size_t input_count,
                     ist_tensor **outputs, size_t output_count,
                     ist_receipt *receipts);

// Copies a tensor's values out, dense.
void program_read(pjrt_bench *bench, ist_tensor *tensor, void *target);

// 16 floats 0, 1, 2, ... at a multiple of 64, for free().
float *program_floats(void);

// Reads a file of tests/pjrt/data; returns its size.
size_t program_data(const char *name, char *path, size_t path_size, char *code,
                    size_t code_size);

// A row for each real plugin.
#define ON_REAL_PLUGINS(function)                      \
  {#function " (P1)", function, NULL, NULL, "P1"},     \
      {#function " (P2)", function, NULL, NULL, "P2"}, \
      {#function " (P3)", function, NULL, NULL, "P3"}

#endif
