// SPDX-License-Identifier: Apache-2.0
// catalog.c: the entry of each code. Its texts are catalog_text.def, which
// tools/catalog_to_c.py writes from catalog/isthmus/*.toml.

#include "base/error.h"
#include "base/structs.h"

// The enum of the header and the list of the .def are one list.
#define IST_CODE(name, number) \
  _Static_assert(IST_ERR_##name == number, "isthmus.h differs: " #name);
#include "base/catalog.def"
#undef IST_CODE

typedef struct text {
  ist_code code;
  const char *slug, *title, *meaning, *solution;
} text;

static const text texts[] = {
#define IST_TEXT(code, slug, title, meaning, solution) \
  {(ist_code)(code), slug, title, meaning, solution},
#include "base/catalog_text.def"
#undef IST_TEXT
};

static const ist_code codes[] = {
#define IST_CODE(name, number) IST_ERR_##name,
#include "base/catalog.def"
#undef IST_CODE
};

_Static_assert(sizeof texts / sizeof texts[0] == sizeof codes / sizeof codes[0],
               "catalog/ and catalog.def differ: run tools/catalog_to_c.py");

const char *ist_code_name(ist_code code) {
  switch (code) {
#define IST_CODE(name, number) \
  case IST_ERR_##name:         \
    return "IST_ERR_" #name;
#include "base/catalog.def"
#undef IST_CODE
    case IST_OK:
      return "IST_OK";
  }
  return NULL;
}

ist_code ist_catalog_code(size_t index) {
  return index < sizeof codes / sizeof codes[0] ? codes[index] : IST_OK;
}

ist_code ist_catalog_find(ist_code code, ist_entry *out, ist_error *err) {
  if (!ist__struct_ok(out)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "an entry could not be looked up: out is NULL or has "
                         "no struct_size; needs an ist_entry");
  }
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    const text *t = &texts[i];
    if (t->code != code) continue;
    ist_entry entry = {sizeof entry, code,       ist_code_name(code), t->slug,
                       t->title,     t->meaning, t->solution};
    ist__struct_write(out, &entry, sizeof entry);
    return IST_OK;
  }
  return ist_error_set(err, IST_ERR_ARGUMENT,
                       "an entry could not be looked up: %d is no code; needs "
                       "one of ist_code",
                       (int)code);
}
