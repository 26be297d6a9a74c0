// SPDX-License-Identifier: Apache-2.0
// map_test.c: what can be mapped and what is refused.

#define _XOPEN_SOURCE 700

#include "io/map.h"

#include <errno.h>
#include <sys/stat.h>

#include "io/io_fixture.h"
#include "io/label.h"

static void map__shows_the_bytes_of_a_file(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  const char *path = temp_file(&folder, "a");
  write_bytes(path, "bytes", 5);
  ist__map map;
  assert_int_equal(ist__map_open(path, &map, NULL), IST_OK);
  assert_int_equal(map.size, 5);
  assert_memory_equal(map.bytes, "bytes", 5);
  assert_int_equal((uintptr_t)map.bytes % 4096, 0);
  // A file replaced meanwhile is another file: the map stays.
  unlink(path);
  write_bytes(path, "x", 1);
  assert_memory_equal(map.bytes, "bytes", 5);
  ist__map_close(&map);
  assert_null(map.bytes);
  ist__map_close(&map);
  unlink(path);
  temp_folder_remove(&folder);
}

static void assert_not_mapped(const char *path, ist_code code,
                              const char *words) {
  ist__map map;
  ist_error err = {0};
  assert_int_equal(ist__map_open(path, &map, &err), code);
  assert_int_equal(err.code, code);
  assert_said(&err, words);
  assert_null(map.bytes);
}

static void map__refuses_what_is_no_file(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  assert_not_mapped(temp_file(&folder, "none.npy"), IST_ERR_FILE_OPEN,
                    "none.npy: No such file");
  assert_not_mapped(folder.path, IST_ERR_FILE_OPEN,
                    "a folder; needs a file that can be read");
  const char *pipe = temp_file(&folder, "pipe");
  assert_int_equal(mkfifo(pipe, 0600), 0);
  assert_not_mapped(pipe, IST_ERR_FILE_OPEN,
                    "a pipe; needs a file that can be read");
  unlink(pipe);
  assert_not_mapped("/dev/null", IST_ERR_FILE_OPEN, "a device");
  temp_folder_remove(&folder);
}

static void map__tells_an_empty_file(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  const char *path = temp_file(&folder, "a.npy");
  write_bytes(path, "", 0);
  assert_not_mapped(path, IST_ERR_FILE_TRUNCATED, "ends after 0 bytes");
  unlink(path);
  temp_folder_remove(&folder);
}

static void label__keeps_the_end_of_a_long_name(void **state) {
  (void)state;
  char name[1001];
  memset(name, 'a', 1000);
  memcpy(name + 996, ".npy", 5);
  ist__label label = ist__label_make(name);
  assert_int_equal(strlen(label.text), IST__LABEL_SIZE - 1);
  assert_memory_equal(label.text, "...a", 4);
  assert_string_equal(label.text + IST__LABEL_SIZE - 5, ".npy");
  label = ist__label_make("a\nb\x1b[0m\x7f");
  assert_string_equal(label.text, "a?b?[0m?");
  // No half of a letter is left at the cut.
  memset(name, '\xA9', 1000);
  for (int i = 0; i < 1000; i += 2) name[i] = '\xC3';
  name[1000] = '\0';
  label = ist__label_make(name);
  assert_int_equal((unsigned char)label.text[3], 0xC3);
  label = ist__label_make(name + 1);
  assert_int_equal((unsigned char)label.text[3], 0xC3);
  assert_string_equal(ist__label_make(NULL).text, "(no name)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(map__shows_the_bytes_of_a_file),
      cmocka_unit_test(map__refuses_what_is_no_file),
      cmocka_unit_test(map__tells_an_empty_file),
      cmocka_unit_test(label__keeps_the_end_of_a_long_name)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
