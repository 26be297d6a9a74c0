// SPDX-License-Identifier: Apache-2.0
// import_plain_test.c: the short ways of an import (its checks, its route, the
// whole of it) say and make what the long ways do.

#include "bridge/import_plain.h"

#include "bridge/route.h"
#include "support/producer.h"
#include "tensor/dtype.h"

enum {
  TURNS = 20000
};

static _Alignas(64) unsigned char memory[16384];

static int64_t one_of(uint64_t *random, const int64_t *from, size_t count) {
  return from[random_below(random, (int64_t)count)];
}

// Mostly a tensor that is plain, with now and then something else about it.
typedef struct drawn {
  DLManagedTensorVersioned managed;
  int64_t shape[5];
  int64_t strides[5];
  int deleted;
} drawn;

static void count_deleted(DLManagedTensorVersioned *self) {
  ((drawn *)self->manager_ctx)->deleted++;
}

static void draw_strides(uint64_t *random, drawn *d, int32_t ndim) {
  int64_t dense = 1;
  for (int32_t i = ndim - 1; i >= 0; i--) {
    d->strides[i] = dense;
    if (random_below(random, 12) == 0) {
      d->strides[i] = random_below(random, 9) - 4;
    }
    if (d->shape[i] > 0 && d->shape[i] < 100) dense *= d->shape[i];
  }
}

// Something that is wrong, or that the short way does not know.
static void spoil(uint64_t *random, drawn *d) {
  static const int64_t devices[] = {kDLCPU, kDLCUDAHost, kDLCUDA, 99, 0};
  DLTensor *t = &d->managed.dl_tensor;
  switch (random_below(random, 40)) {
    case 0:
      t->data = NULL;
      break;
    case 1:
      t->shape = NULL;
      break;
    case 2:
      t->ndim = random_below(random, 2) == 0 ? -1 : IST_MAX_NDIM + 1;
      break;
    case 3:
      t->dtype.lanes = (uint16_t)random_below(random, 3);
      break;
    case 4:
      t->dtype.bits = (uint8_t)next_random(random);
      break;
    case 5:
      t->dtype.code = (uint8_t)next_random(random);
      break;
    case 6:
      t->device.device_type =
          (DLDeviceType)one_of(random, devices, COUNT_OF(devices));
      break;
    case 7:
      t->byte_offset = next_random(random);
      break;
    case 8:
      t->data = (void *)(UINTPTR_MAX - 64 * (uintptr_t)random_below(random, 9));
      break;
    case 9:
      d->managed.version.major = (uint32_t)random_below(random, 4);
      break;
    default:
      break;
  }
}

static void draw(uint64_t *random, drawn *d) {
  static const int64_t odd[] = {
      0, -1, INT64_MAX, INT64_MAX / 2, INT64_C(1) << 55, INT64_C(1) << 32};
  memset(d, 0, sizeof *d);
  int32_t ndim = (int32_t)random_below(random, 5);
  for (int32_t i = 0; i < ndim; i++) {
    d->shape[i] = 1 + random_below(random, 4);
    if (random_below(random, 20) == 0) {
      d->shape[i] = one_of(random, odd, COUNT_OF(odd));
    }
  }
  draw_strides(random, d, ndim);
  const ist__dtype *row =
      ist__dtype_at((int32_t)random_below(random, ist__dtype_count()));
  d->managed.version.major = DLPACK_MAJOR_VERSION;
  d->managed.manager_ctx = d;
  d->managed.deleter = count_deleted;
  d->managed.flags =
      random_below(random, 3) == 0 ? (uint64_t)random_below(random, 8) : 0;
  DLTensor *t = &d->managed.dl_tensor;
  *t = (DLTensor){.data = memory + 4096 + 64 * random_below(random, 16),
                  .device = {kDLCPU, 0},
                  .ndim = ndim,
                  .dtype = {row->code, row->bits, 1},
                  .shape = d->shape,
                  .strides = d->strides};
  if (random_below(random, 8) == 0) {
    t->byte_offset = (uint64_t)random_below(random, 200);
  }
  if (random_below(random, 3) == 0) t->strides = NULL;
  spoil(random, d);
}

static void assert_same_view(const ist__view *a, const ist__view *b) {
  assert_ptr_equal(a->data, b->data);
  assert_int_equal(a->byte_offset, b->byte_offset);
  assert_memory_equal(&a->device, &b->device, sizeof a->device);
  assert_memory_equal(&a->dtype, &b->dtype, sizeof a->dtype);
  assert_int_equal(a->dtype_number, b->dtype_number);
  assert_int_equal(a->ndim, b->ndim);
  assert_int_equal(a->layout, b->layout);
  assert_int_equal(a->padded, b->padded);
  assert_int_equal(a->count, b->count);
  assert_int_equal(a->nbytes, b->nbytes);
  assert_int_equal(a->lowest, b->lowest);
  assert_int_equal(a->highest, b->highest);
  for (int32_t i = 0; i < a->ndim; i++) {
    assert_int_equal(a->shape[i], b->shape[i]);
    assert_int_equal(a->strides[i], b->strides[i]);
  }
}

static void view__checked_the_short_way_is_the_long_ways(void **state) {
  (void)state;
  uint64_t random = 7;
  int plain = 0;
  for (int turn = 0; turn < TURNS; turn++) {
    drawn d;
    draw(&random, &d);
    ist__view quick, slow;
    if (!ist__view_check_plain(&d.managed.dl_tensor, &quick)) continue;
    ist_error err;
    assert_ok(
        ist__view_check(&d.managed.dl_tensor, turn % 2 == 0, true, &slow, &err),
        err);
    assert_same_view(&quick, &slow);
    plain++;
  }
  assert_in_range(plain, TURNS / 10, TURNS - TURNS / 10);
}

static void route__of_the_short_way_is_the_long_ways(void **state) {
  (void)state;
  uint64_t random = 11;
  int plain = 0;
  for (int turn = 0; turn < TURNS; turn++) {
    ist_capability from = {.struct_size = sizeof from,
                           .can = (uint32_t)next_random(&random) & 255,
                           .alignment = 1,
                           .dtypes = ist__dtype_all()};
    from.can |= IST_CAN_LEND | IST_CAN_HOST_ADDRESS;
    ist_capability to = {.struct_size = sizeof to,
                         .can = (uint32_t)next_random(&random) & 255,
                         .layouts = (uint32_t)next_random(&random) & 15,
                         .alignment = UINT64_C(1) << random_below(&random, 8),
                         .dtypes = next_random(&random) | next_random(&random)};
    if (turn % 3 != 0) to.can |= IST_CAN_ADOPT | IST_CAN_HOST_ADDRESS;
    int32_t dtype = (int32_t)random_below(&random, ist__dtype_count());
    if (ist__dtype_at(dtype)->bits < 8) continue;
    ist_offer offer = {.struct_size = sizeof offer,
                       .memory = &from,
                       .layout = IST_LAYOUT_ROW_MAJOR,
                       .dtype = dtype,
                       .grant = (ist_grant)(1 + random_below(&random, 3)),
                       .address = 16 * next_random(&random),
                       .nbytes = 1024,
                       .peer = turn % 5 == 0};
    ist_wish wish = {.struct_size = sizeof wish,
                     .copy = (ist_copy)random_below(&random, 2),
                     .read_only = (ist_read_only)random_below(&random, 4)};
    bool writable = offer.grant == IST_GRANT_WRITABLE;
    if (!ist__route_is_plain(&to, dtype, offer.address, writable)) continue;
    ist__decision decision;
    ist__route_decide(&offer, &to, &wish, &decision);
    assert_int_equal(decision.route, IST_ROUTE_ALIAS);
    assert_int_equal(decision.read_only, !writable);
    assert_false(decision.in_place);
    assert_int_equal(decision.hops, 0);
    plain++;
  }
  assert_in_range(plain, TURNS / 100, TURNS);
}

static void draw_options(uint64_t *random, ist_options *out) {
  *out = (ist_options){.struct_size = sizeof *out};
  out->copy = (ist_copy)random_below(random, 3);
  out->grant = (ist_grant)random_below(random, 4);
  out->read_only = (ist_read_only)random_below(random, 4);
  switch (random_below(random, 12)) {
    case 0:
      out->mutable_source = IST_MUTABLE_COPY;
      break;
    case 1:
      out->packing = (ist_packing)random_below(random, 4);
      break;
    case 2:
      out->copy = (ist_copy)(random_below(random, 9) - 3);
      break;
    case 3:
      out->grant = (ist_grant)(random_below(random, 9) - 3);
      break;
    case 4:
      out->memory = random_below(random, 2) == 0 ? "" : "nowhere";
      break;
    case 5:
      out->struct_size = offsetof(ist_options, packing);
      break;
    default:
      break;
  }
}

// An address is compared where the two results view the same memory.
static void assert_same_tensor(ist_tensor *a, ist_tensor *b, bool is_view) {
  ist_tensor_info x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};
  ist_error err;
  assert_ok(ist_tensor_describe(a, &x, &err), err);
  assert_ok(ist_tensor_describe(b, &y, &err), err);
  assert_ptr_equal(x.device, y.device);
  assert_int_equal(x.memory, y.memory);
  assert_int_equal(x.nbytes, y.nbytes);
  assert_int_equal(x.grant, y.grant);
  assert_int_equal(x.read_only, y.read_only);
  assert_int_equal(x.copied, y.copied);
  assert_int_equal(x.padded, y.padded);
  assert_int_equal(x.flags, y.flags);
  assert_int_equal(a->lowest, b->lowest);
  assert_int_equal(a->highest, b->highest);
  assert_int_equal(a->borrowed_address, b->borrowed_address);
  const DLTensor *v = ist_tensor_view(a), *w = ist_tensor_view(b);
  if (is_view) {
    assert_ptr_equal(v->data, w->data);
    assert_int_equal(v->byte_offset, w->byte_offset);
  }
  assert_memory_equal(&v->device, &w->device, sizeof v->device);
  assert_memory_equal(&v->dtype, &w->dtype, sizeof v->dtype);
  assert_int_equal(v->ndim, w->ndim);
  for (int32_t i = 0; i < v->ndim; i++) {
    assert_int_equal(v->shape[i], w->shape[i]);
    assert_int_equal(v->strides[i], w->strides[i]);
  }
}

// With a receipt an import goes the long way. An extent of a hostile tensor may
// be far larger than the memory here, so that only views are made of those.
static void import_both_ways(const ist_device *device, uint64_t *random) {
  drawn d;
  ist_options options;
  draw(random, &d);
  draw_options(random, &options);
  const DLTensor *t = &d.managed.dl_tensor;
  uintptr_t from = (uintptr_t)t->data - (uintptr_t)memory;
  bool readable = from < sizeof memory && t->byte_offset < 1000;
  for (int32_t i = 0; readable && i < t->ndim && i < 5; i++) {
    readable = d.shape[i] < 5;
  }
  if (!readable) options.copy = IST_COPY_NEVER;
  ist_tensor *quick = NULL, *slow = NULL;
  ist_error first = {0}, second = {0};
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_code a =
      ist_tensor_import(device, &d.managed, &options, &quick, NULL, &first);
  ist_code b =
      ist_tensor_import(device, &d.managed, &options, &slow, &receipt, &second);
  assert_int_equal(a, b);
  if (a != IST_OK) {
    assert_string_equal(first.message, second.message);
    assert_int_equal(d.deleted, 0);
    return;
  }
  assert_same_tensor(quick, slow, receipt.route == IST_ROUTE_ALIAS);
  ist_tensor_release(quick);
  ist_tensor_release(slow);
  assert_int_equal(d.deleted, 2);
}

static void import__goes_one_way_or_the_other_to_one_end(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  ist_backend *backend = NULL;
  ist_error err;
  assert_ok(ist_backend_open(c.context, "template", NULL, &backend, &err), err);
  uint64_t random = 13;
  for (int turn = 0; turn < TURNS; turn++) {
    import_both_ways(turn % 2 == 0 ? ist_context_host(c.context)
                                   : ist_backend_device(backend, 0),
                     &random);
  }
  ist_backend_release(backend);
  counted_context_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(view__checked_the_short_way_is_the_long_ways),
      cmocka_unit_test(route__of_the_short_way_is_the_long_ways),
      cmocka_unit_test(import__goes_one_way_or_the_other_to_one_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
