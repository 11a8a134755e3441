#include "comparison/writes.h"

void culet_comparison_add_bytes(struct comparison_writes *writes, unsigned owner, uint64_t class_address,
                                enum comparison_kind kind, uint64_t bytes)
{
    st_data_t found;

    writes->holdings[owner][kind] += bytes;
    if (writes->classes == NULL || class_address == 0)
        return;
    if (!st_lookup(writes->classes, (st_data_t)class_address, &found)) {
        found = (st_data_t)xcalloc(KINDS, sizeof(uint64_t));
        st_insert(writes->classes, (st_data_t)class_address, found);
    }
    ((uint64_t *)found)[kind] += bytes;
}

void culet_comparison_count_flags(struct comparison_writes *writes, uint64_t here, uint64_t there)
{
    uint64_t ranges = (here & RUBY_SLOT_TYPE_MASK) == RUBY_SLOT_STRING ? RUBY_SLOT_CODE_RANGE_MASK : 0;
    uint64_t masks[FLAGS] = {RUBY_SLOT_AGE_MASK, RUBY_SLOT_FROZEN, RUBY_SLOT_SHAPE_MASK, ranges,
                             ~(RUBY_SLOT_AGE_MASK | RUBY_SLOT_FROZEN | RUBY_SLOT_SHAPE_MASK | ranges)};

    for (int flag = 0; flag < FLAGS; flag++)
        writes->flags[flag] += ((here ^ there) & masks[flag]) != 0;
}

static int free_sums(st_data_t address, st_data_t sums, st_data_t nothing)
{
    xfree((void *)sums);
    return ST_CONTINUE;
}

void culet_comparison_writes_free(struct comparison_writes *writes)
{
    if (writes->classes == NULL)
        return;
    st_foreach(writes->classes, free_sums, 0);
    st_free_table(writes->classes);
}
