// SPDX-License-Identifier: Apache-2.0
// adopt.c: live clients and buffers of a host program as backends and tensors,
// and ours as the host's.

#include <isthmus/pjrt.h>

#include "backend/pjrt/adopt_buffer.h"
#include "backend/pjrt/pjrt_backend.h"
#include "base/structs.h"
#include "bridge/tensor.h"

// ---- clients

static bool ownership_ok(ist_pjrt_ownership ownership) {
  return (unsigned)ownership <= IST_PJRT_TAKE;
}

ist_code ist_pjrt_client_adopt(ist_context *context, const struct PJRT_Api *api,
                               struct PJRT_Client *client,
                               const ist_pjrt_client_options *options,
                               ist_backend **out, ist_error *err) {
  if (out != NULL) *out = NULL;
  if (context == NULL || api == NULL || client == NULL || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a client could not be adopted: context, api, client "
                         "or out is NULL; needs all four");
  }
  ist_pjrt_client_options known;
  ist_code code = ist__options_read(&known, sizeof known, options,
                                    "ist_pjrt_client_options", err);
  if (code != IST_OK) return code;
  if (!ownership_ok(known.ownership) ||
      (known.ownership == IST_PJRT_TAKE && known.release != NULL)) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a client could not be adopted: its ownership is %d%s"
                         "; needs a value of ist_pjrt_ownership, and a release "
                         "only for what is borrowed",
                         (int)known.ownership,
                         known.release != NULL ? ", with a release" : "");
  }
  return ist__pjrt_open_live(context, api, client, &known, out, err);
}

// ---- buffers

static ist_code read_options(const ist_pjrt_buffer_options *options,
                             ist_pjrt_buffer_options *out, ist_error *err) {
  ist_code code = ist__options_read(out, sizeof *out, options,
                                    "ist_pjrt_buffer_options", err);
  if (code != IST_OK) return code;
  bool takes = out->ownership == IST_PJRT_TAKE;
  if (!ownership_ok(out->ownership) || (takes && out->release != NULL) ||
      (unsigned)out->grant > IST_GRANT_READ_ONLY) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a buffer could not be adopted: its ownership is %d, "
                         "its grant %d%s; needs values of their enums, and a "
                         "release only for what is borrowed",
                         (int)out->ownership, (int)out->grant,
                         out->release != NULL ? ", with a release" : "");
  }
  if (out->grant == IST_GRANT_FROM_SOURCE) {
    out->grant = takes ? IST_GRANT_WRITABLE : IST_GRANT_IMMUTABLE;
  }
  return IST_OK;
}

// A tensor of a described buffer, which stays the caller's on failure.
static ist_code wrap(const ist_device *device, size_t memory, ist_grant grant,
                     ist__pjrt_tensor *buffer, ist_tensor **out,
                     ist_error *err) {
  ist_spec spec;
  ist_code code = ist__backend_inspect(device->backend, buffer, &spec, err);
  if (code != IST_OK) return code;
  // Only the geometry is checked: its memory may have no DLPack code at all.
  DLTensor tensor = {.device = {kDLCPU, 0},
                     .ndim = spec.ndim,
                     .dtype = spec.dtype,
                     .shape = spec.shape,
                     .strides = spec.strides};
  ist__view view;
  code = ist__view_check(&tensor, false, false, &view, err);
  if (code != IST_OK) return code;
  ist__tensor_facts facts = {
      .device = device, .memory = memory, .view = &view, .grant = grant};
  *out = ist__tensor_make(&facts, err);
  if (*out == NULL) return IST_ERR_NO_ALLOCATION;
  (*out)->buffer = buffer;
  return IST_OK;
}

static ist_code adopt(ist_backend *backend, PJRT_Buffer *buffer,
                      const ist_pjrt_buffer_options *options, ist_tensor **out,
                      ist_error *err) {
  ist__pjrt_client *client = ist__pjrt_client_of(backend);
  ist__pjrt_tensor *tensor = NULL;
  size_t device, memory;
  ist_code code =
      ist__pjrt_buffer_adopt(client, buffer, &device, &memory, &tensor, err);
  if (code != IST_OK) return code;
  code =
      wrap(&backend->devices[device], memory, options->grant, tensor, out, err);
  if (code != IST_OK) {
    ist__pjrt_tensor_free(client, tensor);
    return code;
  }
  tensor->is_borrowed = options->ownership != IST_PJRT_TAKE;
  tensor->returned = options->release;
  tensor->returned_self = options->release_self;
  return IST_OK;
}

ist_code ist_pjrt_buffer_adopt(ist_backend *backend, struct PJRT_Buffer *buffer,
                               const ist_pjrt_buffer_options *options,
                               ist_tensor **out, ist_error *err) {
  if (out != NULL) *out = NULL;
  if (backend == NULL || buffer == NULL || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a buffer could not be adopted: backend, buffer or "
                         "out is NULL; needs all three");
  }
  if (ist__pjrt_client_of(backend) == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "%s: a buffer could not be adopted: the backend is on "
                         "no PJRT plugin; needs one of the buffer's client",
                         backend->facts.name);
  }
  ist_pjrt_buffer_options known;
  ist_code code = read_options(options, &known, err);
  return code == IST_OK ? adopt(backend, buffer, &known, out, err) : code;
}

// ---- ours, lent and given

const struct PJRT_Api *ist_pjrt_api(const ist_backend *backend) {
  const ist__pjrt_client *client =
      backend != NULL ? ist__pjrt_client_of(backend) : NULL;
  return client != NULL ? client->plugin.pjrt.table : NULL;
}

struct PJRT_Client *ist_pjrt_client(const ist_backend *backend) {
  const ist__pjrt_client *client =
      backend != NULL ? ist__pjrt_client_of(backend) : NULL;
  return client != NULL ? client->client : NULL;
}

// The backend's own buffer of a tensor, or NULL where there is none.
static ist__pjrt_tensor *pjrt_tensor(const ist_tensor *tensor) {
  if (tensor == NULL || tensor->deleted) return NULL;
  bool ours = ist__pjrt_client_of(ist__tensor_backend(tensor)) != NULL;
  return ours ? tensor->buffer : NULL;
}

struct PJRT_Buffer *ist_pjrt_buffer(const ist_tensor *tensor) {
  const ist__pjrt_tensor *found = pjrt_tensor(tensor);
  return found != NULL ? found->buffer : NULL;
}

// Why a tensor's buffer cannot be given away, or NULL.
static const char *what_keeps(ist_tensor *tensor) {
  const ist__pjrt_tensor *found = pjrt_tensor(tensor);
  if (found == NULL) return "it is on no PJRT plugin";
  if (found->is_borrowed) return "it was borrowed of the host program";
  if (!ist__refcount_is_one(&tensor->refs)) return "others hold the tensor";
  return NULL;
}

ist_code ist_pjrt_buffer_give(ist_tensor *tensor, struct PJRT_Buffer **out,
                              ist_error *err) {
  if (out != NULL) *out = NULL;
  if (tensor == NULL || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a buffer could not be given: tensor or out is NULL; "
                         "needs both");
  }
  ist_code code = ist__tensor_check_alive(tensor, err);
  if (code != IST_OK) return code;
  ist_backend *backend = ist__tensor_backend(tensor);
  const char *why = what_keeps(tensor);
  if (why != NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "%s: a buffer could not be given: %s; needs the last "
                         "handle of a tensor whose buffer is isthmus's own",
                         backend->facts.name, why);
  }
  if (atomic_load(&tensor->loan) == IST__LOAN_HELD) {
    ist__backend_reclaim(backend, tensor->buffer);
  }
  *out = ist__pjrt_tensor_free(ist__pjrt_client_of(backend), tensor->buffer);
  ist__tensor_discard(tensor);
  return IST_OK;
}
