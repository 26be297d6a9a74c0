// SPDX-License-Identifier: Apache-2.0
// import.c: tensors from outside: managed ones of either kind, bare memory,
// and fresh memory.

#include <string.h>

#include "backend/block.h"
#include "base/checked.h"
#include "base/structs.h"
#include "bridge/crossing.h"
#include "bridge/import_plain.h"
#include "bridge/outputs.h"
#include "dlpack/dlpack_read.h"
#include "tensor/dtype.h"

static void consume_versioned(void *self) {
  ist__dlpack_consume((ist__managed){.versioned = self});
}

static void consume_legacy(void *self) {
  ist__dlpack_consume((ist__managed){.legacy = self});
}

// The memory that a producer's device code names, as a capability: the host's
// where this process can read it, else an address that only that device reads.
static void source_memory(const ist_device *host, DLDevice device,
                          ist_capability *out) {
  *out = *ist__device_capability(host, 0);
  out->dl_device = device;
  if (!ist__device_code_is_host((int32_t)device.device_type)) {
    out->can = IST_CAN_LEND;
  }
}

static ist_code import(const ist_device *device, ist__managed managed,
                       const ist_options *options, ist_tensor **out,
                       ist_receipt *receipt, ist_error *err) {
  ist__target target;
  ist_code code = ist__target_make(device, options, &target, err);
  if (code != IST_OK) return code;
  ist__cargo cargo;
  ist__told told = {target.options.grant, target.options.source_packing};
  code = ist__dlpack_read(managed, &told, &cargo.view, &cargo.grant, err);
  if (code != IST_OK) return code;
  ist_context *context = device->backend->context;
  ist_capability memory;
  source_memory(ist_context_host(context), cargo.view.device, &memory);
  cargo.memory = &memory;
  cargo.tensor = NULL;
  cargo.watch = NULL;
  bool versioned = managed.versioned != NULL;
  cargo.release = versioned ? consume_versioned : consume_legacy;
  cargo.release_self =
      versioned ? (void *)managed.versioned : (void *)managed.legacy;
  code = ist__cross(&cargo, &target, out, receipt, err);
  // An alias took the source with it; a copy no longer needs it.
  if (code == IST_OK && (*out)->copied) cargo.release(cargo.release_self);
  return code;
}

static ist_code check(const ist_device *device, const void *source,
                      ist_tensor **out, ist_receipt *receipt, ist_error *err) {
  ist__outputs_clear((void **)out, receipt);
  if (device != NULL && source != NULL && out != NULL) {
    return ist__struct_check(receipt, "ist_receipt", err);
  }
  return ist_error_set(err, IST_ERR_ARGUMENT,
                       "a tensor could not be imported: device, source or out "
                       "is NULL; needs all three");
}

ist_code ist_tensor_import(const ist_device *device,
                           DLManagedTensorVersioned *source,
                           const ist_options *options, ist_tensor **out,
                           ist_receipt *receipt, ist_error *err) {
  ist_code code = check(device, source, out, receipt, err);
  if (code != IST_OK) return code;
  if (receipt == NULL &&
      ist__import_plain(device, source, options, out, &code, err)) {
    return code;
  }
  return import(device, (ist__managed){.versioned = source}, options, out,
                receipt, err);
}

ist_code ist_tensor_import_legacy(const ist_device *device,
                                  DLManagedTensor *source,
                                  const ist_options *options, ist_tensor **out,
                                  ist_receipt *receipt, ist_error *err) {
  ist_code code = check(device, source, out, receipt, err);
  if (code != IST_OK) return code;
  return import(device, (ist__managed){.legacy = source}, options, out, receipt,
                err);
}

ist_code ist__tensor_on_host(ist_context *context, ist__view *view, bool copied,
                             ist_release_fn release, void *self,
                             ist_tensor **out, ist_error *err) {
  const ist_device *host = ist_context_host(context);
  ist__tensor_facts facts = {.device = host,
                             .view = view,
                             .grant = IST_GRANT_WRITABLE,
                             .copied = copied,
                             .address = true};
  if ((view->layout & IST_LAYOUT_OVERLAP) != 0) {
    facts.grant = IST_GRANT_READ_ONLY;
  }
  ist_tensor *t = ist__tensor_make(&facts, err);
  if (t == NULL) return IST_ERR_NO_ALLOCATION;
  DLTensor tensor;
  ist__view_borrow(view, &tensor);
  ist_placement place = {.struct_size = sizeof place,
                         .view = &tensor,
                         .padded = view->padded,
                         .release = release,
                         .release_self = self};
  ist_code code = ist__backend_adopt(host->backend, &place, &t->buffer, err);
  if (code != IST_OK) {
    ist__tensor_discard(t);
    return code;
  }
  *out = t;
  return IST_OK;
}

ist_code ist_tensor_wrap(ist_context *context, const DLTensor *view,
                         ist_release_fn release, void *self, ist_tensor **out,
                         ist_error *err) {
  if (out != NULL) *out = NULL;
  if (context == NULL || view == NULL || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "memory could not be wrapped: context, view or out "
                         "is NULL; needs all three");
  }
  if (!ist__device_code_is_host((int32_t)view->device.device_type)) {
    return ist_error_set(err, IST_ERR_NO_ROUTE,
                         "memory could not be wrapped: device code %d is not "
                         "the host's; needs memory of this process",
                         (int)view->device.device_type);
  }
  ist__view checked;
  ist_code code = ist__view_check(view, false, true, &checked, err);
  if (code != IST_OK) return code;
  return ist__tensor_on_host(context, &checked, false, release, self, out, err);
}

ist_code ist_tensor_empty(ist_context *context, const ist_spec *spec,
                          size_t alignment, ist_tensor **out, ist_error *err) {
  if (out != NULL) *out = NULL;
  if (context == NULL || !ist__struct_ok(spec) || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a tensor could not be made: context, spec or out is "
                         "NULL, or spec has no struct_size; needs all of them");
  }
  if (alignment != 0 && !ist__is_power_of_two(alignment)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a tensor could not be made: the alignment is %zu; "
                         "needs a power of two, or 0 for 64",
                         alignment);
  }
  ist_spec asked;
  ist__struct_read(&asked, sizeof asked, spec);
  ist__view view;
  ist_code code =
      ist__view_dense(asked.dtype, asked.ndim, asked.shape, false, &view, err);
  if (code != IST_OK) return code;
  view.data = ist__block_make_zeroed(context, view.nbytes, alignment);
  if (view.data == NULL) {
    return ist__error_memory(err, "the tensor", view.nbytes);
  }
  code = ist__tensor_on_host(context, &view, false, ist__block_release,
                             view.data, out, err);
  if (code != IST_OK) ist__block_release(view.data);
  return code;
}
