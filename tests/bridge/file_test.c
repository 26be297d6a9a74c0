// SPDX-License-Identifier: Apache-2.0
// file_test.c: files are opened; their tensors are views of the map.

#define _XOPEN_SOURCE 700

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/counting_allocator.h"
#include "support/temp_folder.h"
#include "support/testing.h"

typedef struct fixture {
  counting_allocator counter;
  ist_context *context;
  temp_folder folder;
  unsigned char bytes[4096];
  size_t size;
} fixture;

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  counting_allocator_init(&f->counter);
  ist_allocator hook = counting_allocator_hook(&f->counter);
  ist_context_options options = {.struct_size = sizeof options,
                                 .allocator = &hook};
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

// A .npy file in memory, then on disk: 128 bytes of header, data 0, 1, 2, ...
static const char *write_npy(fixture *f, const char *name, const char *header,
                             size_t nbytes) {
  memset(f->bytes, ' ', 128);
  memcpy(f->bytes, "\x93NUMPY\1\0\x76\0", 10);
  memcpy(f->bytes + 10, header, strlen(header));
  f->bytes[127] = '\n';
  for (size_t i = 0; i < nbytes; i++) f->bytes[128 + i] = (unsigned char)i;
  f->size = 128 + nbytes;
  return temp_file_write(&f->folder, name, f->bytes, f->size);
}

static const char *write_safetensors(fixture *f, const char *name,
                                     const char *header, size_t nbytes) {
  size_t length = strlen(header);
  for (int i = 0; i < 8; i++) f->bytes[i] = (unsigned char)(length >> (8 * i));
  memcpy(f->bytes + 8, header, length);
  for (size_t i = 0; i < nbytes; i++) {
    f->bytes[8 + length + i] = (unsigned char)i;
  }
  f->size = 8 + length + nbytes;
  return temp_file_write(&f->folder, name, f->bytes, f->size);
}

static ist_file *open_as(fixture *f, const char *path, const char *dtype) {
  ist_file_options options = {.struct_size = sizeof options, .dtype = dtype};
  ist_file *file = NULL;
  ist_error err = {0};
  assert_ok(ist_file_open(f->context, path, &options, &file, &err), err);
  assert_non_null(file);
  return file;
}

static ist_tensor *tensor_of(ist_file *file, const char *name) {
  ist_tensor *tensor = NULL;
  ist_error err = {0};
  assert_ok(ist_file_tensor(file, name, &tensor, &err), err);
  assert_non_null(tensor);
  return tensor;
}

static ist_tensor_info info_of(const ist_tensor *tensor) {
  ist_tensor_info info = {.struct_size = sizeof info};
  assert_int_equal(ist_tensor_describe(tensor, &info, NULL), IST_OK);
  return info;
}

static const char *address_of(const ist_tensor *tensor) {
  const DLTensor *view = ist_tensor_view(tensor);
  assert_non_null(view->data);
  return (const char *)view->data + view->byte_offset;
}

#define HEADER(descr, order, shape) \
  "{'descr': '" descr "', 'fortran_order': " order ", 'shape': (" shape "), }"

static void file__tensor_is_a_view_of_the_map(void **state) {
  fixture *f = *state;
  const char *path = write_npy(f, "a.npy", HEADER("<i4", "False", "2, 3"), 24);
  ist_file *file = open_as(f, path, NULL);
  assert_int_equal(ist_file_count(file), 1);
  assert_string_equal(ist_file_name(file, 0), "");
  assert_null(ist_file_name(file, 1));
  ist_tensor *one = tensor_of(file, NULL), *two = tensor_of(file, "");
  // The same memory each time, and none was asked for that could hold it.
  assert_ptr_equal(address_of(one), address_of(two));
  assert_memory_equal(address_of(one), f->bytes + f->size - 24, 24);
  assert_int_equal((uintptr_t)address_of(one) % 4096, 128);
  ist_tensor_info info = info_of(one);
  assert_true(info.read_only);
  assert_false(info.copied);
  assert_int_equal(info.grant, IST_GRANT_READ_ONLY);
  assert_ptr_equal(info.device, ist_context_host(f->context));
  ist_tensor_release(one);
  ist_tensor_release(two);
  ist_file_release(file);
  unlink(path);
}

static void file__map_lives_as_long_as_a_tensor(void **state) {
  fixture *f = *state;
  const char *path = write_npy(f, "a.npy", HEADER("|u1", "False", "4,"), 4);
  ist_context *context = NULL;
  assert_int_equal(ist_context_create(NULL, &context, NULL), IST_OK);
  ist_file *file = NULL;
  assert_int_equal(ist_file_open(context, path, NULL, &file, NULL), IST_OK);
  ist_tensor *tensor = tensor_of(file, NULL);
  ist_file_release(file);
  ist_context_release(context);
  unlink(path);
  assert_memory_equal(address_of(tensor), "\0\1\2\3", 4);
  DLManagedTensorVersioned *managed = NULL;
  assert_int_equal(ist_tensor_export(tensor, NULL, &managed, NULL, NULL),
                   IST_OK);
  ist_tensor_release(tensor);
  assert_true((managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0);
  assert_memory_equal(managed->dl_tensor.data, "\0\1\2\3", 4);
  managed->deleter(managed);
}

static void file__keeps_order_of_fortran_as_strides(void **state) {
  fixture *f = *state;
  const char *path = write_npy(f, "a.npy", HEADER("<i2", "True", "2, 3"), 12);
  ist_file *file = open_as(f, path, NULL);
  ist_tensor *tensor = tensor_of(file, NULL);
  const DLTensor *view = ist_tensor_view(tensor);
  assert_int_equal(view->strides[0], 1);
  assert_int_equal(view->strides[1], 2);
  assert_false(info_of(tensor).copied);
  ist_tensor_release(tensor);
  ist_file_release(file);
  unlink(path);
}

static void file__turns_big_endian_round_in_a_copy(void **state) {
  fixture *f = *state;
  const char *path = write_npy(f, "a.npy", HEADER(">u2", "True", "1, 2"), 4);
  ist_file *file = open_as(f, path, NULL);
  ist_tensor *tensor = tensor_of(file, NULL);
  assert_memory_equal(address_of(tensor), "\1\0\3\2", 4);
  ist_tensor_info info = info_of(tensor);
  assert_true(info.copied);
  assert_false(info.read_only);
  ist_file_release(file);
  assert_memory_equal(address_of(tensor), "\1\0\3\2", 4);
  ist_tensor_release(tensor);
  unlink(path);
}

static void file__copies_what_lies_below_its_alignment(void **state) {
  fixture *f = *state;
  // The format allows it: one byte, then four of a float.
  const char *path = write_safetensors(
      f, "a.safetensors",
      "{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
      "\"f\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}    ",
      5);
  ist_file *file = open_as(f, path, NULL);
  ist_tensor *b = tensor_of(file, "b"), *t = tensor_of(file, "f");
  assert_false(info_of(b).copied);
  assert_true(info_of(t).copied);
  assert_memory_equal(address_of(t), "\1\2\3\4", 4);
  assert_int_equal((uintptr_t)address_of(t) % 64, 0);
  ist_tensor_release(b);
  ist_tensor_release(t);
  ist_file_release(file);
  unlink(path);
}

static void file__reads_raw_items_as_asked(void **state) {
  fixture *f = *state;
  const char *path = write_npy(f, "a.npy", HEADER("<V1", "False", "4,"), 4);
  ist_file *file = open_as(f, path, "int4");
  ist_tensor *tensor = tensor_of(file, NULL);
  assert_int_equal(ist_tensor_view(tensor)->dtype.bits, 4);
  assert_true(info_of(tensor).padded);
  assert_false(info_of(tensor).copied);
  ist_tensor_release(tensor);
  ist_file_release(file);
  unlink(path);
}

static void file__gives_scalars_and_empties(void **state) {
  fixture *f = *state;
  const char *path = write_safetensors(
      f, "a.safetensors",
      "{\"e\":{\"dtype\":\"F64\",\"shape\":[0,3],\"data_offsets\":[0,0]},"
      "\"s\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}",
      1);
  ist_file *file = open_as(f, path, NULL);
  assert_int_equal(ist_file_count(file), 2);
  ist_tensor *e = tensor_of(file, "e"), *s = tensor_of(file, "s");
  assert_int_equal(info_of(e).nbytes, 0);
  assert_int_equal(ist_tensor_view(s)->ndim, 0);
  assert_int_equal(info_of(s).nbytes, 1);
  ist_tensor_release(e);
  ist_tensor_release(s);
  ist_file_release(file);
  unlink(path);
}

static void file__asks_for_a_name_and_lists_them(void **state) {
  fixture *f = *state;
  const char *path = write_safetensors(
      f, "a.safetensors",
      "{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
      "\"bias\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
      2);
  ist_file *file = open_as(f, path, NULL);
  assert_string_equal(ist_file_name(file, 1), "bias");
  ist_tensor *tensor = NULL;
  ist_error err = {0};
  assert_refused(ist_file_tensor(file, NULL, &tensor, &err),
                 IST_ERR_NAME_NEEDED, err, "it holds 2 ('w', 'bias')");
  assert_refused(ist_file_tensor(file, "v", &tensor, &err),
                 IST_ERR_NAME_UNKNOWN, err,
                 "could not give 'v': no tensor has this name; needs one of "
                 "'w', 'bias'");
  assert_null(tensor);
  ist_file_release(file);
  unlink(path);
}

static void file__lists_as_many_names_as_fit(void **state) {
  fixture *f = *state;
  char header[3000] = "{";
  for (int i = 0; i < 40; i++) {
    sprintf(header + strlen(header),
            "%s\"tensor.number.%d\":{\"dtype\":\"U8\",\"shape\":[0],"
            "\"data_offsets\":[0,0]}",
            i == 0 ? "" : ",", i);
  }
  strcat(header, "}");
  const char *path = write_safetensors(f, "a.safetensors", header, 0);
  ist_file *file = open_as(f, path, NULL);
  ist_tensor *tensor = NULL;
  ist_error err = {0};
  assert_refused(ist_file_tensor(file, NULL, &tensor, &err),
                 IST_ERR_NAME_NEEDED, err, "', ...); needs a name");
  ist_file_release(file);
  unlink(path);
}

static void file__of_one_tensor_needs_no_name(void **state) {
  fixture *f = *state;
  const char *path = write_safetensors(
      f, "a.safetensors",
      "{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
  ist_file *file = open_as(f, path, NULL);
  ist_tensor_release(tensor_of(file, NULL));
  ist_file_release(file);
  path = write_npy(f, "a.npy", HEADER("|u1", "False", "4,"), 4);
  file = open_as(f, path, NULL);
  ist_tensor *tensor = NULL;
  ist_error err = {0};
  assert_refused(ist_file_tensor(file, "w", &tensor, &err),
                 IST_ERR_NAME_UNKNOWN, err, ".npy names none");
  ist_file_release(file);
  unlink(path);
  unlink(temp_file(&f->folder, "a.safetensors"));
}

static void file__is_known_by_its_content(void **state) {
  fixture *f = *state;
  const char *path = write_safetensors(
      f, "a.npy",
      "{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
  ist_file *file = open_as(f, path, NULL);
  assert_string_equal(ist_file_name(file, 0), "w");
  ist_file_release(file);
  unlink(path);
}

static void refuse(fixture *f, const char *name, const void *bytes, size_t size,
                   ist_code code, const char *words) {
  const char *path = temp_file_write(&f->folder, name, bytes, size);
  ist_file *file = NULL;
  ist_error err = {0};
  assert_refused(ist_file_open(f->context, path, NULL, &file, &err), code, err,
                 words);
  assert_null(file);
  unlink(path);
}

static void file__refuses_what_is_none(void **state) {
  fixture *f = *state;
  refuse(f, "a.npy", "", 0, IST_ERR_FILE_TRUNCATED,
         "a.npy: the file ends "
         "after 0 bytes");
  refuse(f, "a.txt", "hello there", 11, IST_ERR_FILE_FORMAT, "of no kind");
  refuse(f, "a.npz", "PK\3\4 and so on", 13, IST_ERR_FILE_FORMAT,
         "zip archive (.npz, .pt)");
  refuse(f, "a.npy", "hello there", 11, IST_ERR_FILE_FORMAT,
         "needs \\x93NUMPY");
  refuse(f, "a.safetensors", "abc", 3, IST_ERR_FILE_TRUNCATED,
         "ends after 3 bytes");
  refuse(f, "a.safetensors", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10,
         IST_ERR_FILE_FORMAT, "18446744073709551615 bytes");
  ist_file *file = NULL;
  ist_error err = {0};
  assert_refused(ist_file_open(f->context, f->folder.path, NULL, &file, &err),
                 IST_ERR_FILE_OPEN, err, "a folder");
  assert_refused(ist_file_open(f->context, temp_file(&f->folder, "none.npy"),
                               NULL, &file, &err),
                 IST_ERR_FILE_OPEN, err, "none.npy: No such file");
}

static void file__needs_no_dtype_where_the_file_names_it(void **state) {
  fixture *f = *state;
  const char *path = write_safetensors(f, "a.safetensors", "{}", 0);
  ist_file_options options = {.struct_size = sizeof options,
                              .dtype = "float32"};
  ist_file *file = NULL;
  ist_error err = {0};
  assert_refused(ist_file_open(f->context, path, &options, &file, &err),
                 IST_ERR_FILE_DTYPE, err, "that its header names");
  unlink(path);
}

static void file__needs_its_arguments(void **state) {
  fixture *f = *state;
  ist_file *file = NULL;
  ist_tensor *tensor = NULL;
  ist_error err = {0};
  assert_refused(ist_file_open(NULL, "a.npy", NULL, &file, &err),
                 IST_ERR_ARGUMENT, err, "NULL");
  assert_int_equal(ist_file_open(f->context, NULL, NULL, &file, NULL),
                   IST_ERR_ARGUMENT);
  assert_int_equal(ist_file_open(f->context, "a.npy", NULL, NULL, NULL),
                   IST_ERR_ARGUMENT);
  assert_refused(ist_file_tensor(NULL, NULL, &tensor, &err), IST_ERR_ARGUMENT,
                 err, "NULL");
  assert_int_equal(ist_file_count(NULL), 0);
  assert_null(ist_file_name(NULL, 0));
  ist_file_retain(NULL);
  ist_file_release(NULL);
}

// Opens and reads as far as memory goes; live must be back where it was.
static ist_code read_once(fixture *f, const char *path, const char *name) {
  ist_file *file = NULL;
  ist_tensor *tensor = NULL;
  ist_code code = ist_file_open(f->context, path, NULL, &file, NULL);
  if (code == IST_OK) code = ist_file_tensor(file, name, &tensor, NULL);
  assert_int_equal(tensor == NULL, code != IST_OK);
  ist_tensor_release(tensor);
  ist_file_release(file);
  return code;
}

static void file__loses_nothing_when_memory_ends(void **state) {
  fixture *f = *state;
  temp_folder *folder = &f->folder;
  write_npy(f, "a.npy", HEADER(">u2", "False", "2,"), 4);
  write_safetensors(
      f, "a.safetensors",
      "{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
  static const char *const names[] = {"a.npy", "a.safetensors"};
  for (size_t k = 0; k < 2; k++) {
    long before = atomic_load(&f->counter.live);
    counting_allocator_arm(&f->counter, 0);
    assert_int_equal(read_once(f, temp_file(folder, names[k]), NULL), IST_OK);
    long calls = atomic_load(&f->counter.requests);
    assert_true(calls > 3);
    for (long n = 1; n <= calls; n++) {
      counting_allocator_arm(&f->counter, n);
      assert_int_equal(read_once(f, temp_file(folder, names[k]), NULL),
                       IST_ERR_NO_ALLOCATION);
      assert_int_equal(atomic_load(&f->counter.failed), 1);
      assert_int_equal(atomic_load(&f->counter.live), before);
    }
    counting_allocator_arm(&f->counter, 0);
  }
  unlink(temp_file(folder, "a.npy"));
  unlink(temp_file(folder, "a.safetensors"));
}

static void leave_with_42(int signal_number) {
  (void)signal_number;
  _exit(42);
}

// What docs/files.md says of a map whose file is cut short.
static void file__cut_short_raises_sigbus(void **state) {
  fixture *f = *state;
  const char *path =
      write_npy(f, "a.npy", HEADER("|u1", "False", "3000,"), 3000);
  pid_t child = fork();
  if (child == 0) {
    signal(SIGBUS, leave_with_42);
    ist_file *file = NULL;
    ist_tensor *tensor = NULL;
    if (ist_file_open(f->context, path, NULL, &file, NULL) != IST_OK ||
        ist_file_tensor(file, NULL, &tensor, NULL) != IST_OK ||
        truncate(path, 0) != 0) {
      _exit(1);
    }
    const volatile char *data = ist_tensor_view(tensor)->data;
    _exit(data[2999] == 0 ? 2 : 3);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 42);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(file__tensor_is_a_view_of_the_map, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(file__map_lives_as_long_as_a_tensor,
                                      setup, teardown),
      cmocka_unit_test_setup_teardown(file__keeps_order_of_fortran_as_strides,
                                      setup, teardown),
      cmocka_unit_test_setup_teardown(file__turns_big_endian_round_in_a_copy,
                                      setup, teardown),
      cmocka_unit_test_setup_teardown(
          file__copies_what_lies_below_its_alignment, setup, teardown),
      cmocka_unit_test_setup_teardown(file__reads_raw_items_as_asked, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(file__gives_scalars_and_empties, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(file__asks_for_a_name_and_lists_them,
                                      setup, teardown),
      cmocka_unit_test_setup_teardown(file__lists_as_many_names_as_fit, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(file__of_one_tensor_needs_no_name, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(file__is_known_by_its_content, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(file__refuses_what_is_none, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(
          file__needs_no_dtype_where_the_file_names_it, setup, teardown),
      cmocka_unit_test_setup_teardown(file__needs_its_arguments, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(file__loses_nothing_when_memory_ends,
                                      setup, teardown),
      cmocka_unit_test_setup_teardown(file__cut_short_raises_sigbus, setup,
                                      teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
