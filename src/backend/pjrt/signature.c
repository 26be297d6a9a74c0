// SPDX-License-Identifier: Apache-2.0
// signature.c: learns a program's signature from bytes that nobody trusts.

#include "backend/pjrt/signature.h"

#include <stdio.h>
#include <string.h>

#include "backend/pjrt/buffer.h"
#include "backend/pjrt/hlo_reader.h"
#include "base/alloc.h"
#include "tensor/dtype.h"
#include "tensor/layout.h"
#include "tensor/view.h"

// More bytes than this are no description of a program that we compiled.
#define MAX_OPTIMIZED ((size_t)1 << 31)

// Fills specs from the shapes, or only counts them while signature is NULL.
typedef struct learner {
  const ist__pjrt *pjrt;
  ist__pjrt_signature *signature;
  size_t inputs;
  size_t outputs;
  ist_error *err;
  bool failed;
} learner;

static const ist__dtype *dtype_of(int32_t xla_type) {
  int32_t type = ist__hlo_pjrt_type(xla_type);
  for (int32_t n = 0; type != 0 && n < ist__dtype_count(); n++) {
    if (ist__dtype_at(n)->pjrt == type) return ist__dtype_at(n);
  }
  return NULL;
}

// How a shape lies; what has no layout is row-major. False, and why in
// out->why, for a layout that cannot be.
static bool layout_of(const ist__hlo_shape *shape, ist__told_layout *out) {
  int64_t row_major[IST_MAX_NDIM];
  for (int32_t i = 0; i < shape->ndim; i++) {
    row_major[i] = shape->ndim - 1 - i;
  }
  if (!shape->has_order && shape->tile_count > 0) {
    snprintf(out->why, sizeof out->why, "tiled in no order of dimensions");
    return false;
  }
  ist__tiling tiling = {shape->ndim,
                        shape->dims,
                        shape->has_order ? shape->minor_to_major : row_major,
                        shape->tile_dims,
                        shape->tile_ranks,
                        shape->tile_count,
                        1};
  return ist__told_layout_read(&tiling, out);
}

// Fills in the spec and the layout of a shape; at: of inputs and outputs.
static ist_code spec_of(const learner *l, const ist__hlo_shape *shape,
                        bool is_input, size_t index, size_t at) {
  const ist__pjrt *pjrt = l->pjrt;
  ist_error *err = l->err;
  ist_spec *out = &l->signature->specs[at];
  ist__told_layout *layout = &l->signature->arguments[at].layout;
  const char *what = is_input ? "input" : "output";
  const ist__dtype *dtype = dtype_of(shape->type);
  if (shape->type == IST_HLO_TUPLE) {
    return ist_error_set(err, IST_ERR_TUPLE,
                         "%s: %s %zu of the program is a tuple; needs tensors",
                         pjrt->name, what, index);
  }
  if (dtype == NULL) {
    return ist_error_set(err, IST_ERR_TARGET_DTYPE,
                         "%s: %s %zu of the program has XLA type %d; needs a "
                         "type that DLPack has",
                         pjrt->name, what, index, (int)shape->type);
  }
  // An output tells its true extents when it is there; its bound is told here.
  if (shape->dynamic && is_input) {
    return ist_error_set(err, IST_ERR_DYNAMIC_SHAPE,
                         "%s: %s %zu of the program has a dynamic dimension; "
                         "needs a static shape",
                         pjrt->name, what, index);
  }
  ist__view checked;
  DLDataType type = {dtype->code, dtype->bits, 1};
  ist_code code =
      ist__view_dense(type, shape->ndim, shape->dims, false, &checked, err);
  if (code != IST_OK) return code;
  *out = (ist_spec){.struct_size = sizeof *out, .dtype = type};
  out->ndim = shape->ndim;
  memcpy(out->shape, shape->dims, sizeof out->shape);
  memcpy(out->strides, checked.strides, sizeof out->strides);
  if (!layout_of(shape, layout)) {
    return ist_error_set(err, IST_ERR_TARGET_LAYOUT,
                         "%s: %s %zu of the program is %s; needs a layout "
                         "that can be followed",
                         pjrt->name, what, index, layout->why);
  }
  // What lies in tiles is told as what it is copied in from and out to.
  if (layout->dense) {
    ist__layout_from_minor_to_major(shape->ndim, shape->dims, layout->order,
                                    out->strides);
  }
  return IST_OK;
}

static bool learn(void *self, bool is_result, const ist__hlo_shape *shape) {
  learner *l = self;
  size_t index = is_result ? l->outputs++ : l->inputs++;
  ist__pjrt_signature *p = l->signature;
  if (p == NULL) return true;
  size_t at = is_result ? p->input_count + index : index;
  if (at >= p->input_count + p->output_count) return false;
  if (spec_of(l, shape, !is_result, index, at) == IST_OK) {
    const ist_spec *spec = &p->specs[at];
    p->arguments[at].dtype = dtype_of(shape->type);
    p->arguments[at].dynamic = shape->dynamic;
    p->arguments[at].row_major =
        ist__layout_of(spec->ndim, spec->shape, spec->strides) ==
        IST_LAYOUT_ROW_MAJOR;
    return true;
  }
  l->failed = true;
  return false;
}

static ist_code cannot_learn(const ist__pjrt *pjrt, const char *why,
                             ist_error *err) {
  return ist_error_set(err, IST_ERR_NO_PROGRAMS,
                       "%s: the program cannot be run safely: what it takes "
                       "cannot be learned: %s; needs "
                       "PJRT_Executable_OptimizedProgram in the format "
                       "hlo_with_config",
                       pjrt->name, why);
}

// Gives the bytes of the compiled program's description.
static ist_code read_optimized(const ist__pjrt_client *client,
                               PJRT_Executable *executable, char **out,
                               size_t *out_size, ist_error *err) {
  static const char wanted[] = "hlo_with_config";
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  PJRT_Program text = {.struct_size = PJRT_Program_SIZE};
  IST_PJRT_ARGS(PJRT_Executable_OptimizedProgram_Args, get);
  get.executable = executable;
  get.program = &text;
  ist_error cause;
  // Without room it tells the size and the format.
  if (ist__pjrt_call(pjrt, IST_SLOT_Executable_OptimizedProgram, &get,
                     &cause) != IST_OK) {
    if (cause.code == IST_ERR_INTERNAL) {
      if (err != NULL) *err = cause;
      return cause.code;
    }
    return cannot_learn(pjrt, cause.message, err);
  }
  if (text.format == NULL || text.format_size != sizeof wanted - 1 ||
      memcmp(text.format, wanted, sizeof wanted - 1) != 0 ||
      text.code_size == 0 || text.code_size > MAX_OPTIMIZED) {
    return cannot_learn(pjrt, "another format or size", err);
  }
  size_t room = text.code_size;
  char *code = ist__alloc(client->env, room, 1);
  if (code == NULL) return ist__error_memory(err, "a program's shape", room);
  text.code = code;
  ist_code result =
      ist__pjrt_call(pjrt, IST_SLOT_Executable_OptimizedProgram, &get, err);
  if (result == IST_OK && text.code_size > room) {
    result = cannot_learn(pjrt, "its size has changed", err);
  }
  if (result != IST_OK) {
    ist__free(client->env, code);
    return result;
  }
  *out = code;
  *out_size = text.code_size;
  return IST_OK;
}

ist_code ist__pjrt_signature_parse(const ist__pjrt_client *client,
                                   const char *bytes, size_t size,
                                   size_t outputs, ist__pjrt_signature **out,
                                   ist_error *err) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  learner count = {.pjrt = pjrt};
  if (!ist__hlo_read(bytes, size, learn, &count)) {
    return cannot_learn(pjrt, "its bytes are malformed", err);
  }
  if (count.outputs != outputs) {
    return cannot_learn(pjrt, "it tells two numbers of outputs", err);
  }
  // The bytes are not fewer than the arguments, so that no size overflows.
  size_t all = count.inputs + outputs;
  size_t room = sizeof(ist__pjrt_signature) +
                all * (sizeof(ist_spec) + sizeof(ist__pjrt_argument));
  ist__pjrt_signature *p = ist__alloc_zero(client->env, room);
  if (p == NULL) return ist__error_memory(err, "a program", room);
  p->input_count = count.inputs;
  p->output_count = outputs;
  p->arguments = (ist__pjrt_argument *)(void *)(p->specs + all);
  ist_error cause;
  learner fill = {.pjrt = pjrt, .signature = p, .err = &cause};
  if (!ist__hlo_read(bytes, size, learn, &fill)) {
    ist__free(client->env, p);
    if (!fill.failed) return cannot_learn(pjrt, "its bytes differ", err);
    return ist__error_native(err, cause.code, 0, "%s", cause.message);
  }
  *out = p;
  return IST_OK;
}

ist_code ist__pjrt_executable_of(const ist__pjrt_client *client,
                                 PJRT_LoadedExecutable *loaded,
                                 PJRT_Executable **out, ist_error *err) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  IST_PJRT_ARGS(PJRT_LoadedExecutable_GetExecutable_Args, get);
  get.loaded_executable = loaded;
  ist_code code =
      ist__pjrt_call(pjrt, IST_SLOT_LoadedExecutable_GetExecutable, &get, err);
  if (code != IST_OK) return code;
  if (get.executable == NULL) {
    return ist_error_set(
        err, IST_ERR_PLUGIN,
        "%s: %s gave no executable and no error; needs a working plugin",
        pjrt->name,
        ist__pjrt_slot_name(IST_SLOT_LoadedExecutable_GetExecutable));
  }
  *out = get.executable;
  return IST_OK;
}

void ist__pjrt_executable_end(const ist__pjrt_client *client,
                              PJRT_Executable *executable) {
  IST_PJRT_ARGS(PJRT_Executable_Destroy_Args, destroy);
  destroy.executable = executable;
  ist__pjrt_end(&client->plugin.pjrt, IST_SLOT_Executable_Destroy, &destroy);
}

ist_code ist__pjrt_signature_read(const ist__pjrt_client *client,
                                  PJRT_LoadedExecutable *loaded,
                                  ist__pjrt_signature **out, ist_error *err) {
  char *bytes = NULL;
  size_t size = 0;
  PJRT_Executable *executable = NULL;
  ist_code code = ist__pjrt_executable_of(client, loaded, &executable, err);
  if (code != IST_OK) return code;
  IST_PJRT_ARGS(PJRT_Executable_NumOutputs_Args, count);
  count.executable = executable;
  code = ist__pjrt_call(&client->plugin.pjrt, IST_SLOT_Executable_NumOutputs,
                        &count, err);
  if (code == IST_OK) {
    code = read_optimized(client, executable, &bytes, &size, err);
  }
  if (code == IST_OK) {
    code = ist__pjrt_signature_parse(client, bytes, size, count.num_outputs,
                                     out, err);
  }
  ist__free(client->env, bytes);
  ist__pjrt_executable_end(client, executable);
  return code;
}
