// SPDX-License-Identifier: Apache-2.0
// file.c: files as places: a tensor of a mapped file is a view of the map.
// How a file is written: file_save.c.

#include <string.h>

#include "base/alloc.h"
#include "base/structs.h"
#include "base/text.h"
#include "bridge/file.h"
#include "bridge/tensor.h"
#include "dlpack/dlpack_write.h"
#include "io/dense.h"
#include "io/file_kind.h"
#include "io/label.h"
#include "io/map.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "tensor/dtype.h"
#include "tensor/layout.h"

struct ist_file {
  ist__refcount refs;
  ist_context *context;
  ist__map map;
  ist__label path;  // for errors
  ist__npy npy;
  ist__safetensors parsed;  // its block is NULL in .npy
  const ist__entry *entries;
  size_t count;
};

// Memory that a tensor has of its own, since its file's bytes did not fit it.
typedef struct own_bytes {
  ist_context *context;
  void *bytes;
} own_bytes;

static ist_code parse(ist_file *file, const char *path,
                      const ist_file_options *options, ist_error *err) {
  const ist__env *env = &file->context->env;
  const ist__map *map = &file->map;
  ist__file_kind kind = ist__file_kind_of_bytes(map->bytes, map->size);
  // A damaged file is still told as what it was to be.
  if (kind == IST__FILE_UNKNOWN) kind = ist__file_kind_of_name(path);
  if (kind == IST__FILE_UNKNOWN) {
    bool zip = map->size >= 4 && memcmp(map->bytes, "PK\3\4", 4) == 0;
    return ist_error_set(err, IST_ERR_FILE_FORMAT,
                         "cannot read %s: its header is %s; needs one of .npy "
                         "or .safetensors",
                         file->path.text,
                         zip ? "that of a zip archive (.npz, .pt)"
                             : "of no kind that isthmus knows");
  }
  file->count = 1;
  file->entries = &file->npy.entry;
  if (kind == IST__FILE_NPY) {
    return ist__npy_parse(map->bytes, map->size, path, options->dtype,
                          &file->npy, err);
  }
  if (options->dtype != NULL) {
    return ist_error_set(err, IST_ERR_FILE_DTYPE,
                         "cannot read %s: its items are of the dtypes that its "
                         "header names; needs no other (dtype, --dtype)",
                         file->path.text);
  }
  ist_code code = ist__safetensors_parse(env, map->bytes, map->size, path,
                                         &file->parsed, err);
  file->count = file->parsed.count;
  file->entries = file->parsed.entries;
  return code;
}

static void destroy(ist_file *file) {
  ist_context *context = file->context;
  ist__safetensors_free(&context->env, &file->parsed);
  ist__map_close(&file->map);
  ist__free(&context->env, file);
  ist_context_release(context);
}

ist_code ist_file_open(ist_context *context, const char *path,
                       const ist_file_options *options, ist_file **out,
                       ist_error *err) {
  if (out != NULL) *out = NULL;
  if (context == NULL || path == NULL || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a file could not be opened: context, path or out is "
                         "NULL; needs all three");
  }
  ist_file_options read;
  ist_code fits =
      ist__options_read(&read, sizeof read, options, "ist_file_options", err);
  if (fits != IST_OK) return fits;
  ist_file *file = ist__alloc_zero(&context->env, sizeof *file);
  if (file == NULL) return ist__error_memory(err, "a file", sizeof *file);
  ist__refcount_init(&file->refs);
  ist_context_retain(context);
  file->context = context;
  file->path = ist__label_make(path);
  ist_code code = ist__map_open(path, &file->map, err);
  if (code == IST_OK) code = parse(file, path, &read, err);
  if (code == IST_OK) {
    *out = file;
  } else {
    destroy(file);
  }
  return code;
}

void ist_file_retain(ist_file *file) {
  if (file != NULL) ist__refcount_take(&file->refs);
}

void ist_file_release(ist_file *file) {
  if (file != NULL && ist__refcount_drop(&file->refs)) destroy(file);
}

bool ist__file_is_npy(const ist_file *file) {
  return file->parsed.block == NULL;
}

size_t ist_file_count(const ist_file *file) {
  return file == NULL ? 0 : file->count;
}

const char *ist_file_name(const ist_file *file, size_t index) {
  return file == NULL || index >= file->count ? NULL
                                              : file->entries[index].name;
}

// The names of a file for an error, as many as fit.
static void list_names(const ist_file *file, char *buffer, size_t size) {
  ist__text text = ist__text_make(buffer, size - sizeof ", ...");
  for (size_t i = 0; i < file->count; i++) {
    size_t before = text.length;
    ist__text_add(&text, "%s'%s'", i == 0 ? "" : ", ",
                  ist__label_make(file->entries[i].name).text);
    if (text.length + 1 > text.size) {
      strcpy(buffer + before, i == 0 ? "..." : ", ...");
      return;
    }
  }
}

static ist_code find(const ist_file *file, const char *name,
                     const ist__entry **out, ist_error *err) {
  bool npy = ist__file_is_npy(file);
  if ((name == NULL && file->count == 1) ||
      (npy && name != NULL && name[0] == '\0')) {
    *out = file->entries;
    return IST_OK;
  }
  char names[280];
  list_names(file, names, sizeof names);
  if (name == NULL) {
    return ist_error_set(err, IST_ERR_NAME_NEEDED,
                         "%s could not be read as one tensor: it holds %zu "
                         "(%s); needs a name",
                         file->path.text, file->count, names);
  }
  *out = npy ? NULL : ist__safetensors_find(&file->parsed, name);
  if (*out != NULL) return IST_OK;
  return ist_error_set(
      err, IST_ERR_NAME_UNKNOWN,
      "%s could not give '%s': no tensor has this name; "
      "needs one of %s",
      file->path.text, ist__label_make(name).text,
      npy ? "none, as .npy names none" : (file->count == 0 ? "none" : names));
}

static void release_file(void *self) {
  ist_file_release(self);
}

static void release_bytes(void *self) {
  own_bytes *own = self;
  ist_context *context = own->context;
  ist__free(&context->env, own->bytes);
  ist__free(&context->env, own);
  ist_context_release(context);
}

// Copies the elements of an entry that cannot be viewed where they lie.
static ist_code copy_bytes(ist_file *file, const ist__entry *entry,
                           own_bytes **out, ist_error *err) {
  const ist__env *env = &file->context->env;
  const char *from = (const char *)file->map.bytes + entry->offset;
  size_t size = (size_t)entry->nbytes;
  own_bytes *own = ist__alloc_zero(env, sizeof *own);
  if (own != NULL) own->bytes = ist__alloc(env, size, 64);
  if (own == NULL || own->bytes == NULL) {
    ist__free(env, own);
    return ist__error_memory(err, "a tensor of a file", size);
  }
  if (entry->swapped) {
    ist__dense_swap(env, entry->dtype, from, own->bytes, size);
  } else {
    memcpy(own->bytes, from, size);
  }
  own->context = file->context;
  ist_context_retain(own->context);
  *out = own;
  return IST_OK;
}

static ist_code make_view(const ist__entry *entry, void *bytes, ist__view *out,
                          ist_error *err) {
  int64_t order[IST_MAX_NDIM];
  int64_t strides[IST_MAX_NDIM];
  for (int32_t i = 0; i < entry->ndim; i++) order[i] = i;
  // The size was checked: strides of an empty tensor are not looked at.
  bool column =
      entry->column_major && ist__layout_from_minor_to_major(
                                 entry->ndim, entry->shape, order, strides);
  DLTensor tensor = {.data = bytes,
                     .device = {kDLCPU, 0},
                     .ndim = entry->ndim,
                     .dtype = entry->dtype,
                     .shape = (int64_t *)entry->shape,
                     .strides = column ? strides : NULL};
  return ist__view_check(&tensor, entry->padded, true, out, err);
}

// Hands a view and who owns it to the host. Takes what's release_self.
static ist_code import(ist_context *context, const ist__export *what,
                       ist_tensor **out, ist_error *err) {
  DLManagedTensorVersioned *managed = ist__dlpack_write(what);
  if (managed == NULL) {
    what->release(what->release_self);
    return ist__error_memory(err, "a managed tensor", sizeof *managed);
  }
  ist_code code = ist_tensor_import(ist_context_host(context), managed, NULL,
                                    out, NULL, err);
  if (code != IST_OK) managed->deleter(managed);
  return code;
}

ist_code ist_file_tensor(ist_file *file, const char *name, ist_tensor **out,
                         ist_error *err) {
  if (out != NULL) *out = NULL;
  if (file == NULL || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a tensor of a file could not be given: file or out "
                         "is NULL; needs both");
  }
  const ist__entry *entry = NULL;
  ist_code code = find(file, name, &entry, err);
  if (code != IST_OK) return code;
  ist__view view;
  void *bytes = (char *)file->map.bytes + entry->offset;
  const ist__dtype *row = ist__dtype_find(entry->dtype);
  bool copied =
      entry->nbytes > 0 &&
      (entry->swapped || entry->offset % ist__dtype_alignment(row) != 0);
  own_bytes *own = NULL;
  if (copied) {
    code = copy_bytes(file, entry, &own, err);
    if (code != IST_OK) return code;
    bytes = own->bytes;
  } else {
    ist_file_retain(file);
  }
  ist__export what = {.view = &view,
                      .flags = copied ? DLPACK_FLAG_BITMASK_IS_COPIED
                                      : DLPACK_FLAG_BITMASK_READ_ONLY,
                      .release = copied ? release_bytes : release_file,
                      .release_self = copied ? (void *)own : (void *)file,
                      .env = &file->context->env};
  if (entry->padded) what.flags |= DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  code = make_view(entry, bytes, &view, err);
  if (code != IST_OK) {
    what.release(what.release_self);
    return code;
  }
  code = import(file->context, &what, out, err);
  if (code == IST_OK) (*out)->copied = copied;
  return code;
}
