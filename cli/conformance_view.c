// SPDX-License-Identifier: Apache-2.0
// conformance_view.c: checks of views of memory that is not the plugin's.

#include "conformance_check.h"
#include "tensor/dtype.h"

static const int64_t columns[2] = {0, 1};  // minor to major
static const int64_t rows[2] = {1, 0};
static const int64_t six_dims[2] = {2, 3};

void ist__check_view_given_back(ist__bench *bench) {
  PJRT_Buffer *buffer = ist__bench_viewed(bench, NULL);
  if (buffer == NULL) return;
  bool early =
      !ist__bench_holds(bench, atomic_load(ist__bench_calls(bench)) == 0,
                        "it came before the end; needs it after");
  ist__pjrt_destroy(bench->pjrt, buffer);
  if (early) return;
  bool good = ist__bench_counts(ist__bench_calls(bench), 1);
  ist__bench_holds(bench, good, "it came %d times; needs once",
                   atomic_load(ist__bench_calls(bench)));
}

void ist__check_view_refused(ist__bench *bench) {
  ist_error err = {0};
  PJRT_Buffer *buffer = NULL;
  ist__pjrt_shape shape = {.type = 11, .ndim = 2, .dims = six_dims};
  ist_code code = ist__pjrt_view(bench->client, bench->memory, &shape,
                                 bench->block + 1, ist__bench_give_back,
                                 ist__bench_calls(bench), &buffer, &err);
  if (code == IST_ERR_PLUGIN_SLOT) {
    ist__bench_good(bench, code, &err);
  } else if (code == IST_OK) {
    ist__bench_says(bench, IST__OUTCOME_SKIP, "an odd address is taken");
    ist__pjrt_destroy(bench->pjrt, buffer);
  } else {
    bool good = ist__bench_counts(ist__bench_calls(bench), 0);
    ist__bench_holds(bench, good, "it came %d times; needs never",
                     atomic_load(ist__bench_calls(bench)));
  }
}

// The least power of two at which a type is taken, or 0.
static size_t alignment_of(ist__bench *bench, int32_t type) {
  static const int64_t dims[1] = {8};
  for (size_t at = 1; at <= 4096; at *= 2) {
    PJRT_Buffer *buffer = NULL;
    ist__pjrt_shape shape = {.type = type, .ndim = 1, .dims = dims};
    if (ist__pjrt_view(bench->client, bench->memory, &shape,
                       bench->block + (at < 4096 ? at : 0),
                       ist__bench_give_back, ist__bench_calls(bench), &buffer,
                       NULL) == IST_OK) {
      ist__pjrt_destroy(bench->pjrt, buffer);
      return at;
    }
  }
  return 0;
}

void ist__check_view_alignment(ist__bench *bench) {
  size_t first = alignment_of(bench, 11);
  if (first == 0) {
    ist__bench_says(bench, IST__OUTCOME_SKIP, "no view of float32 is made");
    return;
  }
  for (int32_t n = 0; n < ist__dtype_count(); n++) {
    const ist__dtype *dtype = ist__dtype_at(n);
    if ((bench->memory->capability->dtypes >> n & 1) == 0) continue;
    size_t got = alignment_of(bench, dtype->pjrt);
    ist__bench_holds(bench, got == 0 || got == first,
                     "%s is taken at multiples of %zu, float32 of %zu; needs "
                     "one alignment",
                     dtype->name, got, first);
  }
}

void ist__check_view_layout(ist__bench *bench) {
  const int64_t *const orders[2] = {rows, columns};
  for (int i = 0; i < 2; i++) {
    PJRT_Buffer *buffer = ist__bench_viewed(bench, orders[i]);
    if (buffer == NULL) return;
    ist_error err = {0};
    int64_t told[2] = {-1, -1};
    ist_code code =
        ist__pjrt_order(bench->pjrt, buffer, 2, six_dims, told, &err);
    if (ist__bench_good(bench, code, &err)) {
      ist__bench_holds(bench, told[0] == orders[i][0],
                       "minor_to_major is {%d,%d}; needs {%d,%d}", (int)told[0],
                       (int)told[1], (int)orders[i][0], (int)orders[i][1]);
    }
    ist__pjrt_destroy(bench->pjrt, buffer);
  }
}

void ist__check_view_to_host(ist__bench *bench) {
  PJRT_Buffer *buffer = ist__bench_viewed(bench, columns);
  if (buffer == NULL) return;
  ist__bench_comes_out(bench, buffer, rows);
  ist__pjrt_destroy(bench->pjrt, buffer);
}

// Another memory of the device, or the same one.
static PJRT_Memory *other_memory(const ist__bench *bench) {
  const ist__pjrt_device *device = &bench->client->devices[0];
  for (size_t m = 0; m < device->memory_count; m++) {
    if (device->memories[m].memory != bench->memory->memory) {
      return device->memories[m].memory;
    }
  }
  return bench->memory->memory;
}

// Values at an address by the layout that is told, for a plugin whose ToHost
// may itself be wrong; false where they cannot be looked at.
static bool lies_right(ist__bench *bench, PJRT_Buffer *buffer) {
  ist_error err = {0};
  int64_t told[2] = {1, 0};
  void *address = NULL;
  if ((bench->memory->capability->can & IST_CAN_HOST_ADDRESS) == 0 ||
      ist__pjrt_order(bench->pjrt, buffer, 2, six_dims, told, &err) != IST_OK ||
      ist__pjrt_address(bench->pjrt, buffer, &address, &err) != IST_OK ||
      address == NULL) {
    return false;
  }
  const float *at = address;
  for (int i = 0; i < 6; i++) {
    float value = at[told[0] == 0 ? i % 3 * 2 + i / 3 : i];
    ist__bench_holds(bench, (int)value == i,
                     "element %d of the copy is %g, by the layout told; needs "
                     "%d.5",
                     i, (double)value, i);
  }
  return true;
}

void ist__check_view_to_memory(ist__bench *bench) {
  PJRT_Buffer *buffer = ist__bench_viewed(bench, columns);
  if (buffer == NULL) return;
  ist_error err = {0};
  IST_PJRT_ARGS(PJRT_Buffer_CopyToMemory_Args, copy);
  copy.buffer = buffer;
  copy.dst_memory = other_memory(bench);
  ist_code code =
      ist__pjrt_call(bench->pjrt, IST_SLOT_Buffer_CopyToMemory, &copy, &err);
  if (ist__bench_good(bench, code, &err) && copy.dst_buffer != NULL) {
    code = ist__pjrt_ready(bench->pjrt, copy.dst_buffer, &err);
    if (ist__bench_good(bench, code, &err) &&
        !lies_right(bench, copy.dst_buffer)) {
      ist__bench_comes_out(bench, copy.dst_buffer, rows);
    }
    ist__pjrt_destroy(bench->pjrt, copy.dst_buffer);
  }
  ist__pjrt_destroy(bench->pjrt, buffer);
}

void ist__check_view_after_client(ist__bench *bench) {
  ist_error err = {0};
  ist__pjrt_client second = *bench->client;
  IST_PJRT_ARGS(PJRT_Client_Create_Args, create);
  ist_code code =
      ist__pjrt_call(bench->pjrt, IST_SLOT_Client_Create, &create, &err);
  if (!ist__bench_good(bench, code, &err)) return;
  second.client = create.client;
  IST_PJRT_ARGS(PJRT_Client_AddressableDevices_Args, list);
  list.client = create.client;
  code = ist__pjrt_call(bench->pjrt, IST_SLOT_Client_AddressableDevices, &list,
                        &err);
  PJRT_Buffer *buffer = NULL;
  if (code == IST_OK && list.num_addressable_devices > 0) {
    ist__pjrt_memory memory = {.device = list.addressable_devices[0],
                               .is_default = true};
    ist__pjrt_shape shape = {.type = 11, .ndim = 2, .dims = six_dims};
    code = ist__pjrt_view(&second, &memory, &shape, bench->block,
                          ist__bench_give_back, ist__bench_calls(bench),
                          &buffer, &err);
  }
  IST_PJRT_ARGS(PJRT_Client_Destroy_Args, destroy);
  destroy.client = create.client;
  ist__pjrt_end(bench->pjrt, IST_SLOT_Client_Destroy, &destroy);
  if (!ist__bench_good(bench, code, &err) || buffer == NULL) return;
  ist__pjrt_destroy(bench->pjrt, buffer);
  bool good = ist__bench_counts(ist__bench_calls(bench), 1);
  ist__bench_holds(bench, good, "it was given back %d times; needs once",
                   atomic_load(ist__bench_calls(bench)));
}

void ist__check_view_without_callback(ist__bench *bench) {
  ist_error err = {0};
  PJRT_Buffer *buffer = NULL;
  ist__pjrt_shape shape = {.type = 11, .ndim = 2, .dims = six_dims};
  ist_code code = ist__pjrt_view(bench->client, bench->memory, &shape,
                                 bench->block, NULL, NULL, &buffer, &err);
  if (ist__bench_good(bench, code, &err)) {
    ist__pjrt_destroy(bench->pjrt, buffer);
  }
}
