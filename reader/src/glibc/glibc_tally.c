#include "glibc/glibc_tally.h"

#include "regions/region_records.h"

/* Looking up the page states of a resident chunk of this length takes two milliseconds. */
#define LONG_CHUNK (UINT64_C(1) << 29)

/* ---- pages ---- */

void culet_glibc_tally_states(struct culet_glibc_walk *walk, uint64_t to)
{
    struct culet_glibc_tally *now = &walk->now;
    uint64_t end = (to + walk->reading->page_bytes - 1) & ~(uint64_t)(walk->reading->page_bytes - 1);

    if (end <= now->states_to)
        return;
    if (end - now->states_to < LONG_CHUNK) {
        culet_reading_note_states(walk->reading, walk->region, now->states_to, end);
    } else {
        CULET_APPEND(walk->long_chunks, now->long_chunks, walk->long_room) = (struct culet_range){now->states_to, end};
    }
    now->states_to = end;
}

void culet_glibc_tally_flush(struct culet_glibc_walk *walk)
{
    if (walk->now.used_from < walk->now.at)
        culet_region_use(walk->region, walk->now.used_from, walk->now.at);
    walk->now.used_from = walk->now.at;
}

/* ---- runs of free chunks ---- */

static void begin_free(struct culet_glibc_walk *walk)
{
    if (!walk->now.free_from)
        walk->now.free_from = walk->now.at;
}

static void defer_trim(struct culet_glibc_walk *walk, uint64_t to, enum culet_glibc_end end)
{
    struct culet_glibc_caches *caches = &walk->heap->caches;

    CULET_APPEND(caches->deferred, caches->deferred_count, caches->deferred_room) =
        (struct culet_glibc_deferred_trim){.region = walk->region, .from = walk->now.free_from, .to = to, .end = end};
}

/* A run of free chunks ends at `to`, if there is one. */
static void end_free(struct culet_glibc_walk *walk, uint64_t to, enum culet_glibc_end end)
{
    struct culet_glibc_tally *now = &walk->now;
    uint64_t from = now->free_from;

    if (from && to - from >= walk->reading->page_bytes) {
        culet_glibc_tally_states(walk, to);
        if (now->is_deferred || to - from >= LONG_CHUNK)
            defer_trim(walk, to, end);
        else
            now->sum.trim += culet_glibc_trim_bytes(walk->region, from, to, end);
    }
    now->free_from = 0;
    now->is_deferred = false;
}

/* ---- chunks ---- */

static void add_block(struct culet_glibc_walk *walk, uint64_t bytes, enum culet_block_state state)
{
    culet_region_add_block(&walk->reading->regions, walk->region, bytes, state);
}

void culet_glibc_tally_overhead(struct culet_glibc_walk *walk, uint64_t to)
{
    struct culet_glibc_tally *now = &walk->now;

    culet_glibc_tally_flush(walk);
    end_free(walk, now->at, CULET_GLIBC_CHUNK);
    if (to > now->at) {
        culet_region_add_overhead(walk->region, now->at, to);
        now->sum.overhead += to - now->at;
        add_block(walk, to - now->at, CULET_BLOCK_OVERHEAD);
    }
    now->at = now->used_from = to;
}

/* A chunk that looks used but may be cached. Only fastbin chunks are merged by trim. */
static void add_candidate(struct culet_glibc_walk *walk, uint64_t bytes, uint64_t link)
{
    culet_glibc_candidates_add(&walk->heap->candidates, walk->now.at, bytes, link);
    if (bytes > CULET_GLIBC_FAST_BYTES) {
        end_free(walk, walk->now.at, CULET_GLIBC_CHUNK);
        return;
    }
    begin_free(walk);
    walk->now.is_deferred = true;
}

/* A tcache begins with small 16-bit counts. */
static bool can_be_tcache(uint64_t bytes, uint64_t word)
{
    return (bytes - CULET_GLIBC_LEAST_TCACHE <= 16 || bytes - (CULET_GLIBC_MOST_TCACHE - 16) <= 16) &&
           !(word & UINT64_C(0xff00ff00ff00ff00));
}

void culet_glibc_tally_used(struct culet_glibc_walk *walk, uint64_t bytes, uint64_t link)
{
    struct culet_glibc_tally *now = &walk->now;

    if (bytes < CULET_GLIBC_MOST_CACHED && culet_glibc_can_be_link(&walk->heap->candidates, now->at, link))
        add_candidate(walk, bytes, link);
    else if (now->free_from)
        end_free(walk, now->at, CULET_GLIBC_CHUNK);
    if (can_be_tcache(bytes, link))
        culet_glibc_caches_add_tcache(walk->reading, walk->heap, now->at, bytes);
    now->sum.used += bytes;
    culet_histogram_add(&now->sizes, CULET_BLOCK_USED, bytes, 1);
    add_block(walk, bytes, CULET_BLOCK_USED);
    now->at += bytes;
}

void culet_glibc_tally_free(struct culet_glibc_walk *walk, uint64_t bytes)
{
    struct culet_glibc_tally *now = &walk->now;

    culet_glibc_tally_flush(walk);
    begin_free(walk);
    now->sum.free += bytes;
    culet_histogram_add(&now->sizes, CULET_BLOCK_FREE, bytes, 1);
    add_block(walk, bytes, CULET_BLOCK_FREE);
    now->at += bytes;
    now->used_from = now->at;
}

void culet_glibc_tally_top(struct culet_glibc_walk *walk, uint64_t end)
{
    struct culet_glibc_tally *now = &walk->now;
    uint64_t bytes = end - now->at;

    culet_glibc_tally_flush(walk);
    begin_free(walk);
    end_free(walk, end, walk->is_main ? CULET_GLIBC_MAIN_TOP : CULET_GLIBC_TOP);
    now->sum.free += bytes;
    now->sum.chunks++;
    add_block(walk, bytes, CULET_BLOCK_FREE);
    now->at = now->used_from = end;
    culet_glibc_tally_states(walk, end);
}

void culet_glibc_tally_finish(struct culet_glibc_walk *walk)
{
    struct culet_glibc_sum *to = &walk->arena->sum;
    const struct culet_glibc_sum *from = &walk->now.sum;

    to->used += from->used;
    to->free += from->free;
    to->overhead += from->overhead;
    to->trim += from->trim;
    to->chunks += from->chunks;
    culet_histogram_merge(&walk->heap->sizes, &walk->now.sizes);
    culet_histogram_add_small(&walk->heap->sizes, &walk->now.small);
    walk->arena->heaps += walk->heap_start != 0;
}
