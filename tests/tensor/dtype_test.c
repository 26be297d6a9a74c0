// SPDX-License-Identifier: Apache-2.0
// dtype_test.c: the lists of dtypes and device codes say what DLPack says.

#include "tensor/dtype.h"

#include "support/testing.h"

// The names, codes and widths of DLPack 1.3, written by hand from its text and
// not from dtype.def. The order is the frozen one.
static const struct {
  const char *name;
  uint8_t code;
  uint8_t bits;
} expected[] = {
    {"bool", 6, 8},
    {"int8", 0, 8},
    {"int16", 0, 16},
    {"int32", 0, 32},
    {"int64", 0, 64},
    {"uint8", 1, 8},
    {"uint16", 1, 16},
    {"uint32", 1, 32},
    {"uint64", 1, 64},
    {"float16", 2, 16},
    {"float32", 2, 32},
    {"float64", 2, 64},
    {"bfloat16", 4, 16},
    {"complex64", 5, 64},
    {"complex128", 5, 128},
    {"complex32", 5, 32},
    {"float8_e3m4", 7, 8},
    {"float8_e4m3", 8, 8},
    {"float8_e4m3b11fnuz", 9, 8},
    {"float8_e4m3fn", 10, 8},
    {"float8_e4m3fnuz", 11, 8},
    {"float8_e5m2", 12, 8},
    {"float8_e5m2fnuz", 13, 8},
    {"float8_e8m0fnu", 14, 8},
    {"float6_e2m3fn", 15, 6},
    {"float6_e3m2fn", 16, 6},
    {"float4_e2m1fn", 17, 4},
    {"int4", 0, 4},
    {"uint4", 1, 4},
    {"int2", 0, 2},
    {"uint2", 1, 2},
    {"int1", 0, 1},
    {"uint1", 1, 1},
};

// dmlc/dlpack#156, dmlc/dlpack#158: fp8, fp6 and fp4 are types of their own.
// jax-ml/jax#19352: so is bool.
static void dtype__row_numbers_are_frozen(void **state) {
  (void)state;
  assert_int_equal(ist__dtype_count(), COUNT_OF(expected));
  for (size_t i = 0; i < COUNT_OF(expected); i++) {
    const ist__dtype *row = ist__dtype_at((int32_t)i);
    assert_int_equal(row->number, i);
    assert_string_equal(row->name, expected[i].name);
    assert_int_equal(row->code, expected[i].code);
    assert_int_equal(row->bits, expected[i].bits);
  }
  assert_null(ist__dtype_at(-1));
  assert_null(ist__dtype_at(ist__dtype_count()));
}

static void dtype__name_and_parse_are_inverse(void **state) {
  (void)state;
  for (int32_t i = 0; i < ist__dtype_count(); i++) {
    const ist__dtype *row = ist__dtype_at(i);
    for (uint16_t lanes = 1; lanes < 5; lanes++) {
      DLDataType dtype = {row->code, row->bits, lanes};
      DLDataType back;
      char name[40];
      ist_error error = {0};
      assert_int_equal(ist_dtype_name(dtype, name, sizeof name), IST_OK);
      assert_ok(ist_dtype_parse(name, &back, &error), error);
      assert_memory_equal(&back, &dtype, sizeof back);
    }
  }
}

// Every code and width there can be: a name exactly where a row is.
static void dtype__everything_else_has_no_name(void **state) {
  (void)state;
  int found = 0;
  for (unsigned code = 0; code < 256; code++) {
    for (unsigned bits = 0; bits < 256; bits++) {
      DLDataType dtype = {(uint8_t)code, (uint8_t)bits, 1};
      const ist__dtype *row = ist__dtype_find(dtype);
      char name[40] = "unchanged";
      ist_code got = ist_dtype_name(dtype, name, sizeof name);
      if (row == NULL) {
        assert_int_equal(got, IST_ERR_DTYPE);
        assert_string_equal(name, "");
        assert_int_equal(ist_dtype_number(dtype), -1);
      } else {
        assert_int_equal(row->code, code);
        assert_int_equal(row->bits, bits);
        assert_int_equal(ist_dtype_number(dtype), row->number);
        found++;
      }
    }
  }
  assert_int_equal(found, ist__dtype_count());
}

static void dtype__lanes_have_a_name_but_no_number(void **state) {
  (void)state;
  char name[40];
  DLDataType vector = {kDLFloat, 32, 4};
  assert_int_equal(ist_dtype_name(vector, name, sizeof name), IST_OK);
  assert_string_equal(name, "float32x4");
  assert_int_equal(ist_dtype_number(vector), -1);
  DLDataType none = {kDLFloat, 32, 0};
  assert_int_equal(ist_dtype_name(none, name, sizeof name), IST_ERR_DTYPE);
}

static void dtype__name_is_cut_to_its_room(void **state) {
  (void)state;
  char name[6] = "#####";
  DLDataType dtype = {kDLBfloat, 16, 1};
  assert_int_equal(ist_dtype_name(dtype, name, 5), IST_OK);
  assert_string_equal(name, "bflo");
  assert_int_equal(name[5], '\0');
  assert_int_equal(ist_dtype_name(dtype, NULL, 0), IST_OK);
}

// What users have in hand: torch's words, and NumPy's type strings.
static void dtype__parse_takes_the_words_of_frameworks(void **state) {
  (void)state;
  static const struct {
    const char *text;
    DLDataType dtype;
  } some[] = {
      {"torch.float32", {kDLFloat, 32, 1}},
      {"torch.bfloat16", {kDLBfloat, 16, 1}},
      {"torch.bool", {kDLBool, 8, 1}},
      {"float4_e2m1fn_x2", {kDLFloat4_e2m1fn, 4, 2}},
      {"torch.float4_e2m1fn_x2", {kDLFloat4_e2m1fn, 4, 2}},
      {"float4_e2m1fnx2", {kDLFloat4_e2m1fn, 4, 2}},
      {"<f4", {kDLFloat, 32, 1}},
      {"=i8", {kDLInt, 64, 1}},
      {"|b1", {kDLBool, 8, 1}},
      {"|u1", {kDLUInt, 8, 1}},
      {"<c16", {kDLComplex, 128, 1}},
  };
  for (size_t i = 0; i < COUNT_OF(some); i++) {
    DLDataType out;
    ist_error error = {0};
    assert_ok(ist_dtype_parse(some[i].text, &out, &error), error);
    assert_memory_equal(&out, &some[i].dtype, sizeof out);
  }
}

static void dtype__parse_refuses_what_is_no_name(void **state) {
  (void)state;
  static const char *const bad[] = {
      // Short forms that mean one thing here and another there, other byte
      // orders, and types that torch does not say the bits of.
      "f4",
      "f8",
      "half",
      "double",
      ">f4",
      "|f4",
      "<V2",
      "<",
      "torch.",
      "torch.int4",
      "torch.float4_e2m1fn",
      "torch.torch.int8",
      "jnp.int8",
      "",
      "float",
      "float33",
      "Float32",
      " float32",
      "int4 ",
      "float32x",
      "float32x0",
      "float32x1",
      "float32x-2",
      "x4",
      "float32x04",
      "float32x4x",
      "float32x65536",
      "complex",
      "float32x99999999999999999999"};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    DLDataType out = {9, 9, 9};
    ist_error error = {0};
    ist_code code = ist_dtype_parse(bad[i], &out, &error);
    assert_refused(code, IST_ERR_DTYPE, error, "needs a DLPack name");
    assert_int_equal(out.code + out.bits + out.lanes, 0);
  }
  DLDataType out;
  assert_int_equal(ist_dtype_parse(NULL, &out, NULL), IST_ERR_ARGUMENT);
  assert_int_equal(ist_dtype_parse("bool", NULL, NULL), IST_ERR_ARGUMENT);
  assert_int_equal(ist_dtype_parse("float32x65535", &out, NULL), IST_OK);
  assert_int_equal(out.lanes, 65535);
}

static void dtype__alignment_is_that_of_one_number(void **state) {
  (void)state;
  static const struct {
    const char *name;
    uint64_t alignment;
  } some[] = {{"int1", 1},      {"float6_e2m3fn", 1}, {"bool", 1},
              {"bfloat16", 2},  {"float32", 4},       {"int64", 8},
              {"complex32", 2}, {"complex64", 4},     {"complex128", 8}};
  for (size_t i = 0; i < COUNT_OF(some); i++) {
    DLDataType dtype;
    assert_int_equal(ist_dtype_parse(some[i].name, &dtype, NULL), IST_OK);
    assert_int_equal(ist__dtype_alignment(ist__dtype_find(dtype)),
                     some[i].alignment);
  }
}

static void dtype__the_set_of_all_has_a_bit_for_each_row(void **state) {
  (void)state;
  uint64_t all = 0;
  for (int32_t i = 0; i < ist__dtype_count(); i++) all |= UINT64_C(1) << i;
  assert_true(ist__dtype_all() == all);
}

// Two rows never share a name in a file or a runtime: nothing is guessed back.
static void dtype__foreign_names_are_unique(void **state) {
  (void)state;
  for (int32_t i = 0; i < ist__dtype_count(); i++) {
    for (int32_t k = 0; k < i; k++) {
      const ist__dtype *a = ist__dtype_at(i);
      const ist__dtype *b = ist__dtype_at(k);
      assert_true(a->pjrt == 0 || a->pjrt != b->pjrt);
      if (a->npy != NULL && b->npy != NULL) {
        assert_string_not_equal(a->npy, b->npy);
      }
      if (a->format != NULL && b->format != NULL) {
        assert_string_not_equal(a->format, b->format);
      }
      if (a->torch != NULL && b->torch != NULL) {
        assert_string_not_equal(a->torch, b->torch);
      }
      if (a->safetensors != NULL && b->safetensors != NULL) {
        assert_string_not_equal(a->safetensors, b->safetensors);
      }
    }
  }
}

static void device_code__each_has_its_name_and_none_is_guessed(void **state) {
  (void)state;
  static const char *const names[] = {
      NULL,       "cpu",       "cuda",    "cuda_host",    "opencl",
      NULL,       NULL,        "vulkan",  "metal",        "vpi",
      "rocm",     "rocm_host", "ext_dev", "cuda_managed", "oneapi",
      "webgpu",   "hexagon",   "maia",    "trn",          "tpu",
      "tpu_host", "ascend"};
  for (int32_t code = -2; code < 300; code++) {
    const char *name = ist_device_code_name(code);
    bool known = code > 0 && code < (int32_t)COUNT_OF(names);
    if (known && names[code] != NULL) {
      assert_string_equal(name, names[code]);
    } else {
      assert_null(name);
      assert_false(ist__device_code_is_host(code));
      assert_false(ist__device_code_is_handle(code));
    }
  }
  assert_null(ist_device_code_name(INT32_MIN));
  assert_null(ist_device_code_name(INT32_MAX));
}

// jax-ml/jax#22346, pytorch/pytorch#96318: pinned and managed memory is memory
// that the host can read.
static void device_code__host_and_handle_kinds_are_told_apart(void **state) {
  (void)state;
  static const int32_t host[] = {1, 3, 11, 13, 20};
  static const int32_t handle[] = {4, 7, 8, 15, 16};
  int hosts = 0;
  int handles = 0;
  for (int32_t code = 0; code < 32; code++) {
    hosts += ist__device_code_is_host(code);
    handles += ist__device_code_is_handle(code);
  }
  assert_int_equal(hosts, COUNT_OF(host));
  assert_int_equal(handles, COUNT_OF(handle));
  for (size_t i = 0; i < COUNT_OF(host); i++) {
    assert_true(ist__device_code_is_host(host[i]));
    assert_true(ist__device_code_is_handle(handle[i]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dtype__row_numbers_are_frozen),
      cmocka_unit_test(dtype__name_and_parse_are_inverse),
      cmocka_unit_test(dtype__everything_else_has_no_name),
      cmocka_unit_test(dtype__lanes_have_a_name_but_no_number),
      cmocka_unit_test(dtype__name_is_cut_to_its_room),
      cmocka_unit_test(dtype__parse_takes_the_words_of_frameworks),
      cmocka_unit_test(dtype__parse_refuses_what_is_no_name),
      cmocka_unit_test(dtype__alignment_is_that_of_one_number),
      cmocka_unit_test(dtype__the_set_of_all_has_a_bit_for_each_row),
      cmocka_unit_test(dtype__foreign_names_are_unique),
      cmocka_unit_test(device_code__each_has_its_name_and_none_is_guessed),
      cmocka_unit_test(device_code__host_and_handle_kinds_are_told_apart),
  };
  return cmocka_run_group_tests_name("dtype", tests, NULL, NULL);
}
