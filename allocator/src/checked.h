/* checked.h - blocks of a hardened process (harden.h).
 *
 * From level 2 on, the end of each block has a trailer, which is not among the usable bytes:
 *
 *     canaries (level 3) | requested bytes | padding, with canaries | canaries (level 3) | shape | state
 *
 * At level 2 only 16 bytes of the padding have canaries. A block with an alignment of its own has none in front. Shape (the
 * numbers of bytes) and state are combined with secrets of the address. They are checked by free and realloc. A freed block is
 * filled with zeros and stays in quarantine, where it counts as used; the heap gets a random one back for it. A block
 * that is not zero when it is handed out was written to after its free. So every free block is zero, also in pages that
 * another class had before; but for pages that a forked child shares with its parent (inherited.h).
 *
 * At level 3 each request and free also looks at the blocks that were requested or freed last, and the end of the process at
 * all blocks.
 *
 * Blocks above CULET_SMALL_MAX are guarded huge blocks (large.c). */
#pragma once

#include "lock.h"
#include "types.h"

void culet_checked_setup(void);

/* A block; NULL when out of memory. Stores whether it reads as zeros. Not inside an arena afterwards. */
void *culet_checked_get(size_t bytes, size_t alignment, bool *zeroed);

/* Checks a block of a slab that is freed; a misuse unless it is live and unharmed. Returns a block that the caller is to
 * free: this one, another one that left the quarantine for it, or NULL. */
void *culet_checked_put(const char *function, struct culet_slab *slab, void *block);

/* A block of a quarantine with too many bytes, which the caller frees; NULL if there is none. */
void *culet_checked_evict(void);

/* The quarantine keeps pages from going back to the kernel. Empties it; and, for the scavenger, leaves in it as many blocks
 * as have arrived since the last call, or CULET_QUARANTINE_IDLE_BLOCKS if these are more. True, as is the third, while it
 * has more than the latter. Not inside an arena. */
void culet_checked_drain(void);
bool culet_checked_decay(void);
bool culet_checked_keeps_pages(void);

/* At the end of a process of level 3: checks all blocks of slabs. */
void culet_checked_at_exit(void);

/* Usable bytes: from level 2 on, the requested ones. A misuse unless the block is live and unharmed. */
size_t culet_checked_usable(const char *function, const struct culet_slab *slab, void *block);

/* Resizes a block of culet_checked_usable in place; false where another block fits better. */
bool culet_checked_resize(const struct culet_slab *slab, void *block, size_t bytes);

/* Guards trailers and the quarantine; held across fork. */
extern struct culet_lock culet_checked_lock;
