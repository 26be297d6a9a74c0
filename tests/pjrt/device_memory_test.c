// SPDX-License-Identifier: Apache-2.0
// A device that has run out of memory says so with its own code, how its memory
// is used and what to do, wherever it allocates.

#include <isthmus/pjrt.h>
#include <stdio.h>

#include "support/pjrt_support.h"

static const DLDataType f32 = {kDLFloat, 32, 1};

// Memory that the host cannot read: what goes there is copied by the plugin.
static const char far[] = "devices=2";

// Four kilobytes of float32, off the alignment of views by one element.
static ist_code bring_in(pjrt_bench *bench, ist_tensor **out) {
  static _Alignas(64) float data[1025];
  int64_t shape[1] = {1024};
  DLTensor view = {data + 1, {kDLCPU, 0}, 1, f32, shape, NULL, 0};
  ist_tensor *source = NULL;
  bench_ok(bench, ist_tensor_wrap(bench->context, &view, NULL, NULL, &source,
                                  &bench->err));
  ist_code code = ist_tensor_move(source, bench_device(bench, 0), NULL, out,
                                  NULL, &bench->err);
  ist_tensor_release(source);
  return code;
}

static void assert_says(const pjrt_bench *bench, const char *words) {
  if (strstr(bench->err.message, words) == NULL) {
    fail_msg("\"%s\" does not say \"%s\"", bench->err.message, words);
  }
}

static void assert_out(const pjrt_bench *bench, ist_code code) {
  assert_refused(code, IST_ERR_OUT_OF_DEVICE_MEMORY, bench->err,
                 "is out of memory: ");
  assert_int_equal(bench->err.native, 8);
  assert_says(bench, "pjrt:lying: ");
  assert_says(bench, "; needs tensors that are released");
}

static void copy_in__tells_what_was_asked_and_what_is_used(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", far);
  ist_tensor *first = NULL, *second = NULL;
  bench.lying.set_rules("room=6000");
  bench_ok(&bench, bring_in(&bench, &first));
  assert_out(&bench, bring_in(&bench, &second));
  assert_null(second);
  assert_says(&bench, "asked for 4096, in use 4096, limit 6000, peak ");
  // What it says to do helps.
  ist_tensor_release(first);
  bench_ok(&bench, bring_in(&bench, &second));
  ist_tensor_release(second);
  bench_close(&bench);
}

static void statistics__are_told_as_far_as_they_are_set(void **state) {
  (void)state;
  static const struct {
    const char *rules, *says, *hides;
  } cases[] = {
      {"room=100 stats=unset", "in use 0, peak", "limit"},
      {"room=100 stats=negative", "asked for 4096, peak", "in use"},
      {"room=100 unimplemented=Device_MemoryStats",
       "asked for 4096, the plugin has no statistics", "limit"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    pjrt_bench bench;
    bench_open(&bench, "lying", far);
    ist_tensor *tensor = NULL;
    bench.lying.set_rules(cases[i].rules);
    assert_out(&bench, bring_in(&bench, &tensor));
    const char *known = strstr(bench.err.message, "(bytes: ");
    assert_non_null(known);
    assert_says(&bench, cases[i].says);
    assert_null(strstr(known, cases[i].hides));
    bench_close(&bench);
  }
}

static ist_code compile(pjrt_bench *bench, ist_program **out) {
  static const char text[] = "lying.add_one_f32 11 1024";
  ist_program_options how = {.struct_size = sizeof how, .name = "large"};
  return ist_program_compile(bench_device(bench, 0), text, sizeof text - 1,
                             &how, out, &bench->err);
}

static void run__tells_it_too_and_leaves_its_inputs(void **state) {
  (void)state;
  pjrt_bench bench;
  bench_open(&bench, "lying", far);
  ist_program *program = NULL;
  ist_tensor *in = NULL, *out = NULL;
  bench_ok(&bench, compile(&bench, &program));
  bench_ok(&bench, bring_in(&bench, &in));
  ist_run how = {.struct_size = sizeof how,
                 .inputs = &in,
                 .input_count = 1,
                 .outputs = &out,
                 .output_count = 1};
  bench.lying.set_rules("room=5000");
  assert_out(&bench, ist_program_run(program, &how, &bench.err));
  assert_null(out);
  assert_says(&bench, "in use 4096, limit 5000");
  bench.lying.set_rules("");
  bench_ok(&bench, ist_program_run(program, &how, &bench.err));
  ist_tensor_release(out);
  ist_tensor_release(in);
  ist_program_release(program);
  bench_close(&bench);
}

// Every slot that allocates, whatever it is for.
static void every_slot__that_has_no_room_gets_the_code(void **state) {
  (void)state;
  static const char *const slots[] = {"Client_BufferFromHostBuffer",
                                      "Client_CreateViewOfDeviceBuffer",
                                      "Client_Compile"};
  for (size_t i = 0; i < COUNT_OF(slots); i++) {
    pjrt_bench bench;
    bool views = strstr(slots[i], "View") != NULL;
    bench_open(&bench, "lying", views ? "addressable=1" : far);
    char rules[96];
    snprintf(rules, sizeof rules, "%s exhausted=%s",
             views ? "addressable=1" : "", slots[i]);
    bench.lying.set_rules(rules);
    ist_tensor *tensor = NULL;
    ist_program *program = NULL;
    assert_out(&bench, strstr(slots[i], "Compile") != NULL
                           ? compile(&bench, &program)
                           : bring_in(&bench, &tensor));
    assert_null(tensor);
    assert_null(program);
    bench_close(&bench);
  }
}

static void memory_stats__are_public(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_pjrt_memory_use use = {.struct_size = sizeof use};
  ist_code code =
      ist_pjrt_memory_stats(bench_device(&bench, 0), &use, &bench.err);
  if (strcmp(*state, "lying") == 0) {
    bench_ok(&bench, code);
    assert_int_equal(use.bytes_in_use, 0);
    assert_int_equal(use.bytes_limit, 1 << 30);
    assert_int_equal(use.largest_free_block_bytes, -1);
  } else {
    // None of the CPU plugins keeps any.
    assert_refused(code, IST_ERR_PLUGIN_SLOT, bench.err, "MemoryStats");
  }
  assert_refused(
      ist_pjrt_memory_stats(ist_context_host(bench.context), &use, &bench.err),
      IST_ERR_ARGUMENT, bench.err, "on no PJRT plugin");
  use.struct_size = 0;
  assert_refused(
      ist_pjrt_memory_stats(bench_device(&bench, 0), &use, &bench.err),
      IST_ERR_ARGUMENT, bench.err, "no struct_size");
  bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(copy_in__tells_what_was_asked_and_what_is_used),
      cmocka_unit_test(statistics__are_told_as_far_as_they_are_set),
      cmocka_unit_test(run__tells_it_too_and_leaves_its_inputs),
      cmocka_unit_test(every_slot__that_has_no_room_gets_the_code),
      ON_EACH_PLUGIN(memory_stats__are_public),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
