// SPDX-License-Identifier: Apache-2.0
// replay_test.c: each fuzz target keeps its promises on its corpus, in every
// build of the tests. Not a fuzzer: the inputs are those of seeds/.

#define _POSIX_C_SOURCE 200809L  // opendir

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/guard_page.h"
#include "support/testing.h"

#define FUZZ_TARGET(name) int name(const uint8_t *data, size_t size);
#include "fuzz/fuzz_targets.def"
#undef FUZZ_TARGET

typedef struct target {
  const char *name;
  int (*run)(const uint8_t *data, size_t size);
} target;

static target targets[] = {
#define FUZZ_TARGET(name) {#name, name},
#include "fuzz/fuzz_targets.def"
#undef FUZZ_TARGET
};

// The input ends where readable memory does.
static void run_one(const target *t, const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  size_t size = (size_t)ftell(file);
  rewind(file);
  guarded memory = guarded_make(size + 1);
  char *at = memory.end - size;
  assert_int_equal(fread(at, 1, size, file), size);
  fclose(file);
  assert_int_equal(t->run((const uint8_t *)at, size), 0);
  guarded_free(&memory);
}

static void keeps_its_promises_on_its_corpus(void **state) {
  const target *t = *state;
  const char *source = getenv("ISTHMUS_SOURCE");
  char folder[2048], path[4096];
  int inputs = 0;
  assert_non_null(source);
  snprintf(folder, sizeof folder, "%s/tests/fuzz/seeds/%s", source, t->name);
  DIR *list = opendir(folder);
  if (list == NULL) fail_msg("%s: no corpus", folder);
  for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    run_one(t, path);
    inputs++;
  }
  closedir(list);
  if (inputs == 0) fail_msg("%s: an empty corpus", folder);
  // What is not there crashes no target either.
  guarded nothing = guarded_make(1);
  assert_int_equal(t->run((const uint8_t *)nothing.end, 0), 0);
  guarded_free(&nothing);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(targets)];
  char names[COUNT_OF(targets)][96];
  for (size_t i = 0; i < COUNT_OF(targets); i++) {
    snprintf(names[i], sizeof names[i], "%s__keeps_its_promises_on_its_corpus",
             targets[i].name);
    tests[i] = (struct CMUnitTest){names[i], keeps_its_promises_on_its_corpus,
                                   NULL, NULL, &targets[i]};
  }
  return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
