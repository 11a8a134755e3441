#define _GNU_SOURCE
#include "glibc/glibc_tally.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "regions/region_records.h"

#include <stdlib.h>

/* How often a walk goes back before it is given up. */
#define TRIES 40u
/* A fault at the same address after so many tries is in the heap. */
#define SAME_FAULTS 12u
/* After each so many of them the walk begins again at the region's start. Every checkpoint but the first may lie in chunks
 * that have been merged since, and where slices are short a walk saves as many checkpoints as it goes back. */
#define FAULTS_BEFORE_RESTART 3u

/* Bytes fetched at once: multiplied by four while chunks go on close after the last fetch, divided by four if not. */
#define LEAST_FETCH 4096u
#define FIRST_FETCH 32768u
#define FAR 16384u

/* Read of each chunk: its sizes and the first word of its user data. (After the last fencepost of a heap 16 bytes
 * are never used.) */
#define CHUNK_BYTES 24u
#define NO_LINK UINT64_MAX

enum outcome { DONE, DUE, FAULT };

static enum outcome fault(struct culet_glibc_walk *walk, uint64_t at, const char *why)
{
    walk->same_faults = at == walk->fault ? walk->same_faults + 1 : 1;
    walk->fault = at;
    walk->why = why;
    return FAULT;
}

/* ---- reading ---- */

/* Where the fetch from `at` on ends. It does not go beyond the page states at hand, so that each state is looked up
 * once. */
static uint64_t fetch_end(struct culet_glibc_walk *walk, uint64_t at, uint64_t end)
{
    const struct culet_memory *memory = &walk->reading->memory;
    struct culet_pages *pages = &walk->reading->pages;

    if (memory->end && at - memory->end >= FAR)
        walk->fetch_bytes = walk->fetch_bytes / 4 > LEAST_FETCH ? walk->fetch_bytes / 4 : LEAST_FETCH;
    else if (memory->end)
        walk->fetch_bytes = walk->fetch_bytes < CULET_MEMORY_WINDOW / 4 ? walk->fetch_bytes * 4 : CULET_MEMORY_WINDOW;
    /* Up to the end of a page: a page costs more than its bytes. */
    uint64_t to = (at + walk->fetch_bytes) & ~(uint64_t)(walk->reading->page_bytes - 1);
    culet_pages_at(pages, at);
    uint64_t known = (pages->first + pages->count) << pages->shift;
    if (to > known && known > at + CHUNK_BYTES)
        to = known;
    return to > at && to < end ? to : end;
}

/* The header of the chunk at `at`; NULL if it is not in memory. */
static const unsigned char *header_at(struct culet_glibc_walk *walk, uint64_t at, uint64_t end)
{
    struct culet_memory *memory = &walk->reading->memory;
    size_t length, least = end - at < CHUNK_BYTES ? GLIBC_CHUNK_HEADER_BYTES : CHUNK_BYTES;

    if (at >= memory->start && at + least <= memory->end)
        return memory->window + (at - memory->start);
    /* Now, while the window of page states is there. */
    culet_glibc_tally_states(walk, at);
    uint64_t to = fetch_end(walk, at, end);
    const unsigned char *data = culet_memory_span(memory, at, least, to, &length);
    /* The user data may begin with a page that is not in memory. */
    if (!data && least > GLIBC_CHUNK_HEADER_BYTES)
        data = culet_memory_span(memory, at, GLIBC_CHUNK_HEADER_BYTES, to, &length);
    if (data)
        culet_glibc_tally_states(walk, memory->end);
    return data;
}

/* The first word of the user data of the chunk at `at`, whose header was fetched; NO_LINK if it is not in memory. */
static uint64_t link_of(const struct culet_memory *memory, uint64_t at)
{
    if (at + CHUNK_BYTES > memory->end)
        return NO_LINK;
    return culet_word_at(memory->window + (at - memory->start) + GLIBC_CHUNK_HEADER_BYTES);
}

static enum outcome unreadable(struct culet_glibc_walk *walk, uint64_t at)
{
    uint8_t state = culet_pages_at(&walk->reading->pages, at);

    return fault(walk, at,
                 state & CULET_PAGE_SWAPPED ? "a chunk's header is in swap"
                 : state                    ? "a chunk's header cannot be read"
                                            : "a chunk's header is not in memory");
}

/* ---- the end of a region ---- */

static enum outcome finish_at_top(struct culet_glibc_walk *walk, uint64_t size)
{
    uint64_t end = walk->now.at + (size & ~GLIBC_CHUNK_FLAGS);

    if (end != walk->region->end)
        return fault(walk, walk->now.at, "the top chunk does not end where its heap does");
    culet_glibc_tally_top(walk, end);
    return DONE;
}

static enum outcome finish_with_overhead(struct culet_glibc_walk *walk)
{
    culet_glibc_tally_overhead(walk, walk->region->end);
    culet_glibc_tally_states(walk, walk->region->end);
    return DONE;
}

/* A fencepost: a chunk of less than the least size. */
static enum outcome finish_at_fencepost(struct culet_glibc_walk *walk, uint64_t size)
{
    uint64_t at = walk->now.at, top = walk->arena->top, next;

    if (walk->heap_start ? walk->region->end - at > GLIBC_CHUNK_LEAST_BYTES : size != 16)
        return fault(walk, at, "a chunk is smaller than chunks can be");
    if (walk->heap_start)
        return finish_with_overhead(walk);
    /* Another user of brk has left a gap in main's heap. */
    if (top > at + 32 && top < walk->region->end) {
        if (culet_glibc_gap_end(walk->reading, walk->heap, walk->arena, &walk->gap, at + 32, &next))
            culet_glibc_tally_overhead(walk, next);
        return DUE;
    }
    /* Two fenceposts end a contiguous part, in whole pages. */
    uint64_t page = walk->reading->page_bytes, end = (at + 32 + page - 1) & ~(page - 1);
    if (end < walk->region->end)
        culet_region_resize(&walk->reading->regions, walk->region, end);
    return finish_with_overhead(walk);
}

/* ---- the chunks ---- */

/* Bits of a plain chunk's size: a multiple of 16 below 1 KiB, and all flags except MMAPPED. */
#define PLAIN_BITS                                                                                                     \
    ((uint64_t)(CULET_HISTOGRAM_EXACT - CULET_HISTOGRAM_STEP) | GLIBC_CHUNK_PREV_INUSE | GLIBC_CHUNK_NON_MAIN)

/* Bit n: a chunk of n times 16 bytes is plain by its size: not too small, and not of a tcache's size. */
#define UP_TO(bytes) ((UINT64_C(2) << (bytes) / CULET_HISTOGRAM_STEP) - 1)
#define PLAIN_SIZES                                                                                                    \
    (~UP_TO(GLIBC_CHUNK_LEAST_BYTES - CULET_HISTOGRAM_STEP) &                                                          \
     ~(UP_TO(CULET_GLIBC_MOST_TCACHE) & ~UP_TO(CULET_GLIBC_LEAST_TCACHE - CULET_HISTOGRAM_STEP)))

/* The fast path for most chunks: used, smaller than 1 KiB, followed by a used one, header in the window. Ends at the
 * first chunk of another kind, and where the next one is at `limit` or after it. */
static void walk_plain_chunks(struct culet_glibc_walk *walk, uint64_t limit, uint64_t *first_size, uint64_t *first_link)
{
    struct culet_glibc_tally *now = &walk->now;
    struct culet_regions *regions = &walk->reading->regions;
    const struct culet_glibc_candidates *candidates = &walk->heap->candidates;
    /* A number, since there may be no object at this difference. */
    const uintptr_t window = (uintptr_t)walk->reading->memory.window - walk->reading->memory.start;
    uint64_t at = now->at, size = *first_size, link = *first_link, count = 0;
    bool keep = regions->block_count < regions->max_blocks;
    /* A link leads to a multiple of 16, in either form: this rules out most words. */
    uint64_t not_protected = candidates->links == CULET_GLIBC_LINKS_PLAIN ? 15 : 0;
    uint64_t not_plain = candidates->links == CULET_GLIBC_LINKS_PROTECTED ? 15 : 0;

    for (;;) {
        uint64_t bytes = size & ~GLIBC_CHUNK_FLAGS, next = at + bytes, revealed = link ^ ((at + 16) >> 12);
        if (size & ~PLAIN_BITS || !(PLAIN_SIZES >> bytes / CULET_HISTOGRAM_STEP & 1) || next >= limit)
            break;
        if ((!((revealed | not_protected) & 15) || !((link | not_plain) & 15)) &&
            culet_glibc_can_be_link(candidates, at, link))
            break;
        uint64_t next_size = culet_word_at((const unsigned char *)(window + next + 8));
        if (!(next_size & GLIBC_CHUNK_PREV_INUSE))
            break;
        now->small.count[bytes / CULET_HISTOGRAM_STEP]++;
        if (keep)
            culet_region_add_block(regions, walk->region, bytes, CULET_BLOCK_USED);
        count++;
        at = next;
        size = next_size;
        link = culet_word_at((const unsigned char *)(window + next + 16));
    }
    if (!keep) {
        regions->block_count += count;
        walk->region->block_count += count;
    }
    now->sum.used += at - now->at;
    now->sum.chunks += count;
    now->at = at;
    *first_size = size;
    *first_link = link;
}

/* The limit for walk_plain_chunks: chunks before it have their header and first word in the window, and are neither
 * the top nor at the end of the region. */
static uint64_t plain_limit(const struct culet_glibc_walk *walk)
{
    uint64_t limit = walk->reading->memory.end, top = walk->arena->top;

    if (walk->now.at < walk->reading->memory.start)
        return 0;
    if (limit > walk->region->end)
        limit = walk->region->end;
    limit = limit > CHUNK_BYTES ? limit - CHUNK_BYTES : 0;
    return top >= walk->now.at && top < limit ? top : limit;
}

/* Walks chunk after chunk, until the end, a fault, or the end of the slice. */
static enum outcome walk_chunks(struct culet_glibc_walk *walk)
{
    struct culet_glibc_tally *now = &walk->now;
    const uint64_t end = walk->region->end, top = walk->arena->top;
    const struct culet_memory *memory = &walk->reading->memory;

    if (now->at > end || end - now->at < GLIBC_CHUNK_HEADER_BYTES)
        return fault(walk, now->at, "the heap ends before its last chunk");
    const unsigned char *header = header_at(walk, now->at, end);
    if (!header)
        return unreadable(walk, now->at);
    uint64_t size = culet_word_at(header + 8), link = link_of(memory, now->at);
    for (;;) {
        if (!now->free_from)
            walk_plain_chunks(walk, plain_limit(walk), &size, &link);
        uint64_t bytes = size & ~GLIBC_CHUNK_FLAGS;
        if (now->at == top)
            return finish_at_top(walk, size);
        if (bytes < GLIBC_CHUNK_LEAST_BYTES)
            return finish_at_fencepost(walk, bytes);
        uint64_t next = now->at + bytes;
        if (bytes & 15 || size & GLIBC_CHUNK_MMAPPED || bytes > end - now->at || end - next < GLIBC_CHUNK_HEADER_BYTES)
            return fault(walk, now->at, "a chunk's size is wrong");
        if (next < memory->start || next + CHUNK_BYTES > memory->end) {
            if (!(header = header_at(walk, next, end)))
                return unreadable(walk, next);
            uint64_t clock = culet_now();
            if (walk->reading->target.mode == CULET_SLICED && clock >= walk->reading->target.due_ns)
                return DUE;
            if (clock >= walk->next_checkpoint_ns)
                culet_glibc_checkpoint_save(walk);
        } else {
            header = memory->window + (next - memory->start);
        }
        uint64_t next_size = culet_word_at(header + 8), next_link = link_of(memory, next);
        now->sum.chunks++;
        if (!(next_size & GLIBC_CHUNK_PREV_INUSE)) {
            if (culet_word_at(header) != bytes || !(size & GLIBC_CHUNK_PREV_INUSE))
                return fault(walk, now->at, "a free chunk's two sizes differ");
            culet_glibc_tally_free(walk, bytes);
        } else {
            culet_glibc_tally_used(walk, bytes, link);
        }
        size = next_size;
        link = next_link;
    }
}

/* ---- slices ---- */

/* Lets the process run and pauses it again; the walk goes on at the newest checkpoint, which is here unless `back`. */
static bool next_slice(struct culet_glibc_walk *walk, bool back)
{
    if (!back)
        culet_glibc_checkpoint_save(walk);
    culet_reading_resume(walk->reading);
    culet_reading_pause(walk->reading);
    culet_glibc_wait_until_idle(walk->reading, walk->heap, walk->arena);
    culet_glibc_checkpoint_restore(walk);
    return culet_glibc_checkpoint_refresh(walk);
}

static bool walk_slices(struct culet_glibc_walk *walk)
{
    for (;;) {
        enum outcome outcome = walk_chunks(walk);
        if (outcome == DONE)
            return true;
        if (outcome == DUE) {
            /* Also after a gap, which needs no new slice. */
            if (culet_target_due(&walk->reading->target) && !next_slice(walk, false) && ++walk->tries > TRIES)
                return false;
            continue;
        }
        if (++walk->tries > TRIES || walk->reading->target.mode == CULET_STOPPED || walk->same_faults >= SAME_FAULTS)
            return false;
        if (walk->same_faults % FAULTS_BEFORE_RESTART == 0)
            walk->checkpoint_count = 1;
        if (!next_slice(walk, true) && walk->tries > TRIES)
            return false;
    }
}

/* A permanent fault: the rest of the region is unknown. */
static void give_up(struct culet_glibc_walk *walk)
{
    culet_glibc_break(walk->arena, "at 0x%llx: %s", (unsigned long long)walk->fault,
                      walk->why ? walk->why : "its heap is gone");
    if (walk->now.at < walk->region->end)
        culet_glibc_tally_overhead(walk, walk->region->end);
    culet_glibc_tally_states(walk, walk->region->end);
}

void culet_glibc_walk_region(struct culet_reading *reading, struct culet_glibc *heap, struct culet_glibc_arena *arena,
                             struct culet_region *region, uint64_t first, uint64_t heap_start)
{
    struct culet_glibc_walk *walk = culet_new(1, sizeof *walk);
    size_t first_candidate = heap->candidates.count;
    bool done = false;

    *walk = (struct culet_glibc_walk){.reading = reading,
                                      .heap = heap,
                                      .arena = arena,
                                      .region = region,
                                      .first = first,
                                      .heap_start = heap_start,
                                      .is_main = arena->address == heap->main,
                                      .fetch_bytes = FIRST_FETCH};
    walk->now.at = walk->now.used_from = region->start;
    walk->now.states_to = region->start & ~(uint64_t)(reading->page_bytes - 1);
    region->first_block = region->start;
    if (culet_glibc_checkpoint_refresh(walk) && first >= region->start && first <= region->end) {
        culet_glibc_tally_overhead(walk, first);
        culet_glibc_checkpoint_save(walk);
        done = walk_slices(walk);
    }
    if (!done)
        give_up(walk);
    /* The process may run from now on: the pages of long chunks do not depend on the moment. */
    for (size_t i = 0; i < walk->now.long_chunks; i++)
        culet_reading_note_states_yielding(reading, region, walk->long_chunks[i].start, walk->long_chunks[i].end);
    culet_glibc_candidates_end_region(&heap->candidates, region, first_candidate);
    culet_glibc_tally_finish(walk);
    free(walk->long_chunks);
    free(walk);
}
