// SPDX-License-Identifier: Apache-2.0
// The lying plugin's events: done at once, on a thread of their own, or kept
// pending until a test calls lying_release_events(), on the thread of that
// call.

#include <stdlib.h>

#include "lying.h"

static bool check(const PJRT_Event *event, const char *slot) {
  if (event != NULL && event->magic == LYING_MAGIC_EVENT) return true;
  lying_violate(slot);
  return false;
}

PJRT_Error *lying_event_failure(void) {
  return lying_error(PJRT_Error_Code_DATA_LOSS,
                     "\nlying plugin: this event completes with an error\n"
                     "  second line of a long story");
}

void lying_event_drop(PJRT_Event *event) {
  pthread_mutex_lock(&lying.lock);
  bool last = --event->holders == 0;
  pthread_mutex_unlock(&lying.lock);
  if (!last) return;
  event->magic = 0;
  free(event);
  atomic_fetch_sub(&lying.events, 1);
}

void lying_event_hold(PJRT_Event *event) {
  pthread_mutex_lock(&lying.lock);
  event->holders++;
  pthread_mutex_unlock(&lying.lock);
}

// Set on a thread that does the plugin's work, as one of its own would.
static _Thread_local bool at_work;

void lying_wait_for_work(void) {
  if (at_work) {
    lying_violate("Client_Destroy: a thread of the plugin waits for itself");
    return;
  }
  pthread_mutex_lock(&lying.lock);
  while (lying.working != 0) pthread_cond_wait(&lying.changed, &lying.lock);
  pthread_mutex_unlock(&lying.lock);
}

static void complete(PJRT_Event *event) {
  event->work.failed = event->failed;
  if (event->work.run != NULL) event->work.run(&event->work);
  event->failed = event->work.failed;  // of what went in, too
  PJRT_Buffer *buffer = event->buffer;
  pthread_mutex_lock(&lying.lock);
  if (event->failed && event->work.fills) buffer->error = true;
  event->ready = true;
  ist_pjrt_on_ready callback = event->callback;
  event->callback = NULL;
  event->buffer = NULL;
  pthread_cond_broadcast(&lying.changed);
  pthread_mutex_unlock(&lying.lock);
  if (callback != NULL)
    callback(event->failed ? lying_event_failure() : NULL, event->callback_arg);
  if (buffer != NULL) lying_buffer_drop(buffer);
  lying_event_drop(event);
}

// Real plugins begin no work before what it reads is there.
static void wait_for_input(const PJRT_Event *event) {
  const lying_work *work = &event->work;
  const PJRT_Buffer *input = work->fills ? work->reads : event->buffer;
  if (input == NULL || input->ready == NULL) return;
  pthread_mutex_lock(&lying.lock);
  while (!input->ready->ready) pthread_cond_wait(&lying.changed, &lying.lock);
  pthread_mutex_unlock(&lying.lock);
}

static void *complete_on_a_thread(void *event) {
  at_work = true;
  wait_for_input(event);
  complete(event);
  pthread_mutex_lock(&lying.lock);
  lying.working--;
  pthread_cond_broadcast(&lying.changed);
  pthread_mutex_unlock(&lying.lock);
  return NULL;
}

static void complete_elsewhere(PJRT_Event *event) {
  pthread_t thread;
  pthread_mutex_lock(&lying.lock);
  lying.working++;
  pthread_mutex_unlock(&lying.lock);
  if (pthread_create(&thread, NULL, complete_on_a_thread, event) != 0) abort();
  pthread_detach(thread);
}

PJRT_Event *lying_event_open(void) {
  PJRT_Event *event = calloc(1, sizeof *event);
  if (event == NULL) abort();
  event->magic = LYING_MAGIC_EVENT;
  event->holders = 2;
  atomic_fetch_add(&lying.events, 1);
  return event;
}

void lying_event_finish(PJRT_Event *event) {
  complete(event);
}

PJRT_Event *lying_event_new(lying_work work, PJRT_Buffer *buffer) {
  PJRT_Event *event = lying_event_open();
  event->work = work;
  event->buffer = buffer;
  int number = atomic_fetch_add(&lying.total_events, 1) + 1;
  event->failed = lying.rules.event_error || (buffer && buffer->error) ||
                  number == lying.rules.fail_event;
  pthread_mutex_lock(&lying.lock);
  if (buffer != NULL) buffer->holders++;
  bool later = lying.rules.delay_events;
  if (later) {
    PJRT_Event **end = &lying.pending;
    while (*end != NULL) end = &(*end)->next;
    *end = event;
  }
  pthread_mutex_unlock(&lying.lock);
  if (later) return event;
  if (lying.rules.threads != 0) {
    complete_elsewhere(event);
  } else {
    complete(event);
  }
  return event;
}

// Completes what is pending, in order; returns how many.
LYING_EXPORT int lying_release_events(void) {
  int count = 0;
  for (;;) {
    pthread_mutex_lock(&lying.lock);
    PJRT_Event *event = lying.pending;
    if (event != NULL) lying.pending = event->next;
    if (event != NULL) lying.working++;
    pthread_mutex_unlock(&lying.lock);
    if (event == NULL) return count;
    at_work = true;
    complete(event);
    at_work = false;
    pthread_mutex_lock(&lying.lock);
    lying.working--;
    pthread_cond_broadcast(&lying.changed);
    pthread_mutex_unlock(&lying.lock);
    count++;
  }
}

LYING_EXPORT int lying_pending_events(void) {
  int count = 0;
  pthread_mutex_lock(&lying.lock);
  for (PJRT_Event *e = lying.pending; e != NULL; e = e->next) count++;
  pthread_mutex_unlock(&lying.lock);
  return count;
}

LYING_SLOT(Event_Destroy) {
  PJRT_Event_Destroy_Args *a = args;
  if (check(a->event, "Event_Destroy: not an event"))
    lying_event_drop(a->event);
  return NULL;
}

LYING_SLOT(Event_IsReady) {
  PJRT_Event_IsReady_Args *a = args;
  if (!check(a->event, "Event_IsReady: not an event")) return NULL;
  pthread_mutex_lock(&lying.lock);
  a->is_ready = a->event->ready;
  pthread_mutex_unlock(&lying.lock);
  return NULL;
}

LYING_SLOT(Event_Error) {
  PJRT_Event_Error_Args *a = args;
  if (!check(a->event, "Event_Error: not an event")) return NULL;
  pthread_mutex_lock(&lying.lock);
  bool ready = a->event->ready;
  pthread_mutex_unlock(&lying.lock);
  if (!ready) lying_violate("Event_Error: called before the event is ready");
  return ready && a->event->failed ? lying_event_failure() : NULL;
}

LYING_SLOT(Event_Await) {
  PJRT_Event_Await_Args *a = args;
  if (!check(a->event, "Event_Await: not an event")) return NULL;
  pthread_mutex_lock(&lying.lock);
  while (!a->event->ready) pthread_cond_wait(&lying.changed, &lying.lock);
  pthread_mutex_unlock(&lying.lock);
  return a->event->failed ? lying_event_failure() : NULL;
}

LYING_SLOT(Event_OnReady) {
  PJRT_Event_OnReady_Args *a = args;
  if (!check(a->event, "Event_OnReady: not an event")) return NULL;
  pthread_mutex_lock(&lying.lock);
  bool ready = a->event->ready;
  if (!ready) {
    a->event->callback = a->callback;
    a->event->callback_arg = a->user_arg;
  }
  pthread_mutex_unlock(&lying.lock);
  if (ready)
    a->callback(a->event->failed ? lying_event_failure() : NULL, a->user_arg);
  return NULL;
}
