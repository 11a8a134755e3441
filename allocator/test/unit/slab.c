/* Slabs of every class: the index of every byte, the pages of every unit, purges that spare live blocks. */
#include "slab.h"
#include "check.h"
#include "heap_counts.h"
#include "lock.h"
#include "pagemap.h"
#include "pages.h"
#include "resident.h"
#include "size_class.h"

#include <sys/syscall.h>

static struct culet_slab *create(unsigned klass)
{
    struct culet_slab *slab = culet_slab_create(klass);

    CHECK(slab, "no memory");
    return slab;
}

static size_t slab_bytes(const struct culet_slab *slab)
{
    return culet_slab_class(slab)->pages * CULET_PAGE;
}

static uint16_t all_pages(const struct culet_slab *slab)
{
    return (uint16_t)((2u << (culet_slab_class(slab)->pages - 1)) - 1);
}

static size_t pages_used(void)
{
    culet_lock(&culet_pages_lock);
    size_t used = culet_pages_stats().used;
    culet_pages_check();
    culet_unlock(&culet_pages_lock);
    return used;
}

static bool is_live(struct culet_slab *slab, unsigned index)
{
    unsigned shift = culet_slab_class(slab)->unit_shift;

    return slab->unit[index >> shift].live >> (index & ((1u << shift) - 1)) & 1;
}

static void set_live(struct culet_slab *slab, unsigned index)
{
    unsigned shift = culet_slab_class(slab)->unit_shift;

    slab->unit[index >> shift].live |= UINT64_C(1) << (index & ((1u << shift) - 1));
}

static size_t live_blocks(struct culet_slab *slab)
{
    struct bin_counts counts[CULET_CLASSES] = {0};

    count_slab(slab, counts);
    return counts[slab->span.klass].live;
}

TEST(every_byte_has_its_block_index)
{
    culet_size_class_setup();
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        const struct culet_class *c = &culet_classes[klass];
        for (uint32_t offset = 0; offset < c->pages * CULET_PAGE; offset++) {
            struct culet_block_index index = culet_slab_index(c, offset);
            size_t block = offset / c->size;
            bool exact = offset % c->size == 0;
            CHECK(index.exact == exact, "size %u, offset %u", c->size, offset);
            CHECK(index.unit < CULET_UNITS, "size %u, offset %u: unit %u", c->size, offset, index.unit);
            if (block < c->count)
                CHECK(index.unit == block >> c->unit_shift && index.bit == UINT64_C(1)
                                                                               << (block & ((1u << c->unit_shift) - 1)),
                      "size %u, offset %u: unit %u, bit %lx", c->size, offset, index.unit, (unsigned long)index.bit);
        }
    }
}

TEST(the_pagemap_leads_to_the_slab_until_it_is_destroyed)
{
    culet_size_class_setup();
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        size_t before = pages_used();
        struct culet_slab *slab = create(klass);
        uintptr_t start = slab->span.start;
        size_t bytes = slab_bytes(slab);

        CHECK_EQUAL(pages_used() - before, culet_classes[klass].pages);
        for (size_t offset = 0; offset < bytes; offset += 16) {
            uintptr_t entry = culet_pagemap_entry(start + offset);
            CHECK(culet_entry_span(entry) == &slab->span, "class %u, offset %zu", klass, offset);
            CHECK_EQUAL(culet_entry_class(entry), klass);
            CHECK_EQUAL(culet_entry_offset(entry, start + offset), offset);
        }
        CHECK(culet_pagemap_span(start + bytes) != &slab->span, "class %u: the page behind", klass);
        culet_slab_destroy(slab);
        CHECK_EQUAL(pages_used(), before);
        for (size_t offset = 0; offset < bytes; offset += 16) {
            struct culet_freed freed = culet_pagemap_freed(start + offset);
            CHECK(freed.present && freed.klass == klass && freed.start == start, "no freed record at %zu", offset);
        }
        CHECK_EQUAL(slab->span.klass, 0);
    }
}

TEST(a_new_slab_is_wholly_free)
{
    culet_size_class_setup();
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        struct culet_slab *slab = create(klass);
        const struct culet_class *c = culet_slab_class(slab);
        unsigned blocks = 0;

        CHECK_EQUAL(live_blocks(slab), 0);
        for (unsigned u = 0; u <= c->last; u++)
            blocks += (unsigned)__builtin_popcountll(culet_class_full(c, u));
        CHECK_EQUAL(blocks, c->count);
        for (unsigned u = 0; u < CULET_UNITS; u++) {
            CHECK_EQUAL(slab->available >> u & 1, u <= c->last);
            CHECK_EQUAL(slab->empty >> u & 1, u <= c->last);
        }
        for (unsigned i = 0; i < c->count; i++) {
            struct culet_block_index index = culet_slab_index(c, i * c->size);
            CHECK(!culet_slab_is_live(slab, index), "block %u", i);
            set_live(slab, i);
            CHECK(culet_slab_is_live(slab, index), "block %u", i);
            CHECK_EQUAL(live_blocks(slab), i + 1);
            slab->unit[index.unit].claimed |= index.bit;
            CHECK(!culet_slab_is_live(slab, index), "a claimed block is not the program's");
            CHECK_EQUAL(live_blocks(slab), i);
            slab->unit[index.unit].claimed = 0;
        }
    }
}

TEST(units_touch_the_pages_of_their_blocks)
{
    culet_size_class_setup();
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        struct culet_slab *slab = create(klass);
        const struct culet_class *c = culet_slab_class(slab);
        uint16_t expected[CULET_UNITS] = {0};

        for (size_t i = 0; i < c->count; i++)
            for (size_t g = i * c->size / CULET_PAGE; g <= ((i + 1) * c->size - 1) / CULET_PAGE; g++)
                expected[i >> c->unit_shift] |= (uint16_t)(1u << g);
        for (unsigned u = 0; u <= c->last; u++)
            CHECK_EQUAL(culet_slab_unit_pages(culet_slab_class(slab), u), expected[u]);
        culet_slab_destroy(slab);
    }
}

static unsigned char pattern(unsigned klass, unsigned index)
{
    return (unsigned char)(klass * 31 + index * 7 + 1);
}

/* Fills the slab, keeps the blocks that `keep` selects, purges, checks every page and block. */
static void purge_with(unsigned klass, bool (*keep)(unsigned index, uint64_t *seed), uint64_t *seed)
{
    struct culet_slab *slab = create(klass);
    const struct culet_class *c = culet_slab_class(slab);
    uintptr_t start = slab->span.start;
    size_t bytes = slab_bytes(slab), page = culet_os_page_bytes(), expected = 0;
    uint16_t touched = 0;

    memset((void *)start, 0xee, bytes);
    slab->dirty = all_pages(slab);
    for (unsigned i = 0; i < c->count; i++)
        if (keep(i, seed)) {
            set_live(slab, i);
            memset((void *)(start + i * c->size), pattern(klass, i), c->size);
            for (size_t g = i * c->size / CULET_PAGE; g <= ((i + 1) * c->size - 1) / CULET_PAGE; g++)
                touched |= (uint16_t)(1u << g);
        }

    size_t returned = culet_slab_purge(slab);
    for (uintptr_t p = (start + page - 1) & ~(page - 1); p + page <= start + bytes; p += page) {
        size_t first = (p - start) / CULET_PAGE, count = page / CULET_PAGE;
        bool used = touched >> first & ((1u << count) - 1);
        expected += used ? 0 : page;
        CHECK_EQUAL(resident_bytes(p, page), used ? page : 0);
        if (!used)
            CHECK(*(volatile unsigned char *)p == 0, "a returned page is not zero");
    }
    CHECK_EQUAL(returned, expected);
    CHECK_EQUAL(culet_slab_purge(slab), 0);
    for (unsigned i = 0; i < c->count; i++)
        if (is_live(slab, i))
            for (size_t at = 0; at < c->size; at++)
                CHECK(((unsigned char *)start)[i * c->size + at] == pattern(klass, i),
                      "size %u: byte %zu of live block %u was changed", c->size, at, i);
    for (unsigned u = 0; u <= c->last; u++)
        slab->unit[u].live = 0;
    culet_slab_destroy(slab);
    culet_lock(&culet_pages_lock);
    culet_pages_purge(0, SIZE_MAX);
    culet_unlock(&culet_pages_lock);
}

static bool keep_none(unsigned index, uint64_t *seed)
{
    (void)index, (void)seed;
    return false;
}

static bool keep_all(unsigned index, uint64_t *seed)
{
    (void)index, (void)seed;
    return true;
}

static bool keep_first(unsigned index, uint64_t *seed)
{
    (void)seed;
    return index == 0;
}

static bool keep_few(unsigned index, uint64_t *seed)
{
    (void)index;
    return check_random(seed) % 97 == 0;
}

static bool keep_some(unsigned index, uint64_t *seed)
{
    (void)index;
    return check_random(seed) % 7 == 0;
}

TEST(purges_return_wholly_free_pages_and_nothing_else)
{
    uint64_t seed = 1;

    culet_size_class_setup();
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        purge_with(klass, keep_none, &seed);
        purge_with(klass, keep_all, &seed);
        purge_with(klass, keep_first, &seed);
        for (unsigned i = 0; i < 4; i++) {
            purge_with(klass, keep_few, &seed);
            purge_with(klass, keep_some, &seed);
        }
    }
}

/* The pages of claimed blocks stay, too. */
TEST(purges_spare_claimed_blocks)
{
    culet_size_class_setup();
    struct culet_slab *slab = create(culet_size_class(64));
    uintptr_t start = slab->span.start;

    memset((void *)start, 0xee, slab_bytes(slab));
    slab->dirty = all_pages(slab);
    slab->unit[1].live = slab->unit[1].claimed = culet_slab_class(slab)->full;
    culet_slab_purge(slab);
    for (size_t at = 0; at < 4096; at++)
        CHECK(((unsigned char *)start)[4096 + at] == 0xee, "byte %zu of a claimed unit was changed", at);
}

/* Locked memory cannot be purged; it must not be reported as zero. */
TEST(a_purge_that_the_kernel_refuses_returns_nothing)
{
    culet_size_class_setup();
    struct culet_slab *slab = create(culet_size_class(64));
    uintptr_t page = culet_os_page_bytes(), from = slab->span.start & ~(page - 1);

    memset((void *)slab->span.start, 0xee, slab_bytes(slab));
    slab->dirty = all_pages(slab);
    /* The system call itself: sanitizers make mlock do nothing. */
    CHECK(syscall(SYS_mlock, from, page) == 0, "a page cannot be locked: raise `ulimit -l` to 64");
    CHECK_EQUAL(culet_slab_purge(slab), 0);
    CHECK_EQUAL(slab->dirty, all_pages(slab));
    CHECK(*(unsigned char *)slab->span.start == 0xee, "locked memory was cleared");
    CHECK(syscall(SYS_munlock, from, page) == 0, "munlock failed");
    if (slab->span.start % page == 0)
        CHECK_EQUAL(culet_slab_purge(slab), slab_bytes(slab) & ~(page - 1));
}

static size_t visited;

static void visit(struct culet_slab *slab, void *data)
{
    (void)data;
    CHECK(slab->span.kind == CULET_SLAB && culet_pagemap_span(slab->span.start) == &slab->span, "not a slab");
    CHECK(slab->claims == 0, "visited twice");
    slab->claims = 1;
    visited++;
}

TEST(each_slab_is_visited_once)
{
    size_t made = 0;
    bool zeroed;
    uint32_t segment;

    culet_size_class_setup();
    culet_lock(&culet_pages_lock);
    CHECK(culet_pages_get(3, CULET_PAGE, &segment, &zeroed), "no memory"); /* a gap */
    culet_unlock(&culet_pages_lock);
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        for (unsigned i = 0; i < 3; i++, made++)
            create(klass);
    culet_lock(&culet_pages_lock);
    CHECK(culet_pages_stats().segments > 1, "more than one segment is walked");
    culet_slab_each(visit, NULL);
    culet_unlock(&culet_pages_lock);
    CHECK_EQUAL(visited, made);
}

TEST(refused_memory_gives_null)
{
    culet_size_class_setup();
    culet_os_refuse = resident_refuse_all;
    CHECK(!culet_slab_create(1), "a slab out of nothing");
    culet_os_refuse = NULL;
    CHECK(create(1), "no memory");
    culet_os_refuse = resident_refuse_all;
    unsigned made = 0;
    while (culet_slab_create(CULET_CLASSES - 1))
        made++;
    CHECK(made > 0 && made < 1024, "%u slabs out of what was there", made);
    culet_os_refuse = NULL;
    CHECK(create(CULET_CLASSES - 1), "no memory");
    pages_used();
}

CHECK_MAIN
