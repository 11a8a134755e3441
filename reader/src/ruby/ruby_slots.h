/* ruby_slots.h - reads the slots of Ruby's pages and makes their regions. */
#pragma once

#include "ruby/ruby_heap.h"

/* Walks all pages found, and drops those that cannot be a region. Paused at the start; yields. */
void culet_ruby_walk_pages(struct culet_reading *reading, struct culet_ruby *ruby);
