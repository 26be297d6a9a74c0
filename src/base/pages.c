// SPDX-License-Identifier: Apache-2.0
// pages.c: pages from the system, or from the context's own allocator.

#define _DEFAULT_SOURCE  // MAP_ANONYMOUS, madvise

#include "base/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/checked.h"

// The part of a map from first to last (excluded), when there is any.
static void give_back(char *first, const char *last) {
  if (first < last) munmap(first, (size_t)(last - first));
}

static char *round_up(char *address, size_t alignment) {
  uintptr_t rest = (uintptr_t)address & (alignment - 1);
  return rest == 0 ? address : address + (alignment - rest);
}

// Maps more than is wanted, so that data can begin at a huge page, and gives
// the rest back at once.
static bool map(size_t size, ist__pages *out) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t head = page > IST__PAGES_HEAD ? page : IST__PAGES_HEAD;
  bool huge = size >= IST__PAGES_HUGE;
  size_t slack = huge ? IST__PAGES_HUGE : 0;
  uint64_t wanted;
  if (!ist__add_u64(size, head + slack + page, &wanted)) return false;
  if (wanted > PTRDIFF_MAX) return false;
  size_t length = (size_t)wanted / page * page;
  char *map = mmap(NULL, length, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return false;
  char *data = huge ? round_up(map + head, IST__PAGES_HUGE) : map + head;
  char *end = round_up(data + size, page);
  give_back(map, data - head);
  give_back(end, map + length);
#ifdef MADV_HUGEPAGE
  // Advice: a kernel without huge pages has small ones.
  if (huge) (void)madvise(data, size, MADV_HUGEPAGE);
#endif
  *out = (ist__pages){.data = data,
                      .base = data - head,
                      .length = (size_t)(end - (data - head)),
                      .zeroed = true};
  return true;
}

bool ist__pages_make(const ist__env *env, size_t size, ist__pages *out) {
  if (ist__alloc_is_system(env)) return map(size, out);
  uint64_t length;
  if (!ist__add_u64(size, IST__PAGES_HEAD, &length)) return false;
  if (length > SIZE_MAX) return false;
  char *base = ist__alloc(env, (size_t)length, IST__PAGES_HEAD);
  if (base == NULL) return false;
  *out = (ist__pages){
      .data = base + IST__PAGES_HEAD, .base = base, .length = (size_t)length};
  return true;
}

void ist__pages_free(const ist__env *env, const ist__pages *pages) {
  if (ist__alloc_is_system(env)) {
    (void)munmap(pages->base, pages->length);
  } else {
    ist__free(env, pages->base);
  }
}
