// SPDX-License-Identifier: Apache-2.0
// digest.h: BLAKE2b (RFC 7693) with 32 bytes of result and no key: names for
// contents, which nobody can make two contents have. Not for secrets.

#ifndef ISTHMUS_BASE_DIGEST_H_
#define ISTHMUS_BASE_DIGEST_H_

#include <stddef.h>
#include <stdint.h>

enum {
  IST_DIGEST_SIZE = 32,
  IST_DIGEST_TEXT = 65  // in hexadecimal, with the NUL
};

typedef struct ist__digest {
  uint64_t state[8];
  uint64_t count;  // bytes taken so far
  unsigned char block[128];
  size_t filled;
} ist__digest;

void ist__digest_begin(ist__digest *digest);
void ist__digest_add(ist__digest *digest, const void *bytes, size_t size);
// A length, then the bytes: so that parts cannot be taken for one another.
void ist__digest_add_part(ist__digest *digest, const void *bytes, size_t size);
void ist__digest_end(ist__digest *digest,
                     unsigned char out[static IST_DIGEST_SIZE]);

// Writes a digest in hexadecimal.
void ist__digest_text(const unsigned char digest[static IST_DIGEST_SIZE],
                      char out[static IST_DIGEST_TEXT]);

#endif  // ISTHMUS_BASE_DIGEST_H_
