// SPDX-License-Identifier: Apache-2.0
// fault_plugins_test.c: the fault sweeps on PJRT plugins: the lying one as a
// CPU and as a card, and the real ones that are on this machine.

#include <stdlib.h>

#include "support/fault_stage.h"
#include "support/pjrt_support.h"

static ist_code open_plugin(stage *s, ist_backend **out, ist_error *err) {
  ist_backend_options options = {
      .struct_size = sizeof options, .path = s->path, .trusted = true};
  return ist_backend_open(s->context, "pjrt", &options, out, err);
}

static const char add_text[] =
    "module @add {\n"
    "  func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>)\n"
    "      -> tensor<4xf32> {\n"
    "    %0 = stablehlo.add %x, %y : tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n"
    "  }\n"
    "}\n";

static void plugin__is_on_this_machine(void **state) {
  print_message("plugin %s is not on this machine\n", (const char *)*state);
  skip();
}

static int skip_stage(const stage *s) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(plugin__is_on_this_machine,
                                (void *)(uintptr_t)s->name),
  };
  return cmocka_run_group_tests_name(s->name, tests, NULL, NULL);
}

typedef struct row {
  const char *name;
  const char *variable;  // of the environment, names the file
  const char *rules;     // of the lying plugin
} row;

static int run_row(const row *r) {
  static stage s;
  memset(&s, 0, sizeof s);
  s.name = r->name;
  s.open = open_plugin;
  s.late_release = true;
  // Without its answer an output is taken to lie in the default memory.
  s.advisory = "PJRT_Buffer_Memory";
  s.slow_to_open = r->rules == NULL;
  s.program = r->rules != NULL ? "lying.add_one_f32 11 4" : add_text;
  s.input_count = r->rules != NULL ? 1 : 2;
  s.path = getenv(r->variable);
  if (s.path == NULL) return skip_stage(&s);
  if (r->rules == NULL) return fault_run(&s);
  lying_levers lying = lying_find();
  lying.set_rules(r->rules);
  int failed = fault_run(&s);
  // Nothing of the plugin is alive and nothing was done that kills real ones.
  const char *what = "";
  return failed + lying.violations(&what) + lying.live("buffers");
}

int main(void) {
  static const row rows[] = {
      {"lying", "ISTHMUS_LYING_PJRT", "addressable=1"},
      {"lying_card", "ISTHMUS_LYING_PJRT", "addressable=0"},
      {"lammps", "ISTHMUS_P1", NULL},
      {"xla_cpu", "ISTHMUS_P2", NULL},
      {"fastatomstruct", "ISTHMUS_P3", NULL},
  };
  int failed = 0;
  for (size_t i = 0; i < COUNT_OF(rows); i++) failed += run_row(&rows[i]);
  return failed;
}
