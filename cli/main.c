// SPDX-License-Identifier: Apache-2.0
// main.c: the command isthmus: reads the command line, runs one verb, and ends
// with 0 (done), 1 (refused or failed) or 2 (the command line was wrong).

#include <stdlib.h>

#include "backend/block_pool.h"
#include "base/pool.h"
#include "command.h"

// A context with as many threads for long copies as ISTHMUS_THREADS says, and
// as much idle memory as ISTHMUS_POOL_BYTES.
static ist_code make_context(ist_context **out, ist_error *err) {
  ist_context_options options = {.struct_size = sizeof options};
  ist_code code =
      ist__pool_threads(getenv("ISTHMUS_THREADS"), &options.threads, err);
  if (code == IST_OK) {
    code = ist__block_pool_bytes(getenv("ISTHMUS_POOL_BYTES"),
                                 &options.block_pool_bytes, err);
  }
  if (code != IST_OK) return code;
  return ist_context_create(&options, out, err);
}

int main(int argc, char **argv) {
  ist__cmd_guard();
  ist__cmd cmd = {.report = stdout,
                  .wish = {.struct_size = sizeof(ist_options)}};
  ist_error err = {0};
  if (make_context(&cmd.context, &err) != IST_OK) {
    return ist__cmd_fail(&cmd, &err);
  }
  int exit_code = ist__cmd_parse(&cmd, argc, argv);
  if (exit_code < 0) exit_code = cmd.verb->run(&cmd);
  return ist__cmd_finish(&cmd, exit_code);
}
