// SPDX-License-Identifier: Apache-2.0
// fault_stage.h: a place where the n-th allocation or the n-th call of a slot
// fails, n = 1, 2, ..., and what must hold afterwards: an error each time,
// outputs NULL, inputs as they were, nothing left over.

#ifndef ISTHMUS_TESTS_SUPPORT_FAULT_STAGE_H_
#define ISTHMUS_TESTS_SUPPORT_FAULT_STAGE_H_

#include <isthmus/backend.h>

#include "support/counting_allocator.h"
#include "support/sample.h"

typedef enum fault_kind {
  FAULT_MEMORY,
  FAULT_CALL
} fault_kind;

// The backend that scenarios run on, and the things that they work with.
typedef struct stage {
  const char *name;
  bool late_release;  // a plugin's threads may give views back later
  bool slow_to_open;  // then few of a probe's thousand calls are made to fail
  const char *advisory;  // a slot whose failure costs nothing, or NULL
  const char *program;   // a text that it compiles, or NULL
  size_t input_count;    // of the program: float32[4] each
  ist_code (*open)(struct stage *s, ist_backend **out, ist_error *err);
  const char *path;  // of a plugin
  void *self;        // of open

  counting_allocator memory;
  atomic_long calls;      // of slots
  atomic_long fail_call;  // number of the call that fails, from 1; 0: none
  atomic_long failed_calls;
  const char *failed_slot;  // the last that was made to fail
  long survived;            // faults that an act went well in spite of

  ist_context *context;
  ist_backend *backend;
  const ist_device *device;
  char file[64];  // a path of the stage's own

  // Inputs, made anew for each turn.
  sample from;
  sample before;  // what from was
  ist_tensor *input;
  ist_tensor *arguments[2];
  _Alignas(64) float numbers[2][16];
  ist_file *opened;
  // Outputs of the act.
  ist_context *out_context;
  ist_backend *out_backend;
  ist_tensor *out;
  DLManagedTensorVersioned *exported;
  DLManagedTensor *legacy;
  ist_program *compiled;
  ist_file *out_file;
  void *out_buffer;
  ist_receipt receipt;
} stage;

// One thing to do under faults. prepare and finish run without them; act fails
// with all outputs NULL, or fills them; undo gives back what it filled.
typedef struct scenario {
  const char *name;
  void (*prepare)(stage *s);
  ist_code (*act)(stage *s, ist_error *err);
  void (*undo)(stage *s);
  void (*finish)(stage *s);
  bool needs_program;
  // Opening a plugin probes what it can do: a call that fails there may cost a
  // capability and not the whole.
  bool probes;
} scenario;

// Opens the context, with its hooks, and the backend.
void stage_open(stage *s);
// Closes both; nothing is left.
void stage_close(stage *s);

// Runs a scenario once without a fault, which counts, then with a fault at each
// number up to that count, then once more: the fault beyond the count does not
// fire and the act succeeds. Returns how many faults fired.
long stage_sweep(stage *s, const scenario *what, fault_kind kind);

// Every scenario that there is, on one kind of fault. Ends with name NULL.
extern const scenario fault_scenarios[];
// Runs all of them on a stage, as one group of cmocka; returns failures.
int fault_run(stage *s);

#endif  // ISTHMUS_TESTS_SUPPORT_FAULT_STAGE_H_
