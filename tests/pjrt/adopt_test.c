// SPDX-License-Identifier: Apache-2.0
// A host program's live client and buffers as backend and tensors, and ours as
// the host's: who destroys what, when the host is told, what is refused. The
// wish is jax#40038.

#include "backend/backend.h"
#include "backend/pjrt/pjrt_backend.h"
#include "support/pjrt_host.h"

static const DLDataType f32 = {kDLFloat, 32, 1};

static void assert_exports_values(pjrt_host *host, ist_tensor *tensor) {
  DLManagedTensorVersioned *out = NULL;
  bench_ok(&host->bench,
           ist_tensor_export(tensor, NULL, &out, NULL, &host->bench.err));
  const DLTensor *t = &out->dl_tensor;
  assert_int_equal(t->ndim, 2);
  assert_int_equal(t->shape[0] * 10 + t->shape[1], 23);
  const float *values =
      (const float *)(const void *)((const char *)t->data + t->byte_offset);
  for (int i = 0; i < 6; i++) assert_true(values[i] == (float)i + 0.5f);
  out->deleter(out);
}

static ist_tensor *adopt(pjrt_host *host, PJRT_Buffer *buffer,
                         ist_pjrt_ownership ownership) {
  ist_tensor *tensor = NULL;
  ist_pjrt_buffer_options how = {.struct_size = sizeof how,
                                 .ownership = ownership};
  bench_ok(&host->bench,
           ist_pjrt_buffer_adopt(host->bench.backend, buffer, &how, &tensor,
                                 &host->bench.err));
  return tensor;
}

// A tensor that isthmus makes on the adopted client.
static ist_tensor *place(pjrt_host *host) {
  static _Alignas(64) float data[6];
  for (int i = 0; i < 6; i++) data[i] = (float)i + 0.5f;
  int64_t shape[2] = {2, 3};
  DLTensor view = {data, {kDLCPU, 0}, 2, f32, shape, NULL, 0};
  ist_tensor *source = NULL, *there = NULL;
  ist_error *err = &host->bench.err;
  bench_ok(&host->bench, ist_tensor_wrap(host->bench.context, &view, NULL, NULL,
                                         &source, err));
  bench_ok(&host->bench, ist_tensor_move(source, bench_device(&host->bench, 0),
                                         NULL, &there, NULL, err));
  ist_tensor_release(source);
  return there;
}

// ---- clients

static void borrowed_client__crosses_and_comes_back_once(void **state) {
  pjrt_host host;
  host_open(&host, *state, NULL);
  host_adopt(&host, IST_PJRT_BORROW);
  ist_tensor *tensor = place(&host);
  assert_exports_values(&host, tensor);
  // The backend is let go of first: what is exported holds it.
  DLManagedTensorVersioned *out = NULL;
  bench_ok(&host.bench,
           ist_tensor_export(tensor, NULL, &out, NULL, &host.bench.err));
  ist_backend_release(host.bench.backend);
  host.bench.backend = NULL;
  ist_tensor_release(tensor);
  assert_int_equal(atomic_load(&host.returned), 0);
  out->deleter(out);
  assert_int_equal(atomic_load(&host.returned), 1);
  host_destroy_buffer(&host, host_buffer(&host, 0));  // it lives
  host_close(&host);
  assert_int_equal(atomic_load(&host.returned), 1);
}

static void destroy_client(void *self) {
  pjrt_host *host = self;
  IST_PJRT_ARGS(PJRT_Client_Destroy_Args, destroy);
  destroy.client = host->client;
  host_call(host, IST_SLOT_Client_Destroy, &destroy);
  host->client = NULL;
}

static void borrowed_client__may_be_destroyed_when_it_returns(void **state) {
  pjrt_host host;
  host_open(&host, *state, NULL);
  ist_pjrt_client_options how = {.struct_size = sizeof how,
                                 .release = destroy_client,
                                 .release_self = &host};
  bench_ok(&host.bench,
           ist_pjrt_client_adopt(host.bench.context, host.api, host.client,
                                 &how, &host.bench.backend, &host.bench.err));
  ist_tensor *tensor = place(&host);
  ist_backend_release(host.bench.backend);
  host.bench.backend = NULL;
  assert_non_null(host.client);
  ist_tensor_release(tensor);
  assert_null(host.client);
  host_close(&host);
}

static void taken_client__is_destroyed_with_its_backend(void **state) {
  pjrt_host host;
  host_open(&host, *state, NULL);
  host_adopt(&host, IST_PJRT_TAKE);
  ist_tensor *tensor = place(&host);
  assert_exports_values(&host, tensor);
  ist_tensor_release(tensor);
  host_close(&host);  // which counts the clients of the lying plugin
}

static void release_backend(void *self) {
  ist_backend_release(self);
}

static void client__can_be_adopted_twice_and_from_isthmus(void **state) {
  pjrt_host host;
  host_open(&host, *state, NULL);
  host_adopt(&host, IST_PJRT_BORROW);
  ist_backend *first = host.bench.backend, *second = NULL;
  assert_ptr_equal(ist_pjrt_client(first), host.client);
  assert_ptr_equal(ist_pjrt_api(first), host.api);
  // The second holds the first, whose client it borrows.
  ist_pjrt_client_options how = {.struct_size = sizeof how,
                                 .release = release_backend,
                                 .release_self = first};
  ist_backend_retain(first);
  bench_ok(&host.bench,
           ist_pjrt_client_adopt(host.bench.context, ist_pjrt_api(first),
                                 ist_pjrt_client(first), &how, &second,
                                 &host.bench.err));
  PJRT_Buffer *buffer = host_buffer(&host, 0);
  ist_tensor *one = adopt(&host, buffer, IST_PJRT_BORROW), *two = NULL;
  bench_ok(&host.bench,
           ist_pjrt_buffer_adopt(second, buffer, NULL, &two, &host.bench.err));
  assert_exports_values(&host, one);
  assert_exports_values(&host, two);
  ist_tensor_release(one);
  assert_exports_values(&host, two);
  ist_tensor_release(two);
  host_destroy_buffer(&host, buffer);
  ist_backend_release(second);
  host_close(&host);
}

typedef struct refusal {
  const char *rules;
  ist_code code;
  const char *words;
} refusal;

static void table__of_another_version_is_refused(void **state) {
  (void)state;
  static const refusal cases[] = {
      {"minor=56", IST_ERR_PLUGIN_VERSION, "0.56; needs 0.57"},
      {"major=1", IST_ERR_PLUGIN_VERSION, "1.114; needs 0.57"},
      {"struct_size=16", IST_ERR_NOT_A_PLUGIN, "too short a table"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    pjrt_host host;
    host_open(&host, "lying", "addressable=1");
    PJRT_Api table = *host.api;
    if (i == 0) table.pjrt_api_version.minor_version = 56;
    if (i == 1) table.pjrt_api_version.major_version = 1;
    if (i == 2) table.struct_size = 16;
    ist_pjrt_client_options how = {.struct_size = sizeof how,
                                   .release = host_client_returned,
                                   .release_self = &host};
    ist_backend *backend = (ist_backend *)&host;
    assert_refused(
        ist_pjrt_client_adopt(host.bench.context, &table, host.client, &how,
                              &backend, &host.bench.err),
        cases[i].code, host.bench.err, cases[i].words);
    assert_null(backend);
    assert_int_equal(atomic_load(&host.returned), 0);
    host_close(&host);
  }
}

static void table__may_be_longer_or_shorter_than_ours(void **state) {
  (void)state;
  for (int shorter = 0; shorter < 2; shorter++) {
    pjrt_host host;
    host_open(&host, "lying", "addressable=1");
    struct {
      PJRT_Api table;
      void *more[8];
    } own = {.table = *host.api};
    own.table.struct_size = sizeof own;
    if (shorter) {
      // Without all that came after the first version that is spoken.
      own.table.pjrt_api_version.minor_version = 57;
      own.table.struct_size =
          offsetof(PJRT_Api, slot) + 100 * sizeof own.table.slot[0];
    }
    host.api = &own.table;
    host_adopt(&host, IST_PJRT_BORROW);
    ist_tensor *tensor = place(&host);
    assert_exports_values(&host, tensor);
    ist_tensor_release(tensor);
    host_close(&host);
  }
}

static void client__without_devices_stays_the_hosts(void **state) {
  (void)state;
  pjrt_host host;
  host_open(&host, "lying", "addressable=1 devices=0");
  ist_pjrt_client_options how = {.struct_size = sizeof how,
                                 .ownership = IST_PJRT_TAKE};
  assert_refused(
      ist_pjrt_client_adopt(host.bench.context, host.api, host.client, &how,
                            &host.bench.backend, &host.bench.err),
      IST_ERR_NO_DEVICE, host.bench.err, "needs at least one");
  assert_int_equal(host.bench.lying.live("clients"), 1);
  host_close(&host);
}

static void adoption__refuses_what_is_missing(void **state) {
  (void)state;
  pjrt_host host;
  host_open(&host, "lying", NULL);
  ist_context *context = host.bench.context;
  ist_error *err = &host.bench.err;
  ist_backend *out = NULL;
  assert_int_equal(
      ist_pjrt_client_adopt(NULL, host.api, host.client, NULL, &out, err),
      IST_ERR_ARGUMENT);
  assert_int_equal(
      ist_pjrt_client_adopt(context, NULL, host.client, NULL, &out, err),
      IST_ERR_ARGUMENT);
  assert_int_equal(
      ist_pjrt_client_adopt(context, host.api, NULL, NULL, &out, err),
      IST_ERR_ARGUMENT);
  ist_pjrt_client_options how = {.struct_size = sizeof how, .ownership = 2};
  assert_refused(
      ist_pjrt_client_adopt(context, host.api, host.client, &how, &out, err),
      IST_ERR_ARGUMENT, host.bench.err, "ownership is 2");
  how.ownership = IST_PJRT_TAKE;
  how.release = host_client_returned;
  assert_refused(
      ist_pjrt_client_adopt(context, host.api, host.client, &how, &out, err),
      IST_ERR_ARGUMENT, host.bench.err, "with a release");
  host_adopt(&host, IST_PJRT_BORROW);
  ist_tensor *tensor = NULL;
  assert_int_equal(
      ist_pjrt_buffer_adopt(host.bench.backend, NULL, NULL, &tensor, err),
      IST_ERR_ARGUMENT);
  PJRT_Buffer *buffer = host_buffer(&host, 0);
  const ist_device *device = ist_context_host(context);
  assert_refused(
      ist_pjrt_buffer_adopt(device->backend, buffer, NULL, &tensor, err),
      IST_ERR_ARGUMENT, host.bench.err, "on no PJRT plugin");
  assert_null(ist_pjrt_client(device->backend));
  assert_null(ist_pjrt_api(device->backend));
  assert_null(ist_pjrt_buffer(NULL));
  ist_pjrt_buffer_options odd = {.struct_size = sizeof odd, .grant = 9};
  assert_refused(
      ist_pjrt_buffer_adopt(host.bench.backend, buffer, &odd, &tensor, err),
      IST_ERR_ARGUMENT, host.bench.err, "its grant 9");
  host_destroy_buffer(&host, buffer);
  host_close(&host);
}

// ---- buffers

static void borrowed_buffer__comes_back_once_and_whole(void **state) {
  pjrt_host host;
  host_open(&host, *state, NULL);
  host_adopt(&host, IST_PJRT_BORROW);
  PJRT_Buffer *buffer = host_buffer(&host, 1);
  ist_pjrt_buffer_options how = {.struct_size = sizeof how,
                                 .release = host_client_returned,
                                 .release_self = &host};
  ist_tensor *tensor = NULL;
  bench_ok(&host.bench, ist_pjrt_buffer_adopt(host.bench.backend, buffer, &how,
                                              &tensor, &host.bench.err));
  ist_tensor_info info = {.struct_size = sizeof info};
  bench_ok(&host.bench, ist_tensor_describe(tensor, &info, &host.bench.err));
  assert_ptr_equal(info.device, bench_device(&host.bench, 1));
  assert_int_equal(info.grant, IST_GRANT_IMMUTABLE);
  assert_ptr_equal(ist_pjrt_buffer(tensor), buffer);
  DLManagedTensorVersioned *out = NULL;
  bench_ok(&host.bench,
           ist_tensor_export(tensor, NULL, &out, NULL, &host.bench.err));
  assert_true((out->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0);
  ist_tensor_release(tensor);
  assert_int_equal(atomic_load(&host.returned), 0);
  out->deleter(out);
  assert_int_equal(atomic_load(&host.returned), 1);
  host_assert_values(&host, buffer);
  host_destroy_buffer(&host, buffer);
  host_close(&host);
}

static void taken_buffer__is_destroyed_with_its_tensor(void **state) {
  pjrt_host host;
  host_open(&host, *state, NULL);
  host_adopt(&host, IST_PJRT_BORROW);
  ist_tensor *tensor = adopt(&host, host_buffer(&host, 0), IST_PJRT_TAKE);
  ist_tensor_info info = {.struct_size = sizeof info};
  bench_ok(&host.bench, ist_tensor_describe(tensor, &info, &host.bench.err));
  assert_int_equal(info.grant, IST_GRANT_WRITABLE);
  assert_exports_values(&host, tensor);
  bench_ok(&host.bench, ist_tensor_delete(tensor, &host.bench.err));
  assert_null(ist_pjrt_buffer(tensor));
  ist_tensor_release(tensor);
  host_close(&host);  // which counts the buffers of the lying plugin
}

static void refuse(pjrt_host *host, PJRT_Buffer *buffer, ist_code code,
                   const char *words) {
  ist_pjrt_buffer_options how = {.struct_size = sizeof how,
                                 .release = host_client_returned,
                                 .release_self = host};
  ist_tensor *tensor = (ist_tensor *)host;
  assert_refused(ist_pjrt_buffer_adopt(host->bench.backend, buffer, &how,
                                       &tensor, &host->bench.err),
                 code, host->bench.err, words);
  assert_null(tensor);
  assert_int_equal(atomic_load(&host->returned), 0);
}

static void deleted_buffer__is_refused_then_and_later(void **state) {
  pjrt_host host;
  host_open(&host, *state, NULL);
  host_adopt(&host, IST_PJRT_BORROW);
  PJRT_Buffer *buffer = host_buffer(&host, 0);
  ist_tensor *tensor = adopt(&host, buffer, IST_PJRT_BORROW);
  host_delete_buffer(&host, buffer);
  DLManagedTensorVersioned *out = NULL;
  assert_refused(ist_tensor_export(tensor, NULL, &out, NULL, &host.bench.err),
                 IST_ERR_DELETED, host.bench.err, "deleted");
  ist_tensor_release(tensor);
  refuse(&host, buffer, IST_ERR_DELETED, "deleted");
  host_destroy_buffer(&host, buffer);
  host_close(&host);
}

static void deleted_buffer__leaves_exports_alone(void **state) {
  pjrt_host host;
  host_open(&host, *state, NULL);
  host_adopt(&host, IST_PJRT_BORROW);
  PJRT_Buffer *buffer = host_buffer(&host, 0);
  ist_tensor *tensor = adopt(&host, buffer, IST_PJRT_BORROW);
  DLManagedTensorVersioned *out = NULL;
  bench_ok(&host.bench,
           ist_tensor_export(tensor, NULL, &out, NULL, &host.bench.err));
  host_delete_buffer(&host, buffer);
  const float *values = (const float *)out->dl_tensor.data;
  for (int i = 0; i < 6; i++) assert_true(values[i] == (float)i + 0.5f);
  out->deleter(out);
  ist_tensor_release(tensor);
  host_destroy_buffer(&host, buffer);
  host_close(&host);
}

// P1, P2 and P3 have CreateErrorBuffer since 0.82; P2 is 0.81.
static void errored_buffer__is_refused_with_its_error(void **state) {
  static const int64_t dims[1] = {4};
  pjrt_host host;
  host_open(&host, *state, NULL);
  host_adopt(&host, IST_PJRT_BORROW);
  int slot = IST_SLOT_Client_CreateErrorBuffer;
  size_t end =
      offsetof(PJRT_Api, slot) + ((size_t)slot + 1) * sizeof host.api->slot[0];
  if (host.api->struct_size < end) {
    host_close(&host);
    print_message("the plugin makes no error buffers\n");
    skip();
  }
  ist__pjrt_client *client = host.bench.backend->self;
  IST_PJRT_ARGS(PJRT_Client_CreateErrorBuffer_Args, make);
  make.client = host.client;
  make.error_code = PJRT_Error_Code_DATA_LOSS;
  make.error_message = "the cat ate it";
  make.error_message_size = 14;
  make.shape_dims = dims;
  make.shape_num_dims = 1;
  make.shape_element_type = 11;
  make.memory = client->devices[0].memories[0].memory;
  host_call(&host, slot, &make);
  refuse(&host, make.buffer, IST_ERR_BUFFER,
         strcmp(*state, "lying") == 0 ? "failed" : "the cat ate it");
  host_destroy_buffer(&host, make.buffer);
  host_close(&host);
}

static void buffer_of_another_client__is_refused(void **state) {
  pjrt_host host;
  host_open(&host, *state, NULL);
  host_adopt(&host, IST_PJRT_BORROW);
  pjrt_host other = {.api = host.api};
  IST_PJRT_ARGS(PJRT_Client_Create_Args, create);
  host_call(&host, IST_SLOT_Client_Create, &create);
  other.client = create.client;
  PJRT_Buffer *buffer = host_buffer(&other, 0);
  refuse(&host, buffer, IST_ERR_NOT_ADDRESSABLE, "another client");
  host_destroy_buffer(&other, buffer);
  destroy_client(&other);
  host_close(&host);
}

static void buffer__is_refused_for_what_it_is(void **state) {
  (void)state;
  static const refusal cases[] = {
      {"addressable=1 layout=strides", IST_ERR_TARGET_LAYOUT, "strides"},
      {"addressable=1 layout=short", IST_ERR_TARGET_LAYOUT, "rank"},
      {"addressable=1 fail=Buffer_Device:1", IST_ERR_PLUGIN, "Buffer_Device"},
      {"addressable=1 unimplemented=Buffer_ElementType", IST_ERR_PLUGIN_SLOT,
       "Buffer_ElementType"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    pjrt_host host;
    host_open(&host, "lying", "addressable=1");
    host_adopt(&host, IST_PJRT_BORROW);
    PJRT_Buffer *buffer = host_buffer(&host, 0);
    host.bench.lying.set_rules(cases[i].rules);
    refuse(&host, buffer, cases[i].code, cases[i].words);
    host.bench.lying.set_rules("addressable=1");
    host_destroy_buffer(&host, buffer);
    host_close(&host);
  }
}

static void tiled_buffer__is_adopted_and_copied_out(void **state) {
  (void)state;
  pjrt_host host;
  host_open(&host, "lying", "addressable=1");
  host_adopt(&host, IST_PJRT_BORROW);
  PJRT_Buffer *buffer = host_buffer(&host, 0);
  host.bench.lying.set_rules("addressable=1 layout=tiled");
  ist_tensor *tensor = adopt(&host, buffer, IST_PJRT_BORROW);
  DLManagedTensorVersioned *out = NULL;
  ist_options never = {.struct_size = sizeof never, .copy = IST_COPY_NEVER};
  assert_refused(ist_tensor_export(tensor, &never, &out, NULL, &host.bench.err),
                 IST_ERR_TARGET_LAYOUT, host.bench.err, "T(8,128)");
  assert_null(out);
  assert_exports_values(&host, tensor);
  ist_tensor_release(tensor);
  host.bench.lying.set_rules("addressable=1");
  host_destroy_buffer(&host, buffer);
  host_close(&host);
}

static void borrowed_buffer__is_neither_deleted_nor_given(void **state) {
  pjrt_host host;
  host_open(&host, *state, NULL);
  host_adopt(&host, IST_PJRT_BORROW);
  PJRT_Buffer *buffer = host_buffer(&host, 0), *given = NULL;
  ist_tensor *tensor = adopt(&host, buffer, IST_PJRT_BORROW);
  assert_refused(ist_tensor_delete(tensor, &host.bench.err), IST_ERR_ARGUMENT,
                 host.bench.err, "borrowed");
  assert_refused(ist_pjrt_buffer_give(tensor, &given, &host.bench.err),
                 IST_ERR_ARGUMENT, host.bench.err, "borrowed");
  assert_null(given);
  assert_exports_values(&host, tensor);
  ist_tensor_release(tensor);
  host_destroy_buffer(&host, buffer);
  host_close(&host);
}

static void given_buffer__is_the_hosts_own(void **state) {
  pjrt_host host;
  host_open(&host, *state, NULL);
  host_adopt(&host, IST_PJRT_BORROW);
  ist_tensor *tensor = place(&host);
  PJRT_Buffer *lent = ist_pjrt_buffer(tensor), *given = NULL;
  host_assert_values(&host, lent);
  DLManagedTensorVersioned *out = NULL;
  bench_ok(&host.bench,
           ist_tensor_export(tensor, NULL, &out, NULL, &host.bench.err));
  if (out->dl_tensor.device.device_type == kDLCPU &&
      (out->flags & DLPACK_FLAG_BITMASK_IS_COPIED) == 0) {
    assert_refused(ist_pjrt_buffer_give(tensor, &given, &host.bench.err),
                   IST_ERR_ARGUMENT, host.bench.err, "others hold");
    assert_null(given);
  }
  out->deleter(out);
  bench_ok(&host.bench, ist_pjrt_buffer_give(tensor, &given, &host.bench.err));
  assert_ptr_equal(given, lent);
  host_assert_values(&host, given);
  host_destroy_buffer(&host, given);
  host_close(&host);
}

static void unready_buffer__is_adopted_without_waiting(void **state) {
  (void)state;
  pjrt_host host;
  host_open(&host, "lying", "addressable=1");
  host_adopt(&host, IST_PJRT_BORROW);
  host.bench.lying.set_rules("addressable=1 delay_events=1");
  PJRT_Buffer *buffer = host_buffer(&host, 0);
  ist_tensor *tensor = adopt(&host, buffer, IST_PJRT_TAKE);
  assert_int_equal(host.bench.lying.calls("Event_Await"), 0);
  while (host.bench.lying.pending_events() > 0) {
    host.bench.lying.release_events();
  }
  host.bench.lying.set_rules("addressable=1");
  ist_tensor_release(tensor);
  host_close(&host);
}

// ---- everything that can fail, one after the other

typedef struct fuse {
  long calls, fail_at;
} fuse;

static bool blow(void *self, const char *slot) {
  (void)slot;
  fuse *f = self;
  return ++f->calls == f->fail_at;
}

static void failures__leave_buffer_and_client_alone(void **state) {
  for (int allocations = 0; allocations < 2; allocations++) {
    pjrt_host host;
    host_open(&host, *state, NULL);
    host_adopt(&host, IST_PJRT_BORROW);
    PJRT_Buffer *buffer = host_buffer(&host, 0);
    bool fired = true;
    long turn = 0, failed = 0;
    while (fired) {
      turn++;
      fuse f = {0, allocations ? 0 : turn};
      counting_allocator_arm(&host.bench.counts, allocations ? turn : 0);
      ist__context_set_call_hook(host.bench.context, blow, &f);
      ist_tensor *tensor = NULL;
      ist_code code = ist_pjrt_buffer_adopt(host.bench.backend, buffer, NULL,
                                            &tensor, &host.bench.err);
      ist__context_set_call_hook(host.bench.context, NULL, NULL);
      fired = allocations ? atomic_load(&host.bench.counts.failed) > 0
                          : f.calls >= turn;
      counting_allocator_arm(&host.bench.counts, 0);
      if (code == IST_OK) assert_exports_values(&host, tensor);
      if (code != IST_OK) assert_null(tensor);
      if (code != IST_OK) failed++;
      ist_tensor_release(tensor);
      host_assert_values(&host, buffer);
    }
    assert_true(failed >= (allocations ? 2 : 6));
    host_destroy_buffer(&host, buffer);
    host_close(&host);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_PLUGIN(borrowed_client__crosses_and_comes_back_once),
      ON_EACH_PLUGIN(borrowed_client__may_be_destroyed_when_it_returns),
      ON_EACH_PLUGIN(taken_client__is_destroyed_with_its_backend),
      ON_EACH_PLUGIN(client__can_be_adopted_twice_and_from_isthmus),
      cmocka_unit_test(table__of_another_version_is_refused),
      cmocka_unit_test(table__may_be_longer_or_shorter_than_ours),
      cmocka_unit_test(client__without_devices_stays_the_hosts),
      cmocka_unit_test(adoption__refuses_what_is_missing),
      ON_EACH_PLUGIN(borrowed_buffer__comes_back_once_and_whole),
      ON_EACH_PLUGIN(taken_buffer__is_destroyed_with_its_tensor),
      ON_EACH_PLUGIN(deleted_buffer__is_refused_then_and_later),
      ON_EACH_PLUGIN(deleted_buffer__leaves_exports_alone),
      ON_EACH_PLUGIN(errored_buffer__is_refused_with_its_error),
      ON_EACH_PLUGIN(buffer_of_another_client__is_refused),
      cmocka_unit_test(buffer__is_refused_for_what_it_is),
      cmocka_unit_test(tiled_buffer__is_adopted_and_copied_out),
      ON_EACH_PLUGIN(borrowed_buffer__is_neither_deleted_nor_given),
      ON_EACH_PLUGIN(given_buffer__is_the_hosts_own),
      cmocka_unit_test(unready_buffer__is_adopted_without_waiting),
      ON_EACH_PLUGIN(failures__leave_buffer_and_client_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
