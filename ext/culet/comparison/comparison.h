/*
 * comparison/comparison.h - Culet::PageComparison.call: the bytes of a process's pages against those of its relative at the same addresses.
 *
 *   comparison_memory   the bytes of a process's pages
 *   comparison_blocks   its malloc's blocks
 *   comparison_slots    what the first word of an object says
 *   comparison_process     all of these of one process
 *   comparison_owners   to which object a block belongs
 *   comparison_writes   sums: what was written, and what lies there
 *   comparison_ruby     one of Ruby's pages in both processes
 *   comparison_malloc   malloc's blocks in both
 */
#ifndef CULET_COMPARISON_H
#define CULET_COMPARISON_H

#include <ruby.h>

void culet_init_comparison(VALUE culet);

#endif
