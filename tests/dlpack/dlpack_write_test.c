// SPDX-License-Identifier: Apache-2.0
// dlpack_write_test.c: what is written can be read back by us, and by those who
// expect less than the specification allows.

#include "dlpack/dlpack_write.h"

#include "dlpack/dlpack_read.h"
#include "support/counting_allocator.h"
#include "support/testing.h"
#include "tensor/dtype.h"

typedef struct fixture {
  counting_allocator counter;
  ist__env env;
  int released;
  long live_at_release;  // allocations that were out when release was called
} fixture;

static int set_up(void **state) {
  static fixture f;
  memset(&f, 0, sizeof f);
  counting_allocator_init(&f.counter);
  ist__env_init(&f.env, NULL);
  f.env.allocator = counting_allocator_hook(&f.counter);
  *state = &f;
  return 0;
}

static void note_release(void *self) {
  fixture *f = self;
  f->released++;
  f->live_at_release = f->counter.live;
}

static _Alignas(64) unsigned char memory[4096];

static void make_view(DLDataType dtype, int32_t ndim, int64_t *shape,
                      int64_t *strides, ist__view *view) {
  DLTensor tensor = {memory + 1024, {kDLCPU, 0}, ndim, dtype,
                     shape,         strides,     16};
  assert_int_equal(ist__view_check(&tensor, false, true, view, NULL), IST_OK);
}

static ist__export export_of(fixture *f, const ist__view *view) {
  return (ist__export){.view = view,
                       .flags = DLPACK_FLAG_BITMASK_READ_ONLY,
                       .release = note_release,
                       .release_self = f,
                       .env = &f->env};
}

static void check_tensor(const DLTensor *tensor, const ist__view *view) {
  assert_int_equal(tensor->ndim, view->ndim);
  assert_non_null(tensor->shape);
  assert_non_null(tensor->strides);
  assert_memory_equal(tensor->shape, view->shape, (size_t)view->ndim * 8);
  assert_memory_equal(tensor->strides, view->strides, (size_t)view->ndim * 8);
  assert_memory_equal(&tensor->dtype, &view->dtype, sizeof view->dtype);
  assert_memory_equal(&tensor->device, &view->device, sizeof view->device);
  assert_ptr_equal(tensor->data, ist__view_address(view));
  assert_int_equal(tensor->byte_offset, 0);
}

// All dtypes in several layouts, both kinds: dmlc/dlpack#178 (strides are never
// NULL), NVIDIA/cuda-python#2592 (byte_offset survives).
static void dlpack_write__round_trips_every_dtype_and_layout(void **state) {
  fixture *f = *state;
  int64_t shape[] = {2, 1, 3};
  int64_t layouts[][3] = {{3, 3, 1}, {1, 1, 2}, {-3, 0, -1}, {0, 0, 1}};
  for (int32_t i = 0; i < ist__dtype_count(); i++) {
    DLDataType dtype = ist__dtype_of(ist__dtype_at(i));
    for (size_t l = 0; l <= COUNT_OF(layouts); l++) {
      ist__view view, back;
      bool scalar = l == COUNT_OF(layouts);
      make_view(dtype, scalar ? 0 : 3, shape, scalar ? NULL : layouts[l],
                &view);
      ist__export what = export_of(f, &view);
      ist_grant grant;
      f->released = 0;
      DLManagedTensorVersioned *versioned = ist__dlpack_write(&what);
      DLManagedTensor *legacy = ist__dlpack_write_legacy(&what);
      assert_int_equal(f->counter.live, 2);
      check_tensor(&versioned->dl_tensor, &view);
      check_tensor(&legacy->dl_tensor, &view);
      assert_int_equal(versioned->version.major, 1);
      assert_int_equal(versioned->version.minor, 3);
      assert_int_equal(versioned->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
      ist__managed both[] = {{.versioned = versioned}, {.legacy = legacy}};
      const ist__told told = {.packing = IST_PACKING_PACKED};
      for (int kind = 0; kind < 2; kind++) {
        assert_int_equal(
            ist__dlpack_read(both[kind], &told, &back, &grant, NULL), IST_OK);
        assert_true(ist__view_same_shape(&view, &back));
        assert_int_equal(back.layout, view.layout);
        assert_int_equal(back.nbytes, view.nbytes);
        assert_int_equal(grant, IST_GRANT_READ_ONLY);
        ist__dlpack_consume(both[kind]);
        assert_int_equal(f->released, kind + 1);
      }
      assert_int_equal(f->counter.live, 0);
    }
  }
}

static void dlpack_write__makes_one_allocation(void **state) {
  fixture *f = *state;
  ist__view view;
  int64_t shape[64], strides[64];
  for (int i = 0; i < 64; i++) shape[i] = strides[i] = 1;
  make_view((DLDataType){kDLFloat, 32, 1}, 64, shape, strides, &view);
  ist__export what = export_of(f, &view);
  counting_allocator_arm(&f->counter, 0);
  DLManagedTensorVersioned *made = ist__dlpack_write(&what);
  assert_int_equal(f->counter.requests, 1);
  assert_int_equal(made->dl_tensor.ndim, 64);
  check_tensor(&made->dl_tensor, &view);
  made->deleter(made);
  assert_int_equal(f->counter.live, 0);
}

static void dlpack_write__without_memory_releases_nothing(void **state) {
  fixture *f = *state;
  ist__view view;
  int64_t shape[] = {3};
  make_view((DLDataType){kDLFloat, 32, 1}, 1, shape, NULL, &view);
  ist__export what = export_of(f, &view);
  counting_allocator_arm(&f->counter, 1);
  assert_null(ist__dlpack_write(&what));
  assert_int_equal(f->counter.failed, 1);
  counting_allocator_arm(&f->counter, 1);
  assert_null(ist__dlpack_write_legacy(&what));
  assert_int_equal(f->counter.failed, 1);
  assert_int_equal(f->released, 0);
  assert_int_equal(f->counter.live, 0);
}

// release may take the last holder of the allocator with it.
static void dlpack_write__frees_itself_before_it_releases(void **state) {
  fixture *f = *state;
  ist__view view;
  int64_t shape[] = {3};
  make_view((DLDataType){kDLFloat, 32, 1}, 1, shape, NULL, &view);
  ist__export what = export_of(f, &view);
  DLManagedTensor *legacy = ist__dlpack_write_legacy(&what);
  f->live_at_release = -1;
  legacy->deleter(legacy);
  assert_int_equal(f->released, 1);
  assert_int_equal(f->live_at_release, 0);
  what.release = NULL;
  DLManagedTensorVersioned *versioned = ist__dlpack_write(&what);
  versioned->deleter(versioned);
  assert_int_equal(f->counter.live, 0);
}

// pytorch/pytorch#182924: the offset is not added to a handle.
static void dlpack_write__keeps_byte_offset_of_handles(void **state) {
  fixture *f = *state;
  int64_t shape[] = {3};
  for (int32_t code = 1; code < 22; code++) {
    if (ist_device_code_name(code) == NULL) continue;
    DLTensor tensor = {
        memory, {(DLDeviceType)code, 2}, 1, {kDLFloat, 32, 1}, shape, NULL, 16};
    ist__view view;
    assert_int_equal(ist__view_check(&tensor, false, true, &view, NULL),
                     IST_OK);
    ist__export what = export_of(f, &view);
    DLManagedTensorVersioned *made = ist__dlpack_write(&what);
    bool handle = ist__device_code_is_handle(code);
    assert_ptr_equal(made->dl_tensor.data, handle ? memory : memory + 16);
    assert_int_equal(made->dl_tensor.byte_offset, handle ? 16 : 0);
    made->deleter(made);
  }
}

static void dlpack_write__of_nothing_has_no_address(void **state) {
  fixture *f = *state;
  int64_t shape[] = {0};
  DLTensor tensor = {NULL, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 8};
  ist__view view;
  assert_int_equal(ist__view_check(&tensor, false, true, &view, NULL), IST_OK);
  ist__export what = export_of(f, &view);
  DLManagedTensorVersioned *made = ist__dlpack_write(&what);
  assert_null(made->dl_tensor.data);
  assert_int_equal(made->dl_tensor.byte_offset, 0);
  assert_int_equal(made->dl_tensor.strides[0], 1);
  made->deleter(made);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(dlpack_write__round_trips_every_dtype_and_layout,
                             set_up),
      cmocka_unit_test_setup(dlpack_write__makes_one_allocation, set_up),
      cmocka_unit_test_setup(dlpack_write__without_memory_releases_nothing,
                             set_up),
      cmocka_unit_test_setup(dlpack_write__frees_itself_before_it_releases,
                             set_up),
      cmocka_unit_test_setup(dlpack_write__keeps_byte_offset_of_handles,
                             set_up),
      cmocka_unit_test_setup(dlpack_write__of_nothing_has_no_address, set_up),
  };
  return cmocka_run_group_tests_name("dlpack_write", tests, NULL, NULL);
}
