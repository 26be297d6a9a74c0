// SPDX-License-Identifier: Apache-2.0
// verb_move.c: isthmus move SRC DST: a tensor of a file, over devices, to a
// file or a device, with a receipt for each crossing; with --astype its values
// are converted first.

#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "tensor/lanes.h"

// One crossing that was made.
typedef struct step {
  const char *from, *to;
  ist_receipt receipt;
} step;

// The tensor, where it stands now, and how it came there. Nothing is said
// until the end, so that a failure leaves no half of a document.
typedef struct journey {
  ist__cmd *cmd;
  ist_place from, to;
  const char *at;
  ist_tensor *tensor;  // owned
  bool mapped;         // it views the file that it came from
  step *steps;         // owned, room for all
  size_t step_count;
} journey;

// Takes the tensor to a device and waits until it is there.
static ist_code cross(journey *j, const char *place, ist_error *err) {
  ist__target target;
  ist_tensor *moved = NULL;
  step *s = &j->steps[j->step_count];
  *s = (step){j->at, place, {.struct_size = sizeof s->receipt}};
  ist_options options = j->cmd->wish;
  ist_code code = ist__cmd_target(j->cmd, place, false, &target, err);
  if (code != IST_OK) return code;
  options.memory = target.memory;
  ist__cmd_progress(j->cmd, "moving to %s", place);
  ist__cmd_watch(j->cmd, &options);
  code = ist_tensor_move(j->tensor, target.device, &options, &moved,
                         &s->receipt, err);
  if (code == IST_OK) code = ist_tensor_wait(moved, err);
  ist__cmd_progress(j->cmd, NULL);
  if (code != IST_OK) {
    ist_tensor_release(moved);
    return code;
  }
  ist_tensor_release(j->tensor);
  j->tensor = moved;
  j->at = place;
  j->step_count++;
  return IST_OK;
}

// The name under which a .safetensors file holds the tensor: the one asked
// for, else the one it had, else its file's name without folder and ending.
static ist_code target_name(const journey *j, char *out, size_t size,
                            ist_error *err) {
  const char *name = j->to.tensor[0] != '\0' ? j->to.tensor : j->from.tensor;
  if (name[0] != '\0') {
    (void)snprintf(out, size, "%s", name);
    return IST_OK;
  }
  const char *slash = strrchr(j->from.path, '/');
  const char *base = slash == NULL ? j->from.path : slash + 1;
  const char *dot = strrchr(base, '.');
  int length = dot == NULL ? (int)strlen(base) : (int)(dot - base);
  (void)snprintf(out, size, "%.*s", length, base);
  if (length > 0) return IST_OK;
  return ist_error_set(err, IST_ERR_NAME_NEEDED,
                       "%s could not be written: the tensor has no name; needs "
                       "%s:NAME",
                       j->to.path, j->to.path);
}

static ist_code save(journey *j, ist_error *err) {
  if (j->to.kind == IST_PLACE_STREAM) {
    return ist__cmd_stdout_save(j->cmd, j->tensor, err);
  }
  char name[sizeof j->to.tensor];
  const char *names[1] = {name};
  bool named = j->to.kind == IST_PLACE_SAFETENSORS;
  ist_code code = named ? target_name(j, name, sizeof name, err) : IST_OK;
  if (code != IST_OK) return code;
  ist_options options = {.struct_size = sizeof options};
  ist__cmd_progress(j->cmd, "writing %s", j->to.path);
  ist__cmd_watch(j->cmd, &options);
  code = ist_file_save_with(j->to.path, named ? names : NULL, &j->tensor, 1,
                            &options, err);
  ist__cmd_progress(j->cmd, NULL);
  return code;
}

// Converts the values as --astype says; the result is on the host.
static ist_code convert(journey *j, ist_error *err) {
  DLDataType dtype;
  ist_tensor *made = NULL;
  step *s = &j->steps[j->step_count];
  *s = (step){j->at, "host", {.struct_size = sizeof s->receipt}};
  ist_code code = ist_dtype_parse(j->cmd->astype, &dtype, err);
  if (code != IST_OK) return code;
  dtype = ist__lanes_values(dtype);
  ist_options watched = {.struct_size = sizeof watched};
  ist__cmd_progress(j->cmd, "converting to %s", j->cmd->astype);
  ist__cmd_watch(j->cmd, &watched);
  ist_convert_options options = {.struct_size = sizeof options,
                                 .saturate = j->cmd->saturate,
                                 .progress = watched.progress,
                                 .progress_self = watched.progress_self};
  code =
      ist_tensor_convert(j->tensor, dtype, &options, &made, &s->receipt, err);
  ist__cmd_progress(j->cmd, NULL);
  if (code != IST_OK) return code;
  ist_tensor_release(j->tensor);
  j->tensor = made;
  j->at = "host";
  j->step_count++;
  return IST_OK;
}

static ist_code go(journey *j, ist_error *err) {
  ist__cmd *cmd = j->cmd;
  ist_code code = ist__cmd_load(cmd, cmd->operands.at[0], &j->tensor, err);
  if (code == IST_OK) j->mapped = ist__tensor_is_mapped(j->tensor);
  if (code == IST_OK && cmd->astype != NULL) code = convert(j, err);
  for (size_t i = 0; code == IST_OK && i < cmd->vias.count; i++) {
    code = cross(j, cmd->vias.at[i], err);
  }
  if (code != IST_OK) return code;
  if (!ist__place_is_file(j->to.kind)) {
    return cross(j, cmd->operands.at[1], err);
  }
  // Back from the last device: this too is a crossing with a receipt.
  if (cmd->vias.count > 0) code = cross(j, "host", err);
  return code == IST_OK ? save(j, err) : code;
}

static void say_json(const journey *j) {
  ist__json json = {.file = j->cmd->report};
  ist__json_open(&json, NULL, '{');
  ist__json_string(&json, "source", j->cmd->operands.at[0]);
  ist__json_string(&json, "target", j->cmd->operands.at[1]);
  ist__json_tensor(&json, j->tensor);
  ist__json_bool(&json, "source_mapped", j->mapped);
  ist__json_open(&json, "steps", '[');
  for (size_t i = 0; i < j->step_count; i++) {
    ist__json_open(&json, NULL, '{');
    ist__json_string(&json, "from", j->steps[i].from);
    ist__json_string(&json, "to", j->steps[i].to);
    ist__json_receipt(&json, "receipt", &j->steps[i].receipt);
    ist__json_close(&json, '}');
  }
  ist__json_close(&json, ']');
  ist__json_bool(&json, "written", ist__place_is_file(j->to.kind));
  ist__json_close(&json, '}');
  ist__json_end(&json);
}

// What the elements take in the file: below 8 bits packed in .safetensors, one
// to a byte in .npy, however they lay at the source.
static uint64_t file_bytes(const journey *j) {
  const DLTensor *view = ist_tensor_view(j->tensor);
  uint64_t count = 1;
  for (int32_t i = 0; i < view->ndim; i++) count *= (uint64_t)view->shape[i];
  uint64_t bits = view->dtype.bits;
  bool packs = j->to.kind == IST_PLACE_SAFETENSORS;
  return packs ? (count * bits + 7) / 8 : count * ((bits + 7) / 8);
}

static void say_text(const journey *j) {
  char spec[900];
  char what[1024];
  ist__tensor_text(j->tensor, spec, sizeof spec);
  (void)snprintf(what, sizeof what, "%s, %" PRIu64 " bytes", spec,
                 ist__tensor_nbytes(j->tensor));
  ist__print_read(j->cmd, j->cmd->operands.at[0], j->mapped, what);
  for (size_t i = 0; i < j->step_count; i++) {
    ist__print_receipt(j->cmd, &j->steps[i].receipt, j->steps[i].from,
                       j->steps[i].to, what, false);
  }
  if (!ist__place_is_file(j->to.kind)) return;
  FILE *file = j->cmd->report;
  fprintf(file, "%swritten%s  ", ist__style_bold(j->cmd),
          ist__style_end(j->cmd));
  ist__print_safe(file, j->at);
  fputs(" -> ", file);
  ist__print_safe(file, j->cmd->operands.at[1]);
  fprintf(file, "\n  %s, %" PRIu64 " bytes\n", spec, file_bytes(j));
}

int ist__verb_move(ist__cmd *cmd) {
  journey j = {.cmd = cmd};
  ist_error err = {0};
  if (cmd->operands.count != 2) {
    return ist__cmd_usage(cmd, "it needs SRC and DST, and %zu were given",
                          cmd->operands.count);
  }
  if (cmd->saturate && cmd->astype == NULL) {
    return ist__cmd_usage(cmd, "--saturate needs --astype DTYPE");
  }
  j.at = cmd->operands.at[0];
  if (ist__cmd_place(cmd->operands.at[0], &j.from, &err) != IST_OK ||
      ist__cmd_output(cmd->operands.at[1], &j.to, &err) != IST_OK) {
    return ist__cmd_fail(cmd, &err);
  }
  if (j.to.kind == IST_PLACE_STREAM) cmd->report = stderr;
  size_t room = (cmd->vias.count + 3) * sizeof *j.steps;
  j.steps = ist_allocate(cmd->context, room, _Alignof(step));
  ist_code code =
      j.steps != NULL
          ? go(&j, &err)
          : ist_error_set(&err, IST_ERR_NO_ALLOCATION,
                          "memory for the steps was not to be had: the "
                          "allocator gave none; needs %zu bytes",
                          room);
  if (code == IST_OK && cmd->json) say_json(&j);
  if (code == IST_OK && !cmd->json) say_text(&j);
  ist_tensor_release(j.tensor);
  ist_deallocate(cmd->context, j.steps);
  return code == IST_OK ? IST__EXIT_OK : ist__cmd_fail(cmd, &err);
}
