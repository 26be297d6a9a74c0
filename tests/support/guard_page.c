// SPDX-License-Identifier: Apache-2.0
// guard_page.c: mmap with a page of no access on either side.

#define _DEFAULT_SOURCE  // MAP_ANONYMOUS, mmap and mprotect under -std=c11

#include "support/guard_page.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

guarded guarded_make(size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t body = (size + page - 1) / page * page;
  if (body == 0) body = page;
  guarded memory = {.map_size = body + 2 * page, .size = size};
  memory.map = mmap(NULL, memory.map_size, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory.map == MAP_FAILED) abort();
  char *start = (char *)memory.map + page;
  if (mprotect(start, body, PROT_READ | PROT_WRITE) != 0) abort();
  memory.start = start;
  memory.end = start + body;
  return memory;
}

void guarded_free(guarded *memory) {
  munmap(memory->map, memory->map_size);
}
