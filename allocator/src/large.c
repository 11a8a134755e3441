#include "large.h"

#include "../../sampler/core/residency.h"
#include "../../sampler/core/samples.h"
#include "huge_cache.h"
#include "harden.h"
#include "lock.h"
#include "meta.h"
#include "os.h"
#include "pagemap.h"
#include "pages.h"
#include "probes.h"
#include "reclaim_policy.h"
#include "selfmap_export.h"
#include "size_class.h"
#include "wakeup.h"

#include <string.h>

static LIST_HEAD(culet_huge_list, culet_large) huge_blocks; /* [pages lock] */
static struct culet_large_stats stats;                      /* [pages lock] */
static size_t unmapped;           /* [pages lock] bytes of huge blocks that were freed and not cached */
static struct culet_large *spare; /* [pages lock] unused descriptors, linked by `link` */

CULET_SELFMAP_EXPORT(huge_blocks, culet_selfmap_huge);

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) & ~(unit - 1);
}

static size_t pages_of(size_t bytes)
{
    return bytes >> CULET_PAGE_SHIFT;
}

static void describe(struct culet_large *block, enum culet_kind kind, uintptr_t start, size_t bytes)
{
    block->span.start = start;
    block->bytes = bytes;
    block->ending = false;
    block->guard = 0;
    block->usable = 0;
    block->sample = 0;
    atomic_store_explicit(&block->span.kind, kind, memory_order_relaxed);
    atomic_store_explicit(&block->span.klass, 0, memory_order_relaxed);
}

/* ---- large blocks ---- */

/* A descriptor for a block; NULL when out of memory. [pages lock] */
static struct culet_large *take_descriptor(void)
{
    struct culet_large *block = spare;

    if (CULET_LIKELY(block != NULL)) {
        spare = LIST_NEXT(block, link);
        return block;
    }
    block = culet_meta_get(CULET_META_LARGE);
    if (block)
        return block;
    culet_pages_release_spare();
    return culet_meta_get(CULET_META_LARGE);
}

/* [pages lock] */
static void put_descriptor(struct culet_large *block)
{
    LIST_NEXT(block, link) = spare;
    spare = block;
}

static void *get_large(size_t bytes, size_t alignment, bool *zeroed)
{
    uintptr_t start = 0;

    bytes = round_up(bytes, CULET_PAGE);
    culet_lock(&culet_pages_lock);
    struct culet_large *block = take_descriptor();
    if (block && (start = culet_pages_get(pages_of(bytes), alignment, &block->span.segment, zeroed))) {
        describe(block, CULET_LARGE, start, bytes);
        culet_pagemap_set_block(start, &block->span);
        stats.large++;
        stats.large_bytes += bytes;
    } else if (block) {
        put_descriptor(block);
    }
    culet_unlock(&culet_pages_lock);
    return (void *)start;
}

/* Only the first page gets a record (culet_large_freed). [pages lock] */
static void set_freed(uintptr_t start, size_t bytes)
{
    culet_pagemap_set_freed_huge(start, pages_of(bytes));
}

/* Slabs expect zeros where blocks are checked (checked.h). Rare: such a process has guarded blocks. */
static void zero_if_checked(uintptr_t start, size_t bytes)
{
    if (culet_harden_level >= CULET_HARDEN_CANARIES)
        memset((void *)start, 0, bytes);
}

/* [pages lock] */
static void put_large(struct culet_large *block)
{
    unsigned klass = culet_large_class(&block->span);

    if (CULET_UNLIKELY(klass))
        culet_pagemap_set_freed(block->span.start, pages_of(block->bytes), klass);
    else
        set_freed(block->span.start, block->bytes);
    stats.large--;
    stats.large_bytes -= block->bytes;
    put_descriptor(block);
    zero_if_checked(block->span.start, block->bytes);
    culet_pages_put(block->span.segment, block->span.start, pages_of(block->bytes), ~UINT64_C(0));
}

static bool resize_large(struct culet_large *block, size_t bytes)
{
    size_t old = block->bytes;

    bytes = round_up(bytes, CULET_PAGE);
    culet_lock(&culet_pages_lock);
    bool done = bytes <= old ||
                culet_pages_extend(block->span.segment, block->span.start, pages_of(old), pages_of(bytes - old));
    if (done) {
        stats.large_bytes += bytes - old;
        block->bytes = bytes;
    }
    if (bytes < old) {
        set_freed(block->span.start + bytes, old - bytes);
        zero_if_checked(block->span.start + bytes, old - bytes);
        culet_pages_put(block->span.segment, block->span.start + bytes, pages_of(old - bytes), ~UINT64_C(0));
    }
    culet_unlock(&culet_pages_lock);
    return done;
}

/* ---- huge blocks ---- */

static struct culet_extent extent_of(const struct culet_large *block)
{
    return (struct culet_extent){.start = block->span.start, .bytes = block->bytes, .mapping = block->mapping};
}

/* Caches an unused extent. False if no scavenger would return it later, or if blocks are checked: cached pages become
 * those of slabs, which expect zeros then. [pages lock] */
static bool cache_huge(struct culet_extent extent)
{
    if (!culet_wakeup_scavenger_runs() || culet_harden_level >= CULET_HARDEN_CANARIES)
        return false;
    culet_huge_cache_put(extent);
    culet_wakeup_notify();
    return true;
}

static void set_huge_bytes(size_t bytes)
{
    stats.huge_bytes = bytes;
    culet_huge_cache_set_live(bytes);
}

static void enlist(struct culet_large *block)
{
    LIST_INSERT_HEAD(&huge_blocks, block, link);
    stats.huge++;
    set_huge_bytes(stats.huge_bytes + block->bytes);
}

static void unlist(struct culet_large *block)
{
    LIST_REMOVE(block, link);
    stats.huge--;
    set_huge_bytes(stats.huge_bytes - block->bytes);
}

/* A mapping with an unmapped page behind it: an overflow does not reach other memory. */
static uintptr_t map_apart(size_t bytes, size_t alignment)
{
    size_t page = culet_os_page_bytes();
    uintptr_t start = (uintptr_t)culet_os_map_aligned(bytes + page, alignment);

    if (start)
        culet_os_unmap((void *)(start + bytes), page);
    return start;
}

/* A mapping of `bytes` with an unmapped page behind it. If the kernel refuses it, spare memory is released, and it is
 * asked once more; 0 if it refuses again. */
static uintptr_t map(size_t bytes, size_t alignment)
{
    uintptr_t start = map_apart(bytes, alignment);
    if (start)
        return start;

    culet_lock(&culet_pages_lock);
    culet_pages_release_spare();
    culet_unlock(&culet_pages_lock);
    return map_apart(bytes, alignment);
}

/* Makes an extent a block; false if there is no memory for its pagemap entry. [pages lock] */
static bool begin_huge(struct culet_large *block, struct culet_extent extent)
{
    if (!culet_pages_prepare(extent.start))
        return false;
    describe(block, CULET_HUGE, extent.start, extent.bytes);
    block->mapping = extent.mapping;
    culet_pagemap_set_block(extent.start, &block->span);
    enlist(block);
    return true;
}

/* Moves an extent's pages to a larger mapping with a pagemap entry. [pages lock] */
static bool move_extent(struct culet_extent *extent, size_t bytes)
{
    void *target = (void *)map_apart(bytes, CULET_PAGE);

    if (!target) {
        culet_pages_release_spare();
        target = (void *)map_apart(bytes, CULET_PAGE);
    }
    if (!target)
        return false;
    if (!culet_pages_prepare((uintptr_t)target) ||
        !culet_os_move((void *)extent->start, extent->bytes, target, bytes)) {
        culet_os_unmap(target, bytes);
        return false;
    }
    extent->start = (uintptr_t)target;
    extent->bytes = bytes;
    extent->mapping = culet_huge_cache_new_mapping();
    return true;
}

/* Takes the largest extent of the cache and extends it. As many cached pages must go back as new ones come, when the
 * lock is released: adds them to `excess`. [pages lock] */
static bool extend_largest(size_t bytes, struct culet_extent *taken, size_t *excess)
{
    if (!culet_huge_cache_take_largest(taken))
        return false;
    size_t old = taken->bytes;
    *excess = bytes - old;
    if (move_extent(taken, bytes))
        return true;
    culet_os_unmap((void *)taken->start, old);
    return false;
}

static struct culet_large *get_huge_cached(size_t bytes)
{
    struct culet_extent extent;
    size_t excess = 0;

    culet_lock(&culet_pages_lock);
    struct culet_large *block = culet_huge_cache_bytes() ? take_descriptor() : NULL;
    bool found = block && (culet_huge_cache_take(bytes, &extent) || extend_largest(bytes, &extent, &excess));
    bool begun = found && begin_huge(block, extent);
    if (found && !begun)
        culet_os_unmap((void *)extent.start, extent.bytes);
    if (block && !begun)
        put_descriptor(block);
    culet_unlock(&culet_pages_lock);
    if (excess)
        culet_pages_purge_huge_cache(excess);
    return begun ? block : NULL;
}

/* Makes a new mapping a block, with so many guard pages on either side; NULL if there is no memory for its descriptor or
 * pagemap entry. */
static struct culet_large *begin_mapped(uintptr_t start, size_t bytes, uint32_t guard)
{
    culet_lock(&culet_pages_lock);
    struct culet_extent extent = {.start = start, .bytes = bytes, .mapping = culet_huge_cache_new_mapping()};
    struct culet_large *block = take_descriptor();
    bool begun = block && begin_huge(block, extent);
    if (begun)
        block->guard = guard;
    else if (block)
        put_descriptor(block);
    culet_unlock(&culet_pages_lock);
    return begun ? block : NULL;
}

static struct culet_large *get_huge_new(size_t bytes, size_t alignment)
{
    uintptr_t start = map(bytes, alignment);
    struct culet_large *block = start ? begin_mapped(start, bytes, 0) : NULL;

    if (start && !block)
        culet_os_unmap((void *)start, bytes);
    return block;
}

static void *get_huge(size_t bytes, size_t alignment, bool *zeroed)
{
    size_t page = culet_os_page_bytes();

    bytes = round_up(bytes, page);
    struct culet_large *block = alignment <= page ? get_huge_cached(bytes) : NULL;
    *zeroed = !block;
    if (!block)
        block = get_huge_new(bytes, alignment);
    return block ? (void *)block->span.start : NULL;
}

/* [pages lock: no thread may get the old address before the pagemap has cleared it] */
static bool move_huge(struct culet_large *block, size_t bytes)
{
    struct culet_extent extent = extent_of(block);

    if (!move_extent(&extent, bytes))
        return false;
    set_freed(block->span.start, block->bytes);
    culet_pagemap_set_block(extent.start, &block->span);
    block->span.start = extent.start;
    block->mapping = extent.mapping;
    return true;
}

/* [pages lock] `excess`: as in extend_largest. */
static bool grow_huge(struct culet_large *block, size_t bytes, size_t *excess)
{
    struct culet_extent extent = extent_of(block);
    size_t more = bytes - block->bytes;

    if (culet_huge_cache_extend(&extent, more))
        return true;
    if (block->bytes / CULET_HUGE_COPY_RATIO <= more && culet_huge_cache_has(bytes))
        return false;
    *excess = more;
    return culet_os_resize((void *)extent.start, extent.bytes, bytes) || move_huge(block, bytes);
}

/* [pages lock] */
static bool shrink_huge(struct culet_large *block, size_t bytes)
{
    struct culet_extent rest = {
        .start = block->span.start + bytes, .bytes = block->bytes - bytes, .mapping = block->mapping};

    return cache_huge(rest) || culet_os_resize((void *)block->span.start, block->bytes, bytes);
}

static bool resize_huge(struct culet_large *block, size_t bytes)
{
    size_t excess = 0;

    bytes = round_up(bytes, culet_os_page_bytes());
    culet_lock(&culet_pages_lock);
    bool done =
        bytes == block->bytes || (bytes > block->bytes ? grow_huge(block, bytes, &excess) : shrink_huge(block, bytes));
    if (done) {
        set_huge_bytes(stats.huge_bytes + bytes - block->bytes);
        block->bytes = bytes;
    }
    if (!excess)
        excess = culet_huge_cache_excess();
    culet_unlock(&culet_pages_lock);
    if (excess)
        culet_pages_purge_huge_cache(excess);
    return done;
}

/* ---- guarded blocks of a hardened process ----
 *
 * A mapping between inaccessible pages, whose number is random, so that the distance of two blocks is. A freed one stays
 * inaccessible until as many others have been freed. The kernel counts such blocks as two or three mappings; when it
 * refuses them, blocks are no longer guarded. */

#define GUARD_MOST 16 /* kernel pages on either side */
#define RETIRED 64    /* ranges that stay inaccessible; longer ones are unmapped at once: */
#define RETIRED_BYTES_MAX ((size_t)256 << 20)

static struct range {
    uintptr_t start;
    size_t bytes;
} retired[RETIRED];           /* [pages lock] */
static unsigned retired_next; /* [pages lock] */

static bool release_retired(void)
{
    bool any = false;

    for (unsigned i = 0; i < RETIRED; i++) {
        culet_lock(&culet_pages_lock);
        struct range range = retired[i];
        retired[i].bytes = 0;
        culet_unlock(&culet_pages_lock);
        if (range.bytes)
            any = culet_os_unmap((void *)range.start, range.bytes);
    }
    return any;
}

static uintptr_t map_guarded(size_t bytes, size_t alignment, size_t guard)
{
    size_t page = culet_os_page_bytes(), all;

    if (alignment < page)
        alignment = page;
    if (__builtin_add_overflow(bytes, 2 * guard + alignment - page, &all))
        return 0;
    uintptr_t base = (uintptr_t)culet_os_reserve(all);
    if (!base)
        return 0;
    uintptr_t start = round_up(base + guard, alignment);
    if (!culet_os_open((void *)start, bytes)) {
        culet_os_unmap((void *)base, all);
        return 0;
    }
    size_t before = start - guard - base, behind = base + all - (start + bytes + guard);
    if (before)
        culet_os_unmap((void *)base, before);
    if (behind)
        culet_os_unmap((void *)(start + bytes + guard), behind);
    return start;
}

static void *get_guarded(size_t bytes, size_t alignment)
{
    size_t page = culet_os_page_bytes();
    uint32_t guard = 1 + culet_harden_random_below(GUARD_MOST);

    bytes = round_up(bytes, page);
    uintptr_t start = map_guarded(bytes, alignment, guard * page);
    if (!start && release_retired())
        start = map_guarded(bytes, alignment, guard * page);
    if (!start || begin_mapped(start, bytes, guard))
        return (void *)start;
    culet_os_unmap((void *)(start - guard * page), bytes + 2 * guard * page);
    return NULL;
}

/* The block ends; its range with both guards. [pages lock] */
static struct range end_guarded(struct culet_large *block)
{
    size_t guard = block->guard * culet_os_page_bytes();
    struct range range = {.start = block->span.start - guard, .bytes = block->bytes + 2 * guard};

    set_freed(block->span.start, block->bytes);
    unlist(block);
    put_descriptor(block);
    return range;
}

static void retire(struct range range)
{
    struct range oldest = range;

    if (range.bytes <= RETIRED_BYTES_MAX && culet_os_close((void *)range.start, range.bytes)) {
        culet_lock(&culet_pages_lock);
        oldest = retired[retired_next];
        retired[retired_next] = range;
        retired_next = (retired_next + 1) % RETIRED;
        culet_unlock(&culet_pages_lock);
    }
    if (oldest.bytes)
        culet_os_unmap((void *)oldest.start, oldest.bytes);
}

/* ---- all kinds ---- */

void *culet_large_get(size_t bytes, size_t alignment, bool *zeroed)
{
    *zeroed = true;
    if (CULET_UNLIKELY(culet_harden_level)) {
        void *block = get_guarded(bytes, alignment);
        if (block)
            return block;
    }
    if (bytes <= CULET_LARGE_MAX && alignment <= CULET_LARGE_MAX)
        return get_large(bytes, alignment > CULET_PAGE ? alignment : CULET_PAGE, zeroed);
    return get_huge(bytes, alignment, zeroed);
}

void culet_large_set_sample(void *start, size_t usable, uint32_t sample)
{
    struct culet_large *block = (struct culet_large *)culet_pagemap_span((uintptr_t)start);

    block->usable = (uint16_t)usable;
    block->sample = sample;
}

/* [forking thread] */
static struct {
    unsigned count;
    uint32_t sample[64]; /* further ones stay live */
} forked;

void culet_large_remove_sample(uint32_t sample)
{
    if (sample == CULET_SAMPLE_TRACED)
        return;
    if (!culet_lock_forking())
        culet_profile_api.remove(sample);
    else if (forked.count < sizeof forked.sample / sizeof *forked.sample)
        forked.sample[forked.count++] = sample;
}

void culet_large_remove_forked_samples(void)
{
    while (forked.count)
        culet_profile_api.remove(forked.sample[--forked.count]);
}

unsigned culet_large_class(const struct culet_span *span)
{
    size_t usable = ((const struct culet_large *)span)->usable;

    return usable ? culet_size_class(usable) : 0;
}

/* [pages lock] */
static void unmap_huge(struct culet_large *block)
{
    unlist(block);
    culet_os_unmap((void *)block->span.start, block->bytes);
}

/* Frees a huge block; false if end_huge has still to unmap it. [pages lock] */
static bool put_huge(struct culet_large *block)
{
    set_freed(block->span.start, block->bytes);
    if (cache_huge(extent_of(block))) {
        unlist(block);
        put_descriptor(block);
        return true;
    }
    block->ending = culet_pages_returning = true;
    unmapped += block->bytes;
    if (unmapped > CULET_SCAVENGER_HUGE_FREED_BYTES)
        culet_wakeup_request_scavenger();
    return false;
}

/* Purging many pages takes long; the lock is held only to unmap the empty mapping. */
static void end_huge(struct culet_large *block)
{
    culet_os_purge(block->span.start, block->bytes);
    culet_lock(&culet_pages_lock);
    unmap_huge(block);
    put_descriptor(block);
    culet_pages_returning = false;
    culet_unlock(&culet_pages_lock);
}

bool culet_large_put(struct culet_span *span, uintptr_t start)
{
    struct culet_large *block = (struct culet_large *)span;
    struct range guarded = {.bytes = 0};
    size_t excess = 0;
    uint32_t sample = 0;
    bool valid, done = true;

    culet_lock(&culet_pages_lock);
    valid = culet_pagemap_span(start) == span && span->start == start;
    if (valid) {
        sample = block->sample;
        /* Before another thread can get a block at this address. */
        if (CULET_UNLIKELY(sample) && culet_probes_free_traced())
            culet_probes_free((void *)start);
        if (CULET_UNLIKELY(span->kind == CULET_HUGE && block->guard))
            guarded = end_guarded(block);
        else if (span->kind == CULET_HUGE) {
            done = put_huge(block);
            excess = culet_huge_cache_excess();
        } else
            put_large(block);
    }
    culet_unlock(&culet_pages_lock);
    if (CULET_UNLIKELY(sample))
        culet_large_remove_sample(sample);
    if (CULET_UNLIKELY(excess != 0))
        culet_pages_purge_huge_cache(excess);
    if (!done)
        end_huge(block);
    if (CULET_UNLIKELY(guarded.bytes != 0))
        retire(guarded);
    return valid;
}

void culet_large_finish_frees(void)
{
    culet_pages_reset_after_fork();
    unmapped = 0;
    for (struct culet_large *block = LIST_FIRST(&huge_blocks), *next; block; block = next) {
        next = LIST_NEXT(block, link);
        if (block->ending) {
            unmap_huge(block);
            put_descriptor(block);
        }
    }
}

void *culet_large_resize(struct culet_span *span, size_t bytes)
{
    struct culet_large *block = (struct culet_large *)span;
    bool huge = span->kind == CULET_HUGE;

    /* As in a slab. */
    if (CULET_UNLIKELY(block->usable))
        return culet_size_stays(bytes, block->usable) ? (void *)span->start : NULL;
    /* A guarded block stays in place while at least three quarters of it are used. */
    if (CULET_UNLIKELY(huge && block->guard))
        return bytes <= block->bytes && block->bytes - bytes <= block->bytes / 4 ? (void *)span->start : NULL;
    /* A block that changes its kind is copied. */
    if (huge ? bytes <= CULET_LARGE_MAX : bytes <= CULET_SMALL_MAX || bytes > CULET_LARGE_MAX)
        return NULL;
    if (!(huge ? resize_huge(block, bytes) : resize_large(block, bytes)))
        return NULL;
    return (void *)span->start;
}

static bool contains(const struct culet_large *block, uintptr_t address)
{
    return address >= block->span.start && address - block->span.start < block->bytes;
}

/* The large block that contains an address: the nearest span before it. [pages lock] */
static struct culet_large *large_containing(uintptr_t address)
{
    for (size_t back = 0; back < CULET_LARGE_MAX && back <= address; back += CULET_PAGE) {
        struct culet_span *span = culet_pagemap_span(address - back);
        struct culet_large *block = (struct culet_large *)span;
        if (span)
            return span->kind == CULET_LARGE && contains(block, address) ? block : NULL;
    }
    return NULL;
}

struct culet_large *culet_large_containing(uintptr_t address)
{
    culet_lock(&culet_pages_lock);
    struct culet_large *block;
    LIST_FOREACH(block, &huge_blocks, link)
    if (!block->ending && contains(block, address))
        break;
    if (!block)
        block = large_containing(address);
    culet_unlock(&culet_pages_lock);
    return block;
}

/* A newer block inside of a freed one has taken its first page, and the record there, because the lowest fitting range is
 * taken: so the nearest record that covers the address is the newest. */
struct culet_freed culet_large_freed(uintptr_t address)
{
    for (size_t back = 0; back < CULET_LARGE_MAX && back <= address; back += CULET_PAGE) {
        struct culet_freed freed = culet_pagemap_freed(address - back);
        if (culet_pagemap_span(address - back))
            break;
        if (freed.present && !freed.klass && address - freed.start < freed.pages * CULET_PAGE)
            return freed;
    }
    return culet_pagemap_freed(address);
}

struct culet_large_stats culet_large_stats(void)
{
    culet_lock(&culet_pages_lock);
    struct culet_large_stats copy = stats;
    culet_unlock(&culet_pages_lock);
    return copy;
}

#define RESIDENT_BLOCKS 256

size_t culet_large_resident(const struct culet_residency *source)
{
    struct {
        uintptr_t start;
        size_t bytes;
    } block[RESIDENT_BLOCKS];
    size_t count = 0, resident = 0;
    struct culet_large *each;

    /* A block that is freed meanwhile has no resident pages. */
    culet_lock(&culet_pages_lock);
    LIST_FOREACH(each, &huge_blocks, link)
    {
        if (count < RESIDENT_BLOCKS) {
            block[count].start = each->span.start;
            block[count++].bytes = each->bytes;
        } else {
            resident += each->bytes;
        }
    }
    culet_unlock(&culet_pages_lock);
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = block[i].bytes;
        culet_residency_count(source, (void *)block[i].start, bytes, &bytes);
        resident += bytes;
    }
    return resident;
}
