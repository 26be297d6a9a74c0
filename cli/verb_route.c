// SPDX-License-Identifier: Apache-2.0
// verb_route.c: isthmus route A B: the decision how a tensor crosses, without
// doing it. A refusal is the answer then, and the exit code 1.

#include <inttypes.h>
#include <string.h>

#include "backend/backend.h"
#include "command.h"
#include "tensor/view.h"

enum {
  DEFAULT_ADDRESS = 4096
};

// The tensor that --dtype, --shape, --strides and --address describe.
static ist_code described(const ist__cmd *cmd, const ist_device *device,
                          ist__view *out, ist_error *err) {
  int64_t shape[IST_MAX_NDIM], strides[IST_MAX_NDIM];
  size_t ndim = 0, stride_count = 0;
  ist_device_info info = {.struct_size = sizeof info};
  DLTensor tensor = {.shape = shape};
  ist_code code = ist_dtype_parse(cmd->dtype != NULL ? cmd->dtype : "float32",
                                  &tensor.dtype, err);
  if (code == IST_OK) {
    code = ist__cmd_integers("--shape", cmd->shape != NULL ? cmd->shape : "64",
                             shape, IST_MAX_NDIM, &ndim, err);
  }
  if (code == IST_OK && cmd->strides != NULL) {
    code = ist__cmd_integers("--strides", cmd->strides, strides, IST_MAX_NDIM,
                             &stride_count, err);
    tensor.strides = strides;
  }
  int64_t address = DEFAULT_ADDRESS;
  size_t one = 0;
  if (code == IST_OK && cmd->address != NULL) {
    code = ist__cmd_integers("--address", cmd->address, &address, 1, &one, err);
  }
  if (code != IST_OK) return code;
  tensor.data = (void *)(uintptr_t)address;
  if (cmd->strides != NULL && stride_count != ndim) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "--strides and --shape differ: %zu and %zu numbers; "
                         "needs as many",
                         stride_count, ndim);
  }
  tensor.ndim = (int32_t)ndim;
  (void)ist_device_describe(device, &info, NULL);
  tensor.device = info.dl_device;
  // Only the numbers are looked at, whosever address it is.
  if (tensor.device.device_type == 0) tensor.device = (DLDevice){kDLCPU, 0};
  return ist__view_check(&tensor, false, false, out, err);
}

// A source that is a file: its own tensor is asked.
static ist_code plan_tensor(ist__cmd *cmd, const char *source,
                            const ist__target *to, ist__view *view,
                            ist_receipt *out, ist_error *err) {
  ist_tensor *tensor = NULL;
  ist_tensor_info info = {.struct_size = sizeof info};
  ist_options options = cmd->wish;
  options.memory = to->memory;
  ist_code code = ist__cmd_load(cmd, source, &tensor, err);
  if (code == IST_OK) code = ist_tensor_describe(tensor, &info, err);
  if (code == IST_OK) {
    code =
        ist__view_check(ist_tensor_view(tensor), info.padded, false, view, err);
  }
  if (code == IST_OK) {
    code = ist_tensor_plan(tensor, to->device, &options, out, err);
  }
  ist_tensor_release(tensor);
  return code;
}

// A source that is a device: the options describe a tensor there.
static ist_code plan_described(ist__cmd *cmd, const char *source,
                               const ist__target *to, ist__view *view,
                               ist_receipt *out, ist_error *err) {
  ist__target at;
  size_t here = 0, there = 0;
  ist_offer offer = {.struct_size = sizeof offer};
  ist_wish wish = {.struct_size = sizeof wish,
                   .copy = cmd->wish.copy,
                   .read_only = cmd->wish.read_only,
                   .mutable_source = cmd->wish.mutable_source};
  ist_code code = ist__cmd_target(cmd, source, false, &at, err);
  if (code == IST_OK) {
    code = ist__device_find_memory(at.device, at.memory, &here, err);
  }
  if (code == IST_OK) {
    code = ist__device_find_memory(to->device, to->memory, &there, err);
  }
  if (code == IST_OK) code = described(cmd, at.device, view, err);
  if (code != IST_OK) return code;
  const ist_capability *target = ist__device_capability(to->device, there);
  offer.memory = ist__device_capability(at.device, here);
  offer.layout = view->layout;
  offer.dtype = view->dtype_number;
  offer.grant = cmd->wish.grant == IST_GRANT_FROM_SOURCE ? IST_GRANT_WRITABLE
                                                         : cmd->wish.grant;
  offer.address = (uintptr_t)ist__view_address(view);
  offer.nbytes = view->nbytes;
  offer.order = ist__view_order_code(view);
  offer.in_place = at.device == to->device && here == there &&
                   (offer.layout & ~target->layouts) == 0;
  offer.peer = ist_device_backend(at.device) == ist_device_backend(to->device);
  code = ist_route_plan(&offer, target, &wish, out, err);
  (void)snprintf(out->source, sizeof out->source, "%s", source);
  (void)snprintf(out->target, sizeof out->target, "%s", cmd->operands.at[1]);
  return code;
}

static ist_code plan(ist__cmd *cmd, ist__view *view, ist_receipt *out,
                     ist_error *err) {
  ist_place place;
  ist__target to;
  const char *source = cmd->operands.at[0];
  ist_code code = ist__cmd_place(source, &place, err);
  if (code == IST_OK) {
    code = ist__cmd_target(cmd, cmd->operands.at[1], false, &to, err);
  }
  if (code != IST_OK) return code;
  return ist__place_is_file(place.kind)
             ? plan_tensor(cmd, source, &to, view, out, err)
             : plan_described(cmd, source, &to, view, out, err);
}

static void say_json(ist__cmd *cmd, const ist__view *view,
                     const ist_receipt *receipt) {
  ist__json json = {.file = cmd->report};
  char dtype[64] = "";
  (void)ist_dtype_name(view->dtype, dtype, sizeof dtype);
  ist__json_open(&json, NULL, '{');
  ist__json_string(&json, "source", cmd->operands.at[0]);
  ist__json_string(&json, "target", cmd->operands.at[1]);
  ist__json_string(&json, "dtype", dtype);
  ist__json_open(&json, "shape", '[');
  for (int32_t i = 0; i < view->ndim; i++) {
    ist__json_int(&json, NULL, view->shape[i]);
  }
  ist__json_close(&json, ']');
  ist__json_open(&json, "strides", '[');
  for (int32_t i = 0; i < view->ndim; i++) {
    ist__json_int(&json, NULL, view->strides[i]);
  }
  ist__json_close(&json, ']');
  ist__json_uint(&json, "nbytes", view->nbytes);
  ist__json_receipt(&json, "receipt", receipt);
  ist__json_close(&json, '}');
  ist__json_end(&json);
}

static void say_text(ist__cmd *cmd, const ist__view *view,
                     const ist_receipt *receipt) {
  char spec[900];
  char what[1024];
  ist__spec_text(view->dtype, view->ndim, view->shape, spec, sizeof spec);
  (void)snprintf(what, sizeof what, "%s, %" PRIu64 " bytes", spec,
                 view->nbytes);
  ist__print_receipt(cmd, receipt, cmd->operands.at[0], cmd->operands.at[1],
                     what, true);
  if (receipt->route != IST_ROUTE_REFUSE) return;
  fprintf(cmd->report, "  see isthmus explain %d [%s]\n", receipt->code,
          ist_code_name(receipt->code));
}

int ist__verb_route(ist__cmd *cmd) {
  ist__view view = {0};
  ist_error err = {0};
  ist_receipt receipt = {.struct_size = sizeof receipt};
  if (cmd->operands.count != 2) {
    return ist__cmd_usage(cmd, "it needs A and B, and %zu were given",
                          cmd->operands.count);
  }
  ist_code code = plan(cmd, &view, &receipt, &err);
  if (code == IST_OK && cmd->json) say_json(cmd, &view, &receipt);
  if (code == IST_OK && !cmd->json) say_text(cmd, &view, &receipt);
  if (code != IST_OK) return ist__cmd_fail(cmd, &err);
  return receipt.route == IST_ROUTE_REFUSE ? IST__EXIT_FAILED : IST__EXIT_OK;
}
