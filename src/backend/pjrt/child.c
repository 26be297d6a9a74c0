// SPDX-License-Identifier: Apache-2.0
// child.c: spawns isthmus-probe, listens to it, and says how the plugin ended.

#define _GNU_SOURCE  // pipe2
#include "backend/pjrt/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/pjrt/child_speech.h"
#include "backend/pjrt/child_wire.h"
#include "base/errno_text.h"
#include "base/signal_name.h"

extern char **environ;

enum {
  DEADLINE_MS = 120 * 1000
};

enum {
  REQUEST,
  ANSWER,
  SPEECH,
  PIPES
};

// One child process with this side's ends of its pipes.
typedef struct talk {
  const ist__child *child;
  char program[IST__PATH_SIZE];
  int32_t deadline_ms;
  uint64_t losses;                 // known before
  int ours[PIPES], theirs[PIPES];  // -1: closed
  size_t sent;                     // of the request
  pid_t pid;
  bool late;  // no answer came, not even of the deadline
  ist__child_answer answer;
  ist__speech speech;
} talk;

static void shut(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

// ---- starting

// A pipe whose ends no other child inherits and that are none of 0, 1 and 2,
// which the child's own ends become; 0 or an errno. The request's is a pair of
// sockets: who writes to one whose reader is gone can do without SIGPIPE.
static int make_pipe(bool sockets, int out[2]) {
  int ends[2];
  int made = sockets ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)
                     : pipe2(ends, O_CLOEXEC);
  if (made != 0) return errno;
  for (int i = 0; i < 2; i++) {
    out[i] = fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
    int why = errno;
    close(ends[i]);
    if (out[i] >= 0) continue;
    if (i == 0) close(ends[1]);
    if (i == 1) shut(&out[0]);
    return why;
  }
  return 0;
}

static int make_pipes(talk *t) {
  for (int i = 0; i < PIPES; i++) {
    int ends[2] = {-1, -1};
    int why = make_pipe(i == REQUEST, ends);
    if (why != 0) return why;
    t->ours[i] = ends[i == REQUEST ? 1 : 0];
    t->theirs[i] = ends[i == REQUEST ? 0 : 1];
  }
  return 0;
}

// Nothing of the host's state is inherited but its environment and folder:
// signals are as by default, descriptors end with the exec (those that the host
// did not mark, the program closes).
static int spawn(talk *t, char *const *words) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  int why = posix_spawn_file_actions_init(&actions);
  if (why != 0) return why;
  why = posix_spawnattr_init(&attributes);
  if (why != 0) {
    posix_spawn_file_actions_destroy(&actions);
    return why;
  }
  for (int i = 0; i < PIPES && why == 0; i++) {
    why = posix_spawn_file_actions_adddup2(&actions, t->theirs[i], i);
  }
  if (why == 0) why = posix_spawnattr_setsigdefault(&attributes, &all);
  if (why == 0) why = posix_spawnattr_setsigmask(&attributes, &none);
  if (why == 0) why = posix_spawnattr_setpgroup(&attributes, 0);
  if (why == 0) {
    why = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETPGROUP);
  }
  if (why == 0) {
    why = posix_spawn(&t->pid, words[0], &actions, &attributes, words, environ);
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return why;
}

static ist_code start(talk *t, ist_error *err) {
  char deadline[16], task[IST__CHILD_TASK];
  char version[] = IST__CHILD_VERSION;
  char path[IST__PATH_SIZE];
  (void)snprintf(deadline, sizeof deadline, "%d", (int)t->deadline_ms);
  memcpy(path, t->child->file->path, sizeof path);
  ist__child_task(t->child->report, t->losses, task);
  char *words[] = {t->program, version, deadline, task, path, NULL};
  int why = make_pipes(t);
  if (why == 0) why = spawn(t, words);
  for (int i = 0; i < PIPES; i++) shut(&t->theirs[i]);
  if (why == 0) return IST_OK;
  return ist_error_set(err, IST_ERR_PROBE_MISSING,
                       "plugin %s cannot be opened: isthmus-probe, which tries "
                       "unknown plugins, could not be started: %s; needs a "
                       "process of its own, or the option trusted",
                       t->child->path, ist__errno_text_make(why).text);
}

// ---- listening

static int64_t now_ms(void) {
  struct timespec now = {0};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Sends what fits of the request; a program that has ended wants no more of it.
static void send_part(talk *t) {
  const ist__child *child = t->child;
  size_t left = child->request_size - t->sent;
  ssize_t done = 0;
  if (left > 0) {
    done = send(t->ours[REQUEST], child->request + t->sent, left,
                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done < 0 && (errno == EINTR || errno == EAGAIN)) return;
  }
  if (done > 0) t->sent += (size_t)done;
  if (done <= 0 || t->sent == child->request_size) shut(&t->ours[REQUEST]);
}

// Takes what can be read of one pipe; true when no more is wanted of it.
static bool take(talk *t, int pipe) {
  char bytes[4096];
  ssize_t got = read(t->ours[pipe], bytes, sizeof bytes);
  if (got < 0) return errno != EINTR && errno != EAGAIN;
  if (pipe == SPEECH) ist__speech_add(&t->speech, bytes, (size_t)got);
  if (got == 0) return true;
  return pipe == ANSWER && ist__child_read(&t->answer, bytes, (size_t)got);
}

// A process that the plugin has left behind may hold the pipe open: what is in
// it when the plugin has ended is all that the plugin said.
static void drain(talk *t) {
  struct pollfd rest = {.fd = t->ours[SPEECH], .events = POLLIN};
  int turns = 0;
  while (rest.fd >= 0 && turns++ < 1024 && poll(&rest, 1, 0) == 1) {
    if (take(t, SPEECH)) break;
  }
}

static void listen_to(talk *t) {
  int64_t end = now_ms() + t->deadline_ms + t->child->grace_ms;
  while (t->ours[ANSWER] >= 0) {
    struct pollfd fds[PIPES] = {{.fd = t->ours[REQUEST], .events = POLLOUT},
                                {.fd = t->ours[ANSWER], .events = POLLIN},
                                {.fd = t->ours[SPEECH], .events = POLLIN}};
    int64_t left = end - now_ms();
    t->late = left <= 0;
    if (t->late) break;
    if (poll(fds, PIPES, left < INT32_MAX ? (int)left : INT32_MAX) < 0) {
      if (errno != EINTR && errno != EAGAIN) break;
      continue;
    }
    if (fds[REQUEST].revents != 0) send_part(t);
    if (fds[SPEECH].revents != 0 && take(t, SPEECH)) shut(&t->ours[SPEECH]);
    if (fds[ANSWER].revents != 0 && take(t, ANSWER)) shut(&t->ours[ANSWER]);
  }
  drain(t);
}

// Waits for the program's end, in short turns that grow: a host may have no
// use of SIGCHLD. False when somebody else has collected it; else its number
// stays taken, whether it has ended or its time is up.
static bool is_left(pid_t pid, int64_t end) {
  struct timespec turn = {.tv_nsec = 100 * 1000};
  for (;;) {
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
      return errno != ECHILD;
    }
    if (info.si_pid == pid || now_ms() >= end) return true;
    (void)nanosleep(&turn, NULL);
    if (turn.tv_nsec < 20 * 1000 * 1000) turn.tv_nsec *= 2;
  }
}

// The program ends when its pipe is closed, at the latest; what does not is
// killed.
static void finish(talk *t) {
  for (int i = 0; i < PIPES; i++) {
    shut(&t->ours[i]);
    shut(&t->theirs[i]);
  }
  if (t->pid <= 0) return;
  int64_t grace = t->late ? 0 : t->child->grace_ms;
  if (!is_left(t->pid, now_ms() + grace)) return;
  // With it goes what it may have left behind in its group.
  (void)kill(-t->pid, SIGKILL);
  while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR) continue;
}

// ---- what came of it

static void say_end(const talk *t, ist__text *out) {
  const ist__child_answer *answer = &t->answer;
  switch (answer->end) {
    case IST__CHILD_EXIT:
      ist__text_add(out, "it ended the process with exit status %d",
                    (int)answer->number);
      return;
    case IST__CHILD_SIGNAL:
      ist__text_add(out, "it died of %s",
                    ist__signal_name_make(answer->number).text);
      return;
    case IST__CHILD_LATE:
      ist__text_add(out, "it had not ended after %g s",
                    t->deadline_ms / 1000.0);
      return;
    case IST__CHILD_UNKNOWN:
      return;  // unreachable: refuse has told it, as no death of the plugin's
  }
}

// A death that comes from outside, or from a busy machine, may not come again.
static bool would_repeat(const ist__child_answer *answer) {
  if (answer->passed) return true;
  if (answer->refused) return false;
  return answer->end == IST__CHILD_EXIT ||
         (answer->end == IST__CHILD_SIGNAL && answer->number != SIGKILL &&
          answer->number != SIGTERM);
}

// The plugin's own refusal, in which the file is called as the caller called
// it.
static ist_code pass_refusal(const talk *t, ist_error *err) {
  const ist_error *cause = &t->answer.err;
  const char *path = t->child->file->path;
  const char *at = strstr(cause->message, path);
  if (at == NULL || path[0] == '\0') {
    return ist__error_native(err, cause->code, cause->native, "%s",
                             cause->message);
  }
  return ist__error_native(err, cause->code, cause->native, "%.*s%s%s",
                           (int)(at - cause->message), cause->message,
                           t->child->path, at + strlen(path));
}

static ist_code refuse(const talk *t, ist_error *err) {
  const ist__child_answer *answer = &t->answer;
  if (answer->refused) return pass_refusal(t, err);
  const char *said = t->speech.last;
  const char *before = said[0] != '\0' ? " (it said: " : "";
  const char *after = said[0] != '\0' ? ")" : "";
  if (answer->end == IST__CHILD_UNKNOWN) {
    return ist_error_set(
        err, IST_ERR_PROBE_MISSING,
        "plugin %s cannot be opened: isthmus-probe ended before it could tell "
        "what came of it%s%s%s; needs one that can start a process of its own",
        t->child->path, before, said, after);
  }
  char how[96];
  ist__text end = ist__text_make(how, sizeof how);
  say_end(t, &end);
  return ist__error_native(
      err, IST_ERR_PLUGIN_CRASHED,
      answer->end == IST__CHILD_LATE ? 0 : answer->number,
      "plugin %s cannot be opened: %s in the step %s%s when it was tried in a "
      "process of its own%s%s%s; needs a plugin that can be opened",
      t->child->path, how, answer->step[0] != '\0' ? answer->step : "start",
      t->child->report < 0 ? "" : " of a report", before, said, after);
}

// Death in a trial is of that capability, unless it was not to be tried.
static void note_loss(const talk *t, ist__pjrt_losses *losses) {
  const ist__child_answer *answer = &t->answer;
  int number = ist__pjrt_capability_find(answer->trial);
  if (t->child->report < 0 || answer->end == IST__CHILD_UNKNOWN || number < 0 ||
      (losses->set >> number & 1) != 0) {
    return;
  }
  losses->set |= UINT64_C(1) << number;
  ist__text how =
      ist__text_make(losses->how[number], sizeof losses->how[number]);
  if (answer->end == IST__CHILD_LATE) {
    ist__text_add(&how, "never answers: not in %g s", t->deadline_ms / 1000.0);
  } else if (answer->end == IST__CHILD_EXIT) {
    ist__text_add(&how, "ends the process: exit status %d",
                  (int)answer->number);
  } else {
    ist__text_add(&how, "kills the process: %s",
                  ist__signal_name_make(answer->number).text);
  }
}

static ist_code judge(talk *t, ist_error *err) {
  if (!t->answer.greeted) {
    return ist_error_set(err, IST_ERR_PROBE_MISSING,
                         "plugin %s cannot be opened: %s did not answer as "
                         "isthmus-probe %s does%s%s; needs the isthmus-probe "
                         "of this version in the option probe_program",
                         t->child->path, t->program, IST__CHILD_VERSION,
                         t->speech.last[0] != '\0' ? ": " : "", t->speech.last);
  }
  return t->answer.passed ? IST_OK : refuse(t, err);
}

// One process. The trial that ends it is a loss more.
static ist_code ask_once(const ist__env *env, const ist__child *child,
                         ist__pjrt_losses *losses, bool *out_held,
                         ist_error *err) {
  char name[64];
  *out_held = false;
  ist__plugin_file_name(child->path, name, sizeof name);
  talk t = {
      .child = child,
      .deadline_ms = child->deadline_ms > 0 ? child->deadline_ms : DEADLINE_MS,
      .losses = losses->set,
      .ours = {-1, -1, -1},
      .theirs = {-1, -1, -1},
      .speech = {.env = env, .name = name}};
  ist_code code =
      ist__child_program(child->program, child->path, t.program, err);
  if (code == IST_OK) code = start(&t, err);
  if (code == IST_OK) {
    listen_to(&t);
    if (t.late && t.answer.end == IST__CHILD_UNKNOWN) {
      t.answer.end = IST__CHILD_LATE;
    }
    code = judge(&t, err);
    *out_held = t.answer.greeted && would_repeat(&t.answer);
    if (code == IST_ERR_PLUGIN_CRASHED) note_loss(&t, losses);
    ist__speech_end(&t.speech,
                    code == IST_OK ? IST_LOG_DEBUG : IST_LOG_WARNING);
  }
  finish(&t);
  return code;
}

// Every turn but the last adds a loss, so there are no more turns than
// capabilities.
ist_code ist__child_try(const ist__env *env, const ist__child *child,
                        ist__pjrt_losses *losses, bool *out_held,
                        ist_error *err) {
  uint64_t before;
  ist_code code;
  do {
    ist_error cause = {0};
    before = losses->set;
    code = ask_once(env, child, losses, out_held, &cause);
    if (code != IST_OK && losses->set == before) {
      (void)ist__error_native(err, code, cause.native, "%s", cause.message);
    }
  } while (losses->set != before);
  return code;
}
