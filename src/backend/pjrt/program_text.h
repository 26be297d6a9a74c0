// SPDX-License-Identifier: Apache-2.0
// program_text.h: what can be read off a StableHLO program before a plugin
// sees it. Not a parser: it knows a few words.

#ifndef ISTHMUS_BACKEND_PJRT_PROGRAM_TEXT_H_
#define ISTHMUS_BACKEND_PJRT_PROGRAM_TEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// True for the bytes of MLIR's bytecode.
bool ist__program_text_is_bytecode(const void *code, size_t size);

// The largest number that a program's text gives to an attribute such as
// mhlo.num_replicas; 0 when it gives none, as bytecode never does.
uint64_t ist__program_text_number(const char *key, const void *code,
                                  size_t size);

// Writes the StableHLO version that bytecode says it is of, "1.13.3"; false for
// text, and for bytecode that does not say it.
bool ist__program_text_version(const void *code, size_t size, char *out,
                               size_t out_size);

// The name of an operation in text or bytecode that has a meaning only among
// several replicas or partitions, or NULL. Compiled for one device, plugins
// run it without a word and give its own input.
const char *ist__program_text_collective(const void *code, size_t size);

#endif  // ISTHMUS_BACKEND_PJRT_PROGRAM_TEXT_H_
