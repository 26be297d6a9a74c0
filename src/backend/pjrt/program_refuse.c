// SPDX-License-Identifier: Apache-2.0
// program_refuse.c: tells what a program's text or bytecode says of itself
// from what it is wanted for.

#include "backend/pjrt/program_refuse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backend/pjrt/program_text.h"

static ist_code refuse_count(const ist__pjrt *pjrt, const ist_source *source,
                             const char *what, uint64_t told, ist_error *err) {
  int32_t asked =
      strcmp(what, "replicas") == 0 ? source->replicas : source->partitions;
  if (told == 0 || told == (uint64_t)asked) return IST_OK;
  return ist_error_set(err, IST_ERR_ARGUMENT,
                       "%s could not be compiled for %s: it is written for "
                       "%" PRIu64
                       " %s, and the options ask for %d; needs the "
                       "same number in both",
                       source->name, pjrt->name, told, what, (int)asked);
}

ist_code ist__pjrt_refuse_copies(const ist__pjrt *pjrt,
                                 const ist_source *source, ist_error *err) {
  const void *code_text = source->code;
  size_t size = source->size;
  ist_code code = refuse_count(
      pjrt, source, "replicas",
      ist__program_text_number("mhlo.num_replicas", code_text, size), err);
  if (code == IST_OK) {
    code = refuse_count(
        pjrt, source, "partitions",
        ist__program_text_number("mhlo.num_partitions", code_text, size), err);
  }
  if (code != IST_OK || source->replicas > 1 || source->partitions > 1) {
    return code;
  }
  // Compiled for one device, an all_reduce over two gives its own input.
  const char *name = ist__program_text_collective(code_text, size);
  if (name == NULL) return IST_OK;
  return ist_error_set(err, IST_ERR_ARGUMENT,
                       "%s could not be compiled for %s: it has %s, which is "
                       "for several replicas or partitions, and the options "
                       "ask for one; needs options with their number",
                       source->name, pjrt->name, name);
}

static const char *or_unknown(const char *version) {
  return version[0] != '\0' ? version : "a version that it does not tell";
}

// Compares "1.13.3" with another; a missing or odd part counts as 0.
static int compare(const char *a, const char *b) {
  int x[3] = {0}, y[3] = {0};
  (void)sscanf(a, "%9d.%9d.%9d", &x[0], &x[1], &x[2]);
  (void)sscanf(b, "%9d.%9d.%9d", &y[0], &y[1], &y[2]);
  for (int i = 0; i < 3; i++) {
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  }
  return 0;
}

ist_code ist__pjrt_explain_compile(const ist__plugin *plugin,
                                   const ist_source *source,
                                   const ist_error *cause, ist_error *err) {
  const char *most = plugin->stablehlo, *least = plugin->stablehlo_minimum;
  char version[24];
  bool told = cause->code == IST_ERR_PROGRAM && most[0] != '\0' &&
              ist__program_text_version(source->code, source->size, version,
                                        sizeof version);
  if (told && (compare(version, most) > 0 || compare(version, least) < 0)) {
    return ist__error_native(
        err, IST_ERR_PROGRAM_VERSION, cause->native,
        "%s could not be compiled: it is bytecode of StableHLO %s, and %s "
        "reads %s to %s (%s); needs bytecode of a version in between, or "
        "text, the portable form",
        source->name, version, plugin->pjrt.name, least, most, cause->message);
  }
  return ist__error_native(
      err, cause->code, cause->native,
      "%s could not be compiled: %s; the plugin reads StableHLO up to %s%s%s; "
      "needs a program that it reads, as text for the portable form",
      source->name, cause->message, or_unknown(most),
      told ? ", and this is bytecode of " : "", told ? version : "");
}
