// SPDX-License-Identifier: Apache-2.0
// command_trial.c: there and back again: what a memory does to a few bytes.

#include <string.h>

#include "command_trial.h"

// The dtype to try: bytes, else the first that the memory has.
static bool trial_dtype(const ist_capability *memory, DLDataType *out) {
  static const char *const names[] = {"uint8", "int8",    "float32",
                                      "int32", "float16", "bfloat16"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (ist_dtype_parse(names[i], out, NULL) != IST_OK) continue;
    int32_t number = ist_dtype_number(*out);
    if (number >= 0 && (memory->dtypes >> number & 1) != 0) return true;
  }
  return false;
}

static unsigned char *bytes_of(const ist_tensor *tensor) {
  const DLTensor *view = ist_tensor_view(tensor);
  return view->data == NULL ? NULL
                            : (unsigned char *)view->data + view->byte_offset;
}

// There and back again. The receipts and the bytes are what counts.
static ist_code try_trip(ist__cmd *cmd, const ist_device *device,
                         const ist_memory_info *memory, ist__trial *t) {
  ist_spec spec = {.struct_size = sizeof spec, .ndim = 1};
  ist_options there = {.struct_size = sizeof there, .memory = memory->kind};
  ist_tensor *source = NULL, *moved = NULL, *back = NULL;
  ist_code code = IST_OK;
  if (!trial_dtype(&memory->capability, &spec.dtype)) {
    return ist_error_set(&t->err, IST_ERR_TARGET_DTYPE,
                         "memory %s could not be tried: it takes no element "
                         "type of 1, 2 or 4 bytes; needs one",
                         memory->kind);
  }
  spec.shape[0] = IST__TRIAL_BYTES * 8 / spec.dtype.bits;
  code = ist_tensor_empty(cmd->context, &spec, 4096, &source, &t->err);
  if (code != IST_OK) goto done;
  unsigned char *sent = bytes_of(source);
  for (size_t i = 0; i < IST__TRIAL_BYTES; i++) {
    sent[i] = (unsigned char)(i * 7 + 3);
  }
  code = ist_tensor_move(source, device, &there, &moved, &t->in, &t->err);
  if (code != IST_OK) goto done;
  code = ist_tensor_wait(moved, &t->err);
  if (code != IST_OK) goto done;
  code = ist_tensor_move(moved, ist_context_host(cmd->context), NULL, &back,
                         &t->out, &t->err);
  if (code != IST_OK) goto done;
  code = ist_tensor_wait(back, &t->err);
  if (code != IST_OK) goto done;
  unsigned char *got = bytes_of(back);
  t->same_address = got == sent;
  t->equal = got != NULL && memcmp(got, sent, IST__TRIAL_BYTES) == 0;
  t->done = true;
done:
  ist_tensor_release(back);
  ist_tensor_release(moved);
  ist_tensor_release(source);
  return code;
}

bool ist__cmd_try(ist__cmd *cmd, const ist_device *device,
                  const ist_memory_info *memory, ist__trial *out,
                  ist_error *err) {
  ist_device_info info = {.struct_size = sizeof info};
  *out = (ist__trial){.in = {.struct_size = sizeof out->in},
                      .out = {.struct_size = sizeof out->out}};
  if (try_trip(cmd, device, memory, out) != IST_OK) {
    *err = out->err;
    return false;
  }
  if (out->equal) return true;
  (void)ist_device_describe(device, &info, NULL);
  (void)ist_error_set(err, IST_ERR_PLUGIN,
                      "memory %s of %s gave wrong bytes: %d bytes did not come "
                      "back as they went in; needs a runtime that keeps them",
                      memory->kind, info.name, IST__TRIAL_BYTES);
  return false;
}
