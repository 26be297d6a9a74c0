// SPDX-License-Identifier: Apache-2.0
// conformance_child.c: runs the checks in a process of their own, which is made
// again behind each check that killed it. The command has one thread and has
// loaded no plugin when it forks.

#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/context.h"
#include "backend/pjrt/pjrt_backend.h"
#include "backend/pjrt/pjrt_report.h"
#include "base/signal_name.h"
#include "conformance_check.h"

// Longer than any check takes, on a busy machine too.
#define SECONDS_OF_A_CHECK 120

// What a child writes: first that a step begins, then its results. Shorter than
// a pipe writes at once.
typedef struct record {
  // Of a result; BEGINS + step; FAILED: the plugin did not open; TRIES + the
  // number of a capability, whose trial begins; TRIES - 1: none is tried now.
  int32_t index;
  int32_t verdict;
  int64_t said;  // bytes on standard error before it
  char reason[400];
} record;

enum {
  STEP_OPEN = 0,    // and the first thing that can be wrong with a plugin
  STEP_REPORT = 1,  // all capabilities
  STEP_CHECKS = 2,
  STEP_CLOSE = STEP_CHECKS + IST__CHECK_COUNT,
  STEP_COUNT,
  BEGINS = 100000,
  FAILED = 200000,
  TRIES = 300000
};

// Where the children have got to.
typedef struct progress {
  int step;
  int trial;        // of a report: the capability, or -1
  uint64_t losses;  // a set of those whose trial killed a child
  int64_t said;
} progress;

// ---- in the child

static void tell(int fd, int32_t index, int verdict, const char *reason) {
  record r = {.index = index, .verdict = verdict};
  r.said = lseek(STDERR_FILENO, 0, SEEK_END);
  (void)snprintf(r.reason, sizeof r.reason, "%s", reason);
  if (write(fd, &r, sizeof r) != (ssize_t)sizeof r) _exit(3);
}

// What is not needed may be absent; what is there must work.
static void tell_capability(int fd, int index, const ist_pjrt_capability *c) {
  bool needed = strcmp(c->name, "copy_in") == 0 ||
                strcmp(c->name, "copy_out") == 0 ||
                strcmp(c->name, "ready_event") == 0 ||
                strcmp(c->name, "element_types") == 0;
  // Memory that the host cannot read is no fault, nor a copy where an alias was
  // only allowed.
  bool absent = !c->present || strcmp(c->name, "zero_copy") == 0 ||
                strstr(c->reason, "not tried") != NULL ||
                strstr(c->reason, "does not have it") != NULL ||
                strstr(c->reason, "does not implement") != NULL ||
                strstr(c->reason, "no memory of this process") != NULL ||
                strstr(c->reason, "in this version") != NULL;
  int verdict = c->works            ? IST__OUTCOME_PASS
                : absent && !needed ? IST__OUTCOME_SKIP
                                    : IST__OUTCOME_FAIL;
  tell(fd, IST__CHECK_COUNT + index, verdict, c->reason);
}

static void note_trial(void *self, const char *name) {
  tell(*(const int *)self, TRIES + ist__pjrt_capability_find(name), 0, "");
}

static void report(ist__bench *bench, uint64_t lost, int fd) {
  const ist__pjrt_losses losses = {.set = lost};
  ist__env *env = &bench->client->context->env;
  const ist_device *device = ist_backend_device(bench->backend, 0);
  ist_device_info info = {.struct_size = sizeof info};
  ist_pjrt_report *found = NULL;
  ist_error err = {0};
  env->step_self = &fd;
  env->trial = note_trial;
  if (ist_device_describe(device, &info, &err) != IST_OK ||
      ist__pjrt_report_make(device, &losses, &found, &err) != IST_OK) {
    tell(fd, FAILED, (int)err.code, err.message);
    _exit(0);
  }
  env->trial = NULL;
  for (size_t i = 0; i < ist_pjrt_report_count(found); i++) {
    ist_pjrt_capability c = {.struct_size = sizeof c};
    if ((lost >> i & 1) == 0 &&
        ist_pjrt_report_capability(found, info.default_memory, i, &c, &err) ==
            IST_OK) {
      tell_capability(fd, (int)i, &c);
    }
  }
  ist_pjrt_report_release(found);
}

static void open_plugin(ist__bench *bench, ist__cmd *cmd, const char *path,
                        int fd) {
  ist_error err = {0};
  cmd->trusted = true;  // this is a process of its own already
  if (ist__cmd_backend(cmd, "pjrt", path, &bench->backend, &err) != IST_OK) {
    tell(fd, FAILED, (int)err.code, err.message);
    _exit(0);
  }
  bench->client = ist__pjrt_client_of(bench->backend);
  bench->pjrt = &bench->client->plugin.pjrt;
  bench->memory = &bench->client->devices[0]
                       .memories[bench->client->facts[0].default_memory];
}

static void check(ist__bench *bench, int index, int fd) {
  bench->verdict = IST__OUTCOME_PASS;
  bench->reason[0] = '\0';
  bench->now = index;
  memset(bench->block, 0, sizeof bench->block);
  ist__check_row_at(index).run(bench);
  tell(fd, index, (int)bench->verdict, bench->reason);
}

// What the command does about these would hide how a check died.
static void forget_handlers(void) {
  static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE,
                                SIGILL,  SIGTRAP, SIGALRM};
  struct sigaction plain = {.sa_handler = SIG_DFL};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    (void)sigaction(numbers[i], &plain, NULL);
  }
}

static void live(ist__cmd *cmd, const char *path, const progress *from,
                 int fd) {
  ist__bench bench = {0};
  forget_handlers();
  for (int step = STEP_OPEN; step < STEP_COUNT; step++) {
    if (step != STEP_OPEN && step < from->step) continue;
    tell(fd, BEGINS + step, 0, "");
    (void)alarm(SECONDS_OF_A_CHECK);
    if (step == STEP_OPEN) {
      open_plugin(&bench, cmd, path, fd);
    } else if (step == STEP_REPORT) {
      report(&bench, from->losses, fd);
    } else if (step < STEP_CLOSE) {
      check(&bench, step - STEP_CHECKS, fd);
    } else {
      ist__cmd_finish(cmd, 0);  // closes what was opened
      tell(fd, BEGINS + STEP_COUNT, 0, "");
    }
  }
  _exit(0);
}

// ---- in the parent

// The first line that a check that died wrote to standard error and that says
// something, without the time and place that logs put before it.
static void last_words(int said, int64_t from, char *out, size_t size) {
  char text[2048];
  ssize_t got = pread(said, text, sizeof text - 1, (off_t)from);
  text[got > 0 ? got : 0] = '\0';
  char *line = text + strspn(text, "\r\n \t");
  if (strncmp(line, "WARNING: All log messages", 25) == 0) {
    line += strcspn(line, "\r\n");
    line += strspn(line, "\r\n \t");
  }
  line[strcspn(line, "\r\n")] = '\0';
  char *place = strstr(line, "] ");
  if (place != NULL && place[2] != '\0') line = place + 2;
  (void)snprintf(out, size, "%s%.200s", line[0] != '\0' ? ": " : "", line);
}

static void bury(int status, const char *words, char *out, size_t size) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    (void)snprintf(out, size, "it did not end in %d seconds%s",
                   SECONDS_OF_A_CHECK, words);
  } else if (WIFSIGNALED(status)) {
    (void)snprintf(out, size, "it killed the process: %s%s",
                   ist__signal_name_make(WTERMSIG(status)).text, words);
  } else {
    (void)snprintf(out, size, "it ended the process with status %d%s",
                   WEXITSTATUS(status), words);
  }
}

static void fail(ist__result *result, const char *why) {
  result->verdict = IST__OUTCOME_FAIL;
  (void)snprintf(result->reason, sizeof result->reason, "%s", why);
}

// Fails what a step would have found out, and goes on behind it. A trial of a
// report costs its capability, and the report is made again without it.
static ist_code blame(progress *now, const char *why, ist__result *results,
                      ist_error *err) {
  int step = now->step;
  if (step == STEP_REPORT && now->trial >= 0 &&
      (now->losses >> now->trial & 1) == 0) {
    now->losses |= UINT64_C(1) << now->trial;
    fail(&results[IST__CHECK_COUNT + now->trial], why);
    return IST_OK;
  }
  now->step++;
  if (step == STEP_OPEN) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "the plugin cannot be checked: opening it failed: %s "
                         "(code 0); needs one that opens",
                         why);
  }
  int first = step - STEP_CHECKS, last = first + 1;
  if (step == STEP_REPORT) {
    first = IST__CHECK_COUNT;
    last = IST__RESULT_COUNT;
  }
  if (step == STEP_CLOSE) return IST_OK;  // it is told with the last check
  for (int i = first; i < last; i++) fail(&results[i], why);
  return IST_OK;
}

// Reads what a child writes until its end; the step is the last that began.
static ist_code listen(int fd, progress *now, ist__result *results,
                       ist_error *err) {
  record r;
  for (;;) {
    ssize_t got = read(fd, &r, sizeof r);
    if (got < 0 && errno == EINTR) continue;
    if (got != (ssize_t)sizeof r) return IST_OK;
    r.reason[sizeof r.reason - 1] = '\0';
    now->said = r.said;
    if (r.index == FAILED) {
      return ist_error_set(err, (ist_code)r.verdict, "%s", r.reason);
    }
    if (r.index >= TRIES - 1 && r.index < TRIES + IST__CAPABILITY_COUNT) {
      now->trial = r.index - TRIES;
    } else if (r.index >= BEGINS) {
      now->step = r.index - BEGINS;
      now->trial = -1;
    } else if (r.index >= 0 && r.index < IST__RESULT_COUNT) {
      results[r.index].verdict = (ist__outcome)r.verdict;
      memcpy(results[r.index].reason, r.reason, sizeof r.reason);
    }
  }
}

static ist_code one_child(ist__cmd *cmd, const char *path, progress *now,
                          ist__result *results, ist_error *err) {
  int ends[2] = {-1, -1}, status = 0;
  FILE *words = tmpfile();
  pid_t child = -1;
  if (words != NULL && pipe(ends) == 0) {
    (void)fflush(NULL);
    child = fork();
  }
  if (child < 0) {
    if (words != NULL) fclose(words);
    return ist_error_set(
        err, IST_ERR_IO,
        "the checks could not be read or written: the system gave no "
        "process; needs one, and a file in TMPDIR");
  }
  if (child == 0) {
    close(ends[0]);
    (void)dup2(fileno(words), STDERR_FILENO);
    live(cmd, path, now, ends[1]);
  }
  close(ends[1]);
  ist_code code = listen(ends[0], now, results, err);
  close(ends[0]);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (code == IST_OK && now->step != STEP_COUNT) {
    char line[256], why[400];
    last_words(fileno(words), now->said, line, sizeof line);
    bury(status, line, why, sizeof why);
    code = blame(now, why, results, err);
  }
  fclose(words);
  return code;
}

ist_code ist__conformance_run(ist__cmd *cmd, const char *path,
                              ist__result *results, ist_error *err) {
  memset(results, 0, IST__RESULT_COUNT * sizeof *results);
  ist_code code = IST_OK;
  progress now = {.step = STEP_OPEN, .trial = -1};
  while (code == IST_OK && now.step < STEP_COUNT) {
    ist__cmd_progress(cmd, "checking, from step %d of %d", now.step,
                      STEP_COUNT);
    code = one_child(cmd, path, &now, results, err);
  }
  ist__cmd_progress(cmd, NULL);
  return code;
}
