// SPDX-License-Identifier: Apache-2.0
// pjrt_backend.c: a PJRT client as a backend.

#include "backend/pjrt/pjrt_backend.h"

#include <isthmus/backend.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/pjrt/child_wire.h"
#include "backend/pjrt/device_memory.h"
#include "backend/pjrt/pjrt_tensor.h"
#include "backend/pjrt/probe.h"
#include "backend/pjrt/program.h"
#include "backend/pjrt/program_probe.h"
#include "base/alloc.h"
#include "base/surroundings.h"

static void pjrt_close(void *self) {
  ist__pjrt_client_close(self);
}

static ist_code pjrt_describe(void *self, ist_backend_facts *out,
                              ist_error *err) {
  (void)err;
  const ist__pjrt_client *client = self;
  out->name = client->plugin.pjrt.name;
  out->platform = client->plugin.pjrt.name + sizeof "pjrt:" - 1;
  out->version = client->version;
  out->file = client->plugin.file[0] != '\0' ? client->plugin.file : NULL;
  out->devices = client->facts;
  out->device_count = client->device_count;
  return IST_OK;
}

static const ist_backend_ops pjrt_ops = {
    .struct_size = sizeof(ist_backend_ops),
    .abi = IST_BACKEND_ABI,
    .name = "pjrt",
    .close = pjrt_close,
    .describe = pjrt_describe,
    .release = ist__pjrt_release,
    .copy_out = ist__pjrt_copy_out,
    .copy_in = ist__pjrt_copy_in,
    .lend = ist__pjrt_lend,
    .reclaim = ist__pjrt_reclaim,
    .adopt = ist__pjrt_adopt,
    // copy_peer: NULL. CopyToMemory gives wrong values for permuted buffers on
    // one plugin of three; copies go through the host.
    .wait = ist__pjrt_wait,
    .inspect = ist__pjrt_inspect,
    .discard = ist__pjrt_discard,
    .compile = ist__pjrt_compile,
    .release_program = ist__pjrt_release_program,
    .describe_program = ist__pjrt_describe_program,
    .describe_input = ist__pjrt_describe_input,
    .describe_output = ist__pjrt_describe_output,
    .execute = ist__pjrt_execute,
    .argument_name = ist__pjrt_argument_name,
    .serialize = ist__pjrt_serialize,
    .load = ist__pjrt_load,
};

// Tries out what a client can do and makes the backend. The client stays the
// caller's on failure.
static ist_code make_backend(ist_context *context, ist__pjrt_client *client,
                             ist_backend **out, ist_error *err) {
  ist_backend_ops ops = pjrt_ops;
  ist__pjrt_memory_watch(&ops);
  bool runs_programs = false;
  atomic_fetch_add(&client->plugin.pjrt.trying, 1);
  ist_code code = ist__pjrt_probe(client, err);
  if (code == IST_OK) {
    code = ist__pjrt_probe_programs(client, &runs_programs, err);
  }
  atomic_fetch_sub(&client->plugin.pjrt.trying, 1);
  if (!runs_programs) ops.compile = NULL;
  if (code == IST_OK) {
    code = ist_backend_create(context, &ops, client, out, err);
  }
  return code;
}

// A plugin may read its environment when it is opened, and once only. What a
// child is asked tells every option.
static ist_code name_settings(const ist__env *env,
                              const ist_backend_options *options, char *out,
                              ist_error *err) {
  unsigned char bytes[IST_DIGEST_SIZE];
  ist__text text = ist__text_make(NULL, 0);
  ist__child_request(options->options, options->option_count, &text);
  size_t size = text.length + 1;
  char *request = ist__alloc(env, size, 1);
  if (request == NULL) return ist__error_memory(err, "options", size);
  text = ist__text_make(request, size);
  ist__child_request(options->options, options->option_count, &text);
  ist__digest digest;
  ist__surroundings_digest(out);
  ist__digest_begin(&digest);
  ist__digest_add_part(&digest, out, IST_DIGEST_TEXT);
  ist__digest_add_part(&digest, request, size);
  ist__digest_end(&digest, bytes);
  ist__digest_text(bytes, out);
  ist__free(env, request);
  return IST_OK;
}

ist_code ist__pjrt_open(ist_context *context,
                        const ist_backend_options *options, ist_backend **out,
                        ist_error *err) {
  *out = NULL;
  ist__pjrt_client *client = NULL;
  ist__origin *origin = NULL;
  char settings[IST_DIGEST_TEXT];
  ist_code code = IST_OK;
  if (!options->trusted) {
    code = ist__verdict_ask(&context->verdicts, &context->env, options, &origin,
                            err);
  }
  if (code == IST_OK) {
    code = ist__pjrt_client_open(context, &context->env, options,
                                 ist__origin_file(origin), &client, err);
  }
  if (code != IST_OK) {
    ist__origin_free(&context->env, origin);
    return code;
  }
  client->origin = origin;
  code = name_settings(&context->env, options, settings, err);
  if (code == IST_OK) code = make_backend(context, client, out, err);
  if (code == IST_OK) {
    memcpy((*out)->settings, settings, sizeof settings);
  } else {
    pjrt_close(client);
  }
  return code;
}

ist_code ist__pjrt_open_live(ist_context *context, const PJRT_Api *table,
                             PJRT_Client *live,
                             const ist_pjrt_client_options *options,
                             ist_backend **out, ist_error *err) {
  *out = NULL;
  ist__pjrt_client *client = NULL;
  ist_code code =
      ist__pjrt_client_adopt(context, &context->env, table, live, &client, err);
  if (code != IST_OK) return code;
  code = make_backend(context, client, out, err);
  if (code != IST_OK) {
    pjrt_close(client);
    return code;
  }
  client->is_borrowed = options->ownership != IST_PJRT_TAKE;
  if (client->is_borrowed) {
    client->returned = options->release;
    client->returned_self = options->release_self;
  }
  return IST_OK;
}

ist__pjrt_client *ist__pjrt_client_of(const ist_backend *backend) {
  if (backend == NULL || backend->ops.describe != pjrt_describe) return NULL;
  return backend->self;
}
