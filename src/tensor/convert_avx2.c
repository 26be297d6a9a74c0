// SPDX-License-Identifier: Apache-2.0
// convert_avx2.c: the conversion loops with AVX2 and F16C. From and to float32
// by hand, 8 numbers at a time; the rest is the plain loops, in wider vectors.
//
// Loops that compute with floats run under the processor's default settings
// (to nearest, subnormals as they are, no traps), whatever the caller set.

#if defined(__x86_64__)

#include <immintrin.h>

#include "tensor/convert_loops.h"
#include "tensor/copy_avx2.h"

// MXCSR after reset: all exceptions masked, round to nearest.
#define DEFAULT_SETTINGS 0x1f80

// How far ahead a source of float32 is asked for. Measured on 64 MiB, where the
// loops wait for memory: a tenth to a fifth faster than without, and than with
// 512, 2048 or 4096.
#define AHEAD 1024

#define NOT_INLINE __attribute__((noinline))

// Past the end too: this is never a fault. Summed as a number, since no pointer
// may point there.
static inline void ask_ahead(const void *p) {
  _mm_prefetch((const char *)((uintptr_t)p + AHEAD), _MM_HINT_T0);
}

static inline __m256i all(uint32_t bits) {
  return _mm256_set1_epi32((int)bits);
}

// Elements before to is at a multiple of 32 bytes, where streaming needs that.
static size_t head_of(const void *to, size_t item, size_t count, bool stream) {
  if (!stream) return 0;
  size_t head = (0 - (uintptr_t)to) % 32 / item;
  return head < count ? head : count;
}

// A loop by hand for whole steps of elements, and a plain one for those before
// and after them.
typedef struct both_loops {
  ist__convert_loop *by_hand;
  ist__convert_loop *plain;
  size_t from_size;
  size_t to_size;
  size_t step;
  bool saturates;  // the one by hand does; else all goes the plain way then
} both_loops;

static void run_both(const both_loops *b, const void *from, void *to,
                     size_t count, const ist__convert_how *how) {
  if (how->saturate && !b->saturates) {
    b->plain(from, to, count, how);
    return;
  }
  const char *in = from;
  char *out = to;
  size_t head = head_of(to, b->to_size, count, how->stream);
  if (head > 0) b->plain(in, out, head, how);
  in += head * b->from_size;
  out += head * b->to_size;
  count -= head;
  size_t steps = count - count % b->step;
  if (steps > 0) {
    unsigned settings = _mm_getcsr();
    _mm_setcsr(DEFAULT_SETTINGS);
    b->by_hand(in, out, steps, how);
    _mm_setcsr(settings);
    if (how->stream) _mm_sfence();
  }
  in += steps * b->from_size;
  out += steps * b->to_size;
  if (steps < count) b->plain(in, out, count - steps, how);
}

#define BOTH(name, from_type, to_type, elements, saturates)             \
  static void avx2_##name(const void *from, void *to, size_t count,     \
                          const ist__convert_how *how) {                \
    static const both_loops both = {hand_##name,       plain_##name,    \
                                    sizeof(from_type), sizeof(to_type), \
                                    elements,          saturates};      \
    run_both(&both, from, to, count, how);                              \
  }

// ---- float32 to formats of a byte

// What narrow_8 needs, spread over the lanes.
typedef struct lanes {
  __m256i magnitude, rebias, magic, limit, top, nan;
} lanes;

static inline lanes lanes_of(const ist__float_format f, bool saturate) {
  const int shift = 23 - f.mantissa_bits;
  bool clamps = saturate || f.kind == IST__FLOAT_FINITE;
  // What lies beyond the largest is the code after it: infinity or NaN.
  uint32_t top = (uint32_t)ist__float_largest(&f) + (clamps ? 0 : 1);
  return (lanes){
      .magnitude = all(~FLOAT32_SIGN),
      // Half of what is shifted out, less one, in the other bias.
      .rebias = all((UINT32_C(1) << (shift - 1)) - 1 -
                    ((uint32_t)(127 - f.bias) << 23)),
      // A float whose last digit is worth a subnormal's: adding it rounds.
      .magic = all((uint32_t)(128 - f.bias + shift) << 23),
      .limit = all(first_normal(f)),
      .top = all(top),
      .nan = all(plain_nan(f, 0)),
  };
}

static inline __m256i narrow_8(__m256i x, const ist__float_format f,
                               const lanes *l) {
  const int shift = 23 - f.mantissa_bits;
  const __m256i sign_bit = all((uint32_t)ist__float_sign(&f));
  __m256i a = _mm256_and_si256(x, l->magnitude);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(a, shift), all(1));
  __m256i normal = _mm256_add_epi32(_mm256_add_epi32(a, l->rebias), odd);
  normal = _mm256_srai_epi32(normal, shift);
  __m256 sum =
      _mm256_add_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(l->magic));
  __m256i small = _mm256_sub_epi32(_mm256_castps_si256(sum), l->magic);
  __m256i code =
      _mm256_blendv_epi8(normal, small, _mm256_cmpgt_epi32(l->limit, a));
  code = _mm256_min_epi32(code, l->top);
  __m256i is_nan = _mm256_cmpgt_epi32(a, all(FLOAT32_INFINITY));
  __m256i sign = _mm256_srli_epi32(x, 31 - f.exponent_bits - f.mantissa_bits);
  sign = _mm256_and_si256(sign, sign_bit);
  if (f.kind == IST__FLOAT_FINITE) {
    code = _mm256_andnot_si256(is_nan, code);
    sign = _mm256_xor_si256(sign, _mm256_and_si256(is_nan, sign_bit));
  } else {
    code = _mm256_max_epi32(code, _mm256_and_si256(is_nan, l->nan));
  }
  if (f.kind == IST__FLOAT_FNUZ) {
    sign = _mm256_and_si256(sign,
                            _mm256_cmpgt_epi32(code, _mm256_setzero_si256()));
  }
  return _mm256_or_si256(code, sign);
}

static inline void narrow_32(const uint32_t *in, uint8_t *out, size_t count,
                             const ist__convert_how *how,
                             const ist__float_format f) {
  const lanes l = lanes_of(f, how->saturate);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const bool stream = how->stream;
  for (size_t i = 0; i < count; i += 32) {
    ask_ahead(in + i);
    ask_ahead(in + i + 16);
    __m256i a = narrow_8(load(in + i), f, &l);
    __m256i b = narrow_8(load(in + i + 8), f, &l);
    __m256i c = narrow_8(load(in + i + 16), f, &l);
    __m256i d = narrow_8(load(in + i + 24), f, &l);
    __m256i low = _mm256_packus_epi32(a, b);
    __m256i high = _mm256_packus_epi32(c, d);
    __m256i bytes = _mm256_packus_epi16(low, high);
    put(out + i, _mm256_permutevar8x32_epi32(bytes, order), stream);
  }
}

#define IST_FLOAT_BYTE_FORMAT(number, name, exponent, mantissa, bias, kinds)   \
  NOT_INLINE static void hand_##name(const void *from, void *to, size_t count, \
                                     const ist__convert_how *how) {            \
    const ist__float_format f = format_of_##name();                            \
    if (f.kind == IST__FLOAT_FNU) {                                            \
      plain_##name(from, to, count, how);                                      \
    } else {                                                                   \
      narrow_32(from, to, count, how, f);                                      \
    }                                                                          \
  }                                                                            \
  BOTH(name, uint32_t, uint8_t, 32, true)
#include "tensor/float_format.def"

// ---- float32 to and from the formats of 16 bits

static inline bool any_nan(__m256 a, __m256 b) {
  return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)) != 0;
}

// The upper halves of 8 numbers, none of them NaN, rounded.
static inline __m256i brain_8(__m256i x) {
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(x, 16), all(1));
  __m256i sum = _mm256_add_epi32(x, _mm256_add_epi32(odd, all(0x7fff)));
  return _mm256_srli_epi32(sum, 16);
}

NOT_INLINE static void hand_float32_to_bfloat16(const void *from, void *to,
                                                size_t count,
                                                const ist__convert_how *how) {
  const uint32_t *in = from;
  uint16_t *out = to;
  const bool stream = how->stream;
  for (size_t i = 0; i < count; i += 16) {
    ask_ahead(in + i);
    __m256i a = load(in + i);
    __m256i b = load(in + i + 8);
    if (any_nan(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b))) {
      plain_float32_to_bfloat16(in + i, out + i, 16, how);
      continue;
    }
    __m256i both = _mm256_packus_epi32(brain_8(a), brain_8(b));
    put(out + i, _mm256_permute4x64_epi64(both, 0xd8), stream);
  }
}
BOTH(float32_to_bfloat16, uint32_t, uint16_t, 16, false)

NOT_INLINE static void hand_bfloat16_to_float32(const void *from, void *to,
                                                size_t count,
                                                const ist__convert_how *how) {
  const uint16_t *in = from;
  uint32_t *out = to;
  const bool stream = how->stream;
  for (size_t i = 0; i < count; i += 16) {
    const __m256i zero = _mm256_setzero_si256();
    __m256i both = _mm256_permute4x64_epi64(load(in + i), 0xd8);
    put(out + i, _mm256_unpacklo_epi16(zero, both), stream);
    put(out + i + 8, _mm256_unpackhi_epi16(zero, both), stream);
  }
}
BOTH(bfloat16_to_float32, uint16_t, uint32_t, 16, false)

// The processor makes NaNs quiet, which these loops do not: 16 numbers with a
// NaN among them go the plain way.
NOT_INLINE static void hand_float32_to_float16(const void *from, void *to,
                                               size_t count,
                                               const ist__convert_how *how) {
  const float *in = from;
  uint16_t *out = to;
  const bool stream = how->stream;
  // Beyond it, less than half a step, nothing but infinity and NaN is above.
  const __m256 most =
      _mm256_set1_ps(how->saturate ? 65504.0F : __builtin_inff());
  const __m256 least = _mm256_sub_ps(_mm256_setzero_ps(), most);
  for (size_t i = 0; i < count; i += 16) {
    ask_ahead(in + i);
    __m256 a = _mm256_loadu_ps(in + i);
    __m256 b = _mm256_loadu_ps(in + i + 8);
    if (any_nan(a, b)) {
      plain_float32_to_float16(in + i, out + i, 16, how);
      continue;
    }
    a = _mm256_max_ps(_mm256_min_ps(a, most), least);
    b = _mm256_max_ps(_mm256_min_ps(b, most), least);
    __m128i low = _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT);
    __m128i high = _mm256_cvtps_ph(b, _MM_FROUND_TO_NEAREST_INT);
    put(out + i, _mm256_set_m128i(high, low), stream);
  }
}
BOTH(float32_to_float16, uint32_t, uint16_t, 16, true)

NOT_INLINE static void hand_float16_to_float32(const void *from, void *to,
                                               size_t count,
                                               const ist__convert_how *how) {
  const uint16_t *in = from;
  uint32_t *out = to;
  const bool stream = how->stream;
  for (size_t i = 0; i < count; i += 16) {
    __m256 a = _mm256_cvtph_ps(_mm_loadu_si128((const void *)(in + i)));
    __m256 b = _mm256_cvtph_ps(_mm_loadu_si128((const void *)(in + i + 8)));
    if (any_nan(a, b)) {
      plain_float16_to_float32(in + i, out + i, 16, how);
      continue;
    }
    put(out + i, _mm256_castps_si256(a), stream);
    put(out + i + 8, _mm256_castps_si256(b), stream);
  }
}
BOTH(float16_to_float32, uint16_t, uint32_t, 16, false)

const ist__convert_kernels ist__convert_avx2 = {
    .name = "avx2",
    .float16_to_float32 = avx2_float16_to_float32,
    .bfloat16_to_float32 = avx2_bfloat16_to_float32,
    .float64_to_float32 = plain_float64_to_float32,
    .float64_to_odd = plain_float64_to_odd,
    .float32_to_float64 = plain_float32_to_float64,
    .float32_to_float16 = avx2_float32_to_float16,
    .float32_to_bfloat16 = avx2_float32_to_bfloat16,
    .float32_to_byte =
        {
#define IST_FLOAT_BYTE_FORMAT(number, name, exponent, mantissa, bias, kind) \
  [ist__byte_##name] = avx2_##name,
#include "tensor/float_format.def"
        },
    .look_up = {plain_look_up_1, plain_look_up_2, plain_look_up_4,
                plain_look_up_8},
};

#else

// An empty file is not C.
typedef int ist__convert_avx2_is_for_x86_64;

#endif
