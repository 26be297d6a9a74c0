// SPDX-License-Identifier: Apache-2.0
// The lines between the library and isthmus-probe: options come out as they
// went in, and an answer is read as bytes that anybody may have written.

#include "backend/pjrt/child_wire.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/testing.h"

static void options__come_out_as_they_went_in(void **state) {
  (void)state;
  static const int64_t list[3] = {INT64_MIN, 0, INT64_MAX};
  const ist_option sent[] = {
      {.name = "text", .kind = IST_OPTION_STRING, .string = "a\nb=c 1"},
      {.name = "", .kind = IST_OPTION_STRING, .string = ""},
      {.name = "number\n", .kind = IST_OPTION_INT64, .int64 = INT64_MIN},
      {.name = "list",
       .kind = IST_OPTION_INT64_LIST,
       .list = list,
       .list_size = 3},
      {.name = "none", .kind = IST_OPTION_INT64_LIST},
      {.name = "real", .kind = IST_OPTION_FLOAT, .number = 0.1},
      {.name = "yes", .kind = IST_OPTION_BOOL, .boolean = true},
      {.name = "no", .kind = IST_OPTION_BOOL},
  };
  char bytes[512];
  ist_option got[COUNT_OF(sent)];
  int64_t numbers[512];
  // A name is never empty: it was checked before.
  for (size_t skip = 1; skip <= 2; skip++) {
    const ist_option *from = skip == 1 ? sent + 2 : sent + 1;
    size_t count = COUNT_OF(sent) - (size_t)(from - sent);
    ist__text text = ist__text_make(bytes, sizeof bytes);
    ist__child_request(from, count, &text);
    assert_true(text.length < sizeof bytes);
    int read =
        ist__child_options(bytes, text.length, got, COUNT_OF(sent), numbers);
    assert_int_equal(read, skip == 1 ? (int)count : -1);
    for (int i = 0; i < read; i++) {
      assert_string_equal(got[i].name, from[i].name);
      assert_int_equal(got[i].kind, from[i].kind);
      assert_int_equal(got[i].int64, from[i].int64);
      assert_int_equal(got[i].boolean, from[i].boolean);
      assert_true(got[i].number == from[i].number);
      assert_int_equal(got[i].list_size, from[i].list_size);
      for (size_t k = 0; k < got[i].list_size; k++)
        assert_true(got[i].list[k] == from[i].list[k]);
    }
  }
  ist__text text = ist__text_make(bytes, sizeof bytes);
  ist__child_request(sent, 1, &text);
  assert_int_equal(ist__child_options(bytes, text.length, got, 1, numbers), 1);
  assert_string_equal(got[0].string, sent[0].string);
}

static void request_that_is_none__is_refused(void **state) {
  (void)state;
  static const char *const bad[] = {
      "x",
      "option 0 4 1\n",
      "option 9 1 1\nab\n",
      "option -1 1 1\nab\n",
      "option 0 1 1 ab\n",
      "option 0 1 2\nab\n",
      "option 0 99999999999999999999 1\nab\n",
      "option 0 18446744073709551615 1\nab\n",
      "option 1 1 1\nax\n",
      "option 1 1 0\na\n",
      "option 2 1 3\na1,x\n",
      "option 4 1 1\na7\n",
      "option 0 1 1\nab\noption 0 1 1\nab\n",
  };
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    char bytes[128];
    ist_option got[1];
    int64_t numbers[128];
    size_t size = strlen(bad[i]);
    memcpy(bytes, bad[i], size + 1);
    assert_int_equal(ist__child_options(bytes, size, got, 1, numbers), -1);
  }
}

static void task__comes_out_as_it_went_in(void **state) {
  (void)state;
  static const struct {
    int32_t device;
    uint64_t losses;
  } sent[] = {{-1, 0}, {0, 0}, {3, 0x5a}, {INT32_MAX, UINT64_MAX}};
  static const char *const bad[] = {"",
                                    "opened",
                                    "report",
                                    "report:0",
                                    "report:-1:0",
                                    "report:0:x",
                                    "report:0:0 ",
                                    "report: 0:0",
                                    "report:00:0",
                                    "report:99999999999999999999:0"};
  char text[IST__CHILD_TASK];
  int32_t device;
  uint64_t losses;
  for (size_t i = 0; i < COUNT_OF(sent); i++) {
    ist__child_task(sent[i].device, sent[i].losses, text);
    assert_true(ist__child_task_read(text, &device, &losses));
    assert_int_equal(device, sent[i].device);
    assert_true(losses == sent[i].losses);
  }
  for (size_t i = 0; i < COUNT_OF(bad); i++)
    if (ist__child_task_read(bad[i], &device, &losses)) fail_msg("%s", bad[i]);
}

// Reads a text in pieces of every size.
static ist__child_answer answer_of(const char *text, size_t piece) {
  ist__child_answer answer;
  memset(&answer, 0, sizeof answer);
  size_t size = strlen(text);
  for (size_t at = 0; at < size; at += piece) {
    size_t part = size - at < piece ? size - at : piece;
    if (ist__child_read(&answer, text + at, part)) break;
  }
  return answer;
}

static void answer__is_read_in_any_pieces(void **state) {
  (void)state;
  for (size_t piece = 1; piece < 80; piece += 6) {
    ist__child_answer a = answer_of(
        "isthmus-probe 2\nrefused 306 13 pjrt:x: it failed; needs more\n"
        "step PJRT_Client_Create\ntrial bitcast\nended signal 6\n"
        "ended exit 0\n",
        piece);
    assert_true(a.greeted && a.refused && !a.passed);
    assert_int_equal(a.err.code, IST_ERR_PLUGIN);
    assert_int_equal(a.err.native, 13);
    assert_string_equal(a.err.message, "pjrt:x: it failed; needs more");
    assert_string_equal(a.step, "PJRT_Client_Create");
    assert_string_equal(a.trial, "bitcast");
    assert_int_equal(a.end, IST__CHILD_SIGNAL);
    assert_int_equal(a.number, 6);
  }
}

static void answer_of_another__says_nothing(void **state) {
  (void)state;
  static const char *const others[] = {"passed\nended exit 0\n",
                                       "isthmus-probe 3\npassed\n", "", "\n\n"};
  for (size_t i = 0; i < COUNT_OF(others); i++) {
    ist__child_answer a = answer_of(others[i], 5);
    assert_false(a.greeted);
    assert_false(a.passed);
  }
}

static void garbage_in_an_answer__is_passed_over(void **state) {
  (void)state;
  static const char *const bad[] = {
      "refused",          "refused 306",    "refused x y z", "refused 5 0 no",
      "refused 0 0 fine", "refused 306 0 ", "ended",         "ended well 3",
      "ended exit",       "passed ",        " passed",       "step",
  };
  char text[4096] = "isthmus-probe 2\n";
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    strcat(text, bad[i]);
    strcat(text, "\n");
  }
  ist__child_answer a = answer_of(text, 7);
  assert_false(a.passed || a.refused);
  assert_int_equal(a.end, IST__CHILD_UNKNOWN);
  // A line without an end is no line, however long; the next one counts.
  size_t used = strlen(text);
  memset(text + used, 'x', 2 * IST__CHILD_LINE);
  strcpy(text + used + 2 * IST__CHILD_LINE, "passed\nended exit 0\n");
  a = answer_of(text, 100);
  assert_false(a.passed);
  strcpy(text + used + 2 * IST__CHILD_LINE, "\npassed\nended exit 0\n");
  a = answer_of(text, 100);
  assert_true(a.passed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options__come_out_as_they_went_in),
      cmocka_unit_test(request_that_is_none__is_refused),
      cmocka_unit_test(task__comes_out_as_it_went_in),
      cmocka_unit_test(answer__is_read_in_any_pieces),
      cmocka_unit_test(answer_of_another__says_nothing),
      cmocka_unit_test(garbage_in_an_answer__is_passed_over),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
