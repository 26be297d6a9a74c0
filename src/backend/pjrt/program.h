// SPDX-License-Identifier: Apache-2.0
// program.h: the slots of a backend that compile, save, load and run StableHLO
// programs, for a PJRT client. Running on tensors lives in bridge.

#ifndef ISTHMUS_BACKEND_PJRT_PROGRAM_H_
#define ISTHMUS_BACKEND_PJRT_PROGRAM_H_

#include "backend/pjrt/pjrt_tensor.h"
#include "backend/pjrt/program_names.h"
#include "backend/pjrt/signature.h"

typedef struct ist__pjrt_program {
  PJRT_LoadedExecutable *executable;
  ist__pjrt_signature *signature;
  ist__program_names *names;  // NULL: it was loaded, and has no text
  bool portable;
  size_t device_count;  // lists of arguments in one run
  // The memory of each output once a run has shown it, and that the output is
  // what the signature tells: then neither is asked of the plugin again.
  _Atomic(const ist__pjrt_memory *) *seen;
  size_t *lists;     // the device list number i of the caller's is for
  size_t devices[];  // in the order of the plugin's lists; none if portable
} ist__pjrt_program;

// The slots of the same names; self is an ist__pjrt_client. A program whose
// argument types cannot be learned is refused when it is compiled, since a
// plugin compares sizes in bytes only when it runs.
ist_code ist__pjrt_compile(void *self, const ist_source *source, void **out,
                           ist_error *err);
ist_code ist__pjrt_load(void *self, const ist_source *source, void **out,
                        ist_error *err);
ist_code ist__pjrt_serialize(void *self, void *program, void **out,
                             size_t *out_size, ist_error *err);
void ist__pjrt_release_program(void *self, void *program);
ist_code ist__pjrt_describe_program(void *self, void *program,
                                    ist_program_facts *out, ist_error *err);
ist_code ist__pjrt_describe_input(void *self, void *program, size_t index,
                                  ist_spec *out, ist_error *err);
ist_code ist__pjrt_describe_output(void *self, void *program, size_t index,
                                   ist_spec *out, ist_error *err);
const char *ist__pjrt_argument_name(void *self, void *program, bool is_input,
                                    size_t index);
ist_code ist__pjrt_execute(void *self, const ist_execution *execution,
                           ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_PROGRAM_H_
