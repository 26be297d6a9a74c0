// SPDX-License-Identifier: Apache-2.0
// crossing.c: does what the route says: adopt, gather, copy in, copy out.

#include "bridge/crossing.h"

#include <stdio.h>
#include <string.h>

#include "backend/block.h"
#include "base/structs.h"
#include "base/text.h"
#include "tensor/dtype.h"
#include "tensor/lanes.h"
#include "tensor/strided_copy.h"

ist_code ist__target_make(const ist_device *device, const ist_options *options,
                          ist__target *out, ist_error *err) {
  ist_code code = ist__options_read(&out->options, sizeof out->options, options,
                                    "ist_options", err);
  if (code != IST_OK) return code;
  out->device = device;
  code =
      ist__device_find_memory(device, out->options.memory, &out->memory, err);
  if (code != IST_OK) return code;
  out->capability = ist__device_capability(device, out->memory);
  return IST_OK;
}

// A loan that a backend refuses is no failure while there is another way to the
// bytes: the slow path is mandatory. What says that the values are not there,
// or that the machine or a test failed, is one.
static bool can_do_without_loan(const ist_tensor *tensor, ist_code code) {
  bool refused = code == IST_ERR_PLUGIN || code == IST_ERR_PLUGIN_SLOT ||
                 code == IST_ERR_NOT_ADDRESSABLE ||
                 code == IST_ERR_OUT_OF_DEVICE_MEMORY ||
                 code == IST_ERR_TARGET_LAYOUT || code == IST_ERR_BACKEND_ABI;
  return refused &&
         (ist__tensor_capability(tensor)->can & IST_CAN_COPY_OUT) != 0;
}

ist_code ist__cargo_of_tensor(ist_tensor *tensor, ist_copy copy,
                              ist__cargo *out, ist_error *err) {
  const DLTensor *at = &tensor->view;
  ist_code code = ist__tensor_check_alive(tensor, err);
  if (code != IST_OK) return code;
  out->memory = ist__tensor_capability(tensor);
  bool lend = copy != IST_COPY_ALWAYS || tensor->borrowed_address ||
              (out->memory->can & IST_CAN_COPY_OUT) == 0;
  if (lend) code = ist__tensor_lend(tensor, &at, err);
  if (code != IST_OK && !can_do_without_loan(tensor, code)) return code;
  if (code != IST_OK || !lend) {
    at = &tensor->view;
    out->unlent = *out->memory;
    out->unlent.can &= ~(uint32_t)IST_CAN_LEND;
    out->memory = &out->unlent;
  }
  ist__error_clear(err);
  ist__tensor_view_of(tensor, at, &out->view);
  out->grant = tensor->grant;
  out->tensor = tensor;
  out->release = NULL;
  out->release_self = NULL;
  out->watch = NULL;
  return IST_OK;
}

void ist__cargo_release_tensor(void *tensor) {
  ist_tensor_release(tensor);
}

static bool options_ok(const ist_options *options) {
  return (unsigned)options->copy <= IST_COPY_ALWAYS &&
         (unsigned)options->read_only <= IST_READ_ONLY_ALLOW &&
         (unsigned)options->mutable_source <= IST_MUTABLE_COPY &&
         (unsigned)options->grant <= IST_GRANT_READ_ONLY &&
         (unsigned)options->packing <= IST_PACKING_PAIRS &&
         (unsigned)options->source_packing <= IST_PACKING_PADDED;
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
  // Only told on when it is the one thing in the way: else not worth a sort.
  int64_t order = 0;
  if ((cargo->view.layout & ~capability->layouts) == IST_LAYOUT_PERMUTED) {
    order = ist__view_order_code(&cargo->view);
  }
  ist_offer offer = {
      .struct_size = sizeof offer,
      .memory = cargo->memory,
      .layout = cargo->view.layout,
      .dtype = cargo->view.dtype_number,
      .grant = cargo->grant,
      .address = (uintptr_t)ist__view_address(&cargo->view),
      .nbytes = cargo->view.nbytes,
      .in_place = in_place,
      .peer = peer,
      .padded = cargo->view.padded,
      .order = order,
      .count = cargo->view.count,
  };
  if (options->packing == IST_PACKING_PAIRS) {
    offer.pairs = ist__lanes_pairs_of(&cargo->view);
  }
  ist_wish wish = {sizeof wish, options->copy, options->read_only,
                   options->mutable_source, options->packing};
  ist__route_decide(&offer, capability, &wish, out);
  return IST_OK;
}

ist_code ist__crossing_decide(const ist__cargo *cargo,
                              const ist__target *target, ist__decision *out,
                              ist_error *err) {
  const ist_tensor *t = cargo->tensor;
  if (target->options.packing == IST_PACKING_PAIRS) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a tensor could not cross: packing is pairs, which a "
                         "device does not count by; needs packed, padded or "
                         "as is");
  }
  bool layout_fits = (cargo->view.layout & ~target->capability->layouts) == 0;
  bool same_backend =
      t != NULL && t->device->backend == target->device->backend;
  bool in_place = same_backend && t->device == target->device &&
                  t->memory == target->memory && layout_fits;
  return ist__cargo_decide(cargo, target->capability, &target->options,
                           in_place, same_backend, out, err);
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

// Where a copy is forbidden, what refused the loan says why there is no view.
static ist_code refused_loan(const ist__cargo *cargo,
                             const ist_options *options, ist_error *err) {
  const DLTensor *at;
  if (options->copy != IST_COPY_NEVER || cargo->tensor == NULL ||
      cargo->memory != &cargo->unlent) {
    return IST_OK;
  }
  return ist__tensor_lend(cargo->tensor, &at, err);
}

ist_code ist__refusal(const ist__cargo *cargo, const ist_options *options,
                      const ist__decision *decision, const char *place,
                      ist_error *err) {
  ist_code loan = refused_loan(cargo, options, err);
  if (loan != IST_OK) return loan;
  char why[320], shape[96], dtype[32], from[IST_MAX_PLACE];
  ist__text text = ist__text_make(why, sizeof why);
  for (uint32_t i = 0; i < decision->reason_count; i++) {
    char reason[160];
    ist_reason_text(&decision->reasons[i], reason, sizeof reason);
    ist__text_add(&text, "%s%s", i == 0 ? "" : "; ", reason);
  }
  ist__view_shape_text(cargo->view.ndim, cargo->view.shape, shape,
                       sizeof shape);
  ist_dtype_name(cargo->view.dtype, dtype, sizeof dtype);
  ist__cargo_place(cargo, options, from);
  if (options->target_name != NULL) place = options->target_name;
  if (decision->code == IST_ERR_LANES) {
    return ist_error_set(err, IST_ERR_LANES,
                         "%s%s could not cross from %s to %s: its dtype is %s "
                         "with 2 lanes there, and the last dimension is odd; "
                         "needs a last dimension of even extent",
                         dtype, shape, from, place, dtype);
  }
  return ist_error_set(err, decision->code,
                       "%s%s could not cross from %s to %s: %s; needs %s",
                       dtype, shape, from, place, why, remedy(decision->code));
}

// Copies out what the host cannot read, in the backend's own packing.
static ist_code copy_out(const ist__cargo *cargo, void *target, uint64_t nbytes,
                         ist_error *err) {
  const ist_tensor *t = cargo->tensor;
  ist_code code = ist__backend_copy_out(ist__tensor_backend(t), t->buffer,
                                        target, nbytes, err);
  return code == IST_OK ? ist__watch_hop(cargo->watch, err) : code;
}

// The same, repacked: by way of a second block.
static ist_code copy_out_repacked(const ist__cargo *cargo, ist_context *context,
                                  const ist__view *target, ist_error *err) {
  const ist__view *from = &cargo->view;
  ist__view raw;
  ist_code code = ist__view_dense(from->dtype, from->ndim, from->shape,
                                  from->padded, &raw, err);
  if (code != IST_OK) return code;
  raw.data = ist__block_make(context, raw.nbytes, 1);
  if (raw.data == NULL) {
    return ist__error_memory(err, "a copy of the tensor", raw.nbytes);
  }
  code = copy_out(cargo, raw.data, raw.nbytes, err);
  if (code == IST_OK) {
    code = ist__strided_copy_watched(context->env.copy_engine, cargo->watch,
                                     &raw, target, err);
  }
  ist__block_release(raw.data);
  return code;
}

ist_code ist__cargo_gather(const ist__cargo *cargo, ist_context *context,
                           uint64_t alignment, bool padded, ist__view *out,
                           ist_error *err) {
  const ist__view *from = &cargo->view;
  ist_code code =
      ist__view_dense(from->dtype, from->ndim, from->shape, padded, out, err);
  if (code != IST_OK) return code;
  out->data = ist__block_make(context, out->nbytes, alignment);
  if (out->data == NULL) {
    return ist__error_memory(err, "a copy of the tensor", out->nbytes);
  }
  if (ist__cargo_host_reads(cargo)) {
    code = ist__strided_copy_watched(context->env.copy_engine, cargo->watch,
                                     from, out, err);
  } else if (out->padded == from->padded) {
    code = copy_out(cargo, out->data, out->nbytes, err);
  } else {
    code = copy_out_repacked(cargo, context, out, err);
  }
  if (code != IST_OK) {
    ist__block_release(out->data);
    out->data = NULL;
  }
  return code;
}

typedef enum entry {
  ENTRY_VIEW,  // the target views the memory; release belongs to the result
  ENTRY_COPY,  // the target takes the bytes, dense and row-major
  ENTRY_PEER   // the backend copies the source's buffer
} entry;

// What a crossing makes, and what it is made of.
typedef struct arrival {
  const ist__target *target;
  entry entry;
  ist__view *view;
  ist_tensor *source;  // of ENTRY_PEER
  ist_grant grant;
  bool copied;
  ist_release_fn release;  // of ENTRY_VIEW
  void *release_self;
  ist__watch *watch;  // of the others, which are a hop of it
} arrival;

static ist_code call_entry(const arrival *a, const ist_placement *place,
                           void **out, ist_error *err) {
  ist_backend *backend = a->target->device->backend;
  switch (a->entry) {
    case ENTRY_VIEW:
      return ist__backend_adopt(backend, place, out, err);
    case ENTRY_COPY:
      return ist__backend_copy_in(backend, place, out, err);
    case ENTRY_PEER:
      break;
  }
  return ist__backend_copy_peer(backend, a->source->buffer, place, out, err);
}

static ist_code enter(const arrival *a, ist_tensor **out, ist_error *err) {
  const ist__target *target = a->target;
  bool address = a->entry == ENTRY_VIEW &&
                 (target->capability->can & IST_CAN_HOST_ADDRESS) != 0;
  ist__tensor_facts facts = {.device = target->device,
                             .memory = target->memory,
                             .view = a->view,
                             .grant = a->grant,
                             .copied = a->copied,
                             .address = address};
  ist_tensor *t = ist__tensor_make(&facts, err);
  if (t == NULL) return IST_ERR_NO_ALLOCATION;
  DLTensor view;
  ist__view_borrow(a->view, &view);
  ist_placement place = {.struct_size = sizeof place,
                         .device = target->device->index,
                         .memory = target->memory,
                         .view = &view,
                         .padded = a->view->padded,
                         .release = a->release,
                         .release_self = a->release_self};
  ist_code code = call_entry(a, &place, &t->buffer, err);
  if (code != IST_OK) {
    ist__tensor_discard(t);
    return code;
  }
  if (a->entry != ENTRY_VIEW) code = ist__watch_hop(a->watch, err);
  if (code == IST_OK) {
    *out = t;
  } else {
    ist_tensor_release(t);
  }
  return code;
}

static ist_code cross_alias(ist__cargo *cargo, const ist__target *target,
                            bool in_place, ist_tensor **out, ist_error *err) {
  ist_tensor *source = cargo->tensor;
  if (source != NULL) ist_tensor_retain(source);
  if (in_place) {
    *out = source;
    return IST_OK;
  }
  arrival a = {.target = target,
               .entry = ENTRY_VIEW,
               .view = &cargo->view,
               .grant = cargo->grant,
               .release = cargo->release,
               .release_self = cargo->release_self};
  if (source != NULL) {
    a.release = ist__cargo_release_tensor;
    a.release_self = source;
  }
  ist_code code = enter(&a, out, err);
  if (code != IST_OK && source != NULL) ist_tensor_release(source);
  return code;
}

static ist_code cross_peer(const ist__cargo *cargo, arrival *a,
                           ist_tensor **out, ist_error *err) {
  ist__view dense;
  ist_code code =
      ist__view_dense(cargo->view.dtype, cargo->view.ndim, cargo->view.shape,
                      cargo->view.padded, &dense, err);
  if (code != IST_OK) return code;
  a->entry = ENTRY_PEER;
  a->view = &dense;
  a->source = cargo->tensor;
  return enter(a, out, err);
}

bool ist__cargo_arrives_padded(const ist__cargo *cargo,
                               const ist_capability *to, ist_packing packing) {
  if (cargo->view.dtype.bits >= 8) return false;
  if (packing != IST_PACKING_AS_IS) return packing == IST_PACKING_PADDED;
  return cargo->view.padded && (to->can & IST_CAN_PADDED) != 0;
}

static ist_code cross_copy(ist__cargo *cargo, const ist__target *target,
                           const ist__decision *decision, ist_tensor **out,
                           ist_error *err) {
  const ist_capability *to = target->capability;
  uint32_t viewing = IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS;
  bool host_writes = (to->can & viewing) == viewing;
  ist__watch watch;
  arrival a = {.target = target,
               .entry = host_writes ? ENTRY_VIEW : ENTRY_COPY,
               .view = &cargo->view,
               .grant = IST_GRANT_WRITABLE,
               .copied = true,
               .watch = &watch};
  bool padded = ist__cargo_arrives_padded(cargo, to, target->options.packing);
  bool gather = host_writes || !ist__cargo_host_reads(cargo) ||
                cargo->view.layout != IST_LAYOUT_ROW_MAJOR ||
                cargo->view.padded != padded;
  ist_code code = ist__watch_begin_hops(
      &watch, &target->options, decision->hop_bytes, decision->hops, err);
  if (code != IST_OK) return code;
  cargo->watch = &watch;
  if (decision->peer) return cross_peer(cargo, &a, out, err);
  if (!gather) return enter(&a, out, err);
  ist__view block;
  code = ist__cargo_gather(cargo, target->device->backend->context,
                           to->alignment, padded, &block, err);
  if (code != IST_OK) return code;
  a.view = &block;
  if (host_writes) {
    a.release = ist__block_release;
    a.release_self = block.data;
  }
  code = enter(&a, out, err);
  if (code != IST_OK || !host_writes) ist__block_release(block.data);
  return code;
}

ist_code ist__cross(ist__cargo *cargo, const ist__target *target,
                    ist_tensor **out, ist_receipt *receipt, ist_error *err) {
  ist__decision decision;
  ist_code code = ist__crossing_decide(cargo, target, &decision, err);
  if (code != IST_OK) return code;
  if (decision.route == IST_ROUTE_REFUSE) {
    char place[IST_MAX_PLACE];
    ist__tensor_place(target->device, target->memory, place);
    return ist__refusal(cargo, &target->options, &decision, place, err);
  }
  code = decision.route == IST_ROUTE_ALIAS
             ? cross_alias(cargo, target, decision.in_place, out, err)
             : cross_copy(cargo, target, &decision, out, err);
  if (code == IST_OK) ist__crossing_receipt(cargo, target, &decision, receipt);
  return code;
}
