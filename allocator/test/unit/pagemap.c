/* The pagemap: any pointer value has an entry; spans, freed records, and the refusal of its own memory. */
#include "pagemap.h"
#include "check.h"
#include "resident.h"

#define LEAF_BYTES (CULET_PAGE << CULET_LEAF_SHIFT)

static _Alignas(CULET_ENTRY_SPAN_ALIGNMENT) struct culet_slab slab = {.span.kind = CULET_SLAB,
                                                                      .span.klass = 7,
                                                                      .span.arena = 63},
                                                              other = {.span.kind = CULET_SLAB};
static _Alignas(CULET_ENTRY_SPAN_ALIGNMENT) struct culet_span block = {.kind = CULET_LARGE};

static void set_slab(struct culet_slab *which, uintptr_t start, size_t pages)
{
    which->span.start = start;
    culet_pagemap_set_slab(which, pages);
}

static void check_nothing(uintptr_t address)
{
    struct culet_freed freed = culet_pagemap_freed(address);

    CHECK(culet_pagemap_entry(address) == 0, "0x%lx has an entry", (unsigned long)address);
    CHECK(culet_pagemap_span(address) == NULL, "0x%lx has a span", (unsigned long)address);
    CHECK(!freed.present, "0x%lx has a freed record", (unsigned long)address);
}

TEST(any_pointer_value_has_an_entry)
{
    uint64_t seed = 1;

    for (unsigned bit = 0; bit < 64; bit++) {
        check_nothing((uintptr_t)1 << bit);
        check_nothing(((uintptr_t)1 << bit) - 1);
        check_nothing(~(uintptr_t)0 << bit);
        check_nothing(~(uintptr_t)0 >> bit);
    }
    for (unsigned i = 0; i < 1000000; i++)
        check_nothing(check_random(&seed) >> (check_random(&seed) % 64));
}

TEST(a_range_has_its_span_everywhere_and_its_neighbours_have_none)
{
    /* Across the border of two leaves. */
    uintptr_t start = 5 * LEAF_BYTES - 3 * CULET_PAGE;
    size_t pages = 7;

    CHECK(culet_pagemap_prepare(start, pages), "not prepared");
    for (size_t offset = 0; offset < pages * CULET_PAGE; offset++)
        CHECK(!culet_pagemap_entry(start + offset), "prepared, not set");
    set_slab(&slab, start, pages);
    for (size_t offset = 0; offset < pages * CULET_PAGE; offset++) {
        uintptr_t entry = culet_pagemap_entry(start + offset);
        CHECK(culet_entry_is_slab(entry) && culet_entry_slab(entry) == &slab, "offset %zu", offset);
        CHECK(culet_pagemap_span(start + offset) == &slab.span, "offset %zu", offset);
        CHECK_EQUAL(culet_entry_class(entry), 7);
        CHECK_EQUAL((uint8_t)entry, CULET_ENTRY_TAG(63));
        CHECK_EQUAL(culet_entry_offset(entry, start + offset), offset);
    }
    check_nothing(start - 1);
    check_nothing(start + pages * CULET_PAGE);

    set_slab(&other, start + CULET_PAGE, 1);
    CHECK(culet_pagemap_span(start) == &slab.span, "the page before changed");
    CHECK(culet_pagemap_span(start + CULET_PAGE) == &other.span, "not changed");
    CHECK(culet_pagemap_span(start + 2 * CULET_PAGE) == &slab.span, "the page behind changed");

    culet_pagemap_clear(start, pages);
    for (size_t offset = 0; offset < pages * CULET_PAGE; offset++)
        check_nothing(start + offset);
}

TEST(only_the_first_page_of_a_block_has_its_span)
{
    uintptr_t start = 11 * LEAF_BYTES - CULET_PAGE;

    CHECK(culet_pagemap_prepare(start, 3), "not prepared");
    culet_pagemap_set_block(start, &block);
    for (size_t offset = 0; offset < CULET_PAGE; offset++) {
        CHECK(culet_pagemap_span(start + offset) == &block, "offset %zu", offset);
        CHECK(!culet_entry_is_slab(culet_pagemap_entry(start + offset)), "a large block counts as a slab");
    }
    check_nothing(start + CULET_PAGE);
}

TEST(a_freed_slab_leads_nowhere)
{
    for (unsigned klass = 0; klass < CULET_CLASSES; klass++) {
        uintptr_t start = 11 * LEAF_BYTES - 5 * CULET_PAGE;
        CHECK(culet_pagemap_prepare(start, CULET_SLAB_PAGES), "not prepared");
        set_slab(&slab, start, CULET_SLAB_PAGES);
        culet_pagemap_set_freed(start, CULET_SLAB_PAGES, klass);
        for (size_t offset = 0; offset < CULET_SLAB_PAGES * CULET_PAGE; offset += 16) {
            uintptr_t entry = culet_pagemap_entry(start + offset);
            CHECK(!culet_entry_is_slab(entry) && !culet_entry_span(entry), "a freed record leads somewhere");
        }
    }
}

TEST(freed_records_have_start_length_and_class)
{
    for (unsigned klass = 0; klass < CULET_CLASSES; klass++)
        for (size_t pages = 1; pages <= 300; pages += 13) {
            uintptr_t start = 9 * LEAF_BYTES - (pages / 2) * CULET_PAGE;
            CHECK(culet_pagemap_prepare(start, pages), "not prepared");
            set_slab(&slab, start, pages);
            culet_pagemap_set_freed(start, pages, klass);
            for (size_t offset = 0; offset < pages * CULET_PAGE; offset += 509) {
                struct culet_freed freed = culet_pagemap_freed(start + offset);
                CHECK(culet_pagemap_span(start + offset) == NULL, "a freed page has a span");
                CHECK(freed.present, "no freed record at %zu", offset);
                CHECK_EQUAL(freed.klass, klass);
                CHECK_EQUAL(freed.start, start);
                CHECK_EQUAL(freed.pages, pages);
            }
            culet_pagemap_clear(start, pages);
            check_nothing(start);
        }
}

TEST(a_huge_block_has_one_freed_record)
{
    uintptr_t start = 3 * LEAF_BYTES;
    size_t lengths[] = {257, 1 << 20, (1 << 24) - 1};

    for (unsigned i = 0; i < 3; i++) {
        CHECK(culet_pagemap_prepare(start, 2), "not prepared");
        culet_pagemap_set_freed_huge(start, lengths[i]);
        struct culet_freed freed = culet_pagemap_freed(start + 17);
        CHECK(freed.present && freed.klass == 0, "no freed record");
        CHECK_EQUAL(freed.start, start);
        CHECK_EQUAL(freed.pages, lengths[i]);
        check_nothing(start + CULET_PAGE);
    }
    /* A freed record cannot hold 64 GiB and more; it must not overflow into the other fields. */
    culet_pagemap_set_freed_huge(start, (size_t)1 << 30);
    struct culet_freed freed = culet_pagemap_freed(start);
    CHECK(freed.present && freed.klass == 0 && freed.start == start, "a very long freed record is damaged");
}

TEST(addresses_beyond_the_map_cannot_be_prepared)
{
    CHECK(!culet_pagemap_prepare((uintptr_t)1 << CULET_ADDRESS_BITS, 1), "beyond the last address");
    CHECK(!culet_pagemap_prepare(((uintptr_t)1 << CULET_ADDRESS_BITS) - CULET_PAGE, 2), "across the last address");
    check_nothing((uintptr_t)1 << CULET_ADDRESS_BITS);
}

TEST(refused_memory_leaves_the_map_as_it_was)
{
    uintptr_t start = 7 * LEAF_BYTES - CULET_PAGE;

    culet_os_refuse = resident_refuse_all;
    CHECK(!culet_pagemap_prepare(start, 2), "prepared without memory");
    check_nothing(start);
    culet_os_refuse = NULL;
    CHECK(culet_pagemap_prepare(start, 2), "not prepared with memory");
    culet_os_refuse = resident_refuse_all;
    CHECK(culet_pagemap_prepare(start, 2), "what is prepared needs no memory");
    set_slab(&slab, start, 2);
    CHECK(culet_pagemap_span(start + CULET_PAGE) == &slab.span, "not set");
}

CHECK_MAIN
