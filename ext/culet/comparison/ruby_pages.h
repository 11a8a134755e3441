/* comparison/ruby_pages.h - one of Ruby's heap pages in two processes: what was written to it, slot by slot, and what lies in it. */
#ifndef CULET_COMPARISON_RUBY_PAGES_H
#define CULET_COMPARISON_RUBY_PAGES_H

#include "comparison/writes.h"

struct comparison_ruby {
  const struct comparison_heap_page *page; /* as the process has it; NULL: none is held */
  int readable;                       /* whether it could be read in both */
  uint64_t *here, *there;             /* its words in the process and in its relative */
  uint64_t old_mask;                  /* bits of an object's first word that together say that it is old */
};

/*
 * Counts the objects between two addresses of the page that is held.
 */
void culet_comparison_count_objects(const struct comparison_ruby *ruby, uint64_t from, uint64_t to, struct comparison_writes *writes);

/*
 * The categories of what was written there.
 *
 * words: addresses of `count` words that differ, ascending, in one of the kernel's pages
 * from: where the kernel's page begins
 * writes: learns of flags
 */
unsigned culet_comparison_ruby_mask(const struct comparison_ruby *ruby, const uint64_t *words, size_t count, uint64_t from, struct comparison_writes *writes);

#endif
