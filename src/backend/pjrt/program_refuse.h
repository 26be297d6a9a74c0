// SPDX-License-Identifier: Apache-2.0
// program_refuse.h: why a program is not compiled: its text is for another
// number of devices than was asked for, or its version for another plugin.

#ifndef ISTHMUS_BACKEND_PJRT_PROGRAM_REFUSE_H_
#define ISTHMUS_BACKEND_PJRT_PROGRAM_REFUSE_H_

#include <isthmus/backend.h>

#include "backend/pjrt/plugin.h"

// Refuses a program whose text names other numbers of replicas and partitions
// than source does, or that has operations among several while source asks for
// one: plugins run it without a word and give wrong values. Fails: ARGUMENT.
ist_code ist__pjrt_refuse_copies(const ist__pjrt *pjrt,
                                 const ist_source *source, ist_error *err);

// Says why the plugin did not compile a program, from what it said.
// Fails: PROGRAM_VERSION (bytecode of another version than it reads), else the
// cause's own code.
ist_code ist__pjrt_explain_compile(const ist__plugin *plugin,
                                   const ist_source *source,
                                   const ist_error *cause, ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_PROGRAM_REFUSE_H_
