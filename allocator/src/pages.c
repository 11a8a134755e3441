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

#include <string.h>

struct culet_lock culet_pages_lock;

/* [pages lock, as all below] `longest[i]` is the longest free range of segment i, `dirty_of[i]` its number of dirty
 * pages; both are 0 where there is no segment. */
static struct culet_segment *segments[CULET_SEGMENTS];
static uint16_t longest[CULET_SEGMENTS];
static uint16_t dirty_of[CULET_SEGMENTS];
static uint32_t ceiling; /* no segment at or above this index */
static struct culet_pages_stats stats;
static size_t unpurgeable;      /* dirty pages that the kernel refused to take back (locked memory) */
static size_t reclaimed;        /* bytes returned that do not count towards CULET_SCAVENGER_PURGED_BYTES */
static size_t low_water;        /* least number of dirty pages since culet_pages_begin_interval */
static uint32_t spare_segments; /* segments without a used page */
static uint32_t lowest[CULET_SLAB_PAGES + 1]; /* no segment below lowest[n] has a free range of n pages */

CULET_SELFMAP_EXPORT(segments, culet_selfmap_segments);
CULET_SELFMAP_EXPORT(ceiling, culet_selfmap_ceiling);

#define WORDS (CULET_SEGMENT_PAGES / 64)

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
    return (*here == 64 ? ~UINT64_C(0) : (UINT64_C(1) << *here) - 1) << bit;
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

/* The first page of the free range that ends before `to`; `to` if there is none. */
static size_t find_start(const uint64_t *used, size_t to)
{
    size_t word = to / 64;
    uint64_t bits = to % 64 ? used[word] & ((UINT64_C(1) << (to % 64)) - 1) : 0;

    while (!bits) {
        if (word-- == 0)
            return 0;
        bits = used[word];
    }
    return word * 64 + 64 - (size_t)__builtin_clzll(bits);
}

/* The length of the free range around pages that are free. */
static size_t length_around(const struct culet_segment *s, size_t from, size_t pages)
{
    return find(s->used, from + pages, true) - find_start(s->used, from);
}

static void set_longest(uint32_t index, size_t length)
{
    longest[index] = (uint16_t)length;
    for (size_t n = 1; n <= CULET_SLAB_PAGES && n <= length; n++)
        if (lowest[n] > index)
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

static bool add_segment(uint32_t *index)
{
    uint32_t i = 0;
    while (i < ceiling && segments[i])
        i++;
    if (i == CULET_SEGMENTS)
        return false;

    struct culet_segment *s = culet_meta_get(CULET_META_SEGMENT);
    if (!s)
        return false;
    memset(s, 0, sizeof *s);
    s->base = (uintptr_t)culet_os_map_aligned(CULET_SEGMENT_BYTES, CULET_PAGE);
    if (!s->base && culet_huge_cache_purge(SIZE_MAX))
        s->base = (uintptr_t)culet_os_map_aligned(CULET_SEGMENT_BYTES, CULET_PAGE);
    size_t moved = 0;
    if (!s->base || !culet_pagemap_prepare(s->base, CULET_SEGMENT_PAGES) ||
        !culet_huge_cache_move(s->base, CULET_SEGMENT_BYTES, &moved)) {
        if (s->base)
            culet_os_unmap((void *)s->base, CULET_SEGMENT_BYTES);
        culet_meta_put(CULET_META_SEGMENT, s);
        return false;
    }
    s->free = CULET_SEGMENT_PAGES;
    segments[i] = s;
    set_longest(i, CULET_SEGMENT_PAGES);
    if (i == ceiling)
        ceiling++;
    spare_segments++;
    if (++stats.segments == CULET_STACK_SEGMENTS)
        culet_stack_request();
    if (stats.segments > CULET_SCAVENGER_SEGMENTS)
        culet_wakeup_request_scavenger();
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

void culet_pages_check(void)
{
    culet_huge_cache_check();
    size_t used = 0, dirty = 0, count = 0, spare = 0;

    for (uint32_t i = 0; i < ceiling; i++) {
        const struct culet_segment *s = segments[i];
        if (!s)
            continue;
        count++;
        spare += s->free == CULET_SEGMENT_PAGES;
        if (longest[i] != longest_free(s))
            __builtin_trap();
        if (dirty_of[i] != count_bits(s->dirty, 0, CULET_SEGMENT_PAGES))
            __builtin_trap();
        for (size_t n = 1; n <= CULET_SLAB_PAGES; n++)
            if (i < lowest[n] && longest[i] >= n)
                __builtin_trap();
        used += count_bits(s->used, 0, CULET_SEGMENT_PAGES);
        dirty += count_bits(s->dirty, 0, CULET_SEGMENT_PAGES);
        if (s->free + count_bits(s->used, 0, CULET_SEGMENT_PAGES) != CULET_SEGMENT_PAGES)
            __builtin_trap();
        for (size_t w = 0; w < WORDS; w++)
            if (s->used[w] & s->dirty[w])
                __builtin_trap();
    }
    if (used != stats.used || dirty != stats.dirty || count != stats.segments || spare != spare_segments ||
        used + stats.free != count * CULET_SEGMENT_PAGES)
        __builtin_trap();
}

#ifdef CULET_DEBUG
#define DEBUG_CHECK() culet_pages_check()
#else
#define DEBUG_CHECK() ((void)0)
#endif

/* The lowest fitting range in a segment; CULET_SEGMENT_PAGES if none. */
static size_t fit(const struct culet_segment *s, size_t pages, size_t alignment)
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
    bool was_longest = length_around(s, from, pages) == longest[index];
    size_t dirty = occupy(s, from, pages);

    spare_segments -= s->free == CULET_SEGMENT_PAGES;
    if (dirty)
        remove_dirty(index, dirty);
    s->free -= (uint32_t)pages;
    stats.free -= pages;
    stats.used += pages;
    if (was_longest)
        set_longest(index, longest_free(s));
    return dirty;
}

static size_t purge_segments(size_t target, size_t most);

static size_t keep_pages(void)
{
    return culet_reclaim_keep_pages(stats.used);
}

/* There are more dirty pages than to keep, and the kernel does not refuse them. */
static bool keeps_too_many(void)
{
    return stats.dirty > keep_pages() && stats.dirty > 2 * unpurgeable;
}

/* `pages` become resident: as many cached huge pages go back, and a part as many dirty ones while the heap keeps too
 * many. */
static void purge_on_growth(size_t pages)
{
    static size_t owed, huge_owed;

    if (culet_huge_cache_bytes() && (huge_owed += pages) >= CULET_GROWTH_HUGE_BATCH_PAGES) {
        culet_pages_count_purged(culet_huge_cache_purge(huge_owed << CULET_PAGE_SHIFT));
        huge_owed = 0;
    }
    if (!keeps_too_many())
        return;
    owed += pages;
    if (owed < CULET_GROWTH_RATIO * CULET_GROWTH_BATCH_PAGES)
        return;
    size_t batch = owed / CULET_GROWTH_RATIO;
    owed = 0;
    purge_segments(stats.dirty - keep_pages() > batch ? stats.dirty - batch : keep_pages(), SIZE_MAX);
}

/* The first segment that may have a free range of so many pages. */
static uint32_t first_segment(size_t pages)
{
    return pages <= CULET_SLAB_PAGES ? lowest[pages] : lowest[CULET_SLAB_PAGES];
}

/* No segment below `index` has such a range. */
static void record_search(size_t pages, size_t alignment, uint32_t index)
{
    if (pages <= CULET_SLAB_PAGES && alignment == CULET_PAGE)
        lowest[pages] = index;
}

uintptr_t culet_pages_get(size_t pages, size_t alignment, uint32_t *segment, bool *zeroed)
{
    size_t from = CULET_SEGMENT_PAGES;
    uint32_t i;

    for (i = first_segment(pages); i < ceiling; i++)
        if (longest[i] >= pages && (from = fit(segments[i], pages, alignment)) < CULET_SEGMENT_PAGES)
            break;
    if (from == CULET_SEGMENT_PAGES) {
        if (!add_segment(&i))
            return 0;
        from = fit(segments[i], pages, alignment);
        /* Ranges and alignments are at most a quarter of a segment each. */
        if (from == CULET_SEGMENT_PAGES)
            __builtin_trap();
    }
    record_search(pages, alignment, i);
    struct culet_segment *s = segments[i];
    size_t dirty = take(i, from, pages);
    *zeroed = dirty == 0;
    *segment = i;
    if (dirty < pages)
        purge_on_growth(pages - dirty);
    DEBUG_CHECK();
    return s->base + from * CULET_PAGE;
}

/* `dirty`: as in culet_pages_put. */
static void mark_dirty(uint32_t index, size_t from, size_t pages, uint64_t dirty)
{
    struct culet_segment *s = segments[index];
    size_t first = pages < 64 ? pages : 64;

    fill(s->dirty, from, pages, true);
    if (dirty == ~UINT64_C(0)) {
        add_dirty(index, pages);
        return;
    }
    for (size_t i = 0; i < first; i++)
        if (!(dirty >> i & 1))
            fill(s->dirty, from + i, 1, false);
    add_dirty(index, count_bits(s->dirty, from, pages));
}

/* Wholly free, and not the only such segment, which is kept for the next request. */
static bool is_surplus(uint32_t index)
{
    return segments[index]->free == CULET_SEGMENT_PAGES && spare_segments > 1;
}

void culet_pages_put(uint32_t segment, uintptr_t start, size_t pages, uint64_t dirty)
{
    struct culet_segment *s = segments[segment];
    size_t from = (start - s->base) >> CULET_PAGE_SHIFT;

    fill(s->used, from, pages, false);
    mark_dirty(segment, from, pages, dirty);
    s->free += (uint32_t)pages;
    spare_segments += s->free == CULET_SEGMENT_PAGES;
    stats.free += pages;
    stats.used -= pages;
    size_t length = length_around(s, from, pages);
    if (length > longest[segment])
        set_longest(segment, length);
    if (is_surplus(segment) && (!culet_wakeup_scavenger_runs() || !dirty_of[segment]))
        drop_segment(segment);
    if (!keeps_too_many())
        return;
    if (culet_wakeup_scavenger_runs()) {
        culet_wakeup_notify();
    } else {
        purge_segments(keep_pages() / 2, SIZE_MAX);
        if (stats.purged_bytes - reclaimed > CULET_SCAVENGER_PURGED_BYTES)
            culet_wakeup_request_scavenger();
    }
    DEBUG_CHECK();
}

bool culet_pages_extend(uint32_t segment, uintptr_t start, size_t pages, size_t more)
{
    struct culet_segment *s = segments[segment];
    size_t end = ((start - s->base) >> CULET_PAGE_SHIFT) + pages;

    if (end + more > CULET_SEGMENT_PAGES || find(s->used, end, true) < end + more)
        return false;
    size_t dirty = take(segment, end, more);
    if (dirty < more)
        purge_on_growth(more - dirty);
    return true;
}

/* Purges the dirty pages of [from, to), a free range, as far as whole kernel pages of it are free. */
static size_t purge_range(uint32_t index, size_t from, size_t to)
{
    struct culet_segment *s = segments[index];
    size_t returned = 0;

    for (size_t i = find(s->dirty, from, true); i < to; i = find(s->dirty, i, true)) {
        size_t per_kernel_page = culet_os_page_bytes() >> CULET_PAGE_SHIFT;
        size_t end = find(s->dirty, i, false);
        if (end > to)
            end = to;
        /* Rounds to whole kernel pages: outwards as far as the range is free, else inwards. */
        size_t first = i / per_kernel_page * per_kernel_page;
        size_t last = (end + per_kernel_page - 1) / per_kernel_page * per_kernel_page;
        if (first < from)
            first += per_kernel_page;
        if (last > to)
            last -= per_kernel_page;
        if (first < last && culet_os_purge(s->base + first * CULET_PAGE, (last - first) * CULET_PAGE)) {
            size_t dirty = count_bits(s->dirty, first, last - first);
            fill(s->dirty, first, last - first, false);
            remove_dirty(index, dirty);
            returned += dirty * CULET_PAGE;
        }
        i = last > end ? last : end;
    }
    return returned;
}

static size_t purge_segment(uint32_t index)
{
    const struct culet_segment *s = segments[index];
    size_t returned = 0;

    for (size_t from = find(s->used, 0, false); from < CULET_SEGMENT_PAGES;) {
        size_t to = find(s->used, from, true);
        returned += purge_range(index, from, to);
        from = find(s->used, to, false);
    }
    return returned;
}

/* culet_pages_purge of the segments alone. */
static size_t purge_segments(size_t target, size_t most)
{
    size_t returned = 0;
    uint32_t i = ceiling;

    /* From the top, because low addresses are used first. */
    while (i-- > 0 && stats.dirty > target && returned < most * CULET_PAGE) {
        if (!dirty_of[i])
            continue;
        if (is_surplus(i)) {
            returned += dirty_of[i] * CULET_PAGE;
            drop_segment(i);
        } else {
            size_t bytes = purge_segment(i);
            stats.purged_bytes += bytes;
            returned += bytes;
        }
    }
    stats.purges += returned != 0;
    unpurgeable = stats.dirty > target && i == UINT32_MAX ? stats.dirty : 0;
    return returned;
}

static size_t cached_pages(void)
{
    return culet_huge_cache_bytes() >> CULET_PAGE_SHIFT;
}

size_t culet_pages_purge(size_t target, size_t most)
{
    size_t all = stats.dirty + cached_pages(), surplus = all > target ? all - target : 0;
    size_t returned = culet_huge_cache_purge((surplus < most ? surplus : most) << CULET_PAGE_SHIFT);

    culet_pages_count_purged(returned);
    if (returned >> CULET_PAGE_SHIFT >= most)
        return returned;
    return returned +
           purge_segments(target > cached_pages() ? target - cached_pages() : 0, most - (returned >> CULET_PAGE_SHIFT));
}

size_t culet_pages_reclaim(size_t keep_granules)
{
    size_t returned = culet_pages_purge(keep_granules, SIZE_MAX);

    reclaimed += returned;
    return returned;
}

bool culet_pages_release_spare(void)
{
    size_t before = stats.segments;
    bool huge_cached = culet_huge_cache_purge(SIZE_MAX) != 0;

    for (uint32_t i = ceiling; i-- > 0;)
        if (segments[i] && segments[i]->free == CULET_SEGMENT_PAGES)
            drop_segment(i);
    return huge_cached || stats.segments < before;
}

void *culet_pages_descriptor(enum culet_meta kind)
{
    void *descriptor = culet_meta_get(kind);
    if (CULET_LIKELY(descriptor != NULL))
        return descriptor;

    culet_lock(&culet_pages_lock);
    bool released = culet_pages_release_spare();
    culet_unlock(&culet_pages_lock);
    return released ? culet_meta_get(kind) : NULL;
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
