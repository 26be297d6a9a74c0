// SPDX-License-Identifier: Apache-2.0
// An address that is not there is an answer and no crash, by either way of
// reading it.

#define _DEFAULT_SOURCE  // MAP_ANONYMOUS
#include "base/safe_read.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/testing.h"

typedef ist__safe_read_result (*reader)(const void *, void *, size_t);

static const reader readers[] = {ist__safe_read, ist__safe_read_by_pipe};

// Two pages, the second of which cannot be read.
static char *half_readable(size_t *out_page) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *both = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(both, MAP_FAILED);
  memset(both, 'x', page);
  assert_int_equal(mprotect(both + page, page, PROT_NONE), 0);
  *out_page = page;
  return both;
}

static void memory_that_is_there__is_copied(void **state) {
  (void)state;
  static const char text[] = "six integers and some more";
  for (size_t i = 0; i < COUNT_OF(readers); i++) {
    char got[sizeof text] = "";
    assert_int_equal(readers[i](text, got, sizeof text), IST__SAFE_READ_DONE);
    assert_string_equal(got, text);
  }
}

static void memory_that_is_not_there__is_told(void **state) {
  (void)state;
  size_t page = 0;
  char *both = half_readable(&page);
  char got[64];
  for (size_t i = 0; i < COUNT_OF(readers); i++) {
    assert_int_equal(readers[i](both + page, got, sizeof got),
                     IST__SAFE_READ_NOT_MAPPED);
    // It ends before all was read.
    assert_int_equal(readers[i](both + page - 8, got, sizeof got),
                     IST__SAFE_READ_NOT_MAPPED);
    assert_int_equal(readers[i](both + page - 8, got, 8), IST__SAFE_READ_DONE);
    assert_memory_equal(got, "xxxxxxxx", 8);
  }
  assert_int_equal(ist__safe_read(NULL, got, 8), IST__SAFE_READ_NOT_MAPPED);
  assert_int_equal(munmap(both, 2 * page), 0);
}

static void address_that_is_none__is_told(void **state) {
  (void)state;
  char got[8];
  const void *handle = (const void *)(uintptr_t)UINT64_C(0x5a00000000000040);
  assert_int_equal(ist__safe_read(handle, got, sizeof got),
                   IST__SAFE_READ_NOT_MAPPED);
}

static void more_than_a_pipe_takes__is_not_tried(void **state) {
  (void)state;
  char got[IST__SAFE_READ_MOST + 1] = "";
  assert_int_equal(ist__safe_read(got, got, sizeof got),
                   IST__SAFE_READ_NO_MEANS);
}

static void reading__leaves_no_descriptor(void **state) {
  (void)state;
  char got[8];
  int before = dup(0);
  assert_true(before >= 0);
  close(before);
  for (size_t i = 0; i < COUNT_OF(readers); i++) {
    readers[i]("a string", got, sizeof got);
    readers[i](NULL, got, sizeof got);
  }
  int after = dup(0);
  close(after);
  assert_int_equal(after, before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_that_is_there__is_copied),
      cmocka_unit_test(memory_that_is_not_there__is_told),
      cmocka_unit_test(address_that_is_none__is_told),
      cmocka_unit_test(more_than_a_pipe_takes__is_not_tried),
      cmocka_unit_test(reading__leaves_no_descriptor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
