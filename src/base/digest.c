// SPDX-License-Identifier: Apache-2.0
// digest.c: BLAKE2b, written from RFC 7693 and held to its test vectors.

#include "base/digest.h"

#include <stdbool.h>
#include <string.h>

static const uint64_t initial[8] = {
    UINT64_C(0x6a09e667f3bcc908), UINT64_C(0xbb67ae8584caa73b),
    UINT64_C(0x3c6ef372fe94f82b), UINT64_C(0xa54ff53a5f1d36f1),
    UINT64_C(0x510e527fade682d1), UINT64_C(0x9b05688c2b3e6c1f),
    UINT64_C(0x1f83d9abfb41bd6b), UINT64_C(0x5be0cd19137e2179)};

// RFC 7693, 2.7: the order of message words in each round; the eleventh and
// twelfth are the first and second again.
static const uint8_t sigma[12][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3}};

static uint64_t turn(uint64_t value, unsigned by) {
  return value >> by | value << (64 - by);
}

static uint64_t read_word(const unsigned char *at) {
  uint64_t word = 0;
  for (unsigned i = 0; i < 8; i++) word |= (uint64_t)at[i] << (8 * i);
  return word;
}

// RFC 7693, 3.1.
#define MIX(a, b, c, d, x, y)     \
  do {                            \
    v[a] = v[a] + v[b] + (x);     \
    v[d] = turn(v[d] ^ v[a], 32); \
    v[c] = v[c] + v[d];           \
    v[b] = turn(v[b] ^ v[c], 24); \
    v[a] = v[a] + v[b] + (y);     \
    v[d] = turn(v[d] ^ v[a], 16); \
    v[c] = v[c] + v[d];           \
    v[b] = turn(v[b] ^ v[c], 63); \
  } while (0)

// RFC 7693, 3.2; no message here passes 2^64 bytes.
static void compress(ist__digest *d, const unsigned char *block, bool last) {
  uint64_t v[16], m[16];
  for (int i = 0; i < 16; i++) m[i] = read_word(block + 8 * i);
  for (int i = 0; i < 8; i++) {
    v[i] = d->state[i];
    v[i + 8] = initial[i];
  }
  v[12] ^= d->count;
  if (last) v[14] = ~v[14];
  for (int round = 0; round < 12; round++) {
    const uint8_t *s = sigma[round];
    MIX(0, 4, 8, 12, m[s[0]], m[s[1]]);
    MIX(1, 5, 9, 13, m[s[2]], m[s[3]]);
    MIX(2, 6, 10, 14, m[s[4]], m[s[5]]);
    MIX(3, 7, 11, 15, m[s[6]], m[s[7]]);
    MIX(0, 5, 10, 15, m[s[8]], m[s[9]]);
    MIX(1, 6, 11, 12, m[s[10]], m[s[11]]);
    MIX(2, 7, 8, 13, m[s[12]], m[s[13]]);
    MIX(3, 4, 9, 14, m[s[14]], m[s[15]]);
  }
  for (int i = 0; i < 8; i++) d->state[i] ^= v[i] ^ v[i + 8];
}

void ist__digest_begin(ist__digest *digest) {
  memset(digest, 0, sizeof *digest);
  memcpy(digest->state, initial, sizeof initial);
  // The parameter block: 32 bytes of result, no key, one leaf.
  digest->state[0] ^= UINT64_C(0x01010000) ^ IST_DIGEST_SIZE;
}

void ist__digest_add(ist__digest *digest, const void *bytes, size_t size) {
  const unsigned char *from = bytes;
  while (size > 0) {
    // The last block is kept back: it is compressed otherwise.
    if (digest->filled == sizeof digest->block) {
      digest->count += sizeof digest->block;
      compress(digest, digest->block, false);
      digest->filled = 0;
    }
    size_t room = sizeof digest->block - digest->filled;
    size_t part = size < room ? size : room;
    memcpy(digest->block + digest->filled, from, part);
    digest->filled += part;
    from += part;
    size -= part;
  }
}

void ist__digest_add_part(ist__digest *digest, const void *bytes, size_t size) {
  unsigned char length[8];
  for (unsigned i = 0; i < 8; i++) {
    length[i] = (unsigned char)((uint64_t)size >> (8 * i));
  }
  ist__digest_add(digest, length, sizeof length);
  ist__digest_add(digest, bytes, size);
}

void ist__digest_end(ist__digest *digest,
                     unsigned char out[static IST_DIGEST_SIZE]) {
  digest->count += digest->filled;
  memset(digest->block + digest->filled, 0,
         sizeof digest->block - digest->filled);
  compress(digest, digest->block, true);
  for (unsigned i = 0; i < IST_DIGEST_SIZE; i++) {
    out[i] = (unsigned char)(digest->state[i / 8] >> (8 * (i % 8)));
  }
}

void ist__digest_text(const unsigned char digest[static IST_DIGEST_SIZE],
                      char out[static IST_DIGEST_TEXT]) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < IST_DIGEST_SIZE; i++) {
    out[2 * i] = digits[digest[i] >> 4];
    out[2 * i + 1] = digits[digest[i] & 15];
  }
  out[IST_DIGEST_TEXT - 1] = '\0';
}
