// SPDX-License-Identifier: Apache-2.0
// _core_log.c: where the library's log lines go: to stderr as the variable
// ISTHMUS_LOG (debug, info, warning) says, and a message of many lines is kept
// for the thread's next error. Called without the GIL.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_core.h"

// Threads whose last message is kept; older ones are overwritten.
enum {
  SLOTS = 16
};

typedef struct slot {
  unsigned long thread;
  char *text;
} slot;

struct ist__py_log {
  pthread_mutex_t mutex;
  int level;  // lines below it are not printed
  size_t next;
  slot slots[SLOTS];
};

struct ist__py_log *ist__py_log_new(void) {
  struct ist__py_log *log = ist__py_alloc(sizeof *log);
  if (log == NULL) return NULL;
  pthread_mutex_init(&log->mutex, NULL);
  const char *wish = getenv("ISTHMUS_LOG");
  log->level = 100;
  if (wish != NULL && strcmp(wish, "debug") == 0)
    log->level = IST_LOG_DEBUG;
  else if (wish != NULL && strcmp(wish, "info") == 0)
    log->level = IST_LOG_INFO;
  else if (wish != NULL && strcmp(wish, "warning") == 0)
    log->level = IST_LOG_WARNING;
  return log;
}

void ist__py_log_free(struct ist__py_log *log) {
  if (log == NULL) return;
  for (size_t i = 0; i < SLOTS; i++) ist__py_free(log->slots[i].text);
  pthread_mutex_destroy(&log->mutex);
  ist__py_free(log);
}

static char *copy_text(const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = ist__py_alloc(size);
  if (copy != NULL) memcpy(copy, text, size);
  return copy;
}

void ist__py_log_line(void *self, ist_log_level level, const char *text) {
  struct ist__py_log *log = self;
  if ((int)level >= log->level) fprintf(stderr, "isthmus: %s\n", text);
  if (strchr(text, '\n') == NULL) return;
  unsigned long thread = PyThread_get_thread_ident();
  char *copy = copy_text(text);
  pthread_mutex_lock(&log->mutex);
  slot *found = NULL;
  for (size_t i = 0; i < SLOTS && found == NULL; i++)
    if (log->slots[i].text != NULL && log->slots[i].thread == thread)
      found = &log->slots[i];
  if (found == NULL) found = &log->slots[log->next++ % SLOTS];
  char *old = found->text;
  found->thread = thread;
  found->text = copy;
  pthread_mutex_unlock(&log->mutex);
  ist__py_free(old);
}

char *ist__py_log_note(struct ist__py_log *log) {
  unsigned long thread = PyThread_get_thread_ident();
  char *text = NULL;
  pthread_mutex_lock(&log->mutex);
  for (size_t i = 0; i < SLOTS && text == NULL; i++) {
    if (log->slots[i].text == NULL || log->slots[i].thread != thread) continue;
    text = log->slots[i].text;
    log->slots[i].text = NULL;
  }
  pthread_mutex_unlock(&log->mutex);
  return text;
}
