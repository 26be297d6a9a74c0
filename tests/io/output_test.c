// SPDX-License-Identifier: Apache-2.0
// output_test.c: a file appears whole or not at all.

#define _XOPEN_SOURCE 700

#include "io/output.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "io/io_fixture.h"

static void assert_holds(const char *path, const char *text) {
  char buffer[64] = {0};
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fread(buffer, 1, sizeof buffer, file), strlen(text));
  fclose(file);
  assert_string_equal(buffer, text);
}

// Opens, writes text and commits.
static ist_code put(const char *path, const char *text, ist_error *err) {
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  ist__output output;
  *err = (ist_error){0};
  ist_code code = ist__output_open(&env, path, &output, err);
  if (code == IST_OK) {
    code = ist__output_write(&output, text, strlen(text), err);
  }
  if (code == IST_OK) code = ist__output_commit(&output, err);
  ist__output_discard(&output);
  assert_int_equal(count.live, 0);
  assert_int_equal(code, err->code);
  return code;
}

static void output__appears_at_commit(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  const char *path = temp_file(&folder, "a.npy");
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  ist__output output;
  assert_int_equal(ist__output_open(&env, path, &output, NULL), IST_OK);
  assert_int_equal(ist__output_write(&output, "one ", 4, NULL), IST_OK);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(ist__output_write(&output, "two", 3, NULL), IST_OK);
  assert_int_equal(ist__output_commit(&output, NULL), IST_OK);
  assert_holds(path, "one two");
  ist__output_discard(&output);
  assert_holds(path, "one two");
  assert_int_equal(count.live, 0);
  unlink(path);
  temp_folder_remove(&folder);
}

static void output__leaves_nothing_when_discarded(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  const char *path = temp_file(&folder, "a.npy");
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  ist__output output;
  assert_int_equal(ist__output_open(&env, path, &output, NULL), IST_OK);
  assert_int_equal(ist__output_write(&output, "one", 3, NULL), IST_OK);
  ist__output_discard(&output);
  ist__output_discard(&output);
  assert_int_equal(count.live, 0);
  temp_folder_remove(&folder);
}

static void output__replaces_a_file_and_keeps_it_until_then(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  const char *path = temp_file(&folder, "a.npy");
  write_bytes(path, "old", 3);
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  ist__output output;
  assert_int_equal(ist__output_open(&env, path, &output, NULL), IST_OK);
  assert_int_equal(ist__output_write(&output, "newer", 5, NULL), IST_OK);
  assert_holds(path, "old");
  assert_int_equal(ist__output_commit(&output, NULL), IST_OK);
  assert_holds(path, "newer");
  unlink(path);
  temp_folder_remove(&folder);
}

static void output__has_the_mode_that_umask_leaves(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  const char *path = temp_file(&folder, "a.npy");
  ist_error err;
  struct stat facts;
  mode_t before = umask(027);
  assert_int_equal(put(path, "x", &err), IST_OK);
  umask(before);
  assert_int_equal(stat(path, &facts), 0);
  assert_int_equal(facts.st_mode & 0777, 0640);
  unlink(path);
  temp_folder_remove(&folder);
}

// Neither more nor fewer people may read the new file than the one before,
// not even while it is written.
static void output__keeps_the_mode_of_the_file_it_replaces(void **state) {
  (void)state;
  static const mode_t modes[] = {0600, 0640, 0444, 0666, 0755};
  temp_folder folder;
  temp_folder_make(&folder);
  const char *path = temp_file(&folder, "a.npy");
  mode_t before = umask(022);
  for (size_t i = 0; i < COUNT_OF(modes); i++) {
    counting_allocator count = {0};
    ist__env env = counting_env(&count);
    ist__output output;
    struct stat facts;
    write_bytes(path, "old", 3);
    assert_int_equal(chmod(path, modes[i]), 0);
    assert_int_equal(ist__output_open(&env, path, &output, NULL), IST_OK);
    assert_int_equal(fstat(output.fd, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, modes[i]);
    assert_int_equal(ist__output_write(&output, "new", 3, NULL), IST_OK);
    assert_int_equal(ist__output_commit(&output, NULL), IST_OK);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, modes[i]);
    assert_holds(path, "new");
    unlink(path);
  }
  umask(before);
  temp_folder_remove(&folder);
}

static void output__follows_a_link_and_keeps_it(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  const char *name = temp_file(&folder, "link.npy");
  char file[512];
  snprintf(file, sizeof file, "%s/file.npy", folder.path);
  write_bytes(file, "old", 3);
  assert_int_equal(symlink("file.npy", name), 0);
  ist_error err;
  assert_int_equal(put(name, "new", &err), IST_OK);
  struct stat facts;
  assert_int_equal(lstat(name, &facts), 0);
  assert_true(S_ISLNK(facts.st_mode));
  assert_holds(file, "new");
  unlink(file);
  assert_int_equal(put(name, "new", &err), IST_ERR_OUTPUT);
  assert_said(&err, "a symbolic link to nothing");
  unlink(name);
  temp_folder_remove(&folder);
}

static void output__refuses_what_is_no_file(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  const char *pipe = temp_file(&folder, "pipe.npy");
  assert_int_equal(mkfifo(pipe, 0600), 0);
  ist_error err;
  assert_int_equal(put(pipe, "x", &err), IST_ERR_OUTPUT);
  assert_said(&err, "no regular file");
  unlink(pipe);
  assert_int_equal(put(folder.path, "x", &err), IST_ERR_OUTPUT);
  assert_said(&err, "a folder");
  assert_int_equal(put(temp_file(&folder, "new/"), "x", &err), IST_ERR_OUTPUT);
  assert_int_equal(put("/dev/null", "x", &err), IST_ERR_OUTPUT);
  assert_int_equal(put("/dev/full", "x", &err), IST_ERR_OUTPUT);
  assert_int_equal(put("", "x", &err), IST_ERR_OUTPUT);
  struct stat facts;
  assert_int_equal(stat("/dev/null", &facts), 0);
  assert_true(S_ISCHR(facts.st_mode));
  temp_folder_remove(&folder);
}

static void output__names_a_folder_that_is_missing(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  ist_error err;
  const char *path = temp_file(&folder, "no/such/a.npy");
  assert_int_equal(put(path, "x", &err), IST_ERR_OUTPUT);
  assert_said(&err, "a.npy");
  assert_int_equal(err.native, ENOENT);
  path = temp_file(&folder, "plain");
  write_bytes(path, "x", 1);
  char below[1100];
  snprintf(below, sizeof below, "%s/a.npy", path);
  assert_int_equal(put(below, "x", &err), IST_ERR_OUTPUT);
  assert_int_equal(err.native, ENOTDIR);
  unlink(path);
  temp_folder_remove(&folder);
}

static void output__takes_the_longest_name_of_a_file(void **state) {
  (void)state;
  temp_folder folder;
  char name[256];
  temp_folder_make(&folder);
  memset(name, 'n', 255);
  name[255] = '\0';
  const char *path = temp_file(&folder, name);
  ist_error err;
  assert_int_equal(put(path, "x", &err), IST_OK);
  assert_holds(path, "x");
  unlink(path);
  temp_folder_remove(&folder);
}

// A limit on the size of files stands for a full disk: both are a write that
// the system refuses for want of room.
static void output__leaves_nothing_on_a_full_disk(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  const char *path = temp_file(&folder, "a.npy");
  write_bytes(path, "old", 3);
  struct rlimit before, small;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 8;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  ist_error err;
  ist_code code = put(path, "more than eight bytes", &err);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  assert_int_equal(code, IST_ERR_DISK_FULL);
  assert_int_equal(err.native, EFBIG);
  assert_said(&err, "room on the disk");
  assert_holds(path, "old");
  unlink(path);
  temp_folder_remove(&folder);
}

static void output__loses_nothing_when_memory_ends(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  const char *path = temp_file(&folder, "a.npy");
  for (long fail_at = 1; fail_at <= 2; fail_at++) {
    counting_allocator count = {.fail_at = fail_at};
    ist__env env = counting_env(&count);
    ist__output output;
    ist_error err = {0};
    assert_int_equal(ist__output_open(&env, path, &output, &err),
                     IST_ERR_NO_ALLOCATION);
    assert_int_equal(count.requests, 2);
    assert_int_equal(count.live, 0);
  }
  temp_folder_remove(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(output__appears_at_commit),
      cmocka_unit_test(output__leaves_nothing_when_discarded),
      cmocka_unit_test(output__replaces_a_file_and_keeps_it_until_then),
      cmocka_unit_test(output__has_the_mode_that_umask_leaves),
      cmocka_unit_test(output__keeps_the_mode_of_the_file_it_replaces),
      cmocka_unit_test(output__follows_a_link_and_keeps_it),
      cmocka_unit_test(output__refuses_what_is_no_file),
      cmocka_unit_test(output__names_a_folder_that_is_missing),
      cmocka_unit_test(output__takes_the_longest_name_of_a_file),
      cmocka_unit_test(output__leaves_nothing_on_a_full_disk),
      cmocka_unit_test(output__loses_nothing_when_memory_ends)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
