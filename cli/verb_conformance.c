// SPDX-License-Identifier: Apache-2.0
// verb_conformance.c: isthmus conformance PLUGIN.so: for its author, every slot
// that a tensor bridge needs, with pass, fail, skip and the reason.

#include <string.h>

#include "conformance_check.h"

int ist__verb_conformance(ist__cmd *cmd) {
  if (cmd->operands.count != 1 || (cmd->json && cmd->junit)) {
    return ist__cmd_usage(cmd,
                          "it needs one plugin, and one of --json and --junit "
                          "at most");
  }
  ist_error err = {0};
  const char *path = cmd->operands.at[0];
  if (strncmp(path, "pjrt:", 5) == 0) path += 5;
  ist__result results[IST__RESULT_COUNT];
  if (ist__conformance_run(cmd, path, results, &err) != IST_OK) {
    return ist__cmd_fail(cmd, &err);
  }
  if (cmd->json) {
    ist__conformance_json(cmd, path, results);
  } else if (cmd->junit) {
    ist__conformance_junit(cmd, path, results);
  } else {
    ist__conformance_text(cmd, path, results);
  }
  return ist__conformance_count(results, IST__OUTCOME_FAIL) == 0
             ? IST__EXIT_OK
             : IST__EXIT_FAILED;
}
