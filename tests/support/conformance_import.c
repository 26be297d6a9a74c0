// SPDX-License-Identifier: Apache-2.0
// conformance_import.c: imports of every dtype, layout and wish.

#include "support/conformance_world.h"
#include "tensor/dtype.h"

// May the memory view this source as it is?
static bool may_share(const crossing *c) {
  const ist_capability *m = &c->w->memory;
  uint64_t address = (uintptr_t)sample_address(&c->from);
  bool writable = !c->legacy && (c->from.layout & IST_LAYOUT_OVERLAP) == 0;
  // Strides of packed elements are in bits: only who views any layout has them.
  bool packed = c->dtype.bits < 8 && !c->from.padded;
  if (packed && c->from.layout != 0 && m->layouts != IST_LAYOUT_ANY) {
    return false;
  }
  return (m->can & IST_CAN_ADOPT) != 0 &&
         (m->can & IST_CAN_HOST_ADDRESS) != 0 &&
         (c->from.layout & ~m->layouts) == 0 && address % m->alignment == 0 &&
         (!c->from.padded || (m->can & IST_CAN_PADDED) != 0) &&
         (writable || (m->can & IST_CAN_HONOUR_READ_ONLY) != 0);
}

static void assert_refused_whole(const crossing *c, ist_code code,
                                 ist_code wanted, const ist_tensor *out,
                                 const ist_receipt *receipt,
                                 const ist_error *error) {
  assert_that(c, code == wanted);
  assert_that(c, error->code == wanted);
  assert_that(c, out == NULL);
  assert_that(c, receipt->route == IST_ROUTE_REFUSE);
  assert_that(c, receipt->bytes_moved == 0 && receipt->hops == 0);
  assert_that(c, c->from.deleted == 0);
  assert_that(c, strstr(error->message, "; needs ") != NULL);
  assert_that(c, strchr(error->message, '\n') == NULL);
}

static void check_alias(crossing *c, ist_tensor *tensor,
                        const ist_receipt *receipt) {
  assert_that(c, receipt->route == IST_ROUTE_ALIAS);
  assert_that(c, receipt->bytes_moved == 0 && receipt->hops == 0);
  assert_that(c, c->from.deleted == 0);
  if (c->from.count != 0) {
    assert_that(c, host_address(tensor) == sample_address(&c->from));
  }
  bool read_only = c->legacy || (c->from.layout & IST_LAYOUT_OVERLAP) != 0;
  assert_that(c, receipt->read_only == read_only);
}

static void check_copy(crossing *c, ist_tensor *tensor,
                       const ist_receipt *receipt) {
  ist_tensor_info info = {.struct_size = sizeof info};
  ist_error error = {0};
  assert_ok(ist_tensor_describe(tensor, &info, &error), error);
  assert_that(
      c, receipt->route == IST_ROUTE_COPY || receipt->route == IST_ROUTE_STAGE);
  assert_that(c, receipt->hops == (receipt->route == IST_ROUTE_COPY ? 1 : 2));
  assert_that(c, receipt->reason_count > 0);
  assert_that(c, info.copied && !info.read_only && !receipt->read_only);
  assert_that(c, !inside_source(c, host_address(tensor)));
  // The source is done with before the import returns.
  assert_deleted(c);
}

static void check_import(crossing *c) {
  ist_tensor *tensor = (void *)c;  // anything but NULL
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_error error = {0};
  ist_code code = import_source(c, &tensor, &receipt, &error);
  bool share = may_share(c) && c->copy != IST_COPY_ALWAYS;
  if (c->copy == IST_COPY_NEVER && !share) {
    assert_refused_whole(c, code, IST_ERR_COPY_NEEDED, tensor, &receipt,
                         &error);
    return;
  }
  if (code != IST_OK) fail_msg("%s: %s", c->text, error.message);
  if (share) {
    check_alias(c, tensor, &receipt);
  } else {
    check_copy(c, tensor, &receipt);
  }
  assert_values(c, tensor);
  ist_tensor_release(tensor);
  assert_deleted(c);
  assert_idle(c->w);
}

void import__every_dtype_layout_and_wish(void **state) {
  world *w = *state;
  for (int32_t dtype = 0; dtype < ist__dtype_count(); dtype++) {
    for (int layout = 0; layout < SAMPLE_LAYOUTS; layout++) {
      for (int v = 0; v < variants; v++) {
        if (!world_takes(w, dtype) || !variant_makes_sense(dtype, v)) continue;
        crossing c = {.layout = (sample_layout)layout};
        crossing_begin(&c, w, dtype, v);
        check_import(&c);
      }
    }
  }
}

void import__refuses_dtypes_that_the_memory_lacks(void **state) {
  world *w = *state;
  for (int32_t dtype = 0; dtype < ist__dtype_count(); dtype++) {
    for (int v = 0; v < 3 && !world_takes(w, dtype); v++) {
      crossing c = {.layout = SAMPLE_ROW_MAJOR};
      crossing_begin(&c, w, dtype, v);
      ist_tensor *tensor = (void *)w;
      ist_receipt receipt = {.struct_size = sizeof receipt};
      ist_error error = {0};
      ist_code code = import_source(&c, &tensor, &receipt, &error);
      assert_refused_whole(&c, code, IST_ERR_TARGET_DTYPE, tensor, &receipt,
                           &error);
    }
  }
}

void import__refuses_what_it_cannot_read(void **state) {
  world *w = *state;
  for (int what = 0; what < 4; what++) {
    static const ist_code wanted[] = {IST_ERR_DLPACK_VERSION, IST_ERR_NDIM,
                                      IST_ERR_NO_ROUTE, IST_ERR_NULL_DATA};
    crossing c = {.layout = SAMPLE_ROW_MAJOR};
    crossing_begin(&c, w, 10, 0);
    if (what == 0) c.from.versioned.version.major = 2;
    if (what == 1) c.from.versioned.dl_tensor.ndim = -1;
    if (what == 2) c.from.versioned.dl_tensor.device.device_type = kDLCUDA;
    if (what == 3) c.from.versioned.dl_tensor.data = NULL;
    ist_tensor *tensor = (void *)w;
    ist_receipt receipt = {.struct_size = sizeof receipt};
    ist_error error = {0};
    ist_code code = import_source(&c, &tensor, &receipt, &error);
    assert_refused_whole(&c, code, wanted[what], tensor, &receipt, &error);
    assert_idle(w);
  }
}

// jax-ml/jax#37830: an alias shows later writes and says so; a copy does not.
void import__writes_show_in_an_alias_only(void **state) {
  world *w = *state;
  for (int v = 0; v < 3; v += 2) {
    crossing c = {.layout = SAMPLE_ROW_MAJOR};
    crossing_begin(&c, w, 10, v);
    ist_tensor *tensor;
    ist_receipt receipt = {.struct_size = sizeof receipt};
    ist_error error = {0};
    assert_ok(import_source(&c, &tensor, &receipt, &error), error);
    unsigned char before[sample_room], after[sample_room];
    read_values(&c, tensor, before);
    *sample_address(&c.from) ^= 0xFF;
    read_values(&c, tensor, after);
    bool shows = memcmp(before, after, sample_room) != 0;
    assert_that(&c, shows == (receipt.route == IST_ROUTE_ALIAS));
    ist_tensor_release(tensor);
  }
}

// Imports into one memory kind; NULL kind is the default's number.
static ist_code import_to(crossing *c, const char *kind, ist_tensor **out,
                          ist_error *error) {
  ist_options options = {.struct_size = sizeof options, .memory = kind};
  return ist_tensor_import(c->w->device, &c->from.versioned, &options, out,
                           NULL, error);
}

void import__reaches_every_memory_of_the_device(void **state) {
  world *w = *state;
  ist_error error = {0};
  ist_device_info device = {.struct_size = sizeof device};
  assert_ok(ist_device_describe(w->device, &device, &error), error);
  for (size_t m = 0; m < device.memory_count; m++) {
    ist_memory_info memory = {.struct_size = sizeof memory};
    assert_ok(ist_device_memory(w->device, m, &memory, &error), error);
    const uint32_t both = IST_CAN_COPY_IN | IST_CAN_COPY_OUT;
    if ((memory.capability.can & both) != both) continue;
    crossing c = {.layout = SAMPLE_PERMUTED};
    crossing_begin(&c, w, 10, 0);
    ist_tensor *tensor;
    assert_ok(import_to(&c, memory.kind, &tensor, &error), error);
    ist_tensor_info info = {.struct_size = sizeof info};
    assert_ok(ist_tensor_describe(tensor, &info, &error), error);
    assert_that(&c, info.memory == m && info.device == w->device);
    assert_values(&c, tensor);
    ist_tensor_release(tensor);
    assert_deleted(&c);
    assert_idle(w);
  }
}

void import__refuses_a_memory_that_is_not_there(void **state) {
  world *w = *state;
  crossing c = {.layout = SAMPLE_ROW_MAJOR};
  crossing_begin(&c, w, 10, 0);
  ist_tensor *tensor = (void *)w;
  ist_error error = {0};
  ist_code code = import_to(&c, "no_such_kind", &tensor, &error);
  assert_refused(code, IST_ERR_NO_MEMORY_KIND, error, "no_such_kind");
  ist_memory_info there = {.struct_size = sizeof there};
  for (size_t m = 0; ist_device_memory(w->device, m, &there, NULL) == IST_OK;
       m++) {
    assert_non_null(strstr(strstr(error.message, "; needs "), there.kind));
  }
  assert_null(tensor);
  assert_that(&c, c.from.deleted == 0);
}

// jax-ml/jax#22346, pytorch/pytorch#96318: pinned and managed memory is memory
// of this process too, and crosses as the host's does.
void import__takes_pinned_and_managed_memory_as_the_hosts(void **state) {
  world *w = *state;
  static const int codes[] = {kDLCUDAHost, kDLROCMHost, kDLCUDAManaged, 20};
  for (size_t i = 0; i < COUNT_OF(codes); i++) {
    crossing c = {.layout = SAMPLE_ROW_MAJOR};
    crossing_begin(&c, w, 10, 0);
    c.from.versioned.dl_tensor.device.device_type = (DLDeviceType)codes[i];
    check_import(&c);
  }
}

// numpy/numpy#28599, data-apis/array-api#191: what is marked stays marked, in
// the tensor, its receipt and its export, and a private copy is not.
void import__keeps_the_mark_of_what_must_not_be_written(void **state) {
  world *w = *state;
  for (int v = 0; v < 3; v += 2) {
    crossing c = {.layout = SAMPLE_ROW_MAJOR};
    crossing_begin(&c, w, 10, v);
    c.from.versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    ist_tensor *tensor;
    ist_receipt receipt = {.struct_size = sizeof receipt};
    ist_error error = {0};
    assert_ok(import_source(&c, &tensor, &receipt, &error), error);
    ist_tensor_info info = {.struct_size = sizeof info};
    assert_ok(ist_tensor_describe(tensor, &info, &error), error);
    bool marked = receipt.route == IST_ROUTE_ALIAS;
    assert_that(&c, info.read_only == marked && receipt.read_only == marked);
    assert_that(&c, info.copied == !marked);
    exported e;
    c.copy = IST_COPY_AUTO;
    assert_ok(export_tensor(&c, tensor, &e, &receipt, &error), error);
    uint64_t flag = e.versioned->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
    assert_that(&c, (flag != 0) == marked);
    exported_delete(&e);
    ist_tensor_release(tensor);
    assert_deleted(&c);
  }
}
