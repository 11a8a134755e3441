#include "slab.h"

#include "lock.h"
#include "meta.h"
#include "os.h"
#include "pagemap.h"
#include "pages.h"
#include "size_class.h"

struct culet_slab *culet_slab_create(unsigned klass)
{
    const struct culet_class *c = &culet_classes[klass];
    struct culet_slab *slab = culet_pages_descriptor(CULET_META_SLAB);
    bool zeroed;

    if (!slab)
        return NULL;
    culet_lock(&culet_pages_lock);
    uintptr_t start = culet_pages_get(c->pages, CULET_PAGE, &slab->segment, &zeroed);
    if (start) {
        slab->span.start = start;
        atomic_store_explicit(&slab->span.kind, CULET_SLAB, memory_order_relaxed);
        atomic_store_explicit(&slab->span.klass, (uint8_t)klass, memory_order_relaxed);
        slab->available = slab->empty = (uint16_t)((2u << c->last) - 1);
        slab->claims = 0;
        /* Pages that the page heap kept resident may be resident in the slab. */
        slab->dirty = zeroed ? 0 : (uint16_t)((2u << (c->pages - 1)) - 1);
        slab->listed = false;
        for (unsigned u = 0; u < CULET_UNITS; u++) {
            atomic_store_explicit(&slab->unit[u].live, 0, memory_order_relaxed);
            atomic_store_explicit(&slab->unit[u].claimed, 0, memory_order_relaxed);
        }
        culet_pagemap_set(start, c->pages, &slab->span, klass);
    }
    culet_unlock(&culet_pages_lock);
    if (!start) {
        culet_meta_put(CULET_META_SLAB, slab);
        return NULL;
    }
    return slab;
}

void culet_slab_destroy(struct culet_slab *slab)
{
    unsigned klass = atomic_load_explicit(&slab->span.klass, memory_order_relaxed);
    size_t pages = culet_classes[klass].pages;

    culet_lock(&culet_pages_lock);
    culet_pagemap_set_freed(slab->span.start, pages, klass);
    culet_pages_put(slab->segment, slab->span.start, pages, slab->dirty);
    culet_unlock(&culet_pages_lock);
    /* So that a late culet_bin_unit_changed does not take the descriptor for a slab of its class. */
    atomic_store_explicit(&slab->span.klass, 0, memory_order_relaxed);
    culet_meta_put(CULET_META_SLAB, slab);
}

/* Whether the blocks from index `from` to `to` are all free. */
static bool blocks_free(struct culet_slab *slab, unsigned from, unsigned to)
{
    unsigned shift = culet_slab_class(slab)->unit_shift;

    for (unsigned i = from; i <= to;) {
        unsigned unit = i >> shift, bit = i & ((1u << shift) - 1);
        unsigned end = (unit + 1) << shift;
        unsigned count = (to + 1 < end ? to + 1 : end) - i;
        uint64_t mask = (count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1) << bit;
        if (atomic_load_explicit(&slab->unit[unit].live, CULET_ORDER_READ_LIVE) & mask)
            return false;
        i += count;
    }
    return true;
}

static bool pages_free(struct culet_slab *slab, size_t first, size_t last)
{
    const struct culet_class *c = culet_slab_class(slab);
    unsigned from = (unsigned)((first << CULET_PAGE_SHIFT) / c->size);
    unsigned to = (unsigned)((((last + 1) << CULET_PAGE_SHIFT) - 1) / c->size);

    if (to >= c->count)
        to = c->count - 1u;
    return from > to || blocks_free(slab, from, to);
}

size_t culet_slab_purge(struct culet_slab *slab)
{
    size_t pages = culet_slab_class(slab)->pages, kernel_page = culet_os_page_bytes(), returned = 0;
    size_t step = kernel_page >> CULET_PAGE_SHIFT;
    /* A kernel page of 16 or 64 KiB may begin before the slab. */
    size_t first = ((kernel_page - slab->span.start % kernel_page) % kernel_page) >> CULET_PAGE_SHIFT;

    for (size_t i = first; i + step <= pages;) {
        size_t end = i;
        while (end + step <= pages && slab->dirty >> end & ((1u << step) - 1) && pages_free(slab, end, end + step - 1))
            end += step;
        if (end > i) {
            size_t bytes = culet_os_purge(slab->span.start + i * CULET_PAGE, (end - i) * CULET_PAGE);
            returned += bytes;
            if (bytes)
                slab->dirty &= (uint16_t) ~((1u << end) - (1u << i));
        }
        i = end + step;
    }
    return returned;
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
