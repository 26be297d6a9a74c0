// SPDX-License-Identifier: Apache-2.0
// place_test.c: names of places, taken apart.

#define _XOPEN_SOURCE 700

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/testing.h"

static ist_place parse(const char *text) {
  ist_place place = {.struct_size = sizeof place};
  ist_error err = {0};
  assert_ok(ist_place_parse(text, &place, &err), err);
  assert_int_equal(place.struct_size, sizeof place);
  return place;
}

static void refuse(const char *text, ist_code code, const char *words) {
  ist_place place = {.struct_size = sizeof place,
                     .kind = IST_PLACE_STREAM,
                     .device = 7,
                     .path = "left"};
  ist_error err = {0};
  assert_refused(ist_place_parse(text, &place, &err), code, err, words);
  assert_int_equal(place.struct_size, sizeof place);
  assert_int_equal(place.kind, IST_PLACE_HOST);
  assert_int_equal(place.device, 0);
  assert_string_equal(place.path, "");
}

// A new empty folder that is also the working directory.
static char *enter_folder(void) {
  char path[] = "/tmp/isthmus-test-XXXXXX";
  assert_non_null(mkdtemp(path));
  assert_int_equal(chdir(path), 0);
  return strdup(path);
}

static void leave_folder(char *folder) {
  assert_int_equal(chdir("/"), 0);
  assert_int_equal(rmdir(folder), 0);
  free(folder);
}

static void touch(const char *path, const char *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

static void place__reads_words(void **state) {
  (void)state;
  assert_int_equal(parse("host").kind, IST_PLACE_HOST);
  assert_int_equal(parse("-").kind, IST_PLACE_STREAM);
  assert_int_equal(parse("template").kind, IST_PLACE_TEMPLATE);
  assert_int_equal(parse("template").device, 0);
  assert_int_equal(parse("template#12").device, 12);
  assert_int_equal(parse("template#18446744073709551615").device, SIZE_MAX);
}

static void place__reads_plugins(void **state) {
  (void)state;
  ist_place place = parse("pjrt:/no/where/P.so");
  assert_int_equal(place.kind, IST_PLACE_PJRT);
  assert_string_equal(place.path, "/no/where/P.so");
  assert_int_equal(place.device, 0);
  assert_string_equal(place.memory, "");
  place = parse("pjrt:P.so#3");
  assert_string_equal(place.path, "P.so");
  assert_int_equal(place.device, 3);
  assert_string_equal(place.memory, "");
  place = parse("pjrt:a/P.so#0/pinned_host");
  assert_string_equal(place.path, "a/P.so");
  assert_string_equal(place.memory, "pinned_host");
  place = parse("pjrt:a%23b%3ac%25d%20.so#1");
  assert_string_equal(place.path, "a#b:c%d%20.so");
  assert_int_equal(place.device, 1);
}

static void place__takes_the_longest_plugin_that_exists(void **state) {
  (void)state;
  char *folder = enter_folder();
  touch("P.so", "", 0);
  touch("P.so#1", "", 0);
  ist_place place = parse("pjrt:P.so#1");
  assert_string_equal(place.path, "P.so#1");
  assert_int_equal(place.device, 0);
  place = parse("pjrt:P.so#1#2/device");
  assert_string_equal(place.path, "P.so#1");
  assert_int_equal(place.device, 2);
  assert_string_equal(place.memory, "device");
  place = parse("pjrt:P.so#2");
  assert_string_equal(place.path, "P.so");
  assert_int_equal(place.device, 2);
  refuse("pjrt:P.so#one", IST_ERR_PLACE, "not the number of a device");
  unlink("P.so");
  unlink("P.so#1");
  leave_folder(folder);
}

static void place__refuses_malformed_devices(void **state) {
  (void)state;
  static const char *const cases[] = {"template#",
                                      "template#-1",
                                      "template#1x",
                                      "template#0/mem",
                                      "template#18446744073709551616",
                                      "pjrt:P.so#",
                                      "pjrt:P.so#/host",
                                      "pjrt:P.so# 1",
                                      "pjrt:P.so#+1",
                                      "pjrt:P.so#0x1"};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    refuse(cases[i], IST_ERR_PLACE, "not the number of a device");
  }
  refuse("pjrt:P.so#1/", IST_ERR_PLACE, "memory is empty or too long");
  char text[256] = "pjrt:P.so#1/";
  memset(text + 12, 'm', 64);
  refuse(text, IST_ERR_PLACE, "memory is empty or too long");
  refuse("pjrt:", IST_ERR_PLACE, "names no plugin");
  refuse("pjrt:#1", IST_ERR_PLACE, "names no plugin");
}

static void place__reads_files_that_do_not_exist_by_their_ending(void **state) {
  (void)state;
  char *folder = enter_folder();
  ist_place place = parse("out.npy");
  assert_int_equal(place.kind, IST_PLACE_NPY);
  assert_string_equal(place.path, "out.npy");
  place = parse("a/out.safetensors");
  assert_int_equal(place.kind, IST_PLACE_SAFETENSORS);
  assert_string_equal(place.path, "a/out.safetensors");
  assert_string_equal(place.tensor, "");
  place = parse("out.safetensors:layer:1/w");
  assert_string_equal(place.path, "out.safetensors");
  assert_string_equal(place.tensor, "layer:1/w");
  place = parse("a:b.npy");
  assert_int_equal(place.kind, IST_PLACE_NPY);
  assert_string_equal(place.path, "a:b.npy");
  place = parse("a%3Ab.safetensors:t%23%25x");
  assert_string_equal(place.path, "a:b.safetensors");
  assert_string_equal(place.tensor, "t#%x");
  place = parse("100%.npy");
  assert_string_equal(place.path, "100%.npy");
  leave_folder(folder);
}

static void place__takes_the_longest_file_that_exists(void **state) {
  (void)state;
  char *folder = enter_folder();
  touch("a.safetensors", "", 0);
  touch("a.safetensors:b", "\2\0\0\0\0\0\0\0{}", 10);
  ist_place place = parse("a.safetensors:b");
  assert_string_equal(place.path, "a.safetensors:b");
  assert_string_equal(place.tensor, "");
  place = parse("a.safetensors:b:c");
  assert_string_equal(place.path, "a.safetensors:b");
  assert_string_equal(place.tensor, "c");
  place = parse("a.safetensors:c");
  assert_string_equal(place.path, "a.safetensors");
  assert_string_equal(place.tensor, "c");
  // A folder is no file: the name of a new one may begin like it.
  assert_int_equal(mkdir("d", 0700), 0);
  assert_string_equal(parse("d:x.npy").path, "d:x.npy");
  rmdir("d");
  unlink("a.safetensors");
  unlink("a.safetensors:b");
  leave_folder(folder);
}

static void place__looks_into_files_without_an_ending(void **state) {
  (void)state;
  char *folder = enter_folder();
  touch("n", "\x93NUMPY\1\0", 8);
  touch("s", "\2\0\0\0\0\0\0\0{}", 10);
  touch("t", "hello, what are you", 19);
  assert_int_equal(parse("n").kind, IST_PLACE_NPY);
  assert_int_equal(parse("s").kind, IST_PLACE_SAFETENSORS);
  assert_string_equal(parse("s:w").tensor, "w");
  refuse("t", IST_ERR_PLACE, "neither .npy nor .safetensors");
  refuse("n:w", IST_ERR_PLACE, "one tensor, without a name");
  assert_int_equal(mkfifo("p", 0600), 0);
  refuse("p", IST_ERR_PLACE, "neither .npy nor .safetensors");
  // Words win over files; ./ names the file.
  touch("host", "\x93NUMPY\1\0", 8);
  assert_int_equal(parse("host").kind, IST_PLACE_HOST);
  assert_int_equal(parse("./host").kind, IST_PLACE_NPY);
  unlink("n");
  unlink("s");
  unlink("t");
  unlink("p");
  unlink("host");
  leave_folder(folder);
}

static void place__refuses_what_it_does_not_know(void **state) {
  (void)state;
  char *folder = enter_folder();
  refuse("", IST_ERR_PLACE, "no file and no kind of place");
  refuse("cuda:0", IST_ERR_PLACE, "no file and no kind of place");
  refuse("host#0", IST_ERR_PLACE, "no file and no kind of place");
  refuse("x.npz", IST_ERR_PLACE, "no file and no kind of place");
  refuse(".npy", IST_ERR_PLACE, "no file and no kind of place");
  refuse(folder, IST_ERR_PLACE, "no file and no kind of place");
  refuse("pjrt", IST_ERR_PLACE, "no file and no kind of place");
  refuse("out.npy:w", IST_ERR_PLACE, "one tensor, without a name");
  refuse("o.safetensors:", IST_ERR_PLACE, "empty or too long");
  refuse("opencl:0", IST_ERR_NOT_IN_VERSION, "not in this version: OpenCL");
  refuse("opencl", IST_ERR_NOT_IN_VERSION, "not in this version: OpenCL");
  leave_folder(folder);
}

static void place__refuses_names_that_are_too_long(void **state) {
  (void)state;
  enum {
    SIZE = 6000
  };
  char *text = malloc(SIZE + 1);
  assert_non_null(text);
  memset(text, 'x', SIZE);
  text[SIZE] = '\0';
  refuse(text, IST_ERR_PLACE, "no file and no kind of place");
  memcpy(text, "pjrt:", 5);
  refuse(text, IST_ERR_PLACE, "path is too long");
  memcpy(text, "a.safetensors:", 14);
  refuse(text, IST_ERR_PLACE, "empty or too long");
  text[14 + 1023] = '\0';
  assert_int_equal(strlen(parse(text).tensor), 1023);
  free(text);
}

static void place__needs_its_arguments(void **state) {
  (void)state;
  ist_place place = {.struct_size = sizeof place, .device = 7};
  ist_error err = {0};
  assert_refused(ist_place_parse(NULL, &place, &err), IST_ERR_ARGUMENT, err,
                 "is NULL");
  assert_int_equal(place.device, 0);
  assert_int_equal(ist_place_parse("host", NULL, NULL), IST_ERR_ARGUMENT);
  ist_place unset = {.struct_size = 0};
  assert_int_equal(ist_place_parse("host", &unset, NULL), IST_ERR_ARGUMENT);
}

static void place__writes_no_more_than_the_caller_has(void **state) {
  (void)state;
  ist_place place;
  memset(&place, 0x5A, sizeof place);
  place.struct_size = offsetof(ist_place, path);
  assert_int_equal(ist_place_parse("template#3", &place, NULL), IST_OK);
  assert_int_equal(place.kind, IST_PLACE_TEMPLATE);
  assert_int_equal(place.device, 3);
  assert_int_equal(place.path[0], 0x5A);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(place__reads_words),
      cmocka_unit_test(place__reads_plugins),
      cmocka_unit_test(place__takes_the_longest_plugin_that_exists),
      cmocka_unit_test(place__refuses_malformed_devices),
      cmocka_unit_test(place__reads_files_that_do_not_exist_by_their_ending),
      cmocka_unit_test(place__takes_the_longest_file_that_exists),
      cmocka_unit_test(place__looks_into_files_without_an_ending),
      cmocka_unit_test(place__refuses_what_it_does_not_know),
      cmocka_unit_test(place__refuses_names_that_are_too_long),
      cmocka_unit_test(place__needs_its_arguments),
      cmocka_unit_test(place__writes_no_more_than_the_caller_has)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
