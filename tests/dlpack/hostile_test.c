// SPDX-License-Identifier: Apache-2.0
// hostile_test.c: managed tensors with any wrong number are refused before
// anything of them moves: no deleter runs, no output is written, no byte of
// theirs is read; and what only looks odd crosses.

#include <isthmus/isthmus.h>

#include "support/testing.h"

enum {
  WILD = INT32_MAX
};

// One tensor to be spoiled, as both kinds.
typedef struct hostile {
  DLTensor tensor;
  DLPackVersion version;
  uint64_t flags;
  int64_t shape[4];
  int64_t strides[4];
  int deleted;
} hostile;

static float memory[64];

static void make(hostile *h) {
  *h = (hostile){.version = {1, 3},
                 .shape = {2, 3, 1, 1},
                 .strides = {3, 1, 1, 1},
                 .tensor = {.data = memory,
                            .device = {kDLCPU, 0},
                            .ndim = 2,
                            .dtype = {kDLFloat, 32, 1}}};
  h->tensor.shape = h->shape;
  h->tensor.strides = h->strides;
}

static void count_versioned(DLManagedTensorVersioned *self) {
  ++*(int *)self->manager_ctx;
}

static void count_legacy(DLManagedTensor *self) {
  ++*(int *)self->manager_ctx;
}

static ist_code import(ist_context *context, hostile *h, bool legacy,
                       const ist_options *options, ist_tensor **out,
                       ist_error *err) {
  const ist_device *host = ist_context_host(context);
  ist_receipt receipt = {.struct_size = sizeof receipt};
  DLManagedTensorVersioned versioned = {h->version, &h->deleted,
                                        count_versioned, h->flags, h->tensor};
  DLManagedTensor old = {h->tensor, &h->deleted, count_legacy};
  ist_code code =
      legacy ? ist_tensor_import_legacy(host, &old, options, out, &receipt, err)
             : ist_tensor_import(host, &versioned, options, out, &receipt, err);
  // The managed tensors are this call's: what views them ends here.
  if (code == IST_OK) {
    assert_int_equal(h->deleted, options->copy == IST_COPY_ALWAYS);
    ist_tensor_release(*out);
    assert_int_equal(h->deleted, 1);
  } else {
    assert_int_equal(receipt.route, IST_ROUTE_REFUSE);
    assert_int_equal(receipt.reason_count, 0);
  }
  return code;
}

static void check_refused(hostile *h, bool legacy, ist_code wanted,
                          const char *name) {
  ist_context *context = NULL;
  assert_int_equal(ist_context_create(NULL, &context, NULL), IST_OK);
  for (int copy = IST_COPY_AUTO; copy <= IST_COPY_ALWAYS; copy++) {
    ist_options options = {.struct_size = sizeof options,
                           .copy = (ist_copy)copy};
    ist_tensor *out = (ist_tensor *)memory;
    ist_error err = {0};
    ist_code code = import(context, h, legacy, &options, &out, &err);
    if (code != wanted || out != NULL || h->deleted != 0 ||
        strstr(err.message, "needs") == NULL ||
        strchr(err.message, '\n') != NULL) {
      fail_msg("%s: code %d, deleted %d: %s", name, (int)code, h->deleted,
               err.message);
    }
  }
  ist_context_release(context);
}

typedef struct spoiled {
  const char *name;
  ist_code code;
  int32_t ndim;  // WILD: not spoiled; so below
  int64_t extent, stride;
  int device;
  DLDataType dtype;
  uint64_t byte_offset;
} spoiled;

#define F32 {kDLFloat, 32, 1}

// One number of the good tensor is another.
static const spoiled cases[] = {
    // NVIDIA/MatX#1204: ranks that no library holds.
    {"ndim -1", IST_ERR_NDIM, -1, WILD, WILD, 1, F32, 0},
    {"ndim 65", IST_ERR_NDIM, 65, WILD, WILD, 1, F32, 0},
    {"ndim 70", IST_ERR_NDIM, 70, WILD, WILD, 1, F32, 0},
    {"ndim INT32_MAX - 1", IST_ERR_NDIM, INT32_MAX - 1, WILD, WILD, 1, F32, 0},
    {"ndim INT32_MIN", IST_ERR_NDIM, INT32_MIN, WILD, WILD, 1, F32, 0},
    // mohu-org/mohu#328, NVIDIA/MatX#1204: extents.
    {"extent -4", IST_ERR_SHAPE, WILD, -4, WILD, 1, F32, 0},
    {"extent INT64_MIN", IST_ERR_SHAPE, WILD, INT64_MIN, WILD, 1, F32, 0},
    {"extent 2^62", IST_ERR_OVERFLOW, WILD, INT64_C(1) << 62, WILD, 1, F32, 0},
    {"extent INT64_MAX", IST_ERR_OVERFLOW, WILD, INT64_MAX, WILD, 1, F32, 0},
    {"extent 2^59", IST_ERR_OVERFLOW, WILD, INT64_C(1) << 59, WILD, 1, F32, 0},
    {"stride 2^62", IST_ERR_OVERFLOW, WILD, WILD, INT64_C(1) << 62, 1, F32, 0},
    {"stride INT64_MAX", IST_ERR_OVERFLOW, WILD, WILD, INT64_MAX, 1, F32, 0},
    {"stride INT64_MIN", IST_ERR_OVERFLOW, WILD, WILD, INT64_MIN, 1, F32, 0},
    {"stride -2^60", IST_ERR_OVERFLOW, WILD, WILD, -(INT64_C(1) << 60), 1, F32,
     0},
    // dmlc/dlpack#39's cousins: devices that nobody named.
    {"device 0", IST_ERR_DEVICE_CODE, WILD, WILD, WILD, 0, F32, 0},
    {"device 5", IST_ERR_DEVICE_CODE, WILD, WILD, WILD, 5, F32, 0},
    {"device -1", IST_ERR_DEVICE_CODE, WILD, WILD, WILD, -1, F32, 0},
    {"device 999", IST_ERR_DEVICE_CODE, WILD, WILD, WILD, 999, F32, 0},
    // Devices with a name and no backend here are refused, not guessed.
    {"device metal", IST_ERR_NO_ROUTE, WILD, WILD, WILD, kDLMetal, F32, 0},
    {"device cuda", IST_ERR_NO_ROUTE, WILD, WILD, WILD, kDLCUDA, F32, 0},
    {"bits 0", IST_ERR_DTYPE, WILD, WILD, WILD, 1, {kDLFloat, 0, 1}, 0},
    {"bits 3", IST_ERR_DTYPE, WILD, WILD, WILD, 1, {kDLInt, 3, 1}, 0},
    {"bits 255", IST_ERR_DTYPE, WILD, WILD, WILD, 1, {kDLUInt, 255, 1}, 0},
    {"code 3", IST_ERR_DTYPE, WILD, WILD, WILD, 1, {kDLOpaqueHandle, 64, 1}, 0},
    {"code 18", IST_ERR_DTYPE, WILD, WILD, WILD, 1, {18, 32, 1}, 0},
    {"code 255", IST_ERR_DTYPE, WILD, WILD, WILD, 1, {255, 32, 1}, 0},
    {"lanes 0", IST_ERR_LANES, WILD, WILD, WILD, 1, {kDLFloat, 32, 0}, 0},
    {"lanes 65535",
     IST_ERR_LANES,
     WILD,
     WILD,
     WILD,
     1,
     {kDLFloat, 32, 65535},
     0},
    // pytorch/pytorch#170432: an offset is a number from outside like others.
    {"offset 2^64 - 1", IST_ERR_OVERFLOW, WILD, WILD, WILD, 1, F32, UINT64_MAX},
    {"offset 2^64 - 4", IST_ERR_OVERFLOW, WILD, WILD, WILD, 1, F32,
     UINT64_MAX - 3},
    {"offset 2^63", IST_ERR_OVERFLOW, WILD, WILD, WILD, 1, F32,
     UINT64_C(1) << 63},
    {"offset 2", IST_ERR_MISALIGNED, WILD, WILD, WILD, 1, F32, 2},
};

static void hostile__numbers_are_refused_before_anything_moves(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    const spoiled *s = &cases[i];
    for (int legacy = 0; legacy < 2; legacy++) {
      hostile h;
      make(&h);
      if (s->ndim != WILD) h.tensor.ndim = s->ndim;
      if (s->extent != WILD) h.shape[0] = s->extent;
      if (s->stride != WILD) h.strides[0] = s->stride;
      h.tensor.device.device_type = (DLDeviceType)s->device;
      h.tensor.dtype = s->dtype;
      h.tensor.byte_offset = s->byte_offset;
      check_refused(&h, legacy != 0, s->code, s->name);
    }
  }
}

// jax-ml/jax#37303, and what torch's fake tensors export.
static void hostile__pointers_are_refused_before_anything_moves(void **state) {
  (void)state;
  for (int legacy = 0; legacy < 2; legacy++) {
    hostile h;
    make(&h);
    h.tensor.data = NULL;
    check_refused(&h, legacy != 0, IST_ERR_NULL_DATA, "NULL data");
    h.tensor.byte_offset = 64;  // an offset makes no address of nothing
    check_refused(&h, legacy != 0, IST_ERR_NULL_DATA, "NULL data, offset");
    make(&h);
    h.tensor.shape = NULL;
    check_refused(&h, legacy != 0, IST_ERR_SHAPE, "NULL shape");
    make(&h);
    h.tensor.data = (char *)memory + 1;
    check_refused(&h, legacy != 0, IST_ERR_MISALIGNED, "misaligned");
    make(&h);
    h.tensor.data = (void *)(UINTPTR_MAX - 15);
    check_refused(&h, legacy != 0, IST_ERR_OVERFLOW, "end of memory");
    make(&h);
    h.tensor.data = (void *)(uintptr_t)8;
    h.strides[0] = -3;
    check_refused(&h, legacy != 0, IST_ERR_OVERFLOW, "below memory");
  }
}

static void hostile__other_major_versions_are_refused(void **state) {
  (void)state;
  static const uint32_t majors[] = {0, 2, 255, UINT32_MAX};
  for (size_t i = 0; i < COUNT_OF(majors); i++) {
    hostile h;
    make(&h);
    h.version = (DLPackVersion){majors[i], 9};
    h.tensor.ndim = -1;  // never seen
    check_refused(&h, false, IST_ERR_DLPACK_VERSION, "version");
  }
}

static void check_accepted(const hostile *wanted, const char *name) {
  ist_context *context = NULL;
  assert_int_equal(ist_context_create(NULL, &context, NULL), IST_OK);
  for (int legacy = 0; legacy < 2; legacy++) {
    for (int copy = IST_COPY_AUTO; copy <= IST_COPY_ALWAYS; copy++) {
      hostile h = *wanted;
      if (h.tensor.shape != NULL) h.tensor.shape = h.shape;
      if (h.tensor.strides != NULL) h.tensor.strides = h.strides;
      ist_options options = {.struct_size = sizeof options,
                             .copy = (ist_copy)copy};
      ist_tensor *out = NULL;
      ist_error err = {0};
      if (import(context, &h, legacy != 0, &options, &out, &err) != IST_OK) {
        fail_msg("%s: %s", name, err.message);
      }
    }
  }
  ist_context_release(context);
}

static void hostile__what_only_looks_odd_crosses(void **state) {
  (void)state;
  hostile h;
  make(&h);
  h.flags = ~UINT64_C(7);  // bits of later minor versions
  h.version.minor = UINT32_MAX;
  check_accepted(&h, "unknown flags and minor version");
  make(&h);
  h.tensor.ndim = 0;
  h.tensor.shape = NULL;
  h.tensor.strides = NULL;
  check_accepted(&h, "a scalar without arrays");
  make(&h);
  h.tensor.strides = NULL;
  check_accepted(&h, "no strides (dmlc/dlpack#178, cupy/cupy#2095)");
  // microsoft/onnxruntime#27450, triton-inference-server/python_backend#444
  make(&h);
  h.shape[0] = 0;
  h.strides[0] = INT64_MIN;
  h.strides[1] = INT64_MAX;
  h.tensor.data = NULL;
  h.tensor.byte_offset = UINT64_MAX;
  check_accepted(&h, "nothing, with wild strides and offset");
  make(&h);
  h.shape[0] = 1;
  h.strides[0] = INT64_MIN;
  check_accepted(&h, "one row, with a wild stride");
}

static void hostile__sources_without_a_deleter_may_be_refused(void **state) {
  (void)state;
  ist_context *context = NULL;
  assert_int_equal(ist_context_create(NULL, &context, NULL), IST_OK);
  hostile h;
  make(&h);
  h.shape[0] = -1;
  DLManagedTensorVersioned versioned = {h.version, NULL, NULL, 0, h.tensor};
  DLManagedTensor old = {h.tensor, NULL, NULL};
  ist_tensor *out = NULL;
  const ist_device *host = ist_context_host(context);
  assert_int_equal(ist_tensor_import(host, &versioned, NULL, &out, NULL, NULL),
                   IST_ERR_SHAPE);
  assert_int_equal(ist_tensor_import_legacy(host, &old, NULL, &out, NULL, NULL),
                   IST_ERR_SHAPE);
  assert_null(out);
  ist_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hostile__numbers_are_refused_before_anything_moves),
      cmocka_unit_test(hostile__pointers_are_refused_before_anything_moves),
      cmocka_unit_test(hostile__other_major_versions_are_refused),
      cmocka_unit_test(hostile__what_only_looks_odd_crosses),
      cmocka_unit_test(hostile__sources_without_a_deleter_may_be_refused),
  };
  return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
