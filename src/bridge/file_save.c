// SPDX-License-Identifier: Apache-2.0
// file_save.c: tensors become a file, one after the other, so that at most one
// of them is in memory twice.

#include <string.h>

#include "base/alloc.h"
#include "base/watch.h"
#include "bridge/tensor.h"
#include "dlpack/dlpack_read.h"
#include "io/dense.h"
#include "io/file_kind.h"
#include "io/label.h"
#include "io/npy.h"
#include "io/output.h"
#include "io/safetensors.h"
#include "tensor/ranges.h"

// One call of save.
typedef struct saving {
  const ist__env *env;
  const char *path;
  const char *const *names;
  ist_tensor *const *tensors;
  size_t count;
  ist__watch watch;
  ist__output output;
} saving;

// Each tensor is two hops: made dense, then written. Nobody is told of more
// bytes than can be counted.
static ist_code begin_watch(saving *s, const ist_options *options,
                            ist_error *err) {
  uint64_t sum = 0;
  bool fits = true;
  for (size_t i = 0; i < s->count; i++) {
    fits = fits && s->tensors[i]->nbytes <= UINT64_MAX / 2 - sum;
    if (fits) sum += s->tensors[i]->nbytes;
  }
  return ist__watch_begin(&s->watch, options, fits ? sum : 0, 2, err);
}

// The bytes of one tensor, and what they hold on to.
typedef struct source {
  DLManagedTensorVersioned *managed;
  ist__view view;
  ist__dense dense;
} source;

static void source_end(const ist__env *env, source *s) {
  ist__dense_free(env, &s->dense);
  if (s->managed != NULL) {
    ist__dlpack_consume((ist__managed){.versioned = s->managed});
  }
  s->managed = NULL;
}

// Exports a tensor to memory of this process and makes it dense, as a hop.
static ist_code source_begin(saving *s, ist_tensor *tensor, bool npy,
                             source *out, ist_error *err) {
  ist_grant grant;
  memset(out, 0, sizeof *out);
  const ist_device *host =
      ist_context_host(ist__tensor_backend(tensor)->context);
  ist_options options = {.struct_size = sizeof options,
                         .consumer = ist__device_capability(host, 0)};
  ist_code code = ist_tensor_export(tensor, &options, &out->managed, NULL, err);
  if (code == IST_OK) {
    code = ist__dlpack_read((ist__managed){.versioned = out->managed}, NULL,
                            &out->view, &grant, err);
  }
  if (code == IST_OK) {
    ist__dense_wish wish = {npy, npy, &s->watch};
    s->watch.hop_bytes = tensor->nbytes;
    code = ist__dense_make(s->env, &out->view, &wish, &out->dense, err);
  }
  if (code != IST_OK) source_end(s->env, out);
  return code;
}

// Writes the bytes of a tensor, as a hop.
static ist_code write_bytes(saving *s, const ist__dense *dense,
                            ist_error *err) {
  const char *at = dense->bytes;
  uint64_t size = dense->nbytes;
  uint64_t part = ist__watch_is_on(&s->watch) ? IST__ROUND_BYTES : size;
  for (uint64_t done = 0; done < size;) {
    if (part > size - done) part = size - done;
    ist_code code = ist__output_write(&s->output, at + done, part, err);
    if (code != IST_OK) return code;
    done += part;
    if (!ist__watch_step(&s->watch, done, size)) {
      return ist__watch_error(&s->watch, err);
    }
  }
  return IST_OK;
}

static ist_code save_npy(saving *s, ist_error *err) {
  source from;
  char header[IST__NPY_HEADER_ROOM];
  size_t size = 0;
  ist_code code = source_begin(s, s->tensors[0], true, &from, err);
  if (code != IST_OK) return code;
  ist__entry entry = {.name = "",
                      .dtype = from.view.dtype,
                      .column_major = from.dense.column_major,
                      .ndim = from.view.ndim,
                      .shape = from.view.shape};
  code = ist__npy_header_write(&entry, s->path, header, &size, err);
  if (code == IST_OK) code = ist__output_open(s->env, s->path, &s->output, err);
  if (code == IST_OK) code = ist__output_write(&s->output, header, size, err);
  if (code == IST_OK) code = write_bytes(s, &from.dense, err);
  source_end(s->env, &from);
  return code;
}

static ist_code plan_safetensors(const saving *s, ist__safetensors_plan *out,
                                 ist_error *err) {
  size_t size = s->count * sizeof(ist__entry);
  ist__entry *entries = ist__alloc_zero(s->env, size);
  if (entries == NULL) return ist__error_memory(err, "a header", size);
  for (size_t i = 0; i < s->count; i++) {
    const DLTensor *view = ist_tensor_view(s->tensors[i]);
    entries[i] = (ist__entry){.name = s->names[i],
                              .dtype = view->dtype,
                              .ndim = view->ndim,
                              .shape = view->shape};
  }
  ist_code code =
      ist__safetensors_plan_make(s->env, s->path, entries, s->count, out, err);
  ist__free(s->env, entries);
  return code;
}

static ist_code write_safetensors(saving *s, const ist__safetensors_plan *plan,
                                  ist_error *err) {
  ist_code code = ist__output_open(s->env, s->path, &s->output, err);
  if (code == IST_OK) {
    code = ist__output_write(&s->output, plan->header, plan->header_size, err);
  }
  for (size_t i = 0; code == IST_OK && i < s->count; i++) {
    source from;
    code = source_begin(s, s->tensors[plan->order[i]], false, &from, err);
    if (code != IST_OK) break;
    code = write_bytes(s, &from.dense, err);
    source_end(s->env, &from);
  }
  return code;
}

static ist_code save_safetensors(saving *s, ist_error *err) {
  ist__safetensors_plan plan = {0};
  ist_code code = plan_safetensors(s, &plan, err);
  if (code == IST_OK) code = write_safetensors(s, &plan, err);
  ist__safetensors_plan_free(s->env, &plan);
  return code;
}

static ist_code check(const char *path, const char *const *names,
                      ist_tensor *const *tensors, size_t count, bool npy,
                      ist_error *err) {
  const char *wrong = NULL;
  if (count > 0 && tensors == NULL) wrong = "tensors is NULL";
  if (npy && count != 1) wrong = "a .npy file holds one tensor";
  if (!npy && count > 0 && names == NULL) wrong = "names is NULL";
  if (count > SIZE_MAX / sizeof(ist__entry)) wrong = "count is too large";
  for (size_t i = 0; wrong == NULL && i < count; i++) {
    if (tensors[i] == NULL) wrong = "a tensor is NULL";
  }
  if (wrong == NULL) return IST_OK;
  return ist_error_set(err, IST_ERR_ARGUMENT,
                       "cannot write %s: %s, with %zu tensors; needs one "
                       "tensor for .npy, and a name and a tensor for each of "
                       ".safetensors",
                       ist__label_make(path).text, wrong, count);
}

ist_code ist_file_save_with(const char *path, const char *const *names,
                            ist_tensor *const *tensors, size_t count,
                            const ist_options *options, ist_error *err) {
  if (path == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a file could not be written: path is NULL; needs the "
                         "name of a file");
  }
  ist_options known;
  ist_code code =
      ist__options_read(&known, sizeof known, options, "ist_options", err);
  if (code != IST_OK) return code;
  ist__file_kind kind = ist__file_kind_of_name(path);
  if (kind == IST__FILE_UNKNOWN) {
    return ist_error_set(err, IST_ERR_OUTPUT,
                         "cannot write %s: it is named neither .npy nor "
                         ".safetensors; needs the name of a file",
                         ist__label_make(path).text);
  }
  bool npy = kind == IST__FILE_NPY;
  code = check(path, names, tensors, count, npy, err);
  if (code != IST_OK) return code;
  ist__env plain;
  ist__env_init(&plain, NULL);
  saving s = {.env = count == 0
                         ? &plain
                         : ist__backend_env(ist__tensor_backend(tensors[0])),
              .path = path,
              .names = names,
              .tensors = tensors,
              .count = count,
              .output = {.fd = -1}};
  code = begin_watch(&s, &known, err);
  if (code == IST_OK)
    code = npy ? save_npy(&s, err) : save_safetensors(&s, err);
  if (code == IST_OK) code = ist__output_commit(&s.output, err);
  ist__output_discard(&s.output);
  return code;
}

ist_code ist_file_save(const char *path, const char *const *names,
                       ist_tensor *const *tensors, size_t count,
                       ist_error *err) {
  return ist_file_save_with(path, names, tensors, count, NULL, err);
}
