// SPDX-License-Identifier: Apache-2.0
// label.c: names from outside, made fit for a message of one line.

#include "io/label.h"

#include <stdbool.h>
#include <string.h>

ist__label ist__label_make(const char *text) {
  ist__label label = {{0}};
  if (text == NULL) text = "(no name)";
  size_t length = strlen(text);
  size_t at = 0;
  if (length >= IST__LABEL_SIZE) {
    text += length - (IST__LABEL_SIZE - 4);
    // Not in the middle of a UTF-8 sequence.
    while (((unsigned char)*text & 0xC0) == 0x80) text++;
    memcpy(label.text, "...", 3);
    at = 3;
  }
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    bool control = c < 0x20 || c == 0x7F;
    label.text[at++] = control ? '?' : (char)c;
  }
  return label;
}
