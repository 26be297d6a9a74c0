// SPDX-License-Identifier: Apache-2.0
// move.c: a tensor of ours goes to another device, into memory of the caller,
// or only says how it would.

#include "backend/block.h"
#include "bridge/consumer.h"
#include "bridge/crossing.h"
#include "bridge/outputs.h"
#include "bridge/route.h"
#include "tensor/dtype.h"
#include "tensor/strided_copy.h"

ist_code ist_tensor_move(ist_tensor *tensor, const ist_device *device,
                         const ist_options *options, ist_tensor **out,
                         ist_receipt *receipt, ist_error *err) {
  ist__outputs_clear((void **)out, receipt);
  if (tensor == NULL || device == NULL || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a tensor could not be moved: tensor, device or out "
                         "is NULL; needs all three");
  }
  ist__target target;
  ist_code code = ist__struct_check(receipt, "ist_receipt", err);
  if (code != IST_OK) return code;
  code = ist__target_make(device, options, &target, err);
  if (code != IST_OK) return code;
  ist__cargo cargo;
  code = ist__cargo_of_tensor(tensor, target.options.copy, &cargo, err);
  if (code != IST_OK) return code;
  return ist__cross(&cargo, &target, out, receipt, err);
}

ist_code ist_tensor_plan(ist_tensor *tensor, const ist_device *device,
                         const ist_options *options, ist_receipt *out,
                         ist_error *err) {
  ist__outputs_clear(NULL, out);
  if (tensor == NULL || !ist__struct_ok(out)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a route could not be planned: tensor or out is NULL "
                         "or has no struct_size; needs both");
  }
  ist_options known;
  ist_code code =
      ist__options_read(&known, sizeof known, options, "ist_options", err);
  if (code != IST_OK) return code;
  ist__cargo cargo;
  code = ist__cargo_of_tensor(tensor, known.copy, &cargo, err);
  if (code != IST_OK) return code;
  if (known.grant != IST_GRANT_FROM_SOURCE) cargo.grant = known.grant;
  ist__decision plan;
  if (device != NULL) {
    ist__target target;
    code = ist__target_make(device, options, &target, err);
    if (code == IST_OK) {
      code = ist__crossing_decide(&cargo, &target, &plan, err);
    }
    if (code == IST_OK) ist__crossing_receipt(&cargo, &target, &plan, out);
    return code;
  }
  ist__consumer consumer;
  code = ist__consumer_make(&cargo, &known, false, &consumer, err);
  if (code != IST_OK) return code;
  code = ist__consumer_decide(&cargo, &consumer, &plan, err);
  if (code != IST_OK) return code;
  char from[IST_MAX_PLACE];
  ist__cargo_place(&cargo, &known, from);
  ist__decision_receipt(&plan, from, ist__consumer_place(&consumer), out);
  return IST_OK;
}

// Do the bytes that two views reach have one in common?
static bool views_meet(const ist__view *a, const ist__view *b) {
  if (a->count == 0 || b->count == 0) return false;
  uintptr_t a0 = (uintptr_t)ist__view_address(a);
  uintptr_t b0 = (uintptr_t)ist__view_address(b);
  return a0 - a->lowest < b0 + b->highest && b0 - b->lowest < a0 + a->highest;
}

// Writes the cargo's elements to a checked view; *hops copies are made.
static ist_code copy_into(ist__cargo *cargo, const ist_options *options,
                          const ist__view *to, uint32_t *hops, ist_error *err) {
  const ist_tensor *t = cargo->tensor;
  const ist__copy_engine *engine =
      ist__backend_env(ist__tensor_backend(t))->copy_engine;
  bool host_reads = ist__cargo_host_reads(cargo);
  bool dense =
      to->layout == IST_LAYOUT_ROW_MAJOR && to->padded == cargo->view.padded;
  bool direct = host_reads ? !views_meet(&cargo->view, to) : dense;
  *hops = direct ? 1 : 2;
  // The block between lies as the source does.
  const uint64_t hop_bytes[] = {*hops == 2 ? cargo->view.nbytes : to->nbytes,
                                to->nbytes};
  ist__watch watch;
  ist_code code = ist__watch_begin_hops(&watch, options, hop_bytes, *hops, err);
  if (code != IST_OK) return code;
  if (direct && host_reads) {
    return ist__strided_copy_watched(engine, &watch, &cargo->view, to, err);
  }
  if (direct) {
    code = ist__backend_copy_out(ist__tensor_backend(t), t->buffer,
                                 ist__view_address(to), to->nbytes, err);
    return code == IST_OK ? ist__watch_hop(&watch, err) : code;
  }
  ist__view block;
  cargo->watch = &watch;
  code = ist__cargo_gather(cargo, t->device->backend->context, 0,
                           cargo->view.padded, &block, err);
  if (code != IST_OK) return code;
  code = ist__strided_copy_watched(engine, &watch, &block, to, err);
  ist__block_release(block.data);
  return code;
}

static ist_code check_target(const ist__view *from, const DLTensor *target,
                             ist_packing packing, ist__view *to,
                             ist_error *err) {
  if (!ist__device_code_is_host((int32_t)target->device.device_type)) {
    return ist_error_set(err, IST_ERR_NO_ROUTE,
                         "a tensor could not be copied into memory: device "
                         "code %d is not the host's; needs memory of this "
                         "process",
                         (int)target->device.device_type);
  }
  // Pairs (2 lanes) are packed by what they are.
  bool padded = packing == IST_PACKING_AS_IS
                    ? from->padded && target->dtype.lanes == 1
                    : packing == IST_PACKING_PADDED;
  ist_code code = ist__view_check(target, padded, true, to, err);
  if (code != IST_OK) return code;
  if (to->dtype_number != from->dtype_number) {
    char has[32], needs[32];
    ist_dtype_name(to->dtype, has, sizeof has);
    ist_dtype_name(from->dtype, needs, sizeof needs);
    return ist_error_set(err, IST_ERR_DTYPE_MISMATCH,
                         "a tensor could not be copied into memory: it is of "
                         "%s; needs %s",
                         has, needs);
  }
  if (!ist__view_same_shape(from, to)) {
    char has[96], needs[96];
    ist__view_shape_text(to->ndim, to->shape, has, sizeof has);
    ist__view_shape_text(from->ndim, from->shape, needs, sizeof needs);
    return ist_error_set(err, IST_ERR_SHAPE_MISMATCH,
                         "a tensor could not be copied into memory: its shape "
                         "is %s; needs %s",
                         has, needs);
  }
  if ((to->layout & IST_LAYOUT_OVERLAP) != 0) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a tensor could not be copied into memory: its "
                         "elements overlap; needs strides without overlap");
  }
  return IST_OK;
}

ist_code ist_tensor_copy_into(ist_tensor *tensor, const DLTensor *target,
                              const ist_options *options, ist_receipt *receipt,
                              ist_error *err) {
  ist__outputs_clear(NULL, receipt);
  if (tensor == NULL || target == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a tensor could not be copied into memory: tensor or "
                         "target is NULL; needs both");
  }
  ist_options known;
  ist_code code =
      ist__options_read(&known, sizeof known, options, "ist_options", err);
  if (code == IST_OK) code = ist__struct_check(receipt, "ist_receipt", err);
  if (code != IST_OK) return code;
  ist__cargo cargo;
  code = ist__cargo_of_tensor(tensor, IST_COPY_AUTO, &cargo, err);
  if (code != IST_OK) return code;
  ist__view to;
  code = check_target(&cargo.view, target, known.packing, &to, err);
  uint32_t hops = 0;
  if (code == IST_OK) code = copy_into(&cargo, &known, &to, &hops, err);
  if (code != IST_OK || receipt == NULL) return code;
  ist__decision made = {
      .route = hops == 1 ? IST_ROUTE_COPY : IST_ROUTE_STAGE,
      .hops = hops,
      // The block between lies as the source does.
      .bytes_moved = (hops - 1) * cargo.view.nbytes + to.nbytes,
      .reason_count = 1,
      .reasons = {{IST__REASON_INTO, 0, 0}},
  };
  char from[IST_MAX_PLACE];
  ist__cargo_place(&cargo, &known, from);
  const char *name = known.target_name;
  ist__decision_receipt(&made, from, name != NULL ? name : "host", receipt);
  return IST_OK;
}
