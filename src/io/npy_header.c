// SPDX-License-Identifier: Apache-2.0
// npy_header.c: a strict reader of the one kind of Python literal that NumPy
// writes: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//
// Keys may come in any order and blanks may stand between any two signs, as in
// files of other writers. Nothing else of Python is understood.

#include "io/npy_header.h"

#include <string.h>

#include "base/checked.h"

typedef struct scan {
  const char *at;
  const char *end;
} scan;

static void skip_blanks(scan *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' ||
                            *s->at == '\r')) {
    s->at++;
  }
}

// True, and past it, when sign c comes next.
static bool take(scan *s, char c) {
  skip_blanks(s);
  if (s->at == s->end || *s->at != c) return false;
  s->at++;
  return true;
}

static bool take_word(scan *s, const char *word) {
  size_t size = strlen(word);
  skip_blanks(s);
  if ((size_t)(s->end - s->at) < size || memcmp(s->at, word, size) != 0) {
    return false;
  }
  s->at += size;
  return true;
}

// A string in either kind of quotes. One with a backslash is no type string.
static bool take_string(scan *s, const char **out, size_t *out_size) {
  char quote = take(s, '\'') ? '\'' : take(s, '"') ? '"' : '\0';
  if (quote == '\0') return false;
  const char *begin = s->at;
  while (s->at < s->end && *s->at != quote) {
    if (*s->at == '\\' || *s->at == '\n' || *s->at == '\0') return false;
    s->at++;
  }
  if (s->at == s->end) return false;
  *out = begin;
  *out_size = (size_t)(s->at - begin);
  s->at++;
  return true;
}

static const char *read_extent(scan *s, int64_t *out) {
  skip_blanks(s);
  if (s->at < s->end && *s->at == '-') return "has a negative extent";
  if (s->at == s->end || *s->at < '0' || *s->at > '9') {
    return "has a shape that is not a tuple of whole numbers";
  }
  const char *begin = s->at;
  int64_t value = 0;
  for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
    if (!ist__mul_i64(value, 10, &value) ||
        !ist__add_i64(value, *s->at - '0', &value)) {
      return "has an extent above 2**63 - 1";
    }
  }
  if (*begin == '0' && s->at - begin > 1) {
    return "has an extent with a leading zero";
  }
  // Files written under Python 2 have long integers: 3L.
  if (s->at < s->end && *s->at == 'L') s->at++;
  *out = value;
  return NULL;
}

static const char *read_shape(scan *s, ist__npy_header *out) {
  if (!take(s, '(')) return "has a shape that is not a tuple";
  while (!take(s, ')')) {
    int64_t extent;
    const char *wrong = read_extent(s, &extent);
    if (wrong != NULL) return wrong;
    if (out->ndim == IST_MAX_NDIM) return "has more than 64 dimensions";
    out->shape[out->ndim++] = extent;
    if (take(s, ',')) continue;
    // (3) is a number in Python, (3,) a tuple.
    if (out->ndim == 1 || !take(s, ')')) {
      return "has a shape that is not a tuple";
    }
    break;
  }
  return NULL;
}

static const char *read_descr(scan *s, ist__npy_header *out) {
  skip_blanks(s);
  if (s->at < s->end && (*s->at == '[' || *s->at == '(')) {
    out->structured = true;
    return NULL;
  }
  if (!take_string(s, &out->descr, &out->descr_size)) {
    return "has a 'descr' that is not a string";
  }
  return NULL;
}

static const char *read_order(scan *s, ist__npy_header *out) {
  if (take_word(s, "True")) {
    out->fortran_order = true;
  } else if (!take_word(s, "False")) {
    return "has a 'fortran_order' that is neither True nor False";
  }
  return NULL;
}

static const char *read_pair(scan *s, unsigned *seen, ist__npy_header *out) {
  static const struct {
    const char *name;
    const char *(*read)(scan *, ist__npy_header *);
  } keys[] = {{"descr", read_descr},
              {"fortran_order", read_order},
              {"shape", read_shape}};
  const char *key;
  size_t size;
  if (!take_string(s, &key, &size)) return "has a key that is not a string";
  for (unsigned i = 0; i < 3; i++) {
    if (size != strlen(keys[i].name) || memcmp(key, keys[i].name, size) != 0) {
      continue;
    }
    if ((*seen & (1U << i)) != 0) return "has a key twice";
    *seen |= 1U << i;
    if (!take(s, ':')) return "has a key without a value";
    return keys[i].read(s, out);
  }
  return "has a key other than 'descr', 'fortran_order' and 'shape'";
}

const char *ist__npy_header_read(const char *text, size_t size,
                                 ist__npy_header *out) {
  memset(out, 0, sizeof *out);
  scan s = {text, text + size};
  unsigned seen = 0;
  if (!take(&s, '{')) return "does not begin with {";
  while (!take(&s, '}')) {
    const char *wrong = read_pair(&s, &seen, out);
    if (wrong != NULL) return wrong;
    if (out->structured) return NULL;
    if (take(&s, ',')) continue;
    if (!take(&s, '}')) return "is not a dict that ends in }";
    break;
  }
  skip_blanks(&s);
  if (s.at != s.end) return "goes on after its }";
  if (seen != 7) return "lacks one of 'descr', 'fortran_order' and 'shape'";
  return NULL;
}
