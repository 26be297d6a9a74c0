// SPDX-License-Identifier: Apache-2.0
// probe_program.c: compiles some tiny programs and runs them: what they give,
// what is told of them, whether one can be saved and loaded, and whether an
// input is given away on demand.

#include <string.h>

#include "backend/pjrt/probe_part.h"
#include "backend/pjrt/signature.h"
#include "base/alloc.h"

// x + x of six values; the second program marks its input as one that may be
// overwritten, the third gives five of eight values.
static const char twice[] =
    "func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
    "  %0 = stablehlo.add %x, %x : tensor<2x3xf32>\n"
    "  return %0 : tensor<2x3xf32>\n"
    "}\n";
static const char donating[] =
    "func.func @main(%x: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}) -> "
    "tensor<2x3xf32> {\n"
    "  %0 = stablehlo.add %x, %x : tensor<2x3xf32>\n"
    "  return %0 : tensor<2x3xf32>\n"
    "}\n";
static const char cutting[] =
    "func.func @main(%x: tensor<8xf32>) -> "
    "tensor<?xf32, #stablehlo.bounds<8>> {\n"
    "  %n = stablehlo.constant dense<5> : tensor<i32>\n"
    "  %0 = \"stablehlo.set_dimension_size\"(%x, %n) {dimension = 0 : i64} : "
    "(tensor<8xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<8>>\n"
    "  return %0 : tensor<?xf32, #stablehlo.bounds<8>>\n"
    "}\n";

static const float values[8] = {1.5f, -2, 3, 40000, -5, 6, 7, 8};
static const int64_t eight[1] = {8};
static const ist__pjrt_shape six_floats = {11, 2, ist__probe_six_dims, NULL};
static const ist__pjrt_shape eight_floats = {11, 1, eight, NULL};  // 11: F32

static ist_code compile(ist__probe *p, const char *text, size_t size,
                        PJRT_LoadedExecutable **out, ist_error *err) {
  // executable_build_options (3): one replica (4), one partition (5).
  static const char options[] = {3 << 3 | 2, 4, 4 << 3, 1, 5 << 3, 1};
  static const char format[] = "mlir";
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  *out = NULL;
  PJRT_Program program = {.struct_size = PJRT_Program_SIZE};
  program.code = (char *)(uintptr_t)text;  // it is read only
  program.code_size = size;
  program.format = format;
  program.format_size = sizeof format - 1;
  IST_PJRT_ARGS(PJRT_Client_Compile_Args, args);
  args.client = p->client->client;
  args.program = &program;
  args.compile_options = options;
  args.compile_options_size = sizeof options;
  ist_code code = ist__pjrt_call(pjrt, IST_SLOT_Client_Compile, &args, err);
  if (code != IST_OK) return code;
  if (args.executable == NULL) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "it gave no executable and no error");
  }
  *out = args.executable;
  return IST_OK;
}

static void unload(ist__probe *p, PJRT_LoadedExecutable *loaded) {
  if (loaded == NULL) return;
  IST_PJRT_ARGS(PJRT_LoadedExecutable_Destroy_Args, destroy);
  destroy.executable = loaded;
  ist__pjrt_end(&p->client->plugin.pjrt, IST_SLOT_LoadedExecutable_Destroy,
                &destroy);
}

static PJRT_Executable *executable_of(ist__probe *p,
                                      PJRT_LoadedExecutable *loaded,
                                      ist_error *err) {
  IST_PJRT_ARGS(PJRT_LoadedExecutable_GetExecutable_Args, get);
  get.loaded_executable = loaded;
  ist_code code =
      ist__pjrt_call(&p->client->plugin.pjrt,
                     IST_SLOT_LoadedExecutable_GetExecutable, &get, err);
  if (code != IST_OK) return NULL;
  if (get.executable == NULL) {
    ist_error_set(err, IST_ERR_PLUGIN, "it gave no executable and no error");
  }
  return get.executable;
}

static void destroy_executable(ist__probe *p, PJRT_Executable *executable) {
  IST_PJRT_ARGS(PJRT_Executable_Destroy_Args, destroy);
  destroy.executable = executable;
  ist__pjrt_end(&p->client->plugin.pjrt, IST_SLOT_Executable_Destroy, &destroy);
}

// Runs a program of one input and one output. Without keep the input may be
// given away. Gives *out, ready.
static ist_code run(ist__probe *p, PJRT_LoadedExecutable *loaded,
                    PJRT_Buffer *input, bool keep, PJRT_Buffer **out,
                    ist_error *err) {
  static const int64_t first[1] = {0};
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  PJRT_Buffer *inputs[1] = {input}, *outputs[1] = {NULL};
  PJRT_Buffer *const *argument_lists[1] = {inputs};
  PJRT_Buffer **output_lists[1] = {outputs};
  PJRT_ExecuteOptions options = {.struct_size = PJRT_ExecuteOptions_SIZE};
  options.non_donatable_input_indices = first;
  options.num_non_donatable_input_indices = keep ? 1 : 0;
  IST_PJRT_ARGS(PJRT_LoadedExecutable_Execute_Args, execute);
  execute.executable = loaded;
  execute.options = &options;
  execute.argument_lists = argument_lists;
  execute.num_devices = 1;
  execute.num_args = 1;
  execute.output_lists = output_lists;
  *out = NULL;
  ist_code code =
      ist__pjrt_call(pjrt, IST_SLOT_LoadedExecutable_Execute, &execute, err);
  if (code != IST_OK) return code;
  if (outputs[0] == NULL) {
    return ist_error_set(err, IST_ERR_PLUGIN, "it gave no output");
  }
  code = ist__pjrt_ready(pjrt, outputs[0], err);
  if (code == IST_OK) {
    *out = outputs[0];
  } else {
    ist__pjrt_destroy(pjrt, outputs[0]);
  }
  return code;
}

// Runs x + x and compares; *out_gone: whether the input is deleted afterwards.
static ist_code run_twice(ist__probe *p, PJRT_LoadedExecutable *loaded,
                          bool keep, bool *out_gone, ist_error *err) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  PJRT_Buffer *input = NULL, *output = NULL;
  float want[6];
  for (int i = 0; i < 6; i++) want[i] = 2 * values[i];
  ist_code code = ist__pjrt_from_host(p->client, p->memory, &six_floats, values,
                                      &input, err);
  if (code == IST_OK) code = run(p, loaded, input, keep, &output, err);
  if (code == IST_OK) {
    code = ist__probe_comes_out(p, output, want, sizeof want, err);
  }
  if (input != NULL) *out_gone = ist__probe_is_deleted(p, input);
  ist__pjrt_destroy(pjrt, output);
  ist__pjrt_destroy(pjrt, input);
  return code;
}

// ---- what is told of a program

static void try_types(ist__probe *p, PJRT_LoadedExecutable *loaded) {
  ist_error err;
  ist__pjrt_signature *signature = NULL;
  if (p->found[IST__CAPABILITY_program_types].tried ||
      !ist__probe_tries(p, IST__CAPABILITY_program_types)) {
    return;
  }
  ist_code code = ist__pjrt_signature_read(p->client, loaded, &signature, &err);
  if (code == IST_OK &&
      (signature->input_count != 1 || signature->specs[0].ndim != 2 ||
       signature->specs[0].dtype.code != kDLFloat)) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "it tells of other arguments than the program has");
  }
  ist__free(p->client->env, signature);
  ist__probe_result(p, IST__CAPABILITY_program_types, code, &err);
}

// The layouts are the executable's own: real plugins abort on destroying one.
static void try_parameter_layouts(ist__probe *p, PJRT_Executable *executable) {
  if (!ist__probe_tries(p, IST__CAPABILITY_parameter_layouts)) return;
  ist_error err;
  IST_PJRT_ARGS(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, get);
  get.executable = executable;
  ist_code code = ist__pjrt_function_call(
      &p->client->plugin.pjrt, IST__FUNCTION_parameter_layouts, &get, &err);
  if (code == IST_OK && (get.num_parameters != 1 || get.layouts == NULL ||
                         get.layouts[0] == NULL)) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "it tells of other arguments than the program has");
  }
  if (code == IST_OK) {
    code = ist__probe_layout_text(p, get.layouts[0], "{1,0", &err);
  }
  ist__probe_result(p, IST__CAPABILITY_parameter_layouts, code, &err);
}

// ---- saving

static ist_code load(ist__probe *p, const char *bytes, size_t size,
                     ist_error *err) {
  bool gone = false;
  IST_PJRT_ARGS(PJRT_Executable_DeserializeAndLoad_Args, args);
  args.client = p->client->client;
  args.serialized_executable = bytes;
  args.serialized_executable_size = size;
  ist_code code =
      ist__pjrt_call(&p->client->plugin.pjrt,
                     IST_SLOT_Executable_DeserializeAndLoad, &args, err);
  if (code != IST_OK) return code;
  if (args.loaded_executable == NULL) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "it loaded no executable and told no error");
  }
  code = run_twice(p, args.loaded_executable, true, &gone, err);
  unload(p, args.loaded_executable);
  return code;
}

// Larger than any plugin makes of one addition.
#define MAX_SAVED ((size_t)64 << 20)

static void try_serialize(ist__probe *p, PJRT_Executable *executable) {
  if (!ist__probe_tries(p, IST__CAPABILITY_serialize)) return;
  ist_error err;
  IST_PJRT_ARGS(PJRT_Executable_Serialize_Args, get);
  get.executable = executable;
  ist_code code = ist__pjrt_call(&p->client->plugin.pjrt,
                                 IST_SLOT_Executable_Serialize, &get, &err);
  if (code != IST_OK) {
    ist__probe_fails(p, IST__CAPABILITY_serialize, &err);
    return;
  }
  if (get.serialized_bytes == NULL || get.serialized_bytes_size == 0 ||
      get.serialized_bytes_size > MAX_SAVED) {
    code = ist_error_set(&err, IST_ERR_PLUGIN, "it tells of %zu bytes%s",
                         get.serialized_bytes_size,
                         get.serialized_bytes == NULL ? " and gives none" : "");
  }
  if (code == IST_OK) {
    code = load(p, get.serialized_bytes, get.serialized_bytes_size, &err);
  }
  if (code == IST_OK) {
    ist__probe_works(p, IST__CAPABILITY_serialize, get.serialized_bytes_size);
  } else {
    ist__probe_fails(p, IST__CAPABILITY_serialize, &err);
  }
  if (get.serialized_executable_deleter != NULL) {
    get.serialized_executable_deleter(get.serialized_executable);
  }
}

// ---- running

static void try_donation(ist__probe *p) {
  if (!ist__probe_tries(p, IST__CAPABILITY_donation)) return;
  ist_error err;
  PJRT_LoadedExecutable *loaded = NULL;
  bool gone = false;
  ist_code code = compile(p, donating, sizeof donating - 1, &loaded, &err);
  if (code == IST_OK) code = run_twice(p, loaded, true, &gone, &err);
  if (code == IST_OK && gone) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "an input is given away that must be kept");
  }
  if (code == IST_OK) code = run_twice(p, loaded, false, &gone, &err);
  if (code == IST_OK && !gone) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "an input that may be given away is kept");
  }
  unload(p, loaded);
  ist__probe_result(p, IST__CAPABILITY_donation, code, &err);
}

static ist_code check_dynamic(ist__probe *p, PJRT_Buffer *output,
                              ist_error *err) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  IST_PJRT_ARGS(PJRT_Buffer_DynamicDimensionIndices_Args, which);
  IST_PJRT_ARGS(PJRT_Buffer_UnpaddedDimensions_Args, sizes);
  which.buffer = output;
  sizes.buffer = output;
  ist_code code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_DynamicDimensionIndices,
                                 &which, err);
  if (code == IST_OK) {
    code =
        ist__pjrt_call(pjrt, IST_SLOT_Buffer_UnpaddedDimensions, &sizes, err);
  }
  if (code != IST_OK) return code;
  if (which.num_dynamic_dims != 1 || which.dynamic_dim_indices == NULL ||
      which.dynamic_dim_indices[0] != 0 || sizes.num_dims != 1 ||
      sizes.unpadded_dims == NULL || sizes.unpadded_dims[0] != 5) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "the true extent of a dynamic output is not told");
  }
  return IST_OK;
}

// A plugin that compiles no such program has no such buffers: then what it
// tells of static ones is all there is to know.
static void try_dynamic(ist__probe *p) {
  if (!ist__probe_tries(p, IST__CAPABILITY_dynamic_dimensions)) return;
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  ist_error err;
  PJRT_LoadedExecutable *loaded = NULL;
  PJRT_Buffer *input = NULL, *output = NULL;
  ist_code code = compile(p, cutting, sizeof cutting - 1, &loaded, &err);
  if (code == IST_OK) {
    code = ist__pjrt_from_host(p->client, p->memory, &eight_floats, values,
                               &input, &err);
  }
  if (code == IST_OK) code = run(p, loaded, input, true, &output, &err);
  if (code == IST_ERR_NO_ALLOCATION) p->no_memory = true;
  if (code == IST_OK) {
    code = check_dynamic(p, output, &err);
    if (code != IST_OK) {
      ist__probe_fails(p, IST__CAPABILITY_dynamic_dimensions, &err);
    } else {
      ist__probe_works(p, IST__CAPABILITY_dynamic_dimensions, 0);
    }
  }
  ist__pjrt_destroy(pjrt, output);
  ist__pjrt_destroy(pjrt, input);
  unload(p, loaded);
}

void ist__probe_programs(ist__probe *p) {
  ist_error err;
  PJRT_LoadedExecutable *loaded = NULL;
  bool gone = false;
  if (!ist__probe_tries(p, IST__CAPABILITY_programs)) return;
  ist_code code = compile(p, twice, sizeof twice - 1, &loaded, &err);
  if (code == IST_OK) try_types(p, loaded);
  (void)ist__probe_tries(p, IST__CAPABILITY_programs);
  if (code == IST_OK) code = run_twice(p, loaded, true, &gone, &err);
  ist__probe_result(p, IST__CAPABILITY_programs, code, &err);
  if (code != IST_OK) goto done;
  PJRT_Executable *executable = executable_of(p, loaded, &err);
  if (executable != NULL) {
    try_parameter_layouts(p, executable);
    try_serialize(p, executable);
    destroy_executable(p, executable);
  } else {
    ist__probe_fails(p, IST__CAPABILITY_parameter_layouts, &err);
    ist__probe_fails(p, IST__CAPABILITY_serialize, &err);
  }
  try_donation(p);
  try_dynamic(p);
done:
  unload(p, loaded);
}
