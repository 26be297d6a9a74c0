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
