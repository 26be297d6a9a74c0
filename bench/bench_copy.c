// SPDX-License-Identifier: Apache-2.0
// What a copy costs in C, without the price of a call from Python: the public
// door, the engines behind it, and memcpy. Built as a shared library; run by
// copy_native.py, which times the other sides in the same rounds.

#include <stdlib.h>
#include <string.h>

#include "backend/context.h"
#include "bench_clock.h"
#include "io/dense.h"
#include "tensor/strided_convert.h"
#include "tensor/strided_copy.h"

// One copy, ready to be repeated. Views of the engine are checked once, as the
// door checks them each time.
typedef struct bench_copy {
  ist_context *context;
  DLManagedTensorVersioned source;  // as long as tensor
  ist_tensor *tensor;               // NULL: no door writes to such a target
  bool wall;                        // more threads than the calling one work
  void (*engine)(const struct bench_copy *copy);
  DLTensor target;
  ist__view from;
  ist__view to;
} bench_copy;

// The two ends of a copy as Python describes them; borrowed until closed.
typedef struct bench_ends {
  DLTensor source;
  DLTensor target;
  bool source_padded;  // sub-byte elements, one to a byte
  bool target_padded;
  bool swap;  // the source's bytes are in the other order
} bench_ends;

static void no_deleter(DLManagedTensorVersioned *self) {
  (void)self;
}

static void import_source(bench_copy *copy, const bench_ends *ends) {
  ist_error err;
  copy->source = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
      .deleter = no_deleter,
      .flags =
          ends->source_padded ? DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED : 0,
      .dl_tensor = ends->source};
  ist_options options = {.struct_size = sizeof options,
                         .copy = IST_COPY_NEVER,
                         .read_only = IST_READ_ONLY_ALLOW};
  if (ist_tensor_import(ist_context_host(copy->context), &copy->source,
                        &options, &copy->tensor, NULL, &err)) {
    bench_fail("copy: import", err.message);
  }
}

static void copy_elements(const bench_copy *copy) {
  ist__strided_copy(&copy->context->copy_engine, &copy->from, &copy->to);
}

static void swap_bytes(const bench_copy *copy) {
  ist__dense_swap(&copy->context->env, copy->to.dtype,
                  ist__view_address(&copy->from), ist__view_address(&copy->to),
                  copy->to.nbytes);
}

// A conversion is planned each time, as a caller's is.
static void convert_elements(const bench_copy *copy) {
  const ist__copy_engine *engine = &copy->context->copy_engine;
  ist__conversion conversion;
  ist__conversion_make(engine->convert_kernels, copy->from.dtype_number,
                       copy->to.dtype_number, false, copy->to.count,
                       &conversion);
  ist_error err;
  if (ist__strided_convert(engine, NULL, &conversion, &copy->from, &copy->to,
                           &err)) {
    bench_fail("copy: convert", err.message);
  }
}

static void choose_engine(bench_copy *copy, const bench_ends *ends) {
  bool same = copy->from.dtype_number == copy->to.dtype_number;
  bool padded_alike = ends->source_padded == ends->target_padded;
  copy->engine = ends->swap ? swap_bytes
                 : same     ? copy_elements
                            : convert_elements;
  if (same && padded_alike && !ends->swap) import_source(copy, ends);
}

// Opens a copy by so many threads for the functions below.
bench_copy *bench_copy_open(const bench_ends *ends, int32_t threads) {
  ist_error err;
  bench_copy *copy = calloc(1, sizeof *copy);
  if (copy == NULL) bench_fail("copy", "calloc gave NULL");
  ist_context_options options = {.struct_size = sizeof options,
                                 .threads = threads};
  if (ist_context_create(&options, &copy->context, &err) ||
      ist__view_check(&ends->source, ends->source_padded, true, &copy->from,
                      &err) ||
      ist__view_check(&ends->target, ends->target_padded, true, &copy->to,
                      &err)) {
    bench_fail("copy: open", err.message);
  }
  copy->target = ends->target;
  copy->wall = threads > 1;
  choose_engine(copy, ends);
  return copy;
}

void bench_copy_close(bench_copy *copy) {
  ist_tensor_release(copy->tensor);
  ist_context_release(copy->context);
  free(copy);
}

static int64_t copy_now(const bench_copy *copy) {
  return copy->wall ? bench_now() : bench_thread_now();
}

// Each of the following does one copy `times` times and returns nanoseconds
// for one: of the calling thread's own time, with more threads of the wall's.
// This one goes through the public door.
double bench_copy_door(bench_copy *copy, size_t times) {
  ist_error err;
  int64_t start = copy_now(copy);
  for (size_t i = 0; i < times; i++) {
    if (ist_tensor_copy_into(copy->tensor, &copy->target, NULL, NULL, &err)) {
      bench_fail("copy: the public door", err.message);
    }
  }
  return (double)(copy_now(copy) - start) / (double)times;
}

// The engine alone: what remains of a small copy without the door's checks.
double bench_copy_engine(bench_copy *copy, size_t times) {
  int64_t start = copy_now(copy);
  for (size_t i = 0; i < times; i++) {
    copy->engine(copy);
  }
  return (double)(copy_now(copy) - start) / (double)times;
}

double bench_copy_memcpy(void *to, const void *from, size_t size,
                         size_t times) {
  void *(*volatile copy)(void *, const void *, size_t) = memcpy;
  int64_t start = bench_thread_now();
  for (size_t i = 0; i < times; i++) copy(to, from, size);
  return (double)(bench_thread_now() - start) / (double)times;
}
