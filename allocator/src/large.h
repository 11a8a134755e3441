/* large.h - blocks with a descriptor of their own: large ones (a range of pages of the page heap) and, above
 * CULET_LARGE_MAX, huge ones (a mapping of the kernel's, cached after a free: huge_cache.h). */
#pragma once

#include "pagemap.h"
#include "types.h"

struct culet_large_stats {
    size_t large, large_bytes;
    size_t huge, huge_bytes;
};

/* A block of `bytes` (above CULET_SMALL_MAX, or of an alignment that slabs do not have), its start a multiple of
 * `alignment`. Stores whether all of it reads as zero. NULL when out of memory. */
void *culet_large_get(size_t bytes, size_t alignment, bool *zeroed);

/* In place of a sample's number: the profile has no such sample, but a tracer may (probes.h). */
#define CULET_SAMPLE_TRACED UINT32_MAX

/* Marks a new block as a sample of the profile. `usable`: its usable bytes if it is in place of a slab's block, else 0. */
void culet_large_set_sample(void *block, size_t usable, uint32_t sample);

/* Removes a sample from the profile. The thread that forks holds the profile's lock: what it frees is removed by the second
 * function, after the fork. */
void culet_large_remove_sample(uint32_t sample);
void culet_large_remove_forked_samples(void);

/* Frees the block at `start`; false if no such block is there any more. */
bool culet_large_put(struct culet_span *span, uintptr_t start);

/* Resizes in place or by moving pages. NULL, and nothing has changed, where that is not possible. A sample stays one. */
void *culet_large_resize(struct culet_span *span, size_t bytes);

/* Usable bytes of the block. */
static inline size_t culet_large_bytes(const struct culet_span *span)
{
    const struct culet_large *block = (const struct culet_large *)span;
    return CULET_UNLIKELY(block->usable) ? block->usable : block->bytes;
}

/* The size class that a sampled block would have in a slab; 0 for a large or huge one. */
unsigned culet_large_class(const struct culet_span *span);

/* The large or huge block that contains an address, or NULL. */
struct culet_large *culet_large_containing(uintptr_t address);

/* In a forked child: finishes the frees of huge blocks and the purges that other threads had begun. */
void culet_large_finish_frees(void);

/* The freed block that an address lies in; of one that was no large block, what its page's record says. */
struct culet_freed culet_large_freed(uintptr_t address);

struct culet_large_stats culet_large_stats(void);

/* Resident bytes of the huge blocks. Of very many, the rest counts as resident. No lock held. */
struct culet_residency;
size_t culet_large_resident(const struct culet_residency *source);
