// SPDX-License-Identifier: Apache-2.0
// conformance_convert.c: tensors of a device in another floating-point dtype:
// each element is the scalar path's, wherever it lay and however.

#include "support/conformance_world.h"
#include "tensor/convert.h"
#include "tensor/dtype.h"

// Element number index of a dense array, one to a byte below 8 bits.
static uint64_t element_at(const unsigned char *bytes, int32_t bits,
                           uint64_t index) {
  size_t size = (size_t)(bits + 7) / 8;
  uint64_t code = 0;
  for (size_t k = 0; k < size; k++) {
    code |= (uint64_t)bytes[index * size + k] << (8 * k);
  }
  return code;
}

static void assert_converted(const crossing *c, ist_tensor *made,
                             const ist__float_format *to, bool padded) {
  const ist__float_format *from =
      ist__float_format_find(ist_dtype_number(c->dtype));
  const DLTensor *view = ist_tensor_view(made);
  unsigned char source[sample_room], result[sample_room];
  gather_bits(&c->from.versioned.dl_tensor, c->from.padded, true, source);
  gather_bits(view, padded && ist__float_bits(to) < 8, true, result);
  assert_that(c, ((uintptr_t)view->data & 63) == 0);
  for (uint64_t i = 0; i < c->from.count; i++) {
    uint64_t code = element_at(source, ist__float_bits(from), i);
    uint64_t mask = ist__float_sign(from) | ist__float_magnitude(from);
    uint64_t wanted =
        to == from ? code & mask : ist__convert_one(from, to, false, code);
    uint64_t got = element_at(result, ist__float_bits(to), i);
    if (to == from) got &= mask;
    assert_that(c, got == wanted);
  }
}

// What progress heard last.
typedef struct ear {
  uint64_t done;
  uint64_t total;
  uint32_t rises;
} ear;

static bool hear(void *self, uint64_t done, uint64_t total) {
  ear *e = self;
  bool sane = done >= e->done && done <= total;
  if (!sane) fail_msg("told %llu", (unsigned long long)done);
  if (done > e->done) e->rises++;
  e->done = done;
  e->total = total;
  return true;
}

// What was copied out or put in order first, and the result: each once, as the
// receipt and progress say. Nothing here is so long that a hop has two parts.
static void assert_counted(const crossing *c, ist_tensor *tensor,
                           const ist_tensor_info *made,
                           const ist_receipt *receipt, const ear *heard) {
  ist_tensor_info source = {.struct_size = sizeof source};
  ist_error error = {0};
  assert_ok(ist_tensor_describe(tensor, &source, &error), error);
  bool hidden = host_address(tensor) == NULL;
  bool staged = receipt->route == IST_ROUTE_STAGE;
  uint64_t moved = made->nbytes;
  if (hidden && c->from.count != 0) assert_that(c, staged);
  // On the host, what lies apart is put in order one to a byte.
  bool padded = source.padded || !hidden;
  if (staged) moved += dense_size(c->dtype, padded, c->from.count);
  assert_that(c, receipt->hops == (staged ? 2 : 1));
  assert_that(c, receipt->bytes_moved == moved);
  assert_that(c, heard->total == moved && heard->done == moved);
  assert_that(c, moved == 0 || heard->rises == receipt->hops);
}

static void check_target(crossing *c, ist_tensor *tensor,
                         const ist__float_format *to, bool padded) {
  ear heard = {0};
  ist_convert_options options = {.struct_size = sizeof options,
                                 .padded = padded,
                                 .progress = hear,
                                 .progress_self = &heard};
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_tensor *made = (void *)c;
  ist_error error = {0};
  DLDataType dtype = ist__dtype_of(ist__dtype_at(to->number));
  if (ist_tensor_convert(tensor, dtype, &options, &made, &receipt, &error) !=
      IST_OK) {
    fail_msg("%s: convert: %s", c->text, error.message);
  }
  ist_tensor_info info = {.struct_size = sizeof info};
  assert_ok(ist_tensor_describe(made, &info, &error), error);
  assert_that(c, info.copied && !info.read_only);
  assert_that(c, info.device == ist_context_host(c->w->context));
  assert_that(c, info.padded == (padded && ist__float_bits(to) < 8));
  assert_counted(c, tensor, &info, &receipt, &heard);
  assert_converted(c, made, to, padded);
  ist_tensor_release(made);
}

// Every pair of floating-point dtypes, packed and padded on both sides.
void convert__every_dtype_layout_and_padding(void **state) {
  world *w = *state;
  for (int32_t from = 0; from < ist__dtype_count(); from++) {
    if (!world_takes(w, from) || ist__float_format_find(from) == NULL) continue;
    for (int layout = 0; layout < SAMPLE_LAYOUTS; layout++) {
      for (int v = 0; v < variants; v++) {
        crossing c = {.layout = (sample_layout)layout};
        if (!variant_makes_sense(from, v)) continue;
        crossing_begin(&c, w, from, v);
        if (c.copy != IST_COPY_AUTO || c.legacy) continue;
        ist_tensor *tensor;
        ist_error error = {0};
        assert_ok(import_source(&c, &tensor, NULL, &error), error);
        for (int32_t n = 0; n < ist__dtype_count(); n++) {
          const ist__float_format *to = ist__float_format_find(n);
          if (to == NULL) continue;
          check_target(&c, tensor, to, false);
          if (ist__float_bits(to) < 8) check_target(&c, tensor, to, true);
        }
        ist_tensor_release(tensor);
        assert_deleted(&c);
        assert_idle(w);
      }
    }
  }
}
