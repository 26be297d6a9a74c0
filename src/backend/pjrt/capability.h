// SPDX-License-Identifier: Apache-2.0
// capability.h: the list of what isthmus can get out of a plugin, and what a
// probe found of each. Not for trying: that is probe.h.

#ifndef ISTHMUS_BACKEND_PJRT_CAPABILITY_H_
#define ISTHMUS_BACKEND_PJRT_CAPABILITY_H_

#include "backend/pjrt/call.h"

enum ist__pjrt_capability_number {
#define CAPABILITY(name, scope, parts, lost) IST__CAPABILITY_##name,
#include "backend/pjrt/capability.def"
#undef CAPABILITY
  IST__CAPABILITY_COUNT
};

// A row of capability.def.
typedef struct ist__pjrt_capability_row {
  const char *name;
  const char *parts;  // names of slots, or of an extension, parted by ", "
  const char *lost_without;
  bool of_client;  // the same for every memory
  int extension;   // its type; -1: none
  int slots[2];    // -1: none
} ist__pjrt_capability_row;

// What trying one capability came to. All zero: not tried.
typedef struct ist__pjrt_finding {
  bool tried;
  bool works;
  uint64_t value;
  char reason[208];  // why it does not work
} ist__pjrt_finding;

// What was found of one memory, one finding for each capability.
typedef struct ist__pjrt_findings {
  struct ist__pjrt_findings *next;  // of the same client
  ist__pjrt_finding of[IST__CAPABILITY_COUNT];
} ist__pjrt_findings;

// Lends the row of a number of the enum above.
const ist__pjrt_capability_row *ist__pjrt_capability_row_at(int number);

// True when all parts of a capability are in the plugin's table or chain. It
// says nothing about whether they work.
bool ist__pjrt_capability_is_present(const ist__pjrt *pjrt, int number);

// The name of a type of extension, "PJRT_Layouts_Extension", or NULL.
const char *ist__pjrt_extension_name(int type);

#endif  // ISTHMUS_BACKEND_PJRT_CAPABILITY_H_
