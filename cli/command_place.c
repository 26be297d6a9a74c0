// SPDX-License-Identifier: Apache-2.0
// command_place.c: what the places on the command line stand for: devices of
// backends, opened once each, and tensors of files.

#include <string.h>
#include <sys/stat.h>

#include "command.h"

ist_code ist__cmd_place(const char *text, ist_place *out, ist_error *err) {
  memset(out, 0, sizeof *out);
  out->struct_size = sizeof *out;
  return ist_place_parse(text, out, err);
}

ist_code ist__cmd_output(const char *text, ist_place *out, ist_error *err) {
  struct stat facts;
  ist_code code = ist__cmd_place(text, out, err);
  const char *path = code == IST_OK ? out->path : text;
  bool named = code != IST_OK || out->kind == IST_PLACE_NPY ||
               out->kind == IST_PLACE_SAFETENSORS;
  if (named && stat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) {
    return ist_error_set(err, IST_ERR_OUTPUT,
                         "cannot write %s: it is a folder; needs the name of a "
                         "file",
                         path);
  }
  return code;
}

bool ist__place_is_file(ist_place_kind kind) {
  return kind == IST_PLACE_NPY || kind == IST_PLACE_SAFETENSORS ||
         kind == IST_PLACE_STREAM;
}

ist_code ist__cmd_backend(ist__cmd *cmd, const char *kind, const char *path,
                          ist_backend **out, ist_error *err) {
  *out = NULL;
  for (size_t i = 0; i < cmd->opened_count; i++) {
    ist__opened *o = &cmd->opened[i];
    if (strcmp(o->kind, kind) == 0 && strcmp(o->path, path) == 0) {
      *out = o->backend;
      return IST_OK;
    }
  }
  ist__opened *o = &cmd->opened[cmd->opened_count];
  if (cmd->opened_count == cmd->opened_room || strlen(path) >= sizeof o->path) {
    return ist_error_set(err, IST_ERR_PLACE,
                         "%s could not be opened: its path is too long or too "
                         "many are open; needs fewer",
                         kind);
  }
  ist_backend_options options = {.struct_size = sizeof options,
                                 .path = path[0] == '\0' ? NULL : path,
                                 .options = cmd->options,
                                 .option_count = cmd->option_count,
                                 .trusted = cmd->trusted,
                                 .reports = cmd->reports};
  // The options of the command line are for devices, and host has none.
  if (strcmp(kind, "host") == 0) options.option_count = 0;
  ist__cmd_progress(cmd, "opening %s", path[0] == '\0' ? kind : path);
  ist_code code =
      ist_backend_open(cmd->context, kind, &options, &o->backend, err);
  ist__cmd_progress(cmd, NULL);
  if (code != IST_OK) return code;
  o->kind = kind;
  strcpy(o->path, path);
  cmd->opened_count++;
  *out = o->backend;
  return IST_OK;
}

static ist_code find_device(ist_backend *backend, size_t index,
                            const char *text, const ist_device **out,
                            ist_error *err) {
  *out = ist_backend_device(backend, index);
  if (*out != NULL) return IST_OK;
  ist_backend_info info = {.struct_size = sizeof info};
  (void)ist_backend_describe(backend, &info, NULL);
  return ist_error_set(err, IST_ERR_NO_DEVICE,
                       "%s: there is no device %zu; needs one of the %zu that "
                       "%s has, counted from 0",
                       text, index, info.device_count, info.name);
}

static const char *kind_name(ist_place_kind kind) {
  return kind == IST_PLACE_PJRT ? "pjrt" : "template";
}

ist_code ist__cmd_target(ist__cmd *cmd, const char *text, bool plugin,
                         ist__target *out, ist_error *err) {
  out->device = NULL;
  out->memory = NULL;
  char prefixed[sizeof out->place.path + 64];
  const char *name = text;
  if (plugin && strncmp(text, "pjrt:", 5) != 0) {
    int length = snprintf(prefixed, sizeof prefixed, "pjrt:%s", text);
    if (length < (int)sizeof prefixed) name = prefixed;
  }
  ist_code code = ist__cmd_place(name, &out->place, err);
  if (code != IST_OK) return code;
  if (ist__place_is_file(out->place.kind)) {
    return ist_error_set(
        err, IST_ERR_PLACE,
        "%s could not be read as a place: a file stands where a device is "
        "needed; needs host, template or pjrt:PLUGIN.so",
        text);
  }
  if (out->place.memory[0] != '\0') out->memory = out->place.memory;
  if (out->place.kind == IST_PLACE_HOST) {
    out->device = ist_context_host(cmd->context);
    return IST_OK;
  }
  ist_backend *backend = NULL;
  code = ist__cmd_backend(cmd, kind_name(out->place.kind), out->place.path,
                          &backend, err);
  if (code != IST_OK) return code;
  return find_device(backend, out->place.device, text, &out->device, err);
}

ist_code ist__cmd_load(ist__cmd *cmd, const char *text, ist_tensor **out,
                       ist_error *err) {
  *out = NULL;
  ist_place place;
  ist_file *file = NULL;
  ist_code code = ist__cmd_place(text, &place, err);
  if (code != IST_OK) return code;
  if (!ist__place_is_file(place.kind)) {
    return ist_error_set(
        err, IST_ERR_PLACE,
        "%s could not be read as a place: a device holds no tensor yet; needs "
        "FILE.npy, FILE.safetensors[:TENSOR] or -",
        text);
  }
  ist_file_options options = {.struct_size = sizeof options,
                              .dtype = cmd->dtype};
  if (place.kind == IST_PLACE_STREAM) {
    code = ist__cmd_stdin_file(cmd, &options, &file, err);
  } else {
    code = ist_file_open(cmd->context, place.path, &options, &file, err);
  }
  if (code != IST_OK) return code;
  code = ist_file_tensor(file, place.tensor[0] == '\0' ? NULL : place.tensor,
                         out, err);
  ist_file_release(file);
  return code;
}
