// SPDX-License-Identifier: Apache-2.0
// pjrt_report.h: makes a report in this process, which the plugin may end.
// <isthmus/pjrt.h> has what programs call, which tries it elsewhere first.

#ifndef ISTHMUS_BACKEND_PJRT_PJRT_REPORT_H_
#define ISTHMUS_BACKEND_PJRT_PJRT_REPORT_H_

#include <isthmus/pjrt.h>

#include "backend/pjrt/capability.h"

// The device is one of a PJRT backend. losses are not tried; NULL: none.
// Gives *out. Fails: NO_ALLOCATION.
ist_code ist__pjrt_report_make(const ist_device *device,
                               const ist__pjrt_losses *losses,
                               ist_pjrt_report **out, ist_error *err);

#endif  // ISTHMUS_BACKEND_PJRT_PJRT_REPORT_H_
