/* comparison/owners.h - the Ruby object that owns each malloc block: the one whose slot holds the block's address, or
 * whose own blocks lead to it. This needs no knowledge of object layouts; a number that happens to be an address can
 * cause a wrong owner. */
#pragma once

#include "comparison/process.h"

/* Below these: Ruby's type number. */
enum comparison_owner {
    OWNER_CODE = 32, /* instruction sequences, method entries, call caches */
    OWNER_HEAP_PAGE, /* the collector's description of a heap page */
    OWNER_UNKNOWN,   /* no known owner */
    OWNERS
};

/* Blocks to be followed. */
struct comparison_list {
    uint32_t *blocks;
    size_t count, capacity;
};

#define COMPARISON_DEEP 6

struct comparison_owners {
    unsigned char *owners; /* of each block */
    /* second word of each block's object, usually its class; 0: not known. NULL unless requested */
    uint64_t *classes;
    struct comparison_list deep[COMPARISON_DEEP], next;
    char *page;          /* space for a heap page */
    unsigned char *code; /* a bit for each word of the heap pages: whether a slot with code (OWNER_CODE) starts there */
};

/* Finds the owners of all blocks. Raises NoMemoryError and the thread's interrupts.
 *
 * classes: whether to record classes */
void culet_comparison_find_owners(struct comparison_owners *owners, struct comparison_process *process, int classes);

/* Whether code starts at an address in Ruby's heap, see OWNER_CODE. */
int culet_comparison_is_code(const struct comparison_owners *owners, const struct comparison_process *process,
                             uint64_t address);

void culet_comparison_owners_free(struct comparison_owners *owners);
