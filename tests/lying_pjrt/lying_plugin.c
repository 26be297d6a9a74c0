// SPDX-License-Identifier: Apache-2.0
// The lying plugin's errors, texts and attributes, and which functions it has.

#define _DEFAULT_SOURCE  // MAP_ANONYMOUS
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lying.h"

const ist_pjrt_fn lying_impl[LYING_FUNCTION_COUNT] = {
#define HAVE(name) [IST_SLOT_##name] = lying_##name,
#define HAVE_EXTENSION(name) [LYING_##name] = lying_##name,
#include "have.def"
#undef HAVE
#undef HAVE_EXTENSION
};

void lying_violate(const char *what) {
  pthread_mutex_lock(&lying.lock);
  snprintf(lying.violation, sizeof lying.violation, "%s", what);
  pthread_mutex_unlock(&lying.lock);
  atomic_fetch_add(&lying.violations, 1);
}

PJRT_Error *lying_refuse(const char *what) {
  lying_violate(what);
  return lying_error(PJRT_Error_Code_INVALID_ARGUMENT, "lying plugin: %s",
                     what);
}

PJRT_Error *lying_error(int32_t code, const char *format, ...) {
  PJRT_Error *error = calloc(1, sizeof *error);
  if (error == NULL) abort();
  error->code = code;
  va_list list;
  va_start(list, format);
  vsnprintf(error->message, sizeof error->message, format, list);
  va_end(list);
  atomic_fetch_add(&lying.errors, 1);
  pthread_mutex_lock(&lying.lock);
  error->next = lying.living;
  lying.living = error;
  pthread_mutex_unlock(&lying.lock);
  return error;
}

bool lying_error_is_ours(const PJRT_Error *error) {
  pthread_mutex_lock(&lying.lock);
  const PJRT_Error *at = lying.living;
  while (at != NULL && at != error) at = at->next;
  pthread_mutex_unlock(&lying.lock);
  return at != NULL;
}

LYING_SLOT(Error_GetCode) {
  PJRT_Error_GetCode_Args *a = args;
  a->code = a->error->code;
  return NULL;
}

LYING_SLOT(Plugin_Initialize) {
  (void)args;
  return NULL;
}

// The text ends where the page does, and what follows faults. One page for the
// life of the process: it is written once for each text.
static const char *unterminated(const char *text, size_t size) {
  static char *pages;
  static size_t used;
  size_t page = (size_t)sysconf(_SC_PAGESIZE), most = 64;
  if (pages == NULL) {
    pages = mmap(NULL, 2 * most * page, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) abort();
    for (size_t i = 0; i < most; i++)
      mprotect(pages + (2 * i + 1) * page, page, PROT_NONE);
  }
  for (size_t i = 0; i < used; i++) {
    const char *known = pages + (2 * i + 1) * page - size;
    if (memcmp(known, text, size) == 0) return known;
  }
  if (used == most) abort();
  char *at = pages + (2 * used++ + 1) * page - size;
  memcpy(at, text, size);
  return at;
}

const char *lying_text(const char *text, size_t *size) {
  *size = strlen(text);
  if (LYING_IS(strings, "lines")) {
    *size = strlen("first\nsecond\x1b[31m\n");
    return "first\nsecond\x1b[31m\n";
  }
  if (LYING_IS(strings, "null")) return NULL;
  bool huge = LYING_IS(strings, "huge");
  if (!huge && !LYING_IS(strings, "unterminated")) return text;
  pthread_mutex_lock(&lying.lock);
  const char *at = unterminated(text, *size + (huge ? 1 : 0));
  pthread_mutex_unlock(&lying.lock);
  if (huge) *size = SIZE_MAX / 2;
  return at;
}

static PJRT_NamedValue named(const char *name, int32_t type) {
  PJRT_NamedValue value = {.struct_size = PJRT_NamedValue_SIZE};
  value.name = lying_text(name, &value.name_size);
  value.type = type;
  value.value_size = 1;
  return value;
}

static void write_attributes(PJRT_NamedValue values[4]) {
  static const int64_t version[3] = {1, 2, 3};
  values[0] = named("stablehlo_current_version", PJRT_NamedValue_kInt64List);
  values[1] = named("stablehlo_minimum_version", PJRT_NamedValue_kInt64List);
  for (int i = 0; i < 2; i++) {
    values[i].int64_array_value = version;
    values[i].value_size = 3;
  }
  values[2] = named("xla_version", PJRT_NamedValue_kInt64);
  values[2].int64_value = 7;
  values[3] = named("lies", PJRT_NamedValue_kString);
  values[3].string_value = lying_text("many of them", &values[3].value_size);
}

LYING_SLOT(Plugin_Attributes) {
  static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
  static PJRT_NamedValue values[4];
  PJRT_Plugin_Attributes_Args *a = args;
  pthread_mutex_lock(&writing);
  PJRT_NamedValue now[4];
  write_attributes(now);
  if (memcmp(now, values, sizeof now) != 0) memcpy(values, now, sizeof now);
  pthread_mutex_unlock(&writing);
  a->attributes = values;
  a->num_attributes = 4;
  return NULL;
}
