/* The pagemap: any pointer value has an answer; entries, gravestones, and the refusal of its own memory. */
#include "pagemap.h"
#include "check.h"
#include "resident.h"

#define LEAF_BYTES (CULET_GRANULE << CULET_LEAF_SHIFT)

static struct culet_owner owner = {.kind = CULET_RUN}, other = {.kind = CULET_SLAB};

static void check_nothing(uintptr_t address)
{
    struct culet_grave grave = culet_pagemap_grave(address);

    CHECK(culet_pagemap_entry(address) == 0, "0x%lx has an entry", (unsigned long)address);
    CHECK(culet_pagemap_owner(address) == NULL, "0x%lx has an owner", (unsigned long)address);
    CHECK(!grave.present, "0x%lx has a gravestone", (unsigned long)address);
}

TEST(any_pointer_value_is_answered)
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

TEST(a_range_has_its_owner_everywhere_and_its_neighbours_have_none)
{
    /* Across the border of two leaves. */
    uintptr_t start = 5 * LEAF_BYTES - 3 * CULET_GRANULE;
    size_t granules = 7;

    CHECK(culet_pagemap_prepare(start, granules), "not prepared");
    for (size_t offset = 0; offset < granules * CULET_GRANULE; offset++)
        CHECK(!culet_pagemap_entry(start + offset), "prepared, not set");
    culet_pagemap_set(start, granules, &owner, 0);
    for (size_t offset = 0; offset < granules * CULET_GRANULE; offset++)
        CHECK(culet_pagemap_owner(start + offset) == &owner, "offset %zu", offset);
    check_nothing(start - 1);
    check_nothing(start + granules * CULET_GRANULE);

    culet_pagemap_set(start + CULET_GRANULE, 1, &other, 0);
    CHECK(culet_pagemap_owner(start) == &owner, "the granule before changed");
    CHECK(culet_pagemap_owner(start + CULET_GRANULE) == &other, "not changed");
    CHECK(culet_pagemap_owner(start + 2 * CULET_GRANULE) == &owner, "the granule behind changed");

    culet_pagemap_clear(start, granules);
    for (size_t offset = 0; offset < granules * CULET_GRANULE; offset++)
        check_nothing(start + offset);
}

TEST(a_slabs_entries_carry_its_class_and_the_place)
{
    for (unsigned klass = 0; klass < CULET_CLASSES; klass++) {
        uintptr_t start = 11 * LEAF_BYTES - 5 * CULET_GRANULE;
        CHECK(culet_pagemap_prepare(start, CULET_SLAB_GRANULES), "not prepared");
        culet_pagemap_set(start, CULET_SLAB_GRANULES, &owner, klass);
        for (size_t offset = 0; offset < CULET_SLAB_GRANULES * CULET_GRANULE; offset++) {
            uintptr_t entry = culet_pagemap_entry(start + offset);
            CHECK(culet_entry_class(entry) == klass, "class %u became %u", klass, culet_entry_class(entry));
            CHECK(culet_entry_owner(entry) == &owner, "class %u: another owner", klass);
            if (klass)
                CHECK(culet_entry_offset(entry, start + offset) == offset, "offset %zu", offset);
        }
        culet_pagemap_bury(start, CULET_SLAB_GRANULES, klass);
        for (size_t offset = 0; offset < CULET_SLAB_GRANULES * CULET_GRANULE; offset += 16) {
            uintptr_t entry = culet_pagemap_entry(start + offset);
            CHECK(culet_entry_class(entry) == 0 && !culet_entry_owner(entry), "a gravestone leads somewhere");
        }
    }
}

TEST(gravestones_tell_start_length_and_class)
{
    for (unsigned klass = 0; klass < CULET_CLASSES; klass++)
        for (size_t granules = 1; granules <= 300; granules += 13) {
            uintptr_t start = 9 * LEAF_BYTES - (granules / 2) * CULET_GRANULE;
            CHECK(culet_pagemap_prepare(start, granules), "not prepared");
            culet_pagemap_set(start, granules, &owner, 0);
            culet_pagemap_bury(start, granules, klass);
            for (size_t offset = 0; offset < granules * CULET_GRANULE; offset += 509) {
                struct culet_grave grave = culet_pagemap_grave(start + offset);
                CHECK(culet_pagemap_owner(start + offset) == NULL, "a freed granule has an owner");
                CHECK(grave.present, "no gravestone at %zu", offset);
                CHECK_EQUAL(grave.klass, klass);
                CHECK_EQUAL(grave.start, start);
                CHECK_EQUAL(grave.granules, granules);
            }
            culet_pagemap_clear(start, granules);
            check_nothing(start);
        }
}

TEST(a_huge_block_has_one_gravestone)
{
    uintptr_t start = 3 * LEAF_BYTES;
    size_t lengths[] = {257, 1 << 20, (1 << 24) - 1};

    for (unsigned i = 0; i < 3; i++) {
        CHECK(culet_pagemap_prepare(start, 2), "not prepared");
        culet_pagemap_bury_huge(start, lengths[i]);
        struct culet_grave grave = culet_pagemap_grave(start + 17);
        CHECK(grave.present && grave.klass == 0, "no gravestone");
        CHECK_EQUAL(grave.start, start);
        CHECK_EQUAL(grave.granules, lengths[i]);
        check_nothing(start + CULET_GRANULE);
    }
    /* 64 GiB and more is more than a gravestone can tell; it must not spill into the other fields. */
    culet_pagemap_bury_huge(start, (size_t)1 << 30);
    struct culet_grave grave = culet_pagemap_grave(start);
    CHECK(grave.present && grave.klass == 0 && grave.start == start, "a very long gravestone is damaged");
}

TEST(addresses_beyond_the_map_cannot_be_prepared)
{
    CHECK(!culet_pagemap_prepare((uintptr_t)1 << CULET_ADDRESS_BITS, 1), "beyond the last address");
    CHECK(!culet_pagemap_prepare(((uintptr_t)1 << CULET_ADDRESS_BITS) - CULET_GRANULE, 2), "across the last address");
    check_nothing((uintptr_t)1 << CULET_ADDRESS_BITS);
}

TEST(refused_memory_leaves_the_map_as_it_was)
{
    uintptr_t start = 7 * LEAF_BYTES - CULET_GRANULE;

    culet_os_refuse = resident_refuse_all;
    CHECK(!culet_pagemap_prepare(start, 2), "prepared without memory");
    check_nothing(start);
    culet_os_refuse = NULL;
    CHECK(culet_pagemap_prepare(start, 2), "not prepared with memory");
    culet_os_refuse = resident_refuse_all;
    CHECK(culet_pagemap_prepare(start, 2), "what is prepared needs no memory");
    culet_pagemap_set(start, 2, &owner, 0);
    CHECK(culet_pagemap_owner(start + CULET_GRANULE) == &owner, "not set");
}

CHECK_MAIN
