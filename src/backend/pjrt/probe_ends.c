// SPDX-License-Identifier: Apache-2.0
// probe_ends.c: what a buffer can be turned into: a deleted one, one of another
// type, and one that never had values.

#include <string.h>

#include "backend/pjrt/probe_part.h"

bool ist__probe_is_deleted(ist__probe *p, PJRT_Buffer *buffer) {
  IST_PJRT_ARGS(PJRT_Buffer_IsDeleted_Args, ask);
  ask.buffer = buffer;
  return ist__pjrt_call(&p->client->plugin.pjrt, IST_SLOT_Buffer_IsDeleted,
                        &ask, NULL) == IST_OK &&
         *(const unsigned char *)&ask.is_deleted != 0;
}

static ist_code ask_deleted(ist__probe *p, PJRT_Buffer *buffer, bool wanted,
                            const char *otherwise, ist_error *err) {
  IST_PJRT_ARGS(PJRT_Buffer_IsDeleted_Args, ask);
  ask.buffer = buffer;
  ist_code code = ist__pjrt_call(&p->client->plugin.pjrt,
                                 IST_SLOT_Buffer_IsDeleted, &ask, err);
  bool told = *(const unsigned char *)&ask.is_deleted != 0;
  if (code != IST_OK || told == wanted) return code;
  return ist_error_set(err, IST_ERR_PLUGIN, "%s", otherwise);
}

static void try_delete(ist__probe *p) {
  if (!ist__probe_tries(p, IST__CAPABILITY_delete)) return;
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  ist_error err;
  PJRT_Buffer *buffer = ist__probe_copied(p, &err);
  if (buffer == NULL) {
    ist__probe_fails(p, IST__CAPABILITY_delete, &err);
    return;
  }
  IST_PJRT_ARGS(PJRT_Buffer_Delete_Args, delete_it);
  delete_it.buffer = buffer;
  ist_code code = ask_deleted(
      p, buffer, false, "a buffer that lives is told to be deleted", &err);
  if (code == IST_OK) {
    code = ist__pjrt_call(pjrt, IST_SLOT_Buffer_Delete, &delete_it, &err);
  }
  if (code == IST_OK) {
    code = ask_deleted(p, buffer, true,
                       "a buffer that was deleted is told to live", &err);
  }
  ist__probe_result(p, IST__CAPABILITY_delete, code, &err);
  ist__pjrt_destroy(pjrt, buffer);
}

static PJRT_Buffer *bitcast(ist__probe *p, PJRT_Buffer *buffer,
                            ist_error *err) {
  static const int64_t dims[2] = {3, 2};
  static const int64_t order[2] = {1, 0};
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  PJRT_Buffer_MemoryLayout layout = {.struct_size =
                                         PJRT_Buffer_MemoryLayout_SIZE};
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_SIZE;
  layout.tiled.minor_to_major = order;
  layout.tiled.minor_to_major_size = 2;
  IST_PJRT_ARGS(PJRT_Buffer_Bitcast_Args, cast);
  cast.buffer = buffer;
  cast.element_type = 8;  // U32
  cast.dims = dims;
  cast.num_dims = 2;
  cast.device_layout = &layout;
  if (ist__pjrt_call(pjrt, IST_SLOT_Buffer_Bitcast, &cast, err) != IST_OK) {
    return NULL;
  }
  if (cast.out_buffer == NULL) {
    ist__pjrt_no_buffer(pjrt, IST_SLOT_Buffer_Bitcast, err);
  }
  return cast.out_buffer;
}

// The same memory, seen otherwise; the buffer that it was is gone.
static ist_code check_bitcast(ist__probe *p, PJRT_Buffer *from,
                              const void *address, PJRT_Buffer *to,
                              ist_error *err) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  void *now = NULL;
  ist_code code = ist__pjrt_ready(pjrt, to, err);
  if (code == IST_OK) {
    code =
        ist__probe_comes_out(p, to, ist__probe_six, sizeof ist__probe_six, err);
  }
  if (code != IST_OK) return code;
  if (!ist__probe_is_deleted(p, from)) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "the buffer that it was made of lives on");
  }
  if (address != NULL && ist__pjrt_address(pjrt, to, &now, err) == IST_OK &&
      now != address) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "it lies at another address: it is a copy");
  }
  return IST_OK;
}

static void try_bitcast(ist__probe *p) {
  if (!ist__probe_tries(p, IST__CAPABILITY_bitcast)) return;
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  ist_error err;
  void *address = NULL;
  PJRT_Buffer *from = ist__probe_copied(p, &err), *to = NULL;
  ist_code code = from != NULL ? IST_OK : err.code;
  if (code == IST_OK) {
    (void)ist__pjrt_address(pjrt, from, &address, NULL);
    to = bitcast(p, from, &err);
    code = to != NULL ? check_bitcast(p, from, address, to, &err) : err.code;
  }
  ist__probe_result(p, IST__CAPABILITY_bitcast, code, &err);
  ist__pjrt_destroy(pjrt, to);
  ist__pjrt_destroy(pjrt, from);
}

// A buffer that is made to hold an error must tell it when it is awaited.
static void try_error_buffer(ist__probe *p) {
  if (!ist__probe_tries(p, IST__CAPABILITY_error_buffer)) return;
  static const char message[] = "a probe made this buffer fail";
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  ist_error err;
  IST_PJRT_ARGS(PJRT_Client_CreateErrorBuffer_Args, make);
  if (p->memory->memory == NULL) {
    ist__probe_says(p, IST__CAPABILITY_error_buffer,
                    "not tried: the device tells no memories");
    return;
  }
  make.client = p->client->client;
  make.error_code = PJRT_Error_Code_INTERNAL;
  make.error_message = message;
  make.error_message_size = sizeof message - 1;
  make.shape_dims = ist__probe_six_dims;
  make.shape_num_dims = 2;
  make.shape_element_type = ist__probe_six_shape.type;
  make.memory = p->memory->memory;
  ist_code code =
      ist__pjrt_call(pjrt, IST_SLOT_Client_CreateErrorBuffer, &make, &err);
  if (code == IST_OK && make.buffer == NULL) {
    code = ist__pjrt_no_buffer(pjrt, IST_SLOT_Client_CreateErrorBuffer, &err);
  }
  if (code == IST_OK) {
    code = ist__pjrt_ready(pjrt, make.buffer, &err);
    if (code == IST_ERR_BUFFER) {
      code = IST_OK;
    } else if (code == IST_OK) {
      code = ist_error_set(&err, IST_ERR_PLUGIN, "its error is not told");
    }
    ist__pjrt_destroy(pjrt, make.buffer);
  }
  ist__probe_result(p, IST__CAPABILITY_error_buffer, code, &err);
}

void ist__probe_ends(ist__probe *p) {
  try_delete(p);
  try_bitcast(p);
  try_error_buffer(p);
}
