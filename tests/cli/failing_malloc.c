// SPDX-License-Identifier: Apache-2.0
// failing_malloc.c: preloaded into the command: makes the n-th allocation that
// the program itself asks for fail. FAIL_AT=n; a line "fault" goes to the file
// FAULT_LOG when it did. What libraries ask for is left alone: libc and plugins
// have their own manners.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static uintptr_t first, last;  // of the program's own code
static atomic_long count;
static long fail_at;

static int find_program(struct dl_phdr_info *info, size_t size, void *self) {
  (void)size;
  (void)self;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_LOAD || (p->p_flags & PF_X) == 0) continue;
    first = info->dlpi_addr + p->p_vaddr;
    last = first + p->p_memsz;
  }
  return 1;  // the program comes first
}

__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("FAIL_AT");
  fail_at = text == NULL ? 0 : strtol(text, NULL, 10);
  dl_iterate_phdr(find_program, NULL);
}

static int fails(const void *caller) {
  uintptr_t at = (uintptr_t)caller;
  if (at < first || at >= last) return 0;
  if (atomic_fetch_add(&count, 1) + 1 != fail_at) return 0;
  int fd = open(getenv("FAULT_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (write(fd, "fault\n", 6) < 0) abort();
  close(fd);
  errno = ENOMEM;
  return 1;
}

void *malloc(size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  return fails(__builtin_return_address(0)) ? NULL
                                            : __libc_memalign(alignment, size);
}
