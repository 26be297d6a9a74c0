// SPDX-License-Identifier: Apache-2.0
// surroundings.h: a name for the variables of the environment, which runtimes
// read flags from.

#ifndef ISTHMUS_BASE_SURROUNDINGS_H_
#define ISTHMUS_BASE_SURROUNDINGS_H_

#include "base/digest.h"

// Digests all variables, in whatever order they are, but those that are known
// to say nothing to a runtime: of the shell, the terminal and isthmus itself.
// What is left out wrongly gives wrong programs, so that the unknown is in.
void ist__surroundings_digest(char out[static IST_DIGEST_TEXT]);

#endif  // ISTHMUS_BASE_SURROUNDINGS_H_
