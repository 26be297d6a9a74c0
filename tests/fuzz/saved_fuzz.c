// SPDX-License-Identifier: Apache-2.0
// saved_fuzz.c: any bytes as a saved program are refused with a reason, or what
// they say lies inside of them and comes out again when it is written. The
// digest is set right first, or no input would get past it.

#include "io/saved_program.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/digest.h"
#include "fuzz/fuzz_input.h"

enum {
  DIGEST_AT = 24,
  HEAD_AT = 56
};

static void set_digest(uint8_t *bytes, size_t size) {
  ist__digest digest;
  ist__digest_begin(&digest);
  ist__digest_add(&digest, bytes, DIGEST_AT);
  ist__digest_add(&digest, bytes + HEAD_AT, size - HEAD_AT);
  ist__digest_end(&digest, bytes + DIGEST_AT);
}

static void check_inside(ist__saved_span span, const uint8_t *data,
                         size_t size) {
  const uint8_t *at = (const uint8_t *)span.at;
  require(span.size == 0 ||
          (at >= data && span.size <= (size_t)(data + size - at)));
}

// Written again, it reads the same.
static void check_round(const ist__saved *saved) {
  ist__env env;
  ist__env_init(&env, NULL);
  size_t count = saved->input_count + saved->output_count, size = 0;
  char **names = calloc(count + 1, sizeof *names);
  require(names != NULL);
  ist__saved_span rest = saved->names;
  for (size_t i = 0; i < count; i++) {
    ist__saved_span name = ist__saved_next_name(&rest);
    names[i] = calloc(name.size + 1, 1);
    require(names[i] != NULL);
    memcpy(names[i], name.at, name.size);
  }
  char *bytes =
      ist__saved_write(&env, saved, (const char *const *)names, &size);
  require(bytes != NULL);
  ist__saved again;
  require(ist__saved_read(bytes, size, &again) == NULL);
  require(again.replicas == saved->replicas &&
          again.portable == saved->portable &&
          again.input_count == saved->input_count &&
          again.code.size == saved->code.size);
  for (size_t i = 0; i < count; i++) free(names[i]);
  free(names);
  ist__free(&env, bytes);
}

static void check(const uint8_t *data, size_t size) {
  ist__saved saved;
  const char *why = ist__saved_read(data, size, &saved);
  require((why == NULL) == (saved.code.size != 0));
  if (why != NULL) return;
  require(ist__saved_is(data, size));
  require(saved.replicas >= 1 && saved.partitions >= 1);
  for (size_t i = 0; i < IST__SAVED_TEXTS; i++) {
    check_inside(saved.text[i], data, size);
  }
  check_inside(saved.names, data, size);
  check_inside(saved.code, data, size);
  check_round(&saved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  check(data, size);
  if (size < HEAD_AT) return 0;
  uint8_t *copy = malloc(size);
  require(copy != NULL);
  memcpy(copy, data, size);
  set_digest(copy, size);
  check(copy, size);
  free(copy);
  return 0;
}
