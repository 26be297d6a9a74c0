// SPDX-License-Identifier: Apache-2.0
// overlap.c: two indices share an address exactly when some difference of
// indices, not all zero, has sum(difference * step) = 0 with each difference
// below its extent. That is a subset sum, hard in general and easy for what
// tensors are: dimensions whose difference can only be zero are dropped first,
// and the rest is searched from the largest step down, within a budget.

#include "tensor/overlap.h"

#include <isthmus/isthmus.h>

#include "base/checked.h"

// Values tried before the answer is left undecided: some tens of microseconds.
#define BUDGET 4096

// Steps times extents above this are not searched: sums must fit an int64_t.
#define MAX_REACH (INT64_MAX / 4)

// Dimensions by rising step. reach[i] is what those below i can sum to, at
// most; divisor[i] what divides each of their sums.
typedef struct search {
  int32_t count;
  int budget;
  const uint64_t *extents;
  const uint64_t *steps;
  int64_t reach[IST_MAX_NDIM + 1];
  uint64_t divisor[IST_MAX_NDIM + 1];
} search;

static uint64_t gcd(uint64_t a, uint64_t b) {
  while (b != 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Drops once the dimensions whose difference can only be zero, and returns how
// many are left. Those are: the largest steps that all below them cannot make
// up for; and each whose difference must be a multiple, to fit the divisor of
// the others' steps, of more than its extent has.
static int32_t drop(int32_t count, uint64_t *extents, uint64_t *steps) {
  uint64_t reach[IST_MAX_NDIM + 1] = {0};  // of those below
  uint64_t below[IST_MAX_NDIM + 1] = {0};  // the divisor of their steps
  for (int32_t i = 0; i < count; i++) {
    uint64_t part;
    if (!ist__mul_u64(steps[i], extents[i] - 1, &part) ||
        !ist__add_u64(reach[i], part, &reach[i + 1])) {
      reach[i + 1] = UINT64_MAX;
    }
    below[i + 1] = gcd(below[i], steps[i]);
  }
  int32_t kept = IST_MAX_NDIM;  // written from the end of the arrays down
  uint64_t above = 0;
  uint64_t left[2][IST_MAX_NDIM];
  for (int32_t i = count - 1; i >= 0; i--) {
    uint64_t others = gcd(below[i], above);
    above = gcd(above, steps[i]);
    bool beyond = kept == IST_MAX_NDIM && steps[i] > reach[i];
    // Alone (others is 0), only zero gives zero.
    if (beyond || others == 0 ||
        others / gcd(others, steps[i]) > extents[i] - 1) {
      continue;
    }
    kept--;
    left[0][kept] = extents[i];
    left[1][kept] = steps[i];
  }
  int32_t number = IST_MAX_NDIM - kept;
  for (int32_t i = 0; i < number; i++) {
    extents[i] = left[0][kept + i];
    steps[i] = left[1][kept + i];
  }
  return number;
}

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

// Do the dimensions below i, with differences of any sign, sum to -sum? When
// sum is 0 and nothing above is set, all zeros does not count; and of the first
// one that is set only positive values are tried, the others being their
// mirror.
static ist__overlap find(search *s, int32_t i, int64_t sum, bool set) {
  if (sum == 0 && set) return IST__OVERLAP_SOME;
  if (i == 0) return IST__OVERLAP_NONE;
  int64_t step = (int64_t)s->steps[i - 1];
  int64_t most = (int64_t)s->extents[i - 1] - 1;
  // |sum + d * step| must be within reach of what is below.
  int64_t low = -floor_div(s->reach[i - 1] + sum, step);
  int64_t high = floor_div(s->reach[i - 1] - sum, step);
  if (low < (set ? -most : 0)) low = set ? -most : 0;
  if (high > most) high = most;
  for (int64_t d = low; d <= high; d++) {
    if (s->budget-- <= 0) return IST__OVERLAP_UNDECIDED;
    int64_t rest = sum + d * step;
    uint64_t divisor = s->divisor[i - 1];
    if (divisor == 0 ? rest != 0 : rest % (int64_t)divisor != 0) continue;
    ist__overlap found = find(s, i - 1, rest, set || d != 0);
    if (found != IST__OVERLAP_NONE) return found;
  }
  return IST__OVERLAP_NONE;
}

ist__overlap ist__overlap_of(int32_t count, uint64_t *extents,
                             uint64_t *steps) {
  if (count > 0 && steps[0] == 0) return IST__OVERLAP_SOME;
  for (int32_t before = -1; before != count;) {  // a drop may allow another
    before = count;
    count = drop(count, extents, steps);
  }
  if (count == 0) return IST__OVERLAP_NONE;
  // Of two that are left, each can make up for the other: neither was dropped.
  if (count == 2) return IST__OVERLAP_SOME;
  search s = {
      .count = count, .budget = BUDGET, .extents = extents, .steps = steps};
  for (int32_t i = 0; i < count; i++) {
    uint64_t part, all;
    if (!ist__mul_u64(steps[i], extents[i] - 1, &part) ||
        !ist__add_u64((uint64_t)s.reach[i], part, &all) || all > MAX_REACH) {
      return IST__OVERLAP_UNDECIDED;
    }
    s.reach[i + 1] = (int64_t)all;
    s.divisor[i + 1] = gcd(s.divisor[i], steps[i]);
  }
  return find(&s, count, 0, false);
}
