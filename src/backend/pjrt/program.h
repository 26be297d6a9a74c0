// SPDX-License-Identifier: Apache-2.0
// program.h: the slots of a backend that compile and run StableHLO programs,
// for a PJRT client. Running on tensors lives in bridge.

#ifndef ISTHMUS_BACKEND_PJRT_PROGRAM_H_
#define ISTHMUS_BACKEND_PJRT_PROGRAM_H_

#include "backend/pjrt/client.h"

// The slots of the same names; self is an ist__pjrt_client. A program whose
// argument types cannot be learned is refused when it is compiled, since a
// plugin compares sizes in bytes only when it runs.
ist_code ist__pjrt_compile(void *self, const ist_source *source, void **out,
                           ist_error *err);
void ist__pjrt_release_program(void *self, void *program);
ist_code ist__pjrt_describe_program(void *self, void *program,
                                    ist_program_facts *out, ist_error *err);
ist_code ist__pjrt_describe_input(void *self, void *program, size_t index,
                                  ist_spec *out, ist_error *err);
ist_code ist__pjrt_describe_output(void *self, void *program, size_t index,
                                   ist_spec *out, ist_error *err);
ist_code ist__pjrt_execute(void *self, const ist_execution *execution,
                           ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_PROGRAM_H_
