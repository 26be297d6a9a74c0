// SPDX-License-Identifier: Apache-2.0
// hlo_reader.h: reads the argument and result shapes from the bytes that
// PJRT_Executable_OptimizedProgram gives in the format hlo_with_config. It
// reads protobuf's wire format and treats the bytes as hostile. Not a reader
// of anything else in them.
//
// Messages and fields used (XLA's hlo.proto, xla_data.proto):
//   HloModuleProtoWithConfig  1 hlo_module
//   HloModuleProto            4 host_program_shape
//   ProgramShapeProto         1 parameters (repeated), 2 result
//   ShapeProto                2 element_type, 3 dimensions (repeated),
//                             4 tuple_shapes (repeated), 5 layout,
//                             6 is_dynamic_dimension (repeated)
//   LayoutProto               1 minor_to_major (repeated), 6 tiles (repeated)
//   TileProto                 1 dimensions (repeated)

#ifndef ISTHMUS_BACKEND_PJRT_HLO_READER_H_
#define ISTHMUS_BACKEND_PJRT_HLO_READER_H_

#include <isthmus/isthmus.h>

// XLA's number of a tuple among its primitive types.
#define IST_HLO_TUPLE 13

enum {
  IST_HLO_TILES = 4,       // XLA's backends use up to three tiles of a layout
  IST_HLO_TILE_DIMS = 24,  // in all of them together
};

typedef struct ist__hlo_shape {
  int32_t type;  // XLA's PrimitiveType, not PJRT's
  int32_t ndim;
  bool dynamic;  // a dimension is only known at run time
  bool has_order;
  size_t tile_count;
  size_t tile_ranks[IST_HLO_TILES];
  int64_t tile_dims[IST_HLO_TILE_DIMS];  // of all tiles, one after another
  int64_t dims[IST_MAX_NDIM];
  int64_t minor_to_major[IST_MAX_NDIM];  // when has_order
} ist__hlo_shape;

// Called for each parameter in order, then for each result: the members of a
// tuple, or the one that there is. Returning false ends the reading.
typedef bool (*ist__hlo_visit)(void *self, bool is_result,
                               const ist__hlo_shape *shape);

// False when the bytes are not such a message, or visit returned false.
// Borrows bytes. Allocates nothing and reads no byte outside.
bool ist__hlo_read(const void *bytes, size_t size, ist__hlo_visit visit,
                   void *self);

// The PJRT_Buffer_Type of an XLA primitive type, or 0.
int32_t ist__hlo_pjrt_type(int32_t xla_type);

#endif  // ISTHMUS_BACKEND_PJRT_HLO_READER_H_
