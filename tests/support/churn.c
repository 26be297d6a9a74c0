// SPDX-License-Identifier: Apache-2.0
// churn.c: see churn.h.

#include "support/churn.h"

#include <dirent.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const DLDataType f32 = {kDLFloat, 32, 1};

static const char add_text[] =
    "func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {\n"
    "  %0 = stablehlo.add %x, %x : tensor<6xf32>\n"
    "  return %0 : tensor<6xf32>\n}\n";

static bool is_lying(const churn_client *client) {
  return strcmp(client->key, "lying") == 0;
}

// ---- clients

static void client_open(churn *all, churn_client *client) {
  ist_backend_options options = {.struct_size = sizeof options,
                                 .path = plugin_path(client->key),
                                 .trusted = true};
  bench_ok(all, ist_backend_open(all->context, "pjrt", &options,
                                 &client->backend, &all->err));
  client->device = ist_backend_device(client->backend, 0);
  const char *text = is_lying(client) ? "lying.identity 11 6" : add_text;
  bench_ok(all, ist_program_compile(client->device, text, strlen(text), NULL,
                                    &client->program, &all->err));
}

static void client_close(churn_client *client) {
  ist_backend_release(client->backend);
  ist_program_release(client->program);
}

void churn_open(churn *all, size_t count, const char *const *keys) {
  memset(all, 0, sizeof *all);
  for (size_t i = 0; i < count; i++) {
    plugin_path(keys[i]);
    all->client[i].key = keys[i];
    if (!is_lying(&all->client[i])) continue;
    all->lies = true;
    all->lying = lying_find();
    all->lying.set_rules("addressable=1");
  }
  counting_allocator_init(&all->counts);
  ist_allocator allocator = counting_allocator_hook(&all->counts);
  ist_context_options options = {.struct_size = sizeof options,
                                 .allocator = &allocator};
  bench_ok(all, ist_context_create(&options, &all->context, &all->err));
  all->count = count;
  for (size_t i = 0; i < count; i++) client_open(all, &all->client[i]);
}

void churn_reopen(churn *all, size_t index) {
  client_close(&all->client[index]);
  client_open(all, &all->client[index]);
}

// Plugins may give back the last views on threads of their own.
static void settle(churn *all, long live) {
  for (long turn = 0; turn < 20000000; turn++) {
    if (all->made == all->deleted && all->counts.live <= live) return;
    sched_yield();
  }
}

void churn_close(churn *all) {
  for (size_t i = 0; i < all->count; i++) client_close(&all->client[i]);
  ist_context_release(all->context);
  settle(all, 0);
  assert_int_equal(all->wrong, 0);
  assert_int_equal(all->made, all->deleted);
  assert_int_equal(all->counts.live, 0);
  if (all->lies) lying_assert_clean(&all->lying);
}

// ---- a source whose deleter frees it

typedef struct source {
  DLManagedTensorVersioned managed;
  churn *all;
  int64_t shape[1];
  float *values;
  _Alignas(64) float memory[16];
} source;

static void source_delete(DLManagedTensorVersioned *managed) {
  source *s = managed->manager_ctx;
  churn *all = s->all;
  free(s);
  atomic_fetch_add(&all->deleted, 1);
}

// Values from seed on; aligned for every plugin, or for none.
static source *source_new(churn *all, long seed, bool aligned) {
  source *s = aligned_alloc(64, sizeof *s);
  if (s == NULL) abort();
  memset(s, 0, sizeof *s);
  s->all = all;
  s->shape[0] = 6;
  s->values = s->memory + (aligned ? 0 : 1);
  for (int i = 0; i < 6; i++) s->values[i] = (float)(seed % 1000 + i);
  s->managed.version = (DLPackVersion){1, 3};
  s->managed.manager_ctx = s;
  s->managed.deleter = source_delete;
  s->managed.dl_tensor =
      (DLTensor){s->values, {kDLCPU, 0}, 1, f32, s->shape, NULL, 0};
  atomic_fetch_add(&all->made, 1);
  return s;
}

// ---- turns

static void note(churn *all, bool right, const char *what,
                 const ist_error *err) {
  if (right) return;
  // The first ones say what it was; a test's own thread fails.
  if (atomic_fetch_add(&all->wrong, 1) < 3) {
    fprintf(stderr, "%s: %s\n", what, err->message);
  }
}

static ist_tensor *take(churn *all, const ist_device *device, long turn,
                        bool aligned) {
  source *s = source_new(all, turn, aligned);
  ist_tensor *tensor = NULL;
  ist_error err = {0};
  ist_code code =
      ist_tensor_import(device, &s->managed, NULL, &tensor, NULL, &err);
  note(all, code == IST_OK, "import", &err);
  if (code != IST_OK) s->managed.deleter(&s->managed);
  return tensor;
}

static bool holds(const DLTensor *view, long turn, int times) {
  const float *values =
      (const float *)((const char *)view->data + view->byte_offset);
  for (int i = 0; i < 6; i++) {
    if (values[i] != (float)(times * (turn % 1000 + i))) return false;
  }
  return view->ndim == 1 && view->shape[0] == 6;
}

static void export_legacy(churn *all, ist_tensor *tensor, long turn) {
  DLManagedTensor *out = NULL;
  ist_error err = {0};
  ist_code code = ist_tensor_export_legacy(tensor, NULL, &out, NULL, &err);
  note(all, code == IST_OK && holds(&out->dl_tensor, turn, 1), "export", &err);
  ist_tensor_release(tensor);
  if (out != NULL) out->deleter(out);
}

void churn_exchange(churn *all, churn_client *client, long turn) {
  ist_tensor *tensor = take(all, client->device, turn, turn % 4 != 3);
  if (tensor == NULL) return;
  if (turn % 2 != 0) {
    export_legacy(all, tensor, turn);
    return;
  }
  DLManagedTensorVersioned *out = NULL;
  ist_error err = {0};
  ist_code code = ist_tensor_export(tensor, NULL, &out, NULL, &err);
  note(all, code == IST_OK && holds(&out->dl_tensor, turn, 1), "export", &err);
  if (turn % 8 == 0) ist_tensor_release(tensor);
  if (out != NULL) out->deleter(out);
  if (turn % 8 != 0) ist_tensor_release(tensor);
}

static void turn_move(churn *all, churn_client *client, long turn) {
  ist_tensor *tensor = take(all, client->device, turn, true), *moved = NULL;
  ist_error err = {0};
  ist_options options = {
      .struct_size = sizeof options,
      .copy = turn % 3 == 0 ? IST_COPY_ALWAYS : IST_COPY_AUTO};
  ist_code code = ist_tensor_move(tensor, ist_context_host(all->context),
                                  &options, &moved, NULL, &err);
  ist_tensor_release(tensor);
  note(all, code == IST_OK && holds(ist_tensor_view(moved), turn, 1), "move",
       &err);
  ist_tensor_release(moved);
}

static void turn_run(churn *all, churn_client *client, long turn) {
  ist_tensor *in = take(all, client->device, turn, turn % 2 == 0);
  ist_tensor *out = NULL;
  ist_error err = {0};
  ist_run run = {.struct_size = sizeof run,
                 .inputs = &in,
                 .input_count = 1,
                 .outputs = &out,
                 .output_count = 1};
  ist_code code = ist_program_run(client->program, &run, &err);
  ist_tensor_release(in);
  if (code == IST_OK) code = ist_tensor_wait(out, &err);
  note(all,
       code == IST_OK &&
           holds(ist_tensor_view(out), turn, is_lying(client) ? 1 : 2),
       "run", &err);
  ist_tensor_release(out);
}

static void turn_delete(churn *all, churn_client *client, long turn) {
  ist_tensor *tensor = take(all, client->device, turn, turn % 2 == 0);
  ist_error err = {0};
  note(all, ist_tensor_delete(tensor, &err) == IST_OK, "delete", &err);
  note(all, ist_tensor_wait(tensor, &err) == IST_ERR_DELETED, "deleted", &err);
  ist_tensor_release(tensor);
}

// Refusals leave the source with its owner.
static void turn_errors(churn *all, churn_client *client, long turn) {
  source *s = source_new(all, turn, false);
  ist_options never = {.struct_size = sizeof never, .copy = IST_COPY_NEVER};
  ist_tensor *tensor = NULL;
  ist_error err = {0};
  ist_code code = ist_tensor_import(client->device, &s->managed, &never,
                                    &tensor, NULL, &err);
  note(all, code == IST_ERR_COPY_NEEDED && tensor == NULL, "never", &err);
  s->shape[0] = -1;
  code =
      ist_tensor_import(client->device, &s->managed, NULL, &tensor, NULL, &err);
  note(all, code == IST_ERR_SHAPE && tensor == NULL, "negative", &err);
  s->managed.deleter(&s->managed);
  if (turn % 16 != 0) return;
  ist_program *program = NULL;
  code = ist_program_compile(client->device, "no program", 10, NULL, &program,
                             &err);
  note(all, code == IST_ERR_PROGRAM && program == NULL, "compile", &err);
}

void churn_hand_on(churn *all, churn_client *client, long turn) {
  (void)client;
  DLManagedTensorVersioned *at = &source_new(all, turn, true)->managed;
  ist_options never = {.struct_size = sizeof never, .copy = IST_COPY_NEVER};
  ist_error err = {0};
  for (size_t i = 0; i < all->count; i++) {
    size_t to = (i + (size_t)turn) % all->count;
    ist_tensor *tensor = NULL;
    ist_code code = ist_tensor_import(all->client[to].device, at, &never,
                                      &tensor, NULL, &err);
    note(all, code == IST_OK, "hand on", &err);
    if (code != IST_OK) break;
    code = ist_tensor_export(tensor, &never, &at, NULL, &err);
    note(all, code == IST_OK, "hand on", &err);
    ist_tensor_release(tensor);
    if (code != IST_OK) return;
  }
  note(all, holds(&at->dl_tensor, turn, 1), "handed on", &err);
  at->deleter(at);
}

void churn_everything(churn *all, churn_client *client, long turn) {
  static const churn_turn turns[] = {churn_exchange, turn_move,
                                     turn_run,       turn_delete,
                                     turn_errors,    churn_hand_on};
  turns[turn % (long)COUNT_OF(turns)](all, client,
                                      turn / (long)COUNT_OF(turns));
}

// ---- threads

typedef struct worker {
  pthread_t thread;
  churn *all;
  churn_client *client;
  churn_turn work;
  long turns;
} worker;

static void *work(void *self) {
  worker *w = self;
  for (long turn = 0; turn < w->turns; turn++) {
    w->work(w->all, w->client, turn);
  }
  atomic_fetch_add(&w->all->turns, w->turns);
  return NULL;
}

void churn_run(churn *all, int threads, long turns, churn_turn turn) {
  worker *workers = calloc((size_t)threads, sizeof *workers);
  assert_non_null(workers);
  for (int i = 0; i < threads; i++) {
    churn_client *client = &all->client[(size_t)i % all->count];
    workers[i] =
        (worker){.all = all, .client = client, .work = turn, .turns = turns};
    assert_int_equal(
        pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < threads; i++) pthread_join(workers[i].thread, NULL);
  free(workers);
  settle(all, LONG_MAX);
}

// ---- what is held

static long count_descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  if (folder == NULL) return -1;
  long count = -1;  // the folder's own
  while (readdir(folder) != NULL) count++;
  closedir(folder);
  return count - 2;  // . and ..
}

static long resident_kib(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  long size, pages = 0;
  if (file == NULL) return -1;
  if (fscanf(file, "%ld %ld", &size, &pages) != 2) pages = 0;
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

churn_usage churn_measure(const churn *all) {
  struct mallinfo2 heap = mallinfo2();
  return (churn_usage){.live = all->counts.live,
                       .descriptors = count_descriptors(),
                       .resident = resident_kib(),
                       .heap = (long)((heap.uordblks + heap.hblkhd) / 1024)};
}
