// SPDX-License-Identifier: Apache-2.0
// probe_alias.c: does a host buffer that is asked to be zero-copy really alias
// the host's memory. Plugins that do not copy without a word.

#include <string.h>

#include "backend/pjrt/probe_part.h"

// The plugin does not use the block any more; on any thread.
static void block_is_done(PJRT_Error *error, void *arg) {
  ist__probe_block *block = arg;
  ist__pjrt_error_free(&block->client->plugin.pjrt, error);
  ist__probe_block_drop(block);
}

// Lets go of the block when the plugin says so, which may be much later.
static void drop_when_done(ist__probe *p, PJRT_Event *done) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  if (done == NULL) {  // it never was more than a copy
    ist__probe_block_drop(p->block);
    return;
  }
  IST_PJRT_ARGS(PJRT_Event_OnReady_Args, on_ready);
  on_ready.event = done;
  on_ready.callback = block_is_done;
  on_ready.user_arg = p->block;
  if (ist__pjrt_call(pjrt, IST_SLOT_Event_OnReady, &on_ready, NULL) != IST_OK) {
    ist__pjrt_await(pjrt, done, IST_ERR_BUFFER, NULL);
    ist__probe_block_drop(p->block);
    return;
  }
  IST_PJRT_ARGS(PJRT_Event_Destroy_Args, destroy);
  destroy.event = done;
  ist__pjrt_end(pjrt, IST_SLOT_Event_Destroy, &destroy);
}

void ist__probe_zero_copy(ist__probe *p) {
  if (!ist__probe_tries(p, IST__CAPABILITY_zero_copy)) return;
  ist__pjrt_client *client = p->client;
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  unsigned char *bytes = p->block->bytes + 2 * IST__PROBE_PAGE;
  ist_error err;
  memcpy(bytes, ist__probe_six, sizeof ist__probe_six);
  IST_PJRT_ARGS(PJRT_Client_BufferFromHostBuffer_Args, from);
  from.client = client->client;
  from.data = bytes;
  from.type = ist__probe_six_shape.type;
  from.dims = ist__probe_six_dims;
  from.num_dims = 2;
  from.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy;
  from.device = p->memory->device;
  from.memory = p->memory->is_default ? NULL : p->memory->memory;
  ist__refcount_take(&p->block->holders);
  ist_code code =
      ist__pjrt_call(pjrt, IST_SLOT_Client_BufferFromHostBuffer, &from, &err);
  if (code != IST_OK) {
    ist__probe_block_drop(p->block);
    ist__probe_fails(p, IST__CAPABILITY_zero_copy, &err);
    return;
  }
  if (from.buffer == NULL) {
    code =
        ist__pjrt_no_buffer(pjrt, IST_SLOT_Client_BufferFromHostBuffer, &err);
  }
  if (code == IST_OK) code = ist__pjrt_ready(pjrt, from.buffer, &err);
  if (code == IST_OK) {
    code = ist__probe_shows_writes(p, from.buffer, bytes, &err);
  }
  ist__probe_result(p, IST__CAPABILITY_zero_copy, code, &err);
  ist__pjrt_destroy(pjrt, from.buffer);
  drop_when_done(p, from.done_with_host_buffer);
}
