#include "pages.h"

#include "huge_cache.h"
#include "lock.h"
#include "meta.h"
#include "os.h"
#include "pagemap.h"
#include "reclaim_policy.h"
#include "selfmap_export.h"
#include "stack.h"
#include "wakeup.h"

#include <limits.h>
#include <string.h>

struct culet_lock culet_pages_lock;
_Atomic size_t culet_pages_grown;
_Thread_local bool culet_pages_returning;

/* [pages lock, as all below] No free range of segment i is longer than `longest[i]`, which a take does not lower: a search
 * that finds nothing does. `dirty_of[i]` is its number of dirty pages. Both are 0 where there is no segment. */
static struct culet_segment *segments[CULET_SEGMENTS];
static uint16_t longest[CULET_SEGMENTS];
static uint16_t dirty_of[CULET_SEGMENTS];
static uint32_t ceiling; /* no segment at or above this index */
static struct culet_pages_stats stats;
static size_t unpurgeable;      /* dirty pages that the kernel refused to take back (locked memory) */
static size_t reclaimed;        /* bytes returned that do not count towards CULET_SCAVENGER_PURGED_BYTES */
static size_t low_water;        /* least number of dirty pages since culet_pages_begin_interval */
static uint32_t spare_segments; /* segments without a used page */
/* No segment below lowest[n] has a free range of n pages; lowest[n] <= lowest[n + 1]. */
static uint32_t lowest[CULET_SLAB_PAGES + 1];

CULET_SELFMAP_EXPORT(segments, culet_selfmap_segments);
CULET_SELFMAP_EXPORT(ceiling, culet_selfmap_ceiling);

#define WORDS (CULET_SEGMENT_PAGES / 64)

/* Free pages that are being returned to the kernel. Until that is done they have the marks of used and of dirty pages,
 * so that nobody takes them, but still count as free and dirty. */
struct range {
    uintptr_t base; /* of the segment */
    uint32_t segment;
    uint16_t first;
    uint16_t pages;
    bool purged;
};

#define BATCH_RANGES 64
struct batch {
    unsigned count;
    size_t pages;
    struct range range[BATCH_RANGES];
};

/* The batch of the thread that purges without the pages lock. The purge lock, taken before the pages lock, is that
 * thread's. */
static struct batch purging; /* [pages lock] */
static struct culet_lock purge_lock;
static uint32_t purge_waiters;         /* [pages lock] */
static _Atomic uint32_t purge_batches; /* a futex: changes at the end of each batch; written under the pages lock */

/* The first page at or behind `from` whose bit in `map` equals `value`; CULET_SEGMENT_PAGES if none. */
static size_t find(const uint64_t *map, size_t from, bool value)
{
    if (from >= CULET_SEGMENT_PAGES)
        return CULET_SEGMENT_PAGES;

    size_t word = from / 64;
    uint64_t flip = value ? 0 : ~UINT64_C(0), bits = (map[word] ^ flip) & (~UINT64_C(0) << (from % 64));
    while (!bits) {
        if (++word == WORDS)
            return CULET_SEGMENT_PAGES;
        bits = map[word] ^ flip;
    }
    return word * 64 + (size_t)__builtin_ctzll(bits);
}

/* The part of a range of `count` bits that lies in the word of bit `from`, as a mask. Stores its length. */
static uint64_t mask_of(size_t from, size_t count, size_t *here)
{
    size_t bit = from % 64;

    *here = 64 - bit < count ? 64 - bit : count;
    return ~UINT64_C(0) >> (64 - *here) << bit;
}

static void fill(uint64_t *map, size_t from, size_t count, bool value)
{
    for (size_t here; count; from += here, count -= here) {
        uint64_t mask = mask_of(from, count, &here);
        if (value)
            map[from / 64] |= mask;
        else
            map[from / 64] &= ~mask;
    }
}

static size_t count_bits(const uint64_t *map, size_t from, size_t count)
{
    size_t bits = 0;

    for (size_t here; count; from += here, count -= here)
        bits += (size_t)__builtin_popcountll(map[from / 64] & mask_of(from, count, &here));
    return bits;
}

/* The page behind the last one below `to` whose bit in `map` equals `value`; 0 if none. */
static size_t find_back(const uint64_t *map, size_t to, bool value)
{
    size_t word = to / 64;
    uint64_t flip = value ? 0 : ~UINT64_C(0);
    uint64_t bits = to % 64 ? (map[word] ^ flip) & ((UINT64_C(1) << (to % 64)) - 1) : 0;

    while (!bits) {
        if (word-- == 0)
            return 0;
        bits = map[word] ^ flip;
    }
    return word * 64 + 64 - (size_t)__builtin_clzll(bits);
}

/* The length of the free range around pages that are free. */
static size_t length_around(const struct culet_segment *s, size_t from, size_t pages)
{
    return find(s->used, from + pages, true) - find_back(s->used, from, true);
}

/* A free range around these pages has come into being. */
static void note_free(uint32_t index, size_t from, size_t pages)
{
    const struct culet_segment *s = segments[index];

    if (s->free <= longest[index])
        return;
    size_t length = length_around(s, from, pages);
    if (length <= longest[index])
        return;
    longest[index] = (uint16_t)length;
    for (size_t n = length < CULET_SLAB_PAGES ? length : CULET_SLAB_PAGES; n && lowest[n] > index; n--)
        lowest[n] = index;
}

static size_t longest_free(const struct culet_segment *s)
{
    size_t best = 0;

    for (size_t from = find(s->used, 0, false); from < CULET_SEGMENT_PAGES;) {
        size_t to = find(s->used, from, true);
        if (to - from > best)
            best = to - from;
        from = find(s->used, to, false);
    }
    return best;
}

static void add_dirty(uint32_t index, size_t pages)
{
    dirty_of[index] += (uint16_t)pages;
    stats.dirty += pages;
}

static void remove_dirty(uint32_t index, size_t pages)
{
    dirty_of[index] -= (uint16_t)pages;
    stats.dirty -= pages;
    if (stats.dirty < low_water)
        low_water = stats.dirty;
}

/* Whether a thread is purging pages of the segment without the lock. */
static bool is_purged_now(uint32_t index)
{
    for (unsigned i = 0; i < purging.count; i++)
        if (purging.range[i].segment == index)
            return true;
    return false;
}

/* Releases the pages lock until a batch has been purged, at most for so many microseconds; 0: until no purge is under
 * way. False if none was. */
static bool wait_for_purge(unsigned microseconds)
{
    /* The purging thread may wait for the thread that forks. */
    if (!purging.count || culet_lock_forking())
        return false;
    purge_waiters++;
    do {
        uint32_t batches = atomic_load_explicit(&purge_batches, memory_order_relaxed);
        culet_unlock(&culet_pages_lock);
        culet_os_wait(&purge_batches, batches, microseconds);
        culet_lock(&culet_pages_lock);
    } while (!microseconds && purging.count);
    purge_waiters--;
    return true;
}

/* Maps a segment, with its pagemap entries, and moves pages of the huge-block cache there: `moved` bytes. Returns 0 if
 * the kernel refuses one of the mappings. */
static uintptr_t map_segment(size_t *moved)
{
    uintptr_t base = (uintptr_t)culet_os_map_aligned(CULET_SEGMENT_BYTES, CULET_PAGE);

    if (!base)
        return 0;
    if (culet_pagemap_prepare(base, CULET_SEGMENT_PAGES) && culet_huge_cache_move(base, CULET_SEGMENT_BYTES, moved))
        return base;
    culet_os_unmap((void *)base, CULET_SEGMENT_BYTES);
    return 0;
}

static bool add_segment(uint32_t *index)
{
    size_t moved = 0;
    uint32_t i = 0;
    while (i < ceiling && segments[i])
        i++;
    if (i == CULET_SEGMENTS)
        return false;

    struct culet_segment *s = culet_meta_get(CULET_META_SEGMENT);
    if (!s)
        return false;
    memset(s, 0, sizeof *s);
    s->base = map_segment(&moved);
    if (!s->base && culet_huge_cache_purge(SIZE_MAX))
        s->base = map_segment(&moved);
    if (!s->base) {
        culet_meta_put(CULET_META_SEGMENT, s);
        return false;
    }
    s->free = CULET_SEGMENT_PAGES;
    segments[i] = s;
    note_free(i, 0, CULET_SEGMENT_PAGES);
    if (i == ceiling)
        ceiling++;
    spare_segments++;
    if (++stats.segments == CULET_STACK_SEGMENTS)
        culet_stack_request();
    if (stats.segments > CULET_SCAVENGER_SEGMENTS)
        culet_wakeup_note_large();
    stats.free += CULET_SEGMENT_PAGES;
    fill(s->dirty, 0, moved >> CULET_PAGE_SHIFT, true);
    add_dirty(i, moved >> CULET_PAGE_SHIFT);
    *index = i;
    return true;
}

static void drop_segment(uint32_t index)
{
    struct culet_segment *s = segments[index];
    size_t dirty = dirty_of[index];

    culet_pagemap_clear(s->base, CULET_SEGMENT_PAGES);
    culet_os_unmap((void *)s->base, CULET_SEGMENT_BYTES);
    spare_segments--;
    stats.segments--;
    stats.free -= CULET_SEGMENT_PAGES;
    remove_dirty(index, dirty);
    stats.purged_bytes += dirty * CULET_PAGE;
    stats.purges += dirty != 0;
    culet_meta_put(CULET_META_SEGMENT, s);
    segments[index] = NULL;
    longest[index] = 0;
    while (ceiling && !segments[ceiling - 1])
        ceiling--;
}

/* Aborts unless the pages of a segment that have the marks of both used and dirty ones are in the batch being purged.
 * Returns the pages of the batch. */
static size_t check_batch(uint32_t index)
{
    uint64_t both[WORDS];
    size_t pages = 0;

    for (size_t w = 0; w < WORDS; w++)
        both[w] = segments[index]->used[w] & segments[index]->dirty[w];
    for (unsigned i = 0; i < purging.count; i++) {
        const struct range *range = &purging.range[i];
        if (range->segment != index)
            continue;
        if (count_bits(segments[index]->used, range->first, range->pages) != range->pages)
            __builtin_trap();
        fill(both, range->first, range->pages, false);
        pages += range->pages;
    }
    if (find(both, 0, true) < CULET_SEGMENT_PAGES)
        __builtin_trap();
    return pages;
}

void culet_pages_check(void)
{
    culet_huge_cache_check();
    size_t used = 0, dirty = 0, count = 0, spare = 0, purged_now = 0;

    for (uint32_t i = 0; i < ceiling; i++) {
        const struct culet_segment *s = segments[i];
        if (!s)
            continue;
        count++;
        spare += s->free == CULET_SEGMENT_PAGES;
        size_t in_batch = check_batch(i);
        purged_now += in_batch;
        if (longest[i] < longest_free(s))
            __builtin_trap();
        if (dirty_of[i] != count_bits(s->dirty, 0, CULET_SEGMENT_PAGES))
            __builtin_trap();
        for (size_t n = 1; n <= CULET_SLAB_PAGES; n++)
            if (i < lowest[n] && longest[i] >= n)
                __builtin_trap();
        used += count_bits(s->used, 0, CULET_SEGMENT_PAGES);
        dirty += count_bits(s->dirty, 0, CULET_SEGMENT_PAGES);
        if (s->free + count_bits(s->used, 0, CULET_SEGMENT_PAGES) != CULET_SEGMENT_PAGES + in_batch)
            __builtin_trap();
    }
    for (size_t n = 1; n < CULET_SLAB_PAGES; n++)
        if (lowest[n] > lowest[n + 1])
            __builtin_trap();
    used -= purged_now;
    if (purged_now != purging.pages || used != stats.used || dirty != stats.dirty || count != stats.segments ||
        spare != spare_segments || used + stats.free != count * CULET_SEGMENT_PAGES)
        __builtin_trap();
}

#ifdef CULET_DEBUG
#define DEBUG_CHECK() culet_pages_check()
#else
#define DEBUG_CHECK() ((void)0)
#endif

/* The first of so many adjacent bits, fewer than 64; 64 if there are none. */
static size_t fit_in_word(uint64_t free, size_t pages)
{
    /* A bit stays if it and the `length - 1` behind it are set. */
    for (size_t length = 1, step; free && length < pages; length += step) {
        step = length < pages - length ? length : pages - length;
        free &= free >> step;
    }
    return free ? (size_t)__builtin_ctzll(free) : 64;
}

/* The lowest range of so many free pages in a segment; CULET_SEGMENT_PAGES if none. */
static size_t fit(const struct culet_segment *s, size_t pages)
{
    size_t length = 0; /* of the free range that ends before the word */

    for (size_t word = 0; word < WORDS; word++) {
        uint64_t used = s->used[word];
        size_t begin = used ? (size_t)__builtin_ctzll(used) : 64;
        if (length + begin >= pages)
            return word * 64 - length;
        if (!used) {
            length += 64;
            continue;
        }
        size_t end = (size_t)__builtin_clzll(used);
        /* Between the first and the last used page. */
        if (begin + pages + end <= 62) {
            size_t inside = fit_in_word(~used, pages);
            if (inside < 64)
                return word * 64 + inside;
        }
        if (end >= pages)
            return word * 64 + 64 - end;
        length = end;
    }
    return CULET_SEGMENT_PAGES;
}

static size_t fit_aligned(const struct culet_segment *s, size_t pages, size_t alignment)
{
    size_t from = find(s->used, 0, false);

    while (from < CULET_SEGMENT_PAGES) {
        uintptr_t address = s->base + from * CULET_PAGE;
        size_t start = from + ((((address + alignment - 1) & ~(alignment - 1)) - address) >> CULET_PAGE_SHIFT);
        size_t to = find(s->used, from, true);
        if (start + pages <= to)
            return start;
        from = find(s->used, to, false);
    }
    return CULET_SEGMENT_PAGES;
}

/* The lowest fitting range of a segment; CULET_SEGMENT_PAGES if none. */
static size_t search_segment(uint32_t index, size_t pages, size_t alignment)
{
    if (longest[index] < pages)
        return CULET_SEGMENT_PAGES;
    if (CULET_UNLIKELY(alignment > CULET_PAGE))
        return fit_aligned(segments[index], pages, alignment);
    size_t from = fit(segments[index], pages);
    if (from == CULET_SEGMENT_PAGES)
        longest[index] = (uint16_t)(pages - 1);
    return from;
}

/* Marks free pages as used. Returns how many of them were dirty. */
static size_t occupy(struct culet_segment *s, size_t from, size_t count)
{
    size_t dirty = 0;

    for (size_t here; count; from += here, count -= here) {
        uint64_t mask = mask_of(from, count, &here), bits = s->dirty[from / 64] & mask;
        s->used[from / 64] |= mask;
        s->dirty[from / 64] ^= bits;
        dirty += bits == mask ? here : bits ? (size_t)__builtin_popcountll(bits) : 0;
    }
    return dirty;
}

/* Returns how many of them were dirty. */
static size_t take(uint32_t index, size_t from, size_t pages)
{
    struct culet_segment *s = segments[index];
    size_t dirty = occupy(s, from, pages);

    spare_segments -= s->free == CULET_SEGMENT_PAGES;
    if (dirty)
        remove_dirty(index, dirty);
    s->free -= (uint32_t)pages;
    stats.free -= pages;
    stats.used += pages;
    return dirty;
}

static size_t purge_segments(size_t target);

static size_t keep_pages(void)
{
    return culet_reclaim_keep_pages(stats.used);
}

/* There are more dirty pages than to keep, and the kernel does not refuse them. */
static bool keeps_too_many(void)
{
    return stats.dirty > keep_pages() && stats.dirty > 2 * unpurgeable;
}

/* Pages that have become resident and for which none has gone back yet. */
static size_t owed, huge_owed;

static void note_growth(size_t pages)
{
    atomic_fetch_add_explicit(&culet_pages_grown, pages, memory_order_relaxed);
    if (culet_huge_cache_bytes())
        huge_owed += pages;
    if (keeps_too_many())
        owed += pages;
}

/* As many cached huge pages go back as have become resident, and a part as many dirty ones while the heap keeps too
 * many. May release the lock meanwhile. */
static void purge_on_growth(void)
{
    if (CULET_UNLIKELY(huge_owed >= CULET_GROWTH_HUGE_BATCH_PAGES)) {
        size_t bytes = huge_owed << CULET_PAGE_SHIFT;
        huge_owed = 0;
        culet_unlock(&culet_pages_lock);
        bytes = culet_pages_purge_huge_cache(bytes);
        culet_lock(&culet_pages_lock);
        culet_pages_count_purged(bytes);
    }
    if (CULET_LIKELY(owed < CULET_GROWTH_RATIO * CULET_GROWTH_BATCH_PAGES))
        return;
    size_t batch = owed / CULET_GROWTH_RATIO, keep = keep_pages();
    owed = 0;
    if (stats.dirty > keep)
        purge_segments(stats.dirty - keep > batch ? stats.dirty - batch : keep);
}

/* The first segment that may have a free range of so many pages. */
static uint32_t first_segment(size_t pages)
{
    return pages <= CULET_SLAB_PAGES ? lowest[pages] : lowest[CULET_SLAB_PAGES];
}

/* The lowest fitting range of the lowest segment that has one; CULET_SEGMENT_PAGES if none. Stores the segment. */
static size_t search(size_t pages, size_t alignment, uint32_t *index)
{
    size_t from = CULET_SEGMENT_PAGES;
    uint32_t i = first_segment(pages);

    while (i < ceiling && (from = search_segment(i, pages, alignment)) == CULET_SEGMENT_PAGES)
        i++;
    *index = i;
    if (alignment == CULET_PAGE)
        for (size_t n = pages; n <= CULET_SLAB_PAGES && lowest[n] < i; n++)
            lowest[n] = i;
    return from;
}

uintptr_t culet_pages_get(size_t pages, size_t alignment, uint32_t *segment, bool *zeroed)
{
    uint32_t i;

    purge_on_growth();
    size_t from = search(pages, alignment, &i);

    if (from == CULET_SEGMENT_PAGES && wait_for_purge(CULET_PURGE_WAIT_US))
        from = search(pages, alignment, &i);
    if (from == CULET_SEGMENT_PAGES) {
        if (!add_segment(&i) && !wait_for_purge(0))
            return 0;
        if ((from = search(pages, alignment, &i)) == CULET_SEGMENT_PAGES)
            return 0;
    }
    struct culet_segment *s = segments[i];
    size_t dirty = take(i, from, pages);
    *zeroed = dirty == 0;
    *segment = i;
    if (dirty < pages)
        note_growth(pages - dirty);
    DEBUG_CHECK();
    return s->base + from * CULET_PAGE;
}

/* Marks used pages as free. `dirty`: as in culet_pages_put. Returns how many are dirty. */
static size_t vacate(struct culet_segment *s, size_t from, size_t count, uint64_t dirty)
{
    uint64_t clean = ~dirty;
    size_t sum = 0;

    for (size_t here; count; from += here, count -= here) {
        uint64_t mask = mask_of(from, count, &here), bits = mask & ~(clean << (from % 64));
        s->used[from / 64] &= ~mask;
        s->dirty[from / 64] |= bits;
        sum += bits == mask ? here : (size_t)__builtin_popcountll(bits);
        clean = clean >> (here - 1) >> 1;
    }
    return sum;
}

/* Wholly free, and not the only such segment, which is kept for the next request. */
static bool is_surplus(uint32_t index)
{
    return segments[index]->free == CULET_SEGMENT_PAGES && spare_segments > 1 && !is_purged_now(index);
}

void culet_pages_put(uint32_t segment, uintptr_t start, size_t pages, uint64_t dirty)
{
    struct culet_segment *s = segments[segment];
    size_t from = (start - s->base) >> CULET_PAGE_SHIFT;

    add_dirty(segment, vacate(s, from, pages, dirty));
    s->free += (uint32_t)pages;
    spare_segments += s->free == CULET_SEGMENT_PAGES;
    stats.free += pages;
    stats.used -= pages;
    note_free(segment, from, pages);
    if (is_surplus(segment) && (!culet_wakeup_scavenger_runs() || !dirty_of[segment]))
        drop_segment(segment);
    if (!keeps_too_many())
        return;
    if (culet_wakeup_scavenger_runs()) {
        culet_wakeup_notify();
    } else {
        purge_segments(keep_pages() / 2);
        if (stats.purged_bytes - reclaimed > CULET_SCAVENGER_PURGED_BYTES)
            culet_wakeup_request_scavenger();
    }
    DEBUG_CHECK();
}

bool culet_pages_extend(uint32_t segment, uintptr_t start, size_t pages, size_t more)
{
    struct culet_segment *s = segments[segment];
    size_t end = ((start - s->base) >> CULET_PAGE_SHIFT) + pages;

    purge_on_growth();
    if (end + more > CULET_SEGMENT_PAGES || find(s->used, end, true) < end + more)
        return false;
    size_t dirty = take(segment, end, more);
    if (dirty < more)
        note_growth(more - dirty);
    return true;
}

/* ---- purges ---- */

/* Where a purge has arrived: everything from page `page` of segment `segment` on has been visited. From the top down,
 * because low addresses are used first. */
struct cursor {
    uint32_t segment;
    size_t page;
    size_t skipped; /* dirty pages that were visited and stay */
};

/* Rounds a range of dirty pages inside the free range [from, to) to whole kernel pages: outwards as far as the range is
 * free, else inwards. */
static void round_to_kernel_pages(size_t from, size_t to, size_t *first, size_t *last)
{
    size_t unit = culet_os_page_bytes() >> CULET_PAGE_SHIFT;

    *first = *first / unit * unit;
    *last = (*last + unit - 1) / unit * unit;
    if (*first < from)
        *first += unit;
    if (*last > to)
        *last -= unit;
}

/* Adds the dirty pages of the free range [from, to), from its end on, at most `most` (a multiple of the kernel page).
 * Returns the page that the batch has arrived at. */
static size_t add_to_batch(struct batch *batch, struct cursor *at, size_t from, size_t to, size_t most)
{
    struct culet_segment *s = segments[at->segment];
    size_t first = find(s->dirty, from, true), last = find_back(s->dirty, to, true);

    if (first >= last)
        return from;
    size_t dirty = count_bits(s->dirty, first, last - first);
    round_to_kernel_pages(from, to, &first, &last);
    if (first >= last) {
        at->skipped += dirty;
        return from;
    }
    bool whole = last - first <= most;
    if (!whole)
        first = last - most;
    size_t inside = count_bits(s->dirty, first, last - first);
    if (whole)
        at->skipped += dirty - inside;
    fill(s->used, first, last - first, true);
    batch->pages += last - first;
    batch->range[batch->count++] = (struct range){
        .base = s->base, .segment = at->segment, .first = (uint16_t)first, .pages = (uint16_t)(last - first)};
    return whole ? from : first;
}

/* Takes free ranges of one segment with dirty pages for a purge, in all at most `most` pages. False if there are no
 * more. */
static bool fill_batch(struct batch *batch, struct cursor *at, size_t most)
{
    size_t unit = culet_os_page_bytes() >> CULET_PAGE_SHIFT;

    most = (most + unit - 1) / unit * unit;
    batch->count = 0;
    batch->pages = 0;
    /* Segments may have been unmapped meanwhile. */
    if (at->segment >= ceiling)
        *at = (struct cursor){.segment = ceiling, .skipped = at->skipped};
    while (!batch->count) {
        while (!at->page) {
            if (at->segment == 0)
                return false;
            if (dirty_of[--at->segment])
                at->page = CULET_SEGMENT_PAGES;
        }
        const struct culet_segment *s = segments[at->segment];
        while (s && batch->count < BATCH_RANGES && batch->pages < most &&
               (at->page = find_back(s->used, at->page, false))) {
            size_t from = find_back(s->used, at->page, true);
            at->page = add_to_batch(batch, at, from, at->page, most - batch->pages);
        }
        if (!s)
            at->page = 0;
    }
    return true;
}

/* Frees the pages of a batch again; those that went back to the kernel are clean. Returns bytes that were dirty. */
static size_t empty_batch(struct batch *batch, struct cursor *at)
{
    size_t returned = 0;

    for (unsigned i = 0; i < batch->count; i++) {
        struct range *range = &batch->range[i];
        struct culet_segment *s = segments[range->segment];
        size_t dirty = count_bits(s->dirty, range->first, range->pages);
        fill(s->used, range->first, range->pages, false);
        if (range->purged) {
            fill(s->dirty, range->first, range->pages, false);
            remove_dirty(range->segment, dirty);
            returned += dirty * CULET_PAGE;
        } else {
            at->skipped += dirty;
        }
        note_free(range->segment, range->first, range->pages);
    }
    batch->count = 0;
    batch->pages = 0;
    stats.purged_bytes += returned;
    stats.purges += returned != 0;
    return returned;
}

/* Unmaps the surplus segments from `lowest_segment` on of which nothing is dirty. */
static void drop_surplus(uint32_t lowest_segment)
{
    for (uint32_t i = ceiling; i-- > lowest_segment && spare_segments > 1;)
        if (segments[i] && !dirty_of[i] && is_surplus(i))
            drop_segment(i);
}

/* The ranges of a batch stay as they are meanwhile, so this needs no lock. */
static void purge_batch(struct batch *batch)
{
    struct culet_os_range ranges[BATCH_RANGES];

    for (unsigned i = 0; i < batch->count; i++) {
        const struct range *range = &batch->range[i];
        ranges[i] = (struct culet_os_range){range->base + range->first * CULET_PAGE, range->pages * CULET_PAGE, false};
    }
    culet_os_purge_ranges(ranges, batch->count);
    for (unsigned i = 0; i < batch->count; i++)
        batch->range[i].purged = ranges[i].purged;
}

/* Returns the pages of a batch to the kernel, then to the heap. If it is `purging`, the pages lock is open meanwhile.
 * Returns bytes. */
static size_t purge_and_empty(struct batch *batch, struct cursor *at)
{
    if (batch != &purging) {
        purge_batch(batch);
    } else {
        culet_pages_returning = true;
        culet_unlock(&culet_pages_lock);
        purge_batch(batch);
        culet_lock(&culet_pages_lock);
        atomic_fetch_add_explicit(&purge_batches, 1, memory_order_relaxed);
        if (purge_waiters)
            culet_os_wake(&purge_batches, INT_MAX);
    }
    size_t returned = empty_batch(batch, at);
    culet_pages_returning = false;
    drop_surplus(at->segment);
    return returned;
}

/* What was visited and stays dirty, the kernel has refused. */
static void end_purge(const struct cursor *at, size_t target)
{
    bool all = at->segment == 0 && at->page == 0;

    unpurgeable = all && stats.dirty > target ? (at->skipped < stats.dirty ? at->skipped : stats.dirty) : 0;
}

/* Purges dirty pages until at most `target` are left; of the last segment all, unless `exactly`. */
static size_t purge_by(struct batch *batch, size_t target, bool exactly)
{
    struct cursor at = {.segment = ceiling};
    size_t slice = batch == &purging ? CULET_PURGE_SLICE_BYTES >> CULET_PAGE_SHIFT : CULET_SEGMENT_PAGES, returned = 0;

    while (stats.dirty > target || (at.page && !exactly)) {
        if (!fill_batch(batch, &at, exactly && stats.dirty - target < slice ? stats.dirty - target : slice))
            break;
        returned += purge_and_empty(batch, &at);
        DEBUG_CHECK();
    }
    end_purge(&at, target);
    return returned;
}

/* Other threads can use the page heap while the kernel works; nothing is done if one of them purges. */
static size_t purge_segments(size_t target)
{
    /* For the thread that forks all locks are open, so it purges as if it kept the lock. */
    if (culet_lock_forking())
        return purge_by(&(struct batch){.count = 0}, target, false);
    if (!culet_lock_try(&purge_lock))
        return 0;
    size_t returned = purge_by(&purging, target, false);
    culet_unlock(&purge_lock);
    return returned;
}

static size_t cached_pages(void)
{
    return culet_huge_cache_bytes() >> CULET_PAGE_SHIFT;
}

/* The huge-block cache, outside of the pages lock. */
size_t culet_pages_purge_huge_cache(size_t bytes)
{
    struct culet_extent extent;
    size_t returned = 0;

    while (returned < bytes) {
        culet_lock(&culet_pages_lock);
        bool begun = culet_huge_cache_begin_purge(bytes - returned, &extent);
        /* Too many at the same time. */
        if (!begun)
            returned += culet_huge_cache_purge(bytes - returned);
        culet_pages_returning = begun;
        culet_unlock(&culet_pages_lock);
        if (!begun)
            break;
        culet_os_purge(extent.start, extent.bytes);
        culet_lock(&culet_pages_lock);
        culet_huge_cache_end_purge(&extent);
        culet_pages_returning = false;
        culet_unlock(&culet_pages_lock);
        returned += extent.bytes;
    }
    return returned;
}

size_t culet_pages_purge_unlocked(size_t keep)
{
    /* For the thread that forks all locks are open, so it purges as if it held the pages lock. */
    if (culet_lock_forking())
        return culet_pages_reclaim(keep);

    culet_lock(&purge_lock);
    culet_lock(&culet_pages_lock);
    size_t all = stats.dirty + cached_pages(), surplus = all > keep ? all - keep : 0;
    culet_unlock(&culet_pages_lock);
    size_t huge = culet_pages_purge_huge_cache(surplus << CULET_PAGE_SHIFT);
    culet_lock(&culet_pages_lock);
    culet_pages_count_purged(huge);
    size_t returned = huge + purge_by(&purging, keep > cached_pages() ? keep - cached_pages() : 0, true);
    culet_unlock(&culet_pages_lock);
    culet_unlock(&purge_lock);
    return returned;
}

void culet_pages_wait_for_purge(void)
{
    culet_lock(&purge_lock);
    culet_unlock(&purge_lock);
}

void culet_pages_reset_after_fork(void)
{
    struct cursor unused = {.skipped = 0};

    culet_lock_reset(&purge_lock);
    purge_waiters = 0;
    reclaimed = stats.purged_bytes; /* the child's scavenger is for what the child returns */
    /* Whether the kernel has got them before the fork is not known, so they stay dirty. */
    for (unsigned i = 0; i < purging.count; i++)
        purging.range[i].purged = false;
    empty_batch(&purging, &unused);
    culet_huge_cache_finish_purges();
}

size_t culet_pages_reclaim(size_t keep)
{
    size_t all = stats.dirty + cached_pages();
    size_t huge = culet_huge_cache_purge(all > keep ? (all - keep) << CULET_PAGE_SHIFT : 0);

    culet_pages_count_purged(huge);
    size_t returned = purge_segments(keep > cached_pages() ? keep - cached_pages() : 0);
    reclaimed += returned;
    return huge + returned;
}

void culet_pages_release_spare(void)
{
    culet_huge_cache_purge(SIZE_MAX);
    for (uint32_t i = ceiling; i-- > 0;)
        if (segments[i] && segments[i]->free == CULET_SEGMENT_PAGES && !is_purged_now(i))
            drop_segment(i);
}

void *culet_pages_descriptor(enum culet_meta kind)
{
    void *descriptor = culet_meta_get(kind);
    if (CULET_LIKELY(descriptor != NULL))
        return descriptor;

    culet_lock(&culet_pages_lock);
    culet_pages_release_spare();
    culet_unlock(&culet_pages_lock);
    return culet_meta_get(kind);
}

bool culet_pages_prepare(uintptr_t address)
{
    if (CULET_LIKELY(culet_pagemap_prepare(address, 1)))
        return true;
    culet_pages_release_spare();
    return culet_pagemap_prepare(address, 1);
}

void culet_pages_count_purged(size_t bytes)
{
    stats.purged_bytes += bytes;
    reclaimed += bytes;
    stats.purges += bytes != 0;
}

void culet_pages_begin_interval(void)
{
    low_water = stats.dirty;
    culet_huge_cache_begin_interval();
}

size_t culet_pages_idle(bool since)
{
    size_t pages = since ? low_water : stats.dirty;

    pages = pages > unpurgeable ? pages - unpurgeable : 0;
    return pages + ((since ? culet_huge_cache_low_water() : culet_huge_cache_bytes()) >> CULET_PAGE_SHIFT);
}

struct culet_pages_stats culet_pages_stats(void)
{
    struct culet_pages_stats copy = stats;

    copy.huge_cached = cached_pages();
    return copy;
}

uintptr_t culet_pages_segment(uint32_t index)
{
    if (index >= ceiling)
        return CULET_PAGES_END;
    return segments[index] ? segments[index]->base : 0;
}
