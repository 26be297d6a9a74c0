// SPDX-License-Identifier: Apache-2.0
// capability.c: the rows of capability.def, and what of them is there.

#include "backend/pjrt/capability.h"

#include <string.h>

enum {
  MEMORY = 0,
  CLIENT = 1
};

static const ist__pjrt_capability_row rows[] = {
#define SLOTS1(a) "PJRT_" #a, -1, {IST_SLOT_##a, -1}
#define SLOTS2(a, b)             \
  "PJRT_" #a ", PJRT_" #b, -1, { \
    IST_SLOT_##a, IST_SLOT_##b   \
  }
#define EXTENSION(type, name) #name, type, {-1, -1}
#define CAPABILITY(name, scope, parts, lost) ROW(name, scope, lost, parts)
#define ROW(name, scope, lost, ...) ROW_OF(name, scope, lost, __VA_ARGS__)
#define ROW_OF(name, scope, lost, text, type, ...) \
  {#name, text, lost, (scope) == CLIENT, type, __VA_ARGS__},
#include "backend/pjrt/capability.def"
#undef SLOTS1
#undef SLOTS2
#undef EXTENSION
#undef CAPABILITY
#undef ROW
#undef ROW_OF
};

// By type, from 0 on.
static const char *const extension_names[] = {
    "PJRT_Gpu_Custom_Call",
    "PJRT_Profiler_Extension",
    "PJRT_Custom_Partitioner_Extension",
    "PJRT_Stream_Extension",
    "PJRT_Layouts_Extension",
    "PJRT_FFI_Extension",
    "PJRT_MemoryDescriptions_Extension",
    "PJRT_Triton_Extension",
    "PJRT_RawBuffer_Extension",
    "PJRT_PhaseCompile_Extension",
    "PJRT_Example_Extension",
    "PJRT_Unknown_Extension",
    "PJRT_CrossHostTransfers_Extension",
    "PJRT_ExecutableMetadata_Extension",
    "PJRT_Callback_Extension",
    "PJRT_HostAllocator_Extension",
    "PJRT_TpuTopology_Extension",
    "PJRT_TpuExecutable_Extension",
    "PJRT_Megascale_Extension",
    "PJRT_Shardings_Extension",
    "PJRT_AbiVersion_Extension",
    "PJRT_Collectives_Extension",
    "PJRT_MultiSlice_Extension",
    "PJRT_HostMemoryAllocator_Extension",
    "PJRT_XlaTransform_Extension",
};

const ist__pjrt_capability_row *ist__pjrt_capability_row_at(int number) {
  return &rows[number];
}

int ist__pjrt_capability_find(const char *name) {
  for (int i = 0; i < IST__CAPABILITY_COUNT; i++) {
    if (strcmp(rows[i].name, name) == 0) return i;
  }
  return -1;
}

const char *ist__pjrt_extension_name(int type) {
  int count = (int)(sizeof extension_names / sizeof extension_names[0]);
  return type >= 0 && type < count ? extension_names[type] : NULL;
}

bool ist__pjrt_capability_is_present(const ist__pjrt *pjrt, int number) {
  const ist__pjrt_capability_row *row = &rows[number];
  if (row->extension >= 0) {
    return ist__pjrt_extension(pjrt, row->extension) != NULL;
  }
  for (int i = 0; i < 2; i++) {
    if (row->slots[i] >= 0 && !ist__pjrt_has(pjrt, row->slots[i])) return false;
  }
  return true;
}
