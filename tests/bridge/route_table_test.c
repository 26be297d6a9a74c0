// SPDX-License-Identifier: Apache-2.0
// route_table_test.c: the truth table of the route, whole, against its golden
// file (tests/golden/route.txt; ISTHMUS_WRITE_GOLDEN=1 writes it anew).

#include <stdio.h>
#include <stdlib.h>

#include "support/route_parties.h"

// A device that keeps elements below a byte as they come, out of reach.
static const party padding_card = {
    "padder",
    IST_CAN_COPY_IN | IST_CAN_COPY_OUT | IST_CAN_ADOPT | IST_CAN_PADDED,
    IST_LAYOUT_ANY, 64, CARD};

static const char *const layout_names[] = {"row_major", "permuted", "negative",
                                           "overlap"};
static const char *const grant_names[] = {"", "writable", "immutable",
                                          "read_only"};

// One letter: A alias, a alias marked read-only, C one copy, S two copies, T
// three, and for a refusal n (only a copy could cross), w (a write would show),
// o (pairs of an odd number), d (the target keeps no such elements) or - .
static char letter(const ist_receipt *r) {
  if (r->route == IST_ROUTE_ALIAS) return r->read_only ? 'a' : 'A';
  if (r->route == IST_ROUTE_COPY) return 'C';
  if (r->route == IST_ROUTE_STAGE) return r->hops == 2 ? 'S' : 'T';
  if (r->code == IST_ERR_COPY_NEEDED) return 'n';
  if (r->code == IST_ERR_LANES) return 'o';
  if (r->code == IST_ERR_TARGET_DTYPE) return 'd';
  return r->code == IST_ERR_READ_ONLY ? 'w' : '-';
}

static void write_row(FILE *out, const ist_offer *offer, const party *target) {
  ist_capability to = capability(target);
  for (int w = 0; w < 24; w++) {
    if (w % 8 == 0) fputc(' ', out);
    ist_wish wish = wish_at(w);
    ist_receipt r = decide(offer, &to, &wish);
    fputc(letter(&r), out);
  }
  fputc('\n', out);
}

static const char *const pairs_names[] = {"odd", "apart", "whole"};

static void write_packing_rows(FILE *out, const party *source,
                               const party *target) {
  ist_capability memory = capability(source), to = capability(target);
  memory.layouts = to.layouts;
  to.dtypes = ~UINT64_C(0);
  for (int n = 0; n < 2 * 2 * 3; n++) {
    ist_offer offer = small_offer(&memory, n / 6 != 0);
    offer.layout = layouts[n / 3 % 2];
    offer.pairs = (ist_pairs)(n % 3);
    fprintf(out, "%-7s %-7s %-6s %-9s %-5s", source->name, target->name,
            offer.padded ? "padded" : "packed", layout_names[n / 3 % 2],
            pairs_names[n % 3]);
    for (int w = 0; w < 12; w++) {
      if (w % 4 == 0) fputc(' ', out);
      ist_wish wish = packing_wish_at(w);
      ist_receipt r = decide(&offer, &to, &wish);
      fputc(letter(&r), out);
    }
    fputc('\n', out);
  }
}

static void write_packings(FILE *out) {
  fputs(
      "\n"
      "# Elements of 4 bits: source, target, how they lie, layout, pairs; "
      "then\n"
      "# 3 x 4 wishes: copy auto, never, always; in each packing as_is, "
      "packed,\n"
      "# padded, pairs. T three copies, o pairs of an odd number, d the "
      "target\n"
      "# keeps no elements one to a byte.\n",
      out);
  for (size_t s = 0; s < sizeof sources / sizeof sources[0]; s++) {
    for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
      write_packing_rows(out, &sources[s], &targets[t]);
    }
    write_packing_rows(out, &sources[s], &padding_card);
  }
}

static void write_table(FILE *out) {
  fputs(
      "# The truth table of ist_route_plan: source, target, grant, layout,\n"
      "# address; then 3 x 8 wishes: copy auto, never, always; in each\n"
      "# read_only auto, refuse, copy, allow; in each mutable_source alias,\n"
      "# copy. A alias, a alias marked read-only, C one copy, S two copies,\n"
      "# n only a copy could cross, w a write would show, - no way.\n"
      "# Written by tests/bridge/route_table_test.c\n"
      "# with ISTHMUS_WRITE_GOLDEN=1.\n",
      out);
  for (size_t s = 0; s < sizeof sources / sizeof sources[0]; s++) {
    for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
      for (int grant = IST_GRANT_WRITABLE; grant <= IST_GRANT_READ_ONLY;
           grant++) {
        for (size_t l = 0; l < 4; l++) {
          for (int aligned = 1; aligned >= 0; aligned--) {
            ist_capability memory = capability(&sources[s]);
            ist_offer offer = {.struct_size = sizeof offer,
                               .memory = &memory,
                               .layout = layouts[l],
                               .grant = (ist_grant)grant,
                               .address = aligned ? 4096 : 4100,
                               .nbytes = 256};
            fprintf(out, "%-7s %-7s %-9s %-9s %-9s", sources[s].name,
                    targets[t].name, grant_names[grant], layout_names[l],
                    aligned ? "aligned" : "unaligned");
            write_row(out, &offer, &targets[t]);
          }
        }
      }
    }
  }
  write_packings(out);
}

static char *read_all(FILE *file, size_t *size) {
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char *text = calloc(1, *size + 1);
  assert_int_equal(fread(text, 1, *size, file), *size);
  return text;
}

static void route__equals_its_golden_truth_table(void **state) {
  (void)state;
  const char *source = getenv("ISTHMUS_SOURCE");
  assert_non_null(source);
  char path[4096];
  snprintf(path, sizeof path, "%s/tests/golden/route.txt", source);
  if (getenv("ISTHMUS_WRITE_GOLDEN") != NULL) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    write_table(out);
    fclose(out);
  }
  FILE *golden = fopen(path, "r");
  assert_non_null(golden);
  FILE *now = tmpfile();
  assert_non_null(now);
  write_table(now);
  size_t golden_size, now_size;
  char *golden_text = read_all(golden, &golden_size);
  char *now_text = read_all(now, &now_size);
  assert_string_equal(now_text, golden_text);
  assert_int_equal(now_size, golden_size);
  free(golden_text);
  free(now_text);
  fclose(golden);
  fclose(now);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(route__equals_its_golden_truth_table),
  };
  return cmocka_run_group_tests_name("route_table", tests, NULL, NULL);
}
