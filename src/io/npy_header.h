// SPDX-License-Identifier: Apache-2.0
// npy_header.h: reads the header text of a .npy file, a Python dict literal of
// exactly three keys. It knows no dtype and no file.

#ifndef ISTHMUS_IO_NPY_HEADER_H_
#define ISTHMUS_IO_NPY_HEADER_H_

#include <isthmus/isthmus.h>

typedef struct ist__npy_header {
  const char *descr;  // of the text, without its quotes, no NUL at the end
  size_t descr_size;
  bool structured;  // descr is a list of fields; nothing else was read
  bool fortran_order;
  int32_t ndim;
  int64_t shape[IST_MAX_NDIM];  // none negative
} ist__npy_header;

// Reads the text in one pass. NULL, or what is wrong with it: a static text
// that fits after "its header".
const char *ist__npy_header_read(const char *text, size_t size,
                                 ist__npy_header *out);

#endif  // ISTHMUS_IO_NPY_HEADER_H_
