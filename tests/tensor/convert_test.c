// SPDX-License-Identifier: Apache-2.0
// convert_test.c: what the rule of convert.h promises, by hand-made numbers.
// That all codes equal ml_dtypes' is in tests/python/test_py_astype.py, that
// the loops equal this path in convert_array_test.c.

#include "tensor/convert.h"

#include "support/testing.h"
#include "tensor/dtype.h"

static const ist__float_format *format(const char *name) {
  DLDataType dtype;
  ist_error error = {0};
  assert_ok(ist_dtype_parse(name, &dtype, &error), error);
  const ist__float_format *f = ist__float_format_find(ist_dtype_number(dtype));
  assert_non_null(f);
  return f;
}

static uint64_t plain(const char *from, uint64_t bits, const char *to) {
  return ist__convert_one(format(from), format(to), false, bits);
}

static uint64_t saturated(const char *from, uint64_t bits, const char *to) {
  return ist__convert_one(format(from), format(to), true, bits);
}

// float_format.def and dtype.def tell of the same dtypes.
static void format__is_that_of_its_dtype(void **state) {
  (void)state;
#define IST_FLOAT_FORMAT(number, word, exponent, mantissa, bias, kind) \
  assert_string_equal(ist__dtype_at(number)->name, #word);
#include "tensor/float_format.def"
  int count = 0;
  for (int32_t n = 0; n < ist__dtype_count(); n++) {
    const ist__dtype *row = ist__dtype_at(n);
    const ist__float_format *f = ist__float_format_find(n);
    assert_int_equal(f != NULL, strstr(row->name, "float") != NULL);
    if (f == NULL) continue;
    assert_int_equal(ist__float_bits(f), row->bits);
    count++;
  }
  assert_int_equal(count, 15);
}

static void one__rounds_to_nearest_and_ties_to_even(void **state) {
  (void)state;
  // 1 + 2^-8, between 1 and 1 + 2^-7; just above it; 1 + 3 * 2^-8.
  assert_int_equal(plain("float32", 0x3f808000, "bfloat16"), 0x3f80);
  assert_int_equal(plain("float32", 0x3f808001, "bfloat16"), 0x3f81);
  assert_int_equal(plain("float32", 0x3f818000, "bfloat16"), 0x3f82);
  // A carry through all digits raises the exponent.
  assert_int_equal(plain("float32", 0x3fffffff, "float8_e4m3fn"), 0x40);
}

static void one__rounds_a_double_once(void **state) {
  (void)state;
  // 1 + 2^-4 + 2^-45: above the tie of float8_e4m3fn, at it in float32.
  assert_int_equal(plain("float64", 0x3ff1000000000080, "float8_e4m3fn"), 0x39);
  assert_int_equal(plain("float64", 0x3ff1000000000000, "float8_e4m3fn"), 0x38);
}

static void one__keeps_subnormals_on_both_sides(void **state) {
  (void)state;
  assert_int_equal(plain("float16", 0x0001, "float32"), 0x33800000);
  assert_int_equal(plain("float32", 0x33800000, "float16"), 0x0001);
  assert_int_equal(plain("float32", 0x33000000, "float16"), 0x0000);
  assert_int_equal(plain("float32", 0x33000001, "float16"), 0x0001);
  assert_int_equal(plain("float64", 0x36a0000000000000, "float32"), 1);
  assert_int_equal(plain("float32", 1, "float64"), 0x36a0000000000000);
}

static void one__lets_what_is_too_large_become_infinity_or_nan(void **state) {
  (void)state;
  const uint64_t million = 0x49742400;
  assert_int_equal(plain("float32", million, "float16"), 0x7c00);
  assert_int_equal(plain("float32", million, "float8_e5m2"), 0x7c);
  assert_int_equal(plain("float32", million, "float8_e4m3fn"), 0x7f);
  assert_int_equal(plain("float32", million, "float8_e4m3fnuz"), 0x80);
  assert_int_equal(plain("float32", million, "float4_e2m1fn"), 0x7);
  // 464 is halfway from 448, the largest, to a 480 that is not there.
  assert_int_equal(plain("float32", 0x43e80000, "float8_e4m3fn"), 0x7e);
  assert_int_equal(plain("float32", 0x43e80001, "float8_e4m3fn"), 0x7f);
}

static void one__saturates_what_is_too_large_and_infinity(void **state) {
  (void)state;
  static const uint64_t large[] = {0x7e967699, 0x7f800000};  // 1e38, inf
  for (size_t i = 0; i < COUNT_OF(large); i++) {
    assert_int_equal(saturated("float32", large[i], "float16"), 0x7bff);
    assert_int_equal(saturated("float32", large[i], "float8_e5m2"), 0x7b);
    assert_int_equal(saturated("float32", large[i], "float8_e4m3fn"), 0x7e);
    assert_int_equal(saturated("float32", large[i], "float8_e4m3fnuz"), 0x7f);
    uint64_t negative = large[i] | 0x80000000;
    assert_int_equal(saturated("float32", negative, "float8_e4m3fn"), 0xfe);
    assert_int_equal(saturated("float32", negative, "float8_e8m0fnu"), 0xff);
  }
  assert_int_equal(saturated("float32", 0x7f7fffff, "float8_e8m0fnu"), 0xfe);
  // A wider type is not made infinite either; NaN stays NaN.
  assert_int_equal(saturated("float16", 0x7c00, "float32"), 0x7f7fffff);
  assert_int_equal(saturated("float32", 0x7fc00000, "float8_e4m3fn"), 0x7f);
}

static void one__keeps_the_sign_of_zero_where_there_is_one(void **state) {
  (void)state;
  assert_int_equal(plain("float32", 0x80000000, "bfloat16"), 0x8000);
  assert_int_equal(plain("float32", 0x80000000, "float8_e4m3fn"), 0x80);
  assert_int_equal(plain("float32", 0x80000000, "float8_e4m3fnuz"), 0);
  assert_int_equal(plain("float32", 0x80000001, "float8_e5m2fnuz"), 0);
}

static void one__gives_each_nan_its_bits(void **state) {
  (void)state;
  assert_int_equal(plain("float32", 0x7f800001, "bfloat16"), 0x7fc0);
  assert_int_equal(plain("float32", 0xffc00000, "float8_e5m2"), 0xfe);
  assert_int_equal(plain("float8_e4m3fnuz", 0x80, "float32"), 0xffc00000);
  assert_int_equal(plain("float32", 0x7fc00000, "float6_e2m3fn"), 0x20);
  assert_int_equal(plain("float32", 0xffc00000, "float6_e2m3fn"), 0);
  // Mantissas are kept among NumPy's own types; quiet between two of them.
  assert_int_equal(plain("float16", 0x7c01, "float32"), 0x7f802000);
  assert_int_equal(plain("float32", 0x7f800001, "float16"), 0x7c01);
  assert_int_equal(plain("float32", 0x7f800001, "float64"), 0x7ff8000020000000);
}

static void one__takes_powers_of_two_as_they_come(void **state) {
  (void)state;
  assert_int_equal(plain("float32", 0x3f800000, "float8_e8m0fnu"), 127);
  assert_int_equal(plain("float32", 0x3fbfffff, "float8_e8m0fnu"), 127);
  assert_int_equal(plain("float32", 0x3fc00000, "float8_e8m0fnu"), 128);
  assert_int_equal(plain("float32", 0, "float8_e8m0fnu"), 0xff);
  assert_int_equal(plain("float32", 0xbf800000, "float8_e8m0fnu"), 0xff);
  assert_int_equal(plain("float64", 1, "float8_e8m0fnu"), 0);
  assert_int_equal(plain("float8_e8m0fnu", 0, "float32"), 0x00400000);
  assert_int_equal(plain("float8_e8m0fnu", 0xff, "float32"), 0x7fc00000);
}

static void one__ignores_bits_above_a_narrow_element(void **state) {
  (void)state;
  assert_int_equal(plain("float4_e2m1fn", 0xf7, "float32"), 0x40c00000);
  assert_int_equal(plain("float6_e3m2fn", 0xc1, "float32"), 0x3d800000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(format__is_that_of_its_dtype),
      cmocka_unit_test(one__rounds_to_nearest_and_ties_to_even),
      cmocka_unit_test(one__rounds_a_double_once),
      cmocka_unit_test(one__keeps_subnormals_on_both_sides),
      cmocka_unit_test(one__lets_what_is_too_large_become_infinity_or_nan),
      cmocka_unit_test(one__saturates_what_is_too_large_and_infinity),
      cmocka_unit_test(one__keeps_the_sign_of_zero_where_there_is_one),
      cmocka_unit_test(one__gives_each_nan_its_bits),
      cmocka_unit_test(one__takes_powers_of_two_as_they_come),
      cmocka_unit_test(one__ignores_bits_above_a_narrow_element),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
