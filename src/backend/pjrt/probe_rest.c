// SPDX-License-Identifier: Apache-2.0
// probe_rest.c: what only a report needs, tried when one is asked for, after
// all that was found when the plugin was opened.

#include "backend/pjrt/probe.h"
#include "backend/pjrt/probe_part.h"

// What nothing else has said yet.
static void explain_untried(ist__probe *p) {
  for (int i = 0; i < IST__CAPABILITY_COUNT; i++) {
    if (p->found[i].tried) continue;
    if (!ist__pjrt_capability_is_present(&p->client->plugin.pjrt, i)) {
      ist__probe_says(p, i, "the plugin does not have it");
    } else if (!ist__probe_has(p, IST__CAPABILITY_copy_out)) {
      ist__probe_says(p, i, "not tried: copies in and out do not work");
    } else {
      ist__probe_says(p, i, "not tried in this version");
    }
  }
}

ist_code ist__pjrt_probe_rest(ist__pjrt_client *client, size_t device,
                              ist__pjrt_findings *found, ist_error *err) {
  ist_code code = IST_OK;
  ist__pjrt_device *place = &client->devices[device];
  for (size_t m = 0; m < place->memory_count && code == IST_OK; m++) {
    ist__probe p = {.client = client,
                    .memory = &place->memories[m],
                    .device = device,
                    .found = found[m].of};
    code = ist__probe_begin(&p, err);
    if (code != IST_OK) break;
    explain_untried(&p);
    code = ist__probe_end(&p, err);
  }
  return code;
}
