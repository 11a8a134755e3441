/* inherited.h - in a hardened process that was forked: pages of slabs that it has not allocated from since.
 *
 * Such a page may still be shared with the parent, and a free that zeroes the block would make a copy of it. So a block
 * on an inherited page is freed as in a process that is not hardened: nothing is written. Its page is *stale* from then
 * on: a free block there need not be zero, and is zeroed by the next request instead of being checked.
 *
 * Both marks are bits per page, by the slab's segment. A process that was not forked has none. */
#pragma once

#include "types.h"

/* In a forked child, before it has other threads: all pages of slabs are inherited; stale ones stay so. */
void culet_inherited_after_fork(void);

/* Whether a page of the block is inherited. */
bool culet_inherited(const struct culet_slab *slab, uintptr_t block, size_t bytes);

/* The pages of a block that a request is about to write to are the process's own from here on. */
void culet_inherited_own(const struct culet_slab *slab, uintptr_t block, size_t bytes);

/* Whether a page of the block is stale; and marks them, before the block is free. */
bool culet_inherited_stale(const struct culet_slab *slab, uintptr_t block, size_t bytes);
void culet_inherited_set_stale(const struct culet_slab *slab, uintptr_t block, size_t bytes);
