// SPDX-License-Identifier: Apache-2.0
// compile_options.c: writes a few messages of protobuf, from the inside out.
//
// Messages and fields (XLA's compile_options.proto, xla_data.proto):
//   CompileOptionsProto         3 executable_build_options,
//                               4 compile_portable_executable
//   ExecutableBuildOptionsProto 4 num_replicas, 5 num_partitions,
//                               6 use_spmd_partitioning, 9 device_assignment
//   DeviceAssignmentProto       1 replica_count, 2 computation_count,
//                               3 computation_devices (one a partition)
//   ComputationDevice           1 replica_device_ids (one a replica)
// The device_ordinal of the build options is read by none of the plugins tried.

#include "backend/pjrt/compile_options.h"

#include <string.h>

#include "base/alloc.h"

// Most bytes of a varint, and of a field's head: its tag and a size.
#define VARINT 10
#define HEAD (1 + VARINT)

typedef struct message {
  char *bytes;
  size_t size;
} message;

static void put_varint(message *m, uint64_t value) {
  do {
    m->bytes[m->size++] = (char)((value & 127) | (value > 127 ? 128 : 0));
    value >>= 7;
  } while (value != 0);
}

static void put_number(message *m, unsigned field, uint64_t value) {
  put_varint(m, field << 3);
  put_varint(m, value);
}

static void put_message(message *m, unsigned field, const message *inner) {
  put_varint(m, field << 3 | 2);
  put_varint(m, inner->size);
  memcpy(m->bytes + m->size, inner->bytes, inner->size);
  m->size += inner->size;
}

// The assignment of devices, with two messages of room for what is inside.
static void put_assignment(message *m, const ist__compile_options *options,
                           message *ids, message *device) {
  size_t partitions = (size_t)options->partitions;
  put_number(m, 1, (uint64_t)options->replicas);
  put_number(m, 2, (uint64_t)partitions);
  for (size_t p = 0; p < partitions; p++) {
    ids->size = device->size = 0;
    for (size_t r = 0; r < (size_t)options->replicas; r++) {
      put_varint(ids, (uint64_t)options->ids[r * partitions + p]);
    }
    put_message(device, 1, ids);
    put_message(m, 3, device);
  }
}

char *ist__compile_options_write(const ist__env *env,
                                 const ist__compile_options *options,
                                 size_t *out_size) {
  size_t replicas = (size_t)options->replicas;
  size_t partitions = (size_t)options->partitions;
  size_t device = replicas * VARINT + HEAD;
  size_t assignment = 2 * HEAD + partitions * (device + HEAD);
  size_t build = 4 * HEAD + assignment;
  size_t all = build + 2 * HEAD;
  char *room =
      ist__alloc(env, replicas * VARINT + device + assignment + build + all, 1);
  if (room == NULL) return NULL;
  // The result comes first, so that it can be freed.
  message out = {room, 0};
  message inner = {room + all, 0};
  message devices = {inner.bytes + build, 0};
  message one = {devices.bytes + assignment, 0};
  message ids = {one.bytes + device, 0};
  put_number(&inner, 4, replicas);
  put_number(&inner, 5, partitions);
  if (partitions > 1) put_number(&inner, 6, 1);
  if (!options->portable) {
    put_assignment(&devices, options, &ids, &one);
    put_message(&inner, 9, &devices);
  }
  put_message(&out, 3, &inner);
  if (options->portable) put_number(&out, 4, 1);
  *out_size = out.size;
  return room;
}
