// SPDX-License-Identifier: Apache-2.0
// probe_copy.c: copies into a memory and out of it again.

#include <string.h>

#include "backend/pjrt/probe_part.h"

void ist__probe_copies(ist__probe *p) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  PJRT_Buffer *buffer = NULL;
  ist_error err;
  ist_code code =
      ist__pjrt_from_host(p->client, p->memory, &ist__probe_six_shape,
                          ist__probe_six, &buffer, &err);
  if (code != IST_OK) {
    ist__probe_fails(p, IST__CAPABILITY_copy_in, &err);
    return;
  }
  code = ist__pjrt_ready(pjrt, buffer, &err);
  if (code == IST_OK) {
    ist__probe_works(p, IST__CAPABILITY_ready_event, 0);
    code = ist__probe_lies_here(p, buffer, &err);
    if (code != IST_OK) ist__probe_fails(p, IST__CAPABILITY_memory_kinds, &err);
  } else {
    ist__probe_fails(p, IST__CAPABILITY_ready_event, &err);
  }
  if (code == IST_OK) {
    code = ist__probe_comes_out(p, buffer, ist__probe_six,
                                sizeof ist__probe_six, &err);
    if (code != IST_OK) ist__probe_fails(p, IST__CAPABILITY_copy_out, &err);
  }
  if (code == IST_OK) {
    ist__probe_works(p, IST__CAPABILITY_copy_in, 0);
    ist__probe_works(p, IST__CAPABILITY_copy_out, 0);
  } else {
    ist__probe_fails(p, IST__CAPABILITY_copy_in, &err);
  }
  ist__pjrt_destroy(pjrt, buffer);
}

static const int32_t by_columns[6] = {1, 40000, -2, -5, 3, 6};

// Asked for by columns, the values come by columns.
void ist__probe_host_layout(ist__probe *p, PJRT_Buffer *buffer) {
  if (!ist__probe_tries(p, IST__CAPABILITY_host_layout)) return;
  static const int64_t transposed[2] = {0, 1};
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  int32_t got[6] = {0};
  ist_error err;
  PJRT_Buffer_MemoryLayout layout = {.struct_size =
                                         PJRT_Buffer_MemoryLayout_SIZE};
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_SIZE;
  layout.tiled.minor_to_major = transposed;
  layout.tiled.minor_to_major_size = 2;
  IST_PJRT_ARGS(PJRT_Buffer_ToHostBuffer_Args, copy);
  copy.src = buffer;
  copy.host_layout = &layout;
  copy.dst = got;
  copy.dst_size = sizeof got;
  ist_code code =
      ist__pjrt_call(pjrt, IST_SLOT_Buffer_ToHostBuffer, &copy, &err);
  if (code == IST_OK) {
    code = ist__pjrt_await(pjrt, copy.event, IST_ERR_BUFFER, &err);
  }
  if (code == IST_OK && memcmp(got, by_columns, sizeof got) != 0) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "the layout that was asked for is ignored");
  }
  ist__probe_result(p, IST__CAPABILITY_host_layout, code, &err);
}

static ist_code copy_raw(ist__probe *p, PJRT_Buffer *buffer, size_t first,
                         size_t count, ist_error *err) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  int32_t got[6] = {0};
  IST_PJRT_ARGS(PJRT_Buffer_CopyRawToHost_Args, copy);
  copy.buffer = buffer;
  copy.dst = got;
  copy.offset = (int64_t)(first * sizeof got[0]);
  copy.transfer_size = (int64_t)(count * sizeof got[0]);
  ist_code code =
      ist__pjrt_call(pjrt, IST_SLOT_Buffer_CopyRawToHost, &copy, err);
  if (code == IST_OK) {
    code = ist__pjrt_await(pjrt, copy.event, IST_ERR_BUFFER, err);
  }
  if (code != IST_OK ||
      memcmp(got, ist__probe_six + first, count * sizeof got[0]) == 0) {
    return code;
  }
  return ist_error_set(err, IST_ERR_PLUGIN, "other bytes came out");
}

// All of a buffer, and a part of it.
void ist__probe_copy_raw(ist__probe *p, PJRT_Buffer *buffer) {
  if (!ist__probe_tries(p, IST__CAPABILITY_copy_raw)) return;
  ist_error err;
  ist_code code = copy_raw(p, buffer, 0, 6, &err);
  if (code == IST_OK) code = copy_raw(p, buffer, 2, 3, &err);
  ist__probe_result(p, IST__CAPABILITY_copy_raw, code, &err);
}
