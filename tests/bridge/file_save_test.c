// SPDX-License-Identifier: Apache-2.0
// file_save_test.c: what is saved is read back equal, from any strides, dtype
// and memory, and a failure leaves nothing behind.

#define _XOPEN_SOURCE 700

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/context.h"
#include "support/counting_allocator.h"
#include "support/temp_folder.h"
#include "support/testing.h"
#include "tensor/dtype.h"

typedef struct fixture {
  counting_allocator counter;
  ist_allocator hook;
  ist_context *context;
  temp_folder folder;
} fixture;

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  counting_allocator_init(&f->counter);
  f->hook = counting_allocator_hook(&f->counter);
  ist_context_options options = {.struct_size = sizeof options,
                                 .allocator = &f->hook};
  assert_int_equal(ist_context_create(&options, &f->context, NULL), IST_OK);
  temp_folder_make(&f->folder);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  ist_context_release(f->context);
  assert_int_equal(atomic_load(&f->counter.live), 0);
  temp_folder_remove(&f->folder);
  free(f);
  return 0;
}

// A tensor over memory of the test's, which outlives it.
static ist_tensor *wrap(fixture *f, void *data, DLDataType dtype, int32_t ndim,
                        int64_t *shape, int64_t *strides) {
  DLTensor view = {.data = data,
                   .device = {kDLCPU, 0},
                   .ndim = ndim,
                   .dtype = dtype,
                   .shape = shape,
                   .strides = strides};
  ist_tensor *tensor = NULL;
  ist_error err = {0};
  assert_ok(ist_tensor_wrap(f->context, &view, NULL, NULL, &tensor, &err), err);
  return tensor;
}

static void save(const char *path, const char *const *names,
                 ist_tensor *const *tensors, size_t count) {
  ist_error err = {0};
  assert_ok(ist_file_save(path, names, tensors, count, &err), err);
}

static ist_tensor *load(fixture *f, const char *path, const char *name,
                        const char *dtype) {
  ist_file_options options = {.struct_size = sizeof options, .dtype = dtype};
  ist_file *file = NULL;
  ist_tensor *tensor = NULL;
  ist_error err = {0};
  assert_ok(ist_file_open(f->context, path, &options, &file, &err), err);
  assert_ok(ist_file_tensor(file, name, &tensor, &err), err);
  ist_file_release(file);
  return tensor;
}

// A tensor's elements, dense and row-major; free them.
static unsigned char *values_of(ist_tensor *tensor, size_t *out_size) {
  ist_options options = {.struct_size = sizeof options,
                         .copy = IST_COPY_ALWAYS};
  DLManagedTensorVersioned *managed = NULL;
  ist_error err = {0};
  assert_ok(ist_tensor_export(tensor, &options, &managed, NULL, &err), err);
  const DLTensor *view = &managed->dl_tensor;
  size_t count = 1;
  for (int32_t i = 0; i < view->ndim; i++) count *= (size_t)view->shape[i];
  bool padded =
      (managed->flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0;
  size_t bits = padded ? 8 : view->dtype.bits;
  size_t size = (count * bits + 7) / 8;
  unsigned char *values = calloc(1, size + 1);
  assert_non_null(values);
  if (size > 0) {
    memcpy(values, (char *)view->data + view->byte_offset, size);
  }
  managed->deleter(managed);
  *out_size = size;
  return values;
}

static void assert_same_values(ist_tensor *a, ist_tensor *b) {
  const DLTensor *x = ist_tensor_view(a), *y = ist_tensor_view(b);
  assert_int_equal(x->dtype.code, y->dtype.code);
  assert_int_equal(x->dtype.bits, y->dtype.bits);
  assert_int_equal(x->ndim, y->ndim);
  for (int32_t i = 0; i < x->ndim; i++) {
    assert_int_equal(x->shape[i], y->shape[i]);
  }
  size_t left, right;
  unsigned char *one = values_of(a, &left), *two = values_of(b, &right);
  assert_int_equal(left, right);
  assert_memory_equal(one, two, left);
  free(one);
  free(two);
}

// A random view of up to four dimensions over a pool of 8192 bytes: permuted,
// with gaps, backwards, broadcast, empty.
static ist_tensor *random_tensor(fixture *f, unsigned char *pool,
                                 DLDataType dtype, uint64_t *seed) {
  int64_t shape[4], strides[4];
  int32_t ndim = (int32_t)random_below(seed, 5);
  int64_t step = 1, first = 0;
  size_t item = dtype.bits / 8U;
  for (int32_t i = 0; i < ndim; i++) shape[i] = random_below(seed, 6);
  int32_t start = ndim == 0 ? 0 : (int32_t)random_below(seed, ndim);
  for (int32_t k = 0; k < ndim; k++) {
    int32_t i = (start + k) % ndim;
    strides[i] = step * (random_below(seed, 8) == 0 ? 0 : 1);
    if (random_below(seed, 4) == 0) strides[i] = -strides[i];
    if (shape[i] > 1 && strides[i] < 0) first -= strides[i] * (shape[i] - 1);
    step *= shape[i] + random_below(seed, 2);
    if (step == 0) step = 1;
  }
  return wrap(f, pool + (size_t)first * item, dtype, ndim, shape, strides);
}

static void save__reads_back_any_strides(void **state) {
  fixture *f = *state;
  uint64_t seed = 20240229;
  // 7^4 elements of 16 bytes, twice for strides that go backwards.
  size_t size = 64 * 1201;
  unsigned char *pool = aligned_alloc(64, size);
  assert_non_null(pool);
  for (size_t i = 0; i < size; i++) pool[i] = (unsigned char)(i * 7 + i / 251);
  for (int round = 0; round < 300; round++) {
    const ist__dtype *row =
        ist__dtype_at((int32_t)random_below(&seed, ist__dtype_count()));
    if (row->bits < 8) continue;
    DLDataType dtype = {row->code, row->bits, 1};
    ist_tensor *tensor = random_tensor(f, pool, dtype, &seed);
    const char *path = temp_file(&f->folder, "a.npy");
    save(path, NULL, &tensor, 1);
    ist_tensor *back = load(f, path, NULL, row->npy == NULL ? row->name : NULL);
    assert_same_values(tensor, back);
    ist_tensor_release(back);
    unlink(path);
    if (row->safetensors != NULL) {
      path = temp_file(&f->folder, "a.safetensors");
      static const char *const names[] = {"w"};
      save(path, names, &tensor, 1);
      back = load(f, path, "w", NULL);
      assert_same_values(tensor, back);
      ist_tensor_release(back);
      unlink(path);
    }
    ist_tensor_release(tensor);
  }
  free(pool);
}

static void save__keeps_columns_without_a_copy(void **state) {
  fixture *f = *state;
  uint16_t data[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 3}, strides[] = {1, 2};
  ist_tensor *tensor =
      wrap(f, data, (DLDataType){kDLUInt, 16, 1}, 2, shape, strides);
  const char *path = temp_file(&f->folder, "a.npy");
  save(path, NULL, &tensor, 1);
  ist_tensor *back = load(f, path, NULL, NULL);
  assert_int_equal(ist_tensor_view(back)->strides[0], 1);
  assert_int_equal(ist_tensor_view(back)->strides[1], 2);
  assert_same_values(tensor, back);
  ist_tensor_release(back);
  ist_tensor_release(tensor);
  unlink(path);
}

static void save__pads_in_npy_and_packs_in_safetensors(void **state) {
  fixture *f = *state;
  // 4-bit floats 1..6, packed.
  unsigned char packed[] = {0x21, 0x43, 0x65};
  int64_t shape[] = {6}, strides[] = {1};
  ist_tensor *tensor =
      wrap(f, packed, (DLDataType){kDLFloat4_e2m1fn, 4, 1}, 1, shape, strides);
  static const char *const names[] = {"w"};
  const char *path = temp_file(&f->folder, "a.safetensors");
  save(path, names, &tensor, 1);
  ist_tensor *back = load(f, path, "w", NULL);
  assert_memory_equal(ist_tensor_view(back)->data, packed, 3);
  ist_tensor_release(tensor);
  path = temp_file(&f->folder, "a.npy");
  save(path, NULL, &back, 1);
  ist_tensor_release(back);
  back = load(f, path, NULL, "float4_e2m1fn");
  assert_memory_equal(ist_tensor_view(back)->data, "\1\2\3\4\5\6", 6);
  path = temp_file(&f->folder, "b.safetensors");
  save(path, names, &back, 1);
  ist_tensor_release(back);
  back = load(f, path, "w", NULL);
  assert_memory_equal(ist_tensor_view(back)->data, packed, 3);
  ist_tensor_release(back);
  unlink(path);
  unlink(temp_file(&f->folder, "a.npy"));
  unlink(temp_file(&f->folder, "a.safetensors"));
}

static void save__aligns_tensors_for_plugins(void **state) {
  fixture *f = *state;
  static const char *const names[] = {"flag", "weight", "bias", "big"};
  static const int64_t extents[] = {1, 32, 10, 16};
  static const DLDataType dtypes[] = {
      {kDLBool, 8, 1}, {kDLFloat, 32, 1}, {kDLFloat, 32, 1}, {kDLFloat, 64, 1}};
  ist_tensor *tensors[4];
  for (int i = 0; i < 4; i++) {
    ist_spec spec = {.struct_size = sizeof spec,
                     .dtype = dtypes[i],
                     .ndim = 1,
                     .shape = {extents[i]}};
    assert_int_equal(ist_tensor_empty(f->context, &spec, 0, &tensors[i], NULL),
                     IST_OK);
  }
  const char *path = temp_file(&f->folder, "a.safetensors");
  save(path, names, tensors, 4);
  for (int i = 0; i < 4; i++) {
    ist_tensor *back = load(f, path, names[i], NULL);
    uintptr_t address = (uintptr_t)ist_tensor_view(back)->data;
    ist_tensor_info info = {.struct_size = sizeof info};
    assert_int_equal(ist_tensor_describe(back, &info, NULL), IST_OK);
    assert_false(info.copied);
    assert_int_equal(address % (dtypes[i].bits / 8U), 0);
    if (info.nbytes % 64 == 0) assert_int_equal(address % 64, 0);
    assert_same_values(tensors[i], back);
    ist_tensor_release(back);
    ist_tensor_release(tensors[i]);
  }
  unlink(path);
}

// Three floats, copied to a device whose addresses this process cannot read.
static ist_tensor *device_tensor(fixture *f) {
  ist_option option = {.name = "addressable", .kind = IST_OPTION_BOOL};
  ist_backend_options options = {
      .struct_size = sizeof options, .options = &option, .option_count = 1};
  ist_backend *backend = NULL;
  ist_error err = {0};
  assert_ok(ist_backend_open(f->context, "template", &options, &backend, &err),
            err);
  static float data[3] = {1.5f, -2.0f, 3.25f};
  int64_t shape[] = {3}, strides[] = {1};
  ist_tensor *host =
      wrap(f, data, (DLDataType){kDLFloat, 32, 1}, 1, shape, strides);
  ist_tensor *tensor = NULL;
  assert_ok(ist_tensor_move(host, ist_backend_device(backend, 0), NULL, &tensor,
                            NULL, &err),
            err);
  ist_tensor_release(host);
  ist_backend_release(backend);
  return tensor;
}

static void save__copies_devices_out(void **state) {
  fixture *f = *state;
  ist_tensor *tensor = device_tensor(f);
  assert_null(ist_tensor_view(tensor)->data);
  const char *path = temp_file(&f->folder, "a.npy");
  save(path, NULL, &tensor, 1);
  ist_tensor *back = load(f, path, NULL, NULL);
  static const float data[3] = {1.5f, -2.0f, 3.25f};
  assert_memory_equal(ist_tensor_view(back)->data, data, sizeof data);
  ist_tensor_release(back);
  ist_tensor_release(tensor);
  unlink(path);
}

static void save__writes_over_the_file_it_reads(void **state) {
  fixture *f = *state;
  uint16_t data[4] = {1, 2, 3, 4};
  int64_t shape[] = {4}, strides[] = {1};
  ist_tensor *tensor =
      wrap(f, data, (DLDataType){kDLUInt, 16, 1}, 1, shape, strides);
  const char *path = temp_file(&f->folder, "a.npy");
  save(path, NULL, &tensor, 1);
  ist_tensor *back = load(f, path, NULL, NULL);
  save(path, NULL, &back, 1);
  ist_tensor *again = load(f, path, NULL, NULL);
  assert_same_values(tensor, back);
  assert_same_values(tensor, again);
  ist_tensor_release(again);
  ist_tensor_release(back);
  ist_tensor_release(tensor);
  unlink(path);
}

static void save__writes_a_file_without_tensors(void **state) {
  fixture *f = *state;
  const char *path = temp_file(&f->folder, "a.safetensors");
  save(path, NULL, NULL, 0);
  ist_file *file = NULL;
  assert_int_equal(ist_file_open(f->context, path, NULL, &file, NULL), IST_OK);
  assert_int_equal(ist_file_count(file), 0);
  ist_tensor *tensor = NULL;
  assert_int_equal(ist_file_tensor(file, NULL, &tensor, NULL),
                   IST_ERR_NAME_NEEDED);
  ist_file_release(file);
  unlink(path);
}

static void save__refuses_and_leaves_nothing(void **state) {
  fixture *f = *state;
  double data[2] = {0};
  int64_t shape[] = {1}, strides[] = {1};
  ist_tensor *tensor =
      wrap(f, data, (DLDataType){kDLComplex, 128, 1}, 1, shape, strides);
  ist_tensor *both[] = {tensor, NULL};
  static const char *const names[] = {"w", "v"};
  temp_folder *folder = &f->folder;
  ist_error err = {0};
  assert_refused(
      ist_file_save(temp_file(folder, "a.safetensors"), names, both, 1, &err),
      IST_ERR_FILE_DTYPE, err, "complex128");
  assert_refused(ist_file_save(temp_file(folder, "a.npy"), NULL, both, 2, &err),
                 IST_ERR_ARGUMENT, err, "holds one tensor");
  assert_refused(
      ist_file_save(temp_file(folder, "a.safetensors"), names, both, 2, &err),
      IST_ERR_ARGUMENT, err, "a tensor is NULL");
  assert_refused(
      ist_file_save(temp_file(folder, "a.safetensors"), NULL, both, 1, &err),
      IST_ERR_ARGUMENT, err, "names is NULL");
  assert_refused(ist_file_save(temp_file(folder, "a.txt"), NULL, both, 1, &err),
                 IST_ERR_OUTPUT, err, "neither .npy nor .safetensors");
  assert_refused(ist_file_save(NULL, NULL, both, 1, &err), IST_ERR_ARGUMENT,
                 err, "path is NULL");
  assert_refused(
      ist_file_save(temp_file(folder, "no/a.npy"), NULL, both, 1, &err),
      IST_ERR_OUTPUT, err, "no/a.npy");
  assert_int_equal(mkdir(temp_file(folder, "d.npy"), 0700), 0);
  assert_refused(ist_file_save(folder->file, NULL, both, 1, &err),
                 IST_ERR_OUTPUT, err, "it is a folder");
  assert_int_equal(rmdir(folder->file), 0);
  ist_tensor_release(tensor);
}

static void save__leaves_nothing_on_a_full_disk(void **state) {
  fixture *f = *state;
  int64_t shape[] = {4096}, strides[] = {1};
  static unsigned char data[4096];
  ist_tensor *tensor =
      wrap(f, data, (DLDataType){kDLUInt, 8, 1}, 1, shape, strides);
  struct rlimit before, small;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 1024;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  ist_error err = {0};
  static const char *const names[] = {"w"};
  ist_code npy =
      ist_file_save(temp_file(&f->folder, "a.npy"), NULL, &tensor, 1, &err);
  ist_code safetensors = ist_file_save(temp_file(&f->folder, "a.safetensors"),
                                       names, &tensor, 1, &err);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  assert_int_equal(npy, IST_ERR_DISK_FULL);
  assert_refused(safetensors, IST_ERR_DISK_FULL, err, "no space is left");
  ist_tensor_release(tensor);
}

static ist_code save_strided(fixture *f, ist_tensor *tensor, const char *name) {
  static const char *const names[] = {"w"};
  return ist_file_save(temp_file(&f->folder, name), names, &tensor, 1, NULL);
}

static void save__loses_nothing_when_memory_ends(void **state) {
  fixture *f = *state;
  ist_tensor *tensor = device_tensor(f);
  static const char *const files[] = {"a.npy", "a.safetensors"};
  for (size_t k = 0; k < 2; k++) {
    counting_allocator_arm(&f->counter, 0);
    assert_int_equal(save_strided(f, tensor, files[k]), IST_OK);
    unlink(f->folder.file);
    long calls = atomic_load(&f->counter.requests);
    long before = atomic_load(&f->counter.live);
    assert_true(calls > 3);
    for (long n = 1; n <= calls; n++) {
      counting_allocator_arm(&f->counter, n);
      assert_int_equal(save_strided(f, tensor, files[k]),
                       IST_ERR_NO_ALLOCATION);
      assert_int_equal(atomic_load(&f->counter.failed), 1);
      assert_int_equal(atomic_load(&f->counter.live), before);
      assert_int_equal(access(f->folder.file, F_OK), -1);
    }
  }
  counting_allocator_arm(&f->counter, 0);
  ist_tensor_release(tensor);
}

// Fails call number fail_at of a backend, from 1; 0: none.
typedef struct failing_call {
  long calls;
  long fail_at;
} failing_call;

static bool fail_call(void *self, const char *slot) {
  (void)slot;
  failing_call *f = self;
  return ++f->calls == f->fail_at;
}

static void save__loses_nothing_when_a_backend_fails(void **state) {
  fixture *f = *state;
  failing_call failing = {0};
  ist__context_set_call_hook(f->context, fail_call, &failing);
  long calls = 0;
  // The first round counts. A new tensor each time: a loan is taken once.
  for (long n = 0; n <= calls; n++) {
    failing = (failing_call){0};
    ist_tensor *tensor = device_tensor(f);
    long before = atomic_load(&f->counter.live);
    failing = (failing_call){.fail_at = n};
    assert_int_equal(save_strided(f, tensor, "a.npy"),
                     n == 0 ? IST_OK : IST_ERR_INTERNAL);
    assert_true(failing.calls > 0 && failing.calls >= n);
    assert_int_equal(atomic_load(&f->counter.live), before);
    assert_int_equal(access(f->folder.file, F_OK), n == 0 ? 0 : -1);
    if (n == 0) {
      calls = failing.calls;
      unlink(f->folder.file);
    }
    ist_tensor_release(tensor);
  }
  failing = (failing_call){0};
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(save__reads_back_any_strides, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(save__keeps_columns_without_a_copy, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(
          save__pads_in_npy_and_packs_in_safetensors, setup, teardown),
      cmocka_unit_test_setup_teardown(save__aligns_tensors_for_plugins, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(save__copies_devices_out, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(save__writes_over_the_file_it_reads,
                                      setup, teardown),
      cmocka_unit_test_setup_teardown(save__writes_a_file_without_tensors,
                                      setup, teardown),
      cmocka_unit_test_setup_teardown(save__refuses_and_leaves_nothing, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(save__leaves_nothing_on_a_full_disk,
                                      setup, teardown),
      cmocka_unit_test_setup_teardown(save__loses_nothing_when_memory_ends,
                                      setup, teardown),
      cmocka_unit_test_setup_teardown(save__loses_nothing_when_a_backend_fails,
                                      setup, teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
