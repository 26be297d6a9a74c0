// SPDX-License-Identifier: Apache-2.0
// A PJRT plugin for tests that lies by rules (rules.def): what its parts
// share. It stands alone on its own memory, whose addresses are not the host's
// unless a rule says so, or forwards every slot to a real plugin; the rules go
// on top of either.
//
// A call passes lying_enter(): counted, made to fail, then answered honestly
// by lying_impl[] or by the real plugin, then spoilt by lying_spoil().

#ifndef TESTS_LYING_PJRT_LYING_H
#define TESTS_LYING_PJRT_LYING_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "backend/pjrt/abi.h"

#define LYING_MAX_DEVICES 8
#define LYING_MAX_RANK 16

// Slots, then the extensions' functions.
enum lying_function {
  LYING_BEFORE_EXTENSIONS = IST_SLOT_COUNT - 1,
#define FUNCTION(extension, name, args) LYING_##extension##_##name,
#include "extension_functions.def"
#undef FUNCTION
  LYING_FUNCTION_COUNT
};

struct PJRT_Error {
  int32_t code;
  char message[256];
  PJRT_Error *next;  // of those that live
};

// Work that an event stands for; done at once, or when events are released.
typedef struct lying_work {
  void (*run)(struct lying_work *self);
  void *dst;
  const void *src;
  size_t size;
  bool failed;         // then run only lets go of what it holds
  bool fills;          // the buffer: it holds the error of work that failed
  PJRT_Buffer *reads;  // what fills another buffer reads: held by it
} lying_work;

struct PJRT_Event {
  uint32_t magic;
  int holders;  // the plugin's and the caller's
  bool ready;
  bool failed;
  lying_work work;
  PJRT_Buffer *buffer;  // kept until done, or NULL
  ist_pjrt_on_ready callback;
  void *callback_arg;
  PJRT_Event *next;  // of the pending ones
};

struct PJRT_DeviceDescription {
  int id;
};

struct PJRT_Memory {
  int id;
  const char *kind;
  bool is_host;
  PJRT_Device *device;
  atomic_size_t used, most, count;
};

struct PJRT_Device {
  PJRT_Client *client;
  PJRT_DeviceDescription description;
  PJRT_Memory memory[2];
  PJRT_Memory *memories[2];
};

struct PJRT_Client {
  uint32_t magic;
  size_t device_count;
  PJRT_Device device[LYING_MAX_DEVICES];
  PJRT_Device *devices[LYING_MAX_DEVICES];
};

struct PJRT_Buffer {
  uint32_t magic;
  int holders;  // the caller's handle and pending work
  PJRT_Memory *memory;
  int32_t type;
  size_t rank;
  int64_t dims[LYING_MAX_RANK];
  int64_t true_dims[LYING_MAX_RANK];  // less than dims where dynamic
  bool dynamic;                       // in the first dimension
  int64_t minor_to_major[LYING_MAX_RANK];
  bool tiled;   // by two, in the two most minor dimensions
  size_t size;  // in bytes
  void *data;   // where it really is
  bool foreign;
  bool deleted;
  bool error;
  ist_pjrt_on_delete on_delete;
  void *on_delete_arg;
  void *on_delete_ptr;
  int external;
  atomic_bool counting;
  PJRT_Event *ready;
  PJRT_Event *host_done;  // of a zero-copy buffer: ends with its memory
};

typedef struct lying_rules {
#define NUMBER(name, fallback, what) long name;
#define WORD(name, words, what) char name[24];
#define TEXT(name, fallback, what) char name[256];
#define CALLS(name, what) int name[LYING_FUNCTION_COUNT];  // -1: every call
#include "rules.def"
#undef NUMBER
#undef WORD
#undef TEXT
#undef CALLS
} lying_rules;

typedef struct lying_state {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  lying_rules rules;
  bool have_rules;
  const PJRT_Api *real;  // the plugin that is wrapped, or NULL
  atomic_int calls[LYING_FUNCTION_COUNT];
  atomic_int total_calls, total_events;
  atomic_int errors, events, buffers, clients, executables, others;
  atomic_int externals, violations;
  char violation[256];
  PJRT_Error *living;  // errors of ours
  PJRT_Event *pending;
  int working;  // threads that complete a pending event
  // The callback of a view that was never given.
  _Atomic(ist_pjrt_on_delete) late;
  void *late_ptr, *late_arg;
} lying_state;

extern lying_state lying;

// True when the rule of that name has this word: LYING_IS(view, "copy").
#define LYING_IS(rule, word) (strcmp(lying.rules.rule, word) == 0)

#define LYING_EXPORT __attribute__((visibility("default")))
#define LYING_MAGIC_EVENT 0xE7E27u
#define LYING_MAGIC_BUFFER 0xB0FFE2u
#define LYING_MAGIC_CLIENT 0xC11E27u
#define LYING_MAGIC_EXEC 0xE8ECu

// ---- rules and the table

// The index of a slot or of an extension's function; aborts for another name.
int lying_function(const char *name);
const char *lying_name(int function);
// Reads rules into *out; aborts, with a line, for what is no rule.
void lying_rules_parse(const char *text, lying_rules *out);
// Every call comes in here.
PJRT_Error *lying_enter(int function, void *args);
// Answers a function honestly, as a plugin of its own.
PJRT_Error *lying_answer(int function, void *args);
// Spoils an honest answer of success as the rules say; an error replaces it.
PJRT_Error *lying_spoil(int function, void *args);
// The chain of extensions as the rules have it.
PJRT_Extension_Base *lying_extensions(void);
// The plugin to forward to, as the rules name it; aborts when it has no table.
const PJRT_Api *lying_wrapped(void);
PJRT_Error *lying_forward(int slot, void *args);

// Notes that the caller did what kills real plugins.
void lying_violate(const char *what);
PJRT_Error *lying_error(int32_t code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// True for an error that is ours and not that of a wrapped plugin.
bool lying_error_is_ours(const PJRT_Error *error);
// A text as the rule `strings` has it.
const char *lying_text(const char *text, size_t *size);

// ---- events

// Gives an event for `work`, done now or when events are released. `buffer`
// is kept alive until then; it may be NULL.
PJRT_Event *lying_event_new(lying_work work, PJRT_Buffer *buffer);
// Gives an event that is done when lying_event_finish is called, and then
// the caller's hold on it is gone.
PJRT_Event *lying_event_open(void);
void lying_event_finish(PJRT_Event *event);
void lying_event_drop(PJRT_Event *event);
void lying_event_hold(PJRT_Event *event);
PJRT_Error *lying_event_failure(void);
// Returns when no pending event is being completed, as real clients join their
// threads; noted when it is this thread that completes one.
void lying_wait_for_work(void);

// ---- memory and buffers

// Calls back for a view that was never given, if there is one.
void lying_call_late(void);
// Memory of a device, or NULL when it has no more.
void *lying_take(PJRT_Memory *memory, size_t size);
void lying_give(PJRT_Memory *memory, void *data, size_t size);
PJRT_Error *lying_no_room(const PJRT_Memory *memory, size_t size);
// Gives a buffer without memory: set data, and foreign if it is not ours.
PJRT_Buffer *lying_buffer_new(PJRT_Memory *memory, int32_t type,
                              const int64_t *dims, size_t rank);
// Whether a shape lies in tiles; a buffer's size from its dimensions, order and
// tiles; the order of turned outputs; where an element of a tiled buffer lies.
bool lying_tiles_shape(const int64_t *dims, size_t rank);
void lying_buffer_measure(PJRT_Buffer *buffer);
void lying_turn(int64_t *minor_to_major, size_t rank);
size_t lying_tiled_place(const PJRT_Buffer *buffer, const size_t *index);
void lying_buffer_drop(PJRT_Buffer *buffer);
// The memory of a deleted buffer goes with its last external reference.
void lying_buffer_free(PJRT_Buffer *buffer);
PJRT_Error *lying_buffer_deleted(const PJRT_Buffer *buffer);
bool lying_buffer_check(const PJRT_Buffer *buffer, const char *slot);
// Where a buffer's data would be told to lie.
uintptr_t lying_address(const PJRT_Buffer *buffer, const char *lie);
size_t lying_type_bits(int32_t type);  // 0 for what we don't know
size_t lying_count(const int64_t *dims, size_t rank);
// NULL, or the error of a shape or a type that it does not take.
PJRT_Error *lying_check_shape(int32_t type, const int64_t *dims, size_t rank);
// The same as an error, and noted.
PJRT_Error *lying_refuse(const char *what);
// Copies bytes once src is ready; its own copy of what to do.
void lying_copy_bytes(lying_work *self);

// ---- programs

// One that a text describes; used by Client_Compile and DeserializeAndLoad.
PJRT_Error *lying_program_load(PJRT_Client *client, const char *code,
                               size_t size, size_t device,
                               PJRT_LoadedExecutable **out);

typedef struct lying_program {
  int uses;
  char name[32];
  int32_t type;
  size_t rank, outputs;
  bool donates, dynamic;
  int64_t dims[2 * LYING_MAX_RANK];  // of each output
  size_t ranks[2];
  int32_t types[2];
  char code[512];
  size_t code_size, device_number;
  char hlo[1200];
  size_t hlo_size;
  PJRT_Device *device;
  PJRT_Layouts_MemoryLayout *layouts[2];  // once told, its own to the end
} lying_program;

// Frees the layouts that were told of a program.
void lying_program_layouts_free(lying_program *p);

struct PJRT_LoadedExecutable {
  uint32_t magic;
  lying_program *program;
};

struct PJRT_Executable {
  uint32_t magic;
  lying_program *program;
};

// Reads a text into name, type, dims and so on.
PJRT_Error *lying_program_parse(lying_program *p, const char *code,
                                size_t size);
// Writes the bytes that OptimizedProgram answers.
void lying_program_write_hlo(lying_program *p);

// Each is NULL, or the function's own code.
extern const ist_pjrt_fn lying_impl[LYING_FUNCTION_COUNT];

#define LYING_SLOT(name) PJRT_Error *lying_##name(void *args)
#define HAVE(name) LYING_SLOT(name);
#define HAVE_EXTENSION(name) LYING_SLOT(name);
#include "have.def"
#undef HAVE
#undef HAVE_EXTENSION

#endif
