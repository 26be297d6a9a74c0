// SPDX-License-Identifier: Apache-2.0
// poison.h: memory that nobody may touch, told to AddressSanitizer where the
// library is built with it; else nothing.

#ifndef ISTHMUS_BASE_POISON_H_
#define ISTHMUS_BASE_POISON_H_

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IST__POISONS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define IST__POISONS 1
#endif

#ifdef IST__POISONS
#include <sanitizer/asan_interface.h>
#define IST__POISON(from, size) ASAN_POISON_MEMORY_REGION(from, size)
#define IST__UNPOISON(from, size) ASAN_UNPOISON_MEMORY_REGION(from, size)
#else
#define IST__POISON(from, size) ((void)(from), (void)(size))
#define IST__UNPOISON(from, size) ((void)(from), (void)(size))
#endif

#endif  // ISTHMUS_BASE_POISON_H_
