// SPDX-License-Identifier: Apache-2.0
// conformance_bench.c: what the checks of a plugin share.

#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "conformance_check.h"

static const float six[6] = {0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f};
static const int64_t six_dims[2] = {2, 3};

ist__check_row ist__check_row_at(int index) {
  static const ist__check_row rows[] = {
#define CHECK(name, group, slot, promise) \
  {#name, #group, slot, promise, ist__check_##name},
#include "conformance.def"
#undef CHECK
  };
  if (index < IST__CHECK_COUNT) return rows[index];
  const ist__pjrt_capability_row *row =
      ist__pjrt_capability_row_at(index - IST__CHECK_COUNT);
  return (ist__check_row){row->name, "capabilities", row->parts,
                          row->lost_without, NULL};
}

void ist__bench_says(ist__bench *bench, ist__outcome verdict,
                     const char *format, ...) {
  if (bench->verdict != IST__OUTCOME_PASS) return;
  bench->verdict = verdict;
  va_list list;
  va_start(list, format);
  (void)vsnprintf(bench->reason, sizeof bench->reason, format, list);
  va_end(list);
}

bool ist__bench_good(ist__bench *bench, ist_code code, const ist_error *err) {
  if (code == IST_OK) return true;
  ist__bench_says(
      bench,
      code == IST_ERR_PLUGIN_SLOT ? IST__OUTCOME_SKIP : IST__OUTCOME_FAIL, "%s",
      err->message);
  return false;
}

// Gives a buffer back when it is ready, else destroys it.
static PJRT_Buffer *ready(ist__bench *bench, PJRT_Buffer *buffer) {
  ist_error err = {0};
  if (ist__bench_good(bench, ist__pjrt_ready(bench->pjrt, buffer, &err),
                      &err)) {
    return buffer;
  }
  ist__pjrt_destroy(bench->pjrt, buffer);
  return NULL;
}

PJRT_Buffer *ist__bench_copied(ist__bench *bench) {
  ist_error err = {0};
  PJRT_Buffer *buffer = NULL;
  ist__pjrt_shape shape = {.type = 11, .ndim = 2, .dims = six_dims};
  ist_code code = ist__pjrt_from_host(bench->client, bench->memory, &shape, six,
                                      &buffer, &err);
  return ist__bench_good(bench, code, &err) ? ready(bench, buffer) : NULL;
}

PJRT_Buffer *ist__bench_viewed(ist__bench *bench, const int64_t *order) {
  ist_error err = {0};
  PJRT_Buffer *buffer = NULL;
  float *data = (float *)(void *)bench->block;
  bool permuted = order != NULL && order[0] == 0;
  for (int i = 0; i < 6; i++) {
    data[permuted ? i % 3 * 2 + i / 3 : i] = six[i];
  }
  ist__pjrt_shape shape = {
      .type = 11, .ndim = 2, .dims = six_dims, .minor_to_major = order};
  ist_code code = ist__pjrt_view(bench->client, bench->memory, &shape,
                                 bench->block, ist__bench_give_back,
                                 ist__bench_calls(bench), &buffer, &err);
  return ist__bench_good(bench, code, &err) && buffer != NULL
             ? ready(bench, buffer)
             : NULL;
}

bool ist__bench_comes_out(ist__bench *bench, PJRT_Buffer *buffer,
                          const int64_t *order) {
  float got[6] = {0};
  ist_error err = {0};
  PJRT_Buffer_MemoryLayout layout = {.struct_size =
                                         PJRT_Buffer_MemoryLayout_SIZE};
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_SIZE;
  layout.tiled.minor_to_major = order;
  layout.tiled.minor_to_major_size = 2;
  IST_PJRT_ARGS(PJRT_Buffer_ToHostBuffer_Args, copy);
  copy.src = buffer;
  copy.dst = got;
  copy.dst_size = sizeof got;
  copy.host_layout = order != NULL ? &layout : NULL;
  ist_code code =
      ist__pjrt_call(bench->pjrt, IST_SLOT_Buffer_ToHostBuffer, &copy, &err);
  if (code == IST_OK) {
    code = ist__pjrt_await(bench->pjrt, copy.event, IST_ERR_BUFFER, &err);
  }
  if (!ist__bench_good(bench, code, &err)) return false;
  for (int i = 0; i < 6; i++) {
    if (!ist__bench_holds(bench, got[i] >= six[i] && got[i] <= six[i],
                          "element %d came out as %g; needs %g", i,
                          (double)got[i], (double)six[i])) {
      return false;
    }
  }
  return true;
}

atomic_int *ist__bench_calls(ist__bench *bench) {
  return &bench->calls[bench->now];
}

void ist__bench_give_back(void *data, void *arg) {
  (void)data;
  atomic_fetch_add((atomic_int *)arg, 1);
}

bool ist__bench_counts(atomic_int *counter, int wanted) {
  const struct timespec moment = {0, 1000000};
  for (int i = 0; i < 2000 && atomic_load(counter) < wanted; i++) {
    nanosleep(&moment, NULL);
  }
  for (int i = 0; i < 20; i++) nanosleep(&moment, NULL);
  return atomic_load(counter) == wanted;
}

void ist__bench_event_end(ist__bench *bench, PJRT_Event *event) {
  if (event == NULL) return;
  IST_PJRT_ARGS(PJRT_Event_Destroy_Args, destroy);
  destroy.event = event;
  ist__pjrt_end(bench->pjrt, IST_SLOT_Event_Destroy, &destroy);
}
