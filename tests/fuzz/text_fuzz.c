// SPDX-License-Identifier: Apache-2.0
// text_fuzz.c: any text as a place or as the name of a dtype is understood or
// refused in one line; a dtype that is understood, of whichever name, has one
// name of ours, which means the same.

#include <isthmus/isthmus.h>
#include <string.h>

#include "fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[4200];
  char name[64];
  DLDataType dtype, again;
  ist_error err;
  static const ist_place empty = {.struct_size = sizeof empty};
  ist_place place = empty;
  if (size >= sizeof text) size = sizeof text - 1;
  memcpy(text, data, size);
  text[size] = '\0';
  if (ist_place_parse(text, &place, &err) != IST_OK)
    require(strchr(err.message, '\n') == NULL);
  if (ist_dtype_parse(text, &dtype, &err) == IST_OK) {
    require(ist_dtype_name(dtype, name, sizeof name) == IST_OK);
    require(ist_dtype_parse(name, &again, NULL) == IST_OK);
    require(again.code == dtype.code && again.bits == dtype.bits &&
            again.lanes == dtype.lanes);
  } else {
    require(strchr(err.message, '\n') == NULL);
  }
  return 0;
}
