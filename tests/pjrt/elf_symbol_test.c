// SPDX-License-Identifier: Apache-2.0
// A function that a library exports is found in its file, whatever the file.

#define _POSIX_C_SOURCE 200809L
#include "backend/pjrt/elf_symbol.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/pjrt_support.h"
#include "support/temp_folder.h"

static void export_of_a_plugin__is_found(void **state) {
  const char *path = plugin_path(*state);
  assert_int_equal(ist__elf_exports(path, "GetPjrtApi"), IST__ELF_YES);
  assert_int_equal(ist__elf_exports(path, "GetPjrtApii"), IST__ELF_NO);
  assert_int_equal(ist__elf_exports(path, "etPjrtApi"), IST__ELF_NO);
}

static void symbol_that_is_needed__is_no_export(void **state) {
  (void)state;
  assert_int_equal(ist__elf_exports(plugin_path("lying"), "pthread_create"),
                   IST__ELF_NO);
}

static void what_is_no_library__is_unknown(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  const char *text = temp_file_write(&folder, "text.so", "not ELF", 7);
  assert_int_equal(ist__elf_exports(text, "f"), IST__ELF_UNKNOWN);
  remove(text);
  assert_int_equal(ist__elf_exports(folder.path, "f"), IST__ELF_UNKNOWN);
  assert_int_equal(ist__elf_exports("/nowhere", "f"), IST__ELF_UNKNOWN);
  temp_folder_remove(&folder);
}

// Any byte of the headers may be anything: no answer is wrong, none may crash.
static void broken_file__is_read_safely(void **state) {
  (void)state;
  static unsigned char bytes[1 << 20];
  FILE *file = fopen(plugin_path("lying"), "rb");
  assert_non_null(file);
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  temp_folder folder;
  temp_folder_make(&folder);
  uint64_t random = 88172645463325252;
  uint64_t table = 0;
  memcpy(&table, bytes + 40, 8);
  for (int turn = 0; turn < 100; turn++) {
    unsigned char kept[16];
    size_t at[16];
    for (size_t i = 0; i < 16; i++) {
      // The header, and the section headers, which come last.
      at[i] = i < 4 || table >= size
                  ? (size_t)random_below(&random, 64)
                  : (size_t)table +
                        (size_t)random_below(&random, (int64_t)(size - table));
      kept[i] = bytes[at[i]];
      bytes[at[i]] = (unsigned char)next_random(&random);
    }
    const char *path = temp_file_write(&folder, "broken.so", bytes, size);
    int answer = (int)ist__elf_exports(path, "GetPjrtApi");
    assert_in_range(answer, IST__ELF_NO, IST__ELF_UNKNOWN);
    for (size_t i = 16; i > 0; i--) bytes[at[i - 1]] = kept[i - 1];
    remove(path);
  }
  temp_folder_remove(&folder);
}

// A file of a terabyte without blocks whose headers claim all there is.
static void claims_of_a_sparse_file__are_not_believed(void **state) {
  (void)state;
  unsigned char bytes[64 * 3] = "\177ELF";
  const uint16_t one = 1, size = 64, count = 2;
  const uint32_t dynsym = 11, link = 1;
  const uint64_t table = 64, offset = 4096, huge = UINT64_C(1) << 60;
  bytes[4] = 2;
  bytes[5] = *(const unsigned char *)&one == 1 ? 1 : 2;
  memcpy(bytes + 40, &table, 8);
  memcpy(bytes + 58, &size, 2);
  memcpy(bytes + 60, &count, 2);
  memcpy(bytes + 64 + 4, &dynsym, 4);
  for (int i = 1; i < 3; i++) {
    memcpy(bytes + 64 * i + 24, &offset, 8);
    memcpy(bytes + 64 * i + 32, &huge, 8);
    memcpy(bytes + 64 * i + 40, &link, 4);
  }
  temp_folder folder;
  temp_folder_make(&folder);
  const char *path = temp_file_write(&folder, "huge.so", bytes, sizeof bytes);
  assert_int_equal(truncate(path, (off_t)1 << 40), 0);
  assert_int_equal(ist__elf_exports(path, "GetPjrtApi"), IST__ELF_UNKNOWN);
  remove(path);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_int_equal(ist__elf_exports(path, "GetPjrtApi"), IST__ELF_UNKNOWN);
  remove(path);
  temp_folder_remove(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_PLUGIN(export_of_a_plugin__is_found),
      cmocka_unit_test(symbol_that_is_needed__is_no_export),
      cmocka_unit_test(what_is_no_library__is_unknown),
      cmocka_unit_test(claims_of_a_sparse_file__are_not_believed),
      cmocka_unit_test(broken_file__is_read_safely),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
