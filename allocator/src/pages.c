#include "pages.h"

#include "bell.h"
#include "lock.h"
#include "meta.h"
#include "os.h"
#include "pagemap.h"
#include "shown.h"
#include "stack.h"
#include "stock.h"

#include <string.h>

/* Free memory that stays resident where there is no scavenger, and that the heap grows beside: 128 KiB, and a
 * thirty-second of what is used. */
#define KEEP_LEAST ((size_t)32)
#define KEEP_SHARE 32

/* A heap of more segments than this gets a scavenger; and so does a smaller one once it has returned so many bytes:
 * it takes again what it frees. */
#define SCAVENGER_SEGMENTS 3
#define SCAVENGER_PURGED ((size_t)4 << 20)

/* With this many the program is past its first steps, and has taken the stack that it will not use (stack.h). */
#define STACK_SEGMENTS 2

/* When the heap grows while it keeps too much, one granule goes back for so many new ones; a batch at a time. */
#define EXCHANGE 4
#define PURGE_BATCH ((size_t)256)
#define STOCK_BATCH ((size_t)64)

struct culet_lock culet_pages_lock;

/* [pages lock] `longest[i]` is the longest free run of segment i, `dirty_of[i]` its number of dirty granules;
 * both are 0 where there is no segment. */
static struct culet_segment *segments[CULET_SEGMENTS];
static uint16_t longest[CULET_SEGMENTS];
static uint16_t dirty_of[CULET_SEGMENTS];
static uint32_t ceiling; /* no segment at or above this index */
static struct culet_pages_figures figures;
static size_t refused; /* dirty granules that the kernel would not take back (locked memory) */
static size_t tidied; /* bytes given back that do not call for a scavenger */
static size_t least;   /* least number of dirty granules since culet_pages_watch */
static uint32_t spares; /* segments without a used granule */
/* No segment below lowest[n] has a free run of n granules, for the lengths that slabs have. */
static uint32_t lowest[CULET_SLAB_GRANULES + 1];

CULET_SHOW(segments, culet_shown_segments);
CULET_SHOW(ceiling, culet_shown_ceiling);

#define WORDS (CULET_SEGMENT_GRANULES / 64)

/* The first granule at or behind `from` whose bit in `map` equals `value`; CULET_SEGMENT_GRANULES if none. */
static size_t find(const uint64_t *map, size_t from, bool value)
{
    if (from >= CULET_SEGMENT_GRANULES)
        return CULET_SEGMENT_GRANULES;

    size_t word = from / 64;
    uint64_t flip = value ? 0 : ~UINT64_C(0), bits = (map[word] ^ flip) & (~UINT64_C(0) << (from % 64));
    while (!bits) {
        if (++word == WORDS)
            return CULET_SEGMENT_GRANULES;
        bits = map[word] ^ flip;
    }
    return word * 64 + (size_t)__builtin_ctzll(bits);
}

/* The bits of the word at `from` that belong to a range of `count` bits. Stores how many they are. */
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

/* The first granule of the free run that ends before `to`; `to` if there is none. */
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

/* The length of the free run around granules that are free. */
static size_t length_around(const struct culet_segment *s, size_t from, size_t granules)
{
    return find(s->used, from + granules, true) - find_start(s->used, from);
}

static void set_longest(uint32_t index, size_t length)
{
    longest[index] = (uint16_t)length;
    for (size_t n = 1; n <= CULET_SLAB_GRANULES && n <= length; n++)
        if (lowest[n] > index)
            lowest[n] = index;
}

static size_t measure(const struct culet_segment *s)
{
    size_t best = 0;

    for (size_t from = find(s->used, 0, false); from < CULET_SEGMENT_GRANULES;) {
        size_t to = find(s->used, from, true);
        if (to - from > best)
            best = to - from;
        from = find(s->used, to, false);
    }
    return best;
}

static void add_dirty(uint32_t index, size_t granules)
{
    dirty_of[index] += (uint16_t)granules;
    figures.dirty += granules;
}

static void remove_dirty(uint32_t index, size_t granules)
{
    dirty_of[index] -= (uint16_t)granules;
    figures.dirty -= granules;
    if (figures.dirty < least)
        least = figures.dirty;
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
    s->base = (uintptr_t)culet_os_map_aligned(CULET_SEGMENT_BYTES, CULET_GRANULE);
    if (!s->base && culet_stock_return(SIZE_MAX))
        s->base = (uintptr_t)culet_os_map_aligned(CULET_SEGMENT_BYTES, CULET_GRANULE);
    size_t moved = 0;
    if (!s->base || !culet_pagemap_prepare(s->base, CULET_SEGMENT_GRANULES) ||
        !culet_stock_move(s->base, CULET_SEGMENT_BYTES, &moved)) {
        if (s->base)
            culet_os_unmap((void *)s->base, CULET_SEGMENT_BYTES);
        culet_meta_put(CULET_META_SEGMENT, s);
        return false;
    }
    s->free = CULET_SEGMENT_GRANULES;
    segments[i] = s;
    set_longest(i, CULET_SEGMENT_GRANULES);
    if (i == ceiling)
        ceiling++;
    spares++;
    if (++figures.segments == STACK_SEGMENTS)
        culet_stack_want();
    if (figures.segments > SCAVENGER_SEGMENTS)
        culet_bell_want();
    figures.free += CULET_SEGMENT_GRANULES;
    fill(s->dirty, 0, moved >> CULET_GRANULE_SHIFT, true);
    add_dirty(i, moved >> CULET_GRANULE_SHIFT);
    *index = i;
    return true;
}

static void drop_segment(uint32_t index)
{
    struct culet_segment *s = segments[index];
    size_t dirty = dirty_of[index];

    culet_pagemap_clear(s->base, CULET_SEGMENT_GRANULES);
    culet_os_unmap((void *)s->base, CULET_SEGMENT_BYTES);
    spares--;
    figures.segments--;
    figures.free -= CULET_SEGMENT_GRANULES;
    remove_dirty(index, dirty);
    figures.purged_bytes += dirty * CULET_GRANULE;
    figures.purges += dirty != 0;
    culet_meta_put(CULET_META_SEGMENT, s);
    segments[index] = NULL;
    longest[index] = 0;
    while (ceiling && !segments[ceiling - 1])
        ceiling--;
}

void culet_pages_check(void)
{
    culet_stock_check();
    size_t used = 0, dirty = 0, count = 0, spare = 0;

    for (uint32_t i = 0; i < ceiling; i++) {
        const struct culet_segment *s = segments[i];
        if (!s)
            continue;
        count++;
        spare += s->free == CULET_SEGMENT_GRANULES;
        if (longest[i] != measure(s))
            __builtin_trap();
        if (dirty_of[i] != count_bits(s->dirty, 0, CULET_SEGMENT_GRANULES))
            __builtin_trap();
        for (size_t n = 1; n <= CULET_SLAB_GRANULES; n++)
            if (i < lowest[n] && longest[i] >= n)
                __builtin_trap();
        used += count_bits(s->used, 0, CULET_SEGMENT_GRANULES);
        dirty += count_bits(s->dirty, 0, CULET_SEGMENT_GRANULES);
        if (s->free + count_bits(s->used, 0, CULET_SEGMENT_GRANULES) != CULET_SEGMENT_GRANULES)
            __builtin_trap();
        for (size_t w = 0; w < WORDS; w++)
            if (s->used[w] & s->dirty[w])
                __builtin_trap();
    }
    if (used != figures.used || dirty != figures.dirty || count != figures.segments || spare != spares ||
        used + figures.free != count * CULET_SEGMENT_GRANULES)
        __builtin_trap();
}

#ifdef CULET_DEBUG
#define DEBUG_CHECK() culet_pages_check()
#else
#define DEBUG_CHECK() ((void)0)
#endif

/* The lowest fitting run in a segment; CULET_SEGMENT_GRANULES if none. */
static size_t fit(const struct culet_segment *s, size_t granules, size_t alignment)
{
    size_t from = find(s->used, 0, false);

    while (from < CULET_SEGMENT_GRANULES) {
        uintptr_t address = s->base + from * CULET_GRANULE;
        size_t start = from + ((((address + alignment - 1) & ~(alignment - 1)) - address) >> CULET_GRANULE_SHIFT);
        size_t to = find(s->used, from, true);
        if (start + granules <= to)
            return start;
        from = find(s->used, to, false);
    }
    return CULET_SEGMENT_GRANULES;
}

/* Makes free granules used ones. Returns how many of them were dirty. */
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
static size_t take(uint32_t index, size_t from, size_t granules)
{
    struct culet_segment *s = segments[index];
    bool was_longest = length_around(s, from, granules) == longest[index];
    size_t dirty = occupy(s, from, granules);

    spares -= s->free == CULET_SEGMENT_GRANULES;
    if (dirty)
        remove_dirty(index, dirty);
    s->free -= (uint32_t)granules;
    figures.free -= granules;
    figures.used += granules;
    if (was_longest)
        set_longest(index, measure(s));
    return dirty;
}

static size_t purge_segments(size_t target, size_t most);

static size_t keep(void)
{
    return KEEP_LEAST + figures.used / KEEP_SHARE;
}

/* More is kept than should be, and the kernel does not refuse to take it. */
static bool keeps_too_much(void)
{
    return figures.dirty > keep() && figures.dirty > 2 * refused;
}

/* More becomes resident, by so many granules. As many of the stock go back: it is to add nothing to a peak. And while
 * the heap keeps too much, a quarter as many dirty ones: so a heap that grows does not keep what it cannot use, and one
 * whose runs come and go in all lengths, of which some never fit what the others left, soon has room enough and returns
 * nothing. */
static void exchange(size_t granules)
{
    static size_t owed, owed_by_stock;

    if (culet_stock_bytes() && (owed_by_stock += granules) >= STOCK_BATCH) {
        culet_pages_count(culet_stock_return(owed_by_stock << CULET_GRANULE_SHIFT));
        owed_by_stock = 0;
    }
    if (!keeps_too_much())
        return;
    owed += granules;
    if (owed < EXCHANGE * PURGE_BATCH)
        return;
    size_t batch = owed / EXCHANGE;
    owed = 0;
    purge_segments(figures.dirty - keep() > batch ? figures.dirty - batch : keep(), SIZE_MAX);
}

/* The first segment that may have such a run. */
static uint32_t first_segment(size_t granules)
{
    return granules <= CULET_SLAB_GRANULES ? lowest[granules] : lowest[CULET_SLAB_GRANULES];
}

/* No segment below this one has such a run: so the next search need not look there. */
static void searched(size_t granules, size_t alignment, uint32_t index)
{
    if (granules <= CULET_SLAB_GRANULES && alignment == CULET_GRANULE)
        lowest[granules] = index;
}

uintptr_t culet_pages_get(size_t granules, size_t alignment, uint32_t *segment, bool *zeroed)
{
    size_t from = CULET_SEGMENT_GRANULES;
    uint32_t i;

    for (i = first_segment(granules); i < ceiling; i++)
        if (longest[i] >= granules && (from = fit(segments[i], granules, alignment)) < CULET_SEGMENT_GRANULES)
            break;
    if (from == CULET_SEGMENT_GRANULES) {
        if (!add_segment(&i))
            return 0;
        from = fit(segments[i], granules, alignment);
        /* Runs and alignments are at most a quarter of a segment each. */
        if (from == CULET_SEGMENT_GRANULES)
            __builtin_trap();
    }
    searched(granules, alignment, i);
    struct culet_segment *s = segments[i];
    size_t dirty = take(i, from, granules);
    *zeroed = dirty == 0;
    *segment = i;
    if (dirty < granules)
        exchange(granules - dirty);
    DEBUG_CHECK();
    return s->base + from * CULET_GRANULE;
}

/* `dirty` as in culet_pages_put: a mask of the first 64 granules; the others all are. */
static void mark_dirty(uint32_t index, size_t from, size_t granules, uint64_t dirty)
{
    struct culet_segment *s = segments[index];
    size_t first = granules < 64 ? granules : 64;

    fill(s->dirty, from, granules, true);
    if (dirty == ~UINT64_C(0)) {
        add_dirty(index, granules);
        return;
    }
    for (size_t i = 0; i < first; i++)
        if (!(dirty >> i & 1))
            fill(s->dirty, from + i, 1, false);
    add_dirty(index, count_bits(s->dirty, from, granules));
}

/* One segment without a used granule is kept, for the next request. */
static bool superfluous(uint32_t index)
{
    return segments[index]->free == CULET_SEGMENT_GRANULES && spares > 1;
}

void culet_pages_put(uint32_t segment, uintptr_t start, size_t granules, uint64_t dirty)
{
    struct culet_segment *s = segments[segment];
    size_t from = (start - s->base) >> CULET_GRANULE_SHIFT;

    fill(s->used, from, granules, false);
    mark_dirty(segment, from, granules, dirty);
    s->free += (uint32_t)granules;
    spares += s->free == CULET_SEGMENT_GRANULES;
    figures.free += granules;
    figures.used -= granules;
    size_t length = length_around(s, from, granules);
    if (length > longest[segment])
        set_longest(segment, length);
    if (superfluous(segment) && (!culet_bell_answered() || !dirty_of[segment]))
        drop_segment(segment);
    if (!keeps_too_much())
        return;
    if (culet_bell_answered()) {
        culet_bell_ring();
    } else {
        purge_segments(keep() / 2, SIZE_MAX);
        if (figures.purged_bytes - tidied > SCAVENGER_PURGED)
            culet_bell_want();
    }
    DEBUG_CHECK();
}

bool culet_pages_extend(uint32_t segment, uintptr_t start, size_t granules, size_t more)
{
    struct culet_segment *s = segments[segment];
    size_t end = ((start - s->base) >> CULET_GRANULE_SHIFT) + granules;

    if (end + more > CULET_SEGMENT_GRANULES || find(s->used, end, true) < end + more)
        return false;
    size_t dirty = take(segment, end, more);
    if (dirty < more)
        exchange(more - dirty);
    return true;
}

/* Returns the dirty granules of [from, to), a free run, as far as whole kernel pages of it are free. */
static size_t purge_run(uint32_t index, size_t from, size_t to)
{
    struct culet_segment *s = segments[index];
    size_t returned = 0;

    for (size_t i = find(s->dirty, from, true); i < to; i = find(s->dirty, i, true)) {
        size_t per_page = culet_os_page() >> CULET_GRANULE_SHIFT;
        size_t end = find(s->dirty, i, false);
        if (end > to)
            end = to;
        /* Whole kernel pages: outwards as far as the run is free, else inwards. */
        size_t first = i / per_page * per_page, last = (end + per_page - 1) / per_page * per_page;
        if (first < from)
            first += per_page;
        if (last > to)
            last -= per_page;
        if (first < last && culet_os_purge(s->base + first * CULET_GRANULE, (last - first) * CULET_GRANULE)) {
            size_t dirty = count_bits(s->dirty, first, last - first);
            fill(s->dirty, first, last - first, false);
            remove_dirty(index, dirty);
            returned += dirty * CULET_GRANULE;
        }
        i = last > end ? last : end;
    }
    return returned;
}

static size_t purge_segment(uint32_t index)
{
    const struct culet_segment *s = segments[index];
    size_t returned = 0;

    for (size_t from = find(s->used, 0, false); from < CULET_SEGMENT_GRANULES;) {
        size_t to = find(s->used, from, true);
        returned += purge_run(index, from, to);
        from = find(s->used, to, false);
    }
    return returned;
}

/* As culet_pages_purge, of the segments alone. */
static size_t purge_segments(size_t target, size_t most)
{
    size_t returned = 0;
    uint32_t i = ceiling;

    /* From the top: what lies low is used again first. */
    while (i-- > 0 && figures.dirty > target && returned < most * CULET_GRANULE) {
        if (!dirty_of[i])
            continue;
        if (superfluous(i)) {
            returned += dirty_of[i] * CULET_GRANULE;
            drop_segment(i);
        } else {
            size_t bytes = purge_segment(i);
            figures.purged_bytes += bytes;
            returned += bytes;
        }
    }
    figures.purges += returned != 0;
    refused = figures.dirty > target && i == UINT32_MAX ? figures.dirty : 0;
    return returned;
}

static size_t stocked(void)
{
    return culet_stock_bytes() >> CULET_GRANULE_SHIFT;
}

size_t culet_pages_purge(size_t target, size_t most)
{
    size_t all = figures.dirty + stocked(), surplus = all > target ? all - target : 0;
    size_t returned = culet_stock_return((surplus < most ? surplus : most) << CULET_GRANULE_SHIFT);

    culet_pages_count(returned);
    if (returned >> CULET_GRANULE_SHIFT >= most)
        return returned;
    return returned + purge_segments(target > stocked() ? target - stocked() : 0,
                                     most - (returned >> CULET_GRANULE_SHIFT));
}

size_t culet_pages_tidy(size_t keep_granules)
{
    size_t returned = culet_pages_purge(keep_granules, SIZE_MAX);

    tidied += returned;
    return returned;
}

bool culet_pages_release(void)
{
    size_t before = figures.segments;
    bool stock = culet_stock_return(SIZE_MAX) != 0;

    for (uint32_t i = ceiling; i-- > 0;)
        if (segments[i] && segments[i]->free == CULET_SEGMENT_GRANULES)
            drop_segment(i);
    return stock || figures.segments < before;
}

void *culet_pages_descriptor(enum culet_meta kind)
{
    void *descriptor = culet_meta_get(kind);
    if (CULET_LIKELY(descriptor != NULL))
        return descriptor;

    culet_lock(&culet_pages_lock);
    bool released = culet_pages_release();
    culet_unlock(&culet_pages_lock);
    return released ? culet_meta_get(kind) : NULL;
}

void culet_pages_count(size_t bytes)
{
    figures.purged_bytes += bytes;
    tidied += bytes;
    figures.purges += bytes != 0;
}

void culet_pages_watch(void)
{
    least = figures.dirty;
    culet_stock_watch();
}

size_t culet_pages_idle(bool since)
{
    size_t granules = since ? least : figures.dirty;

    granules = granules > refused ? granules - refused : 0;
    return granules + ((since ? culet_stock_least() : culet_stock_bytes()) >> CULET_GRANULE_SHIFT);
}

struct culet_pages_figures culet_pages_figures(void)
{
    struct culet_pages_figures copy = figures;

    copy.stock = stocked();
    return copy;
}

uintptr_t culet_pages_segment(uint32_t index)
{
    if (index >= ceiling)
        return CULET_PAGES_END;
    return segments[index] ? segments[index]->base : 0;
}
