// SPDX-License-Identifier: Apache-2.0
// isthmus_probe.c: the program isthmus-probe, in which the library opens an
// unknown plugin first. It starts a child that opens it, watches that child to
// its end or the deadline, and says how it ended on standard output (the lines
// are those of child_wire.h). Not for people: theirs is `isthmus probe`.

#define _GNU_SOURCE  // sigtimedwait's signals, poll
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/errno_text.h"
#include "base/text.h"
#include "child_trial.h"

// A sanitizer leaves the plugin's signals alone, so that it dies of them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEN __attribute__((visibility("default")))
SEEN const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:"
         "handle_sigill=0";
}
SEEN const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
  return __asan_default_options();
}
#endif

static int64_t now_ms(void) {
  struct timespec now = {0};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Descriptors that a host has left open in its children are not for a plugin.
static void close_others(void) {
  DIR *folder = opendir("/proc/self/fd");
  struct dirent *entry;
  int highest = 1023;
  while (folder != NULL && (entry = readdir(folder)) != NULL) {
    int32_t fd = 0;
    if (ist__text_number(entry->d_name, 0, INT32_MAX, &fd) && fd > highest) {
      highest = fd;
    }
  }
  if (folder != NULL) (void)closedir(folder);
  for (int fd = 3; fd <= highest; fd++) (void)close(fd);
}

// Moves the answer away from standard output: what the plugin prints there goes
// with what it prints on standard error, and nothing reads standard input.
static int take_streams(void) {
  int answer = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (answer < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
      dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    return -1;
  }
  (void)close(null);
  return answer;
}

// What stands on standard error is told with the error.
static int fail(const char *what) {
  (void)fprintf(stderr, "isthmus-probe cannot %s: %s\n", what,
                ist__errno_text_make(errno).text);
  return 1;
}

// A process that died after its verdict did not pass.
static void say_verdict(int answer, ist__trial_step *step) {
  if (!atomic_load(&step->has_verdict)) return;
  char line[IST__CHILD_LINE];
  memcpy(line, step->verdict, sizeof line);
  size_t size = strnlen(line, sizeof line - 1);
  line[size] = '\n';
  ssize_t done = write(answer, line, size + 1);
  (void)done;  // nobody listens any more
}

static void say_end(int answer, ist__trial_step *step, const char *how,
                    int number) {
  char line[256], name[64], trial[64];
  ist__trial_step_text(step->words, name);
  ist__trial_step_text(step->capability, trial);
  name[strcspn(name, "\n")] = '\0';
  trial[strcspn(trial, "\n")] = '\0';
  int length = snprintf(line, sizeof line, "step %s\ntrial %s\nended %s %d\n",
                        name, trial, how, number);
  ssize_t done = write(answer, line, (size_t)length);
  (void)done;  // nobody listens any more
}

// Waits for the child, for the deadline, or for nobody to listen any more: the
// process that asked has ended, or gives up. The child's signal is awaited in
// short turns, since a closed pipe sends none while nothing is written.
// True when the child has ended by itself.
static bool watch(pid_t child, int answer, int64_t deadline_ms) {
  int64_t end = now_ms() + deadline_ms;
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  for (;;) {
    siginfo_t info = {0};
    // Its number stays taken until it is collected.
    if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == child) {
      return true;
    }
    struct pollfd pipe = {.fd = answer};
    bool alone = poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR) != 0;
    int64_t left = end - now_ms();
    if (left <= 0 || alone) return false;
    int64_t turn = left < 200 ? left : 200;
    struct timespec wait = {.tv_sec = 0, .tv_nsec = (long)turn * 1000000};
    (void)sigtimedwait(&wanted, NULL, &wait);
  }
}

static int run(int64_t deadline_ms, const ist__trial_request *request) {
  int answer = take_streams();
  ist__trial_step *step = mmap(NULL, sizeof *step, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (answer < 0) return fail("keep its standard output");
  if (step == MAP_FAILED) return fail("have memory");
  sigset_t children, none;
  sigemptyset(&none);
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  (void)sigprocmask(SIG_BLOCK, &children, NULL);
  (void)signal(SIGPIPE, SIG_IGN);
  // There are no threads here yet, so a fork is safe.
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    (void)setpgid(0, 0);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)close(answer);
    ist__trial_plugin(request, parent, step);
  }
  if (child < 0) return fail("start a process of its own");
  (void)setpgid(child, child);
  int status = 0;
  bool ended = watch(child, answer, deadline_ms);
  // With it goes what it may have left behind in its group.
  (void)kill(-child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!ended) {
    say_end(answer, step, "late", 0);
  } else if (WIFSIGNALED(status)) {
    say_end(answer, step, "signal", WTERMSIG(status));
  } else {
    if (WEXITSTATUS(status) == 0) say_verdict(answer, step);
    say_end(answer, step, "exit", WEXITSTATUS(status));
  }
  return 0;
}

int main(int argc, char **argv) {
  int32_t deadline_ms = 0;
  static ist__trial_request request;
  if (argc != 5 || strcmp(argv[1], IST__CHILD_VERSION) != 0 ||
      !ist__text_number(argv[2], 1, INT32_MAX, &deadline_ms) ||
      !ist__child_task_read(argv[3], &request.device, &request.losses)) {
    fprintf(stderr,
            "isthmus-probe %s of isthmus %s: the library starts this program "
            "to try a plugin; see isthmus probe\n",
            IST__CHILD_VERSION, ist_version());
    return 2;
  }
  close_others();
  request.path = argv[4];
  if (!ist__trial_read(&request)) {
    fprintf(stderr, "isthmus-probe: the options could not be read\n");
    return 2;
  }
  printf("isthmus-probe %s\n", IST__CHILD_VERSION);
  if (fflush(stdout) != 0) return 1;
  return run(deadline_ms, &request);
}
