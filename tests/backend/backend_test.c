// SPDX-License-Identifier: Apache-2.0
// backend_test.c: the dispatch refuses tables and answers that cannot be, and
// closes a runtime once, after all that holds it.

#include "backend/backend.h"

#include "support/fake_backend.h"
#include "support/producer.h"

static ist_code open_fake(ist_context *context, fake_backend *fake,
                          ist_backend **out, ist_error *err) {
  return ist_backend_create(context, &fake->ops, fake, out, err);
}

static void create__refuses_a_table_that_cannot_be(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  for (int fault = 0; fault < 11; fault++) {
    fake_backend fake;
    fake_backend_init(&fake, true);
    if (fault == 0) fake.ops.abi = 2;
    if (fault == 1) fake.ops.copy_in = NULL;
    if (fault == 2) fake.ops.reclaim = NULL;
    if (fault == 3) fake.ops.execute = NULL;
    if (fault == 4) fake.ops.lend = NULL;
    if (fault == 5) fake.ops.adopt = NULL;
    if (fault == 6) fake.memory.capability.alignment = 48;
    if (fault == 7) fake.memory.kind = NULL;
    if (fault == 8) fake.device.memory_count = 0;
    if (fault == 9) fake.device.default_memory = 1;
    if (fault == 10) fake.memory.capability.can |= IST_CAN_PEER;
    ist_backend *backend = (ist_backend *)&fake;
    ist_error err;
    ist_code code = open_fake(c.context, &fake, &backend, &err);
    assert_refused(code, IST_ERR_BACKEND_ABI, err, "fake");
    assert_null(backend);
    assert_int_equal(fake.closed, 0);
  }
  counted_context_end(&c);
}

// A table of an older author ends before the slots that came later.
static void create__takes_slots_beyond_struct_size_as_absent(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  fake_backend fake;
  fake_backend_init(&fake, false);
  fake.ops.struct_size = offsetof(ist_backend_ops, lend);
  ist_backend *backend;
  ist_error err;
  assert_ok(open_fake(c.context, &fake, &backend, &err), err);
  ist_backend_info info = {.struct_size = sizeof info};
  assert_ok(ist_backend_describe(backend, &info, &err), err);
  assert_false(info.runs_programs);
  ist_backend_release(backend);
  assert_int_equal(fake.closed, 1);
  counted_context_end(&c);
}

// The arrays of an author built with a shorter struct are stepped through by
// its size, not by ours.
static void create__reads_shorter_structs_of_older_authors(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  fake_backend fake;
  fake_backend_init(&fake, false);
  enum {
    shorter = offsetof(ist_memory_info, capability) + 16
  };
  _Alignas(8) char memories[2 * shorter];
  const char *kinds[] = {"device", "pinned_host"};
  for (size_t i = 0; i < 2; i++) {
    ist_memory_info info = fake.memory;
    info.struct_size = shorter;
    info.kind = kinds[i];
    info.capability.struct_size = 16;
    memcpy(memories + i * shorter, &info, shorter);
  }
  fake.device.memories = (const ist_memory_info *)(const void *)memories;
  fake.device.memory_count = 2;
  ist_backend *backend;
  ist_error err;
  ist_code code = open_fake(c.context, &fake, &backend, &err);
  // What the author's struct does not hold is zero: no alignment at all.
  assert_refused(code, IST_ERR_BACKEND_ABI, err, "alignment");
  counted_context_end(&c);
}

static void backend__closes_once_after_its_last_tensor(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  fake_backend fake;
  fake_backend_init(&fake, true);
  ist_backend *backend;
  ist_error err;
  assert_ok(open_fake(c.context, &fake, &backend, &err), err);
  producer s;
  producer_init_dense(&s);
  ist_tensor *t;
  assert_ok(ist_tensor_import(ist_backend_device(backend, 0), &s.versioned,
                              NULL, &t, NULL, &err),
            err);
  ist_context_release(c.context);
  ist_backend_release(backend);
  assert_int_equal(fake.closed, 0);
  ist_tensor_release(t);
  assert_int_equal(fake.closed, 1);
  assert_int_equal(fake.buffers, 0);
  assert_int_equal(s.deleted, 1);
  assert_int_equal(atomic_load(&c.counter.live), 0);
  producer_free(&s);
}

static void import_with_lie(fake_backend *fake, ist_code wanted,
                            const char *words) {
  counted_context c;
  counted_context_begin(&c);
  ist_backend *backend;
  ist_error err;
  assert_ok(open_fake(c.context, fake, &backend, &err), err);
  producer s;
  producer_init_dense(&s);
  ist_tensor *t;
  ist_code code = ist_tensor_import(ist_backend_device(backend, 0),
                                    &s.versioned, NULL, &t, NULL, &err);
  assert_refused(code, wanted, err, words);
  assert_null(t);
  assert_int_equal(s.deleted, 0);
  assert_int_equal(fake->buffers, 0);
  ist_backend_release(backend);
  producer_free(&s);
  counted_context_end(&c);
}

static void dispatch__refuses_success_without_a_buffer(void **state) {
  (void)state;
  for (int addressable = 0; addressable < 2; addressable++) {
    fake_backend fake;
    fake_backend_init(&fake, addressable);
    fake.gives_nothing = true;
    import_with_lie(&fake, IST_ERR_BACKEND_ABI, "fake");
  }
}

static void dispatch__drops_what_a_failed_slot_left_behind(void **state) {
  (void)state;
  for (int addressable = 0; addressable < 2; addressable++) {
    fake_backend fake;
    fake_backend_init(&fake, addressable);
    fake.fails_but_gives = true;
    import_with_lie(&fake, IST_ERR_BUFFER, "luck");
  }
}

static ist_code copy_out_that_mumbles(void *self, void *buffer, void *target,
                                      uint64_t nbytes, ist_error *err) {
  (void)self, (void)buffer, (void)target, (void)nbytes;
  memset(err, 'x', sizeof *err);
  return IST_ERR_PLUGIN;
}

static ist_code copy_out_without_a_code(void *self, void *buffer, void *target,
                                        uint64_t nbytes, ist_error *err) {
  (void)self, (void)buffer, (void)target, (void)nbytes, (void)err;
  return (ist_code)7;
}

static ist_code copy_out_without_words(void *self, void *buffer, void *target,
                                       uint64_t nbytes, ist_error *err) {
  (void)self, (void)buffer, (void)target, (void)nbytes, (void)err;
  return IST_ERR_BUFFER;
}

// Exports a copy through a copy_out that fails in its own way.
static void export_with(ist_code (*copy_out)(void *, void *, void *, uint64_t,
                                             ist_error *),
                        ist_code wanted, const char *words) {
  counted_context c;
  counted_context_begin(&c);
  fake_backend fake;
  fake_backend_init(&fake, false);
  fake.ops.copy_out = copy_out;
  ist_backend *backend;
  ist_error err;
  assert_ok(open_fake(c.context, &fake, &backend, &err), err);
  producer s;
  producer_init_dense(&s);
  ist_tensor *t;
  assert_ok(ist_tensor_import(ist_backend_device(backend, 0), &s.versioned,
                              NULL, &t, NULL, &err),
            err);
  DLManagedTensorVersioned *out;
  ist_code code = ist_tensor_export(t, NULL, &out, NULL, &err);
  assert_non_null(memchr(err.message, '\0', sizeof err.message));
  assert_refused(code, wanted, err, words);
  assert_null(out);
  ist_tensor_release(t);
  ist_backend_release(backend);
  producer_free(&s);
  counted_context_end(&c);
}

static void slots__fail_with_one_line_and_a_code_of_isthmus(void **state) {
  (void)state;
  export_with(copy_out_that_mumbles, IST_ERR_PLUGIN, "xxx");
  export_with(copy_out_without_a_code, IST_ERR_BACKEND_ABI, "7");
  export_with(copy_out_without_words, IST_ERR_BUFFER, "copy_out");
}

static ist_code describe_without_words(void *self, ist_backend_facts *out,
                                       ist_error *err) {
  (void)self, (void)out, (void)err;
  return IST_ERR_PLUGIN;
}

static void describe__leaves_nothing_of_what_err_held(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  fake_backend fake;
  fake_backend_init(&fake, true);
  fake.ops.describe = describe_without_words;
  ist_backend *backend;
  ist_error err;
  memset(&err, 'y', sizeof err);
  ist_code code = open_fake(c.context, &fake, &backend, &err);
  assert_refused(code, IST_ERR_PLUGIN, err, "describe failed without");
  assert_null(backend);
  counted_context_end(&c);
}

// The slow path is mandatory: what is not lent is copied, or refused, by the
// loan's own fault, when only a view is wanted.
static void export_without_loan(fake_backend *fake) {
  counted_context c;
  counted_context_begin(&c);
  fake->memory.capability.can &= ~(uint32_t)IST_CAN_ADOPT;
  ist_backend *backend;
  ist_error err;
  assert_ok(open_fake(c.context, fake, &backend, &err), err);
  producer s;
  producer_init_dense(&s);
  ist_tensor *t;
  assert_ok(ist_tensor_import(ist_backend_device(backend, 0), &s.versioned,
                              NULL, &t, NULL, &err),
            err);
  DLManagedTensorVersioned *out;
  ist_receipt receipt = {.struct_size = sizeof receipt};
  assert_ok(ist_tensor_export(t, NULL, &out, &receipt, &err), err);
  assert_int_equal(receipt.route, IST_ROUTE_COPY);
  assert_values_of(&out->dl_tensor, &s);
  out->deleter(out);
  ist_options never = {.struct_size = sizeof never, .copy = IST_COPY_NEVER};
  ist_code code = ist_tensor_export(t, &never, &out, NULL, &err);
  assert_refused(code, IST_ERR_BACKEND_ABI, err, "needs an address");
  assert_ok(ist_tensor_wait(t, &err), err);
  assert_null(ist_tensor_view(t)->data);
  assert_int_equal(fake->loans, 0);
  ist_tensor_release(t);
  ist_backend_release(backend);
  producer_free(&s);
  counted_context_end(&c);
}

static void lend__that_gives_no_address_is_done_without(void **state) {
  (void)state;
  fake_backend fake;
  fake_backend_init(&fake, true);
  fake.lends_nothing = true;
  export_without_loan(&fake);
}

static ist_code give_address(ist_loan *out, size_t step, uint64_t offset) {
  static _Alignas(64) char memory[1024];
  out->data = memory + step;
  out->byte_offset = offset;
  return IST_OK;
}

static ist_code lend_unaligned(void *self, void *buffer, ist_loan *out,
                               ist_error *err) {
  (void)self, (void)buffer, (void)err;
  return give_address(out, 1, 0);
}

static ist_code lend_unaligned_offset(void *self, void *buffer, ist_loan *out,
                                      ist_error *err) {
  (void)self, (void)buffer, (void)err;
  return give_address(out, 0, 2);
}

static ist_code lend_wrapped(void *self, void *buffer, ist_loan *out,
                             ist_error *err) {
  (void)self, (void)buffer, (void)err;
  return give_address(out, 0, UINT64_MAX - 3);
}

// Element 0 is in the address space, the last one beyond its end.
static ist_code lend_past_the_end(void *self, void *buffer, ist_loan *out,
                                  ist_error *err) {
  (void)self, (void)buffer, (void)err;
  give_address(out, 0, 0);
  out->byte_offset = UINT64_MAX - (uint64_t)(uintptr_t)out->data - 7;
  return IST_OK;
}

static void reclaim_nothing(void *self, void *buffer) {
  (void)self, (void)buffer;
}

static void lend__of_an_address_that_cannot_be_is_done_without(void **state) {
  (void)state;
  ist_code (*const lies[])(void *, void *, ist_loan *, ist_error *) = {
      lend_unaligned, lend_unaligned_offset, lend_wrapped, lend_past_the_end};
  for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
    fake_backend fake;
    fake_backend_init(&fake, true);
    fake.ops.lend = lies[i];
    fake.ops.reclaim = reclaim_nothing;
    export_without_loan(&fake);
  }
}

static void allocate__gives_null_where_it_cannot(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  assert_null(ist_allocate(NULL, 8, 8));
  assert_null(ist_allocate(c.context, 8, 0));
  assert_null(ist_allocate(c.context, 8, 48));
  ist_deallocate(NULL, NULL);
  counted_context_end(&c);
}

static void lend__is_not_asked_for_a_copy(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  fake_backend fake;
  fake_backend_init(&fake, true);
  fake.memory.capability.can &= ~(uint32_t)IST_CAN_ADOPT;
  ist_backend *backend;
  ist_error err;
  assert_ok(open_fake(c.context, &fake, &backend, &err), err);
  producer s;
  producer_init_dense(&s);
  ist_tensor *t;
  assert_ok(ist_tensor_import(ist_backend_device(backend, 0), &s.versioned,
                              NULL, &t, NULL, &err),
            err);
  ist_options always = {.struct_size = sizeof always, .copy = IST_COPY_ALWAYS};
  DLManagedTensorVersioned *out;
  assert_ok(ist_tensor_export(t, &always, &out, NULL, &err), err);
  assert_values_of(&out->dl_tensor, &s);
  assert_int_equal(fake.lends, 0);
  out->deleter(out);
  ist_tensor_release(t);
  ist_backend_release(backend);
  producer_free(&s);
  counted_context_end(&c);
}

static void lend__is_asked_once_for_many_exports(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  fake_backend fake;
  fake_backend_init(&fake, true);
  fake.memory.capability.can &= ~(uint32_t)IST_CAN_ADOPT;
  ist_backend *backend;
  ist_error err;
  assert_ok(open_fake(c.context, &fake, &backend, &err), err);
  producer s;
  producer_init_dense(&s);
  ist_tensor *t;
  assert_ok(ist_tensor_import(ist_backend_device(backend, 0), &s.versioned,
                              NULL, &t, NULL, &err),
            err);
  assert_null(ist_tensor_view(t)->data);
  DLManagedTensorVersioned *out[3];
  for (int i = 0; i < 3; i++) {
    assert_ok(ist_tensor_export(t, NULL, &out[i], NULL, &err), err);
    assert_ptr_equal(out[i]->dl_tensor.data, ist_tensor_view(t)->data);
  }
  ist_tensor_release(t);
  assert_int_equal(fake.lends, 1);
  assert_int_equal(fake.loans, 1);
  for (int i = 0; i < 3; i++) out[i]->deleter(out[i]);
  assert_int_equal(fake.loans, 0);
  assert_int_equal(fake.buffers, 0);
  ist_backend_release(backend);
  producer_free(&s);
  counted_context_end(&c);
}

static void open__names_what_it_needs(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  ist_backend *backend;
  ist_error err;
  ist_code code = ist_backend_open(c.context, "tpu", NULL, &backend, &err);
  assert_refused(code, IST_ERR_NO_BACKEND, err, "host, template or pjrt");
  ist_option option = {.name = "devices", .kind = IST_OPTION_INT64, .int64 = 0};
  ist_backend_options options = {
      .struct_size = sizeof options, .options = &option, .option_count = 1};
  code = ist_backend_open(c.context, "template", &options, &backend, &err);
  assert_refused(code, IST_ERR_OPTION, err, "devices");
  code = ist_backend_open(c.context, "host", &options, &backend, &err);
  assert_refused(code, IST_ERR_OPTION, err, "host");
  assert_ok(ist_backend_open(c.context, "host", NULL, &backend, &err), err);
  ist_backend_release(backend);
  counted_context_end(&c);
}

static void describe__fits_callers_of_other_versions(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  const ist_device *host = ist_context_host(c.context);
  // An older caller's struct ends early: what lies behind it is not written.
  struct {
    ist_device_info info;
    char after;
  } caller = {.info = {.struct_size = offsetof(ist_device_info, index)}};
  caller.info.index = 12345;
  ist_error err;
  assert_ok(ist_device_describe(host, &caller.info, &err), err);
  assert_string_equal(caller.info.name, "host");
  assert_int_equal(caller.info.index, 12345);
  ist_memory_info memory = {.struct_size = sizeof memory};
  assert_ok(ist_device_memory(host, 0, &memory, &err), err);
  ist_code code = ist_device_memory(host, 1, &memory, &err);
  assert_refused(code, IST_ERR_NO_MEMORY_KIND, err, "host");
  counted_context_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(create__refuses_a_table_that_cannot_be),
      cmocka_unit_test(create__takes_slots_beyond_struct_size_as_absent),
      cmocka_unit_test(backend__closes_once_after_its_last_tensor),
      cmocka_unit_test(dispatch__refuses_success_without_a_buffer),
      cmocka_unit_test(dispatch__drops_what_a_failed_slot_left_behind),
      cmocka_unit_test(slots__fail_with_one_line_and_a_code_of_isthmus),
      cmocka_unit_test(describe__leaves_nothing_of_what_err_held),
      cmocka_unit_test(lend__that_gives_no_address_is_done_without),
      cmocka_unit_test(lend__of_an_address_that_cannot_be_is_done_without),
      cmocka_unit_test(allocate__gives_null_where_it_cannot),
      cmocka_unit_test(lend__is_not_asked_for_a_copy),
      cmocka_unit_test(create__reads_shorter_structs_of_older_authors),
      cmocka_unit_test(lend__is_asked_once_for_many_exports),
      cmocka_unit_test(open__names_what_it_needs),
      cmocka_unit_test(describe__fits_callers_of_other_versions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
