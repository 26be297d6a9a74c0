// SPDX-License-Identifier: Apache-2.0
// device.c: what an open backend tells of itself, its devices and memories.

#include <string.h>

#include "backend/backend.h"
#include "base/error.h"
#include "base/structs.h"
#include "base/text.h"

static ist_code no_out(const char *what, ist_error *err) {
  return ist_error_set(err, IST_ERR_ARGUMENT,
                       "%s could not be described: an argument is NULL or out "
                       "has no struct_size; needs both",
                       what);
}

ist_code ist_backend_describe(const ist_backend *backend, ist_backend_info *out,
                              ist_error *err) {
  if (backend == NULL || !ist__struct_ok(out)) return no_out("a backend", err);
  ist_backend_info info = {
      .struct_size = sizeof info,
      .name = backend->facts.name,
      .platform = backend->facts.platform,
      .version = backend->facts.version,
      .device_count = backend->facts.device_count,
      .runs_programs = backend->ops.compile != NULL,
  };
  ist__struct_write(out, &info, sizeof info);
  return IST_OK;
}

const ist_device *ist_backend_device(const ist_backend *backend, size_t index) {
  if (backend == NULL || index >= backend->facts.device_count) return NULL;
  return &backend->devices[index];
}

ist_backend *ist_device_backend(const ist_device *device) {
  return device == NULL ? NULL : device->backend;
}

ist_code ist_device_describe(const ist_device *device, ist_device_info *out,
                             ist_error *err) {
  if (device == NULL || !ist__struct_ok(out)) return no_out("a device", err);
  const ist_device_facts *facts = &device->facts;
  ist_device_info info = {
      .struct_size = sizeof info,
      .name = facts->name,
      .kind = facts->kind,
      .index = device->index,
      .id = facts->id,
      .dl_device = facts->dl_device,
      .memory_count = facts->memory_count,
      .default_memory = facts->default_memory,
  };
  ist__struct_write(out, &info, sizeof info);
  return IST_OK;
}

ist_code ist_device_memory(const ist_device *device, size_t index,
                           ist_memory_info *out, ist_error *err) {
  if (device == NULL || !ist__struct_ok(out)) return no_out("a memory", err);
  if (index >= device->facts.memory_count) {
    return ist_error_set(err, IST_ERR_NO_MEMORY_KIND,
                         "memory %zu of %s could not be described: there are "
                         "%zu; needs a smaller number",
                         index, device->facts.name, device->facts.memory_count);
  }
  ist_memory_info info;
  ist__struct_read(&info, sizeof info, &device->facts.memories[index]);
  ist__struct_write(out, &info, sizeof info);
  return IST_OK;
}

ist_code ist__device_find_memory(const ist_device *device, const char *kind,
                                 size_t *out, ist_error *err) {
  const ist_device_facts *facts = &device->facts;
  *out = facts->default_memory;
  if (kind == NULL || kind[0] == '\0') return IST_OK;
  for (size_t m = 0; m < facts->memory_count; m++) {
    if (strcmp(facts->memories[m].kind, kind) == 0) {
      *out = m;
      return IST_OK;
    }
  }
  char kinds[256];
  ist__text text = ist__text_make(kinds, sizeof kinds);
  for (size_t m = 0; m < facts->memory_count; m++) {
    ist__text_add(&text, "%s%s", m == 0 ? "" : ", ", facts->memories[m].kind);
  }
  return ist_error_set(err, IST_ERR_NO_MEMORY_KIND,
                       "%s has no memory %s: its default is %s; needs one of "
                       "%s",
                       facts->name, kind,
                       facts->memories[facts->default_memory].kind, kinds);
}
