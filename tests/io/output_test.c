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
  counting count = {0};
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
  char *folder = make_folder(), buffer[1024];
  const char *path = path_in(folder, "a.npy", buffer);
  counting count = {0};
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
  remove_folder(folder);
}

static void output__leaves_nothing_when_discarded(void **state) {
  (void)state;
  char *folder = make_folder(), buffer[1024];
  const char *path = path_in(folder, "a.npy", buffer);
  counting count = {0};
  ist__env env = counting_env(&count);
  ist__output output;
  assert_int_equal(ist__output_open(&env, path, &output, NULL), IST_OK);
  assert_int_equal(ist__output_write(&output, "one", 3, NULL), IST_OK);
  ist__output_discard(&output);
  ist__output_discard(&output);
  assert_int_equal(count.live, 0);
  remove_folder(folder);
}

static void output__replaces_a_file_and_keeps_it_until_then(void **state) {
  (void)state;
  char *folder = make_folder(), buffer[1024];
  const char *path = path_in(folder, "a.npy", buffer);
  write_bytes(path, "old", 3);
  counting count = {0};
  ist__env env = counting_env(&count);
  ist__output output;
  assert_int_equal(ist__output_open(&env, path, &output, NULL), IST_OK);
  assert_int_equal(ist__output_write(&output, "newer", 5, NULL), IST_OK);
  assert_holds(path, "old");
  assert_int_equal(ist__output_commit(&output, NULL), IST_OK);
  assert_holds(path, "newer");
  unlink(path);
  remove_folder(folder);
}

static void output__has_the_mode_that_umask_leaves(void **state) {
  (void)state;
  char *folder = make_folder(), buffer[1024];
  const char *path = path_in(folder, "a.npy", buffer);
  ist_error err;
  struct stat facts;
  mode_t before = umask(027);
  assert_int_equal(put(path, "x", &err), IST_OK);
  umask(before);
  assert_int_equal(stat(path, &facts), 0);
  assert_int_equal(facts.st_mode & 0777, 0640);
  unlink(path);
  remove_folder(folder);
}

static void output__follows_a_link_and_keeps_it(void **state) {
  (void)state;
  char *folder = make_folder(), a[1024], b[1024];
  const char *file = path_in(folder, "file.npy", a);
  const char *name = path_in(folder, "link.npy", b);
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
  remove_folder(folder);
}

static void output__refuses_what_is_no_file(void **state) {
  (void)state;
  char *folder = make_folder(), buffer[1024];
  const char *pipe = path_in(folder, "pipe.npy", buffer);
  assert_int_equal(mkfifo(pipe, 0600), 0);
  ist_error err;
  assert_int_equal(put(pipe, "x", &err), IST_ERR_OUTPUT);
  assert_said(&err, "no regular file");
  unlink(pipe);
  assert_int_equal(put(folder, "x", &err), IST_ERR_OUTPUT);
  assert_said(&err, "a folder");
  assert_int_equal(put(path_in(folder, "new/", buffer), "x", &err),
                   IST_ERR_OUTPUT);
  assert_int_equal(put("/dev/null", "x", &err), IST_ERR_OUTPUT);
  assert_int_equal(put("/dev/full", "x", &err), IST_ERR_OUTPUT);
  assert_int_equal(put("", "x", &err), IST_ERR_OUTPUT);
  struct stat facts;
  assert_int_equal(stat("/dev/null", &facts), 0);
  assert_true(S_ISCHR(facts.st_mode));
  remove_folder(folder);
}

static void output__names_a_folder_that_is_missing(void **state) {
  (void)state;
  char *folder = make_folder(), buffer[1024];
  ist_error err;
  const char *path = path_in(folder, "no/such/a.npy", buffer);
  assert_int_equal(put(path, "x", &err), IST_ERR_OUTPUT);
  assert_said(&err, "a.npy");
  assert_int_equal(err.native, ENOENT);
  path = path_in(folder, "plain", buffer);
  write_bytes(path, "x", 1);
  char below[1100];
  snprintf(below, sizeof below, "%s/a.npy", path);
  assert_int_equal(put(below, "x", &err), IST_ERR_OUTPUT);
  assert_int_equal(err.native, ENOTDIR);
  unlink(path);
  remove_folder(folder);
}

static void output__takes_the_longest_name_of_a_file(void **state) {
  (void)state;
  char *folder = make_folder(), buffer[1024], name[256];
  memset(name, 'n', 255);
  name[255] = '\0';
  const char *path = path_in(folder, name, buffer);
  ist_error err;
  assert_int_equal(put(path, "x", &err), IST_OK);
  assert_holds(path, "x");
  unlink(path);
  remove_folder(folder);
}

// A limit on the size of files stands for a full disk: both are a write that
// the system refuses for want of room.
static void output__leaves_nothing_on_a_full_disk(void **state) {
  (void)state;
  char *folder = make_folder(), buffer[1024];
  const char *path = path_in(folder, "a.npy", buffer);
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
  remove_folder(folder);
}

static void output__loses_nothing_when_memory_ends(void **state) {
  (void)state;
  char *folder = make_folder(), buffer[1024];
  const char *path = path_in(folder, "a.npy", buffer);
  for (size_t fail_at = 1; fail_at <= 2; fail_at++) {
    counting count = {.fail_at = fail_at};
    ist__env env = counting_env(&count);
    ist__output output;
    ist_error err = {0};
    assert_int_equal(ist__output_open(&env, path, &output, &err),
                     IST_ERR_NO_ALLOCATION);
    assert_int_equal(count.calls, 2);
    assert_int_equal(count.live, 0);
  }
  remove_folder(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(output__appears_at_commit),
      cmocka_unit_test(output__leaves_nothing_when_discarded),
      cmocka_unit_test(output__replaces_a_file_and_keeps_it_until_then),
      cmocka_unit_test(output__has_the_mode_that_umask_leaves),
      cmocka_unit_test(output__follows_a_link_and_keeps_it),
      cmocka_unit_test(output__refuses_what_is_no_file),
      cmocka_unit_test(output__names_a_folder_that_is_missing),
      cmocka_unit_test(output__takes_the_longest_name_of_a_file),
      cmocka_unit_test(output__leaves_nothing_on_a_full_disk),
      cmocka_unit_test(output__loses_nothing_when_memory_ends)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
