// SPDX-License-Identifier: Apache-2.0
// cache_folder_test.c: files come back whole, the oldest go first, and several
// processes may do all of it at once.

#define _XOPEN_SOURCE 700

#include "io/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/io_fixture.h"
#include "support/temp_folder.h"

static void empty(temp_folder *folder) {
  DIR *dir = opendir(folder->path);
  assert_non_null(dir);
  for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0) continue;
    assert_int_equal(remove(temp_file(folder, d->d_name)), 0);
  }
  closedir(dir);
  temp_folder_remove(folder);
}

static ist__cache_folder begin(const ist__env *env, const temp_folder *at,
                               uint64_t limit) {
  ist__cache_folder folder;
  ist_error err;
  ist_code code =
      ist__cache_folder_open(env, at->path, true, limit, &folder, &err);
  if (code != IST_OK) fail_msg("%s", err.message);
  return folder;
}

static bool has(const ist__cache_folder *folder, const char *name) {
  size_t size;
  void *bytes = ist__cache_folder_get(folder, name, &size);
  ist__free(folder->env, bytes);
  return bytes != NULL;
}

static void file__comes_back_as_it_was(void **state) {
  (void)state;
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  temp_folder at;
  temp_folder_make(&at);
  ist__cache_folder folder = begin(&env, &at, 1000);
  assert_false(has(&folder, "a"));
  assert_true(ist__cache_folder_put(&folder, "a", "0123456789", 10));
  assert_true(ist__cache_folder_put(&folder, "a", "9876543210", 10));
  size_t size;
  char *bytes = ist__cache_folder_get(&folder, "a", &size);
  assert_int_equal(size, 10);
  assert_memory_equal(bytes, "9876543210", 10);
  ist__free(&env, bytes);
  struct stat facts;
  assert_int_equal(stat(temp_file(&at, "a.isthmus-cache"), &facts), 0);
  assert_int_equal(facts.st_mode & 0777, 0600);
  // What others could have written is not read.
  assert_int_equal(chmod(at.file, 0666), 0);
  assert_false(has(&folder, "a"));
  ist__cache_folder_remove(&folder, "a");
  ist__cache_folder_remove(&folder, "a");
  assert_int_equal(symlink("/etc/passwd", temp_file(&at, "b.isthmus-cache")),
                   0);
  assert_false(has(&folder, "b"));
  ist__cache_folder_close(&folder);
  empty(&at);
  assert_int_equal(count.live, 0);
}

static void use_at(const temp_folder *at, const char *name, time_t when) {
  temp_folder copy = *at;
  struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
  assert_int_equal(utimensat(AT_FDCWD, temp_file(&copy, name), times, 0), 0);
}

static void least_used_files__make_room(void **state) {
  (void)state;
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  temp_folder at;
  temp_folder_make(&at);
  char bytes[40] = {0};
  ist__cache_folder folder = begin(&env, &at, 100);
  assert_true(ist__cache_folder_put(&folder, "a", bytes, 40));
  assert_true(ist__cache_folder_put(&folder, "b", bytes, 40));
  use_at(&at, "a.isthmus-cache", 1000);
  use_at(&at, "b.isthmus-cache", 2000);
  assert_true(has(&folder, "a"));  // is used now
  assert_true(ist__cache_folder_put(&folder, "c", bytes, 40));
  assert_true(has(&folder, "a"));
  assert_false(has(&folder, "b"));
  assert_true(has(&folder, "c"));
  // One that alone is too much leaves the others.
  assert_false(ist__cache_folder_put(&folder, "d", bytes, 101));
  uint64_t files, size;
  ist__cache_folder_measure(&folder, &files, &size);
  assert_int_equal(files, 2);
  assert_int_equal(size, 80);
  // A part that somebody left behind goes in time; a new one stays.
  temp_file_write(&at, ".isthmus-cache.part.1.2.3", "x", 1);
  temp_file_write(&at, ".isthmus-cache.part.1.2.4", "x", 1);
  use_at(&at, ".isthmus-cache.part.1.2.3", 1000);
  assert_true(ist__cache_folder_put(&folder, "a", bytes, 40));
  assert_int_equal(access(temp_file(&at, ".isthmus-cache.part.1.2.3"), F_OK),
                   -1);
  assert_int_equal(access(temp_file(&at, ".isthmus-cache.part.1.2.4"), F_OK),
                   0);
  ist__cache_folder_close(&folder);
  empty(&at);
  assert_int_equal(count.live, 0);
}

// A folder that its owner keeps other things in: none of them is counted, or
// removed, however old and large it is.
static void files_of_others__are_left_alone(void **state) {
  (void)state;
  static const char *const theirs[] = {"thesis.tar",    "notes.txt", ".netrc",
                                       ".part.of.mine", ".code.1",   "add.exe"};
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  temp_folder at;
  temp_folder_make(&at);
  char bytes[40] = {0};
  for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++) {
    const char *file = temp_file_write(&at, theirs[i], "mine", 4);
    assert_int_equal(truncate(file, 5000), 0);
    use_at(&at, theirs[i], 1000);
  }
  ist__cache_folder folder = begin(&env, &at, 100);
  assert_true(ist__cache_folder_put(&folder, "a", bytes, 40));
  assert_true(ist__cache_folder_put(&folder, ".code.2", bytes, 40));
  assert_true(ist__cache_folder_put(&folder, "b", bytes, 40));
  assert_true(has(&folder, "a"));
  uint64_t files, size;
  ist__cache_folder_measure(&folder, &files, &size);
  assert_int_equal(files, 2);
  assert_int_equal(size, 80);
  for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++) {
    assert_int_equal(access(temp_file(&at, theirs[i]), F_OK), 0);
  }
  ist__cache_folder_close(&folder);
  empty(&at);
  assert_int_equal(count.live, 0);
}

// ---- loads that end the process

static void load_that_ends_a_process__is_not_tried_again(void **state) {
  (void)state;
  ist__env env;
  ist__env_init(&env, NULL);
  temp_folder at;
  temp_folder_make(&at);
  ist__cache_folder folder = begin(&env, &at, 1000);
  int mark, other;
  // One that ends, and one beside it, say nothing of the code.
  assert_true(ist__cache_folder_load_begin(&folder, "code", &mark));
  assert_true(ist__cache_folder_load_begin(&folder, "code", &other));
  ist__cache_folder_load_end(&folder, "code", other);
  ist__cache_folder_load_end(&folder, "code", mark);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    _exit(ist__cache_folder_load_begin(&folder, "code", &mark) ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_false(ist__cache_folder_load_begin(&folder, "code", &mark));
  assert_false(ist__cache_folder_load_begin(&folder, "code", &mark));
  assert_true(ist__cache_folder_load_begin(&folder, "other code", &mark));
  ist__cache_folder_load_end(&folder, "other code", mark);
  // A plugin may be mended, and a process may be ended by somebody else.
  use_at(&at, ".isthmus-cache.load.code", 1000);
  assert_true(ist__cache_folder_put(&folder, "a", "x", 1));
  assert_true(ist__cache_folder_load_begin(&folder, "code", &mark));
  ist__cache_folder_load_end(&folder, "code", mark);
  ist__cache_folder_close(&folder);
  empty(&at);
}

// ---- several processes

enum {
  PROCESSES = 4,
  TURNS = 150,
  NAMES = 8
};

// Every byte of a file is its size's: one that is half another's shows.
static bool is_whole(const unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (bytes[i] != (unsigned char)size) return false;
  }
  return size >= 100;
}

static int work(const temp_folder *at, unsigned seed) {
  ist__env env;
  ist__env_init(&env, NULL);
  ist__cache_folder folder = begin(&env, at, 1000);
  unsigned char bytes[256];
  for (unsigned turn = 0; turn < TURNS; turn++) {
    seed = seed * 1103515245u + 12345u;
    char name[2] = {(char)('a' + (seed >> 16) % NAMES), '\0'};
    size_t size = 100 + (seed >> 20) % 156;
    memset(bytes, (int)size, size);
    if (!ist__cache_folder_put(&folder, name, bytes, size)) return 2;
    name[0] = (char)('a' + (seed >> 8) % NAMES);
    unsigned char *got = ist__cache_folder_get(&folder, name, &size);
    if (got != NULL && !is_whole(got, size)) return 3;
    ist__free(&env, got);
  }
  ist__cache_folder_close(&folder);
  return 0;
}

static void processes_at_once__see_whole_files_only(void **state) {
  (void)state;
  temp_folder at;
  temp_folder_make(&at);
  pid_t children[PROCESSES];
  for (unsigned i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (children[i] == 0) _exit(work(&at, i + 1));
  }
  for (unsigned i = 0; i < PROCESSES; i++) {
    int status = -1;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
  // With nobody else there the bound holds again.
  ist__env env;
  ist__env_init(&env, NULL);
  ist__cache_folder folder = begin(&env, &at, 1000);
  assert_true(ist__cache_folder_put(&folder, "z", "z", 1));
  uint64_t files, size;
  ist__cache_folder_measure(&folder, &files, &size);
  assert_in_range(size, 1, 1000);
  ist__cache_folder_close(&folder);
  empty(&at);
}

static void folder_that_is_not_ours__is_refused(void **state) {
  (void)state;
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  temp_folder at;
  ist__cache_folder folder;
  ist_error err;
  temp_folder_make(&at);
  assert_int_equal(symlink(at.path, temp_file(&at, "link")), 0);
  assert_int_equal(
      ist__cache_folder_open(&env, at.file, true, 1, &folder, &err),
      IST_ERR_OUTPUT);
  const char *file = temp_file_write(&at, "file", "x", 1);
  assert_int_equal(ist__cache_folder_open(&env, file, true, 1, &folder, &err),
                   IST_ERR_OUTPUT);
  assert_non_null(strstr(err.message, "; needs a folder of the user's own"));
  assert_int_equal(ist__cache_folder_open(&env, temp_file(&at, "none"), false,
                                          1, &folder, &err),
                   IST_ERR_OUTPUT);
  ist__cache_folder_close(&folder);
  empty(&at);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(file__comes_back_as_it_was),
      cmocka_unit_test(least_used_files__make_room),
      cmocka_unit_test(files_of_others__are_left_alone),
      cmocka_unit_test(load_that_ends_a_process__is_not_tried_again),
      cmocka_unit_test(processes_at_once__see_whole_files_only),
      cmocka_unit_test(folder_that_is_not_ours__is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
