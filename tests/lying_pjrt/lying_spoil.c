// SPDX-License-Identifier: Apache-2.0
// Honest answers, of the lying plugin itself or of a wrapped one, spoilt as the
// rules say. What has to be done and not only told is lied about where it is
// done.

#include <stdlib.h>

#include "lying.h"

#define HUGE_COUNT ((size_t)1 << 60)

static void spoil_layout(PJRT_Buffer_GetMemoryLayout_Args *a) {
  static const int64_t same[LYING_MAX_RANK];
  static const int64_t negative[2] = {-1, 0};
  static const int64_t reversed[4] = {0, 1, 2, 3};
  static const int64_t two_rows[2] = {1, 0};
  static const int64_t tile[2] = {8, 128};
  static const int64_t ones[2] = {1, 1};
  static const size_t tile_size[1] = {2};
  PJRT_Buffer_MemoryLayout_Tiled *tiled = &a->layout.tiled;
  bool by_one = LYING_IS(layout, "tiled_by_one");
  if (LYING_IS(layout, "unsorted")) tiled->minor_to_major = same;
  if (LYING_IS(layout, "negative")) tiled->minor_to_major = negative;
  if (LYING_IS(layout, "reversed")) tiled->minor_to_major = reversed;
  if (LYING_IS(permuted, "untold") && tiled->minor_to_major_size == 2)
    tiled->minor_to_major = two_rows;
  if (LYING_IS(layout, "null")) tiled->minor_to_major = NULL;
  if (LYING_IS(layout, "huge")) tiled->minor_to_major_size = HUGE_COUNT;
  if (LYING_IS(layout, "short") && tiled->minor_to_major_size > 0)
    tiled->minor_to_major_size--;
  if (LYING_IS(layout, "unknown")) a->layout.type = 77;
  if (LYING_IS(layout, "tiled_untold")) tiled->num_tiles = 1;
  if (LYING_IS(layout, "tiled") || by_one) {
    tiled->tile_dims = by_one ? ones : tile;
    tiled->tile_dim_sizes = tile_size;
    tiled->num_tiles = 1;
  }
  if (LYING_IS(layout, "strides")) {
    a->layout.strides.byte_strides = tile;
    a->layout.strides.num_byte_strides = 2;
    a->layout.type = PJRT_Buffer_MemoryLayout_Type_Strides;
  }
}

static void spoil_shape(PJRT_Buffer_Dimensions_Args *a) {
  static const int64_t negative[2] = {-1, 3};
  static const int64_t overflow[3] = {INT64_C(1) << 40, INT64_C(1) << 40, 2};
  static _Thread_local int64_t smaller[LYING_MAX_RANK];
  if (LYING_IS(shape, "smaller") && a->num_dims > 0) {
    memcpy(smaller, a->dims, a->num_dims * sizeof smaller[0]);
    if (smaller[0] > 1) smaller[0]--;
    a->dims = smaller;
  }
  if (LYING_IS(shape, "null")) a->dims = NULL;
  if (LYING_IS(shape, "huge")) a->num_dims = HUGE_COUNT;
  if (LYING_IS(shape, "negative") || LYING_IS(shape, "overflow")) {
    bool below = LYING_IS(shape, "negative");
    a->dims = below ? negative : overflow;
    a->num_dims = below ? 2 : 3;
  }
}

static void spoil_dynamic(PJRT_Buffer_DynamicDimensionIndices_Args *a) {
  static const size_t wrong[1] = {1000000};
  static const size_t first[1];
  if (lying.rules.dynamic[0] == '\0') return;
  a->num_dynamic_dims = LYING_IS(dynamic, "huge") ? HUGE_COUNT : 1;
  a->dynamic_dim_indices = first;
  if (LYING_IS(dynamic, "null")) a->dynamic_dim_indices = NULL;
  if (LYING_IS(dynamic, "wrong")) a->dynamic_dim_indices = wrong;
}

// Extents that are more than the padded ones.
static void spoil_unpadded(PJRT_Buffer_UnpaddedDimensions_Args *a) {
  static const int64_t grown[4] = {1000000, 1000000, 1000000, 1000000};
  if (LYING_IS(dynamic, "grown")) a->unpadded_dims = grown;
}

static void spoil_devices(PJRT_Client_AddressableDevices_Args *a) {
  static PJRT_Device *const holes[2];
  if (LYING_IS(device_list, "null")) a->addressable_devices = NULL;
  if (LYING_IS(device_list, "huge")) a->num_addressable_devices = HUGE_COUNT;
  if (LYING_IS(device_list, "holes")) a->addressable_devices = holes;
}

static void spoil_memories(PJRT_Device_AddressableMemories_Args *a) {
  static PJRT_Memory *const holes[2];
  static PJRT_Memory *same[2];
  if (LYING_IS(memory_list, "null")) a->memories = NULL;
  if (LYING_IS(memory_list, "huge")) a->num_memories = HUGE_COUNT;
  if (LYING_IS(memory_list, "holes")) a->memories = holes;
  if (LYING_IS(memory_list, "same")) {
    same[0] = same[1] = a->memories[0];
    a->memories = same;
  }
}

static void spoil_attributes(PJRT_Plugin_Attributes_Args *a) {
  static const PJRT_NamedValue garbage[2] = {
      {.type = 99, .value_size = HUGE_COUNT},
      {.type = PJRT_NamedValue_kInt64List,
       .name = "stablehlo_current_version",
       .name_size = 25,
       .value_size = HUGE_COUNT}};
  if (LYING_IS(attributes, "null")) a->attributes = NULL;
  if (LYING_IS(attributes, "huge")) a->num_attributes = HUGE_COUNT;
  if (LYING_IS(attributes, "empty")) a->num_attributes = 0;
  if (LYING_IS(attributes, "garbage")) {
    a->attributes = garbage;
    a->num_attributes = 2;
  }
}

static void spoil_stats(PJRT_Device_MemoryStats_Args *a) {
  if (LYING_IS(stats, "negative")) a->bytes_in_use = a->bytes_limit = -5;
  if (LYING_IS(stats, "unset")) a->bytes_limit_is_set = false;
}

static void spoil_host_size(PJRT_Buffer_ToHostBuffer_Args *a) {
  if (a->dst != NULL) return;
  if (LYING_IS(host_size, "less") && a->dst_size > 0) a->dst_size--;
  if (LYING_IS(host_size, "more")) a->dst_size++;
  if (LYING_IS(host_size, "huge")) a->dst_size = HUGE_COUNT;
}

static void spoil_numbers(int slot, void *args) {
  const lying_rules *rules = &lying.rules;
  if (slot == IST_SLOT_Buffer_IsOnCpu && rules->is_on_cpu >= 0)
    ((PJRT_Buffer_IsOnCpu_Args *)args)->is_on_cpu = rules->is_on_cpu != 0;
  if (slot == IST_SLOT_Buffer_ElementType && rules->type != 0)
    ((PJRT_Buffer_ElementType_Args *)args)->type = (int32_t)rules->type;
  if (slot == IST_SLOT_Executable_NumOutputs && rules->outputs >= 0)
    ((PJRT_Executable_NumOutputs_Args *)args)->num_outputs =
        (size_t)rules->outputs;
}

// Where nothing of ours made the answer.
static PJRT_Error *spoil_wrapped(int slot, void *args) {
  const lying_rules *rules = &lying.rules;
  if (slot == IST_SLOT_Client_PlatformName &&
      strcmp(rules->platform, "lying") != 0) {
    PJRT_Client_PlatformName_Args *a = args;
    a->platform_name = rules->platform;
    a->platform_name_size = strlen(rules->platform);
  }
  if (slot == IST_SLOT_Buffer_OpaqueDeviceMemoryDataPointer &&
      rules->opaque[0] != '\0') {
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args *a = args;
    bool none = LYING_IS(opaque, "null");
    a->device_memory_ptr = none ? NULL : (char *)a->device_memory_ptr + 64;
  }
  if (slot != IST_SLOT_Event_Await) return NULL;
  int number = atomic_fetch_add(&lying.total_events, 1) + 1;
  bool fails = rules->event_error != 0 || rules->fail_event == number;
  return fails ? lying_event_failure() : NULL;
}

PJRT_Error *lying_spoil(int function, void *args) {
  switch (function) {
    case IST_SLOT_Buffer_GetMemoryLayout:
      spoil_layout(args);
      break;
    case IST_SLOT_Buffer_Dimensions:
      spoil_shape(args);
      break;
    case IST_SLOT_Buffer_DynamicDimensionIndices:
      spoil_dynamic(args);
      break;
    case IST_SLOT_Buffer_UnpaddedDimensions:
      spoil_unpadded(args);
      break;
    case IST_SLOT_Client_AddressableDevices:
      spoil_devices(args);
      break;
    case IST_SLOT_Device_AddressableMemories:
      spoil_memories(args);
      break;
    case IST_SLOT_Plugin_Attributes:
      spoil_attributes(args);
      break;
    case IST_SLOT_Device_MemoryStats:
      spoil_stats(args);
      break;
    case IST_SLOT_Buffer_ToHostBuffer:
      spoil_host_size(args);
      break;
    default:
      spoil_numbers(function, args);
      break;
  }
  return lying.real != NULL ? spoil_wrapped(function, args) : NULL;
}
