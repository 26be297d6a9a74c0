// SPDX-License-Identifier: Apache-2.0
// file_save.c: tensors become a file, one after the other, so that at most one
// of them is in memory twice.

#include <string.h>

#include "base/alloc.h"
#include "bridge/tensor.h"
#include "dlpack/dlpack_read.h"
#include "io/dense.h"
#include "io/file_kind.h"
#include "io/label.h"
#include "io/npy.h"
#include "io/output.h"
#include "io/safetensors.h"

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

// Exports a tensor to memory of this process and makes it dense.
static ist_code source_begin(const ist__env *env, ist_tensor *tensor, bool npy,
                             source *out, ist_error *err) {
  ist_grant grant;
  memset(out, 0, sizeof *out);
  const ist_device *host =
      ist_context_host(ist__tensor_backend(tensor)->context);
  ist_options options = {.struct_size = sizeof options,
                         .consumer = ist__device_capability(host, 0)};
  ist_code code = ist_tensor_export(tensor, &options, &out->managed, NULL, err);
  if (code == IST_OK) {
    code = ist__dlpack_read((ist__managed){.versioned = out->managed},
                            IST_GRANT_FROM_SOURCE, &out->view, &grant, err);
  }
  if (code == IST_OK) {
    code = ist__dense_make(env, &out->view, npy, npy, &out->dense, err);
  }
  if (code != IST_OK) source_end(env, out);
  return code;
}

static ist_code save_npy(const ist__env *env, const char *path,
                         ist_tensor *tensor, ist__output *output,
                         ist_error *err) {
  source s;
  char header[IST__NPY_HEADER_ROOM];
  size_t size = 0;
  ist_code code = source_begin(env, tensor, true, &s, err);
  if (code != IST_OK) return code;
  ist__entry entry = {.name = "",
                      .dtype = s.view.dtype,
                      .column_major = s.dense.column_major,
                      .ndim = s.view.ndim,
                      .shape = s.view.shape};
  code = ist__npy_header_write(&entry, path, header, &size, err);
  if (code == IST_OK) code = ist__output_open(env, path, output, err);
  if (code == IST_OK) code = ist__output_write(output, header, size, err);
  if (code == IST_OK) {
    code = ist__output_write(output, s.dense.bytes, s.dense.nbytes, err);
  }
  source_end(env, &s);
  return code;
}

static ist_code plan_safetensors(const ist__env *env, const char *path,
                                 const char *const *names,
                                 ist_tensor *const *tensors, size_t count,
                                 ist__safetensors_plan *out, ist_error *err) {
  size_t size = count * sizeof(ist__entry);
  ist__entry *entries = ist__alloc_zero(env, size);
  if (entries == NULL) return ist__error_memory(err, "a header", size);
  for (size_t i = 0; i < count; i++) {
    const DLTensor *view = ist_tensor_view(tensors[i]);
    entries[i] = (ist__entry){.name = names[i],
                              .dtype = view->dtype,
                              .ndim = view->ndim,
                              .shape = view->shape};
  }
  ist_code code =
      ist__safetensors_plan_make(env, path, entries, count, out, err);
  ist__free(env, entries);
  return code;
}

static ist_code save_safetensors(const ist__env *env, const char *path,
                                 const ist__safetensors_plan *plan,
                                 ist_tensor *const *tensors, size_t count,
                                 ist__output *output, ist_error *err) {
  ist_code code = ist__output_open(env, path, output, err);
  if (code == IST_OK) {
    code = ist__output_write(output, plan->header, plan->header_size, err);
  }
  for (size_t i = 0; code == IST_OK && i < count; i++) {
    source s;
    code = source_begin(env, tensors[plan->order[i]], false, &s, err);
    if (code != IST_OK) break;
    code = ist__output_write(output, s.dense.bytes, s.dense.nbytes, err);
    source_end(env, &s);
  }
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

ist_code ist_file_save(const char *path, const char *const *names,
                       ist_tensor *const *tensors, size_t count,
                       ist_error *err) {
  if (path == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a file could not be written: path is NULL; needs the "
                         "name of a file");
  }
  ist__file_kind kind = ist__file_kind_of_name(path);
  if (kind == IST__FILE_UNKNOWN) {
    return ist_error_set(err, IST_ERR_OUTPUT,
                         "cannot write %s: it is named neither .npy nor "
                         ".safetensors; needs the name of a file",
                         ist__label_make(path).text);
  }
  bool npy = kind == IST__FILE_NPY;
  ist_code code = check(path, names, tensors, count, npy, err);
  if (code != IST_OK) return code;
  ist__env plain;
  ist__env_init(&plain, NULL);
  const ist__env *env =
      count == 0 ? &plain : ist__backend_env(ist__tensor_backend(tensors[0]));
  ist__output output = {.fd = -1};
  ist__safetensors_plan plan = {0};
  if (npy) {
    code = save_npy(env, path, tensors[0], &output, err);
  } else {
    code = plan_safetensors(env, path, names, tensors, count, &plan, err);
    if (code == IST_OK) {
      code = save_safetensors(env, path, &plan, tensors, count, &output, err);
    }
  }
  if (code == IST_OK) code = ist__output_commit(&output, err);
  ist__output_discard(&output);
  ist__safetensors_plan_free(env, &plan);
  return code;
}
