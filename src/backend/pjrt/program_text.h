// SPDX-License-Identifier: Apache-2.0
// program_text.h: what can be read off a StableHLO program before a plugin
// sees it. Not a parser: it knows a few words.

#ifndef ISTHMUS_BACKEND_PJRT_PROGRAM_TEXT_H_
#define ISTHMUS_BACKEND_PJRT_PROGRAM_TEXT_H_

#include <stddef.h>
#include <stdint.h>

// The largest number that a program's text gives to mhlo.num_replicas or
// mhlo.num_partitions; 1 when it gives none, as bytecode never does.
uint64_t ist__program_text_copies(const void *code, size_t size);

// The name of an operation in text or bytecode that has a meaning only among
// several replicas or partitions, or NULL. Compiled for one device, plugins
// run it without a word and give its own input.
const char *ist__program_text_collective(const void *code, size_t size);

#endif  // ISTHMUS_BACKEND_PJRT_PROGRAM_TEXT_H_
