#include "comparison/writes.h"

void
culet_comparison_hold(struct comparison_writes *writes, unsigned owner, uint64_t class_address, enum comparison_kind kind, uint64_t bytes)
{
  st_data_t found;

  writes->holdings[owner][kind] += bytes;
  if (writes->classes == NULL || class_address == 0) return;
  if (!st_lookup(writes->classes, (st_data_t)class_address, &found)) {
    found = (st_data_t)xcalloc(KINDS, sizeof(uint64_t));
    st_insert(writes->classes, (st_data_t)class_address, found);
  }
  ((uint64_t *)found)[kind] += bytes;
}

void
culet_comparison_count_flags(struct comparison_writes *writes, uint64_t here, uint64_t there)
{
  uint64_t ranges = (here & SLOT_TYPE) == SLOT_STRING ? SLOT_CODE_RANGE : 0;
  uint64_t masks[FLAGS] = {SLOT_AGES, SLOT_FROZEN, SLOT_SHAPE, ranges, ~(SLOT_AGES | SLOT_FROZEN | SLOT_SHAPE | ranges)};

  for (int flag = 0; flag < FLAGS; flag++) writes->flags[flag] += ((here ^ there) & masks[flag]) != 0;
}

static int
free_sums(st_data_t address, st_data_t sums, st_data_t nothing)
{
  xfree((void *)sums);
  return ST_CONTINUE;
}

void
culet_comparison_writes_free(struct comparison_writes *writes)
{
  if (writes->classes == NULL) return;
  st_foreach(writes->classes, free_sums, 0);
  st_free_table(writes->classes);
}
