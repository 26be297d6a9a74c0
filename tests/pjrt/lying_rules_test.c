// SPDX-License-Identifier: Apache-2.0
// Every rule of the lying plugin, gone through with all that the library does:
// an error of the code that is named here, or the right values; nothing left
// over, and no call that would kill a real plugin. capability_rules_test.c has
// what a rule costs, slot_sweep_test.c those that break one slot.

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/plugin_journey.h"

// How a journey ends where device memory is the host's, and where it is not;
// then the same when the lies begin after the backend was opened.
typedef struct row {
  const char *rules;
  ist_code ends[4];
} row;

// What nothing can tell once it was trusted: not tried then.
#define UNTOLD ((ist_code) - 1)
#define EVERY(code) code, code, code, code
#define OPENING(code) code, code, UNTOLD, UNTOLD
#define BOTH(first, later) first, first, later, later

static const row rows[] = {
#define ROW(rules, ...) {rules, {__VA_ARGS__}},
#include "lying_rules_rows.def"
#undef ROW
};

// Completes what is pending until it is told to stop.
typedef struct releaser {
  pjrt_bench *bench;
  pthread_t thread;
  atomic_bool stop;
} releaser;

static void *release(void *arg) {
  releaser *r = arg;
  while (!atomic_load(&r->stop)) {
    r->bench->lying.release_events();
    sched_yield();
  }
  return NULL;
}

static void go(const row *r, int way) {
  _Alignas(64) journey j;
  bool told = strstr(r->rules, "addressable=") != NULL, late = way >= 2;
  const char *host = way % 2 == 0 && !told ? "addressable=1 " : "";
  char rules[300];
  snprintf(rules, sizeof rules, "%s%s", host, r->rules);
  if (r->ends[way] == UNTOLD) return;
  journey_begin(&j, late ? host : rules, 0, 0);
  if (late) j.later = rules;
  releaser all = {.bench = &j.bench};
  bool delays = strstr(rules, "delay_events") != NULL;
  if (delays) pthread_create(&all.thread, NULL, release, &all);
  ist_code code = journey_go(&j);
  if (code != r->ends[way]) {
    fail_msg("%s%s: ended with %d, not %d: %s", late ? "later: " : "", rules,
             code, r->ends[way], code == IST_OK ? "" : j.bench.err.message);
  }
  journey_end(&j);
  if (!delays) return;
  atomic_store(&all.stop, true);
  pthread_join(all.thread, NULL);
}

static void every_rule__ends_in_an_error_or_in_right_values(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(rows); i++)
    for (int way = 0; way < 4; way++) go(&rows[i], way);
}

// ---- no rule is without a test

static bool has_row(const char *rule, const char *word, size_t size) {
  char text[64];
  snprintf(text, sizeof text, "%s=%.*s", rule, (int)size, word);
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    const char *at = strstr(rows[i].rules, text);
    if (at == NULL || (at != rows[i].rules && at[-1] != ' ')) continue;
    char end = at[strlen(text)];
    if (size == 0 || end == '\0' || end == ' ') return true;
  }
  return false;
}

static void assert_rule(const char *rule, const char *words) {
  while (*words != '\0') {
    size_t length = strcspn(words, "|");
    if (!has_row(rule, words, length))
      fail_msg("no row for %s=%.*s", rule, (int)length, words);
    words += length + (words[length] == '|');
  }
  if (!has_row(rule, "", 0)) fail_msg("no row for %s", rule);
}

// Those that break one call are slot_sweep_test.c's and pjrt_fault_test.c's.
static bool is_swept(const char *rule) {
  static const char *const swept[] = {"wrap", "fail_any", "fail_event"};
  for (size_t i = 0; i < COUNT_OF(swept); i++)
    if (strcmp(rule, swept[i]) == 0) return true;
  return false;
}

static void every_rule__has_a_row(void **state) {
  (void)state;
#define WORD(name, words, what) assert_rule(#name, words);
#define NUMBER(name, fallback, what) \
  if (!is_swept(#name)) assert_rule(#name, "");
#define TEXT(name, fallback, what) \
  if (!is_swept(#name)) assert_rule(#name, "");
#define CALLS(name, what)
#include "lying_pjrt/rules.def"
#undef WORD
#undef NUMBER
#undef TEXT
#undef CALLS
}

// What contains it is the child process that opens a plugin first.
static void plugin_that_dies__takes_its_process_along(void **state) {
  (void)state;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    lying_levers lying = lying_find();
    lying.set_rules("die=Client_Create");
    ist_context *context = NULL;
    ist_backend *backend = NULL;
    ist_backend_options how = {.struct_size = sizeof how,
                               .path = plugin_path("lying"),
                               .trusted = true};
    signal(SIGABRT, SIG_DFL);
    if (freopen("/dev/null", "w", stderr) == NULL) _exit(1);
    ist_context_create(NULL, &context, NULL);
    ist_backend_open(context, "pjrt", &how, &backend, NULL);
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_rule__has_a_row),
      cmocka_unit_test(every_rule__ends_in_an_error_or_in_right_values),
      cmocka_unit_test(plugin_that_dies__takes_its_process_along),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
