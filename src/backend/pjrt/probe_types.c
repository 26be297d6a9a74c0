// SPDX-License-Identifier: Apache-2.0
// probe_types.c: which element types come out of a memory as they went in.

#include <string.h>

#include "backend/pjrt/probe_part.h"
#include "tensor/dtype.h"

#define ELEMENTS IST__PROBE_ELEMENTS

// Values of a dtype: unpacked (one to a byte when they are smaller), and as
// the device keeps them, packed from the lowest bit on.
static size_t fill_values(const ist__dtype *dtype, unsigned char *unpacked,
                          unsigned char *packed) {
  size_t bits = dtype->bits;
  size_t size = ELEMENTS * (bits < 8 ? 1 : bits / 8);
  for (size_t i = 0; i < size; i++) unpacked[i] = (unsigned char)(i * 37 + 11);
  for (size_t i = 0; dtype->pjrt == 1 && i < size; i++) unpacked[i] &= 1;
  if (bits >= 8) {
    memcpy(packed, unpacked, size);
    return size;
  }
  memset(packed, 0, ELEMENTS);
  for (size_t i = 0; i < ELEMENTS; i++) {
    unpacked[i] = (unsigned char)(unpacked[i] & ((1u << bits) - 1));
    for (size_t b = 0; b < bits; b++) {
      size_t at = i * bits + b;
      packed[at / 8] =
          (unsigned char)(packed[at / 8] | (unpacked[i] >> b & 1) << at % 8);
    }
  }
  return size;
}

static ist_code copies(ist__probe *p, const ist__pjrt_shape *shape,
                       const unsigned char *values, size_t size,
                       ist_error *err) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  PJRT_Buffer *buffer = NULL;
  ist_code code =
      ist__pjrt_from_host(p->client, p->memory, shape, values, &buffer, err);
  if (code == IST_OK) code = ist__pjrt_ready(pjrt, buffer, err);
  if (code == IST_OK) code = ist__probe_comes_out(p, buffer, values, size, err);
  ist__pjrt_destroy(pjrt, buffer);
  return code;
}

// A dtype counts when both ways work: a device that keeps 6-bit values one to
// a byte cannot view packed ones, so it does not have them.
static ist_code try_dtype(ist__probe *p, const ist__dtype *dtype,
                          ist_error *err) {
  static const int64_t dims[1] = {ELEMENTS};
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  const ist__pjrt_shape shape = {dtype->pjrt, 1, dims, NULL};
  unsigned char unpacked[16 * ELEMENTS], packed[16 * ELEMENTS];
  size_t size = fill_values(dtype, unpacked, packed);
  ist_code code = copies(p, &shape, unpacked, size, err);
  if (code != IST_OK) return code;
  if (!ist__probe_has(p, IST__CAPABILITY_view)) {
    if (dtype->bits != 6) return IST_OK;
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "nobody knows how the device keeps 6-bit values");
  }
  size_t offset = IST__PROBE_PAGE;  // no view is over these bytes, or has to be
  memcpy(p->block->bytes + offset, packed, sizeof packed);
  PJRT_Buffer *buffer = ist__probe_viewed(p, &shape, offset, err);
  if (buffer == NULL) return err->code;
  code = ist__probe_comes_out(p, buffer, unpacked, size, err);
  ist__pjrt_destroy(pjrt, buffer);
  return code;
}

uint64_t ist__probe_types(ist__probe *p) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  uint64_t found = 0, count = 0;
  ist_error first = {0};
  for (int32_t n = 0; n < ist__dtype_count(); n++) {
    const ist__dtype *dtype = ist__dtype_at(n);
    ist_error err;
    if (dtype->pjrt == 0 || !ist__pjrt_type_is_safe(pjrt->minor, dtype->pjrt)) {
      continue;
    }
    if (try_dtype(p, dtype, &err) == IST_OK) {
      found |= UINT64_C(1) << n;
      count++;
      continue;
    }
    if (err.code == IST_ERR_NO_ALLOCATION) p->no_memory = true;
    if (first.code == IST_OK) first = err;
    ist__log(pjrt->env, IST_LOG_DEBUG, "%s: memory %s: %s: %s", pjrt->name,
             p->memory->kind, dtype->name, err.message);
  }
  if (count > 0) {
    ist__probe_works(p, IST__CAPABILITY_element_types, count);
  } else if (first.code != IST_OK) {
    ist__probe_fails(p, IST__CAPABILITY_element_types, &first);
  }
  return found;
}
