// SPDX-License-Identifier: Apache-2.0
// backend.h: the checked dispatch in front of every slot of a backend. Here
// outputs are zeroed, the fault hook is asked, and an answer that cannot be
// (success without a buffer) is an error and not a crash. Not for authors of
// backends: theirs is <isthmus/backend.h>.

#ifndef ISTHMUS_BACKEND_BACKEND_H_
#define ISTHMUS_BACKEND_BACKEND_H_

#include <isthmus/backend.h>
#include <pthread.h>
#include <stdatomic.h>

#include "backend/context.h"
#include "base/digest.h"

struct ist_device {
  ist_backend *backend;
  size_t index;
  // A copy of the author's, with memories of our own size; its strings are lent
  // by the runtime until close.
  ist_device_facts facts;
};

struct ist_backend {
  ist__refcount refs;  // the host backend counts on its context instead
  bool is_host;
  ist_context *context;
  ist_backend_ops ops;  // slots beyond the author's struct_size are NULL
  void *self;
  ist_backend_facts facts;
  // Guards who is lending a tensor's address; never held during a slot.
  pthread_mutex_t lend_lock;
  pthread_cond_t lend_done;
  // The digest of facts.file in hexadecimal, once it was asked for.
  _Atomic(char *) file_digest;
  // Names the options and the environment that it was opened with; "": they
  // are not known, as of one that a caller made.
  char settings[IST_DIGEST_TEXT];
  ist_memory_info *memories;  // of all devices, one after the other
  ist_device devices[];
};

static inline const ist__env *ist__backend_env(const ist_backend *backend) {
  return &backend->context->env;
}

// Opens the parts of ist_backend_create; is_host: on the context's own count.
ist_code ist__backend_open(ist_context *context, const ist_backend_ops *ops,
                           void *self, bool is_host, ist_backend **out,
                           ist_error *err);
// Closes the runtime and frees the backend, whatever its count.
void ist__backend_free(ist_backend *backend);

// The capability of memory number index, which must exist.
static inline const ist_capability *ist__device_capability(
    const ist_device *device, size_t index) {
  return &device->facts.memories[index].capability;
}
// The number of a memory kind; NULL or "": the default.
// Fails: NO_MEMORY_KIND.
ist_code ist__device_find_memory(const ist_device *device, const char *kind,
                                 size_t *out, ist_error *err);

// One function for each slot; what it does is said at the slot.
void ist__backend_release_buffer(ist_backend *backend, void *buffer);
ist_code ist__backend_copy_out(ist_backend *backend, void *buffer, void *target,
                               uint64_t nbytes, ist_error *err);
ist_code ist__backend_copy_in(ist_backend *backend, const ist_placement *source,
                              void **out, ist_error *err);
ist_code ist__backend_lend(ist_backend *backend, void *buffer, ist_loan *out,
                           ist_error *err);
void ist__backend_reclaim(ist_backend *backend, void *buffer);
ist_code ist__backend_adopt(ist_backend *backend, const ist_placement *source,
                            void **out, ist_error *err);
ist_code ist__backend_copy_peer(ist_backend *backend, void *buffer,
                                const ist_placement *place, void **out,
                                ist_error *err);
ist_code ist__backend_wait(ist_backend *backend, void *buffer, ist_error *err);
// Without the slot the buffer is released, and *buffer NULL.
ist_code ist__backend_discard(ist_backend *backend, void **buffer,
                              ist_error *err);
ist_code ist__backend_inspect(ist_backend *backend, void *buffer, ist_spec *out,
                              ist_error *err);
ist_code ist__backend_compile(ist_backend *backend, const ist_source *source,
                              void **out, ist_error *err);
void ist__backend_release_program(ist_backend *backend, void *program);
ist_code ist__backend_describe_program(ist_backend *backend, void *program,
                                       ist_program_facts *out, ist_error *err);
ist_code ist__backend_describe_argument(ist_backend *backend, void *program,
                                        bool is_input, size_t index,
                                        ist_spec *out, ist_error *err);
// The name of an argument, or "".
const char *ist__backend_argument_name(ist_backend *backend, void *program,
                                       bool is_input, size_t index);
// Gives the bytes, to be freed. Fails: NO_PROGRAMS without the slot.
ist_code ist__backend_serialize(ist_backend *backend, void *program, void **out,
                                size_t *out_size, ist_error *err);
// Fails: NO_PROGRAMS without the slot.
ist_code ist__backend_load(ist_backend *backend, const ist_source *source,
                           void **out, ist_error *err);
ist_code ist__backend_execute(ist_backend *backend,
                              const ist_execution *execution, ist_error *err);

#endif  // ISTHMUS_BACKEND_BACKEND_H_
