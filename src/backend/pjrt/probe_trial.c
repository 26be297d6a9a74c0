// SPDX-License-Identifier: Apache-2.0
// probe_trial.c: the block, the outcomes and the buffers that trials share.

#include "backend/pjrt/probe_trial.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/pjrt/foreign.h"
#include "base/alloc.h"

const int32_t ist__probe_six[6] = {1, -2, 3, 40000, -5, 6};
const int64_t ist__probe_six_dims[2] = {2, 3};
const ist__pjrt_shape ist__probe_six_shape = {4, 2, ist__probe_six_dims,
                                              NULL};  // 4: S32

void ist__probe_block_drop(void *block) {
  ist__probe_block *b = block;
  if (!ist__refcount_drop(&b->holders)) return;
  ist__pjrt_client *client = b->client;
  ist__free(client->env, b->bytes);
  ist__free(client->env, b);
  ist__pjrt_client_drop(client);
}

ist_code ist__probe_begin(ist__probe *probe, ist_error *err) {
  const size_t size = 3 * IST__PROBE_PAGE;
  ist__pjrt_client *client = probe->client;
  ist__probe_block *b = ist__alloc_zero(client->env, sizeof *b);
  // So that what begins one page later is aligned to no more than a page.
  unsigned char *bytes = ist__alloc(client->env, size, 2 * IST__PROBE_PAGE);
  if (b == NULL || bytes == NULL) {
    ist__free(client->env, b);
    ist__free(client->env, bytes);
    return ist__error_memory(err, "a probe", size);
  }
  memset(bytes, 0, size);
  ist__refcount_init(&b->holders);
  ist__refcount_take(&client->holders);
  b->client = client;
  b->bytes = bytes;
  probe->block = b;
  return IST_OK;
}

ist_code ist__probe_end(ist__probe *probe, ist_error *err) {
  ist__probe_block_drop(probe->block);
  probe->block = NULL;
  if (!probe->no_memory) return IST_OK;
  return ist__error_memory(err, "a probe of a plugin's memory",
                           IST__PROBE_PAGE);
}

bool ist__probe_tries(ist__probe *probe, int number) {
  if (probe->losses != NULL && (probe->losses->set >> number & 1) != 0) {
    return false;
  }
  ist__step_trial(probe->client->env,
                  ist__pjrt_capability_row_at(number)->name);
  return true;
}

void ist__probe_works(ist__probe *probe, int number, uint64_t value) {
  ist__pjrt_finding *found = &probe->found[number];
  if (found->tried) return;
  found->tried = true;
  found->works = true;
  found->value = value;
}

// A reason goes without the name that messages begin with: a report has it.
static const char *without_name(const ist__pjrt *pjrt, const char *text) {
  size_t length = strlen(pjrt->name);
  if (strncmp(text, pjrt->name, length) != 0) return text;
  return strncmp(text + length, ": ", 2) == 0 ? text + length + 2 : text;
}

void ist__probe_fails(ist__probe *probe, int number, const ist_error *err) {
  const ist__pjrt *pjrt = &probe->client->plugin.pjrt;
  ist__pjrt_finding *found = &probe->found[number];
  if (err->code == IST_ERR_NO_ALLOCATION) probe->no_memory = true;
  if (found->tried) return;
  found->tried = true;
  const char *reason = without_name(pjrt, err->message);
  ist__pjrt_string(reason, strlen(reason), found->reason, sizeof found->reason);
  ist__log(pjrt->env, IST_LOG_DEBUG, "%s: memory %s: %s: %s", pjrt->name,
           probe->memory->kind, ist__pjrt_capability_row_at(number)->name,
           found->reason);
}

void ist__probe_result(ist__probe *probe, int number, ist_code code,
                       const ist_error *err) {
  if (code == IST_OK) {
    ist__probe_works(probe, number, 0);
  } else {
    ist__probe_fails(probe, number, err);
  }
}

void ist__probe_says(ist__probe *probe, int number, const char *format, ...) {
  ist_error err = {.code = IST_ERR_PLUGIN};
  va_list args;
  va_start(args, format);
  vsnprintf(err.message, sizeof err.message, format, args);
  va_end(args);
  ist__probe_fails(probe, number, &err);
}

PJRT_Buffer *ist__probe_copied(ist__probe *probe, ist_error *err) {
  const ist__pjrt *pjrt = &probe->client->plugin.pjrt;
  PJRT_Buffer *buffer = NULL;
  ist_code code =
      ist__pjrt_from_host(probe->client, probe->memory, &ist__probe_six_shape,
                          ist__probe_six, &buffer, err);
  if (code == IST_OK) code = ist__pjrt_ready(pjrt, buffer, err);
  if (code == IST_OK) return buffer;
  ist__pjrt_destroy(pjrt, buffer);
  return NULL;
}

PJRT_Buffer *ist__probe_viewed(ist__probe *probe, const ist__pjrt_shape *shape,
                               size_t offset, ist_error *err) {
  const ist__pjrt *pjrt = &probe->client->plugin.pjrt;
  ist__probe_block *block = probe->block;
  PJRT_Buffer *buffer = NULL;
  ist__refcount_take(&block->holders);
  ist_code code = ist__pjrt_view_foreign(
      probe->client, probe->memory, shape, block->bytes + offset,
      ist__probe_block_drop, block, &buffer, err);
  if (code != IST_OK) {
    ist__probe_block_drop(block);
    return NULL;
  }
  code = ist__pjrt_ready(pjrt, buffer, err);
  if (code == IST_OK) code = ist__probe_lies_here(probe, buffer, err);
  if (code == IST_OK) return buffer;
  ist__pjrt_destroy(pjrt, buffer);
  return NULL;
}

// Before 0.66 a plugin does not read which memory a view should lie in, and
// puts it into the device's default one.
ist_code ist__probe_lies_here(ist__probe *probe, PJRT_Buffer *buffer,
                              ist_error *err) {
  const ist__pjrt_memory *memory = probe->memory;
  IST_PJRT_ARGS(PJRT_Buffer_Memory_Args, get);
  get.buffer = buffer;
  ist_code code = ist__pjrt_call(&probe->client->plugin.pjrt,
                                 IST_SLOT_Buffer_Memory, &get, err);
  if (code == IST_OK && memory->memory != NULL &&
      get.memory != memory->memory) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "a buffer lies in another memory than was asked for");
  }
  return memory->is_default ? IST_OK : code;  // nobody could tell otherwise
}

ist_code ist__probe_comes_out(ist__probe *probe, PJRT_Buffer *buffer,
                              const void *want, size_t size, ist_error *err) {
  unsigned char got[16 * IST__PROBE_ELEMENTS + 1];
  memset(got, 0x5c, sizeof got);
  ist_code code =
      ist__pjrt_to_host(&probe->client->plugin.pjrt, buffer, got, size, err);
  if (code != IST_OK || memcmp(got, want, size) == 0) return code;
  return ist_error_set(err, IST_ERR_PLUGIN, "other values came out");
}
