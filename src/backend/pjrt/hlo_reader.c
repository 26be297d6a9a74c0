// SPDX-License-Identifier: Apache-2.0
// hlo_reader.c: a small reader of protobuf's wire format, with fixed depth.

#include "backend/pjrt/hlo_reader.h"

#include <string.h>

typedef struct bytes {
  const unsigned char *at;
  const unsigned char *end;
} bytes;

typedef struct field {
  uint64_t number;
  int wire;        // 0 varint, 1 eight bytes, 2 length, 5 four bytes
  uint64_t value;  // of a varint
  bytes payload;   // of a length-delimited field
} field;

static bool read_varint(bytes *in, uint64_t *out) {
  uint64_t value = 0;
  for (int shift = 0; shift < 70 && in->at < in->end; shift += 7) {
    unsigned char c = *in->at++;
    if (shift == 63 && c > 1) {
      return false;  // does not fit 64 bits
    }
    value |= (uint64_t)(c & 127) << shift;
    if ((c & 128) == 0) {
      *out = value;
      return true;
    }
  }
  return false;
}

// Reads one field. False at a fault; the end is asked for before.
static bool read_field(bytes *in, field *out) {
  uint64_t tag, size;
  memset(out, 0, sizeof *out);
  if (!read_varint(in, &tag)) return false;
  out->number = tag >> 3;
  out->wire = (int)(tag & 7);
  if (out->number == 0) return false;
  switch (out->wire) {
    case 0:
      return read_varint(in, &out->value);
    case 1:
      size = 8;
      break;
    case 2:
      if (!read_varint(in, &size)) return false;
      break;
    case 5:
      size = 4;
      break;
    default:
      return false;  // groups: XLA has none
  }
  if (size > (uint64_t)(in->end - in->at)) return false;
  out->payload.at = in->at;
  out->payload.end = in->at + size;
  in->at += size;
  return true;
}

// Appends a repeated integer field, packed or not, to a list with room.
static bool append_numbers(const field *f, int64_t *list, int32_t room,
                           int32_t *count) {
  if (f->wire == 0) {
    if (*count >= room) return false;
    list[(*count)++] = (int64_t)f->value;
    return true;
  }
  if (f->wire != 2) return false;
  bytes in = f->payload;
  while (in.at < in.end) {
    uint64_t value;
    if (*count >= room || !read_varint(&in, &value)) return false;
    list[(*count)++] = (int64_t)value;
  }
  return true;
}

// Appends one tile; a layout with more than there is room for is no layout that
// can be followed.
static bool read_tile(const field *f, ist__hlo_shape *shape) {
  int32_t used = 0, count = 0;
  if (f->wire != 2 || shape->tile_count == IST_HLO_TILES) return false;
  for (size_t i = 0; i < shape->tile_count; i++) {
    used += (int32_t)shape->tile_ranks[i];
  }
  bytes in = f->payload;
  while (in.at < in.end) {
    field number;
    if (!read_field(&in, &number)) return false;
    if (number.number == 1 &&
        !append_numbers(&number, shape->tile_dims + used,
                        IST_HLO_TILE_DIMS - used, &count)) {
      return false;
    }
  }
  shape->tile_ranks[shape->tile_count++] = (size_t)count;
  return true;
}

static bool read_layout(bytes in, ist__hlo_shape *shape, int32_t *order_size) {
  while (in.at < in.end) {
    field f;
    if (!read_field(&in, &f)) return false;
    if (f.number == 1 &&
        !append_numbers(&f, shape->minor_to_major, IST_MAX_NDIM, order_size)) {
      return false;
    }
    if (f.number == 6 && !read_tile(&f, shape)) return false;
  }
  return true;
}

static bool check_shape(ist__hlo_shape *shape, int32_t order_size,
                        bool has_layout) {
  for (int32_t i = 0; i < shape->ndim; i++) {
    if (shape->dims[i] < 0) return false;
  }
  shape->has_order = has_layout && order_size == shape->ndim;
  if (!shape->has_order) return order_size == 0;
  uint64_t seen = 0;
  for (int32_t i = 0; i < order_size; i++) {
    int64_t d = shape->minor_to_major[i];
    if (d < 0 || d >= shape->ndim || (seen >> d & 1) != 0) return false;
    seen |= UINT64_C(1) << d;
  }
  return true;
}

static bool read_shape(bytes in, ist__hlo_shape *shape) {
  int32_t order_size = 0;
  bool has_layout = false;
  memset(shape, 0, sizeof *shape);
  while (in.at < in.end) {
    field f;
    if (!read_field(&in, &f)) return false;
    switch (f.number) {
      case 2:
        if (f.wire != 0 || f.value > INT32_MAX) return false;
        shape->type = (int32_t)f.value;
        break;
      case 3:
        if (!append_numbers(&f, shape->dims, IST_MAX_NDIM, &shape->ndim))
          return false;
        break;
      case 5:
        if (f.wire != 2 || has_layout) return false;
        has_layout = true;
        if (!read_layout(f.payload, shape, &order_size)) return false;
        break;
      case 6: {
        int64_t flags[IST_MAX_NDIM];
        int32_t count = 0;
        if (!append_numbers(&f, flags, IST_MAX_NDIM, &count)) return false;
        for (int32_t i = 0; i < count; i++) {
          if (flags[i] != 0) shape->dynamic = true;
        }
        break;
      }
      default:
        break;
    }
  }
  return check_shape(shape, order_size, has_layout);
}

static bool read_results(bytes in, ist__hlo_visit visit, void *self) {
  ist__hlo_shape shape;
  if (!read_shape(in, &shape)) return false;
  if (shape.type != IST_HLO_TUPLE) return visit(self, true, &shape);
  while (in.at < in.end) {
    field f;
    if (!read_field(&in, &f)) return false;
    if (f.number != 4) continue;
    if (f.wire != 2 || !read_shape(f.payload, &shape) ||
        !visit(self, true, &shape)) {
      return false;
    }
  }
  return true;
}

static bool read_program_shape(bytes in, ist__hlo_visit visit, void *self) {
  field result = {0};
  while (in.at < in.end) {
    field f;
    ist__hlo_shape shape;
    if (!read_field(&in, &f)) return false;
    if (f.number == 1) {
      if (f.wire != 2 || !read_shape(f.payload, &shape) ||
          !visit(self, false, &shape)) {
        return false;
      }
    } else if (f.number == 2) {
      if (f.wire != 2 || result.number != 0) return false;
      result = f;
    }
  }
  return result.number != 0 && read_results(result.payload, visit, self);
}

// The one submessage of a number; two or none are a fault.
static bool find_message(bytes in, uint64_t number, bytes *out) {
  bool found = false;
  while (in.at < in.end) {
    field f;
    if (!read_field(&in, &f)) return false;
    if (f.number != number) continue;
    if (f.wire != 2 || found) return false;
    found = true;
    *out = f.payload;
  }
  return found;
}

bool ist__hlo_read(const void *data, size_t size, ist__hlo_visit visit,
                   void *self) {
  if (data == NULL) return false;
  bytes all = {data, (const unsigned char *)data + size};
  bytes module, shape;
  return find_message(all, 1, &module) && find_message(module, 4, &shape) &&
         read_program_shape(shape, visit, self);
}

int32_t ist__hlo_pjrt_type(int32_t xla_type) {
  // By XLA's number; the two lists agree up to F64 and then part.
  static const uint8_t types[] = {
      [1] = 1,    // PRED
      [2] = 2,    // S8
      [3] = 3,    // S16
      [4] = 4,    // S32
      [5] = 5,    // S64
      [6] = 6,    // U8
      [7] = 7,    // U16
      [8] = 8,    // U32
      [9] = 9,    // U64
      [10] = 10,  // F16
      [11] = 11,  // F32
      [12] = 12,  // F64
      [15] = 14,  // C64
      [16] = 13,  // BF16
      [18] = 15,  // C128
      [19] = 16,  // F8E5M2
      [20] = 17,  // F8E4M3FN
      [21] = 21,  // S4
      [22] = 22,  // U4
      [23] = 18,  // F8E4M3B11FNUZ
      [24] = 19,  // F8E5M2FNUZ
      [25] = 20,  // F8E4M3FNUZ
      [26] = 24,  // S2
      [27] = 25,  // U2
      [28] = 26,  // F8E4M3
      [29] = 27,  // F8E3M4
      [30] = 30,  // S1
      [31] = 31,  // U1
      [32] = 29,  // F4E2M1FN
      [33] = 28,  // F8E8M0FNU
  };
  if (xla_type < 0 || (size_t)xla_type >= sizeof types) return 0;
  return types[xla_type];
}
