// SPDX-License-Identifier: Apache-2.0
// conformance_world.h: what the tests of the conformance suite share: one open
// backend, one crossing on it, and how its outcome is read. The rules of what
// should happen are in the tests.

#ifndef ISTHMUS_TESTS_SUPPORT_CONFORMANCE_WORLD_H_
#define ISTHMUS_TESTS_SUPPORT_CONFORMANCE_WORLD_H_

#include "support/conformance.h"
#include "support/counting_allocator.h"
#include "support/sample.h"
#include "support/testing.h"

// One open backend; opened once for the whole group, as clients are dear.
typedef struct world {
  const subject *subject;
  counting_allocator counter;
  ist_context *context;
  ist_backend *backend;
  const ist_device *device;
  ist_capability memory;  // of the default memory
  long at_rest;           // allocations that an idle backend holds
} world;

void open_world(world *w, const subject *under_test);
bool world_can(const world *w, uint32_t what);
bool world_takes(const world *w, int32_t dtype);
// Fails when a tensor or an export has left memory behind.
void assert_idle(world *w);
// Waits until at most live allocations are out; a plugin's threads may need a
// moment.
void await_live(const world *w, long live);

// One crossing under test, and a name for messages.
typedef struct crossing {
  world *w;
  sample from;
  DLDataType dtype;
  sample_layout layout;
  ist_copy copy;
  bool legacy;
  char text[120];
} crossing;

#define assert_that(c, claim)                             \
  do {                                                    \
    if (!(claim)) fail_msg("%s: not " #claim, (c)->text); \
  } while (0)

// The ways to cross: three wishes, two kinds of managed tensor, padded or not.
enum {
  variants = 12
};

// Makes the source of a crossing of a variant; layout is set before.
void crossing_begin(crossing *c, world *w, int32_t dtype, int variant);
// Padding makes a difference only to elements below a byte, and a managed
// tensor without version cannot tell it.
bool variant_makes_sense(int32_t dtype, int variant);

// Asserts that the source's deleter was called once; waits for a plugin's
// threads where they are late.
void assert_deleted(const crossing *c);

ist_code import_source(crossing *c, ist_tensor **out, ist_receipt *receipt,
                       ist_error *error);

// What an export gave, of either kind.
typedef struct exported {
  DLManagedTensorVersioned *versioned;
  DLManagedTensor *legacy;
} exported;

ist_code export_tensor(crossing *c, ist_tensor *tensor, exported *out,
                       ist_receipt *receipt, ist_error *error);
const DLTensor *exported_tensor(const exported *e);
void exported_delete(exported *e);

// Reads a tensor's elements, dense, into sample_room bytes; returns whether
// they are padded.
bool read_values(const crossing *c, ist_tensor *tensor, unsigned char *got);
// The tensor's elements equal the source's, bit by bit.
void assert_values(const crossing *c, ist_tensor *tensor);
// Fails unless a plan, which does nothing, said what then was done.
void assert_planned(const crossing *c, const ist_receipt *planned,
                    const ist_receipt *done);
// The address of a tensor's element 0 that this process can read, or NULL.
unsigned char *host_address(ist_tensor *tensor);
bool inside_source(const crossing *c, const unsigned char *address);

// The tests; their state is a world.
void import__every_dtype_layout_and_wish(void **state);
void import__refuses_dtypes_that_the_memory_lacks(void **state);
void import__refuses_what_it_cannot_read(void **state);
void import__writes_show_in_an_alias_only(void **state);
void import__reaches_every_memory_of_the_device(void **state);
void import__refuses_a_memory_that_is_not_there(void **state);
void import__takes_pinned_and_managed_memory_as_the_hosts(void **state);
void import__keeps_the_mark_of_what_must_not_be_written(void **state);
void export__every_dtype_layout_and_wish(void **state);
void export__reaches_a_consumer_on_the_host(void **state);
void move__every_dtype_layout_and_wish(void **state);
void move__between_devices_of_one_backend(void **state);
void convert__every_dtype_layout_and_padding(void **state);
void closing__in_any_order_frees_everything(void **state);

#endif  // ISTHMUS_TESTS_SUPPORT_CONFORMANCE_WORLD_H_
