/* harden.h - the level of hardening, and random numbers for it (CULET_HARDEN, off by default).
 *
 *     level  adds
 *     1      blocks at random places; large blocks with inaccessible pages around them, and none behind a dangling pointer
 *     2      canaries behind blocks, zeroing on free, delayed reuse, blocks that were written to after their free
 *     3      canaries also in front of blocks, and in all bytes behind them; a longer delay; checks of recent blocks, and of
 *            all at the end; an inaccessible page behind each slab
 *
 * The fast paths have no test for the level. In a hardened process they find no current unit, so each request takes the
 * slow path; and the pagemap's entries for slabs have another mark (pagemap.h), so each free does. checked.h goes on. */
#pragma once

#include "types.h"

enum { CULET_HARDEN_NONE, CULET_HARDEN_GUARDS, CULET_HARDEN_CANARIES, CULET_HARDEN_ALL };

/* Constant after set-up. */
extern uint8_t culet_harden_level __attribute__((visibility("hidden")));

/* Once, before the first block. Draws the secrets. */
void culet_harden_setup(unsigned level);

/* The level that a value of CULET_HARDEN sets; 0 unless it is one. */
unsigned culet_harden_parse(const char *value);

/* Other random numbers in a forked child; the canaries stay. */
void culet_harden_reseed(void);

/* A random number, and one below `bound`. */
uint64_t culet_harden_random(void);
static inline uint32_t culet_harden_random_below(uint32_t bound)
{
    return (uint32_t)((culet_harden_random() >> 32) * bound >> 32);
}

/* Bytes in front of the program's in a block of a slab, unless it has an alignment of its own. */
static inline size_t culet_harden_front(void)
{
    return culet_harden_level >= CULET_HARDEN_ALL ? 32 : 0;
}

/* A secret value for an address; `word` selects one of several. */
uint64_t culet_harden_canary(uintptr_t address, unsigned word);
