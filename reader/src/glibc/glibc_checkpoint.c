#include "glibc/glibc_tally.h"

#include "base/clock.h"

#include <string.h>

#define PER_SLICE 6u

void culet_glibc_checkpoint_save(struct culet_glibc_walk *walk)
{
    struct culet_glibc_tally *now = &walk->now;

    culet_glibc_tally_flush(walk);
    now->block_bytes = walk->region->blocks.length;
    now->blocks = walk->reading->regions.block_count;
    now->region_blocks = walk->region->block_count;
    now->overheads = walk->region->overhead_count;
    now->candidates = walk->heap->candidates.count;
    now->tcaches = walk->heap->caches.tcache_count;
    now->deferred = walk->heap->caches.deferred_count;
    now->page_used = culet_region_units(walk->region, now->at);
    if (walk->checkpoint_count == CULET_GLIBC_CHECKPOINTS) {
        memmove(walk->checkpoints, walk->checkpoints + 1, (CULET_GLIBC_CHECKPOINTS - 1) * sizeof *walk->checkpoints);
        walk->checkpoint_count--;
    }
    walk->checkpoints[walk->checkpoint_count++] = *now;
    walk->next_checkpoint_ns = culet_now() + walk->reading->target.slice_ns / PER_SLICE;
}

void culet_glibc_checkpoint_restore(struct culet_glibc_walk *walk)
{
    struct culet_region *region = walk->region;
    struct culet_glibc_tally *now = &walk->now;

    *now = walk->checkpoints[walk->checkpoint_count - 1];
    if (walk->checkpoint_count > 1)
        walk->checkpoint_count--;
    region->blocks.length = now->block_bytes;
    walk->reading->regions.block_count = now->blocks;
    region->block_count = now->region_blocks;
    region->overhead_count = now->overheads;
    walk->heap->candidates.count = now->candidates;
    walk->heap->caches.tcache_count = now->tcaches;
    walk->heap->caches.deferred_count = now->deferred;
    culet_region_rewind(region, now->at, now->page_used);
    /* The states of its page are as old: they are stored again. */
    if (now->states_to > now->at)
        now->states_to = now->at & ~(uint64_t)(walk->reading->page_bytes - 1);
}

/* The current end of the region; 0 if the heap is gone. */
static uint64_t current_end(struct culet_glibc_walk *walk)
{
    uint64_t end = walk->region->end;

    if (!culet_glibc_arena_refresh(walk->reading, walk->heap, walk->arena))
        return 0;
    if (walk->heap_start) {
        uint64_t bytes = culet_glibc_heap_bytes(walk->reading, walk->heap, walk->arena, walk->heap_start);
        return bytes ? walk->heap_start + bytes : 0;
    }
    if (walk->is_main)
        culet_glibc_arena_top_end(walk->reading, walk->arena, walk->region->start, &end);
    return end;
}

bool culet_glibc_checkpoint_refresh(struct culet_glibc_walk *walk)
{
    uint64_t end = current_end(walk);

    if (!end || end < walk->first)
        return false;
    for (unsigned i = 0; walk->now.at > end; i++) {
        if (i == CULET_GLIBC_CHECKPOINTS)
            return false;
        culet_glibc_checkpoint_restore(walk);
    }
    return end == walk->region->end || culet_region_resize(&walk->reading->regions, walk->region, end);
}
