// SPDX-License-Identifier: Apache-2.0
// context.h: the one thing that every user of the library makes first: its
// allocator, log, threads and limits. Part of isthmus.h, which explains the
// words used below.

#ifndef ISTHMUS_CONTEXT_H_
#define ISTHMUS_CONTEXT_H_

#include <isthmus/error.h>
#include <isthmus/version.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Allocator, log and backends of one user of the library. Counted; every
// backend and tensor retains its context, so closing in any order is safe.
typedef struct ist_context ist_context;

// Where memory comes from. allocate returns size bytes at a multiple of
// alignment (a power of two), or NULL; release takes what allocate gave.
// Both are called from any thread, with no lock held. Borrowed at
// ist_context_create; self must live as long as the context.
typedef struct ist_allocator {
  void *self;
  void *(*allocate)(void *self, size_t size, size_t alignment);
  void (*release)(void *self, void *pointer);
} ist_allocator;

typedef enum ist_log_level {
  IST_LOG_DEBUG = 0,
  IST_LOG_INFO = 1,
  IST_LOG_WARNING = 2
} ist_log_level;

// Receives lines of log, without a newline, from any thread, no lock held.
typedef void (*ist_log_fn)(void *self, ist_log_level level, const char *text);

// Most threads of its own that a context makes for long copies.
#define IST_MAX_THREADS 256

// Threads of the caller's own for long copies. run calls task(work, index) for
// each index below count, on any threads and in any order, and returns when all
// those calls have returned. It is called from any thread, several at once, no
// lock held. A run that skips calls, makes one twice or returns early costs
// time and harms nothing: the library does what is left itself, once, and waits
// for what has begun. task must not be called after the context is freed; it
// takes up to 160 KiB of stack.
// Borrowed at ist_context_create; self must live as long as the context.
typedef struct ist_pool {
  void *self;
  int32_t threads;  // how many calls run at once
  void (*run)(void *self, size_t count, void (*task)(void *work, size_t index),
              void *work);
} ist_pool;

typedef struct ist_context_options {
  size_t struct_size;              // sizeof(ist_context_options)
  const ist_allocator *allocator;  // NULL: malloc and free
  ist_log_fn log;                  // NULL: nothing is logged
  void *log_self;
  // Threads of a long copy. 0 or 1: the calling thread alone. More: with
  // threads of the library's own, started at the first long copy and ended with
  // the context; no callback runs on them. Not together with pool.
  int32_t threads;
  const ist_pool *pool;  // NULL: none
  // Most bytes that the pool of blocks keeps idle: ist_context_block_pool. It
  // bounds what is idle only: what tensors use is bounded by nothing here.
  // 0: 512 MiB; negative: none.
  int64_t block_pool_bytes;
  // The program isthmus-probe, in which an unknown plugin is opened first.
  // NULL: the one beside the library, or, where the library is part of an
  // executable, beside that. Copied.
  const char *probe_program;
  // How long a plugin may take to be opened there, in milliseconds, before it
  // is killed. 0: 120 000.
  int32_t probe_deadline_ms;
} ist_context_options;

// Makes a context; options may be NULL. Where this header is read it is the
// macro below, which also refuses a library that the header does not fit.
// Gives *out. Fails: ARGUMENT, NO_ALLOCATION. Threads: any. Since: 0.1.
IST_API ist_code ist_context_create(const ist_context_options *options,
                                    ist_context **out, ist_error *err);

// The same for a caller built with the header of a version
// (IST_VERSION_NUMBER). It fits a library of its own major version, not older
// than itself; before 1.0 of its own minor version.
// Gives *out. Fails: HEADER_VERSION, ARGUMENT, NO_ALLOCATION. Threads: any.
// Since: 0.1.
IST_API ist_code ist_context_create_for(int32_t header_version,
                                        const ist_context_options *options,
                                        ist_context **out, ist_error *err);
#define ist_context_create(options, out, err) \
  ist_context_create_for(IST_VERSION_NUMBER, options, out, err)

// The memory that the library makes for elements: copies, results, ist_tensor_
// empty. A block of at least 64 KiB that is not used any more is kept for the
// next tensor of about its size, whose pages are then there already. Beyond the
// bound the blocks that were idle longest go back to the system, and all of
// them when memory is not to be had otherwise. Blocks of 2 MiB and more are
// advised to lie in huge pages. With an allocator of the caller's own they come
// from it, page-aligned; else they are mapped.
typedef struct ist_block_pool_info {
  size_t struct_size;
  uint64_t bound;   // most bytes kept idle
  uint64_t held;    // bytes idle now
  uint64_t in_use;  // bytes of such blocks that tensors hold now
  uint64_t peak;    // most of both together so far
  uint64_t hits;    // blocks that were there
  uint64_t misses;  // blocks that had to be made
} ist_block_pool_info;

// Fills out. Borrows context. Fails: ARGUMENT. Threads: any. Since: 0.1.
IST_API ist_code ist_context_block_pool(ist_context *context,
                                        ist_block_pool_info *out,
                                        ist_error *err);

// Gives all idle blocks back to the system and returns their bytes.
// Borrows context. Fails: never. Threads: any. Since: 0.1.
IST_API uint64_t ist_context_trim(ist_context *context);

// Counts one holder more, or one less; the last one frees. NULL is allowed.
// Retains context. Fails: never. Threads: any. Since: 0.1.
IST_API void ist_context_retain(ist_context *context);
// Takes one count. Fails: never. Threads: any. Since: 0.1.
IST_API void ist_context_release(ist_context *context);

#ifdef __cplusplus
}
#endif

#endif  // ISTHMUS_CONTEXT_H_
