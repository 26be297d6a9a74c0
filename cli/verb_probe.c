// SPDX-License-Identifier: Apache-2.0
// verb_probe.c: isthmus probe PLUGIN.so: one PJRT plugin, opened and tried.

#include <string.h>

#include "command.h"

int ist__verb_probe(ist__cmd *cmd) {
  if (cmd->operands.count != 1) {
    return ist__cmd_usage(cmd, "it needs one plugin, and %zu were given",
                          cmd->operands.count);
  }
  ist_error err = {0};
  ist_backend *backend = NULL;
  ist__json json = {.file = cmd->report};
  const char *path = cmd->operands.at[0];
  if (strncmp(path, "pjrt:", 5) == 0) path += 5;
  cmd->reports = true;
  if (ist__cmd_backend(cmd, "pjrt", path, &backend, &err) != IST_OK) {
    return ist__cmd_fail(cmd, &err);
  }
  ist_pjrt_report *report = NULL;
  if (ist_pjrt_report_create(ist_backend_device(backend, 0), &report, &err) !=
      IST_OK) {
    return ist__cmd_fail(cmd, &err);
  }
  char place[4096 + 8];
  (void)snprintf(place, sizeof place, "pjrt:%.4095s", path);
  const ist__telling telling = {.backend = backend,
                                .place = place,
                                .report = report,
                                .json = cmd->json ? &json : NULL};
  bool good = ist__cmd_say_backend(cmd, &telling, &err);
  ist_pjrt_report_release(report);
  if (cmd->json) ist__json_end(&json);
  if (good) return IST__EXIT_OK;
  cmd->json = false;  // what went wrong stands in the document
  return ist__cmd_fail(cmd, &err);
}
