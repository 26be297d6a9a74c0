// SPDX-License-Identifier: Apache-2.0
// probe.c: the order in which a memory is tried, which cannot hurt: copies
// before addresses, addresses before views, coarse alignments before fine ones,
// types that are known to be safe; and what routes may count on afterwards.

#include "backend/pjrt/probe.h"

#include <string.h>

#include "backend/pjrt/probe_part.h"
#include "base/alloc.h"

// What is found is what routes use.
static void conclude(const ist__probe *p, bool view_address) {
  ist_capability *capability = p->memory->capability;
  const bool copies = ist__probe_has(p, IST__CAPABILITY_copy_out);
  const bool view = ist__probe_has(p, IST__CAPABILITY_view);
  const bool address = ist__probe_has(p, IST__CAPABILITY_opaque_pointer) &&
                       (!view || view_address);
  const bool lend = address && ist__probe_has(p, IST__CAPABILITY_layout) &&
                    ist__probe_has(p, IST__CAPABILITY_external_reference);
  if (!copies) return;
  // Nothing that isthmus runs writes to an input: see program.c.
  capability->can |=
      IST_CAN_COPY_IN | IST_CAN_COPY_OUT | IST_CAN_HONOUR_READ_ONLY;
  if (view) {
    capability->can |= IST_CAN_ADOPT;
    capability->alignment = p->found[IST__CAPABILITY_view].value;
  }
  if (ist__probe_has(p, IST__CAPABILITY_view_permuted)) {
    capability->layouts |= IST_LAYOUT_PERMUTED;
  }
  if (address) {
    capability->can |= IST_CAN_HOST_ADDRESS;
    capability->dl_device = (DLDevice){kDLCPU, 0};
  }
  if (lend) capability->can |= IST_CAN_LEND;
}

static ist_code probe_memory(ist__pjrt_client *client, size_t device,
                             ist__pjrt_memory *memory, ist_error *err) {
  ist__probe p = {.client = client,
                  .memory = memory,
                  .device = device,
                  .found = memory->findings->of};
  ist_capability *capability = memory->capability;
  bool view_address = false;
  capability->alignment = 1;
  capability->layouts = IST_LAYOUT_ROW_MAJOR;
  ist_code code = ist__probe_begin(&p, err);
  if (code != IST_OK) return code;
  ist__probe_copies(&p);
  if (ist__probe_has(&p, IST__CAPABILITY_copy_out)) {
    ist__probe_addresses(&p);
    ist__probe_views(&p, &view_address);
    if (ist__probe_has(&p, IST__CAPABILITY_view)) ist__probe_permuted(&p);
    capability->dtypes = ist__probe_types(&p);
  }
  conclude(&p, view_address);
  return ist__probe_end(&p, err);
}

// Devices of one kind in one client are alike, so one of them is probed.
static const ist__pjrt_memory *alike(const ist__pjrt_client *client,
                                     size_t index, const char *kind) {
  for (size_t d = 0; d < index; d++) {
    const ist__pjrt_device *device = &client->devices[d];
    if (strcmp(device->kind, client->devices[index].kind) != 0) continue;
    for (size_t m = 0; m < device->memory_count; m++) {
      if (strcmp(device->memories[m].kind, kind) == 0) {
        return &device->memories[m];
      }
    }
  }
  return NULL;
}

static ist_code probe_new(ist__pjrt_client *client, size_t device,
                          ist__pjrt_memory *memory, ist_error *err) {
  ist__pjrt_findings *findings = ist__alloc_zero(client->env, sizeof *findings);
  if (findings == NULL) {
    return ist__error_memory(err, "a probe's findings", sizeof *findings);
  }
  findings->next = client->findings;
  client->findings = findings;
  memory->findings = findings;
  return probe_memory(client, device, memory, err);
}

ist_code ist__pjrt_probe(ist__pjrt_client *client, ist_error *err) {
  ist_code code = IST_OK;
  for (size_t d = 0; d < client->device_count; d++) {
    ist__pjrt_device *device = &client->devices[d];
    for (size_t m = 0; m < device->memory_count && code == IST_OK; m++) {
      ist__pjrt_memory *memory = &device->memories[m];
      const ist__pjrt_memory *known = alike(client, d, memory->kind);
      if (known != NULL) {
        *memory->capability = *known->capability;
        memory->physical_order = known->physical_order;
        memory->tiled = known->tiled;
        memory->findings = known->findings;
      } else {
        code = probe_new(client, d, memory, err);
      }
    }
    size_t first = client->facts[d].default_memory;
    client->facts[d].dl_device = device->memories[first].capability->dl_device;
  }
  return code;
}
