// SPDX-License-Identifier: Apache-2.0
// label.h: a path or a tensor's name, fit to stand in an error message: short,
// with its end kept, and without control characters.

#ifndef ISTHMUS_IO_LABEL_H_
#define ISTHMUS_IO_LABEL_H_

// Room for a label, its NUL included.
#define IST__LABEL_SIZE 128

typedef struct ist__label {
  char text[IST__LABEL_SIZE];
} ist__label;

// NULL becomes "(no name)".
ist__label ist__label_make(const char *text);

#endif  // ISTHMUS_IO_LABEL_H_
