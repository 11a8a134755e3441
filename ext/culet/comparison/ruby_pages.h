/* comparison/ruby_pages.h - compares a page of Ruby's heap in two processes, slot by slot. */
#pragma once

#include "comparison/writes.h"

struct comparison_ruby {
    const struct comparison_heap_page *page; /* the current page, as in the process; NULL: none */
    int readable;                            /* whether it could be read in both processes */
    uint64_t *here, *there;                  /* its words in the process and the relative */
    uint64_t old_mask;                       /* bits of an object's first word that together mark it as old */
};

/* Counts the objects between two addresses of the current page. */
void culet_comparison_count_objects(const struct comparison_ruby *ruby, uint64_t from, uint64_t to,
                                    struct comparison_writes *writes);

/* The categories of differing words; counts changed flags in `writes`.
 *
 * words: `count` addresses in ascending order, on one page of the kernel
 * from: start of that page */
unsigned culet_comparison_ruby_mask(const struct comparison_ruby *ruby, const uint64_t *words, size_t count,
                                    uint64_t from, struct comparison_writes *writes);

/* Whether the collector writes to a page of the kernel, which is equal in both processes, as the objects that begin
 * there grow old. */
int culet_comparison_ruby_ages(const struct comparison_ruby *ruby, uint64_t from, uint64_t to);
