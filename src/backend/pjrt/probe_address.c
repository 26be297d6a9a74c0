// SPDX-License-Identifier: Apache-2.0
// probe_address.c: addresses that a plugin tells of its own memory: are they
// the host's, are the values there, and do they stay for as long as they are
// held. An address is read by the kernel first, which cannot be hurt by it.

#include <string.h>

#include "backend/pjrt/foreign.h"
#include "backend/pjrt/probe_part.h"
#include "base/safe_read.h"

ist_code ist__probe_values_at(const void *address, const void *want,
                              size_t size, ist_error *err) {
  unsigned char got[IST__SAFE_READ_MOST];
  switch (ist__safe_read(address, got, size)) {
    case IST__SAFE_READ_DONE:
      if (memcmp(got, want, size) == 0) return IST_OK;
      return ist_error_set(err, IST_ERR_PLUGIN,
                           "other values lie at the address that it tells");
    case IST__SAFE_READ_NOT_MAPPED:
      return ist_error_set(err, IST_ERR_NOT_ADDRESSABLE,
                           "the address that it tells is no memory of this "
                           "process that can be read");
    case IST__SAFE_READ_NO_MEANS:
      break;
  }
  return ist_error_set(err, IST_ERR_PLUGIN,
                       "the system does not let an address be tried");
}

// Whether a dense row-major order is told of the six values, or tiles are.
static bool layout_is_right(ist__probe *p, PJRT_Buffer *buffer) {
  ist__told_layout told;
  ist_error err;
  ist_code code = ist__pjrt_layout(&p->client->plugin.pjrt, buffer, 2,
                                   ist__probe_six_dims, &told, &err);
  p->memory->tiled = code == IST_OK && told.tile_count > 0;
  if (code == IST_OK && !told.dense) {
    code = ist_error_set(&err, IST_ERR_TARGET_LAYOUT, "it is %s", told.why);
  }
  if (code == IST_OK && (told.order[0] != 1 || told.order[1] != 0)) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "another order is told of a row-major buffer");
  }
  if (code != IST_OK) {
    ist__probe_fails(p, IST__CAPABILITY_layout, &err);
    return false;
  }
  ist__probe_works(p, IST__CAPABILITY_layout, 0);
  return true;
}

// Values that stay after Delete until the reference is given back. What Delete
// answers matters less: isthmus deletes nothing that is lent.
static void hold_through_delete(ist__probe *p, PJRT_Buffer *buffer,
                                const void *address) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  IST_PJRT_ARGS(PJRT_Buffer_Delete_Args, delete_it);
  ist_error err;
  delete_it.buffer = buffer;
  ist_code code = IST_OK;
  if (ist__pjrt_call(pjrt, IST_SLOT_Buffer_Delete, &delete_it, NULL) ==
      IST_OK) {
    code = ist__probe_values_at(address, ist__probe_six, sizeof ist__probe_six,
                                &err);
  }
  if (code == IST_OK) {
    ist__probe_works(p, IST__CAPABILITY_external_reference, 0);
  } else {
    ist__probe_says(p, IST__CAPABILITY_external_reference, "after Delete %s",
                    err.message);
  }
}

void ist__probe_addresses(ist__probe *p) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  ist_error err;
  void *address = NULL;
  PJRT_Buffer *buffer = ist__probe_copied(p, &err);
  if (buffer == NULL) {
    ist__probe_fails(p, IST__CAPABILITY_opaque_pointer, &err);
    return;
  }
  layout_is_right(p, buffer);
  bool held = ist__pjrt_hold(pjrt, buffer, &err) == IST_OK;
  if (!held) ist__probe_fails(p, IST__CAPABILITY_external_reference, &err);
  ist_code code = ist__pjrt_address(pjrt, buffer, &address, &err);
  if (code == IST_OK) {
    code = ist__probe_values_at(address, ist__probe_six, sizeof ist__probe_six,
                                &err);
  }
  if (code == IST_OK) {
    ist__probe_works(p, IST__CAPABILITY_opaque_pointer, 0);
    if (held) hold_through_delete(p, buffer, address);
  } else {
    ist__probe_fails(p, IST__CAPABILITY_opaque_pointer, &err);
    if (held) {
      ist__probe_says(p, IST__CAPABILITY_external_reference,
                      "what it holds cannot be seen: %s", err.message);
    }
  }
  if (held) ist__pjrt_unhold(pjrt, buffer);
  ist__pjrt_destroy(pjrt, buffer);
}
