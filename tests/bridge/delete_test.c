// SPDX-License-Identifier: Apache-2.0
// delete_test.c: a deleted tensor gives its memory up at once, says so whatever
// is asked of it, and is never taken from under another holder.

#include <stdlib.h>

#include "support/fake_backend.h"
#include "support/producer.h"

// The source of a tensor on a device, as ist_tensor_delete finds it.
typedef struct holding {
  counted_context c;
  ist_backend *backend;
  producer s;
  ist_tensor *tensor;
} holding;

static void begin(holding *h, const char *plugin) {
  counted_context_begin(&h->c);
  ist_backend_options options = {.struct_size = sizeof options, .path = plugin};
  ist_error err;
  assert_ok(ist_backend_open(h->c.context, plugin == NULL ? "template" : "pjrt",
                             &options, &h->backend, &err),
            err);
  producer_init_dense(&h->s);
  assert_ok(ist_tensor_import(ist_backend_device(h->backend, 0),
                              &h->s.versioned, NULL, &h->tensor, NULL, &err),
            err);
}

static void end(holding *h) {
  ist_tensor_release(h->tensor);
  ist_backend_release(h->backend);
  counted_context_end(&h->c);
  assert_int_equal(h->s.deleted, 1);
  producer_free(&h->s);
}

static void assert_says_deleted(holding *h) {
  ist_error err;
  assert_refused(ist_tensor_wait(h->tensor, &err), IST_ERR_DELETED, err,
                 "deleted");
  DLManagedTensorVersioned *out;
  for (int copy = IST_COPY_AUTO; copy <= IST_COPY_ALWAYS; copy++) {
    ist_options options = {.struct_size = sizeof options,
                           .copy = (ist_copy)copy};
    ist_code code = ist_tensor_export(h->tensor, &options, &out, NULL, &err);
    assert_refused(code, IST_ERR_DELETED, err, "deleted");
    assert_null(out);
  }
  ist_tensor *moved;
  ist_code code = ist_tensor_move(h->tensor, ist_context_host(h->c.context),
                                  NULL, &moved, NULL, &err);
  assert_refused(code, IST_ERR_DELETED, err, "deleted");
  assert_refused(ist_tensor_delete(h->tensor, &err), IST_ERR_DELETED, err,
                 "deleted");
  assert_null(ist_tensor_view(h->tensor)->data);
}

static void delete__gives_the_source_back_at_once(void **state) {
  (void)state;
  const char *const plugins[] = {NULL, "ISTHMUS_P1", "ISTHMUS_P2",
                                 "ISTHMUS_P3"};
  for (size_t i = 0; i < COUNT_OF(plugins); i++) {
    const char *plugin = plugins[i] != NULL ? getenv(plugins[i]) : NULL;
    if (plugins[i] != NULL && plugin == NULL) {
      print_message("%s is not on this machine\n", plugins[i]);
      continue;
    }
    holding h;
    begin(&h, plugin);
    ist_error err;
    assert_ok(ist_tensor_delete(h.tensor, &err), err);
    if (plugin == NULL) assert_int_equal(h.s.deleted, 1);
    assert_says_deleted(&h);
    end(&h);
  }
}

static void delete__is_refused_while_others_hold_the_tensor(void **state) {
  (void)state;
  holding h;
  begin(&h, NULL);
  DLManagedTensorVersioned *out;
  ist_error err;
  assert_ok(ist_tensor_export(h.tensor, NULL, &out, NULL, &err), err);
  assert_refused(ist_tensor_delete(h.tensor, &err), IST_ERR_ARGUMENT, err,
                 "others hold it");
  assert_values_of(&out->dl_tensor, &h.s);
  out->deleter(out);
  ist_tensor_retain(h.tensor);
  assert_refused(ist_tensor_delete(h.tensor, &err), IST_ERR_ARGUMENT, err,
                 "others hold it");
  ist_tensor_release(h.tensor);
  assert_ok(ist_tensor_delete(h.tensor, &err), err);
  assert_int_equal(ist_tensor_delete(NULL, NULL), IST_ERR_ARGUMENT);
  end(&h);
}

// A backend without the slot has its buffer released, its loan ended first.
static void delete__ends_the_loan_before_the_memory_goes(void **state) {
  (void)state;
  counted_context c;
  counted_context_begin(&c);
  fake_backend fake;
  fake_backend_init(&fake, true);
  fake.memory.capability.can &= ~(uint32_t)IST_CAN_ADOPT;
  ist_backend *backend;
  ist_error err;
  assert_ok(ist_backend_create(c.context, &fake.ops, &fake, &backend, &err),
            err);
  producer s;
  producer_init_dense(&s);
  ist_tensor *t;
  assert_ok(ist_tensor_import(ist_backend_device(backend, 0), &s.versioned,
                              NULL, &t, NULL, &err),
            err);
  assert_ok(ist_tensor_wait(t, &err), err);
  assert_int_equal(fake.loans, 1);
  assert_ok(ist_tensor_delete(t, &err), err);
  assert_int_equal(fake.loans, 0);
  assert_int_equal(fake.buffers, 0);
  ist_tensor_release(t);
  ist_backend_release(backend);
  producer_free(&s);
  counted_context_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(delete__gives_the_source_back_at_once),
      cmocka_unit_test(delete__is_refused_while_others_hold_the_tensor),
      cmocka_unit_test(delete__ends_the_loan_before_the_memory_goes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
