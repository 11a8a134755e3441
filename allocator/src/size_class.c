#include "size_class.h"

struct culet_class culet_classes[CULET_CLASSES];

static uint32_t class_size(unsigned klass)
{
    if (klass <= CULET_TINY_CLASSES)
        return klass * CULET_ALIGNMENT;

    unsigned step = klass - CULET_TINY_CLASSES - 1;
    uint32_t base = CULET_TINY_MAX << (step / CULET_DOUBLING_CLASSES), eighths = step % CULET_DOUBLING_CLASSES;
    return eighths ? base + base / 8 * eighths : base + base / 32;
}

/* A unit has the largest power of two of blocks that fits a page, 64 at most. */
static uint8_t unit_shift(uint32_t size)
{
    uint8_t shift = 0;

    while (shift < 6 && ((size_t)size << (shift + 1)) <= CULET_PAGE)
        shift++;
    return shift;
}

/* The slab length with the smallest waste at its end, between half and all of what CULET_UNITS units fill. */
static uint8_t best_granules(uint32_t size, uint8_t shift)
{
    size_t most = ((size_t)CULET_UNITS << shift) * size >> CULET_PAGE_SHIFT;
    size_t best = 0, best_waste = CULET_PAGE;

    if (most > CULET_SLAB_PAGES)
        most = CULET_SLAB_PAGES;
    for (size_t n = most; n >= (most + 1) / 2 && n * CULET_PAGE >= size; n--) {
        size_t waste = (n * CULET_PAGE % size) * 1024 / n / CULET_PAGE;
        if (!best || waste < best_waste)
            best = n, best_waste = waste;
    }
    return (uint8_t)best;
}

static uint64_t mask_of(unsigned blocks)
{
    return blocks >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << blocks) - 1;
}

void culet_size_class_setup(void)
{
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        struct culet_class *c = &culet_classes[klass];
        c->size = class_size(culet_size_class_plain(klass));
        c->reciprocal = (uint32_t)((UINT64_C(1) << 32) / c->size + 1);
        c->unit_shift = unit_shift(c->size);
        c->unit_mask = (uint8_t)((1u << c->unit_shift) - 1);
        c->pages = best_granules(c->size, c->unit_shift);

        unsigned fits = (unsigned)(c->pages * CULET_PAGE / c->size), most = CULET_UNITS << c->unit_shift;
        c->count = (uint16_t)(fits < most ? fits : most);
        c->last = (uint8_t)((c->count - 1u) >> c->unit_shift);
        c->full = mask_of(1u << c->unit_shift);
        c->last_full = mask_of(c->count - ((unsigned)c->last << c->unit_shift));
    }
}

unsigned culet_size_class_aligned(size_t bytes, size_t alignment)
{
    if (bytes > CULET_SMALL_MAX || alignment > CULET_PAGE)
        return 0;
    for (unsigned klass = culet_size_class(bytes ? bytes : 1); klass <= CULET_SIZES; klass++)
        if (culet_classes[klass].size % alignment == 0)
            return klass;
    return 0;
}
