/* checked.h - blocks of a hardened process (harden.h).
 *
 * From level 2 on, the end of each block has a trailer, which is not among the usable bytes:
 *
 *     requested bytes | padding, 16 bytes of it with canaries | canaries (level 3) | requested size | state
 *
 * Size and state are combined with secrets of the address. The trailer is checked by free and realloc. A freed block is
 * filled with zeros and stays in quarantine, where it counts as used; the heap gets a random one back for it. A block
 * that is not zero when it is handed out was written to after its free. So every free block is zero, also in pages that
 * another class had before.
 *
 * Blocks above CULET_SMALL_MAX are guarded huge blocks (large.c). */
#ifndef CULET_CHECKED_H
#define CULET_CHECKED_H

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

/* Usable bytes: from level 2 on, the requested ones. A misuse unless the block is live and unharmed. */
size_t culet_checked_usable(const char *function, const struct culet_slab *slab, void *block);

/* Resizes a block of culet_checked_usable in place; false where another block fits better. */
bool culet_checked_resize(const struct culet_slab *slab, void *block, size_t bytes);

/* Whether the address may be a block of no bytes. */
extern uintptr_t culet_checked_empty_start;
#define CULET_CHECKED_EMPTY_BYTES ((size_t)1 << 20)
static inline bool culet_checked_is_empty(const void *block)
{
    return culet_checked_empty_start && (uintptr_t)block - culet_checked_empty_start < CULET_CHECKED_EMPTY_BYTES;
}

/* Checks that such a block is live, or frees it; false unless it is live. */
bool culet_checked_empty_is_live(const void *block);
bool culet_checked_put_empty(const void *block);

/* Guards the quarantine; held across fork. */
extern struct culet_lock culet_checked_lock;

#endif
