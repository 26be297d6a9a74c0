// SPDX-License-Identifier: Apache-2.0
// fuzz_file.h: bytes as a file: it is refused in one line, or every byte of
// every tensor found in it can be read, and no other.

#ifndef ISTHMUS_TESTS_FUZZ_FUZZ_FILE_H_
#define ISTHMUS_TESTS_FUZZ_FUZZ_FILE_H_

#include <isthmus/isthmus.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz_input.h"

static inline void fuzz_read_tensor(ist_file *file, const char *name) {
  ist_tensor *tensor = NULL;
  ist_error err;
  if (ist_file_tensor(file, name, &tensor, &err) != IST_OK) {
    require(tensor == NULL && strchr(err.message, '\n') == NULL);
    return;
  }
  DLManagedTensorVersioned *view = NULL;
  ist_options options = {.struct_size = sizeof options,
                         .copy = IST_COPY_ALWAYS};
  // The copy reads every element through the tensor's own strides.
  if (ist_tensor_export(tensor, &options, &view, NULL, &err) == IST_OK)
    view->deleter(view);
  ist_tensor_release(tensor);
}

static inline void fuzz_read_file(ist_context *context, const char *path) {
  ist_file *file = NULL;
  ist_error err;
  ist_code code = ist_file_open(context, path, NULL, &file, &err);
  if (code != IST_OK) {
    require(file == NULL && err.code == code);
    require(strchr(err.message, '\n') == NULL);
    return;
  }
  for (size_t i = 0; i < ist_file_count(file); i++)
    fuzz_read_tensor(file, ist_file_name(file, i));
  ist_file_release(file);
}

static inline void fuzz_file(const uint8_t *data, size_t size) {
  char path[64];
  ist_context *context = NULL;
  int fd = memfd_create("fuzz", 0);
  require(fd >= 0);
  require(write(fd, data, size) == (ssize_t)size);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  require(ist_context_create(NULL, &context, NULL) == IST_OK);
  fuzz_read_file(context, path);
  ist_context_release(context);
  close(fd);
}

#endif  // ISTHMUS_TESTS_FUZZ_FUZZ_FILE_H_
