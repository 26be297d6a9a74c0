// SPDX-License-Identifier: Apache-2.0
// fault_test.c: the fault sweeps on the backends that need no plugin.

#include "support/fake_backend.h"
#include "support/fault_stage.h"
#include "support/testing.h"

static ist_code open_host(stage *s, ist_backend **out, ist_error *err) {
  return ist_backend_open(s->context, "host", NULL, out, err);
}

static ist_code open_template(stage *s, ist_backend **out, ist_error *err) {
  const ist_option option = {.name = "addressable",
                             .kind = IST_OPTION_BOOL,
                             .boolean = s->self != NULL};
  ist_backend_options options = {
      .struct_size = sizeof options, .options = &option, .option_count = 1};
  return ist_backend_open(s->context, "template", &options, out, err);
}

// One fake for each open backend: those of the act come and go.
static ist_code open_fake(stage *s, ist_backend **out, ist_error *err) {
  static fake_backend fakes[2];
  fake_backend *fake = &fakes[s->backend != NULL];
  fake_backend_init(fake, s->self != NULL);
  return ist_backend_create(s->context, &fake->ops, fake, out, err);
}

int main(void) {
  static int yes;
  stage stages[] = {
      {.name = "host", .open = open_host},
      {.name = "template", .open = open_template, .self = &yes},
      {.name = "template_card", .open = open_template},
      {.name = "fake",
       .open = open_fake,
       .self = &yes,
       .program = "add",
       .input_count = 2},
      {.name = "fake_card",
       .open = open_fake,
       .program = "add",
       .input_count = 2},
  };
  int failed = 0;
  for (size_t i = 0; i < COUNT_OF(stages); i++) failed += fault_run(&stages[i]);
  return failed;
}
