// SPDX-License-Identifier: Apache-2.0
// pool.h: the small pool of threads that a context makes when it was asked for
// threads and given no pool. Only the library's own work runs on them.

#ifndef ISTHMUS_BASE_POOL_H_
#define ISTHMUS_BASE_POOL_H_

#include "base/env.h"

typedef struct ist__pool ist__pool;

// A pool of threads, the calling one among them; the others start at the first
// run. NULL when there is no memory.
ist__pool *ist__pool_make(const ist__env *env, int32_t threads);

// Ends and joins the threads. NULL is allowed. Never called on one of them: no
// caller's code runs there, so no count is dropped there.
void ist__pool_free(const ist__env *env, ist__pool *pool);

// The run of an ist_pool, self being an ist__pool. Returns without a call made
// when another thread is in it already, and in a child that was forked: who
// calls does the work itself then.
void ist__pool_run(void *self, size_t count,
                   void (*task)(void *work, size_t index), void *work);

// The threads that text, which may be NULL, asks for: as ISTHMUS_THREADS says
// it to the command and to Python, which hand it over. 0 when it is not set or
// empty. Fails: OPTION.
ist_code ist__pool_threads(const char *text, int32_t *out, ist_error *err);

#endif  // ISTHMUS_BASE_POOL_H_
