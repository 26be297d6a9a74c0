// SPDX-License-Identifier: Apache-2.0
// template.h: the template backend, opened by ist_backend_open("template").

#ifndef ISTHMUS_BACKEND_TEMPLATE_H_
#define ISTHMUS_BACKEND_TEMPLATE_H_

#include "backend/context.h"

// Options: addressable (bool, true), alignment (int64, a power of two, 64),
// devices (int64, 1 to 64, 1). Gives *out.
// Fails: ARGUMENT, OPTION, NO_ALLOCATION.
ist_code ist__template_open(ist_context *context,
                            const ist_backend_options *options,
                            ist_backend **out, ist_error *err);

#endif  // ISTHMUS_BACKEND_TEMPLATE_H_
