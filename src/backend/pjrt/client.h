// SPDX-License-Identifier: Apache-2.0
// client.h: a client of a plugin with its devices and memories, as isthmus
// keeps them while the backend is open. What a memory can do is filled in by
// probe.h.

#ifndef ISTHMUS_BACKEND_PJRT_CLIENT_H_
#define ISTHMUS_BACKEND_PJRT_CLIENT_H_

#include "backend/pjrt/capability.h"
#include "backend/pjrt/plugin.h"
#include "backend/pjrt/verdict.h"
#include "base/refcount.h"

typedef struct ist__pjrt_memory {
  PJRT_Device *device;
  PJRT_Memory *memory;  // NULL: the device's default, where none is told
  bool is_default;
  char kind[48];
  // ToHostBuffer of a permuted buffer answers in the order of the device.
  bool physical_order;
  // What is copied in lies in tiles, so that no view of it is the same.
  bool tiled;
  ist_capability *capability;  // in the device's infos
  // What trying it came to when the plugin was opened; memories that are alike
  // share it. The client's.
  ist__pjrt_findings *findings;
} ist__pjrt_memory;

typedef struct ist__pjrt_device {
  PJRT_Device *device;
  char name[96];
  char kind[48];
  size_t memory_count;
  ist__pjrt_memory *memories;
  ist_memory_info *infos;
} ist__pjrt_device;

// What a plugin may call back for a view that it never gave: the first member
// of an allocation.
typedef struct ist__pjrt_lost {
  struct ist__pjrt_lost *next;
} ist__pjrt_lost;

typedef struct ist__pjrt_client {
  ist__plugin plugin;
  PJRT_Client *client;
  // The host program's: it is not destroyed here. What tells the host when it
  // may be is called when the last holder is gone.
  bool is_borrowed;
  ist_release_fn returned;
  void *returned_self;
  ist_context *context;  // retained: views may outlive the backend
  const ist__env *env;
  ist__origin *origin;  // NULL: of a trusted plugin, or adopted
  // One for the open backend and one for each view that the plugin has not
  // given back yet, which may be after the client was destroyed.
  ist__refcount holders;
  // Threads that are giving a view of this client's back just now; they may be
  // the plugin's own, which Client_Destroy waits for.
  atomic_uint givers;
  pthread_mutex_t reference_locks[IST_PJRT_LOCKS];  // of plugin.pjrt
  _Atomic(ist__pjrt_lost *) lost;
  char version[160];
  size_t device_count;
  ist__pjrt_device *devices;
  ist_device_facts *facts;
  ist__pjrt_findings *findings;  // of all memories that were probed
} ist__pjrt_client;

// Loads a plugin (tried: as ist__plugin_load has it), makes a client and lists
// its devices and memories; nothing is probed yet. Retains context. Gives *out,
// with one holder. Fails: as ist__plugin_load and ist__plugin_client;
// NO_DEVICE, NO_ALLOCATION.
ist_code ist__pjrt_client_open(ist_context *context, const ist__env *env,
                               const ist_backend_options *options,
                               const ist__plugin_file *tried,
                               ist__pjrt_client **out, ist_error *err);

// The same on a live client of a host program, which stays the host's: to take
// it, set is_borrowed to false at the end. Fails: as ist__plugin_adopt;
// PLUGIN_SLOT, PLUGIN, NO_DEVICE, NO_ALLOCATION.
ist_code ist__pjrt_client_adopt(ist_context *context, const ist__env *env,
                                const PJRT_Api *table, PJRT_Client *live,
                                ist__pjrt_client **out, ist_error *err);

// Destroys the plugin's client, if it is ours, and drops the caller's holder.
// While a view is being given back, which may be the thread of the plugin's
// that calls this, a thread of its own does it a little later: a plugin that
// destroys a client on its own thread waits for itself.
void ist__pjrt_client_close(ist__pjrt_client *client);

// Takes an allocation, which is freed together with the struct.
void ist__pjrt_client_keep_lost(ist__pjrt_client *client, ist__pjrt_lost *lost);

// Drops one holder; the last frees the struct and releases the context.
void ist__pjrt_client_drop(ist__pjrt_client *client);

// The same within a callback of the plugin's: what a host program does when its
// client comes back to it is done on a thread of its own.
void ist__pjrt_client_drop_in_callback(ist__pjrt_client *client);

#endif  // ISTHMUS_BACKEND_PJRT_CLIENT_H_
