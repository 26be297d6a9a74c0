// SPDX-License-Identifier: Apache-2.0
// program_support.c: see program_support.h.

#include "support/program_support.h"

#include <stdio.h>
#include <stdlib.h>

ist_program *program_compile(pjrt_bench *bench, size_t device, const char *text,
                             const ist_program_options *options) {
  ist_program *program = NULL;
  ist_program_options named = {.struct_size = sizeof named, .name = "test"};
  bench_ok(bench,
           ist_program_compile(bench_device(bench, device), text, strlen(text),
                               options != NULL ? options : &named, &program,
                               &bench->err));
  assert_non_null(program);
  return program;
}

ist_tensor *program_wrap(pjrt_bench *bench, void *data, DLDataType dtype,
                         int32_t ndim, int64_t *shape, int64_t *strides) {
  DLTensor view = {data, {kDLCPU, 0}, ndim, dtype, shape, strides, 0};
  ist_tensor *tensor = NULL;
  bench_ok(bench, ist_tensor_wrap(bench->context, &view, NULL, NULL, &tensor,
                                  &bench->err));
  return tensor;
}

ist_code program_run(pjrt_bench *bench, ist_program *program,
                     ist_tensor **inputs, size_t input_count,
                     ist_tensor **outputs, size_t output_count,
                     ist_receipt *receipts) {
  ist_run how = {.struct_size = sizeof how,
                 .inputs = inputs,
                 .input_count = input_count,
                 .outputs = outputs,
                 .output_count = output_count,
                 .receipts = receipts};
  return ist_program_run(program, &how, &bench->err);
}

void program_read(pjrt_bench *bench, ist_tensor *tensor, void *target) {
  DLTensor to = *ist_tensor_view(tensor);
  to.data = target;
  to.device = (DLDevice){kDLCPU, 0};
  to.strides = NULL;
  to.byte_offset = 0;
  bench_ok(bench, ist_tensor_copy_into(tensor, &to, NULL, NULL, &bench->err));
}

float *program_floats(void) {
  float *data = aligned_alloc(64, 64);
  assert_non_null(data);
  for (int i = 0; i < 16; i++) data[i] = (float)i;
  return data;
}

size_t program_data(const char *name, char *path, size_t path_size, char *code,
                    size_t code_size) {
  snprintf(path, path_size, "%s/tests/pjrt/data/%s", getenv("ISTHMUS_SOURCE"),
           name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t size = fread(code, 1, code_size, file);
  fclose(file);
  return size;
}
