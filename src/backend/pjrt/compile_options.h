// SPDX-License-Identifier: Apache-2.0
// compile_options.h: the bytes of XLA's CompileOptionsProto, as many of its
// fields as isthmus sets. Plugins abort on options without counts, so there is
// no way to hand over bytes of one's own.

#ifndef ISTHMUS_BACKEND_PJRT_COMPILE_OPTIONS_H_
#define ISTHMUS_BACKEND_PJRT_COMPILE_OPTIONS_H_

#include "base/env.h"

// Both counts are 1 or more. ids are replicas * partitions of the plugin's own
// numbers of devices, partition by partition of the first replica, then of the
// next; portable: none, and both counts 1.
typedef struct ist__compile_options {
  int32_t replicas;
  int32_t partitions;
  const int64_t *ids;
  bool portable;
} ist__compile_options;

// Writes them, to be freed. NULL without memory.
char *ist__compile_options_write(const ist__env *env,
                                 const ist__compile_options *options,
                                 size_t *out_size);

#endif  // ISTHMUS_BACKEND_PJRT_COMPILE_OPTIONS_H_
