// SPDX-License-Identifier: Apache-2.0
// command.h: what the verbs of the command share: the parsed command line, the
// places that it names, and how results and errors are said.

#ifndef ISTHMUS_CLI_COMMAND_H_
#define ISTHMUS_CLI_COMMAND_H_

#include <isthmus/backend.h>
#include <isthmus/isthmus.h>
#include <isthmus/pjrt.h>
#include <stdio.h>

// Exit codes of the command.
enum {
  IST__EXIT_OK = 0,
  IST__EXIT_FAILED = 1,
  IST__EXIT_USAGE = 2
};

// One bit a verb, in the order of verbs.def.
enum {
#define IST_VERB(name, text, operands, summary) IST__VERB_NUMBER_##name,
#include "verbs.def"
  IST__VERB_COUNT
};

struct ist__cmd;

typedef struct ist__verb {
  const char *name;
  const char *operands;
  const char *summary;
  int (*run)(struct ist__cmd *cmd);  // returns an exit code
} ist__verb;

typedef struct ist__words {
  const char **at;
  size_t count;
} ist__words;

typedef struct ist__opened {
  const char *kind;
  char path[4096];
  ist_backend *backend;
} ist__opened;

// The command line, parsed, and what was opened for it.
typedef struct ist__cmd {
  const ist__verb *verb;  // NULL until one was named
  ist_context *context;
  FILE *report;  // stdout, or stderr when stdout carries a tensor
  bool json;
  bool junit;      // of conformance
  bool progress;   // a line of progress stands on stderr
  char doing[80];  // what it says
  int percent;     // and the number after it; -1: none
  ist__words operands, outputs, plugins, vias;
  bool reports;         // what a report tries is tried before opening
  bool trusted;         // plugins are opened in this process at once
  ist_option *options;  // of the backends
  size_t option_count;
  const char *dtype, *shape, *strides, *address;
  const char *astype;  // what move converts to; NULL: nothing
  bool saturate;
  bool portable;  // compile for any device
  bool no_cache;  // run: compile anew, and keep nothing
  ist_options wish;
  ist__opened *opened;
  size_t opened_count, opened_room;
  bool stdin_used;
} ist__cmd;

// A device that the command line names.
typedef struct ist__target {
  const ist_device *device;
  const char *memory;  // NULL: the default; lent by place
  ist_place place;
} ist__target;

// ------------------------------------------------------- command_args.c --

extern const ist__verb ist__verbs[IST__VERB_COUNT];

// Reads the command line into cmd. Returns -1 to go on, else an exit code.
int ist__cmd_parse(ist__cmd *cmd, int argc, char **argv);

// ----------------------------------------------------- command_option.c --

// Adds NAME[:TYPE]=VALUE to cmd->options.
ist_code ist__cmd_option(ist__cmd *cmd, const char *text, ist_error *err);
// Reads "2,3,4" into out, at most room of them; "" is none.
ist_code ist__cmd_integers(const char *what, const char *text, int64_t *out,
                           size_t room, size_t *out_count, ist_error *err);

// ------------------------------------------------------- command_help.c --

// Prints the help of a verb, or of the command when verb is NULL.
void ist__cmd_help(const ist__verb *verb, FILE *file);

// ------------------------------------------------------ command_place.c --

// Opens a backend, once for each kind and path. Lent by cmd.
ist_code ist__cmd_backend(ist__cmd *cmd, const char *kind, const char *path,
                          ist_backend **out, ist_error *err);
// Opens a place that is a device. plugin: a bare path is a plugin's.
ist_code ist__cmd_target(ist__cmd *cmd, const char *text, bool plugin,
                         ist__target *out, ist_error *err);
// True for a kind of place whose tensors are in a file or stream.
bool ist__place_is_file(ist_place_kind kind);
// ist_place_parse, with struct_size set.
ist_code ist__cmd_place(const char *text, ist_place *out, ist_error *err);
// The same for a place to write to, before anything is done for it: a folder is
// refused as one.
ist_code ist__cmd_output(const char *text, ist_place *out, ist_error *err);
// A tensor of a file, or of .npy bytes on stdin. Gives *out.
ist_code ist__cmd_load(ist__cmd *cmd, const char *text, ist_tensor **out,
                       ist_error *err);

// ----------------------------------------------------- command_signal.c --

// Makes descriptors 0, 1 and 2 refer to something, so that no file of ours
// becomes one of them, and installs the signal handlers.
void ist__cmd_guard(void);

// ----------------------------------------------------- command_stream.c --

// Opens the .npy bytes on stdin as a file. Gives *out.
ist_code ist__cmd_stdin_file(ist__cmd *cmd, const ist_file_options *options,
                             ist_file **out, ist_error *err);
// Writes a tensor to stdout as .npy.
ist_code ist__cmd_stdout_save(ist__cmd *cmd, ist_tensor *tensor,
                              ist_error *err);
// Writes to for from in a message: a stream is called by its own name, not by
// its scratch file's.
void ist__error_rename(ist_error *err, const char *from, const char *to);
// Reads a whole file, or stdin ("-"). Gives *out, freed by ist_deallocate; a
// NUL stands after the last byte.
ist_code ist__cmd_read(ist__cmd *cmd, const char *path, char **out,
                       size_t *out_size, ist_error *err);

// ----------------------------------------------------- command_report.c --

// Prints an error as one line on stderr (and as JSON where asked for).
// Returns IST__EXIT_FAILED.
int ist__cmd_fail(ist__cmd *cmd, const ist_error *err);
// Prints a mistake on the command line. Returns IST__EXIT_USAGE.
int ist__cmd_usage(ist__cmd *cmd, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Closes what was opened and checks that the output was written; returns the
// exit code to end with.
int ist__cmd_finish(ist__cmd *cmd, int exit_code);
// Shows what is being done, while it is done, when stderr is a terminal; NULL
// takes it away.
void ist__cmd_progress(ist__cmd *cmd, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Adds how much of a long copy is done to that line.
void ist__cmd_watch(ist__cmd *cmd, ist_options *options);
// Text with control characters written as \xNN, so that names from outside
// cannot add lines or terminal codes.
void ist__print_safe(FILE *file, const char *text);
// The escape code of a style on a terminal, else "".
const char *ist__style_bold(const ist__cmd *cmd);
const char *ist__style_end(const ist__cmd *cmd);

// "float32[2,3]".
void ist__spec_text(DLDataType dtype, int32_t ndim, const int64_t *shape,
                    char *buffer, size_t size);
void ist__tensor_text(const ist_tensor *tensor, char *buffer, size_t size);
uint64_t ist__tensor_nbytes(const ist_tensor *tensor);
// False when a tensor of a file had to be copied to be read (its bytes swapped,
// or not aligned to its items), so that it does not view the map.
bool ist__tensor_is_mapped(const ist_tensor *tensor);
// Says so, as lines of text; nothing when it is mapped.
void ist__print_read(ist__cmd *cmd, const char *place, bool mapped,
                     const char *what);
// A receipt as lines of text: route, places, bytes, reasons. planned: nothing
// was moved yet.
void ist__print_receipt(ist__cmd *cmd, const ist_receipt *receipt,
                        const char *source, const char *target,
                        const char *what, bool planned);

// ------------------------------------------------------- command_json.c --

// Writes JSON to a file, putting commas where they belong.
typedef struct ist__json {
  FILE *file;
  bool comma;
} ist__json;

// key is NULL inside of a list. bracket is '{' or '[', '}' or ']'.
void ist__json_open(ist__json *json, const char *key, char bracket);
void ist__json_close(ist__json *json, char bracket);
void ist__json_string(ist__json *json, const char *key, const char *value);
void ist__json_int(ist__json *json, const char *key, int64_t value);
void ist__json_uint(ist__json *json, const char *key, uint64_t value);
void ist__json_real(ist__json *json, const char *key, double value);
void ist__json_bool(ist__json *json, const char *key, bool value);
// Members dtype, shape, strides and nbytes of a tensor.
void ist__json_tensor(ist__json *json, const ist_tensor *tensor);
void ist__json_receipt(ist__json *json, const char *key,
                       const ist_receipt *receipt);
void ist__json_error(ist__json *json, const char *key, const ist_error *err);
// Ends the document with a newline.
void ist__json_end(ist__json *json);

// ---------------------------------------------------- command_backend.c --

// A backend to be told of.
typedef struct ist__telling {
  ist_backend *backend;
  const char *place;
  // What a probe found of its first device; NULL: the backend is no plugin, or
  // nobody asked.
  const ist_pjrt_report *report;
  ist__json *json;  // NULL: text
} ist__telling;

// Says all about a backend, as text or as one object, after trying each memory.
// Returns false, with err, when bytes came back wrong.
bool ist__cmd_say_backend(ist__cmd *cmd, const ist__telling *telling,
                          ist_error *err);

// ------------------------------------------------- command_capability.c --

// True when two memories of a report were found to do different things.
bool ist__capability_differs(const ist_pjrt_report *report, size_t memory,
                             size_t other);
// Members of the object that is open: the list of capabilities of a memory, or
// all that a report has of a plugin.
void ist__json_capabilities(ist__json *json, const ist_pjrt_report *report,
                            size_t memory);
void ist__json_plugin(ist__json *json, const ist_pjrt_report *report,
                      size_t default_memory);
// The same as a table; of other memories of the device only what differs.
void ist__print_capabilities(ist__cmd *cmd, const ist_pjrt_report *report,
                             const ist_device *device);

// ----------------------------------------------------- command_memory.c --

// What a device's plugin tells of its memory, as a line or as a member of the
// open object (json not NULL); nothing where it tells nothing.
void ist__print_memory_use(FILE *file, ist__json *json,
                           const ist_device *device);

// -------------------------------------------------------------- verb_*.c --

int ist__verb_doctor(ist__cmd *cmd);
int ist__verb_probe(ist__cmd *cmd);
int ist__verb_conformance(ist__cmd *cmd);
int ist__verb_move(ist__cmd *cmd);
int ist__verb_compile(ist__cmd *cmd);
int ist__verb_run(ist__cmd *cmd);
int ist__verb_route(ist__cmd *cmd);
int ist__verb_explain(ist__cmd *cmd);

#endif  // ISTHMUS_CLI_COMMAND_H_
