// SPDX-License-Identifier: Apache-2.0
// child_wire.h: what the library and the program isthmus-probe say to each
// other: the client options on its standard input, the verdict on its standard
// output. Both ends read it as hostile bytes: a plugin may write there too.
//
// The program is started as `isthmus-probe VERSION DEADLINE_MS TASK PATH`. TASK
// is open, or report:DEVICE:LOSSES, a number and a set of bits in hexadecimal.
// Options:
//   option KIND NAME_SIZE VALUE_SIZE\n NAME VALUE \n
// Answer:
//   isthmus-probe VERSION
//   passed | refused CODE NATIVE MESSAGE
//   step TEXT                       the last step that was begun
//   trial NAME                      the capability that it was for, if any
//   ended exit|signal|late NUMBER   by who watched the plugin: the last line

#ifndef ISTHMUS_BACKEND_PJRT_CHILD_WIRE_H_
#define ISTHMUS_BACKEND_PJRT_CHILD_WIRE_H_

#include "base/env.h"
#include "base/text.h"

// Grows when the two ends would misread each other.
#define IST__CHILD_VERSION "2"

enum {
  // A line is written by one write() of less than PIPE_BUF, so that two never
  // mix.
  IST__CHILD_LINE = 1024,
  // An option takes as many bytes at least: "option 0 1 0\na\n".
  IST__CHILD_OPTION = 15,
  IST__CHILD_TASK = 64
};

// Writes options, checked before, as a request.
void ist__child_request(const ist_option *options, size_t count,
                        ist__text *out);

// Reads a request of size bytes, after which a NUL stands, into at most room
// options, which point into bytes; integer lists go to numbers, where there is
// room for size / 2 of them. Returns how many there are, or -1 for what is no
// request.
int ist__child_options(char *bytes, size_t size, ist_option *options, int room,
                       int64_t *numbers);

// Writes and reads TASK; device -1 is open. False for what is none.
void ist__child_task(int32_t device, uint64_t losses,
                     char out[IST__CHILD_TASK]);
bool ist__child_task_read(const char *task, int32_t *device, uint64_t *losses);

typedef enum ist__child_end {
  IST__CHILD_UNKNOWN = 0,  // no word of it came
  IST__CHILD_EXIT = 1,
  IST__CHILD_SIGNAL = 2,
  IST__CHILD_LATE = 3
} ist__child_end;

// What was read of an answer so far.
typedef struct ist__child_answer {
  bool greeted;  // it is our program, of our version
  bool passed, refused;
  ist_error err;  // of a refusal
  char step[64];  // the last one
  char trial[32];
  ist__child_end end;
  int32_t number;  // exit status or signal
  // The line that is being read; longer ones are passed over.
  char line[IST__CHILD_LINE];
  size_t used;
} ist__child_answer;

// Takes some bytes of an answer. True once the last line was there.
bool ist__child_read(ist__child_answer *answer, const char *bytes, size_t size);

#endif  // ISTHMUS_BACKEND_PJRT_CHILD_WIRE_H_
