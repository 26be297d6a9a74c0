// SPDX-License-Identifier: Apache-2.0
// copy_avx2_bits.c: with AVX2, bytes turned round, and elements of 1, 2 and 4
// bits packed and unpacked, 32 target bytes at a time.

#if defined(__x86_64__)

#include "tensor/copy_avx2.h"

// ---- bytes turned round

FORCE_INLINE __m256i turn_order(int64_t item) {
  if (item == 2) {
    return _mm256_setr_epi8(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15,
                            14, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12,
                            15, 14);
  }
  if (item == 4) {
    return _mm256_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13,
                            12, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14,
                            13, 12);
  }
  return _mm256_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8,
                          7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
}

typedef void (*run_fn)(const ist__run *run);

FORCE_INLINE void turn(int64_t item, run_fn edge, const ist__run *run) {
  ist__run rest = *run;
  if (run->from_step == item && run->to_step == item) {
    const __m256i order = turn_order(item);
    const int64_t size = run->count * item / 32 * 32;
    const char *from = run->from;
    char *to = run->to;
    for (int64_t i = 0; i < size; i += 32) {
      store(to + i, _mm256_shuffle_epi8(load(from + i), order));
    }
    rest.from += size;
    rest.to += size;
    rest.count -= size / item;
  }
  edge(&rest);
}

FORCE_INLINE void swap(int64_t item, run_fn edge, const ist__run *run) {
  _Alignas(LINE) char buffer[CHUNK];
  if (!run->stream || run->to_step != item) {
    turn(item, edge, run);
    return;
  }
  int64_t count = (CHUNK - LINE + to_line(run->to)) / item;
  for (int64_t done = 0; done < run->count; done += count) {
    if (done > 0) count = CHUNK / item;
    ist__run part = *run;
    part.from += done * run->from_step;
    part.to = buffer;
    part.count = least(count, run->count - done);
    turn(item, edge, &part);
    write_past(run->to + done * item, buffer, part.count * item);
  }
  _mm_sfence();
}

void ist__avx2_swap_2(const ist__run *run) {
  swap(2, ist__baseline_swap_2, run);
}

void ist__avx2_swap_4(const ist__run *run) {
  swap(4, ist__baseline_swap_4, run);
}

void ist__avx2_swap_8(const ist__run *run) {
  swap(8, ist__baseline_swap_8, run);
}

// ---- one element a byte

// 32 elements of bits bits from 4 * bits bytes.
FORCE_INLINE __m256i spread(unsigned bits, const char *from) {
  if (bits == 4) {
    __m256i v = _mm256_cvtepu8_epi16(load_half(from));
    v = _mm256_or_si256(v, _mm256_slli_epi16(v, 4));
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
  }
  if (bits == 2) {
    __m256i v = _mm256_cvtepu8_epi32(
        _mm_loadl_epi64((const __m128i *)(const void *)from));
    v = _mm256_or_si256(v, _mm256_slli_epi32(v, 12));
    v = _mm256_or_si256(v, _mm256_slli_epi32(v, 6));
    return _mm256_and_si256(v, _mm256_set1_epi8(3));
  }
  int32_t word;
  memcpy(&word, from, sizeof word);
  const __m256i each =
      _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2,
                       2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201ULL);
  __m256i v = _mm256_shuffle_epi8(_mm256_set1_epi32(word), each);
  v = _mm256_cmpeq_epi8(_mm256_and_si256(v, bit), bit);
  return _mm256_and_si256(v, _mm256_set1_epi8(1));
}

FORCE_INLINE void unpack(unsigned bits, const ist__bits *b) {
  const uint64_t whole = b->count / 32 * 32;
  const char *from = (const char *)b->from;
  char *to = (char *)b->to;
  for (uint64_t i = 0; i < whole; i += 32) {
    store(to + i, spread(bits, from + i / 8 * bits));
  }
  ist__bits rest = {b->from + whole / 8 * bits, b->to + whole, b->count - whole,
                    bits, false};
  ist__baseline_unpack(&rest);
}

// ---- packed

// 32 bytes from 256 / bits elements.
FORCE_INLINE __m256i gather_4(const char *from) {
  const __m256i mask = _mm256_set1_epi8(15), weight = _mm256_set1_epi16(0x1001);
  __m256i a = _mm256_maddubs_epi16(_mm256_and_si256(load(from), mask), weight);
  __m256i b =
      _mm256_maddubs_epi16(_mm256_and_si256(load(from + 32), mask), weight);
  return _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xD8);
}

// Pairs of 2 bits to 4, one to a byte, then as those.
FORCE_INLINE __m256i pairs_2(const char *from) {
  const __m256i mask = _mm256_set1_epi8(3), weight = _mm256_set1_epi16(0x0401);
  __m256i a = _mm256_maddubs_epi16(_mm256_and_si256(load(from), mask), weight);
  __m256i b =
      _mm256_maddubs_epi16(_mm256_and_si256(load(from + 32), mask), weight);
  return _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xD8);
}

FORCE_INLINE __m256i gather_2(const char *from) {
  _Alignas(32) char pairs[64];
  store(pairs, pairs_2(from));
  store(pairs + 32, pairs_2(from + 64));
  return gather_4(pairs);
}

FORCE_INLINE __m256i gather_1(const char *from) {
  int32_t words[8];
  for (int i = 0; i < 8; i++) {
    words[i] = _mm256_movemask_epi8(_mm256_slli_epi16(load(from + 32 * i), 7));
  }
  return load((const char *)words);
}

FORCE_INLINE void pack(unsigned bits, const ist__bits *b) {
  const uint64_t count = 256 / bits;
  const uint64_t whole = b->count / count * count;
  const char *from = (const char *)b->from;
  char *to = (char *)b->to;
  for (uint64_t i = 0; i < whole; i += count) {
    store(to + i / 8 * bits, bits == 4   ? gather_4(from + i)
                             : bits == 2 ? gather_2(from + i)
                                         : gather_1(from + i));
  }
  ist__bits rest = {b->from + whole, b->to + whole / 8 * bits, b->count - whole,
                    bits, false};
  ist__baseline_pack(&rest);
}

// ---- any width, past the caches too

static void unpack_any(const ist__bits *b) {
  if (b->bits == 4) unpack(4, b);
  if (b->bits == 2) unpack(2, b);
  if (b->bits == 1) unpack(1, b);
  if (b->bits == 6) ist__baseline_unpack(b);
}

static void pack_any(const ist__bits *b) {
  if (b->bits == 4) pack(4, b);
  if (b->bits == 2) pack(2, b);
  if (b->bits == 1) pack(1, b);
  if (b->bits == 6) ist__baseline_pack(b);
}

// Elements that fill the chunk on the side of the target; a multiple of 8, so
// that the other side is cut between bytes.
FORCE_INLINE void past(void (*body)(const ist__bits *), const ist__bits *b,
                       bool packs) {
  _Alignas(LINE) unsigned char buffer[CHUNK];
  const uint64_t most = packs ? CHUNK / b->bits * 8 : CHUNK;
  for (uint64_t done = 0; done < b->count; done += most) {
    uint64_t packed = done / 8 * b->bits;
    uint64_t left = b->count - done;
    ist__bits part = *b;
    part.from += packs ? done : packed;
    part.to = buffer;
    part.count = left < most ? left : most;
    body(&part);
    uint64_t size = packs ? (part.count * b->bits + 7) / 8 : part.count;
    write_past((char *)b->to + (packs ? packed : done), (const char *)buffer,
               (int64_t)size);
  }
  _mm_sfence();
}

void ist__avx2_unpack(const ist__bits *b) {
  if (b->stream) {
    past(unpack_any, b, false);
  } else {
    unpack_any(b);
  }
}

void ist__avx2_pack(const ist__bits *b) {
  if (b->stream) {
    past(pack_any, b, true);
  } else {
    pack_any(b);
  }
}

#else

// An empty file is not C.
typedef int ist__copy_avx2_bits_is_for_x86_64;

#endif
