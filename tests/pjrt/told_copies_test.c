// SPDX-License-Identifier: Apache-2.0
// What a receipt tells of copies, held against the plugin's own: every dtype,
// layout and wish, in, out and to the host. An alias has none; a copy has no
// more than its hops. (That values are right is in the conformance suite.)

#include <stdio.h>

#include "backend/backend.h"
#include "support/pjrt_support.h"
#include "support/sample.h"
#include "tensor/dtype.h"

// Counts the calls by which a plugin copies; none is made to fail.
static bool count_copy(void *self, const char *slot) {
  uint32_t *copies = self;
  if (strcmp(slot, "PJRT_Buffer_ToHostBuffer") == 0 ||
      strcmp(slot, "PJRT_Buffer_CopyRawToHost") == 0 ||
      strcmp(slot, "PJRT_Buffer_CopyToMemory") == 0 ||
      strcmp(slot, "PJRT_Client_BufferFromHostBuffer") == 0) {
    ++*copies;
  }
  return false;
}

typedef struct told {
  pjrt_bench bench;
  sample from;
  ist_options options;
  ist_receipt receipt;
  uint32_t copies;
  char text[96];
} told;

static void check(told *t, const char *what, ist_code code) {
  const ist_receipt *r = &t->receipt;
  if (code == IST_ERR_COPY_NEEDED && t->options.copy == IST_COPY_NEVER) {
    if (t->copies != 0) fail_msg("%s: %s: refused, copied", t->text, what);
    return;
  }
  if (code != IST_OK) {
    fail_msg("%s: %s: %s", t->text, what, t->bench.err.message);
  }
  // To ask for a size is a call of its own.
  uint32_t most = r->route == IST_ROUTE_ALIAS ? 0 : 2 * r->hops;
  bool silent = r->route == IST_ROUTE_ALIAS && r->bytes_moved != 0;
  bool always = t->options.copy == IST_COPY_ALWAYS;
  if (t->copies > most || silent || (always && r->hops == 0)) {
    fail_msg("%s: %s: %u copies of the plugin's, %u hops, %llu bytes", t->text,
             what, t->copies, r->hops, (unsigned long long)r->bytes_moved);
  }
}

static void begin(told *t) {
  t->copies = 0;
  t->receipt = (ist_receipt){.struct_size = sizeof t->receipt};
}

static void cross(told *t) {
  const ist_device *device = bench_device(&t->bench, 0);
  ist_tensor *tensor = NULL, *moved = NULL;
  begin(t);
  ist_code code = ist_tensor_import(device, &t->from.versioned, &t->options,
                                    &tensor, &t->receipt, &t->bench.err);
  check(t, "import", code);
  if (tensor == NULL) return;
  begin(t);
  DLManagedTensorVersioned *out = NULL;
  check(
      t, "export",
      ist_tensor_export(tensor, &t->options, &out, &t->receipt, &t->bench.err));
  if (out != NULL) out->deleter(out);
  begin(t);
  check(t, "move",
        ist_tensor_move(tensor, ist_context_host(t->bench.context), &t->options,
                        &moved, &t->receipt, &t->bench.err));
  ist_tensor_release(moved);
  ist_tensor_release(tensor);
}

static void cross_all(const char *key, const char *rules) {
  static told t;
  memset(&t, 0, sizeof t);
  bench_open(&t.bench, key, rules);
  const ist_capability *memory =
      ist__device_capability(bench_device(&t.bench, 0), 0);
  ist__context_set_call_hook(t.bench.context, count_copy, &t.copies);
  for (int32_t n = 0; n < ist__dtype_count(); n++) {
    if ((memory->dtypes >> n & 1) == 0) continue;
    const ist__dtype *dtype = ist__dtype_at(n);
    for (int layout = 0; layout < SAMPLE_LAYOUTS; layout++) {
      for (int way = 0; way < 6; way++) {
        bool padded = way >= 3;
        if (padded && dtype->bits >= 8) continue;
        sample_make(&t.from, (DLDataType){dtype->code, dtype->bits, 1},
                    (sample_layout)layout, padded, 7);
        t.options = (ist_options){.struct_size = sizeof t.options,
                                  .copy = (ist_copy)(way % 3)};
        snprintf(t.text, sizeof t.text, "%s, %s, way %d", dtype->name,
                 sample_layout_name((sample_layout)layout), way);
        cross(&t);
      }
    }
  }
  ist__context_set_call_hook(t.bench.context, NULL, NULL);
  bench_close(&t.bench);
}

static void receipts__tell_of_every_copy(void **state) {
  cross_all(*state, NULL);
}

static void receipts__tell_of_every_copy_of_a_cards(void **state) {
  (void)state;
  cross_all("lying", "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_PLUGIN(receipts__tell_of_every_copy),
      cmocka_unit_test(receipts__tell_of_every_copy_of_a_cards),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
