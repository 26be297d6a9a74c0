// SPDX-License-Identifier: Apache-2.0
// probe_view.c: views of memory of the host: from which alignment on, whether
// they are views and no copies, and in which order of dimensions.

#include <string.h>

#include "backend/pjrt/foreign.h"
#include "backend/pjrt/probe_part.h"

// The finest alignment that a view takes, coming from a page; 0: none.
static uint64_t find_alignment(ist__probe *p) {
  static const int64_t dims[1] = {IST__PROBE_ELEMENTS};
  const ist__pjrt_shape bytes = {6, 1, dims, NULL};  // 6: U8
  uint64_t found = 0;
  for (size_t align = IST__PROBE_PAGE; align >= 1; align /= 2) {
    ist_error err;
    PJRT_Buffer *buffer = ist__probe_viewed(p, &bytes, align, &err);
    if (buffer == NULL) {
      // Refused at some alignment is what is looked for; at a page it is not.
      if (found == 0) ist__probe_fails(p, IST__CAPABILITY_view, &err);
      if (err.code == IST_ERR_NO_ALLOCATION) p->no_memory = true;
      break;
    }
    ist__pjrt_destroy(&p->client->plugin.pjrt, buffer);
    found = align;
  }
  return found;
}

ist_code ist__probe_shows_writes(ist__probe *p, PJRT_Buffer *buffer,
                                 unsigned char *bytes, ist_error *err) {
  int32_t later[6];
  for (int i = 0; i < 6; i++) later[i] = 7 * ist__probe_six[i];
  ist_code code = ist__probe_comes_out(p, buffer, ist__probe_six,
                                       sizeof ist__probe_six, err);
  if (code != IST_OK) return code;
  memcpy(bytes, later, sizeof later);
  code = ist__probe_comes_out(p, buffer, later, sizeof later, err);
  if (code != IST_ERR_PLUGIN) return code;
  return ist_error_set(err, IST_ERR_PLUGIN,
                       "later writes do not show through it: it is a copy");
}

void ist__probe_views(ist__probe *p, bool *out_address) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  *out_address = false;
  uint64_t alignment = find_alignment(p);
  if (alignment == 0) return;
  ist_error err;
  memcpy(p->block->bytes, ist__probe_six, sizeof ist__probe_six);
  PJRT_Buffer *buffer = ist__probe_viewed(p, &ist__probe_six_shape, 0, &err);
  ist_code code =
      buffer != NULL ? ist__probe_shows_writes(p, buffer, p->block->bytes, &err)
                     : err.code;
  if (code == IST_OK) {
    ist__probe_works(p, IST__CAPABILITY_view, alignment);
    void *address = NULL;
    *out_address = ist__pjrt_address(pjrt, buffer, &address, &err) == IST_OK &&
                   address == p->block->bytes;
  } else {
    ist__probe_fails(p, IST__CAPABILITY_view, &err);
  }
  ist__pjrt_destroy(pjrt, buffer);
}

// A permuted view: kept, told as it is, and read in an order that is known.
void ist__probe_permuted(ist__probe *p) {
  static const int64_t transposed[2] = {0, 1};
  static const int32_t logical[6] = {1, 3, -5, -2, 40000, 6};
  const ist__pjrt_shape shape = {4, 2, ist__probe_six_dims, transposed};
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  ist_error err;
  int64_t order[2] = {0, 0};
  bool physical = false;
  memcpy(p->block->bytes, ist__probe_six, sizeof ist__probe_six);
  PJRT_Buffer *buffer = ist__probe_viewed(p, &shape, 0, &err);
  if (buffer == NULL) {
    ist__probe_fails(p, IST__CAPABILITY_view_permuted, &err);
    return;
  }
  ist_code code =
      ist__pjrt_order(pjrt, buffer, 2, ist__probe_six_dims, order, &err);
  if (code == IST_OK && (order[0] != 0 || order[1] != 1)) {
    code = ist_error_set(&err, IST_ERR_PLUGIN,
                         "another order is told of it than it was made with");
  }
  if (code == IST_OK) {
    code = ist__probe_comes_out(p, buffer, ist__probe_six,
                                sizeof ist__probe_six, &err);
    physical = code == IST_OK;
    if (!physical) {
      code = ist__probe_comes_out(p, buffer, logical, sizeof logical, &err);
    }
  }
  if (code == IST_OK) {
    p->memory->physical_order = physical;
    ist__probe_works(p, IST__CAPABILITY_view_permuted, 0);
  } else {
    ist__probe_fails(p, IST__CAPABILITY_view_permuted, &err);
  }
  ist__pjrt_destroy(pjrt, buffer);
}
