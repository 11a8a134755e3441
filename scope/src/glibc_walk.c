#define _GNU_SOURCE
#include "glibc.h"

#include <stdlib.h>
#include <string.h>

/* Where a walk can be taken up again. A slice's last chunk need not be one any more when the next slice begins: it may
 * have been merged with the one before. Then the walk goes back to an older place. */
#define CHECKPOINTS 8u
/* So many are spread over a slice. */
#define PER_SLICE 6u

/* How often a walk goes back before it is given up. */
#define TRIES 40u
/* A fault that is at the same address after so many tries is one of the heap, not of the moment. */
#define SAME_FAULTS 3u
/* It may still be of the moment while a thread that changes the arena waits for a processor. */
#define SAME_FAULTS_BUSY 12u

/* Bytes fetched at once: four times as many each time that the chunks go on close behind what was fetched last, a
 * quarter each time that one is far behind. */
#define LEAST_FETCH 4096u
#define FIRST_FETCH 32768u
#define FAR 16384u

/* Of a chunk its sizes and its block's first word are looked at. (What follows a heap's last fencepost, 16 bytes, is
 * never used.) */
#define HEADER 24u
#define NO_LINK UINT64_MAX

/* systrim keeps a chunk of the least size, and a byte, in main's top. */
#define TOP_KEEPS 33u

struct state {
    uint64_t at;        /* the next chunk */
    uint64_t used_from; /* used bytes up to `at` that are not in the pages' tally yet; `at`: none */
    uint64_t free_from; /* free chunks, fastbin's among them, lie from here to `at`; 0: none */
    uint64_t known_to;  /* states of pages are noted up to here */
    bool doubtful;      /* of these some only look used, if so */
    size_t maybes, tcaches, doubts, later;
    size_t log_bytes, others;
    uint64_t log_chunks, log_noted;
    uint16_t page_used;
    struct culet_glibc_sum sum;
    struct culet_sizes sizes;
    struct culet_small_sizes small; /* more of the used ones */
};

struct walk {
    struct culet_scope *scope;
    struct culet_glibc *heap;
    struct culet_glibc_arena *arena;
    struct culet_place *place;
    uint64_t first, heap_start;
    bool main;
    struct state now;
    struct state *checkpoints; /* the newest last */
    unsigned kept;
    uint64_t next_checkpoint_ns;
    uint64_t fault;       /* address; of the last try */
    unsigned same, tries;
    const char *why;      /* the last fault */
    size_t fetch;
    uint64_t gap, gap_at; /* a gap, and how far it was searched for its end */
    struct culet_range *later; /* long chunks, whose pages' states are noted when the walk is over */
    size_t later_room;
};

enum outcome { DONE, DUE, FAULT };

static enum outcome fault(struct walk *walk, uint64_t at, const char *why)
{
    walk->same = at == walk->fault ? walk->same + 1 : 1;
    walk->fault = at;
    walk->why = why;
    return FAULT;
}

/* ---- the pages' states and tally ---- */

/* Chunks from which on it takes long to see which of their pages are in memory: two milliseconds when all are. */
#define LONG_CHUNK (UINT64_C(1) << 29)

/* Everything below `to` has been seen in this pause or an earlier one: what the pages are is noted with it. */
static void note_states(struct walk *walk, uint64_t to)
{
    uint64_t end = (to + walk->scope->page_bytes - 1) & ~(uint64_t)(walk->scope->page_bytes - 1);

    if (end <= walk->now.known_to)
        return;
    if (end - walk->now.known_to < LONG_CHUNK) {
        culet_scope_states(walk->scope, walk->place, walk->now.known_to, end);
    } else {
        walk->later = culet_grow(walk->later, &walk->later_room, walk->now.later + 1, sizeof *walk->later);
        walk->later[walk->now.later++] = (struct culet_range){walk->now.known_to, end};
    }
    walk->now.known_to = end;
}

static void flush_used(struct walk *walk)
{
    if (walk->now.used_from < walk->now.at)
        culet_place_use(&walk->scope->places, walk->place, walk->now.used_from, walk->now.at);
    walk->now.used_from = walk->now.at;
}

/* Resident bytes of the whole pages in from..to. */
static uint64_t whole_pages(const struct culet_scope *scope, const struct culet_place *place, uint64_t from,
                            uint64_t to)
{
    uint64_t page = scope->page_bytes;

    return culet_place_in_state(&scope->places, place, (from + page - 1) & ~(page - 1), to & ~(page - 1), CULET_PAGE_PRESENT);
}

/* Algorithm: mtrim and systrim of glibc's malloc/malloc.c. A chunk in a bin keeps its header and links; of main's top a
 * chunk of the least size and a byte are kept, and it goes back from its end on; other arenas' stays. */
uint64_t culet_glibc_trimmed(const struct culet_scope *scope, const struct culet_place *place, uint64_t from,
                             uint64_t to, enum culet_glibc_end end)
{
    if (end == CULET_GLIBC_TOP || to <= from)
        return 0;
    if (end == CULET_GLIBC_CHUNK)
        return whole_pages(scope, place, from + GLIBC_CHUNK_STRUCT_BYTES, to);
    if (to - from <= TOP_KEEPS)
        return 0;
    return whole_pages(scope, place, to - ((to - from - TOP_KEEPS) & ~(uint64_t)(scope->page_bytes - 1)), to);
}

/* A run of free chunks ends at `to`. */
static void end_free(struct walk *walk, uint64_t to, enum culet_glibc_end end)
{
    struct culet_glibc_cached *cached = &walk->heap->cached;
    uint64_t from = walk->now.free_from;

    if (from && to - from >= walk->scope->page_bytes) {
        note_states(walk, to);
        if (walk->now.doubtful || to - from >= LONG_CHUNK) {
            cached->doubts = culet_grow(cached->doubts, &cached->doubt_room, cached->doubt_count + 1,
                                        sizeof *cached->doubts);
            cached->doubts[cached->doubt_count++] =
                (struct culet_glibc_doubt){.place = walk->place, .from = from, .to = to, .end = end};
        } else {
            walk->now.sum.trim += culet_glibc_trimmed(walk->scope, walk->place, from, to, end);
        }
    }
    walk->now.free_from = 0;
    walk->now.doubtful = false;
}

static void log_chunk(struct walk *walk, uint64_t bytes, enum culet_block_state state)
{
    culet_place_chunk(&walk->scope->places, walk->place, bytes, state);
}

/* What is no chunk: headers, fenceposts, gaps, what could not be read. */
static void other(struct walk *walk, uint64_t to)
{
    flush_used(walk);
    end_free(walk, walk->now.at, CULET_GLIBC_CHUNK);
    if (to > walk->now.at) {
        culet_place_other(walk->place, walk->now.at, to);
        walk->now.sum.other += to - walk->now.at;
        log_chunk(walk, to - walk->now.at, CULET_BLOCK_OVERHEAD);
    }
    walk->now.at = walk->now.used_from = to;
}

/* ---- going back ---- */

static void keep_checkpoint(struct walk *walk)
{
    struct state *now = &walk->now;

    flush_used(walk);
    now->log_bytes = walk->place->chunks.length;
    now->log_chunks = walk->scope->places.chunks;
    now->log_noted = walk->place->noted;
    now->others = walk->place->others;
    now->maybes = walk->heap->cached.maybe_count;
    now->tcaches = walk->heap->cached.tcache_count;
    now->doubts = walk->heap->cached.doubt_count;
    now->page_used = culet_place_units(&walk->scope->places, walk->place, now->at);
    if (walk->kept == CHECKPOINTS) {
        memmove(walk->checkpoints, walk->checkpoints + 1, (CHECKPOINTS - 1) * sizeof *walk->checkpoints);
        walk->kept--;
    }
    walk->checkpoints[walk->kept++] = *now;
    walk->next_checkpoint_ns = culet_now() + walk->scope->target.slice_ns / PER_SLICE;
}

/* Back to the newest checkpoint, which is used up by it; the first one stays. */
static void go_back(struct walk *walk)
{
    struct culet_place *place = walk->place;

    walk->now = walk->checkpoints[walk->kept - 1];
    if (walk->kept > 1)
        walk->kept--;
    place->chunks.length = walk->now.log_bytes;
    walk->scope->places.chunks = walk->now.log_chunks;
    place->noted = walk->now.log_noted;
    place->others = walk->now.others;
    walk->heap->cached.maybe_count = walk->now.maybes;
    walk->heap->cached.tcache_count = walk->now.tcaches;
    walk->heap->cached.doubt_count = walk->now.doubts;
    culet_place_rewind(&walk->scope->places, place, walk->now.at, walk->now.page_used);
    /* The states of its pages are as old: they are noted anew. */
    if (walk->now.known_to > walk->now.at)
        walk->now.known_to = walk->now.at & ~(uint64_t)(walk->scope->page_bytes - 1);
}

/* The heap's end, and the arena's top, as they are now. Where the heap is shorter than what was walked already, the walk
 * goes back. */
static bool refresh(struct walk *walk)
{
    uint64_t end = walk->place->end;

    if (!culet_glibc_refresh(walk->scope, walk->heap, walk->arena))
        return false;
    if (walk->heap_start) {
        uint64_t bytes = culet_glibc_heap_bytes(walk->scope, walk->heap, walk->arena, walk->heap_start);
        if (!bytes)
            return false;
        end = walk->heap_start + bytes;
    } else if (walk->main) {
        culet_glibc_top_end(walk->scope, walk->arena, walk->place->start, &end);
    }
    if (end < walk->first)
        return false;
    for (unsigned i = 0; walk->now.at > end; i++) {
        if (i == CHECKPOINTS)
            return false;
        go_back(walk);
    }
    return end == walk->place->end || culet_place_resize(&walk->scope->places, walk->place, end);
}

/* ---- the ends of a stretch ---- */

/* `at` is the arena's top. */
static enum outcome finish_top(struct walk *walk, uint64_t size)
{
    struct state *now = &walk->now;
    uint64_t end = now->at + (size & ~GLIBC_CHUNK_FLAGS);

    if (end != walk->place->end)
        return fault(walk, now->at, "the top chunk does not end where its heap does");
    flush_used(walk);
    if (!now->free_from)
        now->free_from = now->at;
    end_free(walk, end, walk->main ? CULET_GLIBC_MAIN_TOP : CULET_GLIBC_TOP);
    now->sum.free += size & ~GLIBC_CHUNK_FLAGS;
    now->sum.chunks++;
    log_chunk(walk, size & ~GLIBC_CHUNK_FLAGS, CULET_BLOCK_FREE);
    now->at = now->used_from = end;
    note_states(walk, end);
    return DONE;
}

/* Chunks that hold together are no chance. */
#define PROOF 100000u

bool culet_glibc_chain(struct culet_scope *scope, uint64_t address, uint64_t end, uint64_t *steps)
{
    uint64_t header[2], previous = GLIBC_CHUNK_PREV_INUSE;
    uint64_t before = 0;

    for (unsigned i = 0; i < PROOF && address != end; i++) {
        const void *at = *steps && end - address >= 16 ? culet_memory_at(&scope->memory, address, sizeof header) : NULL;
        if (!at)
            return false;
        --*steps;
        memcpy(header, at, sizeof header);
        uint64_t size = header[1] & ~GLIBC_CHUNK_FLAGS;
        bool free_before = !(header[1] & GLIBC_CHUNK_PREV_INUSE);
        if (free_before && (i == 0 || header[0] != before || !(previous & GLIBC_CHUNK_PREV_INUSE)))
            return false;
        /* Fenceposts end a stretch, and prove it. */
        if (size == 16 && i)
            return true;
        if (size < GLIBC_CHUNK_LEAST_BYTES || size & 15 || header[1] & (GLIBC_CHUNK_MMAPPED | GLIBC_CHUNK_NON_MAIN) ||
            size > end - address)
            return false;
        before = size;
        previous = header[1];
        address += size;
    }
    return true;
}

/* Whether the heap may go on with a chunk at `at`. */
static bool goes_on(struct walk *walk, uint64_t at, uint64_t size)
{
    return (size & GLIBC_CHUNK_FLAGS) == GLIBC_CHUNK_PREV_INUSE && size >= GLIBC_CHUNK_LEAST_BYTES && !(size & 8) &&
           culet_glibc_chain(walk->scope, at, walk->arena->top, &walk->heap->chain_steps);
}

/* Behind a gap that another user of brk has left: *next is the chunk where the heap goes on, or its top. False when the
 * slice is over before that is known: the search goes on in the next one where it was. */
static bool find_next(struct walk *walk, uint64_t from, uint64_t *next)
{
    struct culet_scope *scope = walk->scope;
    uint64_t top = walk->arena->top, at, size;
    unsigned shift = scope->pages.shift;

    if (walk->gap != from) {
        walk->gap = from;
        walk->gap_at = (from + 15) & ~UINT64_C(15);
    }
    for (at = walk->gap_at; at < top; at += 16) {
        if ((at & (scope->page_bytes - 1)) < 16 && culet_target_due(&scope->target)) {
            walk->gap_at = at;
            return false;
        }
        if (!culet_memory_word(&scope->memory, at + 8, &size)) {
            at = (culet_pages_next(&scope->pages, ((at + 8) >> shift) + 1, (top >> shift) + 1) << shift) - 16;
        } else if (goes_on(walk, at, size)) {
            *next = at;
            return true;
        }
    }
    *next = top;
    return true;
}

/* A chunk smaller than any: a fencepost. */
static enum outcome fencepost(struct walk *walk, uint64_t size)
{
    uint64_t at = walk->now.at, left = walk->place->end - at;

    if (walk->heap_start) {
        if (left > GLIBC_CHUNK_LEAST_BYTES)
            return fault(walk, at, "a chunk is smaller than chunks can be");
        other(walk, walk->place->end);
        note_states(walk, walk->place->end);
        return DONE;
    }
    if (size != 16)
        return fault(walk, at, "a chunk is smaller than chunks can be");
    uint64_t next;
    if (walk->arena->top > at + 32 && walk->arena->top < walk->place->end) {
        if (find_next(walk, at + 32, &next))
            other(walk, next);
        return DUE;
    }
    /* Two fenceposts end what was got at once, in pages. */
    uint64_t page = walk->scope->page_bytes, end = (at + 32 + page - 1) & ~(page - 1);
    if (end < walk->place->end)
        culet_place_resize(&walk->scope->places, walk->place, end);
    other(walk, walk->place->end);
    note_states(walk, walk->place->end);
    return DONE;
}

/* ---- the chunks ---- */

/* Where the fetch of what lies from `at` on ends: it gets longer while the chunks lie side by side, and does not go beyond
 * the pages whose states are at hand, so that these need not be asked for a second time when they are noted. */
static uint64_t fetch_to(struct walk *walk, uint64_t at, uint64_t end)
{
    const struct culet_memory *memory = &walk->scope->memory;
    struct culet_pages *pages = &walk->scope->pages;

    if (memory->end && at - memory->end >= FAR)
        walk->fetch = walk->fetch / 4 > LEAST_FETCH ? walk->fetch / 4 : LEAST_FETCH;
    else if (memory->end)
        walk->fetch = walk->fetch < CULET_MEMORY_WINDOW / 4 ? walk->fetch * 4 : CULET_MEMORY_WINDOW;
    /* To the end of a page: a page costs more than its bytes. */
    uint64_t to = (at + walk->fetch) & ~(uint64_t)(walk->scope->page_bytes - 1);
    culet_pages_at(pages, at);
    uint64_t known = (pages->first + pages->count) << pages->shift;
    if (to > known && known > at + HEADER)
        to = known;
    return to > at && to < end ? to : end;
}

/* The header of the chunk at `at`: prev_size and size. NULL when it is not in memory. */
static const unsigned char *header_at(struct walk *walk, uint64_t at, uint64_t end)
{
    struct culet_memory *memory = &walk->scope->memory;
    size_t length, least = end - at < HEADER ? 16 : HEADER;

    if (at >= memory->start && at + least <= memory->end)
        return memory->window + (at - memory->start);
    /* While the window of pages is where it should be. */
    note_states(walk, at);
    uint64_t to = fetch_to(walk, at, end);
    const unsigned char *data = culet_memory_span(memory, at, least, to, &length);
    /* The block may begin with a page that is not in memory. */
    if (!data && least > 16)
        data = culet_memory_span(memory, at, 16, to, &length);
    if (data)
        note_states(walk, memory->end);
    return data;
}

static enum outcome unreadable(struct walk *walk, uint64_t at)
{
    uint8_t state = culet_pages_at(&walk->scope->pages, at);

    return fault(walk, at, state & CULET_PAGE_SWAPPED ? "a chunk's header is in swap" :
                 state ? "a chunk's header cannot be read" : "a chunk's header is not in memory");
}

/* Where a free chunk lies, the run of them begins if there is none. */
static void begin_free(struct walk *walk)
{
    if (!walk->now.free_from)
        walk->now.free_from = walk->now.at;
}

/* A chunk that looks used, but may be in a list of freed ones. */
static void note_maybe(struct walk *walk, uint64_t bytes, uint64_t link)
{
    struct culet_glibc_cached *cached = &walk->heap->cached;

    cached->maybe = culet_stretch(cached->maybe, &cached->maybe_room, cached->maybe_count + 1, sizeof *cached->maybe);
    cached->maybe[cached->maybe_count++] = (struct culet_glibc_maybe){
        .chunk = walk->now.at >> 4 & ((UINT64_C(1) << 44) - 1), .units = bytes >> 4 & ((1u << 18) - 1),
        .link = link & ((UINT64_C(1) << 48) - 1)};
    if (bytes > CULET_GLIBC_FAST_BYTES) {
        end_free(walk, walk->now.at, CULET_GLIBC_CHUNK);
        return;
    }
    begin_free(walk);
    walk->now.doubtful = true;
}

/* A thread's tcache is in a chunk of such a size. */
#define TCACHES_FROM 0x290u
#define TCACHES_TO 0x310u

/* In a structure that is a thread's tcache the first word is four small numbers. */
static bool may_be_tcache(uint64_t bytes, uint64_t word)
{
    return (bytes - 0x290 <= 16 || bytes - 0x300 <= 16) && !(word & UINT64_C(0xff00ff00ff00ff00));
}

static void add_used(struct walk *walk, uint64_t bytes, uint64_t link)
{
    struct state *now = &walk->now;

    if (bytes < CULET_GLIBC_MOST_CACHED && culet_glibc_may_link(&walk->heap->cached, now->at, link))
        note_maybe(walk, bytes, link);
    else if (now->free_from)
        end_free(walk, now->at, CULET_GLIBC_CHUNK);
    if (may_be_tcache(bytes, link))
        culet_glibc_note_tcache(walk->scope, walk->heap, now->at, bytes);
    now->sum.used += bytes;
    culet_sizes_used(&now->sizes, bytes, 1);
    log_chunk(walk, bytes, CULET_BLOCK_USED);
    now->at += bytes;
}

static void add_free(struct walk *walk, uint64_t bytes)
{
    struct state *now = &walk->now;

    flush_used(walk);
    begin_free(walk);
    now->sum.free += bytes;
    culet_sizes_free(&now->sizes, bytes, 1);
    log_chunk(walk, bytes, CULET_BLOCK_FREE);
    now->at += bytes;
    now->used_from = now->at;
}

/* The first word of the block of the chunk at `at`, whose header was fetched; NO_LINK where it is not in memory. */
static uint64_t link_of(const struct culet_memory *memory, uint64_t at)
{
    uint64_t link = NO_LINK;

    if (at + HEADER <= memory->end)
        memcpy(&link, memory->window + (at - memory->start) + 16, sizeof link);
    return link;
}

static inline uint64_t word_at(const unsigned char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

/* Bits of a plain chunk's size: below 1 KiB, of 16 bytes, and the flags but for a mapping's. */
#define PLAIN_BITS ((uint64_t)(CULET_SIZES_EXACT - CULET_SIZES_STEP) | GLIBC_CHUNK_PREV_INUSE | GLIBC_CHUNK_NON_MAIN)

/* Bit n: a chunk of n times 16 bytes is plain by its size: a chunk at all, and too small or too large for a tcache. */
#define UP_TO(bytes) ((UINT64_C(2) << (bytes) / CULET_SIZES_STEP) - 1)
#define PLAIN_SIZES (~UP_TO(GLIBC_CHUNK_LEAST_BYTES - CULET_SIZES_STEP) & ~(UP_TO(TCACHES_TO) & ~UP_TO(TCACHES_FROM - CULET_SIZES_STEP)))

/* The common case, as fast as it goes: used chunks side by side whose headers are in the window, and nothing to be said of
 * them but their sizes. Ends at the first of another kind, or whose next one is at `limit` or beyond it. */
static void plain_chunks(struct walk *walk, uint64_t limit, uint64_t *first_size, uint64_t *first_link)
{
    struct state *now = &walk->now;
    struct culet_places *places = &walk->scope->places;
    const struct culet_glibc_cached *cached = &walk->heap->cached;
    /* A number: there need be nothing where address 0 would be. */
    const uintptr_t window = (uintptr_t)walk->scope->memory.window - walk->scope->memory.start;
    uint64_t at = now->at, size = *first_size, link = *first_link, count = 0;
    bool keep = places->chunks < places->max_chunks;
    /* A link is a multiple of 16, however it is written: most words are ruled out by that. */
    uint64_t not_masked = cached->links == CULET_GLIBC_PLAIN ? 15 : 0;
    uint64_t not_plain = cached->links == CULET_GLIBC_MASKED ? 15 : 0;

    for (;;) {
        uint64_t bytes = size & ~GLIBC_CHUNK_FLAGS, next = at + bytes, masked = link ^ ((at + 16) >> 12);
        if (size & ~PLAIN_BITS || !(PLAIN_SIZES >> bytes / CULET_SIZES_STEP & 1) || next >= limit)
            break;
        if ((!((masked | not_masked) & 15) || !((link | not_plain) & 15)) && culet_glibc_may_link(cached, at, link))
            break;
        uint64_t next_size = word_at((const unsigned char *)(window + next + 8));
        if (!(next_size & GLIBC_CHUNK_PREV_INUSE))
            break;
        now->small.count[bytes / CULET_SIZES_STEP]++;
        if (keep)
            culet_place_chunk(places, walk->place, bytes, CULET_BLOCK_USED);
        count++;
        at = next;
        size = next_size;
        link = word_at((const unsigned char *)(window + next + 16));
    }
    if (!keep) {
        places->chunks += count;
        walk->place->noted += count;
    }
    now->sum.used += at - now->at;
    now->sum.chunks += count;
    now->at = at;
    *first_size = size;
    *first_link = link;
}

/* Where the next chunk must lie before for plain_chunks: its header and first word are in the window, and it is neither
 * the top chunk nor one of the last bytes of the stretch. */
static uint64_t plain_limit(const struct walk *walk)
{
    uint64_t limit = walk->scope->memory.end, top = walk->arena->top;

    if (walk->now.at < walk->scope->memory.start)
        return 0;
    if (limit > walk->place->end)
        limit = walk->place->end;
    limit = limit > HEADER ? limit - HEADER : 0;
    return top >= walk->now.at && top < limit ? top : limit;
}

/* One chunk after the other, until the end, a fault, or the end of the slice. */
static enum outcome chunks(struct walk *walk)
{
    struct state *now = &walk->now;
    const uint64_t end = walk->place->end, top = walk->arena->top;
    const struct culet_memory *memory = &walk->scope->memory;

    if (now->at > end || end - now->at < 16)
        return fault(walk, now->at, "the heap ends before its last chunk");
    const unsigned char *header = header_at(walk, now->at, end);
    if (!header)
        return unreadable(walk, now->at);
    uint64_t size = word_at(header + 8), link = link_of(memory, now->at);
    for (;;) {
        if (!now->free_from)
            plain_chunks(walk, plain_limit(walk), &size, &link);
        uint64_t bytes = size & ~GLIBC_CHUNK_FLAGS;
        if (now->at == top)
            return finish_top(walk, size);
        if (bytes < GLIBC_CHUNK_LEAST_BYTES)
            return fencepost(walk, bytes);
        uint64_t next = now->at + bytes;
        if (bytes & 15 || size & GLIBC_CHUNK_MMAPPED || bytes > end - now->at || end - next < 16)
            return fault(walk, now->at, "a chunk's size is wrong");
        if (next < memory->start || next + HEADER > memory->end) {
            if (!(header = header_at(walk, next, end)))
                return unreadable(walk, next);
            uint64_t clock = culet_now();
            if (walk->scope->target.mode == CULET_SLICED && clock >= walk->scope->target.due_ns)
                return DUE;
            if (clock >= walk->next_checkpoint_ns)
                keep_checkpoint(walk);
        } else {
            header = memory->window + (next - memory->start);
        }
        uint64_t next_size = word_at(header + 8), next_link = link_of(memory, next);
        now->sum.chunks++;
        if (!(next_size & GLIBC_CHUNK_PREV_INUSE)) {
            if (word_at(header) != bytes || !(size & GLIBC_CHUNK_PREV_INUSE))
                return fault(walk, now->at, "a free chunk's two sizes differ");
            add_free(walk, bytes);
        } else {
            add_used(walk, bytes, link);
        }
        size = next_size;
        link = next_link;
    }
}

/* The slice is over: lets the process run, and takes the walk up where it was, or further back. */
static bool take_up(struct walk *walk, bool back)
{
    if (!back)
        keep_checkpoint(walk);
    culet_scope_resume(walk->scope);
    culet_scope_pause(walk->scope);
    culet_glibc_settle(walk->scope, walk->heap, walk->arena);
    go_back(walk);
    return refresh(walk);
}

/* A fault that stays: the rest of the stretch is not known. */
static void give_up(struct walk *walk)
{
    culet_glibc_break(walk->arena, "at 0x%llx: %s", (unsigned long long)walk->fault,
                      walk->why ? walk->why : "its heap went away");
    if (walk->now.at < walk->place->end)
        other(walk, walk->place->end);
    note_states(walk, walk->place->end);
}

/* Whether the fault is the heap's, not of the moment. */
static bool stays(const struct walk *walk)
{
    if (walk->same < SAME_FAULTS)
        return false;
    return walk->same >= SAME_FAULTS_BUSY || !culet_glibc_busy(walk->scope, walk->heap, walk->arena);
}

static bool walk_on(struct walk *walk)
{
    bool live = walk->scope->target.mode == CULET_LIVE, sliced = walk->scope->target.mode == CULET_SLICED;

    for (;;) {
        enum outcome outcome = chunks(walk);
        if (outcome == DONE)
            return true;
        if (outcome == DUE) {
            /* Also after a gap, where there is no need to stop. */
            if (culet_target_due(&walk->scope->target) && !take_up(walk, false) && ++walk->tries > TRIES)
                return false;
            continue;
        }
        if (++walk->tries > TRIES || (!live && !sliced) || stays(walk))
            return false;
        if (!take_up(walk, true) && walk->tries > TRIES)
            return false;
    }
}

static void add_sizes(struct culet_sizes *to, const struct culet_sizes *from)
{
    uint64_t *sum = &to->bucket[0].used_count;
    const uint64_t *one = &from->bucket[0].used_count;

    for (size_t i = 0; i < sizeof *to / sizeof *sum; i++)
        sum[i] += one[i];
}

static void add_sum(struct culet_glibc_sum *to, const struct culet_glibc_sum *from)
{
    uint64_t *sum = &to->used;
    const uint64_t *one = &from->used;

    for (size_t i = 0; i < sizeof *to / sizeof *sum; i++)
        sum[i] += one[i];
}

void culet_glibc_walk(struct culet_scope *scope, struct culet_glibc *heap, struct culet_glibc_arena *arena,
                      struct culet_place *place, uint64_t first, uint64_t heap_start)
{
    struct walk *walk = culet_new(1, sizeof *walk);
    size_t first_note = heap->cached.maybe_count;
    bool done = false;

    *walk = (struct walk){.scope = scope, .heap = heap, .arena = arena, .place = place, .first = first,
                          .heap_start = heap_start, .main = arena->address == heap->main, .fetch = FIRST_FETCH};
    walk->checkpoints = culet_new(CHECKPOINTS, sizeof *walk->checkpoints);
    walk->now.at = walk->now.used_from = place->start;
    walk->now.known_to = place->start & ~(uint64_t)(scope->page_bytes - 1);
    place->first_chunk = place->start;
    if (refresh(walk) && first >= place->start && first <= place->end) {
        other(walk, first);
        keep_checkpoint(walk);
        done = walk_on(walk);
    }
    if (!done)
        give_up(walk);
    /* From now on the process may run: what lies in a long chunk is no matter of the moment. */
    for (size_t i = 0; i < walk->now.later; i++)
        culet_scope_states_slowly(scope, place, walk->later[i].start, walk->later[i].end);
    culet_glibc_end_stretch(&heap->cached, place, first_note);
    add_sum(&arena->sum, &walk->now.sum);
    add_sizes(&heap->sizes, &walk->now.sizes);
    culet_sizes_take(&heap->sizes, &walk->now.small);
    arena->heaps += heap_start != 0;
    free(walk->checkpoints);
    free(walk->later);
    free(walk);
}
