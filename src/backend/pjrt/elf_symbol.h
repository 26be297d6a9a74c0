// SPDX-License-Identifier: Apache-2.0
// elf_symbol.h: whether a shared library exports a function, read from its file
// without loading it, so that none of its code runs.

#ifndef ISTHMUS_BACKEND_PJRT_ELF_SYMBOL_H_
#define ISTHMUS_BACKEND_PJRT_ELF_SYMBOL_H_

typedef enum ist__elf_answer {
  IST__ELF_NO = 0,
  IST__ELF_YES = 1,
  IST__ELF_UNKNOWN = 2  // no ELF file of 64 bits and this byte order, or broken
} ist__elf_answer;

// name is at most 31 bytes long.
ist__elf_answer ist__elf_exports(const char *path, const char *name);

#endif  // ISTHMUS_BACKEND_PJRT_ELF_SYMBOL_H_
