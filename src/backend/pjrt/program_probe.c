// SPDX-License-Identifier: Apache-2.0
// program_probe.c: compiles and runs the smallest program that shows both its
// input and that something was computed.

#include "backend/pjrt/program_probe.h"

#include <string.h>

#include "backend/pjrt/pjrt_tensor.h"
#include "backend/pjrt/program.h"

static const char text[] =
    "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
    "  %0 = stablehlo.add %x, %x : tensor<2xf32>\n"
    "  return %0 : tensor<2xf32>\n"
    "}\n";

static ist_code run(ist__pjrt_client *client, void *program, ist_error *err) {
  int64_t numbers[2] = {2, 1};  // shape, strides
  float values[2] = {1.5f, -3.0f}, got[2] = {0};
  const DLDataType f32 = {kDLFloat, 32, 1};
  DLTensor view = {values, {kDLCPU, 0}, 1, f32, numbers, numbers + 1, 0};
  ist_placement place = {.struct_size = sizeof place,
                         .memory = client->facts[0].default_memory,
                         .view = &view};
  void *input = NULL, *output = NULL;
  ist_code code = ist__pjrt_copy_in(client, &place, &input, err);
  if (code != IST_OK) return code;
  ist_execution execution = {.struct_size = sizeof execution,
                             .program = program,
                             .inputs = &input,
                             .input_count = 1,
                             .outputs = &output,
                             .output_count = 1};
  code = ist__pjrt_execute(client, &execution, err);
  if (code == IST_OK) {
    code = ist__pjrt_copy_out(client, output, got, sizeof got, err);
  }
  if (code == IST_OK && (got[0] != 3.0f || got[1] != -6.0f)) {
    code = ist_error_set(err, IST_ERR_PLUGIN, "other values came out");
  }
  if (output != NULL) ist__pjrt_release(client, output);
  ist__pjrt_release(client, input);
  return code;
}

ist_code ist__pjrt_probe_programs(ist__pjrt_client *client, bool *out,
                                  ist_error *err) {
  const uint32_t copies = IST_CAN_COPY_IN | IST_CAN_COPY_OUT;
  const ist_device_facts *device = &client->facts[0];
  const ist__pjrt *pjrt = &client->plugin.pjrt;
  *out = false;
  if ((device->memories[device->default_memory].capability.can & copies) !=
      copies) {
    return IST_OK;
  }
  ist_source source = {.struct_size = sizeof source,
                       .code = text,
                       .size = sizeof text - 1,
                       .name = "a probe"};
  void *program = NULL;
  ist_error cause;
  ist_code code = ist__pjrt_compile(client, &source, &program, &cause);
  if (code == IST_OK) {
    code = run(client, program, &cause);
    ist__pjrt_release_program(client, program);
  }
  *out = code == IST_OK;
  // Why it does not work, and which of the two, is asked for by reports only.
  for (ist__pjrt_findings *f = client->findings; *out && f != NULL;
       f = f->next) {
    f->of[IST__CAPABILITY_programs] = (ist__pjrt_finding){true, true, 0, ""};
    f->of[IST__CAPABILITY_program_types] = f->of[IST__CAPABILITY_programs];
  }
  if (code == IST_ERR_NO_ALLOCATION) {
    return ist__error_native(err, code, 0, "%s", cause.message);
  }
  if (code != IST_OK) {
    ist__log(pjrt->env, IST_LOG_INFO, "%s: runs no programs: %s", pjrt->name,
             cause.message);
  }
  return IST_OK;
}
