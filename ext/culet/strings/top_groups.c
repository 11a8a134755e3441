#include "strings/top_groups.h"

#include <stdlib.h>

typedef struct culet_string_group group;

static void
exchange(group *one, group *other)
{
  group kept = *one;

  *one = *other;
  *other = kept;
}

static void
rise(group *groups, size_t at)
{
  for (; at > 0 && groups[at].gain < groups[(at - 1) / 2].gain; at = (at - 1) / 2) exchange(&groups[at], &groups[(at - 1) / 2]);
}

static void
sink(group *groups, size_t count)
{
  for (size_t at = 0, child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && groups[child + 1].gain < groups[child].gain) child++;
    if (groups[at].gain <= groups[child].gain) return;
    exchange(&groups[at], &groups[child]);
  }
}

int
culet_strings_best_wants(const struct culet_strings_best *best, uint64_t gain)
{
  if (best->room == 0) return 0;
  return best->count < best->room || gain > best->groups[0].gain;
}

void
culet_strings_best_add(struct culet_strings_best *best, const struct culet_string_group *added)
{
  if (!culet_strings_best_wants(best, added->gain)) return;
  if (best->count < best->room) {
    best->groups[best->count] = *added;
    rise(best->groups, best->count++);
  } else {
    best->groups[0] = *added;
    sink(best->groups, best->count);
  }
}

static int
larger_first(const void *one, const void *other)
{
  const group *a = one, *b = other;

  if (a->gain != b->gain) return a->gain < b->gain ? 1 : -1;
  return (a->offset > b->offset) - (a->offset < b->offset);
}

void
culet_strings_best_sort(struct culet_strings_best *best)
{
  qsort(best->groups, best->count, sizeof(*best->groups), larger_first);
}
