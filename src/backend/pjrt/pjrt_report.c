// SPDX-License-Identifier: Apache-2.0
// pjrt_report.c: what a probe found of one device, and what the plugin says of
// itself, for who asks. Not for trying: that is probe.h.

#include "backend/pjrt/pjrt_report.h"

#include <string.h>

#include "backend/backend.h"
#include "backend/pjrt/attributes.h"
#include "backend/pjrt/pjrt_backend.h"
#include "backend/pjrt/probe.h"
#include "base/alloc.h"
#include "base/structs.h"

struct ist_pjrt_report {
  ist_backend *backend;  // retained
  ist__pjrt_client *client;
  size_t memory_count;
  ist__pjrt_findings *found;  // of each memory
  ist__pjrt_attributes attributes;
  size_t slot_count;
  size_t extension_count;
  char platform_version[512];
};

static void read_version(ist_pjrt_report *report) {
  const ist__pjrt *pjrt = &report->client->plugin.pjrt;
  IST_PJRT_ARGS(PJRT_Client_PlatformVersion_Args, get);
  get.client = report->client->client;
  if (ist__pjrt_call(pjrt, IST_SLOT_Client_PlatformVersion, &get, NULL) ==
      IST_OK) {
    ist__pjrt_string(get.platform_version, get.platform_version_size,
                     report->platform_version, sizeof report->platform_version);
  }
  report->platform_version[strcspn(report->platform_version, "\r\n")] = '\0';
}

static void count_parts(ist_pjrt_report *report) {
  const ist__pjrt *pjrt = &report->client->plugin.pjrt;
  for (int i = 0; i < IST_SLOT_COUNT; i++) {
    if (ist__pjrt_has(pjrt, i)) report->slot_count++;
  }
  const PJRT_Extension_Base *node = ist__pjrt_extension_next(pjrt, NULL, 0);
  while (node != NULL) {
    report->extension_count++;
    node = ist__pjrt_extension_next(pjrt, node, report->extension_count);
  }
}

// Attributes that cannot be read are a capability less.
static ist_code read_attributes(ist_pjrt_report *report,
                                const ist__pjrt_losses *losses,
                                ist_error *err) {
  const int number = IST__CAPABILITY_attributes;
  if (losses != NULL && (losses->set >> number & 1) != 0) return IST_OK;
  ist__step_trial(report->client->env, "attributes");
  ist__pjrt_finding found = {.tried = true, .works = true};
  ist_error why;
  ist_code code = ist__pjrt_attributes_read(&report->client->plugin.pjrt,
                                            &report->attributes, &why);
  if (code == IST_ERR_NO_ALLOCATION) {
    return ist__error_native(err, code, 0, "%s", why.message);
  }
  found.works = code == IST_OK;
  found.value = report->attributes.count;
  if (code != IST_OK) {
    ist__pjrt_string(why.message, strlen(why.message), found.reason,
                     sizeof found.reason);
  }
  for (size_t m = 0; m < report->memory_count; m++) {
    report->found[m].of[number] = found;
  }
  return IST_OK;
}

static ist_code fill(ist_pjrt_report *report, size_t device,
                     const ist__pjrt_losses *losses, ist_error *err) {
  ist__pjrt_client *client = report->client;
  ist__pjrt_device *place = &client->devices[device];
  size_t size = place->memory_count * sizeof *report->found;
  report->found = ist__alloc_zero(client->env, size);
  if (report->found == NULL) return ist__error_memory(err, "a report", size);
  report->memory_count = place->memory_count;
  for (size_t m = 0; m < report->memory_count; m++) {
    report->found[m] = *place->memories[m].findings;
  }
  read_version(report);
  count_parts(report);
  ist_code code = read_attributes(report, losses, err);
  if (code == IST_OK) {
    code = ist__pjrt_probe_rest(client, device, losses, report->found, err);
  }
  return code;
}

ist_code ist__pjrt_report_make(const ist_device *device,
                               const ist__pjrt_losses *losses,
                               ist_pjrt_report **out, ist_error *err) {
  ist_backend *backend = device->backend;
  ist__pjrt_client *client = backend->self;
  *out = NULL;
  ist_pjrt_report *report = ist__alloc_zero(client->env, sizeof *report);
  if (report == NULL) return ist__error_memory(err, "a report", sizeof *report);
  ist_backend_retain(backend);
  report->backend = backend;
  report->client = client;
  atomic_fetch_add(&client->plugin.pjrt.trying, 1);
  ist_code code = fill(report, device->index, losses, err);
  atomic_fetch_sub(&client->plugin.pjrt.trying, 1);
  if (code == IST_OK) {
    *out = report;
  } else {
    ist_pjrt_report_release(report);
  }
  return code;
}

ist_code ist_pjrt_report_create(const ist_device *device, ist_pjrt_report **out,
                                ist_error *err) {
  if (out != NULL) *out = NULL;
  ist_backend *backend = ist_device_backend(device);
  ist__pjrt_client *client = ist__pjrt_client_of(backend);
  if (out == NULL || client == NULL) {
    return ist_error_set(
        err, IST_ERR_ARGUMENT,
        "%s: a report cannot be made: %s; needs a device of a "
        "PJRT backend, and out",
        backend != NULL ? backend->facts.name : "pjrt",
        out == NULL ? "out is NULL" : "this is no PJRT device");
  }
  ist__pjrt_losses losses = {0};
  if (client->origin != NULL) {
    ist_code code =
        ist__verdict_report(&client->context->verdicts, client->env,
                            client->origin, device->index, &losses, err);
    if (code != IST_OK) return code;
  }
  return ist__pjrt_report_make(device, &losses, out, err);
}

void ist_pjrt_report_release(ist_pjrt_report *report) {
  if (report == NULL) return;
  const ist__env *env = report->client->env;
  ist_backend *backend = report->backend;
  ist__free(env, report->attributes.at);
  ist__free(env, report->found);
  ist__free(env, report);
  ist_backend_release(backend);
}

static ist_code no_such(const char *what, ist_error *err) {
  return ist_error_set(err, IST_ERR_ARGUMENT,
                       "a report cannot be read: an argument is NULL, out has "
                       "no struct_size, or it has no such %s; needs one that "
                       "it has",
                       what);
}

ist_code ist_pjrt_report_info(const ist_pjrt_report *report, ist_pjrt_info *out,
                              ist_error *err) {
  if (report == NULL || !ist__struct_ok(out)) return no_such("fact", err);
  const ist__pjrt *pjrt = &report->client->plugin.pjrt;
  ist_pjrt_info info = {
      .struct_size = sizeof info,
      .api_major = pjrt->table->pjrt_api_version.major_version,
      .api_minor = pjrt->minor,
      .platform = report->backend->facts.platform,
      .platform_version = report->platform_version,
      .slot_count = report->slot_count,
      .extension_count = report->extension_count,
      .attribute_count = report->attributes.count,
  };
  ist__struct_write(out, &info, sizeof info);
  return IST_OK;
}

size_t ist_pjrt_report_count(const ist_pjrt_report *report) {
  return report == NULL ? 0 : IST__CAPABILITY_COUNT;
}

ist_code ist_pjrt_report_capability(const ist_pjrt_report *report,
                                    size_t memory, size_t index,
                                    ist_pjrt_capability *out, ist_error *err) {
  if (report == NULL || memory >= report->memory_count ||
      index >= IST__CAPABILITY_COUNT || !ist__struct_ok(out)) {
    return no_such("capability", err);
  }
  const ist__pjrt_finding *found = &report->found[memory].of[index];
  const ist__pjrt_capability_row *row = ist__pjrt_capability_row_at((int)index);
  ist_pjrt_capability capability = {
      .struct_size = sizeof capability,
      .name = row->name,
      .slot = row->parts,
      .lost_without = row->lost_without,
      .present = ist__pjrt_capability_is_present(&report->client->plugin.pjrt,
                                                 (int)index),
      .works = found->works,
      .value = found->value,
  };
  _Static_assert(sizeof capability.reason == sizeof found->reason,
                 "a reason fits");
  memcpy(capability.reason, found->reason, sizeof found->reason);
  ist__struct_write(out, &capability, sizeof capability);
  return IST_OK;
}

ist_code ist_pjrt_report_find(const ist_pjrt_report *report, size_t memory,
                              const char *name, ist_pjrt_capability *out,
                              ist_error *err) {
  for (size_t i = 0; name != NULL && i < IST__CAPABILITY_COUNT; i++) {
    if (strcmp(ist__pjrt_capability_row_at((int)i)->name, name) == 0) {
      return ist_pjrt_report_capability(report, memory, i, out, err);
    }
  }
  return no_such("capability", err);
}

ist_code ist_pjrt_report_extension(const ist_pjrt_report *report, size_t index,
                                   int32_t *out_type, const char **out_name,
                                   ist_error *err) {
  if (out_type != NULL) *out_type = 0;
  if (out_name != NULL) *out_name = NULL;
  if (report == NULL || index >= report->extension_count || out_type == NULL ||
      out_name == NULL) {
    return no_such("extension", err);
  }
  const ist__pjrt *pjrt = &report->client->plugin.pjrt;
  const PJRT_Extension_Base *node = ist__pjrt_extension_next(pjrt, NULL, 0);
  for (size_t i = 1; i <= index && node != NULL; i++) {
    node = ist__pjrt_extension_next(pjrt, node, i);
  }
  if (node == NULL) return no_such("extension", err);
  *out_type = node->type;
  *out_name = ist__pjrt_extension_name(node->type);
  return IST_OK;
}

ist_code ist_pjrt_report_attribute(const ist_pjrt_report *report, size_t index,
                                   ist_option *out, ist_error *err) {
  if (out != NULL) memset(out, 0, sizeof *out);
  if (report == NULL || index >= report->attributes.count || out == NULL) {
    return no_such("attribute", err);
  }
  *out = report->attributes.at[index].option;
  return IST_OK;
}
