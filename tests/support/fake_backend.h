// SPDX-License-Identifier: Apache-2.0
// fake_backend.h: a backend that counts its buffers and misbehaves on demand.
// Its one program takes two float32[4] and gives their sum.

#ifndef ISTHMUS_TESTS_SUPPORT_FAKE_BACKEND_H_
#define ISTHMUS_TESTS_SUPPORT_FAKE_BACKEND_H_

#include <isthmus/backend.h>

typedef struct fake_backend {
  ist_backend_ops ops;
  ist_memory_info memory;
  ist_device_facts device;
  int buffers;   // live
  int programs;  // live
  int loans;     // live
  int closed;    // calls of close
  int lends;     // calls of lend
  // Lies: one is on at a time.
  bool gives_nothing;    // success, and a NULL result
  bool fails_but_gives;  // an error, and a result left in place
  bool tells_ndim;       // inspect tells 99 dimensions
  bool lends_nothing;    // a loan without an address
} fake_backend;

// addressable: lends and adopts memory of this process, else only copies.
void fake_backend_init(fake_backend *fake, bool addressable);

#endif  // ISTHMUS_TESTS_SUPPORT_FAKE_BACKEND_H_
