// SPDX-License-Identifier: Apache-2.0
// crossing_bytes_test.c: from every memory to every other, and out of every
// door, elements below a byte arrive as they were, lie as asked, and the bytes
// of the plan, the receipt and the progress are the same.

#include "support/fake_backend.h"
#include "support/producer.h"
#include "support/sample.h"
#include "tensor/dtype.h"

enum {
  most_places = 5
};

typedef struct world {
  counted_context c;
  fake_backend keeper, other;  // neither has addresses; the first keeps padding
  ist_backend *backends[most_places - 1];
  const ist_device *places[most_places];
} world;

static ist_backend *open_template(const world *w, bool addressable) {
  ist_option option = {
      .name = "addressable", .kind = IST_OPTION_BOOL, .boolean = addressable};
  ist_backend_options how = {
      .struct_size = sizeof how, .options = &option, .option_count = 1};
  ist_backend *backend;
  ist_error error;
  assert_ok(ist_backend_open(w->c.context, "template", &how, &backend, &error),
            error);
  return backend;
}

static int begin(void **state) {
  static world w;
  ist_error error;
  counted_context_begin(&w.c);
  fake_backend_init(&w.keeper, false);
  w.keeper.memory.capability.can |= IST_CAN_PADDED;
  fake_backend_init(&w.other, false);
  w.backends[0] = open_template(&w, true);
  w.backends[1] = open_template(&w, false);
  assert_ok(ist_backend_create(w.c.context, &w.keeper.ops, &w.keeper,
                               &w.backends[2], &error),
            error);
  assert_ok(ist_backend_create(w.c.context, &w.other.ops, &w.other,
                               &w.backends[3], &error),
            error);
  w.places[0] = ist_context_host(w.c.context);
  for (int i = 1; i < most_places; i++) {
    w.places[i] = ist_backend_device(w.backends[i - 1], 0);
  }
  *state = &w;
  return 0;
}

static int end(void **state) {
  world *w = *state;
  for (int i = 0; i < most_places - 1; i++) ist_backend_release(w->backends[i]);
  assert_int_equal(w->keeper.buffers + w->other.buffers, 0);
  counted_context_end(&w->c);
  return 0;
}

typedef struct listener {
  uint64_t last, total;
  int calls;
} listener;

static bool listen(void *self, uint64_t done, uint64_t total) {
  listener *l = self;
  assert_true(l->calls > 0 ? done >= l->last : done == 0);
  assert_true(done <= total);
  assert_true(l->calls == 0 || l->total == total);
  l->last = done;
  l->total = total;
  l->calls++;
  return true;
}

// One tensor somewhere, the wish for it, and what is told of its crossing.
typedef struct crossing {
  world *w;
  const sample *from;
  ist_tensor *held;
  ist_options options;
  ist_receipt planned, made;
  listener told;
} crossing;

// The elements are the sample's, and lie as asked.
static void check_arrival(const crossing *c, const DLTensor *got, bool padded) {
  unsigned char want[sample_room], have[sample_room];
  gather_bits(&c->from->versioned.dl_tensor, c->from->padded, false, want);
  gather_bits(got, padded, false, have);
  assert_memory_equal(have, want, sample_room);
  if (c->options.packing != IST_PACKING_AS_IS && got->dtype.bits < 8) {
    assert_int_equal(padded, c->options.packing == IST_PACKING_PADDED);
  }
}

static void check_count(const crossing *c) {
  const ist_receipt *r = &c->made;
  assert_int_equal(c->told.last, r->bytes_moved);
  assert_int_equal(c->told.total, r->bytes_moved);
  if (r->bytes_moved != 0) assert_true(c->told.calls > (int)r->hops);
}

static void check_plan(const crossing *c) {
  assert_int_equal(c->planned.route, c->made.route);
  assert_int_equal(c->planned.hops, c->made.hops);
  assert_int_equal(c->planned.bytes_moved, c->made.bytes_moved);
  check_count(c);
}

// Asks for the plan; false where it is a refusal.
static bool begin_crossing(crossing *c, const ist_device *target) {
  ist_error error;
  c->told = (listener){.calls = 0};
  c->options.progress = listen;
  c->options.progress_self = &c->told;
  c->planned = (ist_receipt){.struct_size = sizeof c->planned};
  c->made = (ist_receipt){.struct_size = sizeof c->made};
  assert_ok(ist_tensor_plan(c->held, target, &c->options, &c->planned, &error),
            error);
  return c->planned.route != IST_ROUTE_REFUSE;
}

static void check_move(crossing *c, const ist_device *target) {
  ist_tensor *out, *back;
  ist_error error;
  bool crosses = begin_crossing(c, target);
  ist_code code =
      ist_tensor_move(c->held, target, &c->options, &out, &c->made, &error);
  if (!crosses) {
    assert_int_equal(code, c->planned.code);
    assert_int_equal(c->told.calls, 0);
    return;
  }
  assert_ok(code, error);
  check_plan(c);
  ist_tensor_info info = {.struct_size = sizeof info};
  assert_ok(ist_tensor_describe(out, &info, &error), error);
  assert_ok(ist_tensor_move(out, c->w->places[0], NULL, &back, NULL, &error),
            error);
  check_arrival(c, ist_tensor_view(back), info.padded);
  ist_tensor_release(back);
  ist_tensor_release(out);
}

static void check_export(crossing *c) {
  DLManagedTensorVersioned *out;
  ist_error error;
  assert_true(begin_crossing(c, NULL));
  assert_ok(ist_tensor_export(c->held, &c->options, &out, &c->made, &error),
            error);
  check_plan(c);
  if (out->dl_tensor.device.device_type == kDLCPU) {
    uint64_t flag = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    check_arrival(c, &out->dl_tensor, (out->flags & flag) != 0);
  }
  out->deleter(out);
}

static void check_copy_into(crossing *c) {
  unsigned char bytes[sample_room];
  int64_t strides[3], dense = 1;
  DLTensor target = c->from->versioned.dl_tensor;
  ist_error error;
  ist_tensor_info info = {.struct_size = sizeof info};
  target.data = bytes;
  target.byte_offset = 0;
  target.strides = strides;
  for (int32_t d = target.ndim - 1; d >= 0; d--) {
    strides[d] = dense;
    dense *= target.shape[d];
  }
  begin_crossing(c, c->w->places[0]);
  assert_ok(
      ist_tensor_copy_into(c->held, &target, &c->options, &c->made, &error),
      error);
  check_count(c);
  assert_ok(ist_tensor_describe(c->held, &info, &error), error);
  bool padded = c->options.packing == IST_PACKING_AS_IS
                    ? info.padded
                    : c->options.packing == IST_PACKING_PADDED;
  check_arrival(c, &target, padded && target.dtype.bits < 8);
}

static void check_doors(crossing *c) {
  static const ist_packing packings[] = {IST_PACKING_AS_IS, IST_PACKING_PACKED,
                                         IST_PACKING_PADDED};
  for (size_t p = 0; p < COUNT_OF(packings); p++) {
    for (int always = 0; always < 2; always++) {
      c->options =
          (ist_options){.struct_size = sizeof c->options,
                        .copy = always != 0 ? IST_COPY_ALWAYS : IST_COPY_AUTO,
                        .packing = packings[p]};
      for (int i = 0; i < most_places; i++) check_move(c, c->w->places[i]);
      check_export(c);
      check_copy_into(c);
    }
  }
}

// From each place: the sample is brought there as it is.
static void check_sample(world *w, sample *from) {
  ist_tensor *here;
  ist_error error;
  assert_ok(ist_tensor_import(w->places[0], &from->versioned, NULL, &here, NULL,
                              &error),
            error);
  for (int i = 0; i < most_places; i++) {
    crossing c = {.w = w, .from = from};
    assert_ok(ist_tensor_move(here, w->places[i], NULL, &c.held, NULL, &error),
              error);
    check_doors(&c);
    ist_tensor_release(c.held);
  }
  ist_tensor_release(here);
  assert_int_equal(from->deleted, 1);
}

static void crossing__moves_and_tells_the_bytes_that_it_says(void **state) {
  for (int32_t i = 0; i < ist__dtype_count(); i++) {
    DLDataType dtype = ist__dtype_of(ist__dtype_at(i));
    if (dtype.bits >= 8 && i % 7 != 0) continue;
    for (int layout = 0; layout < SAMPLE_LAYOUTS; layout++) {
      for (int padded = 0; padded < (dtype.bits < 8 ? 2 : 1); padded++) {
        sample from;
        sample_make(&from, dtype, (sample_layout)layout, padded != 0,
                    (uint64_t)(i * 10 + layout));
        check_sample(*state, &from);
      }
    }
  }
}

// What the host can neither read nor write, and must repack, is copied thrice.
static void crossing__between_devices_that_repacks_is_three_copies(
    void **state) {
  world *w = *state;
  sample from;
  crossing c = {.w = w, .from = &from};
  ist_tensor *out;
  ist_error error;
  sample_make(&from, (DLDataType){kDLInt, 4, 1}, SAMPLE_ROW_MAJOR, true, 1);
  assert_ok(ist_tensor_import(w->places[3], &from.versioned, NULL, &c.held,
                              NULL, &error),
            error);
  c.options = (ist_options){.struct_size = sizeof c.options};
  assert_true(begin_crossing(&c, w->places[4]));
  assert_ok(
      ist_tensor_move(c.held, w->places[4], &c.options, &out, &c.made, &error),
      error);
  check_plan(&c);
  assert_int_equal(c.made.route, IST_ROUTE_STAGE);
  assert_int_equal(c.made.hops, 3);
  assert_int_equal(c.made.bytes_moved,
                   from.count + 2 * dense_size(from.versioned.dl_tensor.dtype,
                                               false, from.count));
  ist_tensor_release(out);
  ist_tensor_release(c.held);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(crossing__moves_and_tells_the_bytes_that_it_says),
      cmocka_unit_test(crossing__between_devices_that_repacks_is_three_copies),
  };
  return cmocka_run_group_tests_name("crossing_bytes", tests, begin, end);
}
