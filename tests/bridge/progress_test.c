// SPDX-License-Identifier: Apache-2.0
// progress_test.c: who copies is told how far it is, on every door, and may
// cancel: then nothing is made, and nothing is taken.

#define _XOPEN_SOURCE 700

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/counting_allocator.h"
#include "support/temp_folder.h"
#include "support/testing.h"

enum {
  rows = 700,
  columns = 1000,
  nbytes = rows * columns * 4,
  round_bytes = 1 << 20
};

typedef struct world {
  counting_allocator counter;
  ist_allocator hook;
  ist_context *context;
  ist_backend *near, *far;  // of the template: with and without addresses
  temp_folder folder;
  float *memory;
  int64_t shape[2], strides[2];
  DLManagedTensorVersioned source;
  int deleted;
} world;

static void delete_source(DLManagedTensorVersioned *self) {
  world *w = self->manager_ctx;
  w->deleted++;
}

static ist_backend *open_template(world *w, bool addressable) {
  ist_option option = {
      .name = "addressable", .kind = IST_OPTION_BOOL, .boolean = addressable};
  ist_backend_options how = {
      .struct_size = sizeof how, .options = &option, .option_count = 1};
  ist_backend *backend;
  ist_error err;
  assert_ok(ist_backend_open(w->context, "template", &how, &backend, &err),
            err);
  return backend;
}

// A transposed source of nbytes.
static void begin(world *w, int32_t threads) {
  memset(w, 0, sizeof *w);
  counting_allocator_init(&w->counter);
  w->hook = counting_allocator_hook(&w->counter);
  ist_context_options options = {
      .struct_size = sizeof options, .allocator = &w->hook, .threads = threads};
  ist_error err;
  assert_ok(ist_context_create(&options, &w->context, &err), err);
  w->near = open_template(w, true);
  w->far = open_template(w, false);
  temp_folder_make(&w->folder);
  w->memory = aligned_alloc(64, nbytes);
  for (int i = 0; i < rows * columns; i++) w->memory[i] = (float)i;
  w->shape[0] = rows;
  w->shape[1] = columns;
  w->strides[0] = 1;
  w->strides[1] = rows;
  w->source = (DLManagedTensorVersioned){.version = {1, 3},
                                         .manager_ctx = w,
                                         .deleter = delete_source,
                                         .dl_tensor = {w->memory,
                                                       {kDLCPU, 0},
                                                       2,
                                                       {kDLFloat, 32, 1},
                                                       w->shape,
                                                       w->strides,
                                                       0}};
}

static void end(world *w) {
  ist_backend_release(w->near);
  ist_backend_release(w->far);
  ist_context_release(w->context);
  assert_int_equal(atomic_load(&w->counter.live), 0);
  temp_folder_remove(&w->folder);
  free(w->memory);
}

// Told of a copy; cancels at call number cancel_at (from 1; 0: never).
typedef struct listener {
  uint64_t last, total;
  int calls;
  int cancel_at;
  pthread_t thread;
} listener;

static bool listen(void *self, uint64_t done, uint64_t total) {
  listener *l = self;
  assert_true(pthread_equal(pthread_self(), l->thread));
  assert_true(l->calls > 0 || done == 0);
  assert_true(done >= l->last && done <= total);
  l->last = done;
  l->total = total;
  l->calls++;
  return l->calls != l->cancel_at;
}

static ist_options options_of(listener *l, int cancel_at) {
  *l = (listener){.cancel_at = cancel_at, .thread = pthread_self()};
  return (ist_options){.struct_size = sizeof(ist_options),
                       .progress = listen,
                       .progress_self = l};
}

// ---- the doors: each makes something of the world's source, or fails whole

typedef ist_code (*door)(world *w, const ist_options *options, ist_error *err);

static ist_tensor *wrapped(world *w) {
  ist_tensor *t;
  ist_error err;
  assert_ok(
      ist_tensor_wrap(w->context, &w->source.dl_tensor, NULL, NULL, &t, &err),
      err);
  return t;
}

static ist_code import_to(world *w, const ist_device *device,
                          const ist_options *options, ist_error *err) {
  ist_tensor *out = (void *)w;
  ist_options always = *options;
  always.copy = IST_COPY_ALWAYS;
  int before = w->deleted;
  ist_code code =
      ist_tensor_import(device, &w->source, &always, &out, NULL, err);
  if (code != IST_OK) assert_null(out);
  assert_int_equal(w->deleted, before + (code == IST_OK ? 1 : 0));
  ist_tensor_release(out);
  return code;
}

static ist_code import_host(world *w, const ist_options *o, ist_error *err) {
  return import_to(w, ist_context_host(w->context), o, err);
}

static ist_code import_near(world *w, const ist_options *o, ist_error *err) {
  return import_to(w, ist_backend_device(w->near, 0), o, err);
}

static ist_code import_far(world *w, const ist_options *o, ist_error *err) {
  return import_to(w, ist_backend_device(w->far, 0), o, err);
}

static ist_code export_copy(world *w, const ist_options *options,
                            ist_error *err) {
  ist_tensor *t = wrapped(w);
  ist_options always = *options;
  always.copy = IST_COPY_ALWAYS;
  DLManagedTensorVersioned *out = (void *)w;
  ist_code code = ist_tensor_export(t, &always, &out, NULL, err);
  if (code != IST_OK) assert_null(out);
  if (out != NULL) out->deleter(out);
  ist_tensor_release(t);
  return code;
}

static ist_code move_back(world *w, const ist_options *options,
                          ist_error *err) {
  ist_tensor *t = wrapped(w), *far = NULL, *out = NULL;
  assert_ok(
      ist_tensor_move(t, ist_backend_device(w->far, 0), NULL, &far, NULL, err),
      *err);
  ist_code code = ist_tensor_move(far, ist_context_host(w->context), options,
                                  &out, NULL, err);
  if (code != IST_OK) assert_null(out);
  ist_tensor_release(out);
  ist_tensor_release(far);
  ist_tensor_release(t);
  return code;
}

static ist_code copy_into(world *w, const ist_options *options,
                          ist_error *err) {
  ist_tensor *t = wrapped(w);
  float *memory = malloc(nbytes);
  DLTensor target = w->source.dl_tensor;
  target.data = memory;
  target.strides = NULL;
  ist_code code = ist_tensor_copy_into(t, &target, options, NULL, err);
  free(memory);
  ist_tensor_release(t);
  return code;
}

static ist_code save(world *w, const char *name, const ist_options *options,
                     ist_error *err) {
  ist_tensor *t = wrapped(w);
  const char *names[] = {"t"};
  const char *path = temp_file(&w->folder, name);
  ist_code code = ist_file_save_with(path, names, &t, 1, options, err);
  // No file, not even a part: the folder is removed when it is empty.
  assert_int_equal(access(path, F_OK) == 0, code == IST_OK);
  if (code == IST_OK) assert_int_equal(remove(path), 0);
  ist_tensor_release(t);
  return code;
}

static ist_code save_npy(world *w, const ist_options *o, ist_error *err) {
  return save(w, "t.npy", o, err);
}

static ist_code save_safetensors(world *w, const ist_options *o,
                                 ist_error *err) {
  return save(w, "t.safetensors", o, err);
}

static const door doors[] = {import_host, import_near,     import_far,
                             export_copy, move_back,       copy_into,
                             save_npy,    save_safetensors};

static void progress__reaches_every_door_and_ends_with_all(void **state) {
  (void)state;
  for (int32_t threads = 0; threads <= 3; threads += 3) {
    world w;
    begin(&w, threads);
    for (size_t i = 0; i < COUNT_OF(doors); i++) {
      listener l;
      ist_options options = options_of(&l, 0);
      ist_error err;
      assert_ok(doors[i](&w, &options, &err), err);
      assert_true(l.calls >= 2);
      assert_int_equal(l.last, l.total);
      assert_int_equal(l.total % nbytes, 0);
      assert_true(l.total > 0);
    }
    end(&w);
  }
}

// Every call of a clean run is answered with no once: nothing is left.
static void progress__that_says_no_leaves_everything_as_it_was(void **state) {
  (void)state;
  world w;
  begin(&w, 2);
  for (size_t i = 0; i < COUNT_OF(doors); i++) {
    listener l;
    ist_options options = options_of(&l, 0);
    ist_error err = {0};
    assert_ok(doors[i](&w, &options, &err), err);
    int calls = l.calls;
    for (int n = 1; n <= calls; n++) {
      long live = atomic_load(&w.counter.live);
      options = options_of(&l, n);
      assert_refused(doors[i](&w, &options, &err), IST_ERR_CANCELLED, err,
                     "cancelled it after");
      assert_int_equal(l.calls, n);  // asked no more
      assert_int_equal(atomic_load(&w.counter.live), live);
    }
  }
  end(&w);
}

static void progress__is_told_in_small_steps_where_the_host_copies(
    void **state) {
  (void)state;
  world w;
  begin(&w, 0);
  listener l;
  ist_options options = options_of(&l, 0);
  ist_error err;
  assert_ok(import_host(&w, &options, &err), err);
  assert_true(l.calls > nbytes / round_bytes);
  end(&w);
}

static void progress__hears_nothing_of_an_alias(void **state) {
  (void)state;
  world w;
  begin(&w, 0);
  listener l;
  ist_options options = options_of(&l, 1);
  ist_error err;
  ist_tensor *out;
  assert_ok(ist_tensor_import(ist_context_host(w.context), &w.source, &options,
                              &out, NULL, &err),
            err);
  assert_int_equal(l.calls, 0);
  ist_tensor_release(out);
  end(&w);
}

// One of eight that copy through one context at once.
typedef struct copier {
  world *w;
  float *memory;
  ist_code code;
  uint64_t told;
} copier;

static void *copy_often(void *self) {
  copier *c = self;
  ist_tensor *t = wrapped(c->w);
  DLTensor target = c->w->source.dl_tensor;
  target.data = c->memory;
  target.strides = NULL;
  for (int i = 0; i < 4 && c->code == IST_OK; i++) {
    listener l;
    ist_options options = options_of(&l, 0);
    memset(c->memory, 0, nbytes);
    c->code = ist_tensor_copy_into(t, &target, i % 2 == 0 ? &options : NULL,
                                   NULL, NULL);
    c->told += i % 2 == 0 ? l.last : 0;
  }
  ist_tensor_release(t);
  return NULL;
}

static void copies__of_eight_threads_share_one_pool(void **state) {
  (void)state;
  enum {
    copier_count = 8
  };
  world w;
  begin(&w, 4);
  copier copiers[copier_count];
  pthread_t threads[copier_count];
  for (int i = 0; i < copier_count; i++) {
    copiers[i] = (copier){.w = &w, .memory = malloc(nbytes)};
    assert_int_equal(pthread_create(&threads[i], NULL, copy_often, &copiers[i]),
                     0);
  }
  for (int i = 0; i < copier_count; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(copiers[i].code, IST_OK);
    assert_int_equal(copiers[i].told, 2 * nbytes);
    for (int k = 0; k < rows * columns; k++) {
      float wanted = w.memory[k % columns * rows + k / columns];
      if (copiers[i].memory[k] != wanted) fail_msg("item %d is wrong", k);
    }
    free(copiers[i].memory);
  }
  end(&w);
}

// The context goes with its threads, or is not made at all.
static void context__with_threads_survives_each_failed_allocation(
    void **state) {
  (void)state;
  counting_allocator counter;
  counting_allocator_init(&counter);
  ist_allocator hook = counting_allocator_hook(&counter);
  ist_context_options options = {
      .struct_size = sizeof options, .allocator = &hook, .threads = 3};
  ist_code code = IST_ERR_NO_ALLOCATION;
  for (long n = 1; code != IST_OK; n++) {
    ist_context *context = (void *)&counter;
    ist_error err = {0};
    counting_allocator_arm(&counter, n);
    code = ist_context_create(&options, &context, &err);
    if (code != IST_OK) {
      assert_int_equal(code, IST_ERR_NO_ALLOCATION);
      assert_int_equal(atomic_load(&counter.failed), 1);
      assert_null(context);
    }
    ist_context_release(context);
    assert_int_equal(atomic_load(&counter.live), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(progress__reaches_every_door_and_ends_with_all),
      cmocka_unit_test(progress__that_says_no_leaves_everything_as_it_was),
      cmocka_unit_test(progress__is_told_in_small_steps_where_the_host_copies),
      cmocka_unit_test(progress__hears_nothing_of_an_alias),
      cmocka_unit_test(copies__of_eight_threads_share_one_pool),
      cmocka_unit_test(context__with_threads_survives_each_failed_allocation),
  };
  return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
