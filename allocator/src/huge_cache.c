#include "huge_cache.h"

#include "os.h"
#include "selfmap_export.h"

/* [pages lock] The oldest first. */
static struct culet_extent extents[CULET_HUGE_CACHE_EXTENTS];
static unsigned count;
static size_t cached;
static size_t low_water; /* since culet_huge_cache_begin_interval */
static size_t live, most_live;
static uint32_t mappings;

/* [pages lock] Extents that threads are returning without the lock. An empty one has no bytes. */
#define LEAVING 8
static struct culet_extent leaving[LEAVING];

CULET_SELFMAP_EXPORT(extents, culet_selfmap_extents);
CULET_SELFMAP_EXPORT(count, culet_selfmap_extent_count);

static uintptr_t end_of(const struct culet_extent *extent)
{
    return extent->start + extent->bytes;
}

static void remove_bytes(size_t bytes)
{
    cached -= bytes;
    if (cached < low_water)
        low_water = cached;
}

static void remove_at(unsigned i)
{
    remove_bytes(extents[i].bytes);
    count--;
    for (; i < count; i++)
        extents[i] = extents[i + 1];
}

/* Takes bytes from the start of the i-th. */
static void cut(unsigned i, size_t bytes)
{
    if (bytes == extents[i].bytes) {
        remove_at(i);
        return;
    }
    extents[i].start += bytes;
    extents[i].bytes -= bytes;
    remove_bytes(bytes);
}

/* Joins adjacent extents of the same mapping to `extent`. */
static void absorb(struct culet_extent *extent)
{
    for (unsigned i = count; i-- > 0;) {
        if (extents[i].mapping != extent->mapping)
            continue;
        if (extents[i].start == end_of(extent)) {
            extent->bytes += extents[i].bytes;
            remove_at(i);
        } else if (end_of(&extents[i]) == extent->start) {
            extent->start = extents[i].start;
            extent->bytes += extents[i].bytes;
            remove_at(i);
        }
    }
}

uint32_t culet_huge_cache_new_mapping(void)
{
    return ++mappings;
}

void culet_huge_cache_set_live(size_t bytes)
{
    live = bytes;
    if (live > most_live)
        most_live = live;
}

size_t culet_huge_cache_excess(void)
{
    size_t most = most_live + CULET_HUGE_CACHE_BYTES;

    return live + cached > most ? live + cached - most : 0;
}

void culet_huge_cache_put(struct culet_extent extent)
{
    absorb(&extent);
    if (count == CULET_HUGE_CACHE_EXTENTS)
        culet_huge_cache_purge(extents[0].bytes);
    extents[count++] = extent;
    cached += extent.bytes;
}

/* The smallest extent of at least so many bytes; `count` if there is none. */
static unsigned best_fit(size_t bytes)
{
    unsigned best = count;

    for (unsigned i = 0; i < count; i++)
        if (extents[i].bytes >= bytes && (best == count || extents[i].bytes < extents[best].bytes))
            best = i;
    return best;
}

bool culet_huge_cache_take(size_t bytes, struct culet_extent *taken)
{
    unsigned i = best_fit(bytes);

    if (i == count)
        return false;
    *taken = extents[i];
    taken->bytes = bytes;
    cut(i, bytes);
    return true;
}

bool culet_huge_cache_take_largest(struct culet_extent *taken)
{
    unsigned largest = 0;

    if (!count)
        return false;
    for (unsigned i = 1; i < count; i++)
        if (extents[i].bytes > extents[largest].bytes)
            largest = i;
    *taken = extents[largest];
    remove_at(largest);
    return true;
}

bool culet_huge_cache_has(size_t bytes)
{
    return best_fit(bytes) < count;
}

bool culet_huge_cache_extend(const struct culet_extent *block, size_t more)
{
    for (unsigned i = 0; i < count; i++)
        if (extents[i].start == end_of(block) && extents[i].mapping == block->mapping) {
            if (extents[i].bytes < more)
                return false;
            cut(i, more);
            return true;
        }
    return false;
}

/* Takes about `bytes` from the end of the oldest extent: the rest may still extend the block before it. */
static struct culet_extent cut_oldest(size_t bytes)
{
    struct culet_extent *oldest = &extents[0], part = *oldest;
    size_t page = culet_os_page_bytes();

    if (bytes < oldest->bytes)
        part.bytes = (bytes + page - 1) & ~(page - 1);
    part.start = end_of(oldest) - part.bytes;
    if (part.bytes == oldest->bytes) {
        remove_at(0);
    } else {
        oldest->bytes -= part.bytes;
        remove_bytes(part.bytes);
    }
    return part;
}

size_t culet_huge_cache_purge(size_t bytes)
{
    size_t returned = 0;

    while (count && returned < bytes) {
        struct culet_extent part = cut_oldest(bytes - returned);
        culet_os_unmap((void *)part.start, part.bytes);
        returned += part.bytes;
    }
    return returned;
}

bool culet_huge_cache_begin_purge(size_t bytes, struct culet_extent *taken)
{
    unsigned i = 0;

    while (i < LEAVING && leaving[i].bytes)
        i++;
    if (i == LEAVING || !count || !bytes)
        return false;
    *taken = leaving[i] = cut_oldest(bytes);
    return true;
}

void culet_huge_cache_end_purge(const struct culet_extent *taken)
{
    unsigned i = 0;

    while (leaving[i].start != taken->start || !leaving[i].bytes)
        i++;
    leaving[i].bytes = 0;
    culet_os_unmap((void *)taken->start, taken->bytes);
}

void culet_huge_cache_finish_purges(void)
{
    for (unsigned i = 0; i < LEAVING; i++)
        if (leaving[i].bytes)
            culet_huge_cache_end_purge(&(struct culet_extent){leaving[i].start, leaving[i].bytes, 0});
}

bool culet_huge_cache_move(uintptr_t start, size_t bytes, size_t *moved)
{
    *moved = 0;
    while (count && *moved < bytes) {
        size_t left = bytes - *moved, part = extents[0].bytes < left ? extents[0].bytes : left;
        void *from = (void *)extents[0].start, *to = (void *)(start + *moved);
        cut(0, part);
        if (!culet_os_move(from, part, to, part)) {
            culet_os_unmap(from, part);
            return culet_os_map_at(to, part);
        }
        *moved += part;
    }
    return true;
}

size_t culet_huge_cache_bytes(void)
{
    return cached;
}

void culet_huge_cache_begin_interval(void)
{
    low_water = cached;
    most_live = live;
}

size_t culet_huge_cache_low_water(void)
{
    return low_water;
}

void culet_huge_cache_check(void)
{
    size_t sum = 0;

    for (unsigned i = 0; i < count; i++) {
        if (!extents[i].bytes || (extents[i].bytes | extents[i].start) % culet_os_page_bytes())
            __builtin_trap();
        for (unsigned j = 0; j < i; j++)
            if (extents[i].start < end_of(&extents[j]) && extents[j].start < end_of(&extents[i]))
                __builtin_trap();
        sum += extents[i].bytes;
    }
    if (sum != cached)
        __builtin_trap();
}
