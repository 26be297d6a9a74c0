// SPDX-License-Identifier: Apache-2.0
// outputs.h: outputs are NULL or zero until a function has succeeded.

#ifndef ISTHMUS_BRIDGE_OUTPUTS_H_
#define ISTHMUS_BRIDGE_OUTPUTS_H_

#include "base/structs.h"

// Clears an output pointer and a receipt; either may be NULL.
static inline void ist__outputs_clear(void **out, ist_receipt *receipt) {
  if (out != NULL) *out = NULL;
  if (receipt != NULL) {
    ist_receipt none = {.struct_size = sizeof none};
    ist__struct_write(receipt, &none, sizeof none);
  }
}

#endif  // ISTHMUS_BRIDGE_OUTPUTS_H_
