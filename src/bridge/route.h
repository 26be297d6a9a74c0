// SPDX-License-Identifier: Apache-2.0
// route.h: the numbers of reason.def.

#ifndef ISTHMUS_BRIDGE_ROUTE_H_
#define ISTHMUS_BRIDGE_ROUTE_H_

#include <isthmus/isthmus.h>

enum {
#define IST_REASON(name, number, id, text) IST__REASON_##name = number,
#include "bridge/reason.def"
#undef IST_REASON
};

#endif  // ISTHMUS_BRIDGE_ROUTE_H_
