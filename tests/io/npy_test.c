// SPDX-License-Identifier: Apache-2.0
// npy_test.c: .npy files made byte by byte, rightful and hostile.

#define _XOPEN_SOURCE 700

#include "io/npy.h"

#include "io/io_fixture.h"
#include "tensor/dtype.h"

#define SIMPLE "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"

// A file of a version, a header text and nbytes of data; free it.
static unsigned char *make_file(int version, const char *header, size_t nbytes,
                                size_t *out_size) {
  size_t begin = version == 1 ? 10 : 12;
  size_t length = strlen(header);
  unsigned char *file = calloc(1, begin + length + nbytes + 1);
  assert_non_null(file);
  memcpy(file, IST__NPY_MAGIC, 6);
  file[6] = (unsigned char)version;
  file[8] = (unsigned char)(length & 0xFF);
  file[9] = (unsigned char)(length >> 8);
  memcpy(file + begin, header, length);
  for (size_t i = 0; i < nbytes; i++) {
    file[begin + length + i] = (unsigned char)i;
  }
  *out_size = begin + length + nbytes;
  return file;
}

static ist_code parse_as(int version, const char *header, size_t nbytes,
                         const char *dtype, ist__npy *out, ist_error *err) {
  size_t size;
  unsigned char *file = make_file(version, header, nbytes, &size);
  unsigned char *exact = exact_copy(file, size);
  *err = (ist_error){0};
  ist_code code = ist__npy_parse(exact, size, "x.npy", dtype, out, err);
  free(exact);
  free(file);
  assert_int_equal(code, err->code);
  if (code != IST_OK) {
    assert_said(err, "x.npy");
    assert_int_equal(out->entry.ndim, 0);
    assert_null(out->entry.shape);
  }
  return code;
}

static ist_code parse(const char *header, size_t nbytes, ist__npy *out,
                      ist_error *err) {
  return parse_as(1, header, nbytes, NULL, out, err);
}

static void npy__reads_what_numpy_writes(void **state) {
  (void)state;
  ist__npy npy;
  ist_error err;
  assert_int_equal(parse(SIMPLE "     \n", 24, &npy, &err), IST_OK);
  assert_int_equal(npy.entry.dtype.code, kDLFloat);
  assert_int_equal(npy.entry.dtype.bits, 32);
  assert_int_equal(npy.entry.dtype.lanes, 1);
  assert_int_equal(npy.entry.ndim, 2);
  assert_int_equal(npy.entry.shape[0], 2);
  assert_int_equal(npy.entry.shape[1], 3);
  assert_int_equal(npy.entry.nbytes, 24);
  assert_int_equal(npy.entry.offset, 10 + strlen(SIMPLE) + 6);
  assert_false(npy.entry.column_major);
  assert_false(npy.entry.swapped);
  assert_false(npy.entry.padded);
  assert_string_equal(npy.entry.name, "");
}

static void npy__reads_every_version(void **state) {
  (void)state;
  for (int version = 1; version <= 3; version++) {
    ist__npy npy;
    ist_error err;
    assert_int_equal(parse_as(version, SIMPLE "\n", 24, NULL, &npy, &err),
                     IST_OK);
    assert_int_equal(npy.entry.nbytes, 24);
  }
  ist__npy npy;
  ist_error err;
  assert_int_equal(parse_as(4, SIMPLE "\n", 24, NULL, &npy, &err),
                   IST_ERR_FILE_FORMAT);
  assert_said(&err, "version 4.0; needs 1.0, 2.0 or 3.0");
}

static void npy__reads_every_dtype_of_numpy(void **state) {
  (void)state;
  for (int32_t i = 0; i < ist__dtype_count(); i++) {
    const ist__dtype *row = ist__dtype_at(i);
    if (row->npy == NULL) continue;
    static const char orders[] = {'<', '>', '|', '='};
    for (size_t k = 0; k < sizeof orders; k++) {
      char header[256];
      snprintf(header, sizeof header,
               "{'descr': '%c%s', 'fortran_order': False, 'shape': (3,), }\n",
               orders[k], row->npy);
      ist__npy npy;
      ist_error err;
      assert_int_equal(parse(header, row->bits / 8 * 3, &npy, &err), IST_OK);
      assert_int_equal(npy.entry.dtype.code, row->code);
      assert_int_equal(npy.entry.dtype.bits, row->bits);
      assert_int_equal(npy.entry.swapped, orders[k] == '>' && row->bits > 8);
    }
  }
}

static void npy__keeps_order_of_fortran(void **state) {
  (void)state;
  ist__npy npy;
  ist_error err;
  assert_int_equal(parse("{'descr':'<i2','fortran_order':True,'shape':(4,5)}",
                         40, &npy, &err),
                   IST_OK);
  assert_true(npy.entry.column_major);
  assert_int_equal(
      parse("{'descr':'<i2','fortran_order':True,'shape':(4,)}", 8, &npy, &err),
      IST_OK);
  assert_false(npy.entry.column_major);
}

static void npy__reads_scalars_and_empties(void **state) {
  (void)state;
  ist__npy npy;
  ist_error err;
  assert_int_equal(parse("{'descr': '<f8', 'fortran_order': False, "
                         "'shape': (), }\n",
                         8, &npy, &err),
                   IST_OK);
  assert_int_equal(npy.entry.ndim, 0);
  assert_int_equal(npy.entry.nbytes, 8);
  assert_int_equal(parse("{'descr': '<f8', 'fortran_order': False, "
                         "'shape': (0, 5), }\n",
                         0, &npy, &err),
                   IST_OK);
  assert_int_equal(npy.entry.nbytes, 0);
}

static void npy__takes_keys_in_any_order(void **state) {
  (void)state;
  ist__npy npy;
  ist_error err;
  assert_int_equal(parse("{\"shape\" : ( 2L , ) ,\n'fortran_order':False,"
                         "\t'descr':\"|u1\"}  \n",
                         2, &npy, &err),
                   IST_OK);
  assert_int_equal(npy.entry.shape[0], 2);
}

static void npy__allows_bytes_after_the_array(void **state) {
  (void)state;
  ist__npy npy;
  ist_error err;
  assert_int_equal(parse(SIMPLE "\n", 100, &npy, &err), IST_OK);
  assert_int_equal(npy.entry.nbytes, 24);
}

static void npy__names_items_it_refuses(void **state) {
  (void)state;
  static const struct {
    const char *descr, *words;
  } cases[] = {{"'|O'", "Python objects ('|O')"},
               {"'|S5'", "byte strings"},
               {"'<U7'", "unicode strings"},
               {"'|T16'", "strings of any length"},
               {"'<M8[ns]'", "dates (datetime64)"},
               {"'<m8[s]'", "time spans (timedelta64)"},
               {"'<f16'", "long doubles"},
               {"'<f12'", "long doubles"},
               {"'<c32'", "complex long doubles"},
               {"[('a', '<f4'), ('b', '<i4')]", "structured (fields)"},
               {"('<f4', (2,))", "structured (fields)"},
               {"'<f3'", "an unknown type ('<f3')"},
               {"'<z4'", "an unknown type"},
               {"'<f4x'", "not named rightly"},
               {"''", "not named rightly"},
               {"'<f99999999999999999999'", "long doubles"},
               {"'<i0'", "an unknown type"},
               {"'\x1b[31m'", "?[31m"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char header[256];
    snprintf(header, sizeof header,
             "{'descr': %s, 'fortran_order': False, 'shape': (1,), }\n",
             cases[i].descr);
    ist__npy npy;
    ist_error err;
    assert_int_equal(parse(header, 64, &npy, &err), IST_ERR_FILE_DTYPE);
    assert_said(&err, cases[i].words);
  }
}

#define RAW(n) "{'descr': '<V" n "', 'fortran_order': False, 'shape': (4,), }\n"

static void npy__needs_a_dtype_for_raw_items(void **state) {
  (void)state;
  ist__npy npy;
  ist_error err;
  assert_int_equal(parse(RAW("2"), 8, &npy, &err), IST_ERR_FILE_DTYPE);
  assert_said(&err, "raw bytes ('<V2')");
  assert_said(&err, "--dtype");
}

static void npy__reads_raw_items_as_asked(void **state) {
  (void)state;
  static const struct {
    const char *header, *dtype;
    int code, bits;
    bool padded;
  } cases[] = {{RAW("2"), "bfloat16", kDLBfloat, 16, false},
               {RAW("2"), "float16", kDLFloat, 16, false},
               {RAW("1"), "float8_e4m3fn", kDLFloat8_e4m3fn, 8, false},
               {RAW("1"), "int4", kDLInt, 4, true},
               {RAW("1"), "float4_e2m1fn", kDLFloat4_e2m1fn, 4, true},
               {RAW("1"), "float6_e2m3fn", kDLFloat6_e2m3fn, 6, true},
               {RAW("4"), "complex32", kDLComplex, 32, false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    ist__npy npy;
    ist_error err;
    assert_int_equal(
        parse_as(1, cases[i].header, 16, cases[i].dtype, &npy, &err), IST_OK);
    assert_int_equal(npy.entry.dtype.code, cases[i].code);
    assert_int_equal(npy.entry.dtype.bits, cases[i].bits);
    assert_int_equal(npy.entry.padded, cases[i].padded);
  }
}

static void npy__reads_kind_f_of_one_byte_as_float8_e5m2(void **state) {
  (void)state;
  ist__npy npy;
  ist_error err;
  assert_int_equal(parse("{'descr': '<f1', 'fortran_order': False, "
                         "'shape': (2,), }\n",
                         2, &npy, &err),
                   IST_OK);
  assert_int_equal(npy.entry.dtype.code, kDLFloat8_e5m2);
}

static void npy__refuses_a_dtype_that_does_not_fit(void **state) {
  (void)state;
  ist__npy npy;
  ist_error err;
  assert_int_equal(parse_as(1, RAW("2"), 8, "float32", &npy, &err),
                   IST_ERR_FILE_DTYPE);
  assert_said(&err, "2 bytes ('<V2'); needs 4");
  assert_int_equal(parse_as(1, RAW("2"), 8, "float32x4", &npy, &err),
                   IST_ERR_FILE_DTYPE);
  assert_int_equal(parse_as(1, RAW("2"), 8, "nonsense", &npy, &err),
                   IST_ERR_FILE_DTYPE);
  assert_said(&err, "nonsense");
  assert_int_equal(parse_as(1, SIMPLE "\n", 24, "int32", &npy, &err),
                   IST_ERR_FILE_DTYPE);
  assert_said(&err, "float32 ('<f4')");
  assert_int_equal(parse_as(1, SIMPLE "\n", 24, "float32", &npy, &err), IST_OK);
}

static const char *const malformed_headers[] = {
    "",
    " ",
    "{",
    "{}",
    "[]",
    "{'descr': '<f4'}",
    "{'descr': '<f4', 'fortran_order': False}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
    "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, "
    "'shape': (2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n{}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)",
    "{'descr': '<f4', 'fortran_order': False 'shape': (2,)}",
    "{'descr' '<f4', 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '<f4',, 'fortran_order': False, 'shape': (2,)}",
    "{,'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
    "{'descr': f4, 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
    "{'descr': '<f4', 'fortran_order': false, 'shape': (2,)}",
    "{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': 2}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': [2]}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (+2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (02,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1e3,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (0x2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': ((2,),)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}",
    "{'descr': '<f4', 'fortran_order': False, "
    "'shape': (9223372036854775808,)}",
    "{'descr': '<f4', 'fortran_order': False, "
    "'shape': (99999999999999999999999999,)}",
    "{'descr': __import__('os'), 'fortran_order': False, 'shape': (2,)}",
    "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((",
    "{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{"};

static void npy__refuses_malformed_headers(void **state) {
  (void)state;
  const char *const *headers = malformed_headers;
  for (size_t i = 0; i < sizeof malformed_headers / sizeof *headers; i++) {
    ist__npy npy;
    ist_error err;
    ist_code code = parse(headers[i], 64, &npy, &err);
    if (code != IST_ERR_FILE_FORMAT) print_error("%s\n", headers[i]);
    assert_int_equal(code, IST_ERR_FILE_FORMAT);
    assert_said(&err, "its header ");
  }
}

static void npy__refuses_extents_that_overflow(void **state) {
  (void)state;
  static const char *const shapes[] = {
      "(9223372036854775807,)", "(4294967296, 4294967296)",
      "(1152921504606846976, 16)", "(0, 9223372036854775807, 3)",
      "(3037000500, 3037000500, 3037000500)"};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    char header[256];
    snprintf(header, sizeof header,
             "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }\n",
             shapes[i]);
    ist__npy npy;
    ist_error err;
    ist_code code = parse(header, 64, &npy, &err);
    assert_int_equal(code, IST_ERR_FILE_FORMAT);
    assert_said(&err, "overflow");
  }
}

static void npy__limits_dimensions(void **state) {
  (void)state;
  char header[512] = "{'descr': '|u1', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 64; i++) strcat(header, "1,");
  size_t length = strlen(header);
  strcat(header, ")}");
  ist__npy npy;
  ist_error err;
  assert_int_equal(parse(header, 1, &npy, &err), IST_OK);
  assert_int_equal(npy.entry.ndim, 64);
  strcpy(header + length, "1,)}");
  assert_int_equal(parse(header, 1, &npy, &err), IST_ERR_FILE_FORMAT);
  assert_said(&err, "more than 64 dimensions");
}

static void npy__tells_the_bytes_that_lack(void **state) {
  (void)state;
  ist__npy npy;
  ist_error err;
  assert_int_equal(parse(SIMPLE "\n", 23, &npy, &err), IST_ERR_FILE_TRUNCATED);
  assert_said(&err, "needs 94, 24 of them for its array");
}

static void npy__fails_at_every_cut(void **state) {
  (void)state;
  size_t size;
  unsigned char *file = make_file(2, SIMPLE "\n", 24, &size);
  for (size_t cut = 0; cut < size; cut++) {
    unsigned char *exact = exact_copy(file, cut);
    ist__npy npy;
    ist_error err = {0};
    ist_code code = ist__npy_parse(exact, cut, "x.npy", NULL, &npy, &err);
    assert_int_equal(code, IST_ERR_FILE_TRUNCATED);
    assert_said(&err, "needs ");
    free(exact);
  }
  free(file);
}

static void npy__stays_inside_whatever_byte_changes(void **state) {
  (void)state;
  size_t size;
  unsigned char *file = make_file(1, SIMPLE "\n", 24, &size);
  for (size_t at = 0; at < size - 24; at++) {
    for (int value = 0; value < 256; value++) {
      unsigned char *exact = exact_copy(file, size);
      exact[at] = (unsigned char)value;
      ist__npy npy;
      if (ist__npy_parse(exact, size, "x.npy", NULL, &npy, NULL) == IST_OK) {
        assert_true(npy.entry.offset <= size);
        assert_true(npy.entry.nbytes <= size - npy.entry.offset);
      }
      free(exact);
    }
  }
  free(file);
}

static void npy__reads_back_each_header_it_writes(void **state) {
  (void)state;
  static const int64_t shapes[][3] = {{2, 3, 4}, {0, 1, 7}, {30, 1, 0}};
  for (int32_t i = 0; i < ist__dtype_count(); i++) {
    const ist__dtype *row = ist__dtype_at(i);
    for (int32_t ndim = 0; ndim <= 3; ndim++) {
      ist__entry entry = {.dtype = {row->code, row->bits, 1},
                          .column_major = i % 2 == 1 && ndim > 1,
                          .ndim = ndim,
                          .shape = shapes[i % 3]};
      char header[IST__NPY_HEADER_ROOM + 512] = {0};
      size_t size;
      assert_int_equal(
          ist__npy_header_write(&entry, "x.npy", header, &size, NULL), IST_OK);
      assert_int_equal(size % 64, 0);
      ist__npy npy;
      ist_error err = {0};
      // Room for the data: the largest shape here has 30 elements.
      assert_int_equal(
          ist__npy_parse(header, sizeof header, "x.npy",
                         row->npy == NULL ? row->name : NULL, &npy, &err),
          IST_OK);
      assert_int_equal(npy.entry.offset, size);
      assert_int_equal(npy.entry.dtype.code, row->code);
      assert_int_equal(npy.entry.dtype.bits, row->bits);
      assert_int_equal(npy.entry.column_major, entry.column_major);
      assert_int_equal(npy.entry.ndim, ndim);
      assert_memory_equal(npy.shape, entry.shape,
                          (size_t)ndim * sizeof(int64_t));
    }
  }
}

static void npy__writes_the_longest_header(void **state) {
  (void)state;
  int64_t shape[IST_MAX_NDIM];
  for (int i = 0; i < IST_MAX_NDIM; i++) shape[i] = INT64_MAX;
  ist__entry entry = {
      .dtype = {kDLComplex, 128, 1}, .ndim = IST_MAX_NDIM, .shape = shape};
  char header[IST__NPY_HEADER_ROOM];
  size_t size;
  assert_int_equal(ist__npy_header_write(&entry, "x.npy", header, &size, NULL),
                   IST_OK);
  assert_int_equal(header[size - 1], '\n');
  assert_non_null(strstr(header + 10, "9223372036854775807), }"));
}

static void npy__refuses_to_write_vectors(void **state) {
  (void)state;
  ist__entry entry = {.dtype = {kDLFloat, 32, 4}};
  char header[IST__NPY_HEADER_ROOM];
  size_t size;
  ist_error err = {0};
  assert_int_equal(ist__npy_header_write(&entry, "x.npy", header, &size, &err),
                   IST_ERR_FILE_DTYPE);
  assert_said(&err, "4 lanes");
  assert_int_equal(size, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(npy__reads_what_numpy_writes),
      cmocka_unit_test(npy__reads_every_version),
      cmocka_unit_test(npy__reads_every_dtype_of_numpy),
      cmocka_unit_test(npy__keeps_order_of_fortran),
      cmocka_unit_test(npy__reads_scalars_and_empties),
      cmocka_unit_test(npy__takes_keys_in_any_order),
      cmocka_unit_test(npy__allows_bytes_after_the_array),
      cmocka_unit_test(npy__names_items_it_refuses),
      cmocka_unit_test(npy__needs_a_dtype_for_raw_items),
      cmocka_unit_test(npy__reads_raw_items_as_asked),
      cmocka_unit_test(npy__reads_kind_f_of_one_byte_as_float8_e5m2),
      cmocka_unit_test(npy__refuses_a_dtype_that_does_not_fit),
      cmocka_unit_test(npy__refuses_malformed_headers),
      cmocka_unit_test(npy__refuses_extents_that_overflow),
      cmocka_unit_test(npy__limits_dimensions),
      cmocka_unit_test(npy__tells_the_bytes_that_lack),
      cmocka_unit_test(npy__fails_at_every_cut),
      cmocka_unit_test(npy__stays_inside_whatever_byte_changes),
      cmocka_unit_test(npy__reads_back_each_header_it_writes),
      cmocka_unit_test(npy__writes_the_longest_header),
      cmocka_unit_test(npy__refuses_to_write_vectors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
