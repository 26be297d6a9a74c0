// SPDX-License-Identifier: Apache-2.0
// verb_run.c: isthmus run PROGRAM --plugin P IN... -o OUT...: compiles a
// program for a device, hands it the inputs, runs it, takes the outputs back.

#define _POSIX_C_SOURCE 200809L  // clock_gettime
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command_discover.h"
#include "io/saved_program.h"

// One output of the command line: where it goes, and whether it was written.
typedef struct sink {
  ist_place place;
  char name[1024];  // of the tensor in a .safetensors file
  bool done;
} sink;

typedef struct session {
  ist__cmd *cmd;
  char plugin[4400];   // the place of --plugin, or of the one that was found
  char found_by[128];  // "" where --plugin names a path
  ist__target target;
  ist_program *program;
  size_t input_count, output_count;
  ist_tensor **inputs;    // on the host, as read
  ist_tensor **outputs;   // on the device
  ist_tensor **results;   // on the host
  ist_receipt *receipts;  // of the inputs, then of the outputs
  sink *sinks;            // one an output, or none at all
  double seconds[4];
} session;

enum {
  COMPILE,
  EXECUTE,
  READ_BACK,
  WRITE
};

static const char *const phases[] = {"compile", "run", "read back", "write"};

static double now(void) {
  struct timespec t = {0};
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *room_for(const session *s, size_t count, size_t size) {
  void *memory = ist_allocate(s->cmd->context, (count + 1) * size, 16);
  if (memory != NULL) memset(memory, 0, (count + 1) * size);
  return memory;
}

static ist_code no_room(ist_error *err) {
  return ist_error_set(err, IST_ERR_NO_ALLOCATION,
                       "memory for the lists of a program was not to be had: "
                       "the allocator gave none; needs some kilobytes");
}

static ist_code compile(session *s, ist_error *err) {
  const char *path = s->cmd->operands.at[0];
  char *text = NULL;
  size_t size = 0;
  ist_code code = ist__cmd_read(s->cmd, path, &text, &size, err);
  if (code != IST_OK) return code;
  ist__cmd_progress(s->cmd, "compiling %s", path);
  double start = now();
  ist_program_options options = {
      .struct_size = sizeof options,
      .name = path,
      .cache = s->cmd->no_cache ? IST_CACHE_OFF : IST_CACHE_ON};
  code = ist__saved_is(text, size)
             ? ist_program_load(s->target.device, text, size, &options,
                                &s->program, err)
             : ist_program_compile(s->target.device, text, size, &options,
                                   &s->program, err);
  s->seconds[COMPILE] = now() - start;
  ist__cmd_progress(s->cmd, NULL);
  ist_deallocate(s->cmd->context, text);
  return code;
}

static ist_code load_inputs(session *s, ist_error *err) {
  size_t count = s->cmd->operands.count - 1;
  s->inputs = room_for(s, count, sizeof(ist_tensor *));
  if (s->inputs == NULL) return no_room(err);
  s->input_count = count;
  for (size_t i = 0; i < count; i++) {
    ist_code code =
        ist__cmd_load(s->cmd, s->cmd->operands.at[i + 1], &s->inputs[i], err);
    if (code != IST_OK) return code;
  }
  return IST_OK;
}

static ist_code make_lists(session *s, ist_error *err) {
  size_t count = ist_program_output_count(s->program);
  s->outputs = room_for(s, count, sizeof(ist_tensor *));
  s->results = room_for(s, count, sizeof(ist_tensor *));
  s->receipts = room_for(s, s->input_count + count, sizeof(ist_receipt));
  s->sinks = room_for(s, count, sizeof(sink));
  if (s->outputs == NULL || s->results == NULL || s->receipts == NULL ||
      s->sinks == NULL) {
    return no_room(err);
  }
  s->output_count = count;
  for (size_t i = 0; i < s->input_count + count; i++) {
    s->receipts[i].struct_size = sizeof(ist_receipt);
  }
  return IST_OK;
}

// What -o says, before anything runs: a wrong place is told first.
static ist_code read_sinks(session *s, ist_error *err) {
  const ist__words *words = &s->cmd->outputs;
  bool all_in_one = false;
  ist_code code = IST_OK;
  if (words->count == 0) return IST_OK;
  if (words->count == 1) {
    code = ist__cmd_output(words->at[0], &s->sinks[0].place, err);
    if (code != IST_OK) return code;
    all_in_one = s->sinks[0].place.kind == IST_PLACE_SAFETENSORS &&
                 s->sinks[0].place.tensor[0] == '\0';
  }
  if (s->output_count == 0) {
    return ist_error_set(err, IST_ERR_ARITY,
                         "the outputs could not be placed: %zu were named; "
                         "needs none: %s has no output",
                         words->count, s->cmd->operands.at[0]);
  }
  if (words->count != s->output_count && !all_in_one) {
    return ist_error_set(err, IST_ERR_ARITY,
                         "the outputs could not be placed: %zu were named; "
                         "needs %zu, or one FILE.safetensors for all",
                         words->count, s->output_count);
  }
  for (size_t i = 0; i < s->output_count; i++) {
    sink *k = &s->sinks[i];
    code = ist__cmd_output(words->at[all_in_one ? 0 : i], &k->place, err);
    if (code != IST_OK) return code;
    if (!ist__place_is_file(k->place.kind) && k->place.kind != IST_PLACE_HOST) {
      return ist_error_set(err, IST_ERR_PLACE,
                           "%s could not be read as a place: a device stands "
                           "where an output is needed; needs a file, - or host",
                           words->at[i]);
    }
    if (k->place.tensor[0] != '\0') {
      (void)snprintf(k->name, sizeof k->name, "%s", k->place.tensor);
    } else {
      (void)snprintf(k->name, sizeof k->name, "output.%zu", i);
    }
  }
  return IST_OK;
}

// "input 1" says less than "input 1 (x.npy)".
static void name_input(const session *s, ist_error *err) {
  for (size_t i = 0; i < s->input_count; i++) {
    char from[128], to[384];
    const char *path = s->cmd->operands.at[i + 1];
    const char *name = ist_program_input_name(s->program, i);
    if (name == NULL || name[0] == '\0') {
      (void)snprintf(from, sizeof from, ": input %zu could ", i);
      (void)snprintf(to, sizeof to, ": input %zu (%.160s) could ", i, path);
    } else {
      (void)snprintf(from, sizeof from, ": input %zu (%.64s) could ", i, name);
      (void)snprintf(to, sizeof to, ": input %zu (%.64s, %.160s) could ", i,
                     name, path);
    }
    ist__error_rename(err, from, to);
  }
}

static ist_code execute(session *s, ist_error *err) {
  ist_options options = s->cmd->wish;
  options.memory = s->target.memory;
  ist_run run = {.struct_size = sizeof run,
                 .inputs = s->inputs,
                 .input_count = s->input_count,
                 .outputs = s->outputs,
                 .output_count = s->output_count,
                 .options = &options,
                 .receipts = s->receipts};
  ist_program_info info = {.struct_size = sizeof info};
  (void)ist_program_describe(s->program, &info, NULL);
  if (info.portable) run.device = s->target.device;
  ist__cmd_progress(s->cmd, "running %s", s->cmd->operands.at[0]);
  ist__cmd_watch(s->cmd, &options);
  double start = now();
  ist_code code = ist_program_run(s->program, &run, err);
  if (code != IST_OK) name_input(s, err);
  for (size_t i = 0; code == IST_OK && i < s->output_count; i++) {
    code = ist_tensor_wait(s->outputs[i], err);
  }
  s->seconds[EXECUTE] = now() - start;
  ist__cmd_progress(s->cmd, NULL);
  return code;
}

static ist_code read_back(session *s, ist_error *err) {
  const ist_device *host = ist_context_host(s->cmd->context);
  double start = now();
  ist_code code = IST_OK;
  for (size_t i = 0; code == IST_OK && i < s->output_count; i++) {
    code = ist_tensor_move(s->outputs[i], host, NULL, &s->results[i],
                           &s->receipts[s->input_count + i], err);
    if (code == IST_OK) code = ist_tensor_wait(s->results[i], err);
  }
  s->seconds[READ_BACK] = now() - start;
  return code;
}

// Writes all outputs that go to the file of output number first.
static ist_code write_group(session *s, size_t first, const char **names,
                            ist_tensor **tensors, ist_error *err) {
  const sink *head = &s->sinks[first];
  size_t count = 0;
  for (size_t i = first; i < s->output_count; i++) {
    sink *k = &s->sinks[i];
    if (k->done || strcmp(k->place.path, head->place.path) != 0) continue;
    names[count] = k->name;
    tensors[count++] = s->results[i];
    k->done = true;
  }
  bool named = head->place.kind == IST_PLACE_SAFETENSORS;
  if (!named && count > 1) {
    return ist_error_set(err, IST_ERR_ARITY,
                         "%s could not be written: it is named for %zu "
                         "outputs; needs a file for each",
                         head->place.path, count);
  }
  ist_options options = {.struct_size = sizeof options};
  ist__cmd_progress(s->cmd, "writing %s", head->place.path);
  ist__cmd_watch(s->cmd, &options);
  ist_code code = ist_file_save_with(head->place.path, named ? names : NULL,
                                     tensors, count, &options, err);
  ist__cmd_progress(s->cmd, NULL);
  return code;
}

static ist_code write_outputs(session *s, ist_error *err) {
  const char **names = room_for(s, s->output_count, sizeof *names);
  ist_tensor **tensors = room_for(s, s->output_count, sizeof *tensors);
  ist_code code = names == NULL || tensors == NULL ? no_room(err) : IST_OK;
  double start = now();
  size_t count = s->cmd->outputs.count == 0 ? 0 : s->output_count;
  for (size_t i = 0; code == IST_OK && i < count; i++) {
    const sink *k = &s->sinks[i];
    if (k->done || k->place.kind == IST_PLACE_HOST) continue;
    code = k->place.kind == IST_PLACE_STREAM
               ? ist__cmd_stdout_save(s->cmd, s->results[i], err)
               : write_group(s, i, names, tensors, err);
  }
  s->seconds[WRITE] = now() - start;
  ist_deallocate(s->cmd->context, names);
  ist_deallocate(s->cmd->context, tensors);
  return code;
}

// ------------------------------------------------------------------ words --

static const char *output_place(const session *s, size_t i) {
  const ist__words *words = &s->cmd->outputs;
  if (words->count == 0) return "host";
  return words->at[words->count == s->output_count ? i : 0];
}

static void say_text_one(session *s, bool input, size_t i,
                         const ist_tensor *tensor, const ist_receipt *receipt,
                         const char *place) {
  char spec[900];
  char what[1024];
  ist__tensor_text(tensor, spec, sizeof spec);
  (void)snprintf(what, sizeof what, "%s %zu: %s, %" PRIu64 " bytes",
                 input ? "input" : "output", i, spec,
                 ist__tensor_nbytes(tensor));
  ist__print_read(s->cmd, place, !input || ist__tensor_is_mapped(tensor), what);
  ist__print_receipt(s->cmd, receipt, input ? place : receipt->source,
                     input ? receipt->target : place, what, false);
}

static void say_text(session *s) {
  if (s->found_by[0] != '\0') {
    fputs("plugin ", s->cmd->report);
    ist__print_safe(s->cmd->report, s->plugin);
    fprintf(s->cmd->report, ", found by %s\n", s->found_by);
  }
  for (size_t i = 0; i < s->input_count; i++) {
    say_text_one(s, true, i, s->inputs[i], &s->receipts[i],
                 s->cmd->operands.at[i + 1]);
  }
  for (size_t i = 0; i < s->output_count; i++) {
    say_text_one(s, false, i, s->results[i], &s->receipts[s->input_count + i],
                 output_place(s, i));
  }
  fputs("time", s->cmd->report);
  for (int i = 0; i < 4; i++) {
    fprintf(s->cmd->report, "%s %s %.3f ms", i == 0 ? " " : ",", phases[i],
            s->seconds[i] * 1e3);
  }
  fputc('\n', s->cmd->report);
}

static void say_json_list(session *s, ist__json *json, bool input) {
  ist__json_open(json, input ? "inputs" : "outputs", '[');
  size_t count = input ? s->input_count : s->output_count;
  for (size_t i = 0; i < count; i++) {
    ist__json_open(json, NULL, '{');
    ist__json_string(json, "place",
                     input ? s->cmd->operands.at[i + 1] : output_place(s, i));
    ist__json_tensor(json, input ? s->inputs[i] : s->results[i]);
    if (input) {
      ist__json_bool(json, "mapped", ist__tensor_is_mapped(s->inputs[i]));
    }
    ist__json_receipt(json, "receipt",
                      &s->receipts[input ? i : s->input_count + i]);
    ist__json_close(json, '}');
  }
  ist__json_close(json, ']');
}

static void say_json(session *s) {
  static const char *const keys[] = {"compile", "run", "read_back", "write"};
  ist__json json = {.file = s->cmd->report};
  ist__json_open(&json, NULL, '{');
  ist__json_string(&json, "program", s->cmd->operands.at[0]);
  ist__json_string(&json, "plugin", s->plugin);
  say_json_list(s, &json, true);
  say_json_list(s, &json, false);
  ist__json_open(&json, "seconds", '{');
  for (int i = 0; i < 4; i++) ist__json_real(&json, keys[i], s->seconds[i]);
  ist__json_close(&json, '}');
  ist__json_close(&json, '}');
  ist__json_end(&json);
}

static void release_all(session *s) {
  for (size_t i = 0; s->inputs != NULL && i < s->input_count; i++) {
    ist_tensor_release(s->inputs[i]);
  }
  for (size_t i = 0; s->outputs != NULL && i < s->output_count; i++) {
    ist_tensor_release(s->outputs[i]);
  }
  for (size_t i = 0; s->results != NULL && i < s->output_count; i++) {
    ist_tensor_release(s->results[i]);
  }
  ist_context *context = s->cmd->context;
  ist_deallocate(context, s->inputs);
  ist_deallocate(context, s->outputs);
  ist_deallocate(context, s->results);
  ist_deallocate(context, s->receipts);
  ist_deallocate(context, s->sinks);
  ist_program_release(s->program);
}

// The plugin: a place, the name of one that is installed, or, where none is
// named, the one that is installed.
static ist_code find_plugin(session *s, ist_error *err) {
  bool named = s->cmd->plugins.count > 0;
  const char *text = named ? s->cmd->plugins.at[0] : "";
  const char *bare = strncmp(text, "pjrt:", 5) == 0 ? text + 5 : text;
  const char *rest = bare + strcspn(bare, "#");
  char name[96];
  (void)snprintf(name, sizeof name, "%.*s", (int)(rest - bare), bare);
  (void)snprintf(s->plugin, sizeof s->plugin, "%s", text);
  if (named && (strchr(bare, '/') != NULL || access(name, F_OK) == 0)) {
    return IST_OK;
  }
  ist__plugins *plugins = NULL;
  ist_code code = ist__plugins_find(s->cmd->context, &plugins, err);
  if (code != IST_OK) return code;
  ist_error cause = {0};
  const ist__plugin_entry *entry =
      ist__plugins_choose(plugins, named ? name : NULL, &cause);
  if (entry != NULL) {
    (void)snprintf(s->plugin, sizeof s->plugin, "pjrt:%s%.200s", entry->path,
                   rest);
    (void)snprintf(s->found_by, sizeof s->found_by, "%s", entry->found_by);
  } else if (!named) {
    *err = cause;
    code = cause.code;
  }
  ist__plugins_free(plugins);
  return code;  // a name that nothing has may still be a path that is wrong
}

static ist_code go(session *s, ist_error *err) {
  // What is quickly found wrong comes first.
  ist_code code = load_inputs(s, err);
  if (code == IST_OK) code = find_plugin(s, err);
  if (code == IST_OK) {
    code = ist__cmd_target(s->cmd, s->plugin, true, &s->target, err);
  }
  if (code == IST_OK) code = compile(s, err);
  if (code == IST_OK) code = make_lists(s, err);
  if (code == IST_OK) code = read_sinks(s, err);
  if (code == IST_OK) code = execute(s, err);
  if (code == IST_OK) code = read_back(s, err);
  if (code == IST_OK) code = write_outputs(s, err);
  return code;
}

int ist__verb_run(ist__cmd *cmd) {
  session s = {.cmd = cmd};
  ist_error err = {0};
  if (cmd->operands.count == 0) {
    return ist__cmd_usage(cmd, "it needs a program");
  }
  if (cmd->plugins.count > 1) {
    return ist__cmd_usage(cmd, "it needs one --plugin, and %zu were given",
                          cmd->plugins.count);
  }
  for (size_t i = 0; i < cmd->outputs.count; i++) {
    if (strcmp(cmd->outputs.at[i], "-") == 0) cmd->report = stderr;
  }
  ist_code code = go(&s, &err);
  if (code == IST_OK && cmd->json) say_json(&s);
  if (code == IST_OK && !cmd->json) say_text(&s);
  release_all(&s);
  return code == IST_OK ? IST__EXIT_OK : ist__cmd_fail(cmd, &err);
}
