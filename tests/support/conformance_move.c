// SPDX-License-Identifier: Apache-2.0
// conformance_move.c: moves to the host, back, and between devices; and every
// order of closing.

#include "support/conformance_world.h"
#include "tensor/dtype.h"

// ------------------------------------------------------------------- move --

static void check_move(crossing *c, ist_tensor *tensor, const ist_device *to,
                       bool share) {
  ist_options options = {.struct_size = sizeof options, .copy = c->copy};
  ist_tensor *moved = (void *)c;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_receipt planned = receipt;
  ist_error error = {0};
  assert_ok(ist_tensor_plan(tensor, to, &options, &planned, &error), error);
  ist_code code =
      ist_tensor_move(tensor, to, &options, &moved, &receipt, &error);
  share = share && c->copy != IST_COPY_ALWAYS;
  if (c->copy == IST_COPY_NEVER && !share) {
    assert_that(c, code == IST_ERR_COPY_NEEDED && moved == NULL);
    assert_that(c, planned.route == IST_ROUTE_REFUSE && planned.code == code);
    return;
  }
  if (code != IST_OK) fail_msg("%s: move: %s", c->text, error.message);
  assert_that(c, (receipt.route == IST_ROUTE_ALIAS) == share);
  assert_planned(c, &planned, &receipt);
  assert_values(c, moved);
  if (!share && c->from.count != 0) {
    unsigned char *address = host_address(moved);
    assert_that(c, address == NULL || address != host_address(tensor));
  }
  ist_tensor_release(moved);
}

// To the host, to where it is, and from the host back again.
void move__every_dtype_layout_and_wish(void **state) {
  world *w = *state;
  const ist_device *host = ist_context_host(w->context);
  for (int32_t dtype = 0; dtype < ist__dtype_count(); dtype++) {
    for (int layout = 0; layout < SAMPLE_LAYOUTS; layout++) {
      for (int v = 0; v < variants; v++) {
        if (!world_takes(w, dtype) || !variant_makes_sense(dtype, v)) continue;
        crossing c = {.layout = (sample_layout)layout};
        crossing_begin(&c, w, dtype, v);
        ist_copy copy = c.copy;
        c.copy = IST_COPY_AUTO;
        ist_tensor *tensor, *outside;
        ist_error error = {0};
        if (import_source(&c, &tensor, NULL, &error) != IST_OK) {
          fail_msg("%s: %s", c.text, error.message);
        }
        c.copy = copy;
        bool same = host == w->device;
        check_move(&c, tensor, host,
                   same || world_can(w, IST_CAN_LEND | IST_CAN_HOST_ADDRESS));
        check_move(&c, tensor, w->device, true);
        ist_options always = {.struct_size = sizeof always,
                              .copy = IST_COPY_ALWAYS};
        assert_ok(
            ist_tensor_move(tensor, host, &always, &outside, NULL, &error),
            error);
        ist_tensor_release(tensor);
        assert_deleted(&c);
        assert_values(&c, outside);
        c.copy = IST_COPY_AUTO;
        ist_tensor *back;
        assert_ok(
            ist_tensor_move(outside, w->device, NULL, &back, NULL, &error),
            error);
        ist_tensor_release(outside);
        assert_values(&c, back);
        ist_tensor_release(back);
        assert_idle(w);
      }
    }
  }
}

void move__between_devices_of_one_backend(void **state) {
  world *w = *state;
  crossing c = {.layout = SAMPLE_ROW_MAJOR};
  crossing_begin(&c, w, 10, 0);
  ist_tensor *tensor;
  ist_error error = {0};
  assert_ok(import_source(&c, &tensor, NULL, &error), error);
  const ist_device *device;
  for (size_t d = 1; (device = ist_backend_device(w->backend, d)) != NULL;
       d++) {
    ist_tensor *next;
    assert_ok(ist_tensor_move(tensor, device, NULL, &next, NULL, &error),
              error);
    ist_tensor_info info = {.struct_size = sizeof info};
    assert_ok(ist_tensor_describe(next, &info, &error), error);
    assert_ptr_equal(info.device, device);
    assert_values(&c, next);
    ist_tensor_release(tensor);
    tensor = next;
  }
  ist_tensor_release(tensor);
  assert_deleted(&c);
  assert_idle(w);
}

// ---------------------------------------------------------------- closing --

// Releases context, backend, tensor and export in one order.
static void check_closing(const subject *under_test, const int *order) {
  world w;
  open_world(&w, under_test);
  crossing c = {.layout = SAMPLE_ROW_MAJOR};
  crossing_begin(&c, &w, 10, 0);
  ist_tensor *tensor;
  exported e;
  ist_error error = {0};
  assert_ok(import_source(&c, &tensor, NULL, &error), error);
  assert_ok(export_tensor(&c, tensor, &e, NULL, &error), error);
  for (int i = 0; i < 4; i++) {
    switch (order[i]) {
      case 0:
        ist_context_release(w.context);
        break;
      case 1:
        ist_backend_release(w.backend);
        break;
      case 2:
        ist_tensor_release(tensor);
        break;
      default:
        exported_delete(&e);
    }
  }
  assert_deleted(&c);
  await_live(&w, 0);
}

void closing__in_any_order_frees_everything(void **state) {
  world *w = *state;
  for (int code = 0; code < 256; code++) {
    int order[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6};
    unsigned set = 0;
    for (int i = 0; i < 4; i++) set |= 1U << order[i];
    // Of a client that is slow to open, the wrong order and the right one.
    bool chosen = code == 0xE4 || code == 0x1B;
    if (set == 15 && (chosen || !w->subject->slow_to_open)) {
      check_closing(w->subject, order);
    }
  }
}
