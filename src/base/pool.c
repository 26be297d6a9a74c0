// SPDX-License-Identifier: Apache-2.0
// pool.c: threads that wait for a list of calls, take the next one each, and
// wait again.

// pthread_sigmask and getpid are of POSIX.
#define _POSIX_C_SOURCE 200809L

#include "base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

struct ist__pool {
  pthread_mutex_t lock;
  pthread_cond_t work_came;  // or the end
  pthread_cond_t all_done;
  // The list: calls 0 to count - 1, those from next on not taken yet.
  void (*task)(void *work, size_t index);
  void *work;
  size_t count;
  size_t next;
  size_t done;
  bool busy;
  bool ending;
  pid_t process;  // threads do not come along into a forked child
  int32_t wanted;
  int32_t started;
  bool tried;  // to start them
  pthread_t threads[];
};

// Takes and makes calls until none is left. The lock is held at both ends.
static void take_calls(ist__pool *pool) {
  while (pool->next < pool->count) {
    size_t index = pool->next++;
    pthread_mutex_unlock(&pool->lock);
    pool->task(pool->work, index);
    pthread_mutex_lock(&pool->lock);
    pool->done++;
    if (pool->done == pool->count) pthread_cond_signal(&pool->all_done);
  }
}

static void *work_on(void *self) {
  ist__pool *pool = self;
  pthread_mutex_lock(&pool->lock);
  while (!pool->ending) {
    take_calls(pool);
    if (!pool->ending) pthread_cond_wait(&pool->work_came, &pool->lock);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

// As many as can be had: with none the calling thread does it all. Signals are
// for the caller's threads.
static void start(ist__pool *pool) {
  sigset_t all, before;
  pool->tried = true;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return;  // unreachable
  while (pool->started < pool->wanted &&
         pthread_create(&pool->threads[pool->started], NULL, work_on, pool) ==
             0) {
    pool->started++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

ist__pool *ist__pool_make(const ist__env *env, int32_t threads) {
  assert(threads >= 1 && threads <= IST_MAX_THREADS);
  size_t others = (size_t)threads - 1;
  ist__pool *pool = ist__alloc_zero(
      env, sizeof(ist__pool) + others * sizeof pool->threads[0]);
  if (pool == NULL) return NULL;
  pool->wanted = (int32_t)others;
  pool->process = getpid();
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->work_came, NULL);
  pthread_cond_init(&pool->all_done, NULL);
  return pool;
}

void ist__pool_free(const ist__env *env, ist__pool *pool) {
  if (pool == NULL) return;
  // A child has no threads to join, and no right to what they wait on.
  if (pool->process == getpid()) {
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    pthread_cond_broadcast(&pool->work_came);
    pthread_mutex_unlock(&pool->lock);
    for (int32_t i = 0; i < pool->started; i++) {
      assert(!pthread_equal(pool->threads[i], pthread_self()));
      pthread_join(pool->threads[i], NULL);
    }
    pthread_cond_destroy(&pool->all_done);
    pthread_cond_destroy(&pool->work_came);
    pthread_mutex_destroy(&pool->lock);
  }
  ist__free(env, pool);
}

void ist__pool_run(void *self, size_t count,
                   void (*task)(void *work, size_t index), void *work) {
  ist__pool *pool = self;
  if (count == 0 || pool->process != getpid()) return;
  pthread_mutex_lock(&pool->lock);
  if (!pool->busy) {
    pool->busy = true;
    if (!pool->tried) start(pool);
    pool->task = task;
    pool->work = work;
    pool->next = 0;
    pool->done = 0;
    pool->count = count;
    pthread_cond_broadcast(&pool->work_came);
    take_calls(pool);
    while (pool->done < count) {
      pthread_cond_wait(&pool->all_done, &pool->lock);
    }
    pool->count = 0;
    pool->next = 0;
    pool->busy = false;
  }
  pthread_mutex_unlock(&pool->lock);
}

ist_code ist__pool_threads(const char *text, int32_t *out, ist_error *err) {
  *out = 0;
  if (text == NULL || *text == '\0' ||
      ist__text_number(text, 1, IST_MAX_THREADS, out)) {
    return IST_OK;
  }
  return ist_error_set(err, IST_ERR_OPTION,
                       "the environment: option ISTHMUS_THREADS cannot be set: "
                       "it is \"%.40s\"; needs a number from 1 to %d",
                       text, IST_MAX_THREADS);
}
