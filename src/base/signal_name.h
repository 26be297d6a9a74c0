// SPDX-License-Identifier: Apache-2.0
// signal_name.h: what a signal that ended a process is called. Not for words
// about it.

#ifndef ISTHMUS_BASE_SIGNAL_NAME_H_
#define ISTHMUS_BASE_SIGNAL_NAME_H_

#include <stdint.h>

typedef struct ist__signal_name {
  char text[24];
} ist__signal_name;

// "SIGABRT"; "signal 63" for one that crashes do not end in.
ist__signal_name ist__signal_name_make(int32_t number);

#endif  // ISTHMUS_BASE_SIGNAL_NAME_H_
