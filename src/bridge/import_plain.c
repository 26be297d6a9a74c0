// SPDX-License-Identifier: Apache-2.0
// import_plain.c: dense row-major memory of this process becomes a view of the
// target's default memory: most imports, in a third of the long way's time.
// tests/bridge/import_plain_test.c holds both ways to one result.

#include "bridge/import_plain.h"

#include "bridge/route.h"

// Everything that the long way would look at is at its default.
static bool wish_is_plain(const ist_options *options) {
  if (options == NULL) return true;
  return options->struct_size == sizeof *options &&
         (unsigned)options->copy <= IST_COPY_NEVER &&
         (unsigned)options->read_only <= IST_READ_ONLY_ALLOW &&
         options->mutable_source == IST_MUTABLE_ALIAS &&
         (unsigned)options->grant <= IST_GRANT_READ_ONLY &&
         options->memory == NULL && options->packing == IST_PACKING_AS_IS &&
         (unsigned)options->source_packing <= IST_PACKING_PADDED;
}

static ist_grant grant_of(const DLManagedTensorVersioned *source,
                          const ist_options *options) {
  ist_grant told = options == NULL ? IST_GRANT_FROM_SOURCE : options->grant;
  if (told == IST_GRANT_IMMUTABLE || told == IST_GRANT_READ_ONLY) return told;
  bool marked = (source->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  return marked ? IST_GRANT_READ_ONLY : IST_GRANT_WRITABLE;
}

static void consume(void *self) {
  DLManagedTensorVersioned *source = self;
  if (source->deleter != NULL) source->deleter(source);
}

static ist_code adopt(const ist__tensor_facts *facts,
                      DLManagedTensorVersioned *source, ist_tensor **out,
                      ist_error *err) {
  ist_tensor *t = ist__tensor_make_inline(facts, err);
  if (t == NULL) return IST_ERR_NO_ALLOCATION;
  // No copy of the view: reading what was just written in other pieces waits.
  DLDevice device = t->view.device;
  t->view.device = facts->view->device;
  ist_placement place = {.struct_size = sizeof place,
                         .device = facts->device->index,
                         .memory = facts->memory,
                         .view = &t->view,
                         .release = consume,
                         .release_self = source};
  ist_code code =
      ist__backend_adopt(facts->device->backend, &place, &t->buffer, err);
  t->view.device = device;
  if (code == IST_OK) {
    *out = t;
  } else {
    ist__tensor_discard(t);
  }
  return code;
}

bool ist__import_plain(const ist_device *device,
                       DLManagedTensorVersioned *source,
                       const ist_options *options, ist_tensor **out,
                       ist_code *out_code, ist_error *err) {
  ist__view view;
  if (!wish_is_plain(options) ||
      source->version.major != DLPACK_MAJOR_VERSION ||
      !ist__view_check_plain(&source->dl_tensor, &view)) {
    return false;
  }
  ist__tensor_facts facts = {.device = device,
                             .memory = device->facts.default_memory,
                             .view = &view,
                             .grant = grant_of(source, options),
                             .address = true};
  const ist_capability *to = &device->facts.memories[facts.memory].capability;
  if (!ist__route_is_plain(to, view.dtype_number,
                           (uintptr_t)view.data + view.byte_offset,
                           facts.grant == IST_GRANT_WRITABLE)) {
    return false;
  }
  *out_code = adopt(&facts, source, out, err);
  return true;
}
