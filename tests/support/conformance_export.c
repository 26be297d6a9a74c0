// SPDX-License-Identifier: Apache-2.0
// conformance_export.c: exports of every dtype, layout and wish.

#include "support/conformance_world.h"
#include "tensor/dtype.h"

static void check_flags(const crossing *c, const exported *e, bool read_only,
                        bool copied, bool padded) {
  if (e->versioned == NULL) return;
  uint64_t wanted = 0;
  if (read_only) wanted |= DLPACK_FLAG_BITMASK_READ_ONLY;
  if (copied) wanted |= DLPACK_FLAG_BITMASK_IS_COPIED;
  if (padded) wanted |= DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  assert_that(c, e->versioned->flags == wanted);
  assert_that(c, e->versioned->version.major == DLPACK_MAJOR_VERSION);
}

static void check_exported_values(const crossing *c, const DLTensor *tensor,
                                  bool padded) {
  unsigned char got[sample_room], wanted[sample_room];
  gather_bits(tensor, padded, padded, got);
  gather_bits(&c->from.versioned.dl_tensor, c->from.padded, padded, wanted);
  assert_that(c, memcmp(got, wanted, sample_room) == 0);
}

static void check_exported(crossing *c, ist_tensor *tensor, const exported *e,
                           const ist_receipt *receipt, bool share) {
  ist_tensor_info info = {.struct_size = sizeof info};
  ist_error error = {0};
  assert_ok(ist_tensor_describe(tensor, &info, &error), error);
  const DLTensor *t = exported_tensor(e);
  DLDevice wanted = share ? c->w->memory.dl_device : (DLDevice){kDLCPU, 0};
  bool padded = info.padded && !c->legacy;
  assert_that(c, t->device.device_type == wanted.device_type);
  assert_that(c, t->device.device_id == wanted.device_id);
  assert_that(
      c, t->strides != NULL && t->ndim == c->from.versioned.dl_tensor.ndim);
  assert_that(c, (receipt->route == IST_ROUTE_ALIAS) == share);
  assert_that(c, (receipt->bytes_moved == 0) == (share || info.nbytes == 0));
  check_flags(c, e, share && info.read_only, !share, padded);
  unsigned char *address = (unsigned char *)t->data + t->byte_offset;
  bool readable = !share || world_can(c->w, IST_CAN_HOST_ADDRESS);
  if (share && readable && info.nbytes != 0) {
    assert_that(c, address == host_address(tensor));
  }
  if (!share) assert_that(c, !inside_source(c, address));
  if (readable) check_exported_values(c, t, padded);
}

// Exports a tensor that was imported with copy=auto, in both orders of release.
static void check_export(crossing *c, bool tensor_first) {
  ist_copy copy = c->copy;
  bool legacy = c->legacy;
  ist_tensor *tensor;
  ist_error error = {0};
  c->copy = IST_COPY_AUTO;
  c->legacy = false;
  if (import_source(c, &tensor, NULL, &error) != IST_OK) {
    fail_msg("%s: %s", c->text, error.message);
  }
  c->copy = copy;
  c->legacy = legacy;
  ist_tensor_info info = {.struct_size = sizeof info};
  assert_ok(ist_tensor_describe(tensor, &info, &error), error);
  // A managed tensor without version says neither READ_ONLY nor padded.
  bool sayable = !legacy || (!info.read_only && !info.padded);
  bool share =
      world_can(c->w, IST_CAN_LEND) && sayable && copy != IST_COPY_ALWAYS;
  exported e;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_receipt planned = receipt;
  ist_options options = {.struct_size = sizeof options, .copy = copy};
  assert_ok(ist_tensor_plan(tensor, NULL, &options, &planned, &error), error);
  ist_code code = export_tensor(c, tensor, &e, &receipt, &error);
  if (copy == IST_COPY_NEVER && !share) {
    assert_that(c, code == IST_ERR_COPY_NEEDED);
    assert_that(c, e.versioned == NULL && e.legacy == NULL);
    ist_tensor_release(tensor);
    assert_idle(c->w);
    return;
  }
  if (code != IST_OK) fail_msg("%s: export: %s", c->text, error.message);
  check_exported(c, tensor, &e, &receipt, share);
  // The plan is that of the kind with a version.
  if (!legacy) assert_planned(c, &planned, &receipt);
  if (tensor_first) ist_tensor_release(tensor);
  exported_delete(&e);
  if (!tensor_first) ist_tensor_release(tensor);
  assert_deleted(c);
  assert_idle(c->w);
}

void export__every_dtype_layout_and_wish(void **state) {
  world *w = *state;
  for (int32_t dtype = 0; dtype < ist__dtype_count(); dtype++) {
    for (int layout = 0; layout < SAMPLE_LAYOUTS; layout++) {
      for (int v = 0; v < variants; v++) {
        if (!world_takes(w, dtype)) continue;
        if (v >= 6 && ist__dtype_at(dtype)->bits >= 8) continue;
        crossing c = {.layout = (sample_layout)layout};
        crossing_begin(&c, w, dtype, v);
        check_export(&c, (v + layout) % 2 != 0);
      }
    }
  }
}

// A consumer on the host is always served, whatever the device's addresses are.
void export__reaches_a_consumer_on_the_host(void **state) {
  world *w = *state;
  ist_memory_info host = {.struct_size = sizeof host};
  ist_error error = {0};
  assert_ok(ist_device_memory(ist_context_host(w->context), 0, &host, &error),
            error);
  crossing c = {.layout = SAMPLE_ROW_MAJOR};
  crossing_begin(&c, w, 10, 0);
  ist_tensor *tensor;
  assert_ok(import_source(&c, &tensor, NULL, &error), error);
  ist_options options = {.struct_size = sizeof options,
                         .consumer = &host.capability};
  DLManagedTensorVersioned *out;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  assert_ok(ist_tensor_export(tensor, &options, &out, &receipt, &error), error);
  bool share = world_can(w, IST_CAN_LEND | IST_CAN_HOST_ADDRESS);
  assert_int_equal(receipt.route == IST_ROUTE_ALIAS, share);
  check_exported_values(&c, &out->dl_tensor, false);
  ist_tensor_release(tensor);
  out->deleter(out);
  assert_idle(w);
}
