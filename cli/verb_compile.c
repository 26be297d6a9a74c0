// SPDX-License-Identifier: Apache-2.0
// verb_compile.c: isthmus compile PROGRAM -o EXE --plugin P: compiles a program
// and saves what came, for isthmus run on the same plugin.

#include <inttypes.h>
#include <sys/stat.h>

#include "command.h"

typedef struct session {
  ist__cmd *cmd;
  ist__target target;
  ist_program *program;
} session;

static ist_code compile(session *s, ist_error *err) {
  ist__cmd *cmd = s->cmd;
  char *text = NULL;
  size_t size = 0;
  ist_program_options options = {
      .struct_size = sizeof options,
      .name = cmd->operands.at[0],
      .portable = cmd->portable,
      .cache = cmd->no_cache ? IST_CACHE_OFF : IST_CACHE_ON};
  ist_code code = ist__cmd_read(cmd, options.name, &text, &size, err);
  if (code != IST_OK) return code;
  ist__cmd_progress(cmd, "compiling %s", options.name);
  code = ist_program_compile(s->target.device, text, size, &options,
                             &s->program, err);
  ist__cmd_progress(cmd, NULL);
  ist_deallocate(cmd->context, text);
  return code;
}

// "input 0 (x): float32[2,3]"
static void say_argument(const session *s, ist__json *json, bool is_input,
                         size_t index) {
  ist_spec spec = {.struct_size = sizeof spec};
  char dtype[32];
  const char *name = is_input ? ist_program_input_name(s->program, index)
                              : ist_program_output_name(s->program, index);
  if (is_input) {
    (void)ist_program_input(s->program, index, &spec, NULL);
  } else {
    (void)ist_program_output(s->program, index, &spec, NULL);
  }
  ist_dtype_name(spec.dtype, dtype, sizeof dtype);
  if (json != NULL) {
    ist__json_open(json, NULL, '{');
    ist__json_string(json, "name", name);
    ist__json_string(json, "dtype", dtype);
    ist__json_open(json, "shape", '[');
    for (int32_t d = 0; d < spec.ndim; d++) {
      ist__json_int(json, NULL, spec.shape[d]);
    }
    ist__json_close(json, ']');
    ist__json_close(json, '}');
    return;
  }
  FILE *file = s->cmd->report;
  fprintf(file, "  %s %zu", is_input ? "input" : "output", index);
  if (name[0] != '\0') {
    fputs(" (", file);
    ist__print_safe(file, name);
    fputc(')', file);
  }
  fprintf(file, ": %s[", dtype);
  for (int32_t d = 0; d < spec.ndim; d++) {
    fprintf(file, "%s%" PRId64, d == 0 ? "" : ",", spec.shape[d]);
  }
  fputs("]\n", file);
}

static void say_list(const session *s, ist__json *json, bool is_input) {
  size_t count = is_input ? ist_program_input_count(s->program)
                          : ist_program_output_count(s->program);
  if (json != NULL) ist__json_open(json, is_input ? "inputs" : "outputs", '[');
  for (size_t i = 0; i < count; i++) say_argument(s, json, is_input, i);
  if (json != NULL) ist__json_close(json, ']');
}

static void say(const session *s) {
  ist__cmd *cmd = s->cmd;
  struct stat facts = {0};
  (void)stat(cmd->outputs.at[0], &facts);
  ist_backend_info info = {.struct_size = sizeof info};
  (void)ist_backend_describe(ist_device_backend(s->target.device), &info, NULL);
  if (cmd->json) {
    ist__json json = {.file = cmd->report};
    ist__json_open(&json, NULL, '{');
    ist__json_string(&json, "program", cmd->operands.at[0]);
    ist__json_string(&json, "plugin", cmd->plugins.at[0]);
    ist__json_string(&json, "version", info.version);
    ist__json_string(&json, "output", cmd->outputs.at[0]);
    ist__json_bool(&json, "portable", cmd->portable);
    say_list(s, &json, true);
    say_list(s, &json, false);
    ist__json_close(&json, '}');
    ist__json_end(&json);
    return;
  }
  ist__print_safe(cmd->report, cmd->operands.at[0]);
  fputs(" -> ", cmd->report);
  ist__print_safe(cmd->report, cmd->outputs.at[0]);
  fprintf(cmd->report, ", %jd bytes, for %s (%s)%s\n", (intmax_t)facts.st_size,
          info.name, info.version, cmd->portable ? ", any device" : "");
  say_list(s, NULL, true);
  say_list(s, NULL, false);
}

int ist__verb_compile(ist__cmd *cmd) {
  session s = {.cmd = cmd};
  ist_error err = {0};
  if (cmd->operands.count != 1) {
    return ist__cmd_usage(cmd, "it needs one program, and %zu were given",
                          cmd->operands.count);
  }
  if (cmd->plugins.count != 1 || cmd->outputs.count != 1) {
    return ist__cmd_usage(cmd,
                          "it needs one --plugin and one -o, and %zu and %zu "
                          "were given",
                          cmd->plugins.count, cmd->outputs.count);
  }
  ist_code code =
      ist__cmd_target(cmd, cmd->plugins.at[0], true, &s.target, &err);
  if (code == IST_OK) code = compile(&s, &err);
  if (code == IST_OK) {
    code = ist_program_save(s.program, cmd->outputs.at[0], &err);
  }
  if (code == IST_OK) say(&s);
  ist_program_release(s.program);
  return code == IST_OK ? IST__EXIT_OK : ist__cmd_fail(cmd, &err);
}
