#include "large.h"

#include "lock.h"
#include "meta.h"
#include "os.h"
#include "pagemap.h"
#include "pages.h"

static struct culet_large *huge_blocks;    /* [pages lock] */
static struct culet_large_figures figures; /* [pages lock] */

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) & ~(unit - 1);
}

static size_t granules(size_t bytes)
{
    return bytes >> CULET_GRANULE_SHIFT;
}

static void describe(struct culet_large *block, enum culet_kind kind, uintptr_t start, size_t bytes)
{
    block->owner.start = start;
    block->bytes = bytes;
    block->ending = false;
    atomic_store_explicit(&block->owner.kind, kind, memory_order_relaxed);
    atomic_store_explicit(&block->owner.klass, 0, memory_order_relaxed);
}

/* ---- runs ---- */

static bool get_run(struct culet_large *block, size_t bytes, size_t alignment, bool *zeroed)
{
    bytes = round_up(bytes, CULET_GRANULE);
    culet_lock(&culet_pages_lock);
    uintptr_t start = culet_pages_get(granules(bytes), alignment, &block->segment, zeroed);
    if (start) {
        describe(block, CULET_RUN, start, bytes);
        culet_pagemap_set(start, granules(bytes), &block->owner, 0);
        figures.runs++;
        figures.run_bytes += bytes;
    }
    culet_unlock(&culet_pages_lock);
    return start != 0;
}

/* [pages lock] */
static void put_run(struct culet_large *run)
{
    culet_pagemap_bury(run->owner.start, granules(run->bytes), 0);
    figures.runs--;
    figures.run_bytes -= run->bytes;
    culet_pages_put(run->segment, run->owner.start, granules(run->bytes), ~UINT64_C(0));
}

static bool resize_run(struct culet_large *run, size_t bytes)
{
    size_t old = run->bytes;
    bool done = true;

    bytes = round_up(bytes, CULET_GRANULE);
    culet_lock(&culet_pages_lock);
    if (bytes < old) {
        culet_pagemap_bury(run->owner.start + bytes, granules(old - bytes), 0);
        culet_pages_put(run->segment, run->owner.start + bytes, granules(old - bytes), ~UINT64_C(0));
    } else if (bytes > old) {
        done = culet_pages_extend(run->segment, run->owner.start, granules(old), granules(bytes - old));
        if (done)
            culet_pagemap_set(run->owner.start + old, granules(bytes - old), &run->owner, 0);
    }
    if (done) {
        figures.run_bytes += bytes - old;
        run->bytes = bytes;
    }
    culet_unlock(&culet_pages_lock);
    return done;
}

/* ---- huge blocks: only the first granule is in the pagemap ---- */

static void enlist(struct culet_large *block)
{
    block->prev = NULL;
    block->next = huge_blocks;
    if (huge_blocks)
        huge_blocks->prev = block;
    huge_blocks = block;
    figures.huge++;
    figures.huge_bytes += block->bytes;
}

static void unlist(struct culet_large *block)
{
    if (block->prev)
        block->prev->next = block->next;
    else
        huge_blocks = block->next;
    if (block->next)
        block->next->prev = block->prev;
    figures.huge--;
    figures.huge_bytes -= block->bytes;
}

/* A mapping; where the kernel refuses it the segments that are only kept are given up first. */
static uintptr_t map(size_t bytes, size_t alignment)
{
    uintptr_t start = (uintptr_t)culet_os_map_aligned(bytes, alignment);
    if (start)
        return start;

    culet_lock(&culet_pages_lock);
    bool released = culet_pages_release();
    culet_unlock(&culet_pages_lock);
    return released ? (uintptr_t)culet_os_map_aligned(bytes, alignment) : 0;
}

static bool get_huge(struct culet_large *block, size_t bytes, size_t alignment)
{
    bytes = round_up(bytes, culet_os_page());
    uintptr_t start = map(bytes, alignment);
    if (!start)
        return false;

    culet_lock(&culet_pages_lock);
    bool prepared = culet_pagemap_prepare(start, 1);
    if (prepared) {
        describe(block, CULET_HUGE, start, bytes);
        culet_pagemap_set(start, 1, &block->owner, 0);
        enlist(block);
    }
    culet_unlock(&culet_pages_lock);
    if (!prepared)
        culet_os_unmap((void *)start, bytes);
    return prepared;
}

/* Moves a huge block's pages to a larger mapping. [pages lock, so that the old address cannot be given to
 * anybody before the pagemap has forgotten it] */
static bool move_huge(struct culet_large *block, size_t bytes)
{
    void *target = culet_os_map(bytes);
    if (!target && culet_pages_release())
        target = culet_os_map(bytes);
    if (!target)
        return false;
    if (!culet_pagemap_prepare((uintptr_t)target, 1) ||
        !culet_os_move((void *)block->owner.start, block->bytes, target, bytes)) {
        culet_os_unmap(target, bytes);
        return false;
    }
    culet_pagemap_bury_huge(block->owner.start, granules(block->bytes));
    culet_pagemap_set((uintptr_t)target, 1, &block->owner, 0);
    block->owner.start = (uintptr_t)target;
    return true;
}

static bool resize_huge(struct culet_large *block, size_t bytes)
{
    bytes = round_up(bytes, culet_os_page());
    culet_lock(&culet_pages_lock);
    bool done = bytes == block->bytes || culet_os_resize((void *)block->owner.start, block->bytes, bytes) ||
                move_huge(block, bytes);
    if (done) {
        figures.huge_bytes += bytes - block->bytes;
        block->bytes = bytes;
    }
    culet_unlock(&culet_pages_lock);
    return done;
}

/* ---- both ---- */

void *culet_large_get(size_t bytes, size_t alignment, bool *zeroed)
{
    struct culet_large *block = culet_meta_get(CULET_META_LARGE);

    if (!block)
        return NULL;
    bool run = bytes <= CULET_RUN_MAX && alignment <= CULET_RUN_MAX;
    *zeroed = true;
    if (run ? get_run(block, bytes, alignment > CULET_GRANULE ? alignment : CULET_GRANULE, zeroed)
            : get_huge(block, bytes, alignment))
        return (void *)block->owner.start;
    culet_meta_put(CULET_META_LARGE, block);
    return NULL;
}

/* [pages lock] */
static void unmap_huge(struct culet_large *block)
{
    unlist(block);
    culet_os_unmap((void *)block->owner.start, block->bytes);
}

bool culet_large_put(struct culet_owner *owner, uintptr_t start)
{
    struct culet_large *block = (struct culet_large *)owner;
    bool there, huge = false;

    culet_lock(&culet_pages_lock);
    there = culet_pagemap_owner(start) == owner && owner->start == start;
    if (there) {
        huge = owner->kind == CULET_HUGE;
        if (huge) {
            culet_pagemap_bury_huge(start, granules(block->bytes));
            block->ending = true;
        } else {
            put_run(block);
        }
    }
    culet_unlock(&culet_pages_lock);
    if (!there)
        return false;
    if (huge) {
        /* Giving back many pages takes long; the lock is held for the empty mapping only. */
        culet_os_purge(start, block->bytes);
        culet_lock(&culet_pages_lock);
        unmap_huge(block);
        culet_unlock(&culet_pages_lock);
    }
    culet_meta_put(CULET_META_LARGE, block);
    return true;
}

void culet_large_adopt(void)
{
    for (struct culet_large *block = huge_blocks, *next; block; block = next) {
        next = block->next;
        if (block->ending) {
            unmap_huge(block);
            culet_meta_put(CULET_META_LARGE, block);
        }
    }
}

void *culet_large_resize(struct culet_owner *owner, size_t bytes)
{
    struct culet_large *block = (struct culet_large *)owner;
    bool huge = owner->kind == CULET_HUGE;

    /* What has outgrown its kind, or shrunk out of it, is copied. */
    if (huge ? bytes <= CULET_RUN_MAX : bytes <= CULET_SMALL_MAX || bytes > CULET_RUN_MAX)
        return NULL;
    if (!(huge ? resize_huge(block, bytes) : resize_run(block, bytes)))
        return NULL;
    return (void *)owner->start;
}

struct culet_large *culet_large_holding(uintptr_t address)
{
    culet_lock(&culet_pages_lock);
    struct culet_large *block = huge_blocks;
    while (block && (block->ending || address < block->owner.start || address - block->owner.start >= block->bytes))
        block = block->next;
    culet_unlock(&culet_pages_lock);
    return block;
}

struct culet_large_figures culet_large_figures(void)
{
    culet_lock(&culet_pages_lock);
    struct culet_large_figures copy = figures;
    culet_unlock(&culet_pages_lock);
    return copy;
}
