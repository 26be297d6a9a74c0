// SPDX-License-Identifier: Apache-2.0
// import_plain.h: the short way of an import that can only end in one view.
// What it makes is what the long way would make; what it does not know at once
// it leaves to that.

#ifndef ISTHMUS_BRIDGE_IMPORT_PLAIN_H_
#define ISTHMUS_BRIDGE_IMPORT_PLAIN_H_

#include "bridge/tensor.h"

// False: not plain; nothing was done. Else *out_code says how the import ended,
// as ist_tensor_import's without a receipt. Fails: what adopt fails with,
// NO_ALLOCATION.
bool ist__import_plain(const ist_device *device,
                       DLManagedTensorVersioned *source,
                       const ist_options *options, ist_tensor **out,
                       ist_code *out_code, ist_error *err);

#endif  // ISTHMUS_BRIDGE_IMPORT_PLAIN_H_
