// SPDX-License-Identifier: Apache-2.0
// signature.h: what a compiled program takes and gives. No slot tells the
// types of parameters, so they are read from the optimized program.

#ifndef ISTHMUS_BACKEND_PJRT_SIGNATURE_H_
#define ISTHMUS_BACKEND_PJRT_SIGNATURE_H_

#include "backend/pjrt/client.h"
#include "backend/pjrt/told_layout.h"
#include "tensor/dtype.h"

// What is compared on each run, so that a spec need not be read.
typedef struct ist__pjrt_argument {
  const ist__dtype *dtype;
  bool row_major;
  bool dynamic;  // an output whose extents are known when it is there
  // On the device; the spec has row-major strides where it is not dense.
  ist__told_layout layout;
} ist__pjrt_argument;

typedef struct ist__pjrt_signature {
  size_t input_count;
  size_t output_count;
  ist__pjrt_argument *arguments;  // as specs, and behind them
  ist_spec specs[];               // of the inputs, then of the outputs
} ist__pjrt_signature;

// The executable behind a loaded one, to be ended. Gives *out.
// Fails: PLUGIN, PLUGIN_SLOT.
ist_code ist__pjrt_executable_of(const ist__pjrt_client *client,
                                 PJRT_LoadedExecutable *loaded,
                                 PJRT_Executable **out, ist_error *err);
void ist__pjrt_executable_end(const ist__pjrt_client *client,
                              PJRT_Executable *executable);

// Reads the signature of an executable. Gives *out, to be freed.
// Fails: NO_PROGRAMS (it cannot be learned), TUPLE, TARGET_DTYPE,
// DYNAMIC_SHAPE, SHAPE, OVERFLOW, TARGET_LAYOUT, PLUGIN, PLUGIN_SLOT,
// NO_ALLOCATION.
ist_code ist__pjrt_signature_read(const ist__pjrt_client *client,
                                  PJRT_LoadedExecutable *executable,
                                  ist__pjrt_signature **out, ist_error *err);

// The same from the bytes of an optimized program, which tell of that many
// outputs; of the client only its environment and its name are used.
// Gives *out, to be freed. Fails: as above, but for PLUGIN and PLUGIN_SLOT.
ist_code ist__pjrt_signature_parse(const ist__pjrt_client *client,
                                   const char *bytes, size_t size,
                                   size_t outputs, ist__pjrt_signature **out,
                                   ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_SIGNATURE_H_
