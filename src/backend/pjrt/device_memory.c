// SPDX-License-Identifier: Apache-2.0
// device_memory.c: statistics of a device's memory, alone and in the errors of
// a device that has run out of it.

#include "backend/pjrt/device_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/pjrt/pjrt_backend.h"
#include "backend/pjrt/pjrt_tensor.h"
#include "backend/pjrt/program.h"
#include "base/structs.h"
#include "base/text.h"

// ---- asking

static int64_t told(bool is_set, int64_t value) {
  return is_set && value >= 0 ? value : -1;
}

ist_code ist__pjrt_memory_ask(const ist__pjrt *pjrt, PJRT_Device *device,
                              ist_pjrt_memory_use *out, ist_error *err) {
  IST_PJRT_ARGS(PJRT_Device_MemoryStats_Args, ask);
  ask.device = device;
  ist_code code = ist__pjrt_call(pjrt, IST_SLOT_Device_MemoryStats, &ask, err);
  if (code != IST_OK) return code;
  *out = (ist_pjrt_memory_use){
      .struct_size = sizeof *out,
      .bytes_in_use = told(true, ask.bytes_in_use),
#define TOLD(name) .name = told(ask.name##_is_set, ask.name)
      TOLD(peak_bytes_in_use),
      TOLD(num_allocs),
      TOLD(largest_alloc_size),
      TOLD(bytes_limit),
      TOLD(bytes_reserved),
      TOLD(peak_bytes_reserved),
      TOLD(bytes_reservable_limit),
      TOLD(largest_free_block_bytes),
      TOLD(pool_bytes),
      TOLD(peak_pool_bytes),
      TOLD(peak_allocated_bytes),
#undef TOLD
  };
  return IST_OK;
}

ist_code ist_pjrt_memory_stats(const ist_device *device,
                               ist_pjrt_memory_use *out, ist_error *err) {
  const ist__pjrt_client *client =
      device != NULL ? ist__pjrt_client_of(device->backend) : NULL;
  if (client == NULL || !ist__struct_ok(out)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "the memory of a device could not be asked for: %s; "
                         "needs a device on a PJRT plugin and an out with "
                         "struct_size",
                         client == NULL ? "the device is on no PJRT plugin"
                                        : "out has no struct_size");
  }
  ist_pjrt_memory_use use;
  ist_code code = ist__pjrt_memory_ask(
      &client->plugin.pjrt, client->devices[device->index].device, &use, err);
  if (code == IST_OK) ist__struct_write(out, &use, sizeof use);
  return code;
}

// ---- telling

static void add(ist__text *text, const char *what, int64_t value) {
  if (value >= 0) ist__text_add(text, ", %s %" PRId64, what, value);
}

static void add_statistics(const ist__pjrt *pjrt, PJRT_Device *device,
                           ist__text *text) {
  ist_pjrt_memory_use use;
  if (ist__pjrt_memory_ask(pjrt, device, &use, NULL) != IST_OK) {
    ist__text_add(text, ", the plugin has no statistics");
    return;
  }
  add(text, "in use", use.bytes_in_use);
  add(text, "limit", use.bytes_limit);
  add(text, "peak", use.peak_bytes_in_use);
  add(text, "reserved", use.bytes_reserved);
  add(text, "largest free block", use.largest_free_block_bytes);
}

// Which device ran out, and what for. bytes is 0 where nobody knows.
typedef struct want {
  const ist__pjrt_client *client;
  PJRT_Device *device;
  uint64_t bytes;
} want;

static const char *name_of(const want *w) {
  for (size_t d = 0; d < w->client->device_count; d++) {
    if (w->client->devices[d].device == w->device) {
      return w->client->devices[d].name;
    }
  }
  return "the device";  // unreachable: devices come from the client's own list
}

// Rewrites the plugin's own words, which stand in err, with what is known.
static ist_code explain(const want *w, ist_code code, ist_error *err) {
  if (code != IST_ERR_OUT_OF_DEVICE_MEMORY) return code;
  const ist__pjrt *pjrt = &w->client->plugin.pjrt;
  char words[sizeof err->message], cut[200], known[240];
  snprintf(words, sizeof words, "%s", err->message);
  static const char begin[] = "out of memory: ";
  const char *from = strstr(words, begin);
  from = from != NULL ? from + sizeof begin - 1 : words;
  const char *needs = strstr(from, "; needs ");
  size_t length = needs != NULL ? (size_t)(needs - from) : strlen(from);
  ist__pjrt_string(from, length, cut, sizeof cut);
  ist__text text = ist__text_make(known, sizeof known);
  if (w->bytes > 0) ist__text_add(&text, "asked for %" PRIu64, w->bytes);
  if (w->bytes == 0) ist__text_add(&text, "asked for an unknown number");
  add_statistics(pjrt, w->device, &text);
  return ist__error_native(err, code, PJRT_Error_Code_RESOURCE_EXHAUSTED,
                           "%s: %s is out of memory: %s (bytes: %s); needs "
                           "tensors that are released or deleted, less at "
                           "once, or another device",
                           pjrt->name, name_of(w), cut, known);
}

static want want_of_place(void *self, const ist_placement *place) {
  const ist__pjrt_client *client = self;
  const DLTensor *view = place->view;
  uint64_t bits = (uint64_t)view->dtype.bits * view->dtype.lanes, count = 1;
  for (int32_t d = 0; d < view->ndim; d++) count *= (uint64_t)view->shape[d];
  return (want){client, client->devices[place->device].device,
                (count * bits + 7) / 8};
}

static want want_of_tensor(void *self, const ist__pjrt_tensor *tensor) {
  return (want){self, tensor->memory->device, 0};
}

// ---- the slots

static ist_code watched_copy_in(void *self, const ist_placement *source,
                                void **out, ist_error *err) {
  ist_code code = ist__pjrt_copy_in(self, source, out, err);
  if (code == IST_OK) return IST_OK;
  want w = want_of_place(self, source);
  return explain(&w, code, err);
}

static ist_code watched_adopt(void *self, const ist_placement *source,
                              void **out, ist_error *err) {
  ist_code code = ist__pjrt_adopt(self, source, out, err);
  if (code == IST_OK) return IST_OK;
  want w = want_of_place(self, source);
  return explain(&w, code, err);
}

static ist_code watched_copy_out(void *self, void *buffer, void *target,
                                 uint64_t nbytes, ist_error *err) {
  ist_code code = ist__pjrt_copy_out(self, buffer, target, nbytes, err);
  if (code == IST_OK) return IST_OK;
  want w = want_of_tensor(self, buffer);
  w.bytes = nbytes;
  return explain(&w, code, err);
}

static ist_code watched_wait(void *self, void *buffer, ist_error *err) {
  ist_code code = ist__pjrt_wait(self, buffer, err);
  if (code == IST_OK) return IST_OK;
  want w = want_of_tensor(self, buffer);
  return explain(&w, code, err);
}

static ist_code watched_lend(void *self, void *buffer, ist_loan *out,
                             ist_error *err) {
  ist_code code = ist__pjrt_lend(self, buffer, out, err);
  if (code == IST_OK) return IST_OK;
  want w = want_of_tensor(self, buffer);
  return explain(&w, code, err);
}

static ist_code watched_compile(void *self, const ist_source *source,
                                void **out, ist_error *err) {
  ist_code code = ist__pjrt_compile(self, source, out, err);
  if (code == IST_OK) return IST_OK;
  const ist__pjrt_client *client = self;
  want w = {client, client->devices[source->device].device, 0};
  return explain(&w, code, err);
}

static ist_code watched_execute(void *self, const ist_execution *execution,
                                ist_error *err) {
  ist_code code = ist__pjrt_execute(self, execution, err);
  if (code == IST_OK) return IST_OK;
  const ist__pjrt_client *client = self;
  want w = {client, client->devices[0].device, 0};
  if (execution->input_count > 0) {
    w = want_of_tensor(self, execution->inputs[0]);
  }
  return explain(&w, code, err);
}

void ist__pjrt_memory_watch(ist_backend_ops *ops) {
  ops->copy_in = watched_copy_in;
  ops->adopt = watched_adopt;
  ops->copy_out = watched_copy_out;
  ops->wait = watched_wait;
  ops->lend = watched_lend;
  ops->compile = watched_compile;
  ops->execute = watched_execute;
}
