// SPDX-License-Identifier: Apache-2.0
// Unknown plugins are opened in a process of their own first: whatever they do
// there costs an error that says it, and nothing else of the host's.

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/context.h"
#include "backend/pjrt/child_wire.h"
#include "support/pjrt_support.h"
#include "support/temp_folder.h"

// A context of its own, with its log, for one rule of the crashing plugin.
typedef struct host {
  counting_allocator counts;
  ist_context *context;
  ist_backend *backend;
  char plugin[1024];
  char log[16384];
  ist_error err;
} host;

static void keep_log(void *self, ist_log_level level, const char *text) {
  host *h = self;
  if (level != IST_LOG_WARNING) return;
  size_t used = strlen(h->log);
  snprintf(h->log + used, sizeof h->log - used, "%s|", text);
}

static void host_make(host *h, const char *rule, const char *program,
                      int32_t deadline_ms) {
  memset(h, 0, sizeof *h);
  plugin_path("lying");
  const char *build = getenv("ISTHMUS_BUILD");
  assert_non_null(build);
  snprintf(h->plugin, sizeof h->plugin, "%s/crashing_pjrt.so", build);
  assert_int_equal(setenv("CRASHING_PJRT", rule, 1), 0);
  counting_allocator_init(&h->counts);
  ist_allocator allocator = counting_allocator_hook(&h->counts);
  ist_context_options options = {.struct_size = sizeof options,
                                 .allocator = &allocator,
                                 .log = keep_log,
                                 .log_self = h,
                                 .probe_program = program,
                                 .probe_deadline_ms = deadline_ms};
  assert_ok(ist_context_create(&options, &h->context, &h->err), h->err);
}

static ist_code host_open(host *h, bool trusted) {
  ist_backend_options options = {
      .struct_size = sizeof options, .path = h->plugin, .trusted = trusted};
  memset(&h->err, 0, sizeof h->err);
  return ist_backend_open(h->context, "pjrt", &options, &h->backend, &h->err);
}

// The plugin passes in a process of its own; in this one it is not opened.
static void host_passes(host *h) {
  ist_backend_options options = {.struct_size = sizeof options,
                                 .path = h->plugin};
  ist__origin *origin = NULL;
  const ist__env *env = &h->context->env;
  assert_ok(
      ist__verdict_ask(&h->context->verdicts, env, &options, &origin, &h->err),
      h->err);
  ist__origin_free(env, origin);
}

static void host_end(host *h) {
  ist_backend_release(h->backend);
  ist_context_release(h->context);
  assert_int_equal(atomic_load(&h->counts.live), 0);
}

static int count_descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  assert_non_null(folder);
  int count = 0;
  while (readdir(folder) != NULL) count++;
  closedir(folder);
  return count;
}

// Opening costs an error that says how the plugin ended and where.
static void dies(const char *rule, const char *how, const char *where) {
  host h;
  int before = count_descriptors();
  host_make(&h, rule, NULL, 0);
  assert_refused(host_open(&h, false), IST_ERR_PLUGIN_CRASHED, h.err, how);
  assert_null(h.backend);
  assert_non_null(strstr(h.err.message, h.plugin));
  if (strstr(h.err.message, where) == NULL) {
    fail_msg("\"%s\" does not say \"%s\"", h.err.message, where);
  }
  host_end(&h);
  assert_int_equal(count_descriptors(), before);
}

static void death__is_told_with_its_signal_and_step(void **state) {
  (void)state;
  dies("abort load", "died of SIGABRT", "the step loading the file");
  dies("abort GetPjrtApi", "died of SIGABRT", "the step GetPjrtApi");
  dies("abort PJRT_Plugin_Initialize", "SIGABRT", "step PJRT_Plugin_Init");
  dies("abort PJRT_Client_Create", "SIGABRT", "the step PJRT_Client_Create");
  dies("abort PJRT_Client_CreateViewOfDeviceBuffer", "SIGABRT",
       "the step PJRT_Client_CreateViewOfDeviceBuffer");
  dies("abort PJRT_Buffer_Destroy", "SIGABRT", "step PJRT_Buffer_Destroy");
  dies("abort PJRT_Client_Destroy", "SIGABRT", "step PJRT_Client_Destroy");
  dies("segv PJRT_Client_Create", "died of SIGSEGV", "PJRT_Client_Create");
}

static void exit_of_the_process__is_told_with_its_status(void **state) {
  (void)state;
  dies("exit0 load", "exit status 0", "loading the file");
  dies("exit3 PJRT_Client_Create", "exit status 3", "PJRT_Client_Create");
}

static void verdict_by_the_plugin__is_not_believed(void **state) {
  (void)state;
  dies("garbage load", "died of SIGABRT", "loading the file");
  dies("garbage PJRT_Client_Create", "SIGABRT", "PJRT_Client_Create");
  dies("forges load", "died of SIGABRT", "loading the file");
}

// Some plugins close what they did not open, as daemons do.
static void plugin_that_closes_descriptors__is_opened(void **state) {
  (void)state;
  host h;
  host_make(&h, "closes PJRT_Client_Create", NULL, 0);
  host_passes(&h);
  host_end(&h);
}

static void process_left_behind__is_not_waited_for(void **state) {
  (void)state;
  dies("orphan PJRT_Client_Create", "died of SIGABRT", "PJRT_Client_Create");
  host h;
  int before = count_descriptors();
  host_make(&h, "linger PJRT_Client_Create", NULL, 0);
  // Here no process is to be left behind.
  host_passes(&h);
  host_end(&h);
  assert_int_equal(count_descriptors(), before);
}

static void last_words__are_folded_and_logged_whole(void **state) {
  (void)state;
  host h;
  host_make(&h, "words PJRT_Client_Create", NULL, 0);
  assert_refused(host_open(&h, false), IST_ERR_PLUGIN_CRASHED, h.err,
                 "(it said: F0101 client.cc:7] Check failed: device ?[1mp");
  assert_null(strstr(h.err.message, "trace"));
  assert_non_null(strstr(h.log, "said: starting|"));
  assert_non_null(strstr(h.log, "0x7f00  Fatal()|"));
  host_end(&h);
}

static void endless_talk__takes_no_memory(void **state) {
  (void)state;
  static const char *const rules[] = {"abort load", "flood load"};
  long requests[2];
  for (int i = 0; i < 2; i++) {
    host h;
    host_make(&h, rules[i], NULL, 0);
    counting_allocator_arm(&h.counts, 0);
    assert_int_equal(host_open(&h, false), IST_ERR_PLUGIN_CRASHED);
    requests[i] = atomic_load(&h.counts.requests);
    bool said = strstr(h.err.message, "over and over again") != NULL;
    assert_int_equal(said, i == 1);
    host_end(&h);
  }
  assert_int_equal(requests[0], requests[1]);
}

static void hanging_plugin__is_killed_at_the_deadline(void **state) {
  (void)state;
  static const char *const rules[] = {"hang load", "hang PJRT_Client_Create"};
  for (size_t i = 0; i < COUNT_OF(rules); i++) {
    host h;
    int before = count_descriptors();
    host_make(&h, rules[i], NULL, 1500);
    assert_refused(host_open(&h, false), IST_ERR_PLUGIN_CRASHED, h.err,
                   "it had not ended after 1.5 s in the step ");
    host_end(&h);
    assert_int_equal(count_descriptors(), before);
  }
}

// isthmus-probe, as the library finds it: beside this test.
static void find_probe(char *out, size_t size) {
  char own[1024];
  ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
  assert_true(length > 0);
  own[length] = '\0';
  *strrchr(own, '/') = '\0';
  snprintf(out, size, "%s/isthmus-probe", own);
}

// Writes a script that is started in place of isthmus-probe.
static void write_script(const char *path, const char *before) {
  char probe[1100];
  find_probe(probe, sizeof probe);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "#!/bin/sh\n%s\nexec '%s' \"$@\"\n", before, probe);
  fclose(file);
  assert_int_equal(chmod(path, 0700), 0);
}

// Whoever holds the file still lives: a read of the pipe ends with the last.
static void make_leash(const char *path, int *out) {
  assert_int_equal(mkfifo(path, 0600), 0);
  *out = open(path, O_RDONLY | O_NONBLOCK);
  assert_true(*out >= 0);
}

static void await_all_dead(int leash) {
  char byte;
  assert_int_equal(fcntl(leash, F_SETFL, 0), 0);
  assert_int_equal(read(leash, &byte, 1), 0);
  close(leash);
}

static void *open_once(void *arg);

// A program that never answers, one that is stopped in the middle, one that
// closes its end and lives on, and one that leaves a process behind. Everybody
// who waits for the one child is told.
static void endless_probe__is_killed_with_its_group(void **state) {
  (void)state;
  static const struct {
    const char *script;
    ist_code code;
    int32_t deadline_ms;
  } cases[] = {
      {"sleep 1000; exit", IST_ERR_PROBE_MISSING, 50},
      {"kill -STOP $$", IST_ERR_PROBE_MISSING, 50},
      {"echo isthmus-probe 2; kill -STOP $$", IST_ERR_PLUGIN_CRASHED, 1500},
      {"exec >&-; sleep 1000; exit", IST_ERR_PROBE_MISSING, 50},
      {"sleep 1000 & exit", IST_ERR_PROBE_MISSING, 50}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    temp_folder folder;
    char script[1100], pipe[1100], lines[2400];
    int leash = -1, before = count_descriptors();
    temp_folder_make(&folder);
    snprintf(script, sizeof script, "%s/endless", folder.path);
    snprintf(pipe, sizeof pipe, "%s/leash", folder.path);
    snprintf(lines, sizeof lines, "exec 9>'%s'\n%s", pipe, cases[i].script);
    make_leash(pipe, &leash);
    write_script(script, lines);
    host h;
    host_make(&h, "", script, cases[i].deadline_ms);
    h.context->verdicts.grace_ms = 50;
    pthread_t threads[3];
    for (size_t k = 0; k < COUNT_OF(threads); k++) {
      assert_int_equal(pthread_create(&threads[k], NULL, open_once, &h), 0);
    }
    for (size_t k = 0; k < COUNT_OF(threads); k++) {
      void *code = NULL;
      pthread_join(threads[k], &code);
      assert_int_equal((ist_code)(uintptr_t)code, cases[i].code);
    }
    await_all_dead(leash);
    host_end(&h);
    unlink(script);
    unlink(pipe);
    temp_folder_remove(&folder);
    assert_int_equal(count_descriptors(), before);
  }
}

// For another processor it is started by a script with an emulator, which wants
// more memory than any limit here.
static bool is_emulated(void) {
  char probe[1100], head[2] = "";
  find_probe(probe, sizeof probe);
  FILE *file = fopen(probe, "r");
  assert_non_null(file);
  size_t got = fread(head, 1, 2, file);
  fclose(file);
  return got == 2 && memcmp(head, "#!", 2) == 0;
}

static void greedy_plugin__harms_itself_only(void **state) {
  (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skip();  // their own memory is beyond any limit
#endif
  if (is_emulated()) skip();
  temp_folder folder;
  temp_folder_make(&folder);
  char script[1100];
  snprintf(script, sizeof script, "%s/limited", folder.path);
  write_script(script, "ulimit -v 400000");
  host h;
  host_make(&h, "grow PJRT_Client_Create", script, 0);
  assert_refused(host_open(&h, false), IST_ERR_PLUGIN_CRASHED, h.err,
                 "no memory is left");
  host_end(&h);
  unlink(script);
  temp_folder_remove(&folder);
}

// A machine out of processes, or somebody who kills isthmus-probe, is not the
// plugin's doing.
static void program_that_ends_early__is_not_the_plugins_crash(void **state) {
  (void)state;
  temp_folder folder;
  temp_folder_make(&folder);
  char script[1100];
  snprintf(script, sizeof script, "%s/early", folder.path);
  write_script(script, "echo 'isthmus-probe " IST__CHILD_VERSION
                       "'; echo no process is left >&2; exit 1");
  host h;
  host_make(&h, "", script, 0);
  assert_refused(host_open(&h, false), IST_ERR_PROBE_MISSING, h.err,
                 "ended before it could tell what came of it (it said: no "
                 "process is left)");
  host_end(&h);
  unlink(script);
  temp_folder_remove(&folder);
}

static void nothing_is_inherited__that_hurts(void **state) {
  (void)state;
  host h;
  int fd = open("/dev/null", O_RDONLY);
  assert_true(fd >= 0);
  assert_int_equal(dup2(fd, 777), 777);  // not marked to be closed
  sigset_t mask, old_mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &mask, &old_mask);
  void (*old)(int) = signal(SIGTERM, SIG_IGN);
  host_make(&h, "inherits PJRT_Client_Create", NULL, 0);
  ist_code code = host_open(&h, false);
  signal(SIGTERM, old);
  pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
  close(777);
  close(fd);
  assert_refused(code, IST_ERR_PLUGIN_CRASHED, h.err,
                 "descriptor closed, input empty, signal default, mask empty");
  host_end(&h);
}

// A host that lets the system collect its children, or collects all of them
// elsewhere, takes ours too.
static void collected_child__is_told_as_ever(void **state) {
  (void)state;
  void (*old)(int) = signal(SIGCHLD, SIG_IGN);
  dies("abort PJRT_Client_Create", "died of SIGABRT", "PJRT_Client_Create");
  signal(SIGCHLD, old);
}

// The script writes one letter a start.
static size_t starts(const char *path) {
  struct stat facts;
  return stat(path, &facts) == 0 ? (size_t)facts.st_size : 0;
}

typedef struct counted {
  temp_folder folder;
  char script[1100], note[1100], command[1200];
} counted;

static void counted_make(counted *c) {
  temp_folder_make(&c->folder);
  snprintf(c->script, sizeof c->script, "%s/counted", c->folder.path);
  snprintf(c->note, sizeof c->note, "%s/note", c->folder.path);
  snprintf(c->command, sizeof c->command, "printf x >>'%s'", c->note);
  write_script(c->script, c->command);
}

static void counted_end(counted *c) {
  unlink(c->script);
  unlink(c->note);
  temp_folder_remove(&c->folder);
}

static void verdict__is_held_for_file_options_and_environment(void **state) {
  (void)state;
  counted c;
  host h;
  counted_make(&c);
  host_make(&h, "abort load", c.script, 0);
  assert_int_equal(host_open(&h, false), IST_ERR_PLUGIN_CRASHED);
  ist_error first = h.err;
  assert_int_equal(host_open(&h, false), IST_ERR_PLUGIN_CRASHED);
  assert_string_equal(h.err.message, first.message);
  assert_int_equal(starts(c.note), 1);
  setenv("CRASHING_PJRT", "", 1);
  for (int i = 0; i < 3; i++) {
    assert_ok(host_open(&h, false), h.err);
    ist_backend_release(h.backend);
    assert_int_equal(starts(c.note), 2);
  }
  ist_option option = {.name = "color", .kind = IST_OPTION_BOOL};
  ist_backend_options options = {.struct_size = sizeof options,
                                 .path = h.plugin,
                                 .options = &option,
                                 .option_count = 1};
  // The plugin's own refusal is not held: the plugin may change its mind.
  for (size_t i = 3; i < 5; i++) {
    assert_refused(
        ist_backend_open(h.context, "pjrt", &options, &h.backend, &h.err),
        IST_ERR_PLUGIN, h.err, "color");
    assert_int_equal(starts(c.note), i);
  }
  host_end(&h);
  counted_end(&c);
}

// However many options, and however long: the plugin itself has the word.
static void request__may_be_of_any_size(void **state) {
  (void)state;
  enum {
    MANY = 3000,
    LONG = 3 << 20
  };
  host h;
  static ist_option many[MANY];
  static char text[LONG];
  static int64_t list[40000];
  memset(text, 'x', sizeof text - 1);
  for (size_t i = 0; i < COUNT_OF(list); i++) list[i] = INT64_MIN;
  for (size_t i = 0; i < MANY; i++) {
    many[i] = (ist_option){
        .name = "cpu_device_count", .kind = IST_OPTION_INT64, .int64 = 1};
  }
  host_make(&h, "", NULL, 0);
  ist_backend_options options = {.struct_size = sizeof options,
                                 .path = h.plugin,
                                 .options = many,
                                 .option_count = MANY};
  assert_ok(ist_backend_open(h.context, "pjrt", &options, &h.backend, &h.err),
            h.err);
  // The last one is looked at: it is the plugin that has no such option.
  const ist_option last[] = {
      {.name = "color", .kind = IST_OPTION_STRING, .string = text},
      {.name = "hues",
       .kind = IST_OPTION_INT64_LIST,
       .list = list,
       .list_size = COUNT_OF(list)}};
  for (size_t i = 0; i < COUNT_OF(last); i++) {
    ist_backend *none = NULL;
    many[MANY - 1] = last[i];
    assert_refused(ist_backend_open(h.context, "pjrt", &options, &none, &h.err),
                   IST_ERR_PLUGIN, h.err, last[i].name);
    assert_null(none);
  }
  host_end(&h);
}

// It ends while the request is still being sent.
static void program_that_reads_nothing__is_told_as_ever(void **state) {
  (void)state;
  static char text[3 << 20];
  memset(text, 'x', sizeof text - 1);
  const ist_option option = {
      .name = "color", .kind = IST_OPTION_STRING, .string = text};
  host h;
  host_make(&h, "", "/bin/true", 0);
  ist_backend_options options = {.struct_size = sizeof options,
                                 .path = h.plugin,
                                 .options = &option,
                                 .option_count = 1};
  assert_refused(
      ist_backend_open(h.context, "pjrt", &options, &h.backend, &h.err),
      IST_ERR_PROBE_MISSING, h.err, "did not answer");
  host_end(&h);
}

static void *open_once(void *arg) {
  host *h = arg;
  ist_backend_options options = {.struct_size = sizeof options,
                                 .path = h->plugin};
  ist_backend *backend = NULL;
  ist_error err = {0};
  ist_code code =
      ist_backend_open(h->context, "pjrt", &options, &backend, &err);
  ist_backend_release(backend);
  return (void *)(uintptr_t)code;
}

static void openers_at_once__share_one_child(void **state) {
  (void)state;
  counted c;
  host h;
  counted_make(&c);
  static const struct {
    const char *rule;
    ist_code code;
  } cases[] = {{"", IST_OK},
               {"abort PJRT_Client_Create", IST_ERR_PLUGIN_CRASHED}};
  for (size_t k = 0; k < COUNT_OF(cases); k++) {
    pthread_t threads[6];
    host_make(&h, cases[k].rule, c.script, 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
      assert_int_equal(pthread_create(&threads[i], NULL, open_once, &h), 0);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
      void *code = NULL;
      pthread_join(threads[i], &code);
      assert_int_equal((ist_code)(uintptr_t)code, cases[k].code);
    }
    assert_int_equal(starts(c.note), k + 1);
    host_end(&h);
  }
  counted_end(&c);
}

static void verdicts__are_bounded(void **state) {
  (void)state;
  host h;
  host_make(&h, "abort load", NULL, 0);
  for (int i = 0; i < IST__MOST_VERDICTS + 3; i++) {
    char text[32];
    snprintf(text, sizeof text, "%d", i);
    setenv("ISTHMUS_TEST_TURN", text, 1);
    assert_int_equal(host_open(&h, false), IST_ERR_PLUGIN_CRASHED);
    assert_true(h.context->verdicts.count <= IST__MOST_VERDICTS);
  }
  assert_int_equal(h.context->verdicts.count, IST__MOST_VERDICTS);
  unsetenv("ISTHMUS_TEST_TURN");
  host_end(&h);
}

static void trusted_plugin__needs_no_child(void **state) {
  (void)state;
  host h;
  host_make(&h, "", "/nowhere/isthmus-probe", 0);
  assert_refused(host_open(&h, false), IST_ERR_PROBE_MISSING, h.err,
                 "is not at /nowhere/isthmus-probe; needs its path in the "
                 "context's option probe_program");
  assert_ok(host_open(&h, true), h.err);
  host_end(&h);
}

static void another_program__is_not_taken_for_the_probe(void **state) {
  (void)state;
  host h;
  int before = count_descriptors();
  host_make(&h, "", "/bin/true", 0);
  assert_refused(host_open(&h, false), IST_ERR_PROBE_MISSING, h.err,
                 "/bin/true did not answer as isthmus-probe 2 does");
  host_end(&h);
  assert_int_equal(count_descriptors(), before);
}

static void negative_deadline__is_refused(void **state) {
  (void)state;
  ist_context_options options = {.struct_size = sizeof options,
                                 .probe_deadline_ms = -1};
  ist_context *context = NULL;
  ist_error err = {0};
  assert_refused(ist_context_create(&options, &context, &err), IST_ERR_ARGUMENT,
                 err, "probe_deadline_ms is -1");
  assert_null(context);
}

// What the child's library says is what it would have said here.
static void refusals__come_through_the_child(void **state) {
  (void)state;
  static const struct {
    const char *rules, *says;
    ist_code code;
  } cases[] = {
      {"minor=56", "speaks PJRT API 0.56; needs", IST_ERR_PLUGIN_VERSION},
      {"devices=0", "", IST_ERR_NO_DEVICE},
      {"fail=Client_Create:1", "PJRT_Client_Create", IST_ERR_PLUGIN},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    host h;
    host_make(&h, "", NULL, 0);
    setenv("LYING_PJRT_RULES", cases[i].rules, 1);
    ist_code code = host_open(&h, false);
    unsetenv("LYING_PJRT_RULES");
    assert_refused(code, cases[i].code, h.err, cases[i].says);
    if (cases[i].code == IST_ERR_PLUGIN) assert_int_equal(h.err.native, 13);
    host_end(&h);
  }
}

static void refusal__names_the_file_as_the_caller_did(void **state) {
  (void)state;
  host h;
  temp_folder folder;
  temp_folder_make(&folder);
  char link[1100];
  host_make(&h, "", NULL, 0);
  snprintf(link, sizeof link, "%s/named.so", folder.path);
  assert_int_equal(symlink(h.plugin, link), 0);
  memcpy(h.plugin, link, sizeof h.plugin);
  setenv("LYING_PJRT_RULES", "minor=56", 1);
  ist_code code = host_open(&h, false);
  unsetenv("LYING_PJRT_RULES");
  char says[1200];
  snprintf(says, sizeof says, "plugin %s cannot be used", link);
  assert_refused(code, IST_ERR_PLUGIN_VERSION, h.err, says);
  host_end(&h);
  unlink(link);
  temp_folder_remove(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(death__is_told_with_its_signal_and_step),
      cmocka_unit_test(exit_of_the_process__is_told_with_its_status),
      cmocka_unit_test(verdict_by_the_plugin__is_not_believed),
      cmocka_unit_test(plugin_that_closes_descriptors__is_opened),
      cmocka_unit_test(process_left_behind__is_not_waited_for),
      cmocka_unit_test(last_words__are_folded_and_logged_whole),
      cmocka_unit_test(endless_talk__takes_no_memory),
      cmocka_unit_test(hanging_plugin__is_killed_at_the_deadline),
      cmocka_unit_test(endless_probe__is_killed_with_its_group),
      cmocka_unit_test(request__may_be_of_any_size),
      cmocka_unit_test(program_that_reads_nothing__is_told_as_ever),
      cmocka_unit_test(greedy_plugin__harms_itself_only),
      cmocka_unit_test(program_that_ends_early__is_not_the_plugins_crash),
      cmocka_unit_test(nothing_is_inherited__that_hurts),
      cmocka_unit_test(collected_child__is_told_as_ever),
      cmocka_unit_test(verdict__is_held_for_file_options_and_environment),
      cmocka_unit_test(openers_at_once__share_one_child),
      cmocka_unit_test(verdicts__are_bounded),
      cmocka_unit_test(trusted_plugin__needs_no_child),
      cmocka_unit_test(another_program__is_not_taken_for_the_probe),
      cmocka_unit_test(negative_deadline__is_refused),
      cmocka_unit_test(refusals__come_through_the_child),
      cmocka_unit_test(refusal__names_the_file_as_the_caller_did),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
