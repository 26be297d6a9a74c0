// SPDX-License-Identifier: Apache-2.0
// import_fuzz.c: any numbers in a managed tensor are refused or carried, its
// deleter runs exactly once, and no byte of its memory is touched by a view.

#include <isthmus/isthmus.h>
#include <string.h>

#include "fuzz/fuzz_input.h"

// Fixed-size prefix of an input; shape and strides follow as they come.
typedef struct numbers {
  int32_t ndim;
  int32_t device_type;
  uint64_t byte_offset;
  uint64_t address;
  uint64_t flags;
  uint32_t major;
  uint32_t minor;
  uint16_t lanes;
  uint8_t code;
  uint8_t bits;
  uint8_t packing;
  uint8_t with_strides;
} numbers;

static void count_call(DLManagedTensorVersioned *self) {
  ++*(int *)self->manager_ctx;
}

// A tensor can be exported as it is; as packing asks only its numbers say
// whether, for that may read the memory, which is not there.
static void plan(ist_tensor *tensor, ist_packing packing) {
  ist_options options = {.struct_size = sizeof options, .packing = packing};
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_error err;
  ist_code code = ist_tensor_plan(tensor, NULL, &options, &receipt, &err);
  require(code == IST_OK || code == IST_ERR_ARGUMENT);
  if (code != IST_OK) return;
  options.copy = IST_COPY_NEVER;
  DLManagedTensorVersioned *out = NULL;
  code = ist_tensor_export(tensor, &options, &out, NULL, &err);
  require((code == IST_OK) == (out != NULL));
  require((code == IST_OK) == (receipt.route == IST_ROUTE_ALIAS));
  if (out != NULL) out->deleter(out);
}

static void cross(const ist_device *device, DLManagedTensorVersioned *source,
                  ist_packing packing, const int *deleted) {
  ist_error err;
  ist_tensor *tensor = NULL;
  ist_options options = {.struct_size = sizeof options, .copy = IST_COPY_NEVER};
  ist_code code =
      ist_tensor_import(device, source, &options, &tensor, NULL, &err);
  if (code != IST_OK) {
    require(tensor == NULL && *deleted == 0 && err.code == code);
    require(strchr(err.message, '\n') == NULL);
    return;
  }
  DLManagedTensorVersioned *again = NULL;
  if (ist_tensor_export(tensor, NULL, &again, NULL, &err) == IST_OK) {
    require(again->dl_tensor.strides != NULL);
    require(again->dl_tensor.ndim == source->dl_tensor.ndim);
    again->deleter(again);
  }
  plan(tensor, packing);
  require(*deleted == 0);
  ist_tensor_release(tensor);
  require(*deleted == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  numbers n;
  int64_t arrays[2][IST_MAX_NDIM + 1] = {{0}};
  int deleted = 0;
  if (size < sizeof n) return 0;
  memcpy(&n, data, sizeof n);
  size -= sizeof n;
  memcpy(arrays, data + sizeof n, size < sizeof arrays ? size : sizeof arrays);
  // A shape is read up to ndim, so more than the array holds cannot be asked.
  if (n.ndim > IST_MAX_NDIM + 1 && n.ndim < 1000) n.ndim %= IST_MAX_NDIM + 2;
  DLManagedTensorVersioned source = {
      .version = {n.major % 3, n.minor},
      .manager_ctx = &deleted,
      .deleter = count_call,
      .flags = n.flags,
      .dl_tensor = {.data = (void *)(uintptr_t)n.address,
                    .device = {(DLDeviceType)n.device_type, 0},
                    .ndim = n.ndim,
                    .dtype = {n.code, n.bits, n.lanes},
                    .shape = arrays[0],
                    .strides = n.with_strides % 2 ? arrays[1] : NULL,
                    .byte_offset = n.byte_offset}};
  ist_context *context = NULL;
  require(ist_context_create(NULL, &context, NULL) == IST_OK);
  cross(ist_context_host(context), &source, (ist_packing)(n.packing % 5),
        &deleted);
  ist_context_release(context);
  return 0;
}
