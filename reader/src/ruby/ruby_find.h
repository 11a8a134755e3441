/* ruby_find.h - finds the pages of Ruby's heap. */
#pragma once

#include "ruby/ruby_heap.h"

/* Whether pages can be blocks of malloc's: where the kernel's pages are longer than Ruby's, Ruby allocates them by
 * malloc. */
bool culet_ruby_pages_in_malloc(const struct culet_reading *reading);

/* Finds the pages, in address order, and notes candidates for the transient heap. Paused at the start; yields. */
void culet_ruby_find_pages(struct culet_reading *reading, struct culet_ruby *ruby);
