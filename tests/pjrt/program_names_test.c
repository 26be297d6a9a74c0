// SPDX-License-Identifier: Apache-2.0
// The names of arguments, read off text that may be anything.

#include "backend/pjrt/program_names.h"

#include <stdio.h>

#include "base/alloc.h"
#include "io/io_fixture.h"
#include "support/guard_page.h"
#include "support/testing.h"

// "x,,w>,out": inputs, then outputs.
static void join(const char *text, size_t size, char *out, size_t room) {
  counting_allocator count = {0};
  ist__env env = counting_env(&count);
  guarded memory = guarded_make(size + 1);
  char *at = (char *)memory.end - size;
  memcpy(at, text, size);
  ist__program_names *names = ist__program_names_read(&env, at, size);
  assert_non_null(names);
  size_t n = 0;
  out[0] = '\0';
  for (int o = 0; o < 2; o++) {
    size_t many = o == 0 ? names->input_count : names->output_count;
    for (size_t i = 0; i < many && n + 70 < room; i++) {
      n += (size_t)snprintf(out + n, room - n, "%s%s",
                            i > 0    ? ","
                            : o == 0 ? ""
                                     : ">",
                            ist__program_names_at(names, o != 0, i));
    }
  }
  ist__free(&env, names);
  guarded_free(&memory);
  assert_int_equal(count.live, 0);
}

static void names__are_those_of_main(void **state) {
  (void)state;
  static const struct {
    const char *text, *names;
  } cases[] = {
      {"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {", "x"},
      {"func.func public @main(%arg0: tensor<2xf32>, %b.1: tensor<f32>) "
       "-> (tensor<f32> {jax.result_info = \"a.b\"}, tensor<f32>)",
       ",b.1>a.b,"},
      {"@main(%arg0: tensor<2x!quant<i8:f32, {1.0, 2.0}>> "
       "{mhlo.sharding = \"{devices=[2,1]<=[2]}\", jax.arg_info = \"w\"}, "
       "%7: (tensor<f32>) -> tensor<f32>) {",
       "w,"},
      {"// @main(%no: tensor<f32>)\nfunc.func @main(%yes: tensor<f32>)", "yes"},
      {"module attributes {a = \"@main(%no: i1)\"} {func.func @main()", ""},
      {"func.func @main( %a : i1 , %c:i1 )->(i1 {jax.result_info=\"r\"})",
       "a,c>r"},
      {"@main(%a: i1 {jax.arg_info = \"tab\there\"})", ""},
      {"@main(%a: i1", ""},
      {"@main(%", ""},
      {"@main(\"", ""},
      {"@main(%a: i1 {jax.arg_info = \"open", ""},
      {"@main(%a: i1 {jax.arg_info = \"quo\\\"te\"})", "quo\\\"te"},
      {"\"a string without an end @main(%a: i1)", ""},
      {"ML\xefR\x0d@main(%a: i1)", ""},
      {"", ""},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    char got[400];
    join(cases[i].text, strlen(cases[i].text), got, sizeof got);
    assert_string_equal(got, cases[i].names);
    // Cut anywhere, nothing outside is read.
    for (size_t n = 0; n < strlen(cases[i].text); n++) {
      join(cases[i].text, n, got, sizeof got);
    }
  }
}

static void long_name__is_cut(void **state) {
  (void)state;
  char text[300] = "@main(%", got[400];
  memset(text + 7, 'n', 200);
  memcpy(text + 207, ": i1)", 6);
  join(text, strlen(text), got, sizeof got);
  assert_int_equal(strlen(got), IST_MAX_NAME - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names__are_those_of_main),
      cmocka_unit_test(long_name__is_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
