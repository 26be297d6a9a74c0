// SPDX-License-Identifier: Apache-2.0
// subject_plugins.c: PJRT plugins as backends of the suites.

#include <stdlib.h>

#include "support/pjrt_support.h"
#include "support/subjects.h"

static ist_code open_plugin(const subject *self, ist_context *context,
                            ist_backend **out, ist_error *err) {
  ist_backend_options options = {
      .struct_size = sizeof options, .path = self->path, .trusted = true};
  return ist_backend_open(context, "pjrt", &options, out, err);
}

static void plugin__is_on_this_machine(void **state) {
  print_message("plugin %s is not on this machine\n", (const char *)*state);
  skip();
}

// Reports what is not here as skipped, by its name.
static int skip_subject(const subject *s) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(plugin__is_on_this_machine,
                                (void *)(uintptr_t)s->name),
  };
  return cmocka_run_group_tests_name(s->name, tests, NULL, NULL);
}

typedef struct row {
  subject subject;
  const char *variable;  // of the environment, names the file
  const char *rules;     // of the lying plugin
} row;

static int run_row(row *r, int (*suite)(const subject *)) {
  r->subject.open = open_plugin;
  r->subject.path = getenv(r->variable);
  r->subject.late_release = true;
  r->subject.slow_to_open = true;
  if (r->subject.path == NULL) return skip_subject(&r->subject);
  if (r->rules != NULL) {
    lying_levers lying = lying_find();
    lying.set_rules(r->rules);
  }
  return suite(&r->subject);
}

int subjects_run_plugins(int (*suite)(const subject *)) {
  // Elements below a byte are packed on XLA's devices. A copy between
  // memories of one client is a slot that isthmus does not call yet.
  enum {
    never = IST_CAN_PADDED,
    not_yet = IST_CAN_PEER,
    no_card = IST_CAN_ADOPT | IST_CAN_LEND | IST_CAN_HOST_ADDRESS
  };
  row rows[] = {
      {{.name = "lying", .never = never, .not_yet = not_yet},
       "ISTHMUS_LYING_PJRT",
       "addressable=1"},
      {{.name = "lying_card", .never = never | no_card, .not_yet = not_yet},
       "ISTHMUS_LYING_PJRT",
       "addressable=0"},
      {{.name = "lammps", .never = never, .not_yet = not_yet},
       "ISTHMUS_P1",
       NULL},
      {{.name = "xla_cpu", .never = never, .not_yet = not_yet},
       "ISTHMUS_P2",
       NULL},
      {{.name = "fastatomstruct", .never = never, .not_yet = not_yet},
       "ISTHMUS_P3",
       NULL},
  };
  int failed = 0;
  for (size_t i = 0; i < COUNT_OF(rows); i++)
    failed += run_row(&rows[i], suite);
  return failed;
}
