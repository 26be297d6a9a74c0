// SPDX-License-Identifier: Apache-2.0
// The PJRT C ABI, declared by us from its facts: the function table, every
// slot's argument struct, the extensions and enums that isthmus uses. Not for
// calling a slot: that is call.h.
//
// The names are those of the ABI. tests/pjrt compares every offset and size
// with a table of facts and with the layouts of an independent binding.

#ifndef ISTHMUS_BACKEND_PJRT_ABI_H_
#define ISTHMUS_BACKEND_PJRT_ABI_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Opaque to us; a plugin owns what is behind them.
typedef struct PJRT_Error PJRT_Error;
typedef struct PJRT_Event PJRT_Event;
typedef struct PJRT_Client PJRT_Client;
typedef struct PJRT_Device PJRT_Device;
typedef struct PJRT_DeviceDescription PJRT_DeviceDescription;
typedef struct PJRT_Memory PJRT_Memory;
typedef struct PJRT_Buffer PJRT_Buffer;
typedef struct PJRT_Executable PJRT_Executable;
typedef struct PJRT_LoadedExecutable PJRT_LoadedExecutable;
typedef struct PJRT_AsyncHostToDeviceTransferManager
    PJRT_AsyncHostToDeviceTransferManager;
typedef struct PJRT_AsyncTrackingEvent PJRT_AsyncTrackingEvent;
typedef struct PJRT_Chunk PJRT_Chunk;
typedef struct PJRT_CopyToDeviceStream PJRT_CopyToDeviceStream;
typedef struct PJRT_DeviceAssignmentSerialized PJRT_DeviceAssignmentSerialized;
typedef struct PJRT_Device_Attributes PJRT_Device_Attributes;
typedef struct PJRT_ExecuteContext PJRT_ExecuteContext;
typedef struct PJRT_FulfillAliasBufferCallback PJRT_FulfillAliasBufferCallback;
typedef struct PJRT_Layouts_MemoryLayout PJRT_Layouts_MemoryLayout;
typedef struct PJRT_Layouts_SerializedLayout PJRT_Layouts_SerializedLayout;
typedef struct PJRT_LoadOptions PJRT_LoadOptions;
typedef struct PJRT_LogicalDeviceIds PJRT_LogicalDeviceIds;
typedef struct PJRT_ProcessInfo PJRT_ProcessInfo;
typedef struct PJRT_RawBuffer PJRT_RawBuffer;
typedef struct PJRT_SerializedCompileOptions PJRT_SerializedCompileOptions;
typedef struct PJRT_SerializedExecutable PJRT_SerializedExecutable;
typedef struct PJRT_SerializedTopology PJRT_SerializedTopology;
typedef struct PJRT_ShapeSpec PJRT_ShapeSpec;
typedef struct PJRT_TopologyDescription PJRT_TopologyDescription;

typedef struct PJRT_Extension_Base PJRT_Extension_Base;
typedef struct PJRT_NamedValue PJRT_NamedValue;
typedef struct PJRT_Buffer_MemoryLayout PJRT_Buffer_MemoryLayout;
typedef struct PJRT_Program PJRT_Program;
typedef struct PJRT_ExecuteOptions PJRT_ExecuteOptions;

// Called once with an event's error, which the callee must destroy, or NULL.
typedef void (*ist_pjrt_on_ready)(PJRT_Error *error, void *user_arg);
// Called once when a plugin is done with foreign memory, on any thread.
typedef void (*ist_pjrt_on_delete)(void *device_buffer_ptr, void *user_arg);
// Every slot takes one pointer to its argument struct. Error_Destroy and
// Error_Message return nothing; all others an error or NULL.
// What frees bytes that a plugin gave is called like those two.
typedef PJRT_Error *(*ist_pjrt_fn)(void *args);
typedef void (*ist_pjrt_void_fn)(void *args);
// A function pointer that isthmus always leaves NULL.
typedef void (*ist_pjrt_unused_fn)(void);

#define S(name) typedef struct name {
#define H             \
  size_t struct_size; \
  PJRT_Extension_Base *extension_start;
#define F(type, field) type field;
#define U union {
#define V \
  }       \
  ;
#define E(name, last) \
  }                   \
  name;
#include "structs.def"
#undef S
#undef H
#undef F
#undef U
#undef V
#undef E

// What a struct's struct_size field must hold: the end of its last field,
// which for 17 structs is not its sizeof.
#define IST__MEMBER_SIZE(type, field) sizeof(((type *)0)->field)
enum ist_pjrt_struct_size {
#define S(name)
#define H
#define F(type, field)
#define U
#define V
#define E(name, last) \
  name##_SIZE = offsetof(name, last) + IST__MEMBER_SIZE(name, last),
#include "structs.def"
#undef S
#undef H
#undef F
#undef U
#undef V
#undef E
};

// An argument block of type `name` with its struct_size set, the rest zero.
#define IST_PJRT_ARGS(name, var) name var = {.struct_size = (size_t)name##_SIZE}

// The index of each slot: IST_SLOT_Buffer_Delete and so on.
enum ist_pjrt_slot {
#define SLOT(name, minor) IST_SLOT_##name,
#include "slots.def"
#undef SLOT
  IST_SLOT_COUNT
};

// The table that GetPjrtApi gives. It may be shorter or longer than this:
// slot i exists only if it lies inside struct_size and is not NULL.
typedef struct PJRT_Api {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  PJRT_Api_Version pjrt_api_version;
  ist_pjrt_fn slot[IST_SLOT_COUNT];
} PJRT_Api;

enum PJRT_Error_Code {
  PJRT_Error_Code_OK = 0,
  PJRT_Error_Code_CANCELLED = 1,
  PJRT_Error_Code_UNKNOWN = 2,
  PJRT_Error_Code_INVALID_ARGUMENT = 3,
  PJRT_Error_Code_DEADLINE_EXCEEDED = 4,
  PJRT_Error_Code_NOT_FOUND = 5,
  PJRT_Error_Code_ALREADY_EXISTS = 6,
  PJRT_Error_Code_PERMISSION_DENIED = 7,
  PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,
  PJRT_Error_Code_FAILED_PRECONDITION = 9,
  PJRT_Error_Code_ABORTED = 10,
  PJRT_Error_Code_OUT_OF_RANGE = 11,
  PJRT_Error_Code_UNIMPLEMENTED = 12,
  PJRT_Error_Code_INTERNAL = 13,
  PJRT_Error_Code_UNAVAILABLE = 14,
  PJRT_Error_Code_DATA_LOSS = 15,
  PJRT_Error_Code_UNAUTHENTICATED = 16
};

enum PJRT_Extension_Type {
  PJRT_Extension_Type_Stream = 3,
  PJRT_Extension_Type_Layouts = 4,
  PJRT_Extension_Type_RawBuffer = 8
};

enum PJRT_NamedValue_Type {
  PJRT_NamedValue_kString = 0,
  PJRT_NamedValue_kInt64 = 1,
  PJRT_NamedValue_kInt64List = 2,
  PJRT_NamedValue_kFloat = 3,
  PJRT_NamedValue_kBool = 4
};

enum PJRT_HostBufferSemantics {
  PJRT_HostBufferSemantics_kImmutableOnlyDuringCall = 0,
  PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes = 1,
  PJRT_HostBufferSemantics_kImmutableZeroCopy = 2,
  PJRT_HostBufferSemantics_kMutableZeroCopy = 3
};

enum PJRT_Buffer_MemoryLayout_Type {
  PJRT_Buffer_MemoryLayout_Type_Tiled = 0,
  PJRT_Buffer_MemoryLayout_Type_Strides = 1
};

#endif
