// SPDX-License-Identifier: Apache-2.0
// What came of trying a plugin elsewhere is held for its file: however it is
// called, whoever's memory it takes, and for no other file.

#define _GNU_SOURCE
#include "backend/pjrt/verdict.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/context.h"
#include "backend/pjrt/pjrt_backend.h"
#include "support/pjrt_support.h"
#include "support/temp_folder.h"

typedef struct host {
  counting_allocator counts;
  ist_allocator under;
  ist_context *context;
  atomic_long asked, locked;  // calls of the allocator; those under the lock
  temp_folder folder;
  char plugin[1024];
  ist_error err;
} host;

// A lock that this thread holds cannot be had, and nobody else is here.
static void look_at_lock(host *h) {
  atomic_fetch_add(&h->asked, 1);
  if (h->context == NULL) return;
  pthread_mutex_t *lock = &h->context->verdicts.lock;
  if (pthread_mutex_trylock(lock) != 0) {
    atomic_fetch_add(&h->locked, 1);
  } else {
    pthread_mutex_unlock(lock);
  }
}

static void *allocate(void *self, size_t size, size_t alignment) {
  host *h = self;
  look_at_lock(h);
  return h->under.allocate(h->under.self, size, alignment);
}

static void give_back(void *self, void *pointer) {
  host *h = self;
  look_at_lock(h);
  h->under.release(h->under.self, pointer);
}

static void host_make(host *h, const char *rule, const char *program) {
  memset(h, 0, sizeof *h);
  plugin_path("lying");
  const char *build = getenv("ISTHMUS_BUILD");
  assert_non_null(build);
  snprintf(h->plugin, sizeof h->plugin, "%s/crashing_pjrt.so", build);
  temp_folder_make(&h->folder);
  setenv("CRASHING_PJRT", rule, 1);
  counting_allocator_init(&h->counts);
  h->under = counting_allocator_hook(&h->counts);
  ist_allocator allocator = {
      .self = h, .allocate = allocate, .release = give_back};
  ist_context_options options = {.struct_size = sizeof options,
                                 .allocator = &allocator,
                                 .probe_program = program};
  ist_context *context = NULL;
  assert_ok(ist_context_create(&options, &context, &h->err), h->err);
  h->context = context;
}

static ist_code open_as(host *h, const char *path, ist_backend **out) {
  ist_backend_options options = {.struct_size = sizeof options, .path = path};
  memset(&h->err, 0, sizeof h->err);
  return ist_backend_open(h->context, "pjrt", &options, out, &h->err);
}

static void host_end(host *h) {
  ist_context *context = h->context;
  h->context = NULL;
  ist_context_release(context);
  assert_int_equal(atomic_load(&h->counts.live), 0);
  temp_folder_remove(&h->folder);
  setenv("CRASHING_PJRT", "", 1);
}

// A death that is held, one that is read again, one that is not held, and so
// many that the oldest are forgotten.
static void allocator__is_never_called_under_the_lock(void **state) {
  (void)state;
  host h;
  ist_backend *backend = NULL;
  host_make(&h, "abort load", NULL);
  for (int i = 0; i < IST__MOST_VERDICTS + 2; i++) {
    char text[32];
    snprintf(text, sizeof text, "%d", i / 2);
    setenv("ISTHMUS_TEST_TURN", text, 1);
    assert_int_equal(open_as(&h, h.plugin, &backend), IST_ERR_PLUGIN_CRASHED);
  }
  h.context->verdicts.count += IST__MOST_VERDICTS;  // as if it were full
  setenv("ISTHMUS_TEST_TURN", "full", 1);
  assert_int_equal(open_as(&h, h.plugin, &backend), IST_ERR_PLUGIN_CRASHED);
  h.context->verdicts.count -= IST__MOST_VERDICTS;
  unsetenv("ISTHMUS_TEST_TURN");
  setenv("LYING_PJRT_RULES", "minor=56", 1);
  setenv("CRASHING_PJRT", "", 1);
  ist_code code = open_as(&h, h.plugin, &backend);
  unsetenv("LYING_PJRT_RULES");
  assert_int_equal(code, IST_ERR_PLUGIN_VERSION);
  assert_true(atomic_load(&h.asked) > IST__MOST_VERDICTS);
  assert_int_equal(atomic_load(&h.locked), 0);
  host_end(&h);
}

static void link_to(const host *h, const char *name, const char *target,
                    char out[1100]) {
  snprintf(out, 1100, "%s/%s", h->folder.path, name);
  assert_int_equal(symlink(target, out), 0);
}

static void held_death__names_the_file_as_each_caller_did(void **state) {
  (void)state;
  host h;
  ist_backend *backend = NULL;
  char names[3][1100], says[3600];
  host_make(&h, "abort load", NULL);
  link_to(&h, "a.so", h.plugin, names[0]);
  link_to(&h, "b_with_a_longer_name.so", h.plugin, names[1]);
  link_to(&h, "c", h.plugin, names[2]);
  for (size_t i = 0; i < 3; i++) {
    ist_code code = open_as(&h, names[i], &backend);
    snprintf(says, sizeof says, "plugin %s cannot be opened: it died of",
             names[i]);
    assert_refused(code, IST_ERR_PLUGIN_CRASHED, h.err, says);
    assert_non_null(strstr(h.err.message, "; needs a plugin that can be"));
    assert_int_equal(h.context->verdicts.count, 1);
  }
  for (size_t i = 0; i < 3; i++) unlink(names[i]);
  host_end(&h);
}

// A program that changes something, and then is isthmus-probe.
static void write_script(const char *path, const char *before) {
  char probe[1024];
  ssize_t length = readlink("/proc/self/exe", probe, sizeof probe - 20);
  assert_true(length > 0);
  probe[length] = '\0';
  strcpy(strrchr(probe, '/'), "/isthmus-probe");
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "#!/bin/sh\n%s\nexec '%s' \"$@\"\n", before, probe);
  fclose(file);
  assert_int_equal(chmod(path, 0700), 0);
}

// The link leads elsewhere by the time that the plugin is loaded here.
static void plugin_that_was_tried__is_the_one_that_is_loaded(void **state) {
  (void)state;
  host h;
  temp_folder scripts;
  char script[1100], link[1100], before[2400], file[1100];
  ist_backend *backend = NULL;
  temp_folder_make(&scripts);
  snprintf(script, sizeof script, "%s/switch", scripts.path);
  host_make(&h, "", script);
  link_to(&h, "plugin.so", h.plugin, link);
  snprintf(before, sizeof before, "ln -sfn '%s' '%s'",
           getenv("ISTHMUS_LYING_PJRT"), link);
  write_script(script, before);
  assert_ok(open_as(&h, link, &backend), h.err);
  assert_non_null(realpath(h.plugin, file));
  assert_string_equal(ist__pjrt_client_of(backend)->plugin.file, file);
  ist_backend_release(backend);
  unlink(link);
  host_end(&h);
  unlink(script);
  temp_folder_remove(&scripts);
}

// The file itself is another one by then: nothing of it runs here, and what
// came of it is held for neither.
static void replaced_file__is_refused_and_tried_again(void **state) {
  (void)state;
  host h;
  temp_folder scripts;
  char script[1100], file[1100], before[4800];
  ist_backend *backend = NULL;
  temp_folder_make(&scripts);
  snprintf(script, sizeof script, "%s/replace", scripts.path);
  host_make(&h, "", script);
  snprintf(file, sizeof file, "%s/plugin.so", h.folder.path);
  snprintf(before, sizeof before, "cp '%s' '%s.new' && mv '%s.new' '%s'",
           h.plugin, file, file, file);
  write_script(script, before);
  FILE *made = fopen(file, "w");
  assert_non_null(made);
  fclose(made);
  assert_refused(open_as(&h, file, &backend), IST_ERR_PLUGIN_LOAD, h.err,
                 "is another one than was tried");
  assert_null(backend);
  assert_int_equal(h.context->verdicts.count, 0);
  write_script(script, ":");
  assert_ok(open_as(&h, file, &backend), h.err);
  ist_backend_release(backend);
  assert_int_equal(h.context->verdicts.count, 1);
  unlink(file);
  host_end(&h);
  unlink(script);
  temp_folder_remove(&scripts);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(allocator__is_never_called_under_the_lock),
      cmocka_unit_test(held_death__names_the_file_as_each_caller_did),
      cmocka_unit_test(plugin_that_was_tried__is_the_one_that_is_loaded),
      cmocka_unit_test(replaced_file__is_refused_and_tried_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
