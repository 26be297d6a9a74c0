// SPDX-License-Identifier: Apache-2.0
// dlpack_read_test.c: managed tensors of either kind are validated before they
// are believed, and never consumed by looking at them.

#include "dlpack/dlpack_read.h"

#include "support/guard_page.h"
#include "support/testing.h"
#include "tensor/dtype.h"

static float memory[6];
static int64_t shape[] = {2, 3};
static int64_t strides[] = {3, 1};

static int deleted;

static void count_versioned(DLManagedTensorVersioned *self) {
  (void)self;
  deleted++;
}

static void count_legacy(DLManagedTensor *self) {
  (void)self;
  deleted++;
}

static DLTensor tensor_of(void) {
  return (DLTensor){memory, {kDLCPU, 0}, 2, {kDLFloat, 32, 1},
                    shape,  strides,     0};
}

static DLManagedTensorVersioned versioned_of(uint64_t flags) {
  return (DLManagedTensorVersioned){.version = {1, 0},
                                    .deleter = count_versioned,
                                    .flags = flags,
                                    .dl_tensor = tensor_of()};
}

static DLManagedTensor legacy_of(void) {
  return (DLManagedTensor){.dl_tensor = tensor_of(), .deleter = count_legacy};
}

static ist_grant grant_of(ist__managed managed, ist_grant told) {
  ist__view view;
  ist_grant grant;
  ist_error error = {0};
  assert_ok(ist__dlpack_read(managed, &(ist__told){.grant = told}, &view,
                             &grant, &error),
            error);
  assert_int_equal(view.count, 6);
  assert_ptr_equal(view.data, memory);
  return grant;
}

static ist_grant versioned_grant(uint64_t flags, ist_grant told) {
  DLManagedTensorVersioned source = versioned_of(flags);
  return grant_of((ist__managed){.versioned = &source}, told);
}

static ist_grant legacy_grant(ist_grant told) {
  DLManagedTensor source = legacy_of();
  return grant_of((ist__managed){.legacy = &source}, told);
}

// numpy/numpy#28599: a versioned tensor says who may write it.
static void dlpack_read__versioned_follows_its_flag(void **state) {
  (void)state;
  assert_int_equal(versioned_grant(0, IST_GRANT_FROM_SOURCE),
                   IST_GRANT_WRITABLE);
  assert_int_equal(
      versioned_grant(DLPACK_FLAG_BITMASK_READ_ONLY, IST_GRANT_FROM_SOURCE),
      IST_GRANT_READ_ONLY);
  // Bits of later minor versions mean nothing here.
  assert_int_equal(versioned_grant(~UINT64_C(7), IST_GRANT_FROM_SOURCE),
                   IST_GRANT_WRITABLE);
  assert_int_equal(
      versioned_grant(DLPACK_FLAG_BITMASK_IS_COPIED, IST_GRANT_FROM_SOURCE),
      IST_GRANT_WRITABLE);
}

// wjakob/nanobind#1122: one without a version cannot say, so it is read-only
// unless more is known.
static void dlpack_read__legacy_is_read_only_until_told(void **state) {
  (void)state;
  assert_int_equal(legacy_grant(IST_GRANT_FROM_SOURCE), IST_GRANT_READ_ONLY);
  assert_int_equal(legacy_grant(IST_GRANT_WRITABLE), IST_GRANT_WRITABLE);
  assert_int_equal(legacy_grant(IST_GRANT_IMMUTABLE), IST_GRANT_IMMUTABLE);
  assert_int_equal(legacy_grant(IST_GRANT_READ_ONLY), IST_GRANT_READ_ONLY);
}

// data-apis/array-api#191: what is marked is never writable, whoever says so.
static void dlpack_read__a_mark_is_stronger_than_a_word(void **state) {
  (void)state;
  const uint64_t marked = DLPACK_FLAG_BITMASK_READ_ONLY;
  assert_int_equal(versioned_grant(marked, IST_GRANT_WRITABLE),
                   IST_GRANT_READ_ONLY);
  assert_int_equal(versioned_grant(marked, IST_GRANT_IMMUTABLE),
                   IST_GRANT_IMMUTABLE);
  assert_int_equal(versioned_grant(0, IST_GRANT_READ_ONLY),
                   IST_GRANT_READ_ONLY);
  assert_int_equal(versioned_grant(0, IST_GRANT_IMMUTABLE),
                   IST_GRANT_IMMUTABLE);
  assert_int_equal(versioned_grant(0, IST_GRANT_WRITABLE), IST_GRANT_WRITABLE);
}

static void dlpack_read__overlapping_is_read_only(void **state) {
  (void)state;
  int64_t broadcast[] = {0, 1};
  DLManagedTensorVersioned source = versioned_of(0);
  source.dl_tensor.strides = broadcast;
  ist__managed managed = {.versioned = &source};
  assert_int_equal(grant_of(managed, IST_GRANT_FROM_SOURCE),
                   IST_GRANT_READ_ONLY);
  assert_int_equal(grant_of(managed, IST_GRANT_WRITABLE), IST_GRANT_READ_ONLY);
}

// Only the four bytes of version are there to be read; behind them is a guard.
static void dlpack_read__of_another_major_reads_only_the_version(void **state) {
  (void)state;
  static const uint32_t majors[] = {0, 2, 3, UINT32_MAX};
  for (size_t i = 0; i < COUNT_OF(majors); i++) {
    guarded page = guarded_make(sizeof(DLPackVersion));
    DLPackVersion *version =
        (DLPackVersion *)(void *)(page.end - sizeof(DLPackVersion));
    *version = (DLPackVersion){majors[i], 7};
    ist__managed managed = {.versioned = (void *)version};
    ist__view view, zero;
    memset(&zero, 0, sizeof zero);
    ist_grant grant = IST_GRANT_WRITABLE;
    ist_error error = {0};
    ist_code code = ist__dlpack_read(managed, NULL, &view, &grant, &error);
    assert_refused(code, IST_ERR_DLPACK_VERSION, error, "needs version 1");
    assert_int_equal(grant, IST_GRANT_FROM_SOURCE);
    assert_memory_equal(&view, &zero, sizeof view);
    guarded_free(&page);
  }
}

static void dlpack_read__accepts_any_minor_version(void **state) {
  (void)state;
  static const uint32_t minors[] = {0, 1, 3, 4, UINT32_MAX};
  for (size_t i = 0; i < COUNT_OF(minors); i++) {
    DLManagedTensorVersioned source = versioned_of(0);
    source.version.minor = minors[i];
    assert_int_equal(
        grant_of((ist__managed){.versioned = &source}, IST_GRANT_FROM_SOURCE),
        IST_GRANT_WRITABLE);
  }
}

// dmlc/dlpack#158: the flag decides between packed and padded, whoever says
// what.
static void dlpack_read__padded_comes_from_the_flag(void **state) {
  (void)state;
  DLManagedTensorVersioned source =
      versioned_of(DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);
  source.dl_tensor.dtype = (DLDataType){kDLFloat4_e2m1fn, 4, 1};
  ist__view view;
  ist_grant grant;
  ist__managed managed = {.versioned = &source};
  assert_int_equal(ist__dlpack_read(managed, NULL, &view, &grant, NULL),
                   IST_OK);
  assert_true(view.padded);
  assert_int_equal(view.nbytes, 6);
  source.flags = 0;
  assert_int_equal(ist__dlpack_read(managed, NULL, &view, &grant, NULL),
                   IST_OK);
  assert_false(view.padded);
  assert_int_equal(view.nbytes, 3);
  const ist__told told = {.packing = IST_PACKING_PADDED};
  assert_int_equal(ist__dlpack_read(managed, &told, &view, &grant, NULL),
                   IST_OK);
  assert_false(view.padded);
}

// dmlc/dlpack#158: a tensor without a flag is refused, and not guessed, unless
// the caller knows its producer.
static void dlpack_read__legacy_does_not_tell_how_sub_byte_lies(void **state) {
  (void)state;
  ist__view view;
  ist_grant grant;
  ist_error error = {0};
  DLManagedTensor legacy = legacy_of();
  ist__managed managed = {.legacy = &legacy};
  for (int32_t i = 0; i < ist__dtype_count(); i++) {
    legacy.dl_tensor.dtype = ist__dtype_of(ist__dtype_at(i));
    bool small = legacy.dl_tensor.dtype.bits < 8;
    ist_code code = ist__dlpack_read(managed, NULL, &view, &grant, &error);
    assert_int_equal(code, small ? IST_ERR_PACKING : IST_OK);
    ist__told told = {.packing = IST_PACKING_PACKED};
    assert_ok(ist__dlpack_read(managed, &told, &view, &grant, &error), error);
    assert_false(view.padded);
    told.packing = IST_PACKING_PADDED;
    assert_ok(ist__dlpack_read(managed, &told, &view, &grant, &error), error);
    assert_int_equal(view.padded, small);
  }
  legacy.dl_tensor.dtype = (DLDataType){kDLInt, 4, 1};
  ist_code code = ist__dlpack_read(managed, NULL, &view, &grant, &error);
  assert_refused(code, IST_ERR_PACKING, error, "int4 may be packed");
}

// One element is the same both ways, none is nothing, and pairs are packed.
static void dlpack_read__legacy_sub_byte_whose_size_tells_is_read(
    void **state) {
  (void)state;
  ist__view view;
  ist_grant grant;
  ist_error error = {0};
  int64_t ones[] = {1, 1};
  DLManagedTensor legacy = legacy_of();
  ist__managed managed = {.legacy = &legacy};
  legacy.dl_tensor.shape = ones;
  legacy.dl_tensor.strides = NULL;
  legacy.dl_tensor.dtype = (DLDataType){kDLFloat4_e2m1fn, 4, 1};
  for (ones[0] = 0; ones[0] < 2; ones[0]++) {
    assert_ok(ist__dlpack_read(managed, NULL, &view, &grant, &error), error);
    assert_int_equal(view.nbytes, ones[0]);
  }
  legacy.dl_tensor.dtype.lanes = 2;
  assert_ok(ist__dlpack_read(managed, NULL, &view, &grant, &error), error);
  assert_int_equal(view.count, 4);
  assert_int_equal(view.nbytes, 2);
}

// pytorch/pytorch#170432, NVIDIA/warp#1573: element 0 lies after byte_offset.
static void dlpack_read__obeys_byte_offset(void **state) {
  (void)state;
  DLManagedTensorVersioned source = versioned_of(0);
  DLManagedTensor legacy = legacy_of();
  int64_t one[] = {2};
  for (int kind = 0; kind < 2; kind++) {
    ist__managed managed = {.versioned = kind ? &source : NULL,
                            .legacy = kind ? NULL : &legacy};
    DLTensor *t = kind ? &source.dl_tensor : &legacy.dl_tensor;
    t->ndim = 1;
    t->shape = one;
    t->strides = NULL;
    t->byte_offset = 16;
    ist__view view;
    ist_grant grant;
    assert_int_equal(ist__dlpack_read(managed, NULL, &view, &grant, NULL),
                     IST_OK);
    assert_ptr_equal(ist__view_address(&view), memory + 4);
  }
}

static void dlpack_read__refuses_what_is_not_one_tensor(void **state) {
  (void)state;
  DLManagedTensorVersioned source = versioned_of(0);
  DLManagedTensor legacy = legacy_of();
  const ist__managed bad[] = {{NULL, NULL}, {&source, &legacy}};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    ist__view view;
    ist_grant grant;
    ist_error error = {0};
    ist_code code = ist__dlpack_read(bad[i], NULL, &view, &grant, &error);
    assert_refused(code, IST_ERR_ARGUMENT, error, "needs one managed tensor");
  }
  ist__view view;
  ist_grant grant;
  ist_error error = {0};
  ist_code code = ist__dlpack_read((ist__managed){.versioned = &source},
                                   &(ist__told){.grant = (ist_grant)4}, &view,
                                   &grant, &error);
  assert_refused(code, IST_ERR_ARGUMENT, error, "needs an ist_grant");
}

static void dlpack_read__never_consumes(void **state) {
  (void)state;
  deleted = 0;
  versioned_grant(0, IST_GRANT_FROM_SOURCE);
  legacy_grant(IST_GRANT_FROM_SOURCE);
  DLManagedTensorVersioned source = versioned_of(0);
  source.dl_tensor.ndim = -1;
  ist__view view;
  ist_grant grant;
  assert_int_equal(ist__dlpack_read((ist__managed){.versioned = &source}, NULL,
                                    &view, &grant, NULL),
                   IST_ERR_NDIM);
  assert_int_equal(deleted, 0);
}

// dmlc/dlpack#39: the deleter frees the struct itself; NULL is allowed.
static void dlpack_consume__calls_the_deleter_once(void **state) {
  (void)state;
  DLManagedTensorVersioned source = versioned_of(0);
  DLManagedTensor legacy = legacy_of();
  deleted = 0;
  ist__dlpack_consume((ist__managed){.versioned = &source});
  assert_int_equal(deleted, 1);
  ist__dlpack_consume((ist__managed){.legacy = &legacy});
  assert_int_equal(deleted, 2);
  source.deleter = NULL;
  legacy.deleter = NULL;
  ist__dlpack_consume((ist__managed){.versioned = &source});
  ist__dlpack_consume((ist__managed){.legacy = &legacy});
  ist__dlpack_consume((ist__managed){NULL, NULL});
  assert_int_equal(deleted, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dlpack_read__versioned_follows_its_flag),
      cmocka_unit_test(dlpack_read__legacy_is_read_only_until_told),
      cmocka_unit_test(dlpack_read__a_mark_is_stronger_than_a_word),
      cmocka_unit_test(dlpack_read__overlapping_is_read_only),
      cmocka_unit_test(dlpack_read__of_another_major_reads_only_the_version),
      cmocka_unit_test(dlpack_read__accepts_any_minor_version),
      cmocka_unit_test(dlpack_read__padded_comes_from_the_flag),
      cmocka_unit_test(dlpack_read__legacy_does_not_tell_how_sub_byte_lies),
      cmocka_unit_test(dlpack_read__legacy_sub_byte_whose_size_tells_is_read),
      cmocka_unit_test(dlpack_read__obeys_byte_offset),
      cmocka_unit_test(dlpack_read__refuses_what_is_not_one_tensor),
      cmocka_unit_test(dlpack_read__never_consumes),
      cmocka_unit_test(dlpack_consume__calls_the_deleter_once),
  };
  return cmocka_run_group_tests_name("dlpack_read", tests, NULL, NULL);
}
