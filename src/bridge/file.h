// SPDX-License-Identifier: Apache-2.0
// file.h: what the folders to the right know of an open file.

#ifndef ISTHMUS_BRIDGE_FILE_H_
#define ISTHMUS_BRIDGE_FILE_H_

#include <isthmus/isthmus.h>

// Is it .npy, whose one tensor has no name?
bool ist__file_is_npy(const ist_file *file);

#endif  // ISTHMUS_BRIDGE_FILE_H_
