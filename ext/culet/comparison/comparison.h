/* comparison/comparison.h - Culet::PageComparison.call: compares the bytes of a process's pages with those of its
 * relative (parent or child) at the same addresses.
 *
 *   process_memory   the bytes of a process
 *   blocks           its malloc blocks
 *   heap_page        Ruby's heap pages in it
 *   process          the three above, of one process
 *   owners           the Ruby object that owns each block
 *   writes           sums of what was written and what is there
 *   ruby_pages       comparison of a heap page
 *   malloc_blocks    comparison of malloc blocks */
#pragma once

#include <ruby.h>

void culet_init_comparison(VALUE culet);
