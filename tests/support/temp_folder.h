// SPDX-License-Identifier: Apache-2.0
// temp_folder.h: a folder of a test's own, and files in it.

#ifndef ISTHMUS_TESTS_SUPPORT_TEMP_FOLDER_H_
#define ISTHMUS_TESTS_SUPPORT_TEMP_FOLDER_H_

#include <stddef.h>

typedef struct temp_folder {
  char path[256];
  char file[512];  // what temp_file wrote last
} temp_folder;

// Makes an empty folder below TMPDIR or /tmp.
void temp_folder_make(temp_folder *folder);
// Fails the test when something is left in it.
void temp_folder_remove(temp_folder *folder);
// folder/name, until the next call.
const char *temp_file(temp_folder *folder, const char *name);
// Writes a file, and returns its path.
const char *temp_file_write(temp_folder *folder, const char *name,
                            const void *bytes, size_t size);

#endif  // ISTHMUS_TESTS_SUPPORT_TEMP_FOLDER_H_
