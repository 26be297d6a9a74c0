// SPDX-License-Identifier: Apache-2.0
// attributes.c: copies a plugin's attributes, within bounds.

#include "backend/pjrt/attributes.h"

#include <string.h>

#include "base/alloc.h"

// More than any plugin has; a larger answer is garbage.
#define MAX_ATTRIBUTES 256

// False for a value that cannot be: of no known kind, or not there.
static bool read_value(const PJRT_NamedValue *value, ist__pjrt_attribute *out) {
  ist_option *option = &out->option;
  if (value->name == NULL || value->name_size == 0) return false;
  ist__pjrt_string(value->name, value->name_size, out->name, sizeof out->name);
  option->name = out->name;
  option->kind = (ist_option_kind)value->type;  // the lists are numbered alike
  switch (value->type) {
    case PJRT_NamedValue_kString:
      if (value->string_value == NULL && value->value_size > 0) return false;
      ist__pjrt_string(value->string_value, value->value_size, out->text,
                       sizeof out->text);
      option->string = out->text;
      return true;
    case PJRT_NamedValue_kInt64:
      option->int64 = value->int64_value;
      return true;
    case PJRT_NamedValue_kInt64List: {
      const size_t room = sizeof out->list / sizeof out->list[0];
      if (value->int64_array_value == NULL && value->value_size > 0) {
        return false;
      }
      option->list_size = value->value_size < room ? value->value_size : room;
      if (option->list_size > 0) {
        memcpy(out->list, value->int64_array_value,
               option->list_size * sizeof out->list[0]);
      }
      option->list = out->list;
      return true;
    }
    case PJRT_NamedValue_kFloat:
      option->number = value->float_value;
      return true;
    case PJRT_NamedValue_kBool:
      // Not read as a bool: it may hold any byte.
      option->boolean = *(const unsigned char *)&value->bool_value != 0;
      return true;
    default:
      return false;
  }
}

ist_code ist__pjrt_attributes_read(const ist__pjrt *pjrt,
                                   ist__pjrt_attributes *out, ist_error *err) {
  *out = (ist__pjrt_attributes){0};
  IST_PJRT_ARGS(PJRT_Plugin_Attributes_Args, get);
  ist_code code = ist__pjrt_call(pjrt, IST_SLOT_Plugin_Attributes, &get, err);
  if (code != IST_OK || get.num_attributes == 0) return code;
  if (get.attributes == NULL || get.num_attributes > MAX_ATTRIBUTES) {
    return ist_error_set(err, IST_ERR_PLUGIN,
                         "%s: the attributes cannot be read: the plugin tells "
                         "of %zu; needs at most %d that are there",
                         pjrt->name, get.num_attributes, MAX_ATTRIBUTES);
  }
  size_t size = get.num_attributes * sizeof *out->at;
  out->at = ist__alloc_zero(pjrt->env, size);
  if (out->at == NULL) return ist__error_memory(err, "attributes", size);
  for (size_t i = 0; i < get.num_attributes && code == IST_OK; i++) {
    if (read_value(&get.attributes[i], &out->at[i])) continue;
    code = ist_error_set(err, IST_ERR_PLUGIN,
                         "%s: the attributes cannot be read: number %zu has no "
                         "name or no value of a known kind; needs both",
                         pjrt->name, i);
  }
  if (code == IST_OK) {
    out->count = get.num_attributes;
  } else {
    ist__free(pjrt->env, out->at);
    out->at = NULL;
  }
  return code;
}
