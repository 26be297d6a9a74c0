// SPDX-License-Identifier: Apache-2.0
// run_test.c: programs take what they say they take, give tensors, and leave
// nothing behind when they fail.

#include "support/fake_backend.h"
#include "support/producer.h"

typedef struct runner {
  counted_context c;
  fake_backend fake;
  ist_backend *backend;
  ist_program *program;
} runner;

static void begin(runner *r, bool addressable) {
  counted_context_begin(&r->c);
  fake_backend_init(&r->fake, addressable);
  ist_error err;
  assert_ok(ist_backend_create(r->c.context, &r->fake.ops, &r->fake,
                               &r->backend, &err),
            err);
  assert_ok(ist_program_compile(ist_backend_device(r->backend, 0), "add", 3,
                                NULL, &r->program, &err),
            err);
}

static void end(runner *r) {
  ist_program_release(r->program);
  ist_backend_release(r->backend);
  assert_int_equal(r->fake.programs, 0);
  assert_int_equal(r->fake.buffers, 0);
  assert_int_equal(r->fake.loans, 0);
  assert_int_equal(r->fake.closed, 1);
  counted_context_end(&r->c);
}

// A host tensor over four floats of the caller.
static ist_tensor *wrap(runner *r, float *memory, int64_t stride) {
  int64_t shape = 4;
  DLTensor view = {.data = memory,
                   .device = {kDLCPU, 0},
                   .ndim = 1,
                   .dtype = {kDLFloat, 32, 1},
                   .shape = &shape,
                   .strides = &stride};
  ist_tensor *t;
  ist_error err;
  assert_ok(ist_tensor_wrap(r->c.context, &view, NULL, NULL, &t, &err), err);
  return t;
}

static ist_code run(runner *r, ist_tensor *a, ist_tensor *b, ist_tensor **out,
                    ist_receipt *receipts, ist_error *err) {
  ist_tensor *inputs[] = {a, b};
  ist_run request = {.struct_size = sizeof request,
                     .inputs = inputs,
                     .input_count = 2,
                     .outputs = out,
                     .output_count = 1,
                     .receipts = receipts};
  return ist_program_run(r->program, &request, err);
}

static void run__gives_values_and_a_receipt_for_each_input(void **state) {
  (void)state;
  for (int addressable = 0; addressable < 2; addressable++) {
    runner r;
    begin(&r, addressable);
    _Alignas(64) float x[4] = {1, 2, 3, 4};
    _Alignas(64) float y[8] = {0, 10, 20, 30, 40, 50, 60, 70};
    ist_tensor *a = wrap(&r, x, 1), *b = wrap(&r, y + 7, -2), *sum;
    ist_receipt receipts[2] = {{.struct_size = sizeof(ist_receipt)},
                               {.struct_size = sizeof(ist_receipt)}};
    ist_error err;
    assert_ok(run(&r, a, b, &sum, receipts, &err), err);
    assert_int_equal(receipts[0].route,
                     addressable ? IST_ROUTE_ALIAS : IST_ROUTE_COPY);
    assert_int_equal(receipts[1].route,
                     addressable ? IST_ROUTE_COPY : IST_ROUTE_STAGE);
    float got[4];
    int64_t shape = 4;
    DLTensor into = {.data = got,
                     .device = {kDLCPU, 0},
                     .ndim = 1,
                     .dtype = {kDLFloat, 32, 1},
                     .shape = &shape};
    assert_ok(ist_tensor_copy_into(sum, &into, NULL, NULL, &err), err);
    const float want[4] = {71, 52, 33, 14};
    assert_memory_equal(got, want, sizeof want);
    ist_tensor_release(sum);
    ist_tensor_release(a);
    ist_tensor_release(b);
    end(&r);
  }
}

// A caller built with an older, shorter receipt: its array is stepped through
// by its own size.
static void run__writes_no_receipt_past_a_shorter_one(void **state) {
  (void)state;
  runner r;
  begin(&r, true);
  _Alignas(64) float x[4] = {1, 2, 3, 4};
  ist_tensor *a = wrap(&r, x, 1), *out;
  enum {
    shorter = offsetof(ist_receipt, bytes_moved)
  };
  _Alignas(8) char receipts[3 * shorter];
  memset(receipts, 0x5A, sizeof receipts);
  for (size_t i = 0; i < 2; i++) {
    memcpy(receipts + i * shorter, &(size_t){shorter}, sizeof(size_t));
  }
  ist_error err;
  assert_ok(run(&r, a, a, &out, (ist_receipt *)(void *)receipts, &err), err);
  for (size_t i = 0; i < 2; i++) {
    ist_route route;
    memcpy(&route, receipts + i * shorter + offsetof(ist_receipt, route),
           sizeof route);
    assert_int_equal(route, IST_ROUTE_ALIAS);
  }
  for (size_t i = 2 * shorter; i < sizeof receipts; i++) {
    assert_int_equal(receipts[i], 0x5A);
  }
  ist_tensor_release(out);
  ist_tensor_release(a);
  end(&r);
}

// Plugins compare byte sizes only: an int32 tensor would run as float32.
static void run__refuses_other_dtypes_and_shapes_of_equal_size(void **state) {
  (void)state;
  runner r;
  begin(&r, true);
  ist_spec spec = {.struct_size = sizeof spec,
                   .dtype = {kDLInt, 32, 1},
                   .ndim = 1,
                   .shape = {4}};
  ist_tensor *ints, *square, *out;
  ist_error err;
  assert_ok(ist_tensor_empty(r.c.context, &spec, 0, &ints, &err), err);
  spec.dtype = (DLDataType){kDLFloat, 32, 1};
  spec.ndim = 2;
  spec.shape[0] = spec.shape[1] = 2;
  assert_ok(ist_tensor_empty(r.c.context, &spec, 0, &square, &err), err);
  ist_code code = run(&r, ints, ints, &out, NULL, &err);
  assert_refused(code, IST_ERR_DTYPE_MISMATCH, err, "int32");
  assert_null(out);
  code = run(&r, square, square, &out, NULL, &err);
  assert_refused(code, IST_ERR_SHAPE_MISMATCH, err, "[2,2]");
  assert_null(out);
  ist_tensor_release(ints);
  ist_tensor_release(square);
  end(&r);
}

static void run__refuses_another_number_of_arguments(void **state) {
  (void)state;
  runner r;
  begin(&r, true);
  ist_tensor *out = NULL;
  ist_run request = {
      .struct_size = sizeof request, .outputs = &out, .output_count = 1};
  ist_error err;
  ist_code code = ist_program_run(r.program, &request, &err);
  assert_refused(code, IST_ERR_ARITY, err, "needs 2 and 1");
  end(&r);
}

static void run__leaves_nothing_behind_when_a_runtime_lies(void **state) {
  (void)state;
  for (int lie = 0; lie < 3; lie++) {
    runner r;
    begin(&r, true);
    _Alignas(64) float x[4] = {1, 2, 3, 4};
    ist_tensor *a = wrap(&r, x, 1), *on_device, *out;
    ist_error err;
    assert_ok(ist_tensor_move(a, ist_backend_device(r.backend, 0), NULL,
                              &on_device, NULL, &err),
              err);
    if (lie == 0) r.fake.gives_nothing = true;
    if (lie == 1) r.fake.fails_but_gives = true;
    if (lie == 2) r.fake.tells_ndim = true;
    ist_receipt receipts[2] = {{.struct_size = sizeof(ist_receipt)},
                               {.struct_size = sizeof(ist_receipt)}};
    ist_code code = run(&r, on_device, on_device, &out, receipts, &err);
    assert_int_not_equal(code, IST_OK);
    assert_int_equal(err.code, code);
    assert_null(out);
    assert_int_equal(receipts[0].route, IST_ROUTE_REFUSE);
    assert_int_equal(receipts[0].reason_count, 0);
    ist_tensor_release(on_device);
    ist_tensor_release(a);
    end(&r);
  }
}

static void compile__tells_when_a_backend_runs_no_programs(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  ist_program *program;
  ist_error err;
  ist_code code = ist_program_compile(
      ist_context_host(c.context), "x", 1,
      &(ist_program_options){.struct_size = sizeof(ist_program_options),
                             .name = "x.mlir"},
      &program, &err);
  assert_refused(code, IST_ERR_NO_PROGRAMS, err, "x.mlir");
  assert_null(program);
  counted_context_end(&c);
}

static void program__outlives_the_handle_of_its_backend(void **state) {
  (void)state;
  runner r;
  begin(&r, true);
  ist_backend_release(r.backend);
  ist_context_release(r.c.context);
  assert_int_equal(ist_program_input_count(r.program), 2);
  ist_spec spec = {.struct_size = sizeof spec};
  ist_error err;
  assert_ok(ist_program_input(r.program, 1, &spec, &err), err);
  assert_int_equal(spec.shape[0], 4);
  assert_ok(ist_program_output(r.program, 0, &spec, &err), err);
  ist_code code = ist_program_output(r.program, 1, &spec, &err);
  assert_refused(code, IST_ERR_ARGUMENT, err, "1 of 1");
  ist_program_release(r.program);
  assert_int_equal(r.fake.closed, 1);
  assert_int_equal(atomic_load(&r.c.counter.live), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(run__gives_values_and_a_receipt_for_each_input),
      cmocka_unit_test(run__writes_no_receipt_past_a_shorter_one),
      cmocka_unit_test(run__refuses_other_dtypes_and_shapes_of_equal_size),
      cmocka_unit_test(run__refuses_another_number_of_arguments),
      cmocka_unit_test(run__leaves_nothing_behind_when_a_runtime_lies),
      cmocka_unit_test(compile__tells_when_a_backend_runs_no_programs),
      cmocka_unit_test(program__outlives_the_handle_of_its_backend),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
