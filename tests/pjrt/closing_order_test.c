// SPDX-License-Identifier: Apache-2.0
// A small graph of everything that can be closed, closed in every order:
// nothing crashes, nothing is left, and the adopted memory is given back once.
// All 40,320 orders take long: unless ISTHMUS_EVERY_ORDER is set, any four of
// the eight are closed in every order, and any three where a client is dear to
// open, as a real plugin's is.

#include <sched.h>
#include <stdlib.h>

#include "support/pjrt_support.h"

enum {
  CONTEXT,
  BACKEND,
  SOURCE,   // the tensor of the memory that is adopted
  TENSOR,   // the device's view of it
  CAPSULE,  // an export of that
  VIEW,     // a tensor of another export of that
  PROGRAM,
  OUTPUT,  // of the program, run on the device's view
  THINGS
};

enum {
  every_order = 40320,  // 8!
  of_three = 8 * 7 * 6,
  of_four = 8 * 7 * 6 * 5,
  numbers = 8 * 8 * 8 * 8
};

typedef struct graph {
  counting_allocator counts;
  ist_context *context;
  ist_backend *backend;
  ist_tensor *source, *tensor, *view, *output;
  DLManagedTensor *capsule;
  ist_program *program;
  atomic_int given_back;
  _Alignas(64) float data[16];
  ist_error err;
} graph;

static const char real_text[] =
    "func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {\n"
    "  %0 = stablehlo.add %x, %x : tensor<6xf32>\n"
    "  return %0 : tensor<6xf32>\n}\n";

static void give_back(void *self) {
  graph *g = self;
  atomic_fetch_add(&g->given_back, 1);
}

static void graph_open(graph *g, const char *path) {
  counting_allocator_init(&g->counts);
  ist_allocator allocator = counting_allocator_hook(&g->counts);
  ist_context_options options = {.struct_size = sizeof options,
                                 .allocator = &allocator};
  bench_ok(g, ist_context_create(&options, &g->context, &g->err));
  ist_backend_options plugin = {
      .struct_size = sizeof plugin, .path = path, .trusted = true};
  bench_ok(g,
           ist_backend_open(g->context, "pjrt", &plugin, &g->backend, &g->err));
}

static void graph_tensors(graph *g) {
  const ist_device *device = ist_backend_device(g->backend, 0);
  const ist_device *host = ist_context_host(g->context);
  int64_t shape[1] = {6};
  DLTensor memory = {g->data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1},
                     shape,   NULL,        0};
  for (int i = 0; i < 6; i++) g->data[i] = (float)i;
  bench_ok(g, ist_tensor_wrap(g->context, &memory, give_back, g, &g->source,
                              &g->err));
  ist_options never = {.struct_size = sizeof never, .copy = IST_COPY_NEVER};
  bench_ok(
      g, ist_tensor_move(g->source, device, &never, &g->tensor, NULL, &g->err));
  bench_ok(
      g, ist_tensor_export_legacy(g->tensor, NULL, &g->capsule, NULL, &g->err));
  DLManagedTensorVersioned *other = NULL;
  bench_ok(g, ist_tensor_export(g->tensor, NULL, &other, NULL, &g->err));
  bench_ok(g, ist_tensor_import(host, other, &never, &g->view, NULL, &g->err));
}

static void graph_run(graph *g, const char *text) {
  const ist_device *device = ist_backend_device(g->backend, 0);
  bench_ok(g, ist_program_compile(device, text, strlen(text), NULL, &g->program,
                                  &g->err));
  ist_run run = {.struct_size = sizeof run,
                 .inputs = &g->tensor,
                 .input_count = 1,
                 .outputs = &g->output,
                 .output_count = 1};
  bench_ok(g, ist_program_run(g->program, &run, &g->err));
}

static void graph_close(graph *g, int thing) {
  switch (thing) {
    case CONTEXT:
      ist_context_release(g->context);
      break;
    case BACKEND:
      ist_backend_release(g->backend);
      break;
    case SOURCE:
      ist_tensor_release(g->source);
      break;
    case TENSOR:
      ist_tensor_release(g->tensor);
      break;
    case CAPSULE:
      g->capsule->deleter(g->capsule);
      break;
    case VIEW:
      ist_tensor_release(g->view);
      break;
    case PROGRAM:
      ist_program_release(g->program);
      break;
    default:
      ist_tensor_release(g->output);
  }
}

// Whoever still holds the memory reads right values.
static void assert_alive(const graph *g, const int *order, int closed) {
  bool is_closed[THINGS] = {false};
  for (int i = 0; i < closed; i++) is_closed[order[i]] = true;
  const DLTensor *at[2] = {is_closed[VIEW] ? NULL : ist_tensor_view(g->view),
                           is_closed[CAPSULE] ? NULL : &g->capsule->dl_tensor};
  bool held = false;
  for (int i = 0; i < 2; i++) {
    if (at[i] == NULL) continue;
    const char *data = (const char *)at[i]->data + at[i]->byte_offset;
    assert_ptr_equal(data, g->data);
    held = true;
  }
  held = held || !is_closed[SOURCE] || !is_closed[TENSOR];
  if (held && atomic_load(&g->given_back) != 0) {
    fail_msg("given back while it is held");
  }
}

// The plugin may give its last view back on a thread of its own.
static void graph_await(graph *g) {
  for (long turn = 0; turn < 20000000; turn++) {
    if (g->counts.live == 0 && g->given_back != 0) return;
    sched_yield();
  }
}

static void close_in(const char *key, const lying_levers *lying,
                     const int *order) {
  graph *g = aligned_alloc(64, sizeof *g);
  assert_non_null(g);
  memset(g, 0, sizeof *g);
  graph_open(g, plugin_path(key));
  graph_tensors(g);
  graph_run(g, lying != NULL ? "lying.identity 11 6" : real_text);
  for (int i = 0; i < THINGS; i++) {
    graph_close(g, order[i]);
    assert_alive(g, order, i + 1);
  }
  graph_await(g);
  bool clean = g->counts.live == 0 && g->given_back == 1;
  if (!clean) {
    fail_msg("%d%d%d%d%d%d%d%d: %ld are alive, given back %d times", order[0],
             order[1], order[2], order[3], order[4], order[5], order[6],
             order[7], (long)g->counts.live, (int)g->given_back);
  }
  free(g);
  if (lying != NULL) lying_assert_clean(lying);
}

// Permutation number n of the things.
static void order_of(int n, int *order) {
  bool used[THINGS] = {false};
  for (int i = 0, rest = every_order; i < THINGS; i++) {
    rest /= THINGS - i;
    int skip = n / rest % (THINGS - i);
    int thing = 0;
    while (used[thing] || skip-- > 0) thing++;
    used[thing] = true;
    order[i] = thing;
  }
}

// How many orders of a few things, not seen yet, an order has; marks them.
static int fresh(const int *o, int few, bool *seen, bool mark) {
  int count = 0;
  for (int code = 0; code < 256; code++) {
    // A set of positions.
    if (__builtin_popcount((unsigned)code) != few) continue;
    int number = 0;
    for (int i = 0; i < THINGS; i++) {
      if ((code >> i & 1) != 0) number = number * THINGS + o[i];
    }
    if (!seen[number]) count++;
    if (mark) seen[number] = true;
  }
  return count;
}

// Of some random orders the one that adds most.
static void next_order(uint64_t *random, int few, bool *seen, int *best) {
  int most = 0;
  while (most == 0) {
    for (int i = 0; i < 100; i++) {
      int order[THINGS];
      order_of((int)random_below(random, every_order), order);
      int count = fresh(order, few, seen, false);
      if (count <= most) continue;
      most = count;
      memcpy(best, order, sizeof order);
    }
  }
}

static void close_in_every_order(const char *key, const lying_levers *lying) {
  int order[THINGS];
  for (int n = 0; n < every_order; n++) {
    order_of(n, order);
    close_in(key, lying, order);
  }
}

static void close_in_every_order_of(int few, const char *key,
                                    const lying_levers *lying) {
  static bool seen[numbers];
  uint64_t random = 20;
  int left = few == 3 ? of_three : of_four;
  memset(seen, 0, sizeof seen);
  while (left > 0) {
    int order[THINGS];
    next_order(&random, few, seen, order);
    left -= fresh(order, few, seen, true);
    close_in(key, lying, order);
  }
}

static void closing__in_every_order_gives_everything_back(void **state) {
  bool lies = strcmp(*state, "lying") == 0;
  plugin_path(*state);
  lying_levers lying = {0};
  if (lies) {
    lying = lying_find();
    lying.set_rules("addressable=1");
  }
  if (getenv("ISTHMUS_EVERY_ORDER") != NULL) {
    close_in_every_order(*state, lies ? &lying : NULL);
  } else {
    close_in_every_order_of(lies ? 4 : 3, *state, lies ? &lying : NULL);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_PLUGIN(closing__in_every_order_gives_everything_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
