// SPDX-License-Identifier: Apache-2.0
// conformance_world.c: opening a backend for the suite, making a crossing and
// reading what came of it.

#include "support/conformance_world.h"

#include <stdio.h>
#include <threads.h>

#include "tensor/dtype.h"

void open_world(world *w, const subject *under_test) {
  memset(w, 0, sizeof *w);
  w->subject = under_test;
  counting_allocator_init(&w->counter);
  ist_allocator allocator = counting_allocator_hook(&w->counter);
  ist_context_options options = {.struct_size = sizeof options,
                                 .allocator = &allocator};
  ist_error error = {0};
  assert_ok(ist_context_create(&options, &w->context, &error), error);
  assert_ok(under_test->open(under_test, w->context, &w->backend, &error),
            error);
  w->device = ist_backend_device(w->backend, 0);
  assert_non_null(w->device);
  ist_device_info device = {.struct_size = sizeof device};
  assert_ok(ist_device_describe(w->device, &device, &error), error);
  ist_memory_info memory = {.struct_size = sizeof memory};
  assert_ok(
      ist_device_memory(w->device, device.default_memory, &memory, &error),
      error);
  w->memory = memory.capability;
  w->at_rest = w->counter.live;
}

bool world_can(const world *w, uint32_t what) {
  return (w->memory.can & what) == what;
}

bool world_takes(const world *w, int32_t dtype) {
  return (w->memory.dtypes >> dtype & 1) != 0;
}

// Turns of a wait for a plugin's threads: bounded, so that what never comes is
// a failure and not a hang.
enum {
  patience = 20000000
};

void await_live(const world *w, long live) {
  int turns = w->subject->late_release ? patience : 0;
  while (atomic_load(&w->counter.live) > live && turns-- > 0) thrd_yield();
  if (w->counter.live > live) {
    fail_msg("%s: %ld allocations are left over", w->subject->name,
             w->counter.live - live);
  }
}

void assert_idle(world *w) {
  await_live(w, w->at_rest);
  // What opening left to the plugin's threads is now back too.
  w->at_rest = w->counter.live;
}

void assert_deleted(const crossing *c) {
  int turns = c->w->subject->late_release ? patience : 0;
  while (atomic_load(&c->from.deleted) == 0 && turns-- > 0) thrd_yield();
  assert_that(c, c->from.deleted == 1);
}

static const char *const copy_names[] = {"auto", "never", "always"};

void crossing_begin(crossing *c, world *w, int32_t dtype, int variant) {
  c->w = w;
  c->dtype = ist__dtype_of(ist__dtype_at(dtype));
  c->copy = (ist_copy)(variant % 3);
  c->legacy = variant / 3 % 2 != 0;
  bool padded = variant / 6 % 2 != 0;
  sample_make(&c->from, c->dtype, c->layout, padded,
              (uint64_t)(dtype * 100 + variant));
  snprintf(c->text, sizeof c->text, "%s: %s %s%s%s copy=%s", w->subject->name,
           ist__dtype_at(dtype)->name, sample_layout_name(c->layout),
           padded ? " padded" : "", c->legacy ? " legacy" : "",
           copy_names[c->copy]);
}

bool variant_makes_sense(int32_t dtype, int variant) {
  bool padded = variant / 6 % 2 != 0;
  return !padded || ist__dtype_at(dtype)->bits < 8;
}

ist_code import_source(crossing *c, ist_tensor **out, ist_receipt *receipt,
                       ist_error *error) {
  ist_options options = {.struct_size = sizeof options, .copy = c->copy};
  // Without a version a tensor cannot say it: the caller does.
  options.source_packing =
      c->from.padded ? IST_PACKING_PADDED : IST_PACKING_PACKED;
  return c->legacy ? ist_tensor_import_legacy(c->w->device, &c->from.legacy,
                                              &options, out, receipt, error)
                   : ist_tensor_import(c->w->device, &c->from.versioned,
                                       &options, out, receipt, error);
}

ist_code export_tensor(crossing *c, ist_tensor *tensor, exported *out,
                       ist_receipt *receipt, ist_error *error) {
  ist_options options = {.struct_size = sizeof options, .copy = c->copy};
  *out = (exported){(void *)c, (void *)c};
  if (c->legacy) {
    out->versioned = NULL;
    return ist_tensor_export_legacy(tensor, &options, &out->legacy, receipt,
                                    error);
  }
  out->legacy = NULL;
  return ist_tensor_export(tensor, &options, &out->versioned, receipt, error);
}

const DLTensor *exported_tensor(const exported *e) {
  return e->legacy != NULL ? &e->legacy->dl_tensor : &e->versioned->dl_tensor;
}

void exported_delete(exported *e) {
  if (e->legacy != NULL) {
    e->legacy->deleter(e->legacy);
  } else {
    e->versioned->deleter(e->versioned);
  }
}

bool read_values(const crossing *c, ist_tensor *tensor, unsigned char *got) {
  ist_tensor_info info = {.struct_size = sizeof info};
  ist_error error = {0};
  assert_ok(ist_tensor_describe(tensor, &info, &error), error);
  memset(got, 0, sample_room);
  DLTensor target = {.data = got,
                     .device = {kDLCPU, 0},
                     .ndim = c->from.versioned.dl_tensor.ndim,
                     .dtype = c->dtype,
                     .shape = (int64_t *)(uintptr_t)c->from.shape};
  ist_receipt receipt = {.struct_size = sizeof receipt};
  if (ist_tensor_copy_into(tensor, &target, NULL, &receipt, &error) != IST_OK) {
    fail_msg("%s: %s", c->text, error.message);
  }
  assert_that(c, receipt.bytes_moved == receipt.hops * info.nbytes);
  assert_that(c,
              info.nbytes == dense_size(c->dtype, info.padded, c->from.count));
  // Bits after the last packed element are nobody's.
  unsigned used = (unsigned)(c->from.count * c->dtype.bits % 8);
  if (c->dtype.bits < 8 && !info.padded && used != 0) {
    got[info.nbytes - 1] &= (unsigned char)((1U << used) - 1);
  }
  return info.padded;
}

void assert_values(const crossing *c, ist_tensor *tensor) {
  unsigned char got[sample_room], wanted[sample_room];
  bool padded = read_values(c, tensor, got);
  gather_bits(&c->from.versioned.dl_tensor, c->from.padded, padded, wanted);
  assert_that(c, memcmp(got, wanted, sample_room) == 0);
}

unsigned char *host_address(ist_tensor *tensor) {
  ist_error error = {0};
  assert_ok(ist_tensor_wait(tensor, &error), error);
  const DLTensor *view = ist_tensor_view(tensor);
  return view->data == NULL ? NULL
                            : (unsigned char *)view->data + view->byte_offset;
}

bool inside_source(const crossing *c, const unsigned char *address) {
  return address >= c->from.bytes && address < c->from.bytes + sample_room;
}

void assert_planned(const crossing *c, const ist_receipt *planned,
                    const ist_receipt *done) {
  assert_that(c, planned->route == done->route);
  assert_that(c, planned->bytes_moved == done->bytes_moved);
  assert_that(c, planned->hops == done->hops);
  assert_that(c, planned->read_only == done->read_only);
  assert_that(c, planned->reason_count == done->reason_count);
  for (uint32_t i = 0; i < planned->reason_count; i++) {
    assert_that(c, planned->reasons[i].id == done->reasons[i].id);
    assert_that(c, planned->reasons[i].needed == done->reasons[i].needed);
  }
  assert_that(c, strcmp(planned->source, done->source) == 0);
  assert_that(c, strcmp(planned->target, done->target) == 0);
}
