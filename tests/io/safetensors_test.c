// SPDX-License-Identifier: Apache-2.0
// safetensors_test.c: .safetensors files made byte by byte, rightful and
// hostile.

#define _XOPEN_SOURCE 700

#include "io/safetensors.h"

#include "io/io_fixture.h"
#include "tensor/dtype.h"

// A file of a header text and nbytes of data; free it.
static unsigned char *make_file(const char *header, size_t nbytes,
                                size_t *out_size) {
  size_t length = strlen(header);
  unsigned char *file = calloc(1, 8 + length + nbytes + 1);
  assert_non_null(file);
  for (int i = 0; i < 8; i++) file[i] = (unsigned char)(length >> (8 * i));
  memcpy(file + 8, header, length);
  *out_size = 8 + length + nbytes;
  return file;
}

// Parses, and where it fails frees nothing and checks that nothing is left.
static ist_code parse(const char *header, size_t nbytes,
                      counting_allocator *count, ist__safetensors *out,
                      ist_error *err) {
  size_t size;
  unsigned char *file = make_file(header, nbytes, &size);
  unsigned char *exact = exact_copy(file, size);
  ist__env env = counting_env(count);
  *err = (ist_error){0};
  ist_code code =
      ist__safetensors_parse(&env, exact, size, "x.safetensors", out, err);
  free(exact);
  free(file);
  assert_int_equal(code, err->code);
  if (code != IST_OK) {
    assert_int_equal(count->live, 0);
    assert_null(out->block);
    assert_int_equal(out->count, 0);
  }
  return code;
}

static void finish(counting_allocator *count, ist__safetensors *parsed) {
  ist__env env = counting_env(count);
  ist__safetensors_free(&env, parsed);
  assert_int_equal(count->live, 0);
}

#define ONE \
  "{\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}"

static void safetensors__reads_one_tensor(void **state) {
  (void)state;
  counting_allocator count = {0};
  ist__safetensors parsed;
  ist_error err;
  assert_int_equal(parse(ONE "   ", 24, &count, &parsed, &err), IST_OK);
  assert_int_equal(parsed.count, 1);
  const ist__entry *entry = ist__safetensors_find(&parsed, "w");
  assert_ptr_equal(entry, &parsed.entries[0]);
  assert_int_equal(entry->dtype.code, kDLFloat);
  assert_int_equal(entry->dtype.bits, 32);
  assert_int_equal(entry->ndim, 2);
  assert_int_equal(entry->shape[0], 2);
  assert_int_equal(entry->shape[1], 3);
  assert_int_equal(entry->offset, 8 + strlen(ONE "   "));
  assert_int_equal(entry->nbytes, 24);
  assert_null(ist__safetensors_find(&parsed, "v"));
  assert_null(ist__safetensors_find(&parsed, ""));
  finish(&count, &parsed);
}

static void safetensors__reads_a_file_without_tensors(void **state) {
  (void)state;
  counting_allocator count = {0};
  ist__safetensors parsed;
  ist_error err;
  assert_int_equal(parse("{}", 0, &count, &parsed, &err), IST_OK);
  assert_int_equal(parsed.count, 0);
  assert_null(ist__safetensors_find(&parsed, "w"));
  finish(&count, &parsed);
  assert_int_equal(parse("{\"__metadata__\":{\"a\":\"b\",\"c\":\"d\"}}", 0,
                         &count, &parsed, &err),
                   IST_OK);
  assert_int_equal(parsed.count, 0);
  finish(&count, &parsed);
}

static void safetensors__orders_tensors_by_place(void **state) {
  (void)state;
  counting_allocator count = {0};
  ist__safetensors parsed;
  ist_error err;
  assert_int_equal(
      parse("{\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]},"
            "\"__metadata__\":{\"format\":\"pt\"},"
            "\"z\":{\"shape\":[0,9],\"data_offsets\":[2,2],\"dtype\":\"F64\"},"
            "\"a\":{\"data_offsets\":[6,8],\"dtype\":\"F16\",\"shape\":[]},"
            "\"c\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[0,2]}}",
            8, &count, &parsed, &err),
      IST_OK);
  static const char *const names[] = {"c", "z", "b", "a"};
  assert_int_equal(parsed.count, 4);
  for (size_t i = 0; i < 4; i++) {
    assert_string_equal(parsed.entries[i].name, names[i]);
    assert_ptr_equal(ist__safetensors_find(&parsed, names[i]),
                     &parsed.entries[i]);
  }
  finish(&count, &parsed);
}

static void safetensors__reads_every_dtype_of_the_format(void **state) {
  (void)state;
  for (int32_t i = 0; i < ist__dtype_count(); i++) {
    const ist__dtype *row = ist__dtype_at(i);
    if (row->safetensors == NULL) continue;
    char header[256];
    snprintf(header, sizeof header,
             "{\"w\":{\"dtype\":\"%s\",\"shape\":[8],\"data_offsets\":[0,%u]}}",
             row->safetensors, (unsigned)row->bits);
    counting_allocator count = {0};
    ist__safetensors parsed;
    ist_error err;
    assert_int_equal(parse(header, row->bits, &count, &parsed, &err), IST_OK);
    assert_int_equal(parsed.entries[0].dtype.code, row->code);
    assert_int_equal(parsed.entries[0].dtype.bits, row->bits);
    assert_false(parsed.entries[0].padded);
    finish(&count, &parsed);
  }
}

static void safetensors__reads_names_with_escapes(void **state) {
  (void)state;
  counting_allocator count = {0};
  ist__safetensors parsed;
  ist_error err;
  assert_int_equal(
      parse("{\"\\u00e9\\ud83d\\ude00\\\"\\n\":{\"dt\\u0079pe\":\"\\u0055"
            "8\",\"shape\":[1],\"data_offsets\":[0,1]},"
            "\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
            2, &count, &parsed, &err),
      IST_OK);
  assert_non_null(ist__safetensors_find(&parsed, ""));
  assert_non_null(
      ist__safetensors_find(&parsed, "\xc3\xa9\xf0\x9f\x98\x80\"\n"));
  finish(&count, &parsed);
}

static void safetensors__passes_over_other_fields(void **state) {
  (void)state;
  counting_allocator count = {0};
  ist__safetensors parsed;
  ist_error err;
  assert_int_equal(
      parse("{\"w\":{\"note\":[1,{\"dtype\":\"F64\"}],\"dtype\":\"U8\","
            "\"shape\":[1],\"data_offsets\":[0,1],\"more\":{}}}",
            1, &count, &parsed, &err),
      IST_OK);
  assert_int_equal(parsed.entries[0].dtype.code, kDLUInt);
  finish(&count, &parsed);
}

// A row of a table of bad headers.
typedef struct bad {
  const char *header;
  size_t nbytes;
  ist_code code;
  const char *words;
} bad;

#define U8(name, begin, end, extent)                  \
  "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" extent \
  "],\"data_offsets\":[" begin "," end "]}"
#define FIELDS(text) "{\"w\":{" text "}}"
#define SHAPE(text) \
  FIELDS("\"dtype\":\"U8\",\"shape\":" text ",\"data_offsets\":[0,1]")
#define OFFSETS(text) \
  FIELDS("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":" text)
#define DTYPE(text) \
  FIELDS("\"dtype\":" text ",\"shape\":[1],\"data_offsets\":[0,1]")

static const bad bad_headers[] = {
    // Places.
    {"{" U8("a", "0", "4", "4") "," U8("b", "2", "6", "4") "}", 6,
     IST_ERR_FILE_FORMAT, "tensor 'b', which overlaps another"},
    {"{" U8("a", "0", "4", "4") "," U8("b", "0", "4", "4") "}", 4,
     IST_ERR_FILE_FORMAT, "overlaps another"},
    {"{" U8("a", "0", "4", "4") "," U8("b", "5", "6", "1") "}", 6,
     IST_ERR_FILE_FORMAT,
     "leaves a hole: it begins at byte 5 of the data; needs 4"},
    {"{" U8("a", "1", "4", "3") "}", 4, IST_ERR_FILE_FORMAT, "leaves a hole"},
    {"{" U8("a", "0", "4", "4") "}", 5, IST_ERR_FILE_FORMAT,
     "tensors of 4 bytes, but 5 follow it"},
    {"{}", 1, IST_ERR_FILE_FORMAT, "tensors of 0 bytes, but 1 follow it"},
    {"{" U8("a", "0", "4", "4") "}", 3, IST_ERR_FILE_TRUNCATED,
     "the file ends after 64 bytes; needs 65, where tensor 'a' ends"},
    {"{" U8("a", "4", "0", "4") "}", 4, IST_ERR_FILE_FORMAT,
     "end before they begin"},
    {"{" U8("a", "0", "4", "3") "}", 4, IST_ERR_FILE_FORMAT,
     "data_offsets of 4 bytes; needs 3"},
    {"{" U8("a", "2", "2", "0") "}", 0, IST_ERR_FILE_TRUNCATED,
     "where tensor 'a' ends"},
    // Numbers.
    {OFFSETS("[0,9007199254740993]"), 1, IST_ERR_FILE_FORMAT,
     "data_offsets of 9007199254740993 bytes"},
    {OFFSETS("[9007199254740993,9007199254740994]"), 1, IST_ERR_FILE_TRUNCATED,
     "where tensor 'w' ends"},
    {OFFSETS("[18446744073709551615,18446744073709551615]"), 1,
     IST_ERR_FILE_FORMAT, "data_offsets of 0 bytes"},
    {OFFSETS("[0,18446744073709551616]"), 1, IST_ERR_FILE_FORMAT,
     "two whole numbers"},
    {OFFSETS("[0,18446744073709551617]"), 1, IST_ERR_FILE_FORMAT,
     "two whole numbers"},
    {OFFSETS("[0,1.0]"), 1, IST_ERR_FILE_FORMAT, "two whole numbers"},
    {OFFSETS("[0,1e0]"), 1, IST_ERR_FILE_FORMAT, "two whole numbers"},
    {OFFSETS("[-0,1]"), 1, IST_ERR_FILE_FORMAT, "two whole numbers"},
    {OFFSETS("[-1,0]"), 1, IST_ERR_FILE_FORMAT, "two whole numbers"},
    {OFFSETS("[0,\"1\"]"), 1, IST_ERR_FILE_FORMAT, "two whole numbers"},
    {OFFSETS("[0,[1]]"), 1, IST_ERR_FILE_FORMAT, "two whole numbers"},
    {OFFSETS("[1]"), 1, IST_ERR_FILE_FORMAT, "two whole numbers"},
    {OFFSETS("[0,1,2]"), 1, IST_ERR_FILE_FORMAT, "two whole numbers"},
    {OFFSETS("[]"), 1, IST_ERR_FILE_FORMAT, "two whole numbers"},
    {OFFSETS("1"), 1, IST_ERR_FILE_FORMAT, "two whole numbers"},
    {OFFSETS("null"), 1, IST_ERR_FILE_FORMAT, "two whole numbers"},
    {OFFSETS("{\"0\":1}"), 1, IST_ERR_FILE_FORMAT, "two whole numbers"},
    {SHAPE("[true]"), 1, IST_ERR_FILE_FORMAT, "list of whole numbers"},
    {SHAPE("[-1]"), 1, IST_ERR_FILE_FORMAT, "list of whole numbers"},
    {SHAPE("[1.5]"), 1, IST_ERR_FILE_FORMAT, "list of whole numbers"},
    {SHAPE("[[1]]"), 1, IST_ERR_FILE_FORMAT, "list of whole numbers"},
    {SHAPE("\"1\""), 1, IST_ERR_FILE_FORMAT, "list of whole numbers"},
    {SHAPE("[18446744073709551616]"), 1, IST_ERR_FILE_FORMAT,
     "list of whole numbers"},
    {SHAPE("[9223372036854775808]"), 1, IST_ERR_FILE_FORMAT,
     "extent above 2**63 - 1"},
    {SHAPE("[4294967296,4294967296]"), 1, IST_ERR_FILE_FORMAT, "overflows"},
    {SHAPE("[4294967297,4294967297,4294967297]"), 1, IST_ERR_FILE_FORMAT,
     "overflows"},
    {SHAPE(
         "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
         "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"),
     1, IST_ERR_FILE_FORMAT, "more than 64 dimensions"},
    // Fields.
    {DTYPE("\"F128\""), 1, IST_ERR_FILE_DTYPE, "dtype \"F128\""},
    {DTYPE("\"u8\""), 1, IST_ERR_FILE_DTYPE, "dtype \"u8\""},
    {DTYPE("\"\""), 1, IST_ERR_FILE_DTYPE, "dtype \"\""},
    {DTYPE("8"), 1, IST_ERR_FILE_FORMAT, "dtype that is not a string"},
    {FIELDS("\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]"), 2,
     IST_ERR_FILE_FORMAT, "does not fill whole bytes"},
    {FIELDS("\"dtype\":\"F6_E2M3\",\"shape\":[3],\"data_offsets\":[0,3]"), 3,
     IST_ERR_FILE_FORMAT, "does not fill whole bytes"},
    {FIELDS("\"shape\":[1],\"data_offsets\":[0,1]"), 1, IST_ERR_FILE_FORMAT,
     "lacks one of"},
    {FIELDS("\"dtype\":\"U8\",\"data_offsets\":[0,1]"), 1, IST_ERR_FILE_FORMAT,
     "lacks one of"},
    {FIELDS("\"dtype\":\"U8\",\"shape\":[1]"), 1, IST_ERR_FILE_FORMAT,
     "lacks one of"},
    {FIELDS(""), 0, IST_ERR_FILE_FORMAT, "lacks one of"},
    {FIELDS("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],"
            "\"dtype\":\"U8\""),
     1, IST_ERR_FILE_FORMAT, "a field twice"},
    {FIELDS("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],"
            "\"\\u0064type\":\"I8\""),
     1, IST_ERR_FILE_FORMAT, "a field twice"},
    {"{\"w\":1}", 0, IST_ERR_FILE_FORMAT, "not described by an object"},
    {"{\"w\":[]}", 0, IST_ERR_FILE_FORMAT, "not described by an object"},
    {"{\"w\":null}", 0, IST_ERR_FILE_FORMAT, "not described by an object"},
    // Names.
    {"{" U8("a", "0", "1", "1") "," U8("a", "1", "2", "1") "}", 2,
     IST_ERR_FILE_FORMAT, "has two tensors named 'a'"},
    {"{" U8("a", "0", "1", "1") "," U8("\\u0061", "1", "2", "1") "}", 2,
     IST_ERR_FILE_FORMAT, "has two tensors named 'a'"},
    {"{" U8("a\\u0000b", "0", "1", "1") "}", 1, IST_ERR_FILE_FORMAT,
     "a NUL in its name"},
    {"{" U8("a\\ud800", "0", "1", "1") "}", 1, IST_ERR_FILE_FORMAT,
     "a bad escape, at byte "},
    {"{" U8("a\xff", "0", "1", "1") "}", 1, IST_ERR_FILE_FORMAT, "not UTF-8"},
    {"{" U8("a\\u001b[2J", "0", "2", "1") "}", 2, IST_ERR_FILE_FORMAT,
     "tensor 'a?[2J'"},
    // Metadata.
    {"{\"__metadata__\":{\"a\":1}}", 0, IST_ERR_FILE_FORMAT, "text for text"},
    {"{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}", 0, IST_ERR_FILE_FORMAT,
     "text for text"},
    {"{\"__metadata__\":\"a\"}", 0, IST_ERR_FILE_FORMAT, "text for text"},
    {"{\"__metadata__\":null}", 0, IST_ERR_FILE_FORMAT, "text for text"},
    {"{\"__metadata__\":[]}", 0, IST_ERR_FILE_FORMAT, "text for text"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, IST_ERR_FILE_FORMAT,
     "__metadata__ twice"},
    {"{\"__metadata__\\u0000\":{}}", 0, IST_ERR_FILE_FORMAT,
     "a NUL in its name"},
    // JSON.
    {"", 0, IST_ERR_FILE_FORMAT, "does not begin with {"},
    {" {}", 0, IST_ERR_FILE_FORMAT, "does not begin with {"},
    {"[]", 0, IST_ERR_FILE_FORMAT, "does not begin with {"},
    {"{", 0, IST_ERR_FILE_FORMAT, "its header has a key that is not a string"},
    {"{}}", 0, IST_ERR_FILE_FORMAT, "goes on after its end"},
    {"{} {}", 0, IST_ERR_FILE_FORMAT, "goes on after its end"},
    {"{" U8("a", "0", "1", "1") ",}", 1, IST_ERR_FILE_FORMAT, "JSON"},
    {"{" U8("a", "0", "1", "1") U8("b", "1", "2", "1") "}", 2,
     IST_ERR_FILE_FORMAT, "lacks a comma"},
    {"{'a':1}", 0, IST_ERR_FILE_FORMAT, "JSON"},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,01]}}", 1,
     IST_ERR_FILE_FORMAT, "JSON"}};

static void safetensors__refuses_bad_headers(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bad_headers / sizeof bad_headers[0]; i++) {
    const bad *row = &bad_headers[i];
    counting_allocator count = {0};
    ist__safetensors parsed;
    ist_error err;
    ist_code code = parse(row->header, row->nbytes, &count, &parsed, &err);
    if (code != row->code) {
      print_error("%d for %s: %s\n", code, row->header, err.message);
    }
    assert_int_equal(code, row->code);
    assert_said(&err, row->words);
    assert_said(&err, "x.safetensors");
    assert_said(&err, "; needs ");
  }
}

static void safetensors__refuses_bad_lengths(void **state) {
  (void)state;
  static const struct {
    uint64_t length;
    ist_code code;
    const char *words;
  } cases[] = {
      {0, IST_ERR_FILE_FORMAT, "does not begin with {"},
      {3, IST_ERR_FILE_TRUNCATED, "ends after 10 bytes; needs 11"},
      {100000000, IST_ERR_FILE_TRUNCATED, "needs 100000008"},
      {100000001, IST_ERR_FILE_FORMAT, "100000001 bytes; needs at most"},
      {UINT64_MAX, IST_ERR_FILE_FORMAT, "18446744073709551615 bytes"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    unsigned char bytes[10] = {[8] = '{', [9] = '}'};
    for (int k = 0; k < 8; k++) {
      bytes[k] = (unsigned char)(cases[i].length >> (8 * k));
    }
    counting_allocator count = {0};
    ist__env env = counting_env(&count);
    ist__safetensors parsed;
    ist_error err = {0};
    assert_int_equal(
        ist__safetensors_parse(&env, bytes, sizeof bytes, "x", &parsed, &err),
        cases[i].code);
    assert_said(&err, cases[i].words);
  }
}

static void safetensors__fails_at_every_cut(void **state) {
  (void)state;
  size_t size;
  unsigned char *file = make_file(ONE, 24, &size);
  for (size_t cut = 0; cut < size; cut++) {
    unsigned char *exact = exact_copy(file, cut);
    counting_allocator count = {0};
    ist__env env = counting_env(&count);
    ist__safetensors parsed;
    ist_error err = {0};
    assert_int_equal(
        ist__safetensors_parse(&env, exact, cut, "x", &parsed, &err),
        IST_ERR_FILE_TRUNCATED);
    assert_int_equal(count.live, 0);
    free(exact);
  }
  free(file);
}

static void safetensors__stays_inside_whatever_byte_changes(void **state) {
  (void)state;
  size_t size;
  unsigned char *file = make_file(ONE, 24, &size);
  for (size_t at = 0; at < size - 24; at++) {
    for (int value = 0; value < 256; value++) {
      unsigned char *exact = exact_copy(file, size);
      exact[at] = (unsigned char)value;
      counting_allocator count = {0};
      ist__env env = counting_env(&count);
      ist__safetensors parsed;
      if (ist__safetensors_parse(&env, exact, size, "x", &parsed, NULL) ==
          IST_OK) {
        for (size_t i = 0; i < parsed.count; i++) {
          assert_true(parsed.entries[i].offset <= size);
          assert_true(parsed.entries[i].nbytes <=
                      size - parsed.entries[i].offset);
        }
      }
      finish(&count, &parsed);
      free(exact);
    }
  }
  free(file);
}

static void safetensors__loses_nothing_when_memory_ends(void **state) {
  (void)state;
  long fail_at = 1;
  for (;; fail_at++) {
    counting_allocator count = {.fail_at = fail_at};
    ist__safetensors parsed;
    ist_error err;
    ist_code code = parse(ONE, 24, &count, &parsed, &err);
    if (code == IST_OK) {
      assert_true(count.requests < fail_at);
      finish(&count, &parsed);
      break;
    }
    assert_int_equal(code, IST_ERR_NO_ALLOCATION);
    assert_int_equal(count.requests, fail_at);
  }
  assert_true(fail_at > 2);
}

static void plan__aligns_what_the_format_lets(void **state) {
  (void)state;
  static const int64_t one[] = {1}, three[] = {3}, ten[] = {10}, big[] = {16},
                       none[] = {0};
  const ist__entry entries[] = {
      {.name = "flag", .dtype = {kDLBool, 8, 1}, .ndim = 1, .shape = one},
      {.name = "bias", .dtype = {kDLFloat, 32, 1}, .ndim = 1, .shape = ten},
      {.name = "w1", .dtype = {kDLFloat, 32, 1}, .ndim = 1, .shape = big},
      {.name = "half", .dtype = {kDLFloat, 16, 1}, .ndim = 1, .shape = three},
      {.name = "none", .dtype = {kDLFloat, 64, 1}, .ndim = 1, .shape = none},
      {.name = "z", .dtype = {kDLComplex, 64, 1}, .ndim = 1, .shape = three},
      {.name = "w2", .dtype = {kDLFloat, 64, 1}, .ndim = 1, .shape = big}};
  const size_t n = sizeof entries / sizeof entries[0];
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  ist__safetensors_plan plan;
  assert_int_equal(
      ist__safetensors_plan_make(&env, "x", entries, n, &plan, NULL), IST_OK);
  assert_int_equal(plan.header_size % 64, 0);
  size_t size = plan.header_size + 64 + 128 + 40 + 24 + 6 + 1;
  char *file = calloc(1, size);
  assert_non_null(file);
  memcpy(file, plan.header, plan.header_size);
  ist__safetensors parsed;
  ist_error err = {0};
  assert_int_equal(ist__safetensors_parse(&env, file, size, "x", &parsed, &err),
                   IST_OK);
  assert_int_equal(parsed.count, n);
  for (size_t i = 0; i < n; i++) {
    const ist__entry *planned = &entries[plan.order[i]];
    const ist__entry *read = ist__safetensors_find(&parsed, planned->name);
    assert_non_null(read);
    assert_memory_equal(&read->dtype, &planned->dtype, sizeof read->dtype);
    assert_memory_equal(read->shape, planned->shape, sizeof(int64_t));
    assert_int_equal(read->offset % (planned->dtype.bits / 8), 0);
    if (read->nbytes % 64 == 0) assert_int_equal(read->offset % 64, 0);
  }
  free(file);
  // Size 64 or none first, in the order given; then by the power of two.
  static const size_t order[] = {2, 4, 6, 1, 5, 3, 0};
  assert_memory_equal(plan.order, order, sizeof order);
  ist__safetensors_plan_free(&env, &plan);
  finish(&count, &parsed);
}

static void plan__writes_an_empty_file(void **state) {
  (void)state;
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  ist__safetensors_plan plan;
  assert_int_equal(ist__safetensors_plan_make(&env, "x", NULL, 0, &plan, NULL),
                   IST_OK);
  ist__safetensors parsed;
  assert_int_equal(ist__safetensors_parse(&env, plan.header, plan.header_size,
                                          "x", &parsed, NULL),
                   IST_OK);
  assert_int_equal(parsed.count, 0);
  ist__safetensors_plan_free(&env, &plan);
  finish(&count, &parsed);
}

static void plan__keeps_names_whole(void **state) {
  (void)state;
  static const char *const names[] = {"", "a\"b\\c\n\x01\x7f",
                                      "\xc3\xa9\xf0\x9f\x98\x80", "a.b/c:d"};
  ist__entry entries[4];
  for (size_t i = 0; i < 4; i++) {
    entries[i] = (ist__entry){.name = names[i], .dtype = {kDLUInt, 8, 1}};
  }
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  ist__safetensors_plan plan;
  assert_int_equal(
      ist__safetensors_plan_make(&env, "x", entries, 4, &plan, NULL), IST_OK);
  char *file = calloc(1, plan.header_size + 4);
  assert_non_null(file);
  memcpy(file, plan.header, plan.header_size);
  ist__safetensors parsed;
  assert_int_equal(ist__safetensors_parse(&env, file, plan.header_size + 4, "x",
                                          &parsed, NULL),
                   IST_OK);
  for (size_t i = 0; i < 4; i++) {
    assert_non_null(ist__safetensors_find(&parsed, names[i]));
  }
  ist__safetensors_plan_free(&env, &plan);
  free(file);
  finish(&count, &parsed);
}

static void plan__refuses_what_the_format_has_no_place_for(void **state) {
  (void)state;
  static const int64_t three[] = {3};
  const ist__entry fine = {.name = "a", .dtype = {kDLUInt, 8, 1}};
  const struct {
    ist__entry entry;
    ist_code code;
    const char *words;
  } cases[] = {{{.name = "a", .dtype = {kDLUInt, 8, 1}},
                IST_ERR_ARGUMENT,
                "two tensors are named 'a'"},
               {{.name = NULL, .dtype = {kDLUInt, 8, 1}},
                IST_ERR_ARGUMENT,
                "has no name"},
               {{.name = "__metadata__", .dtype = {kDLUInt, 8, 1}},
                IST_ERR_ARGUMENT,
                "keeps for itself"},
               {{.name = "\xff", .dtype = {kDLUInt, 8, 1}},
                IST_ERR_ARGUMENT,
                "not UTF-8"},
               {{.name = "b", .dtype = {kDLComplex, 128, 1}},
                IST_ERR_FILE_DTYPE,
                "complex128"},
               {{.name = "b", .dtype = {kDLFloat, 32, 2}},
                IST_ERR_FILE_DTYPE,
                "2 lanes"},
               {{.name = "b",
                 .dtype = {kDLFloat4_e2m1fn, 4, 1},
                 .ndim = 1,
                 .shape = three},
                IST_ERR_FILE_DTYPE,
                "3 elements of 4 bits; needs whole bytes"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    ist__entry entries[2] = {fine, cases[i].entry};
    counting_allocator count = {0};
    ist__env env = counting_env(&count);
    ist__safetensors_plan plan;
    ist_error err = {0};
    assert_int_equal(
        ist__safetensors_plan_make(&env, "x", entries, 2, &plan, &err),
        cases[i].code);
    assert_said(&err, cases[i].words);
    assert_null(plan.block);
    assert_int_equal(count.live, 0);
  }
}

static void plan__loses_nothing_when_memory_ends(void **state) {
  (void)state;
  const ist__entry entry = {.name = "a", .dtype = {kDLUInt, 8, 1}};
  for (long fail_at = 1; fail_at <= 3; fail_at++) {
    counting_allocator count = {.fail_at = fail_at};
    ist__env env = counting_env(&count);
    ist__safetensors_plan plan;
    ist_code code =
        ist__safetensors_plan_make(&env, "x", &entry, 1, &plan, NULL);
    assert_int_equal(code, fail_at < 3 ? IST_ERR_NO_ALLOCATION : IST_OK);
    ist__safetensors_plan_free(&env, &plan);
    assert_int_equal(count.live, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(safetensors__reads_one_tensor),
      cmocka_unit_test(safetensors__reads_a_file_without_tensors),
      cmocka_unit_test(safetensors__orders_tensors_by_place),
      cmocka_unit_test(safetensors__reads_every_dtype_of_the_format),
      cmocka_unit_test(safetensors__reads_names_with_escapes),
      cmocka_unit_test(safetensors__passes_over_other_fields),
      cmocka_unit_test(safetensors__refuses_bad_headers),
      cmocka_unit_test(safetensors__refuses_bad_lengths),
      cmocka_unit_test(safetensors__fails_at_every_cut),
      cmocka_unit_test(safetensors__stays_inside_whatever_byte_changes),
      cmocka_unit_test(safetensors__loses_nothing_when_memory_ends),
      cmocka_unit_test(plan__aligns_what_the_format_lets),
      cmocka_unit_test(plan__writes_an_empty_file),
      cmocka_unit_test(plan__keeps_names_whole),
      cmocka_unit_test(plan__refuses_what_the_format_has_no_place_for),
      cmocka_unit_test(plan__loses_nothing_when_memory_ends)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
