// SPDX-License-Identifier: Apache-2.0
// client.c: lists a client's devices and memories.

#define _XOPEN_SOURCE 700
#include "backend/pjrt/client.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

// More than any machine has; a larger answer is garbage.
#define MAX_DEVICES 65536
#define MAX_MEMORIES 64

static void read_device_texts(const ist__pjrt *pjrt, ist__pjrt_device *device,
                              ist_device_facts *facts) {
  IST_PJRT_ARGS(PJRT_Device_GetDescription_Args, get);
  get.device = device->device;
  if (ist__pjrt_call(pjrt, IST_SLOT_Device_GetDescription, &get, NULL) !=
          IST_OK ||
      get.device_description == NULL) {
    return;
  }
  IST_PJRT_ARGS(PJRT_DeviceDescription_Id_Args, id);
  id.device_description = get.device_description;
  if (ist__pjrt_call(pjrt, IST_SLOT_DeviceDescription_Id, &id, NULL) ==
      IST_OK) {
    facts->id = id.id;
  }
  IST_PJRT_ARGS(PJRT_DeviceDescription_Kind_Args, kind);
  kind.device_description = get.device_description;
  if (ist__pjrt_call(pjrt, IST_SLOT_DeviceDescription_Kind, &kind, NULL) ==
      IST_OK) {
    ist__pjrt_string(kind.device_kind, kind.device_kind_size, device->kind,
                     sizeof device->kind);
  }
  IST_PJRT_ARGS(PJRT_DeviceDescription_ToString_Args, text);
  text.device_description = get.device_description;
  if (ist__pjrt_call(pjrt, IST_SLOT_DeviceDescription_ToString, &text, NULL) ==
      IST_OK) {
    ist__pjrt_string(text.to_string, text.to_string_size, device->name,
                     sizeof device->name);
  }
}

static PJRT_Memory *default_memory(const ist__pjrt *pjrt, PJRT_Device *device) {
  IST_PJRT_ARGS(PJRT_Device_DefaultMemory_Args, get);
  get.device = device;
  if (ist__pjrt_call(pjrt, IST_SLOT_Device_DefaultMemory, &get, NULL) !=
      IST_OK) {
    return NULL;
  }
  return get.memory;
}

static void read_kind(const ist__pjrt *pjrt, ist__pjrt_memory *memory,
                      size_t index) {
  IST_PJRT_ARGS(PJRT_Memory_Kind_Args, get);
  get.memory = memory->memory;
  if (memory->memory != NULL &&
      ist__pjrt_call(pjrt, IST_SLOT_Memory_Kind, &get, NULL) == IST_OK) {
    ist__pjrt_string(get.kind, get.kind_size, memory->kind,
                     sizeof memory->kind);
  }
  if (memory->kind[0] == '\0') {
    snprintf(memory->kind, sizeof memory->kind, "memory%zu", index);
  }
}

// A plugin without a list of memories has one: where buffers go by default.
static ist_code list_memories(const ist__pjrt_client *client,
                              ist__pjrt_device *device, ist_device_facts *facts,
                              ist_error *err) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  IST_PJRT_ARGS(PJRT_Device_AddressableMemories_Args, get);
  get.device = device->device;
  size_t count = 0;
  if (ist__pjrt_call(pjrt, IST_SLOT_Device_AddressableMemories, &get, NULL) ==
          IST_OK &&
      get.memories != NULL && get.num_memories <= MAX_MEMORIES) {
    count = get.num_memories;
  }
  PJRT_Memory *first = default_memory(pjrt, device->device);
  size_t rows = count > 0 ? count : 1;
  device->memories =
      ist__alloc_zero(client->env, rows * sizeof *device->memories);
  device->infos = ist__alloc_zero(client->env, rows * sizeof *device->infos);
  if (device->memories == NULL || device->infos == NULL) {
    return ist__error_memory(err, "a list of memories",
                             rows * sizeof *device->memories);
  }
  device->memory_count = rows;
  for (size_t i = 0; i < rows; i++) {
    ist__pjrt_memory *memory = &device->memories[i];
    memory->device = device->device;
    memory->memory = count > 0 ? get.memories[i] : first;
    memory->is_default = count == 0 || memory->memory == first;
    if (memory->is_default) facts->default_memory = i;
    read_kind(pjrt, memory, i);
    device->infos[i].struct_size = sizeof device->infos[i];
    device->infos[i].kind = memory->kind;
    device->infos[i].capability.struct_size =
        sizeof device->infos[i].capability;
    memory->capability = &device->infos[i].capability;
  }
  facts->memories = device->infos;
  facts->memory_count = rows;
  return IST_OK;
}

static ist_code list_devices(ist__pjrt_client *client, ist_error *err) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  IST_PJRT_ARGS(PJRT_Client_AddressableDevices_Args, get);
  get.client = client->client;
  ist_code code =
      ist__pjrt_call(pjrt, IST_SLOT_Client_AddressableDevices, &get, err);
  if (code != IST_OK) return code;
  size_t count = get.num_addressable_devices;
  if (get.addressable_devices == NULL || count == 0 || count > MAX_DEVICES) {
    return ist_error_set(err, IST_ERR_NO_DEVICE,
                         "%s: the backend cannot be opened: its client has "
                         "%zu devices here; needs at least one",
                         pjrt->name,
                         get.addressable_devices == NULL ? 0 : count);
  }
  client->devices =
      ist__alloc_zero(client->env, count * sizeof *client->devices);
  client->facts = ist__alloc_zero(client->env, count * sizeof *client->facts);
  if (client->devices == NULL || client->facts == NULL) {
    return ist__error_memory(err, "a list of devices",
                             count * sizeof *client->devices);
  }
  client->device_count = count;
  for (size_t i = 0; i < count && code == IST_OK; i++) {
    ist__pjrt_device *device = &client->devices[i];
    ist_device_facts *facts = &client->facts[i];
    facts->struct_size = sizeof *facts;
    device->device = get.addressable_devices[i];
    if (device->device == NULL) {
      return ist_error_set(err, IST_ERR_PLUGIN,
                           "%s: the backend cannot be opened: the plugin gave "
                           "no device %zu; needs a working plugin",
                           pjrt->name, i);
    }
    facts->name = device->name;
    facts->kind = device->kind;
    facts->id = (int64_t)i;
    snprintf(device->name, sizeof device->name, "device %zu", i);
    snprintf(device->kind, sizeof device->kind, "unknown");
    read_device_texts(pjrt, device, facts);
    code = list_memories(client, device, facts, err);
  }
  return code;
}

static void read_version(ist__pjrt_client *client) {
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  char platform[96] = "";
  IST_PJRT_ARGS(PJRT_Client_PlatformVersion_Args, get);
  get.client = client->client;
  if (ist__pjrt_call(pjrt, IST_SLOT_Client_PlatformVersion, &get, NULL) ==
      IST_OK) {
    ist__pjrt_string(get.platform_version, get.platform_version_size, platform,
                     sizeof platform);
  }
  // Some plugins tell their version in several lines.
  platform[strcspn(platform, "\r\n")] = '\0';
  snprintf(client->version, sizeof client->version, "PJRT API 0.%d%s%s%s%s",
           pjrt->minor, platform[0] != '\0' ? ", " : "", platform,
           client->plugin.stablehlo[0] != '\0' ? ", StableHLO " : "",
           client->plugin.stablehlo);
}

static ist__pjrt_client *make_client(ist_context *context, const ist__env *env,
                                     ist_error *err) {
  ist__pjrt_client *client = ist__alloc_zero(env, sizeof *client);
  if (client == NULL) {
    ist__error_memory(err, "a PJRT client", sizeof *client);
    return NULL;
  }
  client->env = env;
  client->context = context;
  ist_context_retain(context);
  ist__refcount_init(&client->holders);
  for (int i = 0; i < IST_PJRT_LOCKS; i++) {
    pthread_mutex_init(&client->reference_locks[i], NULL);
  }
  return client;
}

// Reads what a client has; gives it, or closes it where code or that fails.
static ist_code give_client(ist__pjrt_client *client, ist_code code,
                            ist__pjrt_client **out, ist_error *err) {
  client->plugin.pjrt.reference_locks = client->reference_locks;
  if (code == IST_OK) code = list_devices(client, err);
  if (code == IST_OK) {
    read_version(client);
    *out = client;
  } else {
    ist__pjrt_client_close(client);
  }
  return code;
}

ist_code ist__pjrt_client_open(ist_context *context, const ist__env *env,
                               const ist_backend_options *options,
                               const ist__plugin_file *tried,
                               ist__pjrt_client **out, ist_error *err) {
  *out = NULL;
  ist__pjrt_client *client = make_client(context, env, err);
  if (client == NULL) return IST_ERR_NO_ALLOCATION;
  const char *path = options != NULL ? options->path : NULL;
  ist_code code = ist__plugin_load(env, path, tried, &client->plugin, err);
  if (code == IST_OK) {
    code = ist__plugin_client(&client->plugin, options, &client->client, err);
  }
  return give_client(client, code, out, err);
}

ist_code ist__pjrt_client_adopt(ist_context *context, const ist__env *env,
                                const PJRT_Api *table, PJRT_Client *live,
                                ist__pjrt_client **out, ist_error *err) {
  *out = NULL;
  ist__pjrt_client *client = make_client(context, env, err);
  if (client == NULL) return IST_ERR_NO_ALLOCATION;
  client->is_borrowed = true;
  ist_code code = ist__plugin_adopt(env, table, &client->plugin, err);
  if (code == IST_OK) code = ist__plugin_name(&client->plugin, live, err);
  client->client = live;
  return give_client(client, code, out, err);
}

static void *destroy_and_drop(void *arg) {
  ist__pjrt_client *client = arg;
  if (client->client != NULL && !client->is_borrowed) {
    IST_PJRT_ARGS(PJRT_Client_Destroy_Args, destroy);
    destroy.client = client->client;
    ist__pjrt_end(&client->plugin.pjrt, IST_SLOT_Client_Destroy, &destroy);
  }
  client->client = NULL;
  ist__pjrt_client_drop(client);
  return NULL;
}

// False when the system gives no thread. It takes no signal: those are for the
// threads of the program.
static bool do_elsewhere(void *(*work)(void *arg), ist__pjrt_client *client) {
  sigset_t all, before;
  pthread_t thread;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
  bool runs = pthread_create(&thread, NULL, work, client) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (runs) pthread_detach(thread);
  return runs;
}

void ist__pjrt_client_close(ist__pjrt_client *client) {
  // Counted for each client, and not for each thread, this also keeps two
  // clients from closing each other, each on a thread of the other.
  if (atomic_load(&client->givers) == 0) {
    destroy_and_drop(client);
  } else if (!do_elsewhere(destroy_and_drop, client)) {
    ist__log(client->env, IST_LOG_WARNING,
             "%s: the client is lost: no thread could be made to close it",
             client->plugin.pjrt.name);
    ist__pjrt_client_drop(client);
  }
}

void ist__pjrt_client_keep_lost(ist__pjrt_client *client,
                                ist__pjrt_lost *lost) {
  lost->next = atomic_load(&client->lost);
  while (!atomic_compare_exchange_weak(&client->lost, &lost->next, lost)) {
    continue;
  }
}

// After the last holder.
static void *free_and_return(void *arg) {
  ist__pjrt_client *client = arg;
  const ist__env *env = client->env;
  ist_context *context = client->context;
  ist_release_fn returned = client->returned;
  void *self = client->returned_self;
  for (size_t i = 0; i < client->device_count; i++) {
    ist__free(env, client->devices[i].memories);
    ist__free(env, client->devices[i].infos);
  }
  while (client->findings != NULL) {
    ist__pjrt_findings *next = client->findings->next;
    ist__free(env, client->findings);
    client->findings = next;
  }
  ist__pjrt_lost *lost = atomic_load(&client->lost);
  while (lost != NULL) {
    ist__pjrt_lost *next = lost->next;
    ist__free(env, lost);
    lost = next;
  }
  ist__origin_free(env, client->origin);
  ist__free(env, client->devices);
  ist__free(env, client->facts);
  ist__plugin_unload(&client->plugin);
  for (int i = 0; i < IST_PJRT_LOCKS; i++) {
    pthread_mutex_destroy(&client->reference_locks[i]);
  }
  ist__free(env, client);
  ist_context_release(context);
  if (returned != NULL) returned(self);
  return NULL;
}

void ist__pjrt_client_drop(ist__pjrt_client *client) {
  if (ist__refcount_drop(&client->holders)) free_and_return(client);
}

void ist__pjrt_client_drop_in_callback(ist__pjrt_client *client) {
  if (!ist__refcount_drop(&client->holders)) return;
  if (client->returned != NULL && do_elsewhere(free_and_return, client)) return;
  if (client->returned != NULL) {
    ist__log(client->env, IST_LOG_WARNING,
             "%s: the client is lost: no thread could be made to return it",
             client->plugin.pjrt.name);
    client->returned = NULL;
  }
  free_and_return(client);
}
