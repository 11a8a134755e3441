#include "size_class.h"

struct culet_class culet_classes[CULET_CLASSES];
_Atomic uint8_t culet_classes_above_tiny[(CULET_SMALL_MAX - CULET_TINY_MAX) / CULET_CLASS_STEP];

#define EQUAL_SLABS_MAX (CULET_SMALL_MAX / 2) /* bytes per block */

static uint32_t class_size(unsigned klass)
{
    if (klass <= CULET_TINY_CLASSES)
        return klass * CULET_ALIGNMENT;

    unsigned step = klass - CULET_TINY_CLASSES - 1;
    uint32_t base = CULET_TINY_MAX << (step / CULET_DOUBLING_CLASSES), eighths = step % CULET_DOUBLING_CLASSES;
    return base + base / 8 * eighths + (eighths < 8 ? base / 32 : 0);
}

/* The slab length with the smallest waste at its end, between half and all of what CULET_UNITS units fill. Medium classes
 * have the same length, which wastes an eighth at most: between slabs of mixed lengths the page heap would keep dirty
 * rests that no slab fits in, while pages behind a slab's last block are not touched. */
static uint8_t best_pages(uint32_t size)
{
    size_t most = (size_t)CULET_UNITS * CULET_UNIT * size >> CULET_PAGE_SHIFT;
    size_t limit = size <= CULET_TINY_MAX ? CULET_TINY_SLAB_PAGES : CULET_SLAB_PAGES;
    size_t best = 0, best_waste = CULET_PAGE;

    if (size > CULET_TINY_MAX && size <= EQUAL_SLABS_MAX)
        return CULET_SLAB_PAGES;
    if (most > limit)
        most = limit;
    for (size_t n = most; n >= (most + 1) / 2 && n * CULET_PAGE >= size; n--) {
        size_t waste = (n * CULET_PAGE % size) * 1024 / n / CULET_PAGE;
        if (!best || waste < best_waste)
            best = n, best_waste = waste;
    }
    return (uint8_t)best;
}

/* The cache lines that the first block of a slab may begin at, less one. Where 128 divides the size, blocks begin at every
 * second line of memory at most, and their first lines, which programs use most, share half of the caches or less. Slabs
 * that begin a line later use the rest. Not in calloc's set, which also serves requests for blocks that are aligned to
 * more than a line. */
static uint8_t colours(unsigned klass, uint32_t size)
{
    uint32_t step = size & -size;

    return size <= CULET_TINY_MAX && klass == culet_size_class_plain(klass) && step > CULET_CACHE_LINE
               ? (uint8_t)(step / CULET_CACHE_LINE - 1)
               : 0;
}

void culet_size_class_setup(void)
{
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        struct culet_class *c = &culet_classes[klass];
        c->size = class_size(culet_size_class_plain(klass));
        c->reciprocal = UINT64_MAX / c->size + 1;
        c->pages = best_pages(c->size);
        c->colours = colours(klass, c->size);

        size_t room = c->pages * CULET_PAGE - c->colours * CULET_CACHE_LINE;
        unsigned fits = (unsigned)(room / c->size), most = CULET_UNITS * CULET_UNIT;
        c->count = (uint16_t)(fits < most ? fits : most);
    }
    for (size_t i = 0; i < sizeof culet_classes_above_tiny; i++)
        culet_classes_above_tiny[i] = (uint8_t)culet_size_class(CULET_TINY_MAX + (i + 1) * CULET_CLASS_STEP);
}

unsigned culet_size_class_aligned(size_t bytes, size_t alignment)
{
    if (bytes > CULET_SMALL_MAX || alignment > CULET_PAGE)
        return 0;
    bytes += !bytes;
    size_t pages = (bytes + CULET_PAGE - 1) & ~(CULET_PAGE - 1);
    for (unsigned klass = culet_size_class(bytes); klass <= CULET_SIZES && culet_classes[klass].size <= pages; klass++)
        if (culet_classes[klass].size % alignment == 0)
            return klass + (alignment > CULET_CACHE_LINE ? CULET_SIZES : 0);
    return 0;
}
