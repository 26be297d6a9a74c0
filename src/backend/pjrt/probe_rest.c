// SPDX-License-Identifier: Apache-2.0
// probe_rest.c: what only a report needs, tried when one is asked for, after
// all that was found when the plugin was opened.

#include "backend/pjrt/probe.h"
#include "backend/pjrt/probe_part.h"

// What the plugin does not have was not there to be tried.
static void say_missing(ist__probe *p) {
  for (int i = 0; i < IST__CAPABILITY_COUNT; i++) {
    if (!ist__pjrt_capability_is_present(&p->client->plugin.pjrt, i)) {
      ist__probe_says(p, i, "the plugin does not have it");
    }
  }
}

static void say_untried(ist__probe *p, const char *why) {
  for (int i = 0; i < IST__CAPABILITY_COUNT; i++) {
    ist__probe_says(p, i, "not tried: %s", why);
  }
}

// First what only looks at a buffer, then what ends one, then copies that the
// plugin makes by itself.
static void try_memory(ist__probe *p) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  ist_error err;
  PJRT_Buffer *buffer = ist__probe_copied(p, &err);
  if (buffer == NULL) {
    // It could be made when the plugin was opened.
    for (int i = 0; i < IST__CAPABILITY_COUNT; i++)
      ist__probe_fails(p, i, &err);
    return;
  }
  ist__probe_host_layout(p, buffer);
  ist__probe_copy_raw(p, buffer);
  ist__probe_told(p, buffer);
  ist__probe_extensions(p, buffer);
  ist__pjrt_destroy(pjrt, buffer);
  ist__probe_zero_copy(p);
  ist__probe_ends(p);
  ist__probe_transfers(p);
}

// Also where it was found to work when the plugin was opened.
static void say_lost(ist__probe *p) {
  for (int i = 0; p->losses != NULL && i < IST__CAPABILITY_COUNT; i++) {
    if ((p->losses->set >> i & 1) == 0) continue;
    p->found[i] = (ist__pjrt_finding){0};
    ist__probe_says(p, i, "%s", p->losses->how[i]);
  }
}

static ist_code try_all(ist__probe *p, bool runs_programs, ist_error *err) {
  ist__step_trial(p->client->env, "");
  ist_code code = ist__probe_begin(p, err);
  if (code != IST_OK) return code;
  say_lost(p);
  say_missing(p);
  if (!ist__probe_has(p, IST__CAPABILITY_copy_out)) {
    say_untried(p, "copies in and out do not work");
  } else {
    try_memory(p);
    if (p->memory->is_default) ist__probe_stats(p);
    if (runs_programs) ist__probe_programs(p);
    // A plugin that makes no dynamic output tells of static ones rightly.
    ist__probe_works(p, IST__CAPABILITY_dynamic_dimensions, 0);
  }
  ist__step_trial(p->client->env, "");
  return ist__probe_end(p, err);
}

// What is the plugin's is tried where the device puts buffers by default.
static void share(const ist__pjrt_findings *from, ist__pjrt_findings *to) {
  for (int i = 0; i < IST__CAPABILITY_COUNT; i++) {
    if (ist__pjrt_capability_row_at(i)->of_client) to->of[i] = from->of[i];
  }
}

ist_code ist__pjrt_probe_rest(ist__pjrt_client *client, size_t device,
                              const ist__pjrt_losses *losses,
                              ist__pjrt_findings *found, ist_error *err) {
  const size_t first = client->facts[device].default_memory;
  ist__pjrt_device *place = &client->devices[device];
  ist__probe p = {.client = client,
                  .memory = &place->memories[first],
                  .device = device,
                  .found = found[first].of,
                  .losses = losses};
  // Programs are compiled for the first device.
  ist_code code = try_all(&p, device == 0, err);
  if (code == IST_OK && device != 0) {
    p.found = found[first].of;
    say_untried(&p, "programs are tried on the first device");
  }
  say_untried(&p, "what it needs does not work");
  for (size_t m = 0; m < place->memory_count && code == IST_OK; m++) {
    if (m == first) continue;
    p.memory = &place->memories[m];
    p.found = found[m].of;
    share(&found[first], &found[m]);
    code = try_all(&p, false, err);
    say_untried(&p, "what it needs does not work");
  }
  return code;
}
