// SPDX-License-Identifier: Apache-2.0
// _core_log.c: where the library's log lines go: to stderr as the variable
// ISTHMUS_LOG (debug, info, warning) says, and the warnings of a thread are
// kept for its next error: a plugin's long message comes line by line, of
// which the error's own message has the first. Called without the GIL.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_core.h"

// Threads whose last message is kept; older ones are overwritten.
enum {
  SLOTS = 16
};
// Most bytes of a note; what comes later is dropped.
enum {
  LONGEST = 16384
};

typedef struct slot {
  unsigned long thread;
  char *text;
  size_t size;
} slot;

struct ist__py_log {
  pthread_mutex_t mutex;
  int level;           // lines below it are not printed
  atomic_size_t kept;  // slots with text
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

// The thread's slot, or the oldest one, emptied.
static slot *find_slot(struct ist__py_log *log, unsigned long thread) {
  for (size_t i = 0; i < SLOTS; i++)
    if (log->slots[i].text != NULL && log->slots[i].thread == thread)
      return &log->slots[i];
  slot *oldest = &log->slots[log->next++ % SLOTS];
  if (oldest->text != NULL) atomic_fetch_sub(&log->kept, 1);
  ist__py_free(oldest->text);
  *oldest = (slot){.thread = thread};
  return oldest;
}

static void append(slot *to, const char *line) {
  size_t size = strlen(line);
  if (to->size + size + 1 >= LONGEST) return;
  char *longer = ist__py_alloc(to->size + size + 2);
  if (longer == NULL) return;
  if (to->size > 0) memcpy(longer, to->text, to->size);
  if (to->size > 0) longer[to->size++] = '\n';
  memcpy(longer + to->size, line, size + 1);
  to->size += size;
  ist__py_free(to->text);
  to->text = longer;
}

void ist__py_log_line(void *self, ist_log_level level, const char *text) {
  struct ist__py_log *log = self;
  if ((int)level >= log->level) fprintf(stderr, "isthmus: %s\n", text);
  if (level < IST_LOG_WARNING) return;
  pthread_mutex_lock(&log->mutex);
  slot *to = find_slot(log, PyThread_get_thread_ident());
  bool was_empty = to->text == NULL;
  append(to, text);
  if (was_empty && to->text != NULL) atomic_fetch_add(&log->kept, 1);
  pthread_mutex_unlock(&log->mutex);
}

char *ist__py_log_note(struct ist__py_log *log) {
  unsigned long thread = PyThread_get_thread_ident();
  char *text = NULL;
  pthread_mutex_lock(&log->mutex);
  for (size_t i = 0; i < SLOTS && text == NULL; i++) {
    if (log->slots[i].text == NULL || log->slots[i].thread != thread) continue;
    text = log->slots[i].text;
    log->slots[i] = (slot){0};
    atomic_fetch_sub(&log->kept, 1);
  }
  pthread_mutex_unlock(&log->mutex);
  return text;
}

void ist__py_log_begin(struct ist__py_log *log) {
  if (atomic_load_explicit(&log->kept, memory_order_relaxed) == 0) return;
  ist__py_free(ist__py_log_note(log));
}
