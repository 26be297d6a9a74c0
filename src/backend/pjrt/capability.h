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

// Capabilities whose trial killed the process that it was made in, which are
// not tried in this one: child.h. All zero: none.
typedef struct ist__pjrt_losses {
  uint64_t set;  // bit number: is it one
  char how[IST__CAPABILITY_COUNT][48];
} ist__pjrt_losses;

_Static_assert(IST__CAPABILITY_COUNT <= 64, "a set of them is 64 bits");

// Lends the row of a number of the enum above.
const ist__pjrt_capability_row *ist__pjrt_capability_row_at(int number);

// The number of the capability of a name, or -1.
int ist__pjrt_capability_find(const char *name);

// True when all parts of a capability are in the plugin's table or chain. It
// says nothing about whether they work.
bool ist__pjrt_capability_is_present(const ist__pjrt *pjrt, int number);

// The name of a type of extension, "PJRT_Layouts_Extension", or NULL.
const char *ist__pjrt_extension_name(int type);

#endif  // ISTHMUS_BACKEND_PJRT_CAPABILITY_H_
