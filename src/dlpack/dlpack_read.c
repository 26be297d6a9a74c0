// SPDX-License-Identifier: Apache-2.0
// dlpack_read.c: managed tensors from outside, looked at before anything of
// them is believed.

#include "dlpack/dlpack_read.h"

#include <inttypes.h>
#include <string.h>

#define COULD_NOT "a DLPack tensor could not be read: "

static ist_code check_arguments(ist__managed managed, ist_grant grant,
                                ist_error *err) {
  if ((managed.versioned == NULL) == (managed.legacy == NULL)) {
    return ist_error_set(
        err, IST_ERR_ARGUMENT, COULD_NOT "%s; needs one managed tensor",
        managed.legacy == NULL ? "it is NULL" : "both kinds are given");
  }
  if ((int)grant < IST_GRANT_FROM_SOURCE || (int)grant > IST_GRANT_READ_ONLY) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         COULD_NOT "grant is %d; needs an ist_grant",
                         (int)grant);
  }
  return IST_OK;
}

// What the source allows; nobody can make it more.
static ist_grant weaken(ist_grant grant, bool marked, bool versioned,
                        const ist__view *view) {
  bool overlaps = (view->layout & IST_LAYOUT_OVERLAP) != 0;
  if (grant == IST_GRANT_IMMUTABLE || grant == IST_GRANT_READ_ONLY) {
    return grant;
  }
  if (marked || overlaps) return IST_GRANT_READ_ONLY;
  if (grant == IST_GRANT_WRITABLE || versioned) return IST_GRANT_WRITABLE;
  return IST_GRANT_READ_ONLY;
}

// A tensor without version has no flag, and nothing in it tells whether its
// sub-byte elements take a byte each (dmlc/dlpack#158): one is the same both
// ways, and pairs are packed by what they are.
static ist_code check_packing(const ist__view *view, ist_error *err) {
  if (view->dtype.bits >= 8 || view->count <= 1) return IST_OK;
  char name[32];
  (void)ist_dtype_name(view->dtype, name, sizeof name);
  return ist_error_set(err, IST_ERR_PACKING,
                       COULD_NOT
                       "its elements of %s may be packed or take a byte each; "
                       "needs a versioned one, whose flag tells it, or the "
                       "caller's word",
                       name);
}

ist_code ist__dlpack_read(ist__managed managed, const ist__told *told,
                          ist__view *out, ist_grant *out_grant,
                          ist_error *err) {
  static const ist__told nothing = {IST_GRANT_FROM_SOURCE, IST_PACKING_AS_IS};
  if (told == NULL) told = &nothing;
  ist_grant grant = told->grant;
  *out_grant = IST_GRANT_FROM_SOURCE;
  ist_code code = check_arguments(managed, grant, err);
  if (code != IST_OK) goto done;
  const DLManagedTensorVersioned *versioned = managed.versioned;
  // Of another major version only version has the place that we know.
  if (versioned != NULL && versioned->version.major != DLPACK_MAJOR_VERSION) {
    code = ist_error_set(err, IST_ERR_DLPACK_VERSION,
                         COULD_NOT "its version is %" PRIu32 ".%" PRIu32
                                   "; needs version %d of the ABI",
                         versioned->version.major, versioned->version.minor,
                         DLPACK_MAJOR_VERSION);
    goto done;
  }
  uint64_t flags = versioned != NULL ? versioned->flags : 0;
  const DLTensor *tensor =
      versioned != NULL ? &versioned->dl_tensor : &managed.legacy->dl_tensor;
  bool padded = (flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0;
  if (versioned == NULL) padded = told->packing == IST_PACKING_PADDED;
  code = ist__view_check(tensor, padded, true, out, err);
  bool untold = versioned == NULL && told->packing == IST_PACKING_AS_IS &&
                tensor->dtype.lanes == 1;
  if (code == IST_OK && untold) code = check_packing(out, err);
  if (code != IST_OK) goto done;
  *out_grant = weaken(grant, (flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0,
                      versioned != NULL, out);
  return IST_OK;

done:
  memset(out, 0, sizeof *out);
  return code;
}

void ist__dlpack_consume(ist__managed managed) {
  if (managed.versioned != NULL) {
    if (managed.versioned->deleter != NULL) {
      managed.versioned->deleter(managed.versioned);
    }
  } else if (managed.legacy != NULL && managed.legacy->deleter != NULL) {
    managed.legacy->deleter(managed.legacy);
  }
}
