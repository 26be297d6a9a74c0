// SPDX-License-Identifier: Apache-2.0
// export.c: a tensor becomes a managed DLPack tensor of either kind: a view of
// it, or one copy out to the host.

#include <string.h>

#include "backend/block.h"
#include "base/checked.h"
#include "bridge/consumer.h"
#include "bridge/outputs.h"
#include "dlpack/dlpack_write.h"
#include "tensor/dtype.h"
#include "tensor/lanes.h"

// Anyone: takes the address as it is, or bytes of the host.
static void make_anyone(const ist__cargo *cargo, bool legacy,
                        ist__consumer *out) {
  ist_packing packing = out->options.packing;
  bool repacked = packing != IST_PACKING_AS_IS && cargo->view.dtype.bits < 8 &&
                  cargo->view.padded != (packing == IST_PACKING_PADDED);
  bool as_it_is = (cargo->memory->can & IST_CAN_LEND) != 0 &&
                  out->options.copy != IST_COPY_ALWAYS && !repacked;
  uint32_t host = IST_CAN_HOST_ADDRESS;
  if (as_it_is) host &= cargo->memory->can;
  out->capability = (ist_capability){
      .struct_size = sizeof out->capability,
      .can = IST_CAN_ADOPT | IST_CAN_PADDED | host |
             (legacy ? 0 : (uint32_t)IST_CAN_HONOUR_READ_ONLY),
      .layouts = IST_LAYOUT_ANY,
      .alignment = 1,
      .dtypes = ist__dtype_all(),
      .dl_device = as_it_is ? cargo->memory->dl_device : (DLDevice){kDLCPU, 0}};
}

static ist_code read_consumer(const ist_capability *from, ist_capability *out,
                              ist_error *err) {
  ist__struct_read(out, sizeof *out, ist__struct_ok(from) ? from : NULL);
  if (ist__is_power_of_two(out->alignment)) return IST_OK;
  return ist_error_set(err, IST_ERR_ARGUMENT,
                       "a tensor could not be exported: its consumer has no "
                       "struct_size or the alignment %llu; needs a power of "
                       "two (1: none)",
                       (unsigned long long)out->alignment);
}

ist_code ist__consumer_make(const ist__cargo *cargo, const ist_options *options,
                            bool legacy, ist__consumer *out, ist_error *err) {
  ist_code code = IST_OK;
  out->options = *options;
  out->anyone = out->options.consumer == NULL;
  if (out->anyone) {
    make_anyone(cargo, legacy, out);
  } else {
    code = read_consumer(out->options.consumer, &out->capability, err);
  }
  if (legacy) out->capability.can &= ~(uint32_t)IST_CAN_PADDED;
  return code;
}

ist_code ist__consumer_decide(const ist__cargo *cargo,
                              const ist__consumer *consumer, ist__decision *out,
                              ist_error *err) {
  return ist__cargo_decide(cargo, &consumer->capability, &consumer->options,
                           false, false, out, err);
}

const char *ist__consumer_place(const ist__consumer *consumer) {
  if (consumer->options.target_name != NULL) {
    return consumer->options.target_name;
  }
  if (!consumer->anyone) return "consumer";
  int32_t code = (int32_t)consumer->capability.dl_device.device_type;
  const char *name = ist_device_code_name(code);
  return name != NULL ? name : "device";
}

// The managed tensor of either kind; exactly one of the two is asked for.
typedef struct managed_out {
  DLManagedTensorVersioned **versioned;
  DLManagedTensor **legacy;
} managed_out;

static ist_code write_managed(const ist__export *what, managed_out out,
                              ist_error *err) {
  bool ok;
  if (out.versioned != NULL) {
    *out.versioned = ist__dlpack_write(what);
    ok = *out.versioned != NULL;
  } else {
    *out.legacy = ist__dlpack_write_legacy(what);
    ok = *out.legacy != NULL;
  }
  if (ok) return IST_OK;
  return ist__error_memory(err, "a managed tensor",
                           sizeof(DLManagedTensorVersioned));
}

static uint64_t flags_of(const ist__decision *plan, const ist__view *view) {
  uint64_t flags = 0;
  if (plan->read_only) flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
  if (plan->hops != 0) flags |= DLPACK_FLAG_BITMASK_IS_COPIED;
  if (view->padded) flags |= DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  return flags;
}

// The consumer counts these elements by pairs: the route has seen to it that
// they are whole.
static void count_pairs(const ist__consumer *consumer, ist__view *view) {
  if (consumer->options.packing == IST_PACKING_PAIRS &&
      view->dtype.code == kDLFloat4_e2m1fn) {
    ist__lanes_fold(view);
  }
}

static ist_code export_view(ist__cargo *cargo, const ist__consumer *consumer,
                            const ist__decision *plan, managed_out out,
                            ist_error *err) {
  cargo->view.device = cargo->memory->dl_device;
  count_pairs(consumer, &cargo->view);
  ist__export what = {
      .view = &cargo->view,
      .flags = flags_of(plan, &cargo->view),
      .release = ist__cargo_release_tensor,
      .release_self = cargo->tensor,
      .env = ist__backend_env(ist__tensor_backend(cargo->tensor))};
  ist_tensor_retain(cargo->tensor);
  ist_code code = write_managed(&what, out, err);
  if (code != IST_OK) ist_tensor_release(cargo->tensor);
  return code;
}

static ist_code export_copy(ist__cargo *cargo, const ist__consumer *consumer,
                            const ist__decision *plan, managed_out out,
                            ist_error *err) {
  ist_context *context = ist__tensor_backend(cargo->tensor)->context;
  bool padded = ist__cargo_arrives_padded(cargo, &consumer->capability,
                                          consumer->options.packing);
  ist__view block;
  ist__watch watch;
  ist_code code = ist__watch_begin_hops(&watch, &consumer->options,
                                        plan->hop_bytes, plan->hops, err);
  if (code != IST_OK) return code;
  cargo->watch = &watch;
  code = ist__cargo_gather(cargo, context, consumer->capability.alignment,
                           padded, &block, err);
  if (code != IST_OK) return code;
  block.device = (DLDevice){kDLCPU, 0};
  count_pairs(consumer, &block);
  ist__export what = {.view = &block,
                      .flags = flags_of(plan, &block),
                      .release = ist__block_release,
                      .release_self = block.data,
                      .env = &context->env};
  code = write_managed(&what, out, err);
  if (code != IST_OK) ist__block_release(block.data);
  return code;
}

static ist_code export_tensor(ist_tensor *tensor, const ist_options *options,
                              managed_out out, ist_receipt *receipt,
                              ist_error *err) {
  ist_options known;
  ist_code code =
      ist__options_read(&known, sizeof known, options, "ist_options", err);
  if (code != IST_OK) return code;
  ist__cargo cargo;
  code = ist__cargo_of_tensor(tensor, known.copy, &cargo, err);
  if (code != IST_OK) return code;
  ist__consumer consumer;
  code = ist__consumer_make(&cargo, &known, out.legacy != NULL, &consumer, err);
  if (code != IST_OK) return code;
  ist__decision plan;
  code = ist__consumer_decide(&cargo, &consumer, &plan, err);
  if (code != IST_OK) return code;
  const char *place = ist__consumer_place(&consumer);
  if (plan.route == IST_ROUTE_REFUSE) {
    return ist__refusal(&cargo, &consumer.options, &plan, place, err);
  }
  code = plan.route == IST_ROUTE_ALIAS
             ? export_view(&cargo, &consumer, &plan, out, err)
             : export_copy(&cargo, &consumer, &plan, out, err);
  if (code == IST_OK && receipt != NULL) {
    char from[IST_MAX_PLACE];
    ist__cargo_place(&cargo, &consumer.options, from);
    ist__decision_receipt(&plan, from, place, receipt);
  }
  return code;
}

static ist_code check(const ist_tensor *tensor, void **out,
                      ist_receipt *receipt, ist_error *err) {
  ist__outputs_clear(out, receipt);
  if (tensor != NULL && out != NULL) {
    return ist__struct_check(receipt, "ist_receipt", err);
  }
  return ist_error_set(err, IST_ERR_ARGUMENT,
                       "a tensor could not be exported: tensor or out is "
                       "NULL; needs both");
}

ist_code ist_tensor_export(ist_tensor *tensor, const ist_options *options,
                           DLManagedTensorVersioned **out, ist_receipt *receipt,
                           ist_error *err) {
  ist_code code = check(tensor, (void **)out, receipt, err);
  if (code != IST_OK) return code;
  return export_tensor(tensor, options, (managed_out){.versioned = out},
                       receipt, err);
}

ist_code ist_tensor_export_legacy(ist_tensor *tensor,
                                  const ist_options *options,
                                  DLManagedTensor **out, ist_receipt *receipt,
                                  ist_error *err) {
  ist_code code = check(tensor, (void **)out, receipt, err);
  if (code != IST_OK) return code;
  return export_tensor(tensor, options, (managed_out){.legacy = out}, receipt,
                       err);
}
