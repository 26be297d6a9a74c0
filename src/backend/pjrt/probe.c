// SPDX-License-Identifier: Apache-2.0
// probe.c: tries each capability in an order that cannot hurt: copies before
// views, coarse alignments before fine ones, types that are known to be safe,
// and no address is read that a view has not proved to be the host's.

#include "backend/pjrt/probe.h"

#include <stdio.h>
#include <string.h>

#include "backend/pjrt/foreign.h"
#include "base/alloc.h"
#include "tensor/dtype.h"

#define PAGE 4096
#define ELEMENTS 8  // of each dtype

// Memory that views of the probe look at. A plugin may give a view back on a
// thread of its own, after the probe is over, so views are holders of it.
typedef struct block {
  ist__refcount holders;
  ist__pjrt_client *client;
  unsigned char *bytes;  // 3 pages, aligned to one
} block;

typedef struct probe {
  ist__pjrt_client *client;
  ist__pjrt_memory *memory;
  block *block;
  bool no_memory;  // a trial failed for want of memory of this process
} probe;

static void block_drop(void *self) {
  block *b = self;
  if (!ist__refcount_drop(&b->holders)) return;
  ist__pjrt_client *client = b->client;
  ist__free(client->env, b->bytes);
  ist__free(client->env, b);
  ist__pjrt_client_drop(client);
}

static ist_code block_make(ist__pjrt_client *client, block **out,
                           ist_error *err) {
  block *b = ist__alloc_zero(client->env, sizeof *b);
  unsigned char *bytes = ist__alloc(client->env, 3 * PAGE, PAGE);
  if (b == NULL || bytes == NULL) {
    ist__free(client->env, b);
    ist__free(client->env, bytes);
    return ist__error_memory(err, "a probe", 3 * PAGE);
  }
  memset(bytes, 0, 3 * PAGE);
  ist__refcount_init(&b->holders);
  ist__refcount_take(&client->holders);
  b->client = client;
  b->bytes = bytes;
  *out = b;
  return IST_OK;
}

static void note(probe *p, const char *what, const ist_error *err) {
  if (err->code == IST_ERR_NO_ALLOCATION) p->no_memory = true;
  ist__log(p->client->env, IST_LOG_DEBUG, "%s: memory %s: %s: %s",
           p->client->plugin.pjrt.name, p->memory->kind, what, err->message);
}

// Before 0.66 a plugin does not read which memory a view should lie in, and
// puts it into the device's default one.
static bool lies_where_asked(probe *p, PJRT_Buffer *buffer, const char *what) {
  IST_PJRT_ARGS(PJRT_Buffer_Memory_Args, get);
  ist_error err;
  get.buffer = buffer;
  ist_code code = ist__pjrt_call(&p->client->plugin.pjrt,
                                 IST_SLOT_Buffer_Memory, &get, &err);
  if (code == IST_OK && p->memory->memory != NULL &&
      get.memory != p->memory->memory) {
    code = ist_error_set(&err, IST_ERR_PLUGIN, "it lies in another memory");
  } else if (p->memory->is_default) {
    return true;  // nobody could tell otherwise
  }
  if (code != IST_OK) note(p, what, &err);
  return code == IST_OK;
}

// A view of the block that is ready, or NULL.
static PJRT_Buffer *view_block(probe *p, const ist__pjrt_shape *shape,
                               size_t offset, const char *what) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  PJRT_Buffer *buffer = NULL;
  ist_error err;
  ist__refcount_take(&p->block->holders);
  ist_code code = ist__pjrt_view_foreign(p->client, p->memory, shape,
                                         p->block->bytes + offset, block_drop,
                                         p->block, &buffer, &err);
  if (code != IST_OK) {
    note(p, what, &err);
    block_drop(p->block);
    return NULL;
  }
  code = ist__pjrt_ready(pjrt, buffer, &err);
  if (code != IST_OK) note(p, what, &err);
  if (code == IST_OK && lies_where_asked(p, buffer, what)) return buffer;
  ist__pjrt_destroy(pjrt, buffer);
  return NULL;
}

// True when size bytes come out of a buffer as want.
static bool comes_out_as(probe *p, PJRT_Buffer *buffer, const void *want,
                         size_t size, const char *what) {
  unsigned char got[16 * ELEMENTS + 1];
  ist_error err;
  memset(got, 0x5c, sizeof got);
  if (ist__pjrt_to_host(&p->client->plugin.pjrt, buffer, got, size, &err) !=
      IST_OK) {
    note(p, what, &err);
    return false;
  }
  if (memcmp(got, want, size) == 0) return true;
  ist_error_set(&err, IST_ERR_PLUGIN, "other values came out");
  note(p, what, &err);
  return false;
}

static const int64_t six_dims[2] = {2, 3};
static const int32_t six[6] = {1, -2, 3, 40000, -5, 6};
static const ist__pjrt_shape six_shape = {4, 2, six_dims, NULL};  // 4: S32

// Copies in and out, external references, and with them what lend needs.
static void probe_copies(probe *p, bool host_address) {
  ist__pjrt_client *client = p->client;
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  uint32_t *can = &p->memory->capability->can;
  PJRT_Buffer *buffer = NULL;
  ist_error err;
  ist_code code =
      ist__pjrt_from_host(client, p->memory, &six_shape, six, &buffer, &err);
  if (code == IST_OK) code = ist__pjrt_ready(pjrt, buffer, &err);
  if (code != IST_OK) note(p, "copy in", &err);
  if (code == IST_OK && lies_where_asked(p, buffer, "copy in") &&
      comes_out_as(p, buffer, six, sizeof six, "copy in and out")) {
    *can |= IST_CAN_COPY_IN | IST_CAN_COPY_OUT;
  }
  void *address = NULL;
  int64_t order[2] = {0, 0};
  if (code == IST_OK && host_address) {
    code = ist__pjrt_order(pjrt, buffer, 2, six_dims, order, &err);
    if (code == IST_OK) code = ist__pjrt_hold(pjrt, buffer, &err);
    if (code == IST_OK) {
      code = ist__pjrt_address(pjrt, buffer, &address, &err);
      if (code == IST_OK && address != NULL && order[0] == 1 &&
          memcmp(address, six, sizeof six) == 0) {
        *can |= IST_CAN_LEND;
      }
      ist__pjrt_unhold(pjrt, buffer);
    }
    if (code != IST_OK) note(p, "lend", &err);
  }
  ist__pjrt_destroy(pjrt, buffer);
}

// The finest alignment that a view takes, coming from a page; 0: none.
static uint64_t probe_alignment(probe *p) {
  static const int64_t dims[1] = {ELEMENTS};
  const ist__pjrt_shape bytes = {6, 1, dims, NULL};  // 6: U8
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  uint64_t found = 0;
  for (size_t align = PAGE; align >= 1; align /= 2) {
    PJRT_Buffer *buffer = view_block(p, &bytes, align, "alignment");
    if (buffer == NULL) break;
    ist__pjrt_destroy(pjrt, buffer);
    found = align;
  }
  return found;
}

// Views: made, read, and written behind the plugin's back.
static void probe_views(probe *p) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  ist_capability *capability = p->memory->capability;
  uint64_t alignment = probe_alignment(p);
  if (alignment == 0) return;
  memcpy(p->block->bytes, six, sizeof six);
  PJRT_Buffer *buffer = view_block(p, &six_shape, 0, "view");
  if (buffer == NULL) return;
  int32_t later[6];
  for (int i = 0; i < 6; i++) later[i] = 7 * six[i];
  bool works = comes_out_as(p, buffer, six, sizeof six, "view");
  memcpy(p->block->bytes, later, sizeof later);
  works = works && comes_out_as(p, buffer, later, sizeof later,
                                "later writes through a view");
  if (works) {
    capability->can |= IST_CAN_ADOPT;
    capability->alignment = alignment;
    void *address = NULL;
    ist_error err;
    ist_code code = ist__pjrt_address(pjrt, buffer, &address, &err);
    if (code == IST_OK && address != p->block->bytes) {
      code = ist_error_set(&err, IST_ERR_PLUGIN, "another address is told");
    }
    if (code == IST_OK) {
      capability->can |= IST_CAN_HOST_ADDRESS;
    } else {
      note(p, "host address", &err);
    }
  }
  ist__pjrt_destroy(pjrt, buffer);
}

// A permuted view: kept, told as it is, and read in an order that is known.
static void probe_permuted(probe *p) {
  static const int64_t transposed[2] = {0, 1};
  const ist__pjrt_shape shape = {4, 2, six_dims, transposed};
  static const int32_t logical[6] = {1, 3, -5, -2, 40000, 6};
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  memcpy(p->block->bytes, six, sizeof six);
  PJRT_Buffer *buffer = view_block(p, &shape, 0, "permuted view");
  if (buffer == NULL) return;
  int64_t order[2] = {0, 0};
  ist_error err;
  ist_code code = ist__pjrt_order(pjrt, buffer, 2, six_dims, order, &err);
  if (code == IST_OK && (order[0] != 0 || order[1] != 1)) {
    code = ist_error_set(&err, IST_ERR_PLUGIN, "another layout is told");
  }
  if (code != IST_OK) note(p, "permuted view", &err);
  if (code == IST_OK) {
    bool physical = comes_out_as(p, buffer, six, sizeof six, "permuted view");
    if (physical ||
        comes_out_as(p, buffer, logical, sizeof logical, "permuted view")) {
      p->memory->capability->layouts |= IST_LAYOUT_PERMUTED;
      p->memory->physical_order = physical;
    }
  }
  ist__pjrt_destroy(pjrt, buffer);
}

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

static bool dtype_copies(probe *p, const ist__pjrt_shape *shape,
                         const unsigned char *values, size_t size) {
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  PJRT_Buffer *buffer = NULL;
  ist_error err;
  ist_code code =
      ist__pjrt_from_host(p->client, p->memory, shape, values, &buffer, &err);
  if (code == IST_OK) code = ist__pjrt_ready(pjrt, buffer, &err);
  if (code != IST_OK) note(p, "a dtype", &err);
  bool works =
      code == IST_OK && comes_out_as(p, buffer, values, size, "a dtype");
  ist__pjrt_destroy(pjrt, buffer);
  return works;
}

// A dtype counts when both ways work: a device that keeps 6-bit values one to
// a byte cannot view packed ones, so it does not have them.
static bool dtype_works(probe *p, const ist__dtype *dtype) {
  static const int64_t dims[1] = {ELEMENTS};
  const ist__pjrt *pjrt = &p->client->plugin.pjrt;
  const ist__pjrt_shape shape = {dtype->pjrt, 1, dims, NULL};
  unsigned char unpacked[16 * ELEMENTS], packed[16 * ELEMENTS];
  if (dtype->pjrt == 0 || !ist__pjrt_type_is_safe(pjrt->minor, dtype->pjrt)) {
    return false;
  }
  size_t size = fill_values(dtype, unpacked, packed);
  if (!dtype_copies(p, &shape, unpacked, size)) return false;
  if ((p->memory->capability->can & IST_CAN_ADOPT) == 0) {
    return dtype->bits != 6;  // nobody knows how this device keeps them
  }
  size_t offset = PAGE;  // no view is over these bytes yet, or has to be
  memcpy(p->block->bytes + offset, packed, sizeof packed);
  PJRT_Buffer *buffer = view_block(p, &shape, offset, dtype->name);
  if (buffer == NULL) return false;
  bool works = comes_out_as(p, buffer, unpacked, size, dtype->name);
  ist__pjrt_destroy(pjrt, buffer);
  return works;
}

static ist_code probe_memory(ist__pjrt_client *client, ist__pjrt_memory *memory,
                             ist_error *err) {
  probe p = {.client = client, .memory = memory};
  ist_capability *capability = memory->capability;
  capability->alignment = 1;
  capability->layouts = IST_LAYOUT_ROW_MAJOR;
  ist_code code = block_make(client, &p.block, err);
  if (code != IST_OK) return code;
  probe_copies(&p, false);
  if ((capability->can & IST_CAN_COPY_OUT) != 0) probe_views(&p);
  if ((capability->can & IST_CAN_ADOPT) != 0) probe_permuted(&p);
  if ((capability->can & IST_CAN_HOST_ADDRESS) != 0) {
    probe_copies(&p, true);
    capability->dl_device = (DLDevice){kDLCPU, 0};
  }
  if ((capability->can & IST_CAN_COPY_OUT) != 0) {
    // Nothing that isthmus runs writes to an input: see program.c.
    capability->can |= IST_CAN_HONOUR_READ_ONLY;
    for (int32_t n = 0; n < ist__dtype_count(); n++) {
      if (dtype_works(&p, ist__dtype_at(n))) {
        capability->dtypes |= UINT64_C(1) << n;
      }
    }
  }
  block_drop(p.block);
  if (!p.no_memory) return IST_OK;
  return ist__error_memory(err, "a probe of a plugin's memory", PAGE);
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
      } else {
        code = probe_memory(client, memory, err);
      }
    }
    size_t first = client->facts[d].default_memory;
    client->facts[d].dl_device = device->memories[first].capability->dl_device;
  }
  return code;
}
