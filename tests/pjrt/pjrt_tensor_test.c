// SPDX-License-Identifier: Apache-2.0
// Tensors in and out of PJRT plugins: views, copies, loans, lifetimes. The
// values are checked, and zero-copy is proved by addresses.

#include "backend/pjrt/pjrt_tensor.h"

#include <pthread.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "backend/pjrt/buffer.h"
#include "bridge/tensor.h"
#include "support/pjrt_support.h"

static const DLDataType f32 = {kDLFloat, 32, 1};

// Memory aligned for every plugin, with room for an unaligned start.
static float *floats(size_t count) {
  float *data = aligned_alloc(64, (count * sizeof(float) + 127) / 64 * 64);
  assert_non_null(data);
  for (size_t i = 0; i < count; i++) data[i] = (float)i + 0.5f;
  return data;
}

static ist_tensor *import(pjrt_bench *bench, source_tensor *source,
                          ist_copy copy, ist_receipt *receipt) {
  ist_tensor *tensor = NULL;
  ist_options options = {.struct_size = sizeof options, .copy = copy};
  options.grant = IST_GRANT_WRITABLE;
  *receipt = (ist_receipt){.struct_size = sizeof *receipt};
  bench_ok(bench, ist_tensor_import(bench_device(bench, 0), &source->managed,
                                    &options, &tensor, receipt, &bench->err));
  assert_non_null(tensor);
  return tensor;
}

static void aligned_import__is_a_view_of_the_same_address(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = floats(6);
  source_tensor source;
  ist_receipt receipt;
  source_make(&source, data, f32, 2, (int64_t[]){2, 3, 3, 1});
  ist_tensor *tensor = import(&bench, &source, IST_COPY_NEVER, &receipt);
  assert_int_equal(receipt.route, IST_ROUTE_ALIAS);
  assert_int_equal(receipt.bytes_moved, 0);
  DLManagedTensorVersioned *out = NULL;
  bench_ok(&bench, ist_tensor_export(tensor, NULL, &out, &receipt, &bench.err));
  assert_int_equal(receipt.route, IST_ROUTE_ALIAS);
  assert_ptr_equal((char *)out->dl_tensor.data + out->dl_tensor.byte_offset,
                   data);
  assert_int_equal(out->dl_tensor.device.device_type, kDLCPU);
  ist_tensor_release(tensor);
  assert_int_equal(atomic_load(&source.deleted), 0);
  assert_true(data[5] == 5.5f);
  out->deleter(out);
  source_assert_gone(&source);
  bench_close(&bench);
  free(data);
}

static void unaligned_import__copies_and_keeps_the_values(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = floats(7);
  source_tensor source;
  ist_receipt receipt;
  source_make(&source, data + 1, f32, 2, (int64_t[]){2, 3, 3, 1});
  ist_tensor *tensor = import(&bench, &source, IST_COPY_AUTO, &receipt);
  assert_int_equal(receipt.route, IST_ROUTE_COPY);
  assert_int_equal(receipt.bytes_moved, 24);
  source_assert_gone(&source);
  for (int i = 0; i < 7; i++) data[i] = -1;
  float got[6] = {0};
  DLTensor target = {got, {kDLCPU, 0}, 2, f32, (int64_t[]){2, 3}, NULL, 0};
  bench_ok(&bench,
           ist_tensor_copy_into(tensor, &target, NULL, NULL, &bench.err));
  for (int i = 0; i < 6; i++) assert_true(got[i] == (float)i + 1.5f);
  ist_tensor_release(tensor);
  bench_close(&bench);
  free(data);
}

static void refused_import__leaves_the_source_alone(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = floats(7);
  source_tensor source;
  source_make(&source, data + 1, f32, 2, (int64_t[]){2, 3, 3, 1});
  ist_options options = {.struct_size = sizeof options, .copy = IST_COPY_NEVER};
  ist_tensor *tensor = NULL;
  ist_code code = ist_tensor_import(bench_device(&bench, 0), &source.managed,
                                    &options, &tensor, NULL, &bench.err);
  assert_refused(code, IST_ERR_COPY_NEEDED, bench.err, "64");
  assert_null(tensor);
  assert_int_equal(atomic_load(&source.deleted), 0);
  source.managed.deleter(&source.managed);
  source_assert_gone(&source);
  bench_close(&bench);
  free(data);
}

// ToHostBuffer answers in the device's order on every real plugin.
static void permuted_views__come_out_right(void **state) {
  static const int64_t shapes[][6] = {
      // extents, then strides of a dense permuted array
      {2, 3, 4, 1, 8, 2}, {2, 3, 4, 12, 1, 3}, {2, 3, 4, 4, 8, 1},
      {2, 3, 4, 3, 1, 6}, {2, 3, 4, 1, 2, 6},  {2, 1, 4, 1, 8, 2},
  };
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  for (size_t s = 0; s < COUNT_OF(shapes); s++) {
    const int64_t *n = shapes[s];
    float *data = floats(24);
    source_tensor source;
    ist_receipt receipt;
    source_make(&source, data, f32, 3, n);
    ist_tensor *tensor = import(&bench, &source, IST_COPY_AUTO, &receipt);
    assert_int_equal(receipt.route, IST_ROUTE_ALIAS);
    float got[24] = {0};
    size_t size = (size_t)(n[0] * n[1] * n[2]) * sizeof(float);
    bench_ok(&bench, ist__backend_copy_out(bench.backend, tensor->buffer, got,
                                           size, &bench.err));
    size_t at = 0;
    for (int64_t i = 0; i < n[0]; i++)
      for (int64_t j = 0; j < n[1]; j++)
        for (int64_t k = 0; k < n[2]; k++)
          assert_true(got[at++] == data[i * n[3] + j * n[4] + k * n[5]]);
    ist_tensor_release(tensor);
    source_assert_gone(&source);
    free(data);
  }
  bench_close(&bench);
}

static ist_placement placement(const DLTensor *view) {
  return (ist_placement){.struct_size = sizeof(ist_placement), .view = view};
}

// Ten elements, packed, of a dtype; returns their bytes.
static size_t pattern(DLDataType dtype, unsigned char *bytes) {
  size_t size = (10u * dtype.bits + 7) / 8;
  for (size_t i = 0; i < size; i++)
    bytes[i] = (unsigned char)(dtype.code == kDLBool ? i & 1 : i * 29 + 3);
  // What lies behind the last element is zero in a dense packed array.
  if (10u * dtype.bits % 8 != 0)
    bytes[size - 1] &= (unsigned char)((1u << 10u * dtype.bits % 8) - 1);
  return size;
}

static void every_dtype__survives_copies_and_views(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  const ist_device *device = bench_device(&bench, 0);
  const ist_capability *can = ist__device_capability(device, 0);
  int carried = 0;
  for (int32_t n = 0; n < ist__dtype_count(); n++) {
    if ((can->dtypes >> n & 1) == 0) continue;
    const ist__dtype *row = ist__dtype_at(n);
    unsigned char *bytes = aligned_alloc(64, 192), got[192];
    DLDataType dtype = {row->code, row->bits, 1};
    size_t size = pattern(dtype, bytes);
    int64_t numbers[] = {5, 2, 2, 1};
    DLTensor view = {bytes, {kDLCPU, 0}, 2, dtype, numbers, numbers + 2, 0};
    ist_placement place = placement(&view);
    for (int adopt = 0; adopt < 2; adopt++) {
      void *buffer = NULL;
      bench_ok(&bench, adopt ? ist__backend_adopt(bench.backend, &place,
                                                  &buffer, &bench.err)
                             : ist__backend_copy_in(bench.backend, &place,
                                                    &buffer, &bench.err));
      memset(got, 0x77, sizeof got);
      bench_ok(&bench, ist__backend_copy_out(bench.backend, buffer, got, size,
                                             &bench.err));
      if (memcmp(got, bytes, size) != 0) fail_msg("%s differs", row->name);
      assert_int_equal(got[size], 0x77);
      ist__backend_release_buffer(bench.backend, buffer);
    }
    free(bytes);
    carried++;
  }
  assert_true(carried >= 26);
  bench_close(&bench);
}

// Counts the calls by which a plugin copies; none is made to fail.
static bool count_copy(void *self, const char *slot) {
  int *copies = self;
  if (strcmp(slot, "PJRT_Buffer_ToHostBuffer") == 0 ||
      strcmp(slot, "PJRT_Client_BufferFromHostBuffer") == 0) {
    ++*copies;
  }
  return false;
}

// A receipt tells of one copy, so that there is no second one inside.
static void packed_and_permuted_copies__are_made_once(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  const DLDataType s4 = {kDLInt, 4, 1};
  unsigned char *bytes = aligned_alloc(64, 64), got[64];
  assert_non_null(bytes);
  for (int i = 0; i < 64; i++) bytes[i] = (unsigned char)(i * 29 + 3);
  int copies = 0;
  int64_t rows[] = {3, 2, 2, 1}, columns[] = {2, 3, 1, 2};
  DLTensor small = {bytes, {kDLCPU, 0}, 2, s4, rows, rows + 2, 0};
  DLTensor turned = {bytes, {kDLCPU, 0}, 2, f32, columns, columns + 2, 0};
  ist_placement places[] = {placement(&small), placement(&turned)};
  void *buffers[2] = {NULL, NULL};
  ist__context_set_call_hook(bench.context, count_copy, &copies);
  bench_ok(&bench, ist__backend_copy_in(bench.backend, &places[0], &buffers[0],
                                        &bench.err));
  bench_ok(&bench, ist__backend_adopt(bench.backend, &places[1], &buffers[1],
                                      &bench.err));
  bench_ok(&bench, ist__backend_copy_out(bench.backend, buffers[0], got, 3,
                                         &bench.err));
  assert_memory_equal(got, bytes, 3);
  // The lying plugin copies permuted buffers out in row-major order itself.
  if (strcmp(*state, "lying") != 0) {
    bench_ok(&bench, ist__backend_copy_out(bench.backend, buffers[1], got, 24,
                                           &bench.err));
    assert_memory_equal(got + 4, bytes + 8, 4);
  }
  assert_int_equal(copies, 0);
  ist__context_set_call_hook(bench.context, NULL, NULL);
  for (int i = 0; i < 2; i++) {
    ist__backend_release_buffer(bench.backend, buffers[i]);
  }
  bench_close(&bench);
  free(bytes);
}

static void unusual_shapes__cross(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = floats(4), got[4];
  // A scalar, empty ones, one of high rank.
  int64_t numbers[32] = {0};
  for (int rank = 0; rank <= 16; rank += 4) {
    for (int i = 0; i < 2 * rank; i++) numbers[i] = 1;
    if (rank == 4) numbers[2] = 0;
    if (rank == 8) numbers[7] = 4;
    DLTensor view = {data, {kDLCPU, 0}, rank, f32, numbers, numbers + rank, 0};
    ist_placement place = placement(&view);
    size_t size = rank == 4 ? 0 : rank == 8 ? 16 : 4;
    void *buffers[2] = {NULL, NULL};
    bench_ok(&bench, ist__backend_copy_in(bench.backend, &place, &buffers[0],
                                          &bench.err));
    bench_ok(&bench, ist__backend_adopt(bench.backend, &place, &buffers[1],
                                        &bench.err));
    for (int i = 0; i < 2; i++) {
      memset(got, 0, sizeof got);
      bench_ok(&bench, ist__backend_copy_out(bench.backend, buffers[i], got,
                                             size, &bench.err));
      if (memcmp(got, data, size) != 0) fail_msg("rank %d differs", rank);
      ist_loan loan;
      bench_ok(&bench,
               ist__backend_lend(bench.backend, buffers[i], &loan, &bench.err));
      ist__backend_reclaim(bench.backend, buffers[i]);
      ist__backend_release_buffer(bench.backend, buffers[i]);
    }
  }
  bench_close(&bench);
  free(data);
}

static void loan__shows_what_was_copied_in(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = floats(6);
  int64_t numbers[] = {6, 1};
  DLTensor view = {data, {kDLCPU, 0}, 1, f32, numbers, numbers + 1, 0};
  ist_placement place = placement(&view);
  void *buffer = NULL;
  bench_ok(&bench,
           ist__backend_copy_in(bench.backend, &place, &buffer, &bench.err));
  ist_loan loan;
  bench_ok(&bench, ist__backend_lend(bench.backend, buffer, &loan, &bench.err));
  assert_ptr_not_equal(loan.data, data);
  assert_memory_equal(loan.data, data, 6 * sizeof(float));
  ist__backend_reclaim(bench.backend, buffer);
  ist__backend_release_buffer(bench.backend, buffer);
  bench_close(&bench);
  free(data);
}

static void export__outlives_tensor_backend_and_context(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = floats(7);
  source_tensor source;
  ist_receipt receipt;
  source_make(&source, data + 1, f32, 1, (int64_t[]){6, 1});
  ist_tensor *tensor = import(&bench, &source, IST_COPY_AUTO, &receipt);
  source_assert_gone(&source);
  DLManagedTensorVersioned *out = NULL;
  bench_ok(&bench, ist_tensor_export(tensor, NULL, &out, NULL, &bench.err));
  ist_tensor_release(tensor);
  ist_backend_release(bench.backend);
  ist_context_release(bench.context);
  bench.backend = NULL;
  bench.context = NULL;
  const float *got = (const float *)((const char *)out->dl_tensor.data +
                                     out->dl_tensor.byte_offset);
  for (int i = 0; i < 6; i++) assert_true(got[i] == (float)i + 1.5f);
  out->deleter(out);
  bench_close(&bench);
  free(data);
}

static PJRT_Buffer *inside(void *buffer) {
  return ((ist__pjrt_tensor *)buffer)->buffer;
}

static void deleted_buffer__is_told_as_deleted(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = floats(6), got[6];
  int64_t numbers[] = {6, 1};
  DLTensor view = {data, {kDLCPU, 0}, 1, f32, numbers, numbers + 1, 0};
  ist_placement place = placement(&view);
  void *buffer = NULL;
  bench_ok(&bench,
           ist__backend_copy_in(bench.backend, &place, &buffer, &bench.err));
  const ist__pjrt_client *client = bench.backend->self;
  IST_PJRT_ARGS(PJRT_Buffer_Delete_Args, delete_it);
  delete_it.buffer = inside(buffer);
  ist__pjrt_end(&client->plugin.pjrt, IST_SLOT_Buffer_Delete, &delete_it);
  ist_loan loan;
  assert_refused(ist__backend_wait(bench.backend, buffer, &bench.err),
                 IST_ERR_DELETED, bench.err, "deleted");
  assert_refused(ist__backend_lend(bench.backend, buffer, &loan, &bench.err),
                 IST_ERR_DELETED, bench.err, "deleted");
  assert_refused(
      ist__backend_copy_out(bench.backend, buffer, got, sizeof got, &bench.err),
      IST_ERR_DELETED, bench.err, "deleted");
  ist__backend_release_buffer(bench.backend, buffer);
  bench_close(&bench);
  free(data);
}

#define THREADS 8
#define TURNS 2000

typedef struct crowd {
  pjrt_bench *bench;
  void *buffer;
  atomic_int failures;
} crowd;

static void *lend_and_reclaim(void *arg) {
  crowd *c = arg;
  for (int i = 0; i < TURNS; i++) {
    ist_loan loan;
    ist_error err;
    if (ist__backend_lend(c->bench->backend, c->buffer, &loan, &err) !=
            IST_OK ||
        *(const float *)loan.data != 0.5f)
      atomic_fetch_add(&c->failures, 1);
    ist__backend_reclaim(c->bench->backend, c->buffer);
  }
  return NULL;
}

// The plugins' own counting crashes when two threads do this.
static void many_threads__hold_one_buffer_safely(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  float *data = floats(6);
  int64_t numbers[] = {6, 1};
  DLTensor view = {data, {kDLCPU, 0}, 1, f32, numbers, numbers + 1, 0};
  ist_placement place = placement(&view);
  crowd c = {.bench = &bench};
  bench_ok(&bench,
           ist__backend_copy_in(bench.backend, &place, &c.buffer, &bench.err));
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, lend_and_reclaim, &c),
                     0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&c.failures), 0);
  ist__backend_release_buffer(bench.backend, c.buffer);
  bench_close(&bench);
  free(data);
}

static void two_clients_of_a_plugin__share_one_memory(void **state) {
  pjrt_bench bench;
  bench_open(&bench, *state, NULL);
  ist_backend_options options = {.struct_size = sizeof options,
                                 .path = plugin_path(*state)};
  ist_backend *second = NULL;
  bench_ok(&bench, ist_backend_open(bench.context, "pjrt", &options, &second,
                                    &bench.err));
  float *data = floats(6);
  source_tensor source;
  ist_receipt receipt;
  source_make(&source, data, f32, 1, (int64_t[]){6, 1});
  ist_tensor *here = import(&bench, &source, IST_COPY_NEVER, &receipt);
  ist_tensor *there = NULL;
  bench_ok(&bench, ist_tensor_move(here, ist_backend_device(second, 1), NULL,
                                   &there, &receipt, &bench.err));
  assert_int_equal(receipt.route, IST_ROUTE_ALIAS);
  assert_ptr_equal(ist_tensor_view(there)->data, data);
  ist_tensor_release(here);
  ist_backend_release(second);
  assert_int_equal(atomic_load(&source.deleted), 0);
  ist_tensor_release(there);
  source_assert_gone(&source);
  bench_close(&bench);
  free(data);
}

static void three_plugins__hand_on_one_buffer(void **state) {
  (void)state;
  static const char *const keys[] = {"lying", "P1", "P2", "P3"};
  pjrt_bench bench[4];
  for (int i = 0; i < 4; i++) plugin_path(keys[i]);
  float *data = floats(6);
  source_tensor source;
  source_make(&source, data, f32, 1, (int64_t[]){6, 1});
  DLManagedTensorVersioned *at = &source.managed;
  for (int i = 0; i < 4; i++) bench_open(&bench[i], keys[i], NULL);
  for (int i = 0; i < 4; i++) {
    ist_tensor *tensor = NULL;
    ist_receipt receipt = {.struct_size = sizeof receipt};
    bench_ok(&bench[i], ist_tensor_import(bench_device(&bench[i], 0), at, NULL,
                                          &tensor, &receipt, &bench[i].err));
    assert_int_equal(receipt.bytes_moved, 0);
    bench_ok(&bench[i],
             ist_tensor_export(tensor, NULL, &at, &receipt, &bench[i].err));
    assert_int_equal(receipt.bytes_moved, 0);
    ist_tensor_release(tensor);
  }
  assert_ptr_equal((char *)at->dl_tensor.data + at->dl_tensor.byte_offset,
                   data);
  at->deleter(at);
  source_assert_gone(&source);
  for (int i = 0; i < 4; i++) bench_close(&bench[i]);
  free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_PLUGIN(aligned_import__is_a_view_of_the_same_address),
      ON_EACH_PLUGIN(unaligned_import__copies_and_keeps_the_values),
      ON_EACH_PLUGIN(refused_import__leaves_the_source_alone),
      ON_EACH_PLUGIN(permuted_views__come_out_right),
      ON_EACH_PLUGIN(every_dtype__survives_copies_and_views),
      ON_EACH_PLUGIN(packed_and_permuted_copies__are_made_once),
      ON_EACH_PLUGIN(unusual_shapes__cross),
      ON_EACH_PLUGIN(loan__shows_what_was_copied_in),
      ON_EACH_PLUGIN(export__outlives_tensor_backend_and_context),
      ON_EACH_PLUGIN(deleted_buffer__is_told_as_deleted),
      ON_EACH_PLUGIN(many_threads__hold_one_buffer_safely),
      ON_EACH_PLUGIN(two_clients_of_a_plugin__share_one_memory),
      cmocka_unit_test(three_plugins__hand_on_one_buffer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
