// SPDX-License-Identifier: Apache-2.0
// A PJRT plugin for tests, alone on its own memory, that lies by rules: what
// its parts share. Its device addresses are not host addresses unless a rule
// says so.
//
// Rules are words parted by spaces, from LYING_PJRT_RULES or, found by dlsym,
// lying_set_rules(), which also resets counters:
//   minor=N major=N struct_size=N   what the table says of itself
//   drop=SLOT                       a NULL in the table (may be repeated)
//   unimplemented=SLOT              the slot answers code 12 (repeatable)
//   fail=SLOT:N                     the N-th call of the slot answers code 13
//   fail_any=N                      the N-th call of any slot that can fail
//   devices=N                       default 2
//   addressable=1                   device addresses are host addresses
//   align=N                         a view must be aligned so (default 64)
//   view=copy|eager                 a "view" is really a copy; or the call
//                                   gives the memory back and then fails
//   view=null                       no buffer and no error; the memory is
//                                   given back at the next view or the end
//   executable=null                 GetExecutable gives none and no error
//   opaque=shifted                  the opaque pointer is 64 bytes off
//   memory=ignored                  buffers always lie in the default memory
//   platform=NAME is_on_cpu=1       lies about itself
//   delay_events=1                  work is done by lying_release_events()
//   event_error=1                   every event completes with an error
//   layout=tiled|short|unsorted     a wrong answer of GetMemoryLayout
//   layout=tiled_by_one|tiled_untold  one tile that cuts nothing, or one that
//                                   is counted and not there
//   hlo=garbage|none|tiled          a wrong answer of OptimizedProgram
//   hlo=tiled_by_one                one tile that cuts nothing
//   program=wrong                   x + x gives x
//   corrupt=1                       copies to the host lose a byte

#ifndef TESTS_LYING_PJRT_LYING_H
#define TESTS_LYING_PJRT_LYING_H

#include <pthread.h>
#include <stdatomic.h>

#include "backend/pjrt/abi.h"

#define LYING_MAX_DEVICES 8
#define LYING_MAX_RANK 16

struct PJRT_Error {
  int32_t code;
  char message[256];
};

// Work that an event stands for; done at once, or when events are released.
typedef struct lying_work {
  void (*run)(struct lying_work *self);
  void *dst;
  const void *src;
  size_t size;
  bool failed;  // then run only lets go of what it holds
} lying_work;

struct PJRT_Event {
  uint32_t magic;
  int holders;  // the plugin's and the caller's
  bool ready;
  bool failed;
  bool was_asked;
  lying_work work;
  PJRT_Buffer *buffer;  // kept until done, or NULL
  ist_pjrt_on_ready callback;
  void *callback_arg;
  PJRT_Event *next;  // of the pending ones
};

struct PJRT_DeviceDescription {
  int id;
};

struct PJRT_Memory {
  int id;
  const char *kind;
  PJRT_Device *device;
};

struct PJRT_Device {
  PJRT_Client *client;
  PJRT_DeviceDescription description;
  PJRT_Memory memory[2];
  PJRT_Memory *memories[2];
};

struct PJRT_Client {
  uint32_t magic;
  size_t device_count;
  PJRT_Device device[LYING_MAX_DEVICES];
  PJRT_Device *devices[LYING_MAX_DEVICES];
};

struct PJRT_Buffer {
  uint32_t magic;
  int holders;  // the caller's handle and pending work
  PJRT_Memory *memory;
  int32_t type;
  size_t rank;
  int64_t dims[LYING_MAX_RANK];
  int64_t minor_to_major[LYING_MAX_RANK];
  size_t size;  // in bytes
  void *data;   // where it really is
  bool foreign;
  bool deleted;
  bool error;
  ist_pjrt_on_delete on_delete;
  void *on_delete_arg;
  void *on_delete_ptr;
  int external;
  atomic_bool counting;
  PJRT_Event *ready;
};

typedef struct lying_rules {
  int minor, major;
  size_t struct_size;
  bool drop[IST_SLOT_COUNT];
  bool unimplemented[IST_SLOT_COUNT];
  int fail_at[IST_SLOT_COUNT];
  int fail_any;
  int devices;
  bool addressable, is_on_cpu, delay_events, event_error, corrupt;
  size_t align;
  bool view_copies, view_eager, opaque_shifted, memory_ignored;
  bool program_wrong, view_null, executable_null;
  char platform[64];
  char layout[16];
  char hlo[16];
} lying_rules;

typedef struct lying_state {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  lying_rules rules;
  bool have_rules;
  atomic_int calls[IST_SLOT_COUNT];
  atomic_int total_calls;
  atomic_int errors, events, buffers, clients, executables;
  atomic_int externals, violations;
  char violation[256];
  PJRT_Event *pending;
  int working;  // threads that complete a pending event
  // The callback of a view that was never given.
  _Atomic(ist_pjrt_on_delete) late;
  void *late_ptr, *late_arg;
} lying_state;

extern lying_state lying;

#define LYING_EXPORT __attribute__((visibility("default")))
#define LYING_MAGIC_EVENT 0xE7E27u
#define LYING_MAGIC_BUFFER 0xB0FFE2u
#define LYING_MAGIC_CLIENT 0xC11E27u
#define LYING_MAGIC_EXEC 0xE8ECu

// Notes that the caller did what kills real plugins.
void lying_violate(const char *what);
PJRT_Error *lying_error(int32_t code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Gives an event for `work`, done now or when events are released. `buffer`
// is kept alive until then; it may be NULL.
PJRT_Event *lying_event_new(lying_work work, PJRT_Buffer *buffer);
void lying_event_drop(PJRT_Event *event);
void lying_event_hold(PJRT_Event *event);
// Returns when no pending event is being completed, as real clients join their
// threads; noted when it is this thread that completes one.
void lying_wait_for_work(void);

// Calls back for a view that was never given, if there is one.
void lying_call_late(void);

// Gives a buffer without memory: set data, and foreign if it is not free()'s.
PJRT_Buffer *lying_buffer_new(PJRT_Memory *memory, int32_t type,
                              const int64_t *dims, size_t rank);
void lying_buffer_drop(PJRT_Buffer *buffer);
void *lying_device_memory(size_t size);
size_t lying_type_bits(int32_t type);  // 0 for what we don't know
bool lying_buffer_check(const PJRT_Buffer *buffer, const char *slot);

// Each is NULL, or the slot's own code; the table puts the rules before it.
extern const ist_pjrt_fn lying_impl[IST_SLOT_COUNT];

#define LYING_SLOT(name) PJRT_Error *lying_##name(void *args)
LYING_SLOT(Error_GetCode);
LYING_SLOT(Plugin_Initialize);
LYING_SLOT(Plugin_Attributes);
LYING_SLOT(Event_Destroy);
LYING_SLOT(Event_IsReady);
LYING_SLOT(Event_Error);
LYING_SLOT(Event_Await);
LYING_SLOT(Event_OnReady);
LYING_SLOT(Client_Create);
LYING_SLOT(Client_Destroy);
LYING_SLOT(Client_PlatformName);
LYING_SLOT(Client_PlatformVersion);
LYING_SLOT(Client_Devices);
LYING_SLOT(Client_AddressableDevices);
LYING_SLOT(Client_Compile);
LYING_SLOT(Client_BufferFromHostBuffer);
LYING_SLOT(Client_CreateViewOfDeviceBuffer);
LYING_SLOT(Client_CreateErrorBuffer);
LYING_SLOT(DeviceDescription_Id);
LYING_SLOT(DeviceDescription_Kind);
LYING_SLOT(DeviceDescription_ToString);
LYING_SLOT(Device_GetDescription);
LYING_SLOT(Device_IsAddressable);
LYING_SLOT(Device_LocalHardwareId);
LYING_SLOT(Device_AddressableMemories);
LYING_SLOT(Device_DefaultMemory);
LYING_SLOT(Memory_Id);
LYING_SLOT(Memory_Kind);
LYING_SLOT(Buffer_Destroy);
LYING_SLOT(Buffer_ElementType);
LYING_SLOT(Buffer_Dimensions);
LYING_SLOT(Buffer_UnpaddedDimensions);
LYING_SLOT(Buffer_DynamicDimensionIndices);
LYING_SLOT(Buffer_GetMemoryLayout);
LYING_SLOT(Buffer_OnDeviceSizeInBytes);
LYING_SLOT(Buffer_Device);
LYING_SLOT(Buffer_Memory);
LYING_SLOT(Buffer_Delete);
LYING_SLOT(Buffer_IsDeleted);
LYING_SLOT(Buffer_ToHostBuffer);
LYING_SLOT(Buffer_IsOnCpu);
LYING_SLOT(Buffer_ReadyEvent);
LYING_SLOT(Buffer_UnsafePointer);
LYING_SLOT(Buffer_IncreaseExternalReferenceCount);
LYING_SLOT(Buffer_DecreaseExternalReferenceCount);
LYING_SLOT(Buffer_OpaqueDeviceMemoryDataPointer);
LYING_SLOT(LoadedExecutable_Destroy);
LYING_SLOT(LoadedExecutable_GetExecutable);
LYING_SLOT(LoadedExecutable_AddressableDevices);
LYING_SLOT(LoadedExecutable_Execute);
LYING_SLOT(Executable_Destroy);
LYING_SLOT(Executable_Name);
LYING_SLOT(Executable_NumOutputs);
LYING_SLOT(Executable_NumReplicas);
LYING_SLOT(Executable_NumPartitions);
LYING_SLOT(Executable_OutputElementTypes);
LYING_SLOT(Executable_OutputDimensions);
LYING_SLOT(Executable_OptimizedProgram);

#endif
