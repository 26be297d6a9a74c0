// SPDX-License-Identifier: Apache-2.0
// attributes.h: the named values that a plugin tells of itself, read as what
// they are: bytes of somebody else's.

#ifndef ISTHMUS_BACKEND_PJRT_ATTRIBUTES_H_
#define ISTHMUS_BACKEND_PJRT_ATTRIBUTES_H_

#include "backend/pjrt/call.h"

// One attribute; what option points to is in the struct.
typedef struct ist__pjrt_attribute {
  ist_option option;
  char name[64];
  char text[256];
  int64_t list[16];
} ist__pjrt_attribute;

typedef struct ist__pjrt_attributes {
  size_t count;
  ist__pjrt_attribute *at;
} ist__pjrt_attributes;

// Reads them all; what is too long is cut. Gives out->at, freed by ist__free.
// Fails: PLUGIN, PLUGIN_SLOT, NO_ALLOCATION.
ist_code ist__pjrt_attributes_read(const ist__pjrt *pjrt,
                                   ist__pjrt_attributes *out, ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_ATTRIBUTES_H_
