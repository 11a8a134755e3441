/* comparison/writes.h - sums of what was written to pages and what is on them. */
#pragma once

#include <ruby.h>
#include <ruby/st.h>

#include "comparison/owners.h"

/* Bits of a page's mask, in the order of Culet::Cow::Writes::CATEGORIES, which explains them. */
enum comparison_category {
    WRITES_FLAG_BITS = 1 << 0,
    WRITES_COLLECTOR = 1 << 1,
    WRITES_INLINE_CACHES = 1 << 2,
    WRITES_METADATA = 1 << 3,
    WRITES_REUSE = 1 << 4,
    WRITES_DATA = 1 << 5,
    WRITES_ELSEWHERE = 1 << 6,
    WRITES_UNKNOWN = 1 << 7,
    WRITES_SAME = 1 << 8,
    WRITES_FREED = 1 << 9,
    WRITES_AGED = 1 << 10,
    WRITES_MASKS = 1 << 11
};

/* In the order of Culet::Cow::Writes::Holding. */
enum comparison_kind { KIND_OLD, KIND_YOUNG, KIND_MADE, KIND_MALLOC, KIND_MALLOC_MADE, KINDS };

/* In the order of Culet::Cow::Comparison::FLAGS. */
enum comparison_flag { FLAG_AGE, FLAG_FROZEN, FLAG_SHAPE, FLAG_CODE_RANGE, FLAG_OTHER, FLAGS };

struct comparison_writes {
    uint64_t masks[WRITES_MASKS]; /* bytes of pages */
    uint64_t flags[FLAGS];        /* objects with changed bits */
    uint64_t holdings[OWNERS][KINDS];
    st_table *classes; /* address => uint64_t[KINDS]; NULL unless requested */
};

/* Adds bytes of an object or block. class_address: of its class; 0: not known. Raises NoMemoryError. */
void culet_comparison_add_bytes(struct comparison_writes *writes, unsigned owner, uint64_t class_address,
                                enum comparison_kind kind, uint64_t bytes);

/* Counts an object by the flags in which its first words differ. */
void culet_comparison_count_flags(struct comparison_writes *writes, uint64_t here, uint64_t there);

void culet_comparison_writes_free(struct comparison_writes *writes);
