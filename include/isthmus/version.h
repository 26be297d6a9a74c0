// SPDX-License-Identifier: Apache-2.0
// version.h: the one version number of isthmus; every other place reads it
// from here (CMake, the wheel, the command) or is tested to equal it.

#ifndef ISTHMUS_VERSION_H_
#define ISTHMUS_VERSION_H_

#define IST_VERSION_MAJOR 0
#define IST_VERSION_MINOR 1
#define IST_VERSION_PATCH 0
#define IST_VERSION_STRING "0.1.0"
// The three as one number that grows: 100 for 0.1.0.
#define IST_VERSION_NUMBER \
  (IST_VERSION_MAJOR * 10000 + IST_VERSION_MINOR * 100 + IST_VERSION_PATCH)

#endif  // ISTHMUS_VERSION_H_
