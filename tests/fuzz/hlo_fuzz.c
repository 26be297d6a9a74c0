// SPDX-License-Identifier: Apache-2.0
// hlo_fuzz.c: any bytes as a plugin's optimized program are refused, or every
// shape that is told can be, and the signature made of them holds only tensors
// that can be.

#include <string.h>

#include "backend/pjrt/hlo_reader.h"
#include "backend/pjrt/signature.h"
#include "base/alloc.h"
#include "fuzz/fuzz_input.h"
#include "tensor/view.h"

typedef struct counts {
  size_t inputs;
  size_t outputs;
} counts;

static bool check(void *self, bool is_result, const ist__hlo_shape *shape) {
  counts *found = self;
  size_t tiles = 0;
  if (is_result) {
    found->outputs++;
  } else {
    found->inputs++;
  }
  require(shape->ndim >= 0 && shape->ndim <= IST_MAX_NDIM);
  for (int32_t i = 0; i < shape->ndim; i++) {
    require(shape->dims[i] >= 0);
    if (!shape->has_order) continue;
    int64_t d = shape->minor_to_major[i];
    require(d >= 0 && d < shape->ndim);
    for (int32_t k = 0; k < i; k++) require(shape->minor_to_major[k] != d);
  }
  require(shape->tile_count <= IST_HLO_TILES);
  for (size_t i = 0; i < shape->tile_count; i++) tiles += shape->tile_ranks[i];
  require(tiles <= IST_HLO_TILE_DIMS);
  require(ist__hlo_pjrt_type(shape->type) >= 0);
  return true;
}

static void check_signature(const uint8_t *data, size_t size, counts found) {
  ist__env env;
  ist_error err = {0};
  ist__env_init(&env, NULL);
  ist__pjrt_client client = {.env = &env, .plugin.pjrt.name = "pjrt:fuzz"};
  ist__pjrt_signature *signature = NULL;
  ist_code code = ist__pjrt_signature_parse(&client, (const char *)data, size,
                                            found.outputs, &signature, &err);
  if (code != IST_OK) {
    require(signature == NULL && strchr(err.message, '\n') == NULL);
    return;
  }
  require(signature->input_count == found.inputs);
  require(signature->output_count == found.outputs);
  for (size_t i = 0; i < found.inputs + found.outputs; i++) {
    ist_spec *spec = &signature->specs[i];
    DLTensor tensor = {.device = {kDLCPU, 0},
                       .ndim = spec->ndim,
                       .dtype = spec->dtype,
                       .shape = spec->shape,
                       .strides = spec->strides};
    ist__view view;
    require(ist__view_check(&tensor, false, false, &view, &err) == IST_OK);
    require((view.layout & ~(uint32_t)IST_LAYOUT_PERMUTED) == 0);
  }
  ist__free(&env, signature);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  counts found = {0};
  if (ist__hlo_read(data, size, check, &found)) {
    check_signature(data, size, found);
  }
  return 0;
}
