#include "slab.h"

#include "harden.h"
#include "lock.h"
#include "meta.h"
#include "os.h"
#include "pagemap.h"
#include "pages.h"
#include "size_class.h"

static void set_up(struct culet_slab *slab, unsigned arena, unsigned klass, uintptr_t start, bool zeroed)
{
    const struct culet_class *c = &culet_classes[klass];

    slab->span.start = start + culet_class_colour(c, start);
    atomic_store_explicit(&slab->span.kind, CULET_SLAB, memory_order_relaxed);
    atomic_store_explicit(&slab->span.klass, (uint8_t)klass, memory_order_relaxed);
    atomic_store_explicit(&slab->span.arena, (uint8_t)arena, memory_order_relaxed);
    slab->reciprocal = c->reciprocal;
    slab->usable = c->size;
    slab->available = 0;
    slab->purging = false;
    atomic_store_explicit(&slab->remote_units, 0, memory_order_relaxed);
    /* Pages that the page heap kept resident may be resident in the slab. */
    slab->dirty = zeroed ? 0 : (uint32_t)((UINT64_C(2) << (c->pages - 1)) - 1);
    for (unsigned u = 0; u < CULET_UNITS; u++) {
        atomic_store_explicit(&slab->unit[u].free, culet_class_all(c, u), memory_order_relaxed);
        atomic_store_explicit(&slab->unit[u].remote, ~culet_class_all(c, u), memory_order_relaxed);
    }
}

/* Pages behind each slab that are made inaccessible. */
static size_t guard_pages(void)
{
    return culet_harden_level >= CULET_HARDEN_ALL && culet_os_page_bytes() == CULET_PAGE;
}

struct culet_slab *culet_slab_create(unsigned arena, unsigned klass)
{
    size_t pages = culet_classes[klass].pages, guard = guard_pages();
    struct culet_slab *slab = culet_pages_descriptor(CULET_META_SLAB);
    bool zeroed;

    if (!slab)
        return NULL;
    culet_lock(&culet_pages_lock);
    uintptr_t start = culet_pages_get(pages + guard, CULET_PAGE, &slab->span.segment, &zeroed);
    if (start) {
        set_up(slab, arena, klass, start, zeroed);
        culet_pagemap_set_slab(slab, pages);
    }
    culet_unlock(&culet_pages_lock);
    if (!start) {
        culet_meta_put(CULET_META_SLAB, slab);
        return NULL;
    }
    if (guard)
        culet_os_guard((void *)(start + pages * CULET_PAGE));
    return slab;
}

void culet_slab_destroy(struct culet_slab *slab)
{
    unsigned klass = atomic_load_explicit(&slab->span.klass, memory_order_relaxed);
    size_t pages = culet_classes[klass].pages, guard = guard_pages();

    /* A guard that stays inaccessible is lost. */
    if (guard && !culet_os_unguard((void *)(culet_slab_pages(slab) + pages * CULET_PAGE)))
        guard = 0;
    slab->reciprocal = 0;
    culet_lock(&culet_pages_lock);
    culet_pagemap_set_freed(culet_slab_pages(slab), pages, klass);
    culet_pages_put(slab->span.segment, culet_slab_pages(slab), pages + guard, slab->dirty | (uint64_t)guard << pages);
    culet_unlock(&culet_pages_lock);
    culet_meta_put(CULET_META_SLAB, slab);
}

bool culet_slab_is_free(const struct culet_slab *slab)
{
    const struct culet_class *c = culet_slab_class(slab);

    for (unsigned u = 0; u < culet_class_units(c); u++)
        if (atomic_load_explicit(&slab->unit[u].free, memory_order_relaxed) != culet_class_all(c, u))
            return false;
    return true;
}

/* The free bits of blocks `from` to `to` that lie in the unit of `from`, as a mask. Stores how many these are. */
static uint64_t unit_part(uint32_t from, uint32_t to, uint32_t *blocks)
{
    uint32_t left = CULET_UNIT - from % CULET_UNIT;

    *blocks = to + 1 - from < left ? to + 1 - from : left;
    return (*blocks == CULET_UNIT ? ~UINT64_C(0) : (UINT64_C(1) << *blocks) - 1) << from % CULET_UNIT;
}

/* The number of the block that has the byte at an offset in the slab. */
static uint32_t block_at(const struct culet_class *c, size_t offset)
{
    return (uint32_t)((unsigned __int128)offset * c->reciprocal >> 64);
}

/* The blocks that overlap the pages from `first` to `last`. False: the pages lie behind the last block. */
static bool blocks_of(const struct culet_slab *slab, unsigned first, unsigned last, uint32_t *from, uint32_t *to)
{
    const struct culet_class *c = culet_slab_class(slab);
    size_t colour = slab->span.start % CULET_PAGE;

    *from = first ? block_at(c, first * CULET_PAGE - colour) : 0;
    *to = block_at(c, (last + 1) * CULET_PAGE - 1 - colour);
    if (*to >= c->count)
        *to = c->count - 1u;
    return *from <= *to;
}

static bool pages_free(const struct culet_slab *slab, unsigned first, unsigned last)
{
    uint32_t from, to, blocks;

    if (!blocks_of(slab, first, last, &from, &to))
        return true;
    for (; from <= to; from += blocks) {
        uint64_t mask = unit_part(from, to, &blocks);
        if (~atomic_load_explicit(&slab->unit[culet_block_unit(from)].free, memory_order_relaxed) & mask)
            return false;
    }
    return true;
}

uint64_t culet_slab_free_pages(const struct culet_slab *slab)
{
    unsigned pages = culet_slab_class(slab)->pages;
    size_t kernel_page = culet_os_page_bytes();
    unsigned step = (unsigned)(kernel_page >> CULET_PAGE_SHIFT);
    /* A kernel page of 16 or 64 KiB may begin before the slab. */
    unsigned first = (unsigned)((kernel_page - culet_slab_pages(slab) % kernel_page) % kernel_page >> CULET_PAGE_SHIFT);
    uint64_t free = 0;

    for (unsigned i = first; i + step <= pages; i += step) {
        uint64_t mask = ((UINT64_C(2) << (step - 1)) - 1) << i;
        if (slab->dirty & mask && pages_free(slab, i, i + step - 1))
            free |= mask;
    }
    return free;
}

/* Sets or clears the free bits of the blocks that overlap the pages. */
static void write_pages(struct culet_slab *slab, uint64_t pages, bool free)
{
    while (pages) {
        unsigned first = (unsigned)__builtin_ctzll(pages), last = first;
        while (last < CULET_SLAB_PAGES - 1 && pages >> (last + 1) & 1)
            last++;
        pages &= ~((UINT64_C(2) << last) - (UINT64_C(1) << first));

        uint32_t from, to, blocks;
        if (!blocks_of(slab, first, last, &from, &to))
            continue;
        for (; from <= to; from += blocks) {
            uint64_t mask = unit_part(from, to, &blocks);
            _Atomic uint64_t *word = &slab->unit[culet_block_unit(from)].free;
            uint64_t before = atomic_load_explicit(word, memory_order_relaxed);
            atomic_store_explicit(word, free ? before | mask : before & ~mask, memory_order_relaxed);
        }
    }
}

void culet_slab_take_pages(struct culet_slab *slab, uint64_t pages)
{
    write_pages(slab, pages, false);
}

void culet_slab_give_pages(struct culet_slab *slab, uint64_t pages)
{
    write_pages(slab, pages, true);
}

uint64_t culet_slab_unit_pages(const struct culet_slab *slab, unsigned unit)
{
    const struct culet_class *c = culet_slab_class(slab);
    size_t unit_bytes = (size_t)CULET_UNIT * c->size, all = (size_t)c->count * c->size;
    size_t end = (unit + 1) * unit_bytes < all ? (unit + 1) * unit_bytes : all, colour = slab->span.start % CULET_PAGE;
    unsigned first = (unsigned)((unit * unit_bytes + colour) >> CULET_PAGE_SHIFT);
    unsigned last = (unsigned)((end - 1 + colour) >> CULET_PAGE_SHIFT);

    return (UINT64_C(2) << last) - (UINT64_C(1) << first);
}

void culet_slab_each(void (*visit)(struct culet_slab *slab, void *data), void *data)
{
    for (uint32_t i = 0; i < CULET_SEGMENTS; i++) {
        uintptr_t base = culet_pages_segment(i);
        if (base == CULET_PAGES_END)
            return;
        for (size_t g = 0; base && g < CULET_SEGMENT_PAGES;) {
            struct culet_span *span = culet_pagemap_span(base + g * CULET_PAGE);
            if (!span) {
                g++;
            } else if (span->kind == CULET_SLAB) {
                struct culet_slab *slab = (struct culet_slab *)span;
                g += culet_classes[span->klass].pages;
                visit(slab, data);
            } else {
                g += ((struct culet_large *)span)->bytes >> CULET_PAGE_SHIFT;
            }
        }
    }
}
