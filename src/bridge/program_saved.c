// SPDX-License-Identifier: Apache-2.0
// program_saved.c: saves programs and loads them again, only where they were
// made for: plugins may crash on bytes of others.

#include "bridge/program_saved.h"

#include <string.h>

#include "backend/block.h"
#include "base/alloc.h"
#include "io/output.h"
#include "io/saved_program.h"

// ---- saving

static ist__saved_span span(const char *text) {
  return (ist__saved_span){text, strlen(text)};
}

static ist_code write_saved(const ist_program *p, const ist__saved *saved,
                            char **out, size_t *out_size, ist_error *err) {
  const ist__env *env = ist__program_env(p);
  size_t arguments = p->input_count + p->output_count;
  size_t room = (arguments + 1) * sizeof(char *);
  const char **names = ist__alloc_zero(env, room);
  if (names == NULL) return ist__error_memory(err, "a program's names", room);
  for (size_t i = 0; i < arguments; i++) names[i] = p->inputs[i].name;
  *out = ist__saved_write(env, saved, names, out_size);
  ist__free(env, names);
  if (*out != NULL) return IST_OK;
  return ist__error_memory(err, "a program's bytes", saved->code.size);
}

ist_code ist__program_to_bytes(const ist_program *p,
                               const ist__program_home *home, char **out,
                               size_t *out_size, ist_error *err) {
  void *bytes = NULL;
  size_t size = 0;
  ist_code code =
      ist__backend_serialize(p->backend, p->program, &bytes, &size, err);
  if (code != IST_OK) return code;
  ist__saved saved = {.replicas = p->replicas,
                      .partitions = p->partitions,
                      .portable = p->portable,
                      .input_count = p->input_count,
                      .output_count = p->output_count,
                      .text = {[IST__SAVED_PLATFORM] = span(home->platform),
                               [IST__SAVED_VERSION] = span(home->version),
                               [IST__SAVED_FILE] = span(home->file),
                               [IST__SAVED_KIND] = span(home->kind),
                               [IST__SAVED_MACHINE] = span(home->machine)},
                      .code = {bytes, size}};
  code = write_saved(p, &saved, out, out_size, err);
  ist__free(ist__program_env(p), bytes);
  return code;
}

static ist_code to_bytes(const ist_program *program, char **out,
                         size_t *out_size, ist_error *err) {
  ist__program_home home;
  ist_code code = ist__program_home_find(program->kind, NULL, &home, err);
  if (code != IST_OK) return code;
  return ist__program_to_bytes(program, &home, out, out_size, err);
}

ist_code ist_program_serialize(const ist_program *program, ist_tensor **out,
                               ist_error *err) {
  if (out != NULL) *out = NULL;
  if (program == NULL || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a program could not be saved: it or out is NULL; "
                         "needs both");
  }
  char *bytes = NULL;
  size_t size = 0;
  ist_code code = to_bytes(program, &bytes, &size, err);
  if (code != IST_OK) return code;
  ist_context *context = program->backend->context;
  ist_spec spec = {.struct_size = sizeof spec,
                   .dtype = {kDLUInt, 8, 1},
                   .ndim = 1,
                   .shape = {(int64_t)size}};
  ist_tensor *tensor = NULL;
  code = ist_tensor_empty(context, &spec, 0, &tensor, err);
  if (code == IST_OK) {
    const DLTensor *view = ist_tensor_view(tensor);
    memcpy((char *)view->data + view->byte_offset, bytes, size);
    *out = tensor;
  }
  ist__free(ist__program_env(program), bytes);
  return code;
}

ist_code ist_program_save(const ist_program *program, const char *path,
                          ist_error *err) {
  if (program == NULL || path == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a program could not be saved: it or path is NULL; "
                         "needs both");
  }
  char *bytes = NULL;
  size_t size = 0;
  const ist__env *env = ist__program_env(program);
  ist__output output;
  ist_code code = to_bytes(program, &bytes, &size, err);
  if (code == IST_OK) {
    code = ist__output_open(env, path, &output, err);
    if (code == IST_OK) {
      code = ist__output_write(&output, bytes, size, err);
      if (code == IST_OK) {
        code = ist__output_commit(&output, err);
      } else {
        ist__output_discard(&output);
      }
    }
  }
  ist__free(env, bytes);
  return code;
}

// ---- loading

static const char *const text_names[IST__SAVED_TEXTS] = {
    "platform", "version", "plugin's code", "kind of device", "processor"};

static ist_code check_home(const ist__program_wish *wish,
                           const ist__saved *saved,
                           const ist__program_home *home, ist_error *err) {
  const char *here[IST__SAVED_TEXTS] = {home->platform, home->version,
                                        home->file, home->kind, home->machine};
  for (size_t i = 0; i < IST__SAVED_TEXTS; i++) {
    ist__saved_span was = saved->text[i];
    if (ist__saved_equals(was, here[i])) continue;
    return ist_error_set(err, IST_ERR_PROGRAM_VERSION,
                         "%s could not be loaded: it was compiled for the %s "
                         "\"%.*s\", and %s has \"%.80s\"; needs the plugin "
                         "and machine that it was compiled with, or to be "
                         "compiled again",
                         wish->options.name, text_names[i],
                         was.size < 80 ? (int)was.size : 80, was.at,
                         wish->device->backend->facts.name, here[i]);
  }
  return IST_OK;
}

static ist_code check_counts(const ist__program_wish *wish,
                             const ist__saved *saved, ist_error *err) {
  bool same =
      (wish->replicas == 0 || wish->replicas == saved->replicas) &&
      (wish->partitions == 0 || wish->partitions == saved->partitions) &&
      (!wish->options.portable || saved->portable);
  bool few = saved->replicas <= IST_MAX_PROGRAM_DEVICES &&
             saved->partitions <= IST_MAX_PROGRAM_DEVICES;
  if (same && few) return IST_OK;
  return ist_error_set(err, IST_ERR_ARGUMENT,
                       "%s could not be loaded: it was compiled for %d "
                       "replicas of %d partitions%s, and the options ask for "
                       "others; needs options that leave them out, or the same",
                       wish->options.name, (int)saved->replicas,
                       (int)saved->partitions,
                       saved->portable ? ", portable" : "");
}

static ist_code check_arguments(const ist_program *p, const ist__saved *saved,
                                const char *name, ist_error *err) {
  if (p->input_count == saved->input_count &&
      p->output_count == saved->output_count) {
    return IST_OK;
  }
  return ist_error_set(err, IST_ERR_PROGRAM,
                       "%s could not be loaded: it takes and gives %zu and "
                       "%zu tensors, and was saved with %zu and %zu; needs "
                       "the bytes that were saved",
                       name, p->input_count, p->output_count,
                       saved->input_count, saved->output_count);
}

static void name_arguments(ist_program *p, const ist__saved *saved) {
  ist__saved_span names = saved->names;
  for (size_t i = 0; i < p->input_count + p->output_count; i++) {
    ist__saved_span name = ist__saved_next_name(&names);
    size_t n =
        name.size < IST__ARGUMENT_NAME ? name.size : IST__ARGUMENT_NAME - 1;
    char *to = p->inputs[i].name;
    memcpy(to, name.at, n);
    to[n] = '\0';
    // They stand in errors, which are one line.
    for (size_t k = 0; k < n; k++) {
      if ((unsigned char)to[k] < ' ' || to[k] == 0x7f) to[k] = '?';
    }
  }
}

ist_code ist__program_from_bytes(const ist__program_wish *wish,
                                 const ist__program_home *home,
                                 const void *bytes, size_t size,
                                 ist_program **out, ist_error *err) {
  ist__saved saved;
  const char *why = ist__saved_read(bytes, size, &saved);
  if (why != NULL) {
    return ist_error_set(err, IST_ERR_PROGRAM,
                         "%s could not be loaded: it is %s; needs the bytes "
                         "that ist_program_save or isthmus compile wrote",
                         wish->options.name, why);
  }
  ist_code code = check_home(wish, &saved, home, err);
  if (code == IST_OK) code = check_counts(wish, &saved, err);
  if (code != IST_OK) return code;
  ist__program_wish known = *wish;
  known.replicas = saved.replicas;
  known.partitions = saved.partitions;
  known.options.portable = saved.portable;
  if (saved.portable && known.options.devices != NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "%s could not be loaded: it is portable, and a list "
                         "of devices was given; needs none",
                         wish->options.name);
  }
  ist_program *p = NULL;
  code = ist__program_make(&known, saved.code.at, saved.code.size,
                           ist__backend_load, &p, err);
  if (code != IST_OK) return code;
  code = check_arguments(p, &saved, wish->options.name, err);
  if (code != IST_OK) {
    ist_program_release(p);
    return code;
  }
  name_arguments(p, &saved);
  *out = p;
  return IST_OK;
}

ist_code ist_program_load(const ist_device *device, const void *bytes,
                          size_t size, const ist_program_options *options,
                          ist_program **out, ist_error *err) {
  if (out != NULL) *out = NULL;
  if (device == NULL || bytes == NULL || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a program could not be loaded: device, bytes or out "
                         "is NULL; needs all three");
  }
  ist__program_wish wish;
  ist_code code = ist__program_wish_read(device, options, &wish, err);
  if (code != IST_OK) return code;
  // Only what the folder knows of the plugin's code is read from it.
  char room[4096];
  const char *folder = ist__cache_folder_of(&wish.options, room, sizeof room);
  ist__program_home home;
  code = ist__program_home_find(device, folder, &home, err);
  if (code != IST_OK) return code;
  return ist__program_from_bytes(&wish, &home, bytes, size, out, err);
}
