#define _GNU_SOURCE
#include "stats.h"

#include "../../sampler/core/residency.h"
#include "arena.h"
#include "bin.h"
#include "heap.h"
#include "large.h"
#include "lock.h"
#include "meta.h"
#include "os.h"
#include "pagemap.h"
#include "pages.h"
#include "purge.h"
#include "slab.h"

#include <errno.h>
#include <string.h>

_Static_assert(CULET_SIZES < CULET_STATS_CLASSES, "every class needs an entry");

/* How long a waiting thread gets the pages lock between two segments. Waking it takes some tens of microseconds;
 * without the pause the lock would be taken again first. */
#define YIELD_MICROSECONDS 50

static unsigned bits(uint64_t word)
{
    return (unsigned)__builtin_popcountll(word);
}

static void count_slab(struct culet_slab *slab, const struct culet_class *c, struct culet_stats_class *count)
{
    unsigned unused = 0;

    for (unsigned u = 0; u < culet_class_units(c); u++) {
        uint64_t bits_unused = culet_unit_unused(&slab->unit[u]) & culet_class_all(c, u);
        unused += bits_unused ? bits(bits_unused) : 0;
    }
    count->slabs++;
    count->used += c->count - unused;
    count->free += unused;
}

/* Resident pages of the heap, by what they are part of. */
struct resident {
    struct culet_residency source;
    size_t slabs, large, free;
};

/* Resident pages of a segment, a bit each. */
struct residents {
    uint64_t word[CULET_SEGMENT_PAGES / 64];
};

static void read_segment(const struct culet_residency *source, uintptr_t base, struct residents *residents)
{
    for (size_t i = 0; i < CULET_SEGMENT_PAGES / 64; i++)
        residents->word[i] = culet_residency_mask(source, (void *)(base + i * 64 * CULET_PAGE), CULET_PAGE);
}

static size_t residents_among(const struct residents *residents, size_t page, size_t pages)
{
    size_t count = 0;

    for (size_t g = page; g < page + pages && g < CULET_SEGMENT_PAGES; g++)
        count += residents->word[g / 64] >> g % 64 & 1;
    return count;
}

/* Counts the slabs of the segment at `base`, and the segment's resident pages. Returns the slabs' bytes. [pages lock] */
static size_t count_segment(uintptr_t base, struct culet_stats_class *count, struct resident *resident)
{
    size_t slabs = 0;
    struct residents residents;

    read_segment(&resident->source, base, &residents);
    for (size_t g = 0; g < CULET_SEGMENT_PAGES;) {
        uintptr_t entry = culet_pagemap_entry(base + g * CULET_PAGE);
        struct culet_span *span = culet_entry_span(entry);
        if (culet_entry_is_slab(entry) || culet_entry_is_checked_slab(entry)) {
            unsigned klass = atomic_load_explicit(&span->klass, memory_order_relaxed);
            count_slab((struct culet_slab *)span, &culet_classes[klass], &count[culet_size_class_plain(klass)]);
            resident->slabs += residents_among(&residents, g, culet_classes[klass].pages);
            g += culet_classes[klass].pages;
            slabs += culet_classes[klass].pages;
        } else {
            size_t pages = span ? ((struct culet_large *)span)->bytes >> CULET_PAGE_SHIFT : 1;
            *(span ? &resident->large : &resident->free) += residents_among(&residents, g, pages);
            g += pages;
        }
    }
    return slabs << CULET_PAGE_SHIFT;
}

/* Releases the pages lock, and yields to a waiting thread before it is taken again. */
static void unlock_and_yield(void)
{
    bool waited_for = atomic_load_explicit(&culet_pages_lock.state, memory_order_relaxed) > 1;

    culet_unlock(&culet_pages_lock);
    if (waited_for)
        culet_os_pause(YIELD_MICROSECONDS);
}

/* One segment at a time, so that no thread waits for the whole walk. */
static size_t count_slabs(struct culet_stats_class *count, struct resident *resident)
{
    size_t slab_bytes = 0;

    for (uint32_t i = 0; i < CULET_SEGMENTS; i++) {
        culet_lock(&culet_pages_lock);
        uintptr_t base = culet_pages_segment(i);
        if (base && base != CULET_PAGES_END)
            slab_bytes += count_segment(base, count, resident);
        unlock_and_yield();
        if (base == CULET_PAGES_END)
            break;
    }
    return slab_bytes;
}

/* Blocks that are claimed for the profile look used in their slabs. */
static void count_claims(struct culet_stats_class *count)
{
    for (unsigned i = 0; i < culet_arena_count(); i++)
        for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
            struct culet_stats_class *c = &count[culet_size_class_plain(klass)];
            uint64_t free = atomic_load_explicit(&culet_arena(i)->claim[klass].unit.free, memory_order_relaxed);
            unsigned claimed = free ? bits(free) : 0;
            if (claimed > c->used)
                claimed = (unsigned)c->used;
            c->used -= claimed;
            c->free += claimed;
        }
}

/* Without a purge at that time: free blocks whose pages it returns look used, and the claims that it ends are in no unit. */
static void count_blocks(struct culet_stats *s, struct resident *resident)
{
    s->classes = CULET_SIZES + 1;
    culet_lock(&culet_purge_lock);
    s->slab_bytes = count_slabs(s->class, resident);
    if (culet_bin_profiled())
        count_claims(s->class);
    culet_unlock(&culet_purge_lock);
    for (unsigned klass = 1; klass <= CULET_SIZES; klass++) {
        struct culet_stats_class *c = &s->class[klass];
        c->block_bytes = culet_classes[klass].size;
        s->used_bytes += c->used * c->block_bytes;
        s->cached_bytes += c->cached * c->block_bytes;
    }
}

/* Blocks in use of slabs are resident, except new ones, so resident memory beyond them is free. */
static void count_resident(struct culet_stats *s, const struct resident *resident, size_t slab_used_bytes)
{
    size_t slabs = resident->slabs << CULET_PAGE_SHIFT, used = slab_used_bytes < slabs ? slab_used_bytes : slabs;

    s->used_resident_bytes = s->unused_resident_bytes = CULET_STATS_UNKNOWN;
    if (resident->source.file < 0)
        return;
    s->used_resident_bytes = used + (resident->large << CULET_PAGE_SHIFT) + culet_large_resident(&resident->source);
    s->unused_resident_bytes = slabs - used + (resident->free << CULET_PAGE_SHIFT);
}

static void gather(struct culet_stats *s)
{
    struct resident resident = {.slabs = 0};

    culet_residency_open(&resident.source);
    count_blocks(s, &resident);
    count_resident(s, &resident, s->used_bytes);
    culet_residency_close(&resident.source);

    struct culet_large_stats large = culet_large_stats();
    culet_lock(&culet_pages_lock);
    struct culet_pages_stats pages = culet_pages_stats();
    culet_unlock(&culet_pages_lock);

    s->segments = pages.segments;
    s->heap_bytes = pages.segments * CULET_SEGMENT_BYTES;
    s->runs = large.large;
    s->run_bytes = large.large_bytes;
    s->large_blocks = large.huge;
    s->large_bytes = large.huge_bytes;
    s->mapped_bytes = s->heap_bytes + s->large_bytes;
    s->used_bytes += s->run_bytes;
    /* Counted at different moments, the sums could cross. */
    if (s->used_bytes > s->heap_bytes)
        s->used_bytes = s->heap_bytes;
    s->free_bytes = s->heap_bytes - s->used_bytes;
    s->free_resident_bytes = pages.dirty << CULET_PAGE_SHIFT;
    s->free_returned_bytes = (pages.free - pages.dirty) << CULET_PAGE_SHIFT;
    s->descriptor_bytes = culet_meta_bytes();
    s->returned_bytes = pages.purged_bytes;
    s->purges = pages.purges;
    s->forks = culet_heap_forks();
    s->threads = culet_arena_threads();
    s->arenas = culet_arena_count();
}

int culet_stats(struct culet_stats *out, size_t bytes)
{
    struct culet_stats stats = {0};

    if (bytes < sizeof stats.filled_bytes) {
        errno = EINVAL;
        return -1;
    }
    if (culet_heap_dormant()) {
        errno = ENOTSUP;
        return -1;
    }
    gather(&stats);
    stats.filled_bytes = bytes < sizeof stats ? bytes : sizeof stats;
    memcpy(out, &stats, stats.filled_bytes);
    return 0;
}
