// SPDX-License-Identifier: Apache-2.0
// program_fuzz.c: any bytes as a StableHLO program, in text or bytecode, are
// looked at for how many devices they want without a byte read outside; and
// options of any kind are refused in one line or can be handed to a plugin.

#include <string.h>

#include "backend/pjrt/plugin.h"
#include "backend/pjrt/program_names.h"
#include "backend/pjrt/program_text.h"
#include "base/env.h"
#include "fuzz/fuzz_input.h"

static bool occurs(const char *word, const uint8_t *data, size_t size) {
  size_t length = strlen(word);
  for (size_t i = 0; i + length <= size; i++) {
    if (memcmp(data + i, word, length) == 0) return true;
  }
  return false;
}

typedef struct names_seen {
  size_t count;
  const uint8_t *data;
  size_t size;
  bool outputs;
} names_seen;

// Names lie in the text, and inputs come before outputs.
static void see_name(void *self, bool is_output, const char *name,
                     size_t size) {
  names_seen *seen = self;
  seen->count++;
  require(is_output || !seen->outputs);
  seen->outputs = is_output;
  const uint8_t *at = (const uint8_t *)name;
  require(size == 0 || (at >= seen->data && at < seen->data + seen->size &&
                        size <= (size_t)(seen->data + seen->size - at)));
}

static void check_text(const uint8_t *data, size_t size) {
  static const char *const keys[] = {"mhlo.num_replicas",
                                     "mhlo.num_partitions"};
  for (size_t i = 0; i < 2; i++) {
    if (ist__program_text_number(keys[i], data, size) > 0) {
      require(occurs(keys[i], data, size));
    }
  }
  char version[24];
  if (ist__program_text_version(data, size, version, sizeof version)) {
    require(occurs(version, data, size));
  }
  names_seen seen = {0, data, size, false};
  ist__program_names_visit((const char *)data, size, see_name, &seen);
  const char *found = ist__program_text_collective(data, size);
  require(found == NULL || occurs(found, data, size));
}

// An option of the bytes: kind, then a name that is known or not, then a value.
static void check_option(fuzz_input *in) {
  char name[40] = "cpu_device_count", string[40];
  int64_t list[4];
  ist_option option = {.kind = (ist_option_kind)((int)fuzz_take(in, 1) - 2)};
  uint64_t shape = fuzz_take(in, 1);
  option.int64 = (int64_t)fuzz_take(in, 8);
  for (size_t i = 0; i < 4; i++) list[i] = (int64_t)fuzz_take(in, 2);
  if ((shape & 1) != 0) {
    for (size_t i = 0; i + 1 < sizeof name; i++) {
      name[i] = (char)fuzz_take(in, 1);
    }
  }
  for (size_t i = 0; i < sizeof string; i++) string[i] = (char)fuzz_take(in, 1);
  string[sizeof string - 1] = '\0';
  option.name = (shape & 2) != 0 ? NULL : name;
  option.string = (shape & 4) != 0 ? NULL : string;
  option.list = (shape & 8) != 0 ? NULL : list;
  option.list_size = (size_t)(shape >> 4);
  option.number = (double)option.int64;
  ist__env env;
  ist__env_init(&env, NULL);
  ist__pjrt pjrt = {.env = &env, .name = "pjrt:fuzz"};
  ist_error err = {0};
  ist_code code = ist__plugin_check_option(&pjrt, &option, &err);
  require(code == err.code && strchr(err.message, '\n') == NULL);
  if (code != IST_OK) return;
  require(option.name != NULL && option.kind >= IST_OPTION_STRING &&
          option.kind <= IST_OPTION_BOOL);
  if (strcmp(option.name, "cpu_device_count") == 0) {
    require(option.kind == IST_OPTION_INT64 && option.int64 >= 1);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input in = {data, size};
  if (size > 0 && data[0] == 0xFF) {
    fuzz_take(&in, 1);
    check_option(&in);
    return 0;
  }
  check_text(data, size);
  return 0;
}
