// SPDX-License-Identifier: Apache-2.0
// open.c: from a kind of backend to an open one.

#include <string.h>

#include "backend/backend.h"
#include "backend/pjrt/pjrt_backend.h"
#include "backend/template.h"
#include "base/error.h"
#include "base/structs.h"

ist_code ist_backend_open(ist_context *context, const char *kind,
                          const ist_backend_options *options, ist_backend **out,
                          ist_error *err) {
  if (out != NULL) *out = NULL;
  if (context == NULL || kind == NULL || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a backend could not be opened: context, kind or out "
                         "is NULL; needs all three");
  }
  ist_backend_options known;
  ist_code code = ist__options_read(&known, sizeof known, options,
                                    "ist_backend_options", err);
  if (code != IST_OK) return code;
  if (known.option_count != 0 && known.options == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "backend %s could not be opened: %zu options at NULL; "
                         "needs their address",
                         kind, known.option_count);
  }
  if (strcmp(kind, "host") == 0) {
    if (known.option_count != 0) {
      return ist_error_set(err, IST_ERR_OPTION,
                           "host: option %s was not taken: the host has none; "
                           "needs no options",
                           known.options[0].name);
    }
    *out = context->host;
    ist_backend_retain(*out);
    return IST_OK;
  }
  if (strcmp(kind, "template") == 0) {
    return ist__template_open(context, &known, out, err);
  }
  if (strcmp(kind, "pjrt") == 0) {
    return ist__pjrt_open(context, &known, out, err);
  }
  return ist_error_set(err, IST_ERR_NO_BACKEND,
                       "backend %s could not be opened: no such kind; needs "
                       "host, template or pjrt",
                       kind[0] != '\0' ? kind : "\"\"");
}
