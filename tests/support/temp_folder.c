// SPDX-License-Identifier: Apache-2.0
// temp_folder.c: mkdtemp, and files in it.

#define _XOPEN_SOURCE 700

#include "support/temp_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/testing.h"

void temp_folder_make(temp_folder *folder) {
  const char *root = getenv("TMPDIR");
  snprintf(folder->path, sizeof folder->path, "%s/isthmus-test-XXXXXX",
           root == NULL ? "/tmp" : root);
  assert_non_null(mkdtemp(folder->path));
}

void temp_folder_remove(temp_folder *folder) {
  assert_int_equal(rmdir(folder->path), 0);
}

const char *temp_file(temp_folder *folder, const char *name) {
  snprintf(folder->file, sizeof folder->file, "%s/%s", folder->path, name);
  return folder->file;
}

const char *temp_file_write(temp_folder *folder, const char *name,
                            const void *bytes, size_t size) {
  FILE *file = fopen(temp_file(folder, name), "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
  return folder->file;
}
