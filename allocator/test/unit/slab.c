/* Slabs of every class: the index of every byte, the pages of every unit, and the free pages, which no live block overlaps. */
#include "slab.h"
#include "check.h"
#include "heap_counts.h"
#include "lock.h"
#include "pagemap.h"
#include "pages.h"
#include "resident.h"
#include "size_class.h"

#define ARENA 7

static struct culet_slab *create(unsigned klass)
{
    struct culet_slab *slab = culet_slab_create(ARENA, klass);

    CHECK(slab, "no memory");
    return slab;
}

static size_t slab_bytes(const struct culet_slab *slab)
{
    return culet_slab_class(slab)->pages * CULET_PAGE;
}

static uint64_t all_pages(const struct culet_slab *slab)
{
    return (UINT64_C(2) << (culet_slab_class(slab)->pages - 1)) - 1;
}

static size_t pages_used(void)
{
    culet_lock(&culet_pages_lock);
    size_t used = culet_pages_stats().used;
    culet_pages_check();
    culet_unlock(&culet_pages_lock);
    return used;
}

static uint64_t free_word(const struct culet_slab *slab, unsigned unit)
{
    return atomic_load(&slab->unit[unit].free);
}

static void set_live(struct culet_slab *slab, uint32_t block)
{
    atomic_fetch_and(&slab->unit[culet_block_unit(block)].free, ~culet_block_bit(block));
}

static void set_free(struct culet_slab *slab, uint32_t block)
{
    atomic_fetch_or(&slab->unit[culet_block_unit(block)].free, culet_block_bit(block));
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
    for (unsigned klass = 1; klass <= CULET_SIZES; klass++) {
        struct culet_slab *slab = create(klass);
        uint32_t size = culet_classes[klass].size;
        size_t wrong = 0;

        for (uint32_t offset = 0; offset < slab_bytes(slab); offset++) {
            struct culet_block_index index = culet_slab_index(slab, slab->span.start + offset);
            wrong += index.block != offset / size || index.exact != (offset % size == 0);
        }
        CHECK(!wrong, "size %u: %zu wrong indices", size, wrong);
        culet_slab_destroy(slab);
    }
}

/* Of the slabs that a class can have, those with the first block at each cache line. */
TEST(slabs_begin_at_each_cache_line_that_their_class_may_use)
{
    culet_size_class_setup();
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        const struct culet_class *c = &culet_classes[klass];
        struct culet_slab *slabs[4 * CULET_COLOURS_MAX];
        uint32_t seen = 0, wrong = 0;

        for (unsigned i = 0; i < 4 * CULET_COLOURS_MAX; i++) {
            struct culet_slab *slab = slabs[i] = create(klass);
            size_t before = slab->span.start - culet_slab_pages(slab);
            seen |= 1u << before / CULET_CACHE_LINE;
            CHECK(before % CULET_CACHE_LINE == 0 && before / CULET_CACHE_LINE <= c->colours, "class %u", klass);
            CHECK(culet_slab_address(slab, c->count) <= culet_slab_pages(slab) + slab_bytes(slab), "class %u", klass);
            for (size_t offset = 0; offset < before; offset++)
                wrong += culet_slab_index(slab, culet_slab_pages(slab) + offset).exact;
            for (size_t block = 0; block < c->count; block++) {
                uintptr_t address = culet_slab_address(slab, block), entry = culet_pagemap_entry(address);
                struct culet_block_index index = culet_entry_index(entry, address);
                wrong += index.block != block || !index.exact || culet_entry_index(entry, address + 1).exact;
            }
        }
        CHECK(!wrong, "class %u: %u wrong indices", klass, wrong);
        CHECK_EQUAL(seen, (2u << c->colours) - 1);
        for (unsigned i = 0; i < 4 * CULET_COLOURS_MAX; i++)
            culet_slab_destroy(slabs[i]);
    }
}

TEST(no_index_is_exact_in_a_destroyed_slab)
{
    culet_size_class_setup();
    for (unsigned klass = 1; klass <= CULET_SIZES; klass++) {
        struct culet_slab *slab = create(klass);
        size_t bytes = slab_bytes(slab), exact = 0;

        culet_slab_destroy(slab);
        for (size_t offset = 0; offset < bytes; offset += 16)
            exact += culet_slab_index(slab, slab->span.start + offset).exact;
        CHECK(!exact, "class %u: %zu blocks", klass, exact);
    }
}

TEST(the_pagemap_leads_to_the_slab_until_it_is_destroyed)
{
    culet_size_class_setup();
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        size_t before = pages_used();
        struct culet_slab *slab = create(klass);
        uintptr_t start = culet_slab_pages(slab);
        size_t bytes = slab_bytes(slab);

        CHECK_EQUAL(pages_used() - before, culet_classes[klass].pages);
        for (size_t offset = 0; offset < bytes; offset += 16) {
            uintptr_t entry = culet_pagemap_entry(start + offset);
            CHECK(culet_entry_span(entry) == &slab->span, "class %u, offset %zu", klass, offset);
            CHECK(culet_entry_is_slab(entry) && culet_entry_slab(entry) == slab, "offset %zu", offset);
        }
        CHECK(culet_pagemap_span(start + bytes) != &slab->span, "class %u: the page behind", klass);
        culet_slab_destroy(slab);
        CHECK_EQUAL(pages_used(), before);
        for (size_t offset = 0; offset < bytes; offset += 16) {
            struct culet_freed freed = culet_pagemap_freed(start + offset);
            CHECK(freed.present && freed.klass == klass && freed.start == start, "no freed record at %zu", offset);
        }
        CHECK_EQUAL(slab->reciprocal, 0);
    }
}

TEST(a_new_slab_is_wholly_free)
{
    culet_size_class_setup();
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        struct culet_slab *slab = create(klass);
        const struct culet_class *c = culet_slab_class(slab);
        uint32_t last = c->count - 1u;

        CHECK_EQUAL(slab->span.arena, ARENA);
        CHECK_EQUAL(slab->span.klass, klass);
        CHECK_EQUAL(slab->usable, c->size);
        CHECK(!slab->available && !slab->remote_units, "a new slab is in no list");
        CHECK_EQUAL(live_blocks(slab), 0);
        CHECK(culet_slab_is_free(slab), "a new slab has a live block");
        for (unsigned u = 0; u < CULET_UNITS; u++) {
            CHECK_EQUAL(free_word(slab, u), culet_class_all(c, u));
            CHECK_EQUAL(slab->unit[u].remote, ~culet_class_all(c, u));
        }
        for (unsigned i = c->count; i <= CULET_UNITS * CULET_UNIT; i++)
            CHECK(!culet_slab_is_live(slab, i), "a block behind the last one is live");
        for (unsigned i = 0; i < c->count; i++) {
            CHECK(!culet_slab_is_live(slab, i), "block %u", i);
            set_live(slab, i);
            CHECK(culet_slab_is_live(slab, i), "block %u", i);
            CHECK(!culet_slab_is_free(slab), "block %u is live", i);
            CHECK_EQUAL(live_blocks(slab), i + 1);
        }
        /* Freed by another thread it is not in use, but the slab cannot be destroyed before it is collected. */
        for (unsigned i = 0; i < last; i++)
            set_free(slab, i);
        atomic_fetch_or(&slab->unit[culet_block_unit(last)].remote, culet_block_bit(last));
        CHECK(!culet_slab_is_live(slab, last), "a block that another thread freed is live");
        CHECK_EQUAL(live_blocks(slab), 0);
        CHECK(!culet_slab_is_free(slab), "a block is not collected");
    }
}

/* The pages of the block, as a mask. */
static uint64_t pages_of_block(const struct culet_slab *slab, size_t block)
{
    size_t first = slab->span.start - culet_slab_pages(slab) + block * slab->usable, last = first + slab->usable - 1;

    return (UINT64_C(2) << last / CULET_PAGE) - (UINT64_C(1) << first / CULET_PAGE);
}

TEST(units_touch_the_pages_of_their_blocks)
{
    culet_size_class_setup();
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        struct culet_slab *slab = create(klass);
        const struct culet_class *c = culet_slab_class(slab);
        uint64_t expected[CULET_UNITS] = {0};

        for (size_t i = 0; i < c->count; i++)
            expected[i / CULET_UNIT] |= pages_of_block(slab, i);
        for (unsigned u = 0; u < culet_class_units(c); u++)
            CHECK_EQUAL(culet_slab_unit_pages(slab, u), expected[u]);
        culet_slab_destroy(slab);
    }
}

/* The pages that a live block overlaps. */
static uint64_t touched_pages(const struct culet_slab *slab)
{
    const struct culet_class *c = culet_slab_class(slab);
    uint64_t touched = 0;

    for (uint32_t i = 0; i < c->count; i++)
        if (!(free_word(slab, culet_block_unit(i)) & culet_block_bit(i)))
            touched |= pages_of_block(slab, i);
    return touched;
}

/* The free pages, by kernel pages, as an independent count finds them. */
static uint64_t expected_free_pages(const struct culet_slab *slab)
{
    size_t page = culet_os_page_bytes(), count = page / CULET_PAGE;
    uintptr_t start = culet_slab_pages(slab);
    uint64_t touched = touched_pages(slab), expected = 0;

    for (uintptr_t p = (start + page - 1) & ~(page - 1); p + page <= start + slab_bytes(slab); p += page) {
        uint64_t mask = ((UINT64_C(2) << (count - 1)) - 1) << (p - start) / CULET_PAGE;
        expected |= touched & mask || !(slab->dirty & mask) ? 0 : mask;
    }
    return expected;
}

/* Taking pages takes the free blocks that overlap them, and nothing else; giving restores them. */
static void check_take_and_give(struct culet_slab *slab, uint64_t pages)
{
    const struct culet_class *c = culet_slab_class(slab);
    uint64_t before[CULET_UNITS];

    for (unsigned u = 0; u < CULET_UNITS; u++)
        before[u] = free_word(slab, u);
    culet_slab_take_pages(slab, pages);
    for (uint32_t i = 0; i < c->count; i++) {
        uint64_t overlapped = pages & pages_of_block(slab, i), bit = culet_block_bit(i);
        bool was = before[culet_block_unit(i)] & bit, is = free_word(slab, culet_block_unit(i)) & bit;
        CHECK(!overlapped || was, "block %u is live on a free page", i);
        CHECK(is == (was && !overlapped), "block %u of size %u", i, c->size);
    }
    culet_slab_give_pages(slab, pages);
    for (unsigned u = 0; u < CULET_UNITS; u++)
        CHECK_EQUAL(free_word(slab, u), before[u]);
}

/* Keeps the blocks that `keep` selects, and checks the free pages. */
static void keep_with(unsigned klass, bool (*keep)(unsigned index, uint64_t *seed), uint64_t *seed)
{
    struct culet_slab *slab = create(klass);
    const struct culet_class *c = culet_slab_class(slab);

    for (unsigned i = 0; i < c->count; i++)
        if (keep(i, seed))
            set_live(slab, i);
    slab->dirty = 0;
    CHECK_EQUAL(culet_slab_free_pages(slab), 0);
    slab->dirty = all_pages(slab) & check_random(seed);
    CHECK_EQUAL(culet_slab_free_pages(slab), expected_free_pages(slab));
    slab->dirty = all_pages(slab);
    uint64_t pages = culet_slab_free_pages(slab);
    CHECK_EQUAL(pages, expected_free_pages(slab));
    check_take_and_give(slab, pages);
    check_take_and_give(slab, pages & check_random(seed));
    for (unsigned i = 0; i < c->count; i++)
        set_free(slab, i);
    slab->dirty = 0;
    culet_slab_destroy(slab);
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

TEST(free_pages_are_those_that_no_live_block_overlaps)
{
    uint64_t seed = 1;

    culet_size_class_setup();
    for (unsigned klass = 1; klass <= CULET_SIZES; klass++) {
        keep_with(klass, keep_none, &seed);
        keep_with(klass, keep_all, &seed);
        keep_with(klass, keep_first, &seed);
        for (unsigned i = 0; i < 4; i++) {
            keep_with(klass, keep_few, &seed);
            keep_with(klass, keep_some, &seed);
        }
    }
}

/* A block that another thread freed is not free before it is collected: its slab may not lose the page meanwhile. */
TEST(a_page_with_an_uncollected_block_is_not_free)
{
    culet_size_class_setup();
    struct culet_slab *slab = create(culet_size_class(64));

    slab->dirty = all_pages(slab);
    set_live(slab, 0);
    atomic_store(&slab->unit[0].remote, 1);
    CHECK_EQUAL(culet_slab_free_pages(slab), expected_free_pages(slab));
    CHECK(!(culet_slab_free_pages(slab) & 1), "the first page has a block that is not collected");
}

static size_t visited;

static void visit(struct culet_slab *slab, void *data)
{
    (void)data;
    CHECK(slab->span.kind == CULET_SLAB && culet_pagemap_span(slab->span.start) == &slab->span, "not a slab");
    CHECK(!slab->purging, "visited twice");
    slab->purging = true;
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
    CHECK(!culet_slab_create(ARENA, 1), "a slab out of nothing");
    culet_os_refuse = NULL;
    CHECK(create(1), "no memory");
    culet_os_refuse = resident_refuse_all;
    unsigned made = 0;
    while (culet_slab_create(ARENA, CULET_CLASSES - 1))
        made++;
    CHECK(made > 0 && made < 1024, "%u slabs out of what was there", made);
    culet_os_refuse = NULL;
    CHECK(create(CULET_CLASSES - 1), "no memory");
    pages_used();
}

CHECK_MAIN
