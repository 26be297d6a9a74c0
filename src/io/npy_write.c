// SPDX-License-Identifier: Apache-2.0
// npy_write.c: the header of a .npy file, byte for byte as NumPy makes it.

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "io/label.h"
#include "io/npy.h"
#include "tensor/dtype.h"

// NumPy leaves room to let an array grow in place along one dimension: that
// many digits for its extent (numpy.lib.format, GROWTH_AXIS_MAX_DIGITS).
#define GROWTH_DIGITS 21

static void write_descr(const ist__dtype *row, ist__text *text) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  char order = '>';
#else
  char order = '<';
#endif
  if (row->npy == NULL) {
    // ml_dtypes' types carry '<' at one byte too.
    ist__text_add(text, "'%cV%u'", order, (row->bits + 7U) / 8U);
  } else {
    ist__text_add(text, "'%c%s'", row->bits > 8 ? order : '|', row->npy);
  }
}

static void write_shape(const ist__entry *entry, ist__text *text) {
  ist__text_add(text, "(");
  for (int32_t i = 0; i < entry->ndim; i++) {
    ist__text_add(text, i == 0 ? "%" PRId64 : ", %" PRId64, entry->shape[i]);
  }
  ist__text_add(text, entry->ndim == 1 ? ",)" : ")");
}

static size_t growth(const ist__entry *entry) {
  if (entry->ndim == 0) return 0;
  char digits[24];
  ist__text text = ist__text_make(digits, sizeof digits);
  int32_t axis = entry->column_major ? entry->ndim - 1 : 0;
  ist__text_add(&text, "%" PRId64, entry->shape[axis]);
  return text.length < GROWTH_DIGITS ? GROWTH_DIGITS - text.length : 0;
}

ist_code ist__npy_header_write(const ist__entry *entry, const char *path,
                               char buffer[IST__NPY_HEADER_ROOM],
                               size_t *out_size, ist_error *err) {
  *out_size = 0;
  const ist__dtype *row = ist__dtype_find(entry->dtype);
  if (row == NULL || entry->dtype.lanes != 1) {
    return ist_error_set(err, IST_ERR_FILE_DTYPE,
                         "cannot write %s: dtype code %u of %u bits in %u "
                         "lanes has no place in .npy; needs a dtype with a "
                         "name and one lane",
                         ist__label_make(path).text, entry->dtype.code,
                         entry->dtype.bits, entry->dtype.lanes);
  }
  ist__text text = ist__text_make(buffer, IST__NPY_HEADER_ROOM);
  ist__text_add(&text, IST__NPY_MAGIC "%c%c%c%c", 1, '?', '?', '?');
  ist__text_add(&text, "{'descr': ");
  write_descr(row, &text);
  ist__text_add(&text, ", 'fortran_order': %s, 'shape': ",
                entry->column_major ? "True" : "False");
  write_shape(entry, &text);
  ist__text_add(&text, ", }");
  // 64 extents of at most 19 digits and the rest: well below the room.
  size_t used = text.length + growth(entry);
  size_t total = (used + 1 + 63) / 64 * 64;
  memset(buffer + text.length, ' ', total - 1 - text.length);
  buffer[total - 1] = '\n';
  buffer[7] = 0;
  buffer[8] = (char)((total - 10) & 0xFF);
  buffer[9] = (char)((total - 10) >> 8);
  *out_size = total;
  return IST_OK;
}
