// SPDX-License-Identifier: Apache-2.0
// conformance_event.c: checks of errors, events, lifetimes and what a plugin
// must refuse.

#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>

#include "conformance_check.h"

void ist__check_error_texts(ist__bench *bench) {
  PJRT_Buffer *buffer = ist__bench_copied(bench);
  if (buffer == NULL) return;
  ist_error err = {0};
  IST_PJRT_ARGS(PJRT_Buffer_Dimensions_Args, get);
  get.buffer = buffer;
  get.struct_size = 0;
  ist_code code =
      ist__pjrt_call(bench->pjrt, IST_SLOT_Buffer_Dimensions, &get, &err);
  if (ist__bench_holds(bench, code != IST_OK,
                       "a struct_size of 0 is taken; needs an error")) {
    ist__bench_holds(bench, err.native >= 1 && err.native <= 16,
                     "its code is %d; needs 1 to 16", (int)err.native);
    ist__bench_holds(bench, strstr(err.message, "no message") == NULL,
                     "the error has no message; needs one");
  }
  ist__pjrt_destroy(bench->pjrt, buffer);
}

static PJRT_Event *ready_event(ist__bench *bench, PJRT_Buffer *buffer) {
  ist_error err = {0};
  IST_PJRT_ARGS(PJRT_Buffer_ReadyEvent_Args, get);
  get.buffer = buffer;
  ist_code code =
      ist__pjrt_call(bench->pjrt, IST_SLOT_Buffer_ReadyEvent, &get, &err);
  if (!ist__bench_good(bench, code, &err)) return NULL;
  ist__bench_holds(bench, get.event != NULL,
                   "ReadyEvent gave no event and no error; needs one");
  return get.event;
}

static bool await(ist__bench *bench, PJRT_Event *event) {
  ist_error err = {0};
  IST_PJRT_ARGS(PJRT_Event_Await_Args, args);
  args.event = event;
  return ist__bench_good(
      bench, ist__pjrt_call(bench->pjrt, IST_SLOT_Event_Await, &args, &err),
      &err);
}

// Hands an event of a copied buffer to a check.
static void with_event(ist__bench *bench,
                       void (*check)(ist__bench *bench, PJRT_Event *event)) {
  PJRT_Buffer *buffer = ist__bench_copied(bench);
  if (buffer == NULL) return;
  PJRT_Event *event = ready_event(bench, buffer);
  if (event != NULL) check(bench, event);
  ist__bench_event_end(bench, event);
  ist__pjrt_destroy(bench->pjrt, buffer);
}

static void twice(ist__bench *bench, PJRT_Event *event) {
  if (!await(bench, event) || !await(bench, event)) return;
  ist_error err = {0};
  IST_PJRT_ARGS(PJRT_Event_IsReady_Args, ask);
  ask.event = event;
  ist_code code =
      ist__pjrt_call(bench->pjrt, IST_SLOT_Event_IsReady, &ask, &err);
  if (!ist__bench_good(bench, code, &err)) return;
  ist__bench_holds(bench, ask.is_ready,
                   "an event that was awaited is not ready; needs true");
}

void ist__check_await_twice(ist__bench *bench) {
  with_event(bench, twice);
}

static void ready_now(PJRT_Error *error, void *arg) {
  // An error counts far too much.
  atomic_fetch_add((atomic_int *)arg, error == NULL ? 1 : 1000);
}

static void once(ist__bench *bench, PJRT_Event *event) {
  ist_error err = {0};
  IST_PJRT_ARGS(PJRT_Event_OnReady_Args, ask);
  ask.event = event;
  ask.callback = ready_now;
  ask.user_arg = ist__bench_calls(bench);
  ist_code code =
      ist__pjrt_call(bench->pjrt, IST_SLOT_Event_OnReady, &ask, &err);
  if (!ist__bench_good(bench, code, &err) || !await(bench, event)) return;
  bool good = ist__bench_counts(ist__bench_calls(bench), 1);
  int calls = atomic_load(ist__bench_calls(bench));
  ist__bench_holds(bench, good,
                   "it was called %d times, %d with an error; "
                   "needs one call without",
                   calls % 1000, calls / 1000);
}

void ist__check_on_ready(ist__bench *bench) {
  with_event(bench, once);
}

static void no_error(ist__bench *bench, PJRT_Event *event) {
  if (!await(bench, event)) return;
  ist_error err = {0};
  IST_PJRT_ARGS(PJRT_Event_Error_Args, ask);
  ask.event = event;
  ist__bench_good(bench,
                  ist__pjrt_call(bench->pjrt, IST_SLOT_Event_Error, &ask, &err),
                  &err);
}

void ist__check_event_error(ist__bench *bench) {
  with_event(bench, no_error);
}

// ---- lifetime

static ist_code delete_it(ist__bench *bench, PJRT_Buffer *buffer,
                          ist_error *err) {
  IST_PJRT_ARGS(PJRT_Buffer_Delete_Args, args);
  args.buffer = buffer;
  return ist__pjrt_call(bench->pjrt, IST_SLOT_Buffer_Delete, &args, err);
}

void ist__check_deleted(ist__bench *bench) {
  PJRT_Buffer *buffer = ist__bench_copied(bench);
  if (buffer == NULL) return;
  ist_error err = {0};
  bool good = ist__bench_good(bench, delete_it(bench, buffer, &err), &err) &&
              ist__bench_good(bench, delete_it(bench, buffer, &err), &err);
  if (good) {
    ist__bench_holds(
        bench, ist__pjrt_alive(bench->pjrt, buffer, &err) == IST_ERR_DELETED,
        "IsDeleted says false after Delete; needs true");
    float got[6];
    IST_PJRT_ARGS(PJRT_Buffer_ToHostBuffer_Args, copy);
    copy.src = buffer;
    copy.dst = got;
    copy.dst_size = sizeof got;
    ist_code code =
        ist__pjrt_call(bench->pjrt, IST_SLOT_Buffer_ToHostBuffer, &copy, &err);
    if (code == IST_OK) {
      code = ist__pjrt_await(bench->pjrt, copy.event, IST_ERR_BUFFER, &err);
    }
    ist__bench_holds(bench, code != IST_OK,
                     "a deleted buffer is copied out; needs an error");
  }
  ist__pjrt_destroy(bench->pjrt, buffer);
}

void ist__check_destroy_unready(ist__bench *bench) {
  static const int64_t dims[2] = {64, 64};
  for (int turn = 0; turn < 64; turn++) {
    ist_error err = {0};
    IST_PJRT_ARGS(PJRT_Client_BufferFromHostBuffer_Args, from);
    from.client = bench->client->client;
    from.data = bench->block;
    from.type = 11;
    from.dims = dims;
    from.num_dims = 2;
    from.host_buffer_semantics =
        PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
    from.device = bench->memory->device;
    ist_code code = ist__pjrt_call(
        bench->pjrt, IST_SLOT_Client_BufferFromHostBuffer, &from, &err);
    if (!ist__bench_good(bench, code, &err)) return;
    ist__pjrt_destroy(bench->pjrt, from.buffer);
    code = ist__pjrt_await(bench->pjrt, from.done_with_host_buffer,
                           IST_ERR_BUFFER, &err);
    if (!ist__bench_good(bench, code, &err)) return;
  }
}

typedef struct counting {
  ist__pjrt bare;  // without our locks
  PJRT_Buffer *buffer;
} counting;

static void *count_references(void *arg) {
  counting *c = arg;
  for (int i = 0; i < 2000; i++) {
    if (ist__pjrt_hold(&c->bare, c->buffer, NULL) != IST_OK) break;
    ist__pjrt_unhold(&c->bare, c->buffer);
  }
  return NULL;
}

// Counting wrongly shows in some runs only: a number of tries is made.
void ist__check_reference_threads(ist__bench *bench) {
  enum {
    THREADS = 8,
    TRIES = 24
  };
  for (int turn = 0; turn < TRIES; turn++) {
    PJRT_Buffer *buffer = ist__bench_copied(bench);
    if (buffer == NULL) return;
    counting c = {*bench->pjrt, buffer};
    c.bare.reference_locks = NULL;
    ist_error err = {0};
    pthread_t threads[THREADS];
    int made = 0;
    if (ist__bench_good(bench, ist__pjrt_hold(bench->pjrt, buffer, &err),
                        &err)) {
      while (made < THREADS &&
             pthread_create(&threads[made], NULL, count_references, &c) == 0) {
        made++;
      }
      for (int i = 0; i < made; i++) pthread_join(threads[i], NULL);
      ist__pjrt_unhold(bench->pjrt, buffer);
    }
    ist__pjrt_destroy(bench->pjrt, buffer);
    if (bench->verdict != IST__OUTCOME_PASS) return;
  }
}

// ---- programs

void ist__check_compile_without_options(ist__bench *bench) {
  static char text[] =
      "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
      "  return %x : tensor<4xf32>\n}\n";
  PJRT_Program program = {.struct_size = PJRT_Program_SIZE,
                          .code = text,
                          .code_size = sizeof text - 1,
                          .format = "mlir",
                          .format_size = 4};
  IST_PJRT_ARGS(PJRT_Client_Compile_Args, compile);
  compile.client = bench->client->client;
  compile.program = &program;
  compile.compile_options = "";
  ist_error err = {0};
  ist_code code =
      ist__pjrt_call(bench->pjrt, IST_SLOT_Client_Compile, &compile, &err);
  if (code == IST_ERR_PLUGIN_SLOT) ist__bench_good(bench, code, &err);
  if (code != IST_OK || compile.executable == NULL) return;
  IST_PJRT_ARGS(PJRT_LoadedExecutable_Destroy_Args, destroy);
  destroy.executable = compile.executable;
  ist__pjrt_end(bench->pjrt, IST_SLOT_LoadedExecutable_Destroy, &destroy);
}

// ---- what must be refused

static void refuses(ist__bench *bench, int32_t type, int64_t extent) {
  ist_error err = {0};
  IST_PJRT_ARGS(PJRT_Client_BufferFromHostBuffer_Args, from);
  from.client = bench->client->client;
  from.data = bench->block;
  from.type = type;
  from.dims = &extent;
  from.num_dims = 1;
  from.device = bench->memory->device;
  ist_code code = ist__pjrt_call(
      bench->pjrt, IST_SLOT_Client_BufferFromHostBuffer, &from, &err);
  if (code == IST_ERR_PLUGIN_SLOT) ist__bench_good(bench, code, &err);
  if (code != IST_OK) return;
  ist__bench_says(bench, IST__OUTCOME_FAIL,
                  "a buffer was made; needs an error");
  ist__bench_event_end(bench, from.done_with_host_buffer);
  ist__pjrt_destroy(bench->pjrt, from.buffer);
}

void ist__check_negative_dimension(ist__bench *bench) {
  refuses(bench, 11, -4);
}
void ist__check_unknown_type(ist__bench *bench) {
  refuses(bench, 0, 4);
}
void ist__check_token_type(ist__bench *bench) {
  refuses(bench, 23, 4);
}

void ist__check_negative_view(ist__bench *bench) {
  static const int64_t extent = -4;
  ist_error err = {0};
  IST_PJRT_ARGS(PJRT_Client_CreateViewOfDeviceBuffer_Args, view);
  view.client = bench->client->client;
  view.device_buffer_ptr = bench->block;
  view.dims = &extent;
  view.num_dims = 1;
  view.element_type = 11;
  view.device = bench->memory->device;
  view.on_delete_callback = ist__bench_give_back;
  view.on_delete_callback_arg = ist__bench_calls(bench);
  ist_code code = ist__pjrt_call(
      bench->pjrt, IST_SLOT_Client_CreateViewOfDeviceBuffer, &view, &err);
  if (code == IST_ERR_PLUGIN_SLOT) ist__bench_good(bench, code, &err);
  if (code != IST_OK) return;
  ist__bench_says(bench, IST__OUTCOME_FAIL, "a view was made; needs an error");
  ist__pjrt_destroy(bench->pjrt, view.buffer);
}
