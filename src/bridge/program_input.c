// SPDX-License-Identifier: Apache-2.0
// program_input.c: an input goes to a program's device in the layout that the
// program reads: as it is, as a view, or by one copy.

#include <string.h>

#include "backend/block.h"
#include "bridge/program_handle.h"
#include "tensor/layout.h"

// True when a geometry lies as the program reads it.
static bool lies_as(const ist_spec *want, const DLTensor *view) {
  for (int32_t d = 0; d < want->ndim; d++) {
    if (want->shape[d] == 0) return true;
  }
  for (int32_t d = 0; d < want->ndim; d++) {
    if (want->shape[d] > 1 && view->strides[d] != want->strides[d]) {
      return false;
    }
  }
  return true;
}

// True for a tensor that lies where and as the program reads it.
static bool is_there(const ist__argument *a, const ist__target *target,
                     const ist_tensor *tensor) {
  return tensor->device == target->device && tensor->memory == target->memory &&
         !tensor->padded && !tensor->deleted &&
         target->options.copy != IST_COPY_ALWAYS &&
         target->options.packing == IST_PACKING_AS_IS &&
         lies_as(&a->spec, &tensor->view);
}

// Takes it as it is, once its values are there; *out stays NULL when it is not
// taken so after all (mutable_source=copy).
static ist_code take_in_place(const ist__target *target, ist_tensor *tensor,
                              ist_tensor **out, ist_receipt *receipt,
                              ist_error *err) {
  ist__cargo cargo;
  ist_code code =
      ist__cargo_of_tensor(tensor, target->options.copy, &cargo, err);
  if (code != IST_OK) return code;
  ist_capability any = *target->capability;
  any.layouts = IST_LAYOUT_ANY;
  ist__target there = *target;
  there.capability = &any;
  ist__decision decision;
  code = ist__crossing_decide(&cargo, &there, &decision, err);
  if (code != IST_OK || decision.route != IST_ROUTE_ALIAS ||
      !decision.in_place) {
    return code;
  }
  ist__crossing_receipt(&cargo, target, &decision, receipt);
  ist_tensor_retain(tensor);
  *out = tensor;
  return IST_OK;
}

// ---- programs that read another order than row-major

// The dimensions of a view in the order in which the program's fall: what lies
// as the program reads it is row-major then.
static void turn(const ist_spec *want, const ist__view *from, ist__view *out) {
  int32_t order[IST_MAX_NDIM];
  ist__layout_order(want->ndim, want->shape, want->strides, order);
  ist__view_copy(from, out);
  for (int32_t k = 0; k < from->ndim; k++) {
    out->shape[k] = from->shape[order[k]];
    out->strides[k] = from->strides[order[k]];
  }
  out->layout = ist__layout_of(out->ndim, out->shape, out->strides);
}

static ist_code no_order(const ist_program *p, size_t index,
                         const ist__target *target, ist_error *err) {
  char place[IST_MAX_PLACE];
  ist__tensor_place(target->device, target->memory, place);
  return ist_error_set(
      err, IST_ERR_TARGET_LAYOUT,
      "input %s could not be taken: the program reads it in an "
      "order of dimensions that %s cannot be given; needs a "
      "program that reads it row-major, or memory that views "
      "what is permuted",
      ist__program_label(p, true, index).text, place);
}

// A copy of a tensor on the host, laid out as the program reads it.
static ist_code copy_in_order(const ist__argument *a, ist_tensor *tensor,
                              const ist__target *target, ist_tensor **out,
                              ist_error *err) {
  ist_context *context = target->device->backend->context;
  ist__view view;
  ist__view_copy(&a->view, &view);
  view.device = (DLDevice){kDLCPU, 0};
  view.data =
      ist__block_make(context, view.nbytes, target->capability->alignment);
  if (view.data == NULL) {
    return ist__error_memory(err, "a copy of the tensor", view.nbytes);
  }
  DLTensor to;
  ist__view_borrow(&view, &to);
  ist_options how = target->options;
  how.struct_size = sizeof how;
  how.packing = IST_PACKING_AS_IS;
  ist_code code = ist_tensor_copy_into(tensor, &to, &how, NULL, err);
  if (code == IST_OK) {
    code = ist__tensor_on_host(context, &view, true, ist__block_release,
                               view.data, out, err);
  }
  if (code != IST_OK) ist__block_release(view.data);
  return code;
}

// Views a tensor on the device. False in *viewed, and nothing made, when the
// route would copy it, which would give it the row-major order.
static ist_code view_there(const ist__argument *a, ist_tensor *tensor,
                           const ist__target *target, bool *viewed,
                           ist_tensor **out, ist_receipt *receipt,
                           ist_error *err) {
  ist__cargo cargo;
  ist__decision decision;
  *viewed = false;
  ist_code code =
      ist__cargo_of_tensor(tensor, target->options.copy, &cargo, err);
  if (code != IST_OK || !lies_as(&a->spec, &tensor->view)) return code;
  code = ist__crossing_decide(&cargo, target, &decision, err);
  if (code != IST_OK || decision.route != IST_ROUTE_ALIAS) return code;
  *viewed = true;
  return ist__cross(&cargo, target, out, receipt, err);
}

// Decides as for a row-major target, on the dimensions in the program's order.
static ist_code decide_turned(const ist__argument *a, ist_tensor *tensor,
                              const ist__target *target, ist_receipt *receipt,
                              ist_error *err) {
  ist__cargo cargo, turned;
  ist_code code =
      ist__cargo_of_tensor(tensor, target->options.copy, &cargo, err);
  if (code != IST_OK) return code;
  turned = cargo;
  turn(&a->spec, &cargo.view, &turned.view);
  ist_capability row_major = *target->capability;
  row_major.layouts = IST_LAYOUT_ROW_MAJOR;
  ist__target narrow = *target;
  narrow.capability = &row_major;
  ist__decision decision;
  code = ist__crossing_decide(&turned, &narrow, &decision, err);
  if (code != IST_OK) return code;
  if (decision.route == IST_ROUTE_REFUSE) {
    char place[IST_MAX_PLACE];
    ist__tensor_place(target->device, target->memory, place);
    return ist__refusal(&cargo, &target->options, &decision, place, err);
  }
  ist__crossing_receipt(&cargo, target, &decision, receipt);
  return IST_OK;
}

static ist_code move_into_order(const ist_program *p, size_t index,
                                ist_tensor *tensor, const ist__target *target,
                                ist_tensor **out, ist_receipt *receipt,
                                ist_error *err) {
  const ist__argument *a = &p->inputs[index];
  const uint32_t viewing = IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS;
  bool viewed;
  ist_code code = view_there(a, tensor, target, &viewed, out, receipt, err);
  if (code != IST_OK || viewed) return code;
  if ((target->capability->can & viewing) != viewing ||
      (target->capability->layouts & IST_LAYOUT_PERMUTED) == 0 ||
      a->view.dtype.bits < 8) {
    return no_order(p, index, target, err);
  }
  code = decide_turned(a, tensor, target, receipt, err);
  ist_tensor *copy = NULL;
  if (code == IST_OK) code = copy_in_order(a, tensor, target, &copy, err);
  if (code != IST_OK) return code;
  ist__target plain = *target;
  plain.options = (ist_options){.struct_size = sizeof plain.options,
                                .memory = target->options.memory};
  code = view_there(a, copy, &plain, &viewed, out, NULL, err);
  ist_tensor_release(copy);
  if (code == IST_OK && !viewed) return no_order(p, index, target, err);
  return code;
}

// ---- one input

ist_code ist__program_input(const ist_program *p, size_t index,
                            ist_tensor *tensor, const ist_device *device,
                            const ist_options *options, ist_tensor **out,
                            ist_receipt *receipt, ist_error *err) {
  const ist__argument *a = &p->inputs[index];
  ist__target target;
  ist_code code = ist__target_make(device, options, &target, err);
  if (code == IST_OK) code = ist__tensor_check_alive(tensor, err);
  if (code != IST_OK) return code;
  if (is_there(a, &target, tensor)) {
    code = take_in_place(&target, tensor, out, receipt, err);
    if (code != IST_OK || *out != NULL) return code;
  }
  if (a->view.layout != IST_LAYOUT_ROW_MAJOR) {
    return move_into_order(p, index, tensor, &target, out, receipt, err);
  }
  // A transposed view would be read as if it were not, so the crossing is told
  // that the device takes nothing but row-major.
  ist_capability row_major = *target.capability;
  row_major.layouts = IST_LAYOUT_ROW_MAJOR;
  target.capability = &row_major;
  ist__cargo cargo;
  code = ist__cargo_of_tensor(tensor, target.options.copy, &cargo, err);
  if (code != IST_OK) return code;
  return ist__cross(&cargo, &target, out, receipt, err);
}
