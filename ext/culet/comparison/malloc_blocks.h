/* comparison/malloc_blocks.h - what was written to malloc blocks, and what they hold. */
#pragma once

#include "comparison/writes.h"

struct comparison_malloc {
    struct comparison_process *here, *there;
    const struct comparison_owners *owners; /* of the blocks in `here` */
};

/* Counts the used blocks between two addresses. */
void culet_comparison_count_blocks(const struct comparison_malloc *malloc, uint64_t from, uint64_t to,
                                   struct comparison_writes *writes);

/* The categories of `count` differing words on one page, in ascending order of addresses. */
unsigned culet_comparison_malloc_mask(const struct comparison_malloc *malloc, const uint64_t *words, size_t count);
