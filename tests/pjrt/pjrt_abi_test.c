// SPDX-License-Identifier: Apache-2.0
// Our declarations of the PJRT ABI against a table of facts (data/*.csv).
// The Python twin, test_pjrt_abi.py, holds that table against another binding.

#include "backend/pjrt/abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct field_fact {
  const char *structure;
  const char *field;
  size_t struct_size, size_of, offset, size;
} field_fact;

#define MAX_FACTS 2048

typedef struct facts {
  field_fact fact[MAX_FACTS];
  size_t count;
} facts;

static void add(facts *all, field_fact fact) {
  assert_true(all->count < MAX_FACTS);
  all->fact[all->count++] = fact;
}

// What this compiler makes of structs.def.
static void declared(facts *all) {
#define S(name)               \
  {                           \
    typedef name struct_type; \
    const char *text = #name; \
    size_t full = name##_SIZE;
#define H                \
  F(size_t, struct_size) \
  F(PJRT_Extension_Base *, extension_start)
#define F(type, field)                                           \
  add(all, (field_fact){text, #field, full, sizeof(struct_type), \
                        offsetof(struct_type, field),            \
                        sizeof(((struct_type *)0)->field)});
#define U
#define V
#define E(name, last) }
#include "backend/pjrt/structs.def"
#undef S
#undef H
#undef F
#undef U
#undef V
#undef E
}

static FILE *open_data(const char *name) {
  const char *source = getenv("ISTHMUS_SOURCE");
  char path[1024];
  assert_non_null(source);
  snprintf(path, sizeof path, "%s/tests/pjrt/data/%s", source, name);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  char header[256];
  assert_non_null(fgets(header, sizeof header, file));
  return file;
}

static const field_fact *find(const facts *all, const char *structure,
                              const char *field) {
  for (size_t i = 0; i < all->count; i++)
    if (strcmp(all->fact[i].structure, structure) == 0 &&
        (field == NULL || strcmp(all->fact[i].field, field) == 0))
      return &all->fact[i];
  return NULL;
}

static void structs__equal_the_table_field_for_field(void **state) {
  (void)state;
  facts *all = calloc(1, sizeof *all);
  assert_non_null(all);
  declared(all);
  FILE *file = open_data("pjrt_structs.csv");
  char structure[128], field[128];
  field_fact want;
  size_t seen = 0;
  while (fscanf(file, "%127[^,],%zu,%zu,%127[^,],%zu,%zu\n", structure,
                &want.struct_size, &want.size_of, field, &want.offset,
                &want.size) == 6) {
    if (find(all, structure, NULL) == NULL) continue;  // one we don't use
    const field_fact *got = find(all, structure, field);
    if (got == NULL) fail_msg("%s has no field %s", structure, field);
    if (got->offset != want.offset || got->size != want.size ||
        got->struct_size != want.struct_size || got->size_of != want.size_of)
      fail_msg("%s.%s: offset %zu, size %zu, struct_size %zu, sizeof %zu",
               structure, field, got->offset, got->size, got->struct_size,
               got->size_of);
    seen++;
  }
  assert_true(feof(file));
  fclose(file);
  // Each field we declare was met once: the table has no fewer than we have.
  assert_int_equal(seen, all->count);
  free(all);
}

static void slots__are_in_the_order_of_the_table(void **state) {
  (void)state;
  static const struct {
    const char *name;
    size_t minor;
  } ours[IST_SLOT_COUNT] = {
#define SLOT(name, minor) {"PJRT_" #name, minor},
#include "backend/pjrt/slots.def"
#undef SLOT
  };
  FILE *file = open_data("pjrt_slots.csv");
  size_t index, offset, minor, seen = 0;
  char name[128];
  while (fscanf(file, "%zu,%zu,%127[^,],%zu\n", &index, &offset, name,
                &minor) == 4) {
    assert_int_equal(index, seen);
    assert_true(index < IST_SLOT_COUNT);
    assert_string_equal(ours[index].name, name);
    assert_int_equal(ours[index].minor, minor);
    assert_int_equal(offset,
                     offsetof(PJRT_Api, slot) + index * sizeof(ist_pjrt_fn));
    seen++;
  }
  assert_true(feof(file));
  fclose(file);
  assert_int_equal(seen, IST_SLOT_COUNT);
}

static const struct {
  const char *name;
  int value;
} our_enums[] = {
#define V(name) {#name, name}
    V(PJRT_Error_Code_OK),
    V(PJRT_Error_Code_CANCELLED),
    V(PJRT_Error_Code_UNKNOWN),
    V(PJRT_Error_Code_INVALID_ARGUMENT),
    V(PJRT_Error_Code_DEADLINE_EXCEEDED),
    V(PJRT_Error_Code_NOT_FOUND),
    V(PJRT_Error_Code_ALREADY_EXISTS),
    V(PJRT_Error_Code_PERMISSION_DENIED),
    V(PJRT_Error_Code_RESOURCE_EXHAUSTED),
    V(PJRT_Error_Code_FAILED_PRECONDITION),
    V(PJRT_Error_Code_ABORTED),
    V(PJRT_Error_Code_OUT_OF_RANGE),
    V(PJRT_Error_Code_UNIMPLEMENTED),
    V(PJRT_Error_Code_INTERNAL),
    V(PJRT_Error_Code_UNAVAILABLE),
    V(PJRT_Error_Code_DATA_LOSS),
    V(PJRT_Error_Code_UNAUTHENTICATED),
    V(PJRT_Extension_Type_Stream),
    V(PJRT_Extension_Type_Layouts),
    V(PJRT_Extension_Type_RawBuffer),
    V(PJRT_NamedValue_kString),
    V(PJRT_NamedValue_kInt64),
    V(PJRT_NamedValue_kInt64List),
    V(PJRT_NamedValue_kFloat),
    V(PJRT_NamedValue_kBool),
    V(PJRT_HostBufferSemantics_kImmutableOnlyDuringCall),
    V(PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes),
    V(PJRT_HostBufferSemantics_kImmutableZeroCopy),
    V(PJRT_HostBufferSemantics_kMutableZeroCopy),
    V(PJRT_Buffer_MemoryLayout_Type_Tiled),
    V(PJRT_Buffer_MemoryLayout_Type_Strides),
#undef V
};

static void enums__equal_the_table(void **state) {
  (void)state;
  FILE *file = open_data("pjrt_enums.csv");
  char family[128], name[128];
  int value;
  size_t seen = 0;
  while (fscanf(file, "%127[^,],%127[^,],%d\n", family, name, &value) == 3)
    for (size_t i = 0; i < sizeof our_enums / sizeof our_enums[0]; i++)
      if (strcmp(our_enums[i].name, name) == 0) {
        assert_int_equal(our_enums[i].value, value);
        seen++;
      }
  assert_true(feof(file));
  fclose(file);
  assert_int_equal(seen, sizeof our_enums / sizeof our_enums[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(structs__equal_the_table_field_for_field),
      cmocka_unit_test(slots__are_in_the_order_of_the_table),
      cmocka_unit_test(enums__equal_the_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
