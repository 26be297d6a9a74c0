// SPDX-License-Identifier: Apache-2.0
// command_memory.c: what a device's plugin tells of its memory, for doctor and
// probe. Nothing is said where it keeps no statistics.

#include <inttypes.h>
#include <isthmus/pjrt.h>

#include "command.h"

static const struct {
  const char *name;
  size_t offset;
  bool in_text;
} fields[] = {
#define FIELD(name, text) {#name, offsetof(ist_pjrt_memory_use, name), text}
    FIELD(bytes_in_use, true),
    FIELD(peak_bytes_in_use, true),
    FIELD(num_allocs, false),
    FIELD(largest_alloc_size, false),
    FIELD(bytes_limit, true),
    FIELD(bytes_reserved, false),
    FIELD(peak_bytes_reserved, false),
    FIELD(bytes_reservable_limit, false),
    FIELD(largest_free_block_bytes, true),
    FIELD(pool_bytes, false),
    FIELD(peak_pool_bytes, false),
    FIELD(peak_allocated_bytes, false),
#undef FIELD
};

static int64_t field(const ist_pjrt_memory_use *use, size_t index) {
  const char *at = (const char *)use + fields[index].offset;
  return *(const int64_t *)(const void *)at;
}

void ist__print_memory_use(FILE *file, ist__json *json,
                           const ist_device *device) {
  ist_pjrt_memory_use use = {.struct_size = sizeof use};
  if (ist_pjrt_memory_stats(device, &use, NULL) != IST_OK) return;
  if (json != NULL) {
    ist__json_open(json, "memory_stats", '{');
  } else {
    fputs("    statistics ", file);
  }
  const char *comma = "";
  // In a line of text what says how full the memory is; in JSON all of it.
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
    int64_t value = field(&use, i);
    if (value < 0 || (json == NULL && !fields[i].in_text)) continue;
    if (json != NULL) {
      ist__json_int(json, fields[i].name, value);
    } else {
      fprintf(file, "%s%s %" PRId64, comma, fields[i].name, value);
      comma = ", ";
    }
  }
  if (json != NULL) {
    ist__json_close(json, '}');
  } else {
    fputs(comma[0] != '\0' ? "\n" : "none are told\n", file);
  }
}
