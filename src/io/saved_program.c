// SPDX-License-Identifier: Apache-2.0
// saved_program.c: reads and writes the head; every number in it is checked
// before it is used.

#include "io/saved_program.h"

#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/digest.h"

static const char magic[8] = {'I', 'S', 'T', 'H', 'M', 'E', 'X', 'E'};

enum {
  FORMAT = 1,
  HEAD_AT = 56,
  DIGEST_AT = 24,
  NUMBERS = 5,
  MOST = 1 << 20  // arguments, replicas, partitions, bytes of a text
};

typedef struct reader {
  const unsigned char *at;
  size_t left;
} reader;

static uint64_t number_at(const unsigned char *at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; i++) value |= (uint64_t)at[i] << (8 * i);
  return value;
}

static void put_number(char *at, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; i++) at[i] = (char)(value >> (8 * i) & 255);
}

static bool read_number(reader *in, uint32_t *out) {
  if (in->left < 4) return false;
  *out = (uint32_t)number_at(in->at, 4);
  in->at += 4;
  in->left -= 4;
  return true;
}

static bool read_text(reader *in, ist__saved_span *out) {
  uint32_t size;
  if (!read_number(in, &size) || size > MOST || size > in->left ||
      memchr(in->at, 0, size) != NULL) {
    return false;
  }
  *out = (ist__saved_span){(const char *)in->at, size};
  in->at += size;
  in->left -= size;
  return true;
}

static bool read_head(reader in, ist__saved *out) {
  uint32_t n[NUMBERS];
  for (size_t i = 0; i < NUMBERS; i++) {
    if (!read_number(&in, &n[i]) || n[i] > MOST) return false;
  }
  if (n[0] < 1 || n[1] < 1 || n[2] > 1) return false;
  out->replicas = (int32_t)n[0];
  out->partitions = (int32_t)n[1];
  out->portable = n[2] == 1;
  out->input_count = n[3];
  out->output_count = n[4];
  for (size_t i = 0; i < IST__SAVED_TEXTS; i++) {
    if (!read_text(&in, &out->text[i])) return false;
  }
  out->names = (ist__saved_span){(const char *)in.at, in.left};
  for (size_t i = 0; i < (size_t)n[3] + n[4]; i++) {
    ist__saved_span name;
    if (!read_text(&in, &name)) return false;
  }
  return in.left == 0;
}

static void digest_of(const unsigned char *bytes, size_t size,
                      unsigned char out[static IST_DIGEST_SIZE]) {
  ist__digest digest;
  ist__digest_begin(&digest);
  ist__digest_add(&digest, bytes, DIGEST_AT);
  ist__digest_add(&digest, bytes + HEAD_AT, size - HEAD_AT);
  ist__digest_end(&digest, out);
}

bool ist__saved_is(const void *bytes, size_t size) {
  return size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

const char *ist__saved_read(const void *data, size_t size, ist__saved *out) {
  const unsigned char *bytes = data;
  memset(out, 0, sizeof *out);
  if (!ist__saved_is(data, size)) return "not a saved program";
  if (size < HEAD_AT) return "cut short";
  if (number_at(bytes + 8, 4) != FORMAT) return "of another format";
  uint64_t head = number_at(bytes + 12, 4), code = number_at(bytes + 16, 8);
  uint64_t whole;
  if (!ist__add_u64(HEAD_AT + head, code, &whole) || whole > size) {
    return "cut short";
  }
  if (whole < size) return "longer than it says";
  unsigned char digest[IST_DIGEST_SIZE];
  digest_of(bytes, size, digest);
  if (memcmp(digest, bytes + DIGEST_AT, sizeof digest) != 0) {
    return "damaged: its digest is another";
  }
  reader in = {bytes + HEAD_AT, (size_t)head};
  if (code == 0 || !read_head(in, out)) {
    memset(out, 0, sizeof *out);
    return "malformed";
  }
  out->code =
      (ist__saved_span){(const char *)bytes + HEAD_AT + head, (size_t)code};
  return NULL;
}

ist__saved_span ist__saved_next_name(ist__saved_span *names) {
  reader in = {(const unsigned char *)names->at, names->size};
  ist__saved_span name = {"", 0};
  if (in.left == 0 || !read_text(&in, &name)) return name;
  *names = (ist__saved_span){(const char *)in.at, in.left};
  return name;
}

bool ist__saved_equals(ist__saved_span span, const char *text) {
  return strlen(text) == span.size && memcmp(text, span.at, span.size) == 0;
}

static size_t put_text(char *to, const char *text, size_t size) {
  put_number(to, size, 4);
  memcpy(to + 4, text, size);
  return 4 + size;
}

char *ist__saved_write(const ist__env *env, const ist__saved *saved,
                       const char *const *names, size_t *out_size) {
  size_t arguments = saved->input_count + saved->output_count;
  uint64_t head = 4 * NUMBERS, whole;
  for (size_t i = 0; i < IST__SAVED_TEXTS; i++) head += 4 + saved->text[i].size;
  for (size_t i = 0; i < arguments; i++) head += 4 + strlen(names[i]);
  if (head > UINT32_MAX || saved->input_count > MOST ||
      saved->output_count > MOST ||
      !ist__add_u64(HEAD_AT + head, saved->code.size, &whole)) {
    return NULL;
  }
  char *bytes = ist__alloc(env, (size_t)whole, 64);
  if (bytes == NULL) return NULL;
  memcpy(bytes, magic, sizeof magic);
  put_number(bytes + 8, FORMAT, 4);
  put_number(bytes + 12, head, 4);
  put_number(bytes + 16, saved->code.size, 8);
  char *to = bytes + HEAD_AT;
  const uint64_t numbers[NUMBERS] = {
      (uint64_t)saved->replicas, (uint64_t)saved->partitions,
      saved->portable ? 1 : 0, saved->input_count, saved->output_count};
  for (size_t i = 0; i < NUMBERS; i++) put_number(to + 4 * i, numbers[i], 4);
  to += 4 * NUMBERS;
  for (size_t i = 0; i < IST__SAVED_TEXTS; i++) {
    to += put_text(to, saved->text[i].at, saved->text[i].size);
  }
  for (size_t i = 0; i < arguments; i++) {
    to += put_text(to, names[i], strlen(names[i]));
  }
  memcpy(to, saved->code.at, saved->code.size);
  digest_of((const unsigned char *)bytes, (size_t)whole,
            (unsigned char *)bytes + DIGEST_AT);
  *out_size = (size_t)whole;
  return bytes;
}
