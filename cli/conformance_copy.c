// SPDX-License-Identifier: Apache-2.0
// conformance_copy.c: checks of buffers that are made from host memory, under
// each of the promises that a host can make.

#include <string.h>

#include "conformance_check.h"

static const int64_t six_dims[2] = {2, 3};

static PJRT_Client_BufferFromHostBuffer_Args from_block(ist__bench *bench,
                                                        int32_t semantics) {
  float *data = (float *)(void *)bench->block;
  for (int i = 0; i < 6; i++) data[i] = (float)i + 0.5f;
  IST_PJRT_ARGS(PJRT_Client_BufferFromHostBuffer_Args, from);
  from.client = bench->client->client;
  from.data = data;
  from.type = 11;
  from.dims = six_dims;
  from.num_dims = 2;
  from.host_buffer_semantics = semantics;
  from.device = bench->memory->device;
  return from;
}

static bool make(ist__bench *bench,
                 PJRT_Client_BufferFromHostBuffer_Args *from) {
  ist_error err = {0};
  ist_code code = ist__pjrt_call(
      bench->pjrt, IST_SLOT_Client_BufferFromHostBuffer, from, &err);
  return ist__bench_good(bench, code, &err) &&
         ist__bench_holds(bench, from->buffer != NULL,
                          "no buffer and no error; needs one");
}

static bool done(ist__bench *bench, PJRT_Event *event) {
  ist_error err = {0};
  return ist__bench_good(
      bench, ist__pjrt_await(bench->pjrt, event, IST_ERR_BUFFER, &err), &err);
}

void ist__check_host_during_call(ist__bench *bench) {
  PJRT_Client_BufferFromHostBuffer_Args from =
      from_block(bench, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
  if (!make(bench, &from)) return;
  memset(bench->block, 0x77, 64);
  if (done(bench, from.done_with_host_buffer)) {
    ist__bench_comes_out(bench, from.buffer, NULL);
  }
  ist__pjrt_destroy(bench->pjrt, from.buffer);
}

void ist__check_host_until_done(ist__bench *bench) {
  PJRT_Client_BufferFromHostBuffer_Args from = from_block(
      bench, PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes);
  if (!make(bench, &from)) return;
  ist__bench_holds(bench, from.done_with_host_buffer != NULL,
                   "there is no done event; needs one");
  if (done(bench, from.done_with_host_buffer)) {
    memset(bench->block, 0x77, 64);
    ist__bench_comes_out(bench, from.buffer, NULL);
  }
  ist__pjrt_destroy(bench->pjrt, from.buffer);
}

void ist__check_host_zero_copy(ist__bench *bench) {
  PJRT_Client_BufferFromHostBuffer_Args from =
      from_block(bench, PJRT_HostBufferSemantics_kImmutableZeroCopy);
  if (!make(bench, &from)) return;
  ist__bench_comes_out(bench, from.buffer, NULL);
  ist__pjrt_destroy(bench->pjrt, from.buffer);
  // A done event that does not come is ended by the time that a check has.
  done(bench, from.done_with_host_buffer);
}

void ist__check_host_strides(ist__bench *bench) {
  // Columns first, rows from the last to the first.
  static const int64_t strides[2] = {-4, 8};
  PJRT_Client_BufferFromHostBuffer_Args from =
      from_block(bench, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
  float *data = (float *)(void *)bench->block;
  for (int i = 0; i < 6; i++) data[i % 3 * 2 + 1 - i / 3] = (float)i + 0.5f;
  from.data = data + 1;
  from.byte_strides = strides;
  from.num_byte_strides = 2;
  if (!make(bench, &from)) return;
  if (done(bench, from.done_with_host_buffer)) {
    ist__bench_comes_out(bench, from.buffer, NULL);
  }
  ist__pjrt_destroy(bench->pjrt, from.buffer);
}

// Read back with host_layout, and by a plugin that does not obey that in the
// order of the device: one of the two is then right.
void ist__check_host_device_layout(ist__bench *bench) {
  static const int64_t order[2] = {0, 1};
  PJRT_Buffer_MemoryLayout layout = {.struct_size =
                                         PJRT_Buffer_MemoryLayout_SIZE};
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_SIZE;
  layout.tiled.minor_to_major = order;
  layout.tiled.minor_to_major_size = 2;
  PJRT_Client_BufferFromHostBuffer_Args from =
      from_block(bench, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
  from.device_layout = &layout;
  ist_error err = {0};
  ist_code code = ist__pjrt_call(
      bench->pjrt, IST_SLOT_Client_BufferFromHostBuffer, &from, &err);
  if (code != IST_OK) {
    ist__bench_says(bench, IST__OUTCOME_SKIP, "%s", err.message);
    return;
  }
  int64_t told[2] = {1, 0};
  void *address = NULL;
  bool known = done(bench, from.done_with_host_buffer);
  known = known &&
          ist__bench_good(
              bench, ist__pjrt_ready(bench->pjrt, from.buffer, &err), &err);
  known = known && ist__bench_good(bench,
                                   ist__pjrt_order(bench->pjrt, from.buffer, 2,
                                                   six_dims, told, &err),
                                   &err);
  known = known && (bench->memory->capability->can & IST_CAN_HOST_ADDRESS) != 0;
  known = known &&
          ist__pjrt_address(bench->pjrt, from.buffer, &address, NULL) == IST_OK;
  if (known && address != NULL) {
    const float *at = address;
    for (int i = 0; i < 6; i++) {
      float value = at[told[0] == 0 ? i % 3 * 2 + i / 3 : i];
      ist__bench_holds(bench, (int)value == i,
                       "element %d lies in memory as %g, by the layout told; "
                       "needs %d.5",
                       i, (double)value, i);
    }
  } else if (known) {
    ist__bench_comes_out(bench, from.buffer, (const int64_t[2]){1, 0});
  } else {
    ist__bench_says(bench, IST__OUTCOME_SKIP, "its memory cannot be looked at");
  }
  ist__pjrt_destroy(bench->pjrt, from.buffer);
}

static void takes(ist__bench *bench, size_t ndim, const int64_t *dims,
                  uint64_t bytes) {
  PJRT_Client_BufferFromHostBuffer_Args from =
      from_block(bench, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
  from.dims = dims;
  from.num_dims = ndim;
  if (!make(bench, &from)) return;
  unsigned char got[64];
  ist_error err = {0};
  if (done(bench, from.done_with_host_buffer) &&
      ist__bench_good(
          bench, ist__pjrt_to_host(bench->pjrt, from.buffer, got, bytes, &err),
          &err)) {
    ist__bench_holds(bench, memcmp(got, bench->block, (size_t)bytes) == 0,
                     "other values came out; needs those that went in");
  }
  ist__pjrt_destroy(bench->pjrt, from.buffer);
}

void ist__check_host_scalar_and_empty(ist__bench *bench) {
  static const int64_t empty[2] = {3, 0};
  takes(bench, 0, empty, 4);
  takes(bench, 2, empty, 0);
}
