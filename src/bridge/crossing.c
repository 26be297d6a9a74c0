// SPDX-License-Identifier: Apache-2.0
// crossing.c: does what the route says: adopt, gather, copy in, copy out.

#include "bridge/crossing.h"

#include <stdio.h>
#include <string.h>

#include "backend/block.h"
#include "base/structs.h"
#include "base/text.h"
#include "tensor/dtype.h"
#include "tensor/strided_copy.h"

ist_code ist__target_make(const ist_device *device, const ist_options *options,
                          ist__target *out, ist_error *err) {
  ist__struct_read(&out->options, sizeof out->options, options);
  out->device = device;
  ist_code code =
      ist__device_find_memory(device, out->options.memory, &out->memory, err);
  if (code != IST_OK) return code;
  out->capability = ist__device_capability(device, out->memory);
  return IST_OK;
}

ist_code ist__cargo_of_tensor(ist_tensor *tensor, ist__cargo *out,
                              ist_error *err) {
  const DLTensor *at;
  ist_code code = ist__tensor_lend(tensor, &at, err);
  if (code != IST_OK) return code;
  ist__tensor_view_of(tensor, at, &out->view);
  out->memory = ist__tensor_capability(tensor);
  out->grant = tensor->grant;
  out->tensor = tensor;
  out->release = NULL;
  out->release_self = NULL;
  return IST_OK;
}

static bool options_ok(const ist_options *options) {
  return (unsigned)options->copy <= IST_COPY_ALWAYS &&
         (unsigned)options->read_only <= IST_READ_ONLY_ALLOW &&
         (unsigned)options->mutable_source <= IST_MUTABLE_COPY &&
         (unsigned)options->grant <= IST_GRANT_READ_ONLY;
}

ist_code ist__cargo_decide(const ist__cargo *cargo,
                           const ist_capability *capability,
                           const ist_options *options, bool in_place, bool peer,
                           ist__decision *out, ist_error *err) {
  if (!options_ok(options)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a tensor could not cross: an option is out of range; "
                         "needs values of the enums of isthmus.h");
  }
  ist_offer offer = {
      .struct_size = sizeof offer,
      .memory = *cargo->memory,
      .layout = cargo->view.layout,
      .dtype = cargo->view.dtype_number,
      .grant = cargo->grant,
      .address = (uintptr_t)ist__view_address(&cargo->view),
      .nbytes = cargo->view.nbytes,
      .in_place = in_place,
      .peer = peer,
      .padded = cargo->view.padded,
  };
  ist_wish wish = {sizeof wish, options->copy, options->read_only,
                   options->mutable_source};
  ist__route_decide(&offer, capability, &wish, out);
  return IST_OK;
}

ist_code ist__crossing_decide(const ist__cargo *cargo,
                              const ist__target *target, ist__decision *out,
                              ist_error *err) {
  const ist_tensor *t = cargo->tensor;
  bool layout_fits = (cargo->view.layout & ~target->capability->layouts) == 0;
  bool same_backend =
      t != NULL && t->device->backend == target->device->backend;
  bool in_place = same_backend && t->device == target->device &&
                  t->memory == target->memory && layout_fits;
  bool peer = same_backend && t->device->backend->ops.copy_peer != NULL;
  return ist__cargo_decide(cargo, target->capability, &target->options,
                           in_place, peer, out, err);
}

void ist__cargo_place(const ist__cargo *cargo, const ist_options *options,
                      char *out) {
  if (options->source_name != NULL) {
    snprintf(out, IST_MAX_PLACE, "%s", options->source_name);
    return;
  }
  if (cargo->tensor != NULL) {
    ist__tensor_place(cargo->tensor->device, cargo->tensor->memory, out);
    return;
  }
  int32_t code = (int32_t)cargo->view.device.device_type;
  const char *name = ist_device_code_name(code);
  snprintf(out, IST_MAX_PLACE, "%s", name != NULL ? name : "device");
}

void ist__crossing_receipt(const ist__cargo *cargo, const ist__target *target,
                           const ist__decision *decision, ist_receipt *out) {
  if (out == NULL) return;
  char from[IST_MAX_PLACE], to[IST_MAX_PLACE];
  ist__cargo_place(cargo, &target->options, from);
  ist__tensor_place(target->device, target->memory, to);
  const char *name = target->options.target_name;
  ist__decision_receipt(decision, from, name != NULL ? name : to, out);
}

static const char *remedy(ist_code code) {
  switch (code) {
    case IST_ERR_COPY_NEEDED:
      return "copy=auto or copy=always";
    case IST_ERR_READ_ONLY:
      return "read_only=auto, copy or allow";
    case IST_ERR_TARGET_DTYPE:
      return "an element type that the target has";
    default:
      return "a backend that serves the source's device";
  }
}

ist_code ist__refusal(const ist__cargo *cargo, const ist_options *options,
                      const ist__decision *decision, const char *place,
                      ist_error *err) {
  char why[320], shape[96], dtype[32], from[IST_MAX_PLACE];
  ist__text text = ist__text_make(why, sizeof why);
  for (uint32_t i = 0; i < decision->reason_count; i++) {
    char reason[160];
    ist_reason_text(&decision->reasons[i], reason, sizeof reason);
    ist__text_add(&text, "%s%s", i == 0 ? "" : ", ", reason);
  }
  ist__view_shape_text(cargo->view.ndim, cargo->view.shape, shape,
                       sizeof shape);
  ist_dtype_name(cargo->view.dtype, dtype, sizeof dtype);
  ist__cargo_place(cargo, options, from);
  if (options->target_name != NULL) place = options->target_name;
  return ist_error_set(err, decision->code,
                       "%s%s could not cross from %s to %s: %s; needs %s",
                       dtype, shape, from, place, why, remedy(decision->code));
}

ist_code ist__cargo_gather(const ist__cargo *cargo, ist_context *context,
                           uint64_t alignment, bool padded, ist__view *out,
                           ist_error *err) {
  const ist__view *from = &cargo->view;
  bool host_reads = ist__cargo_host_reads(cargo);
  // A backend's copy_out writes its own packing.
  if (!host_reads) padded = from->padded;
  ist_code code =
      ist__view_dense(from->dtype, from->ndim, from->shape, padded, out, err);
  if (code != IST_OK) return code;
  out->data = ist__block_make(context, out->nbytes, alignment);
  if (out->data == NULL) {
    return ist__error_memory(err, "a copy of the tensor", out->nbytes);
  }
  if (host_reads) {
    ist__strided_copy(from, out);
    return IST_OK;
  }
  const ist_tensor *t = cargo->tensor;
  code = ist__backend_copy_out(ist__tensor_backend(t), t->buffer, out->data,
                               out->nbytes, err);
  if (code != IST_OK) {
    ist__block_release(out->data);
    out->data = NULL;
  }
  return code;
}

// What a crossing makes, and the view that it is made of.
typedef struct arrival {
  const ist__target *target;
  ist_context *context;
  const ist__view *view;
  ist_grant grant;
  bool copied;
  bool address;
} arrival;

static ist_tensor *arrive(const arrival *a, ist_error *err) {
  ist__tensor_facts facts = {.device = a->target->device,
                             .memory = a->target->memory,
                             .view = a->view,
                             .grant = a->grant,
                             .copied = a->copied,
                             .address = a->address};
  return ist__tensor_make(&facts, err);
}

static ist_placement placement(const ist__target *target, DLTensor *view,
                               bool padded) {
  return (ist_placement){.struct_size = sizeof(ist_placement),
                         .device = target->device->index,
                         .memory = target->memory,
                         .view = view,
                         .padded = padded};
}

// The target views a->view; release belongs to the result on success.
static ist_code adopt(const arrival *a, ist_release_fn release,
                      void *release_self, ist_tensor **out, ist_error *err) {
  ist_tensor *t = arrive(a, err);
  if (t == NULL) return IST_ERR_NO_ALLOCATION;
  DLTensor view;
  ist__view_borrow((ist__view *)(uintptr_t)a->view, &view);
  ist_placement place = placement(a->target, &view, a->view->padded);
  place.release = release;
  place.release_self = release_self;
  ist_code code =
      ist__backend_adopt(a->target->device->backend, &place, &t->buffer, err);
  if (code != IST_OK) {
    ist__tensor_discard(t);
    return code;
  }
  *out = t;
  return IST_OK;
}

// The target takes the bytes of a->view, dense and row-major.
static ist_code copy_in(const arrival *a, ist_tensor **out, ist_error *err) {
  ist__view dense = *a->view;
  dense.padded = false;
  arrival without_address = *a;
  without_address.address = false;
  without_address.view = &dense;
  ist_tensor *t = arrive(&without_address, err);
  if (t == NULL) return IST_ERR_NO_ALLOCATION;
  DLTensor view;
  ist__view_borrow(&dense, &view);
  ist_placement place = placement(a->target, &view, a->view->padded);
  ist_code code =
      ist__backend_copy_in(a->target->device->backend, &place, &t->buffer, err);
  if (code != IST_OK) {
    ist__tensor_discard(t);
    return code;
  }
  *out = t;
  return IST_OK;
}

static ist_code copy_peer(const ist__cargo *cargo, const arrival *a,
                          ist_tensor **out, ist_error *err) {
  ist__view dense;
  ist_code code = ist__view_dense(cargo->view.dtype, cargo->view.ndim,
                                  cargo->view.shape, false, &dense, err);
  if (code != IST_OK) return code;
  arrival without_address = *a;
  without_address.address = false;
  without_address.view = &dense;
  ist_tensor *t = arrive(&without_address, err);
  if (t == NULL) return IST_ERR_NO_ALLOCATION;
  DLTensor view;
  ist__view_borrow(&dense, &view);
  ist_placement place = placement(a->target, &view, false);
  code = ist__backend_copy_peer(a->target->device->backend,
                                cargo->tensor->buffer, &place, &t->buffer, err);
  if (code != IST_OK) {
    ist__tensor_discard(t);
    return code;
  }
  *out = t;
  return IST_OK;
}

static void release_tensor(void *self) {
  ist_tensor_release(self);
}

static ist_code cross_alias(const ist__cargo *cargo, arrival *a,
                            const ist__decision *decision, ist_tensor **out,
                            ist_error *err) {
  ist_tensor *source = cargo->tensor;
  if (ist__decision_has(decision, IST__REASON_IN_PLACE)) {
    ist_tensor_retain(source);
    *out = source;
    return IST_OK;
  }
  a->view = &cargo->view;
  a->grant = cargo->grant;
  a->copied = false;
  a->address = (a->target->capability->can & IST_CAN_HOST_ADDRESS) != 0;
  if (source == NULL) {
    return adopt(a, cargo->release, cargo->release_self, out, err);
  }
  ist_tensor_retain(source);
  ist_code code = adopt(a, release_tensor, source, out, err);
  if (code != IST_OK) ist_tensor_release(source);
  return code;
}

static ist_code cross_copy(const ist__cargo *cargo, arrival *a,
                           const ist__decision *decision, ist_tensor **out,
                           ist_error *err) {
  const ist_capability *to = a->target->capability;
  uint32_t viewing = IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS;
  bool host_writes = (to->can & viewing) == viewing;
  a->grant = IST_GRANT_WRITABLE;
  a->copied = true;
  a->address = host_writes;
  if (ist__decision_has(decision, IST__REASON_PEER)) {
    return copy_peer(cargo, a, out, err);
  }
  bool gather = host_writes || !ist__cargo_host_reads(cargo) ||
                cargo->view.layout != IST_LAYOUT_ROW_MAJOR ||
                cargo->view.padded;
  if (!gather) {
    a->view = &cargo->view;
    return copy_in(a, out, err);
  }
  bool padded = cargo->view.padded && (to->can & IST_CAN_PADDED) != 0;
  ist__view block;
  ist_code code =
      ist__cargo_gather(cargo, a->context, to->alignment, padded, &block, err);
  if (code != IST_OK) return code;
  a->view = &block;
  if (host_writes) {
    code = adopt(a, ist__block_release, block.data, out, err);
    if (code != IST_OK) ist__block_release(block.data);
  } else {
    code = copy_in(a, out, err);
    ist__block_release(block.data);
  }
  return code;
}

ist_code ist__cross(const ist__cargo *cargo, const ist__target *target,
                    ist_tensor **out, ist_receipt *receipt, ist_error *err) {
  ist__decision decision;
  ist_code code = ist__crossing_decide(cargo, target, &decision, err);
  if (code != IST_OK) return code;
  if (decision.route == IST_ROUTE_REFUSE) {
    char place[IST_MAX_PLACE];
    ist__tensor_place(target->device, target->memory, place);
    return ist__refusal(cargo, &target->options, &decision, place, err);
  }
  arrival a = {.target = target, .context = target->device->backend->context};
  code = decision.route == IST_ROUTE_ALIAS
             ? cross_alias(cargo, &a, &decision, out, err)
             : cross_copy(cargo, &a, &decision, out, err);
  if (code == IST_OK) ist__crossing_receipt(cargo, target, &decision, receipt);
  return code;
}
