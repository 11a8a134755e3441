/* The index of a table's entries. */
#include "check.h"
#include "index.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

static bool refused; /* mappings fail */

/* The linker replaces mmap by these (--wrap). */
void *__real_mmap(void *address, size_t length, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int file, off_t offset);

void *__wrap_mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    if (!refused)
        return __real_mmap(address, length, protection, flags, file, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

#define ENTRIES 100000u

/* The key of an entry; keys that have the same hash follow each other. */
static uint64_t keys[ENTRIES + 1];

static uint64_t hash(uint64_t key)
{
    return culet_index_mix(key / 3);
}

static uint64_t hash_of(const void *table, uint32_t number)
{
    CHECK(table == keys, "another table");
    return hash(keys[number]);
}

/* The entry, or 0. */
static uint32_t find(const struct culet_index *index, uint64_t key)
{
    uint32_t at = culet_index_first(index, hash(key));

    while (index->slot[at] && keys[index->slot[at]] != key)
        at = culet_index_next(index, at);
    return index->slot[at];
}

static bool add(struct culet_index *index, uint32_t number, uint64_t key)
{
    keys[number] = key;
    if (!culet_index_reserve(index, hash_of, keys))
        return false;
    uint32_t at = culet_index_first(index, hash(key));
    while (index->slot[at])
        at = culet_index_next(index, at);
    culet_index_add(index, at, number);
    return true;
}

TEST(entries_are_found_whatever_has_been_added_since)
{
    struct culet_index index;

    CHECK(culet_index_create(&index), "no memory");
    for (uint32_t i = 1; i <= ENTRIES; i++) {
        CHECK_EQUAL(find(&index, i * UINT64_C(4097)), 0);
        CHECK(add(&index, i, i * UINT64_C(4097)), "no room for entry %u", i);
        CHECK(index.used <= index.slots / 4 * 3, "%u of %u slots are used", index.used, index.slots);
        CHECK_EQUAL(find(&index, (i + 1) / 2 * UINT64_C(4097)), (i + 1) / 2);
    }
    for (uint32_t i = 1; i <= ENTRIES; i++)
        CHECK_EQUAL(find(&index, i * UINT64_C(4097)), i);
    CHECK(index.slots < 4 * ENTRIES, "%u slots for %u entries", index.slots, ENTRIES);
    culet_index_destroy(&index);
}

TEST(without_memory_an_index_is_filled_but_for_one_slot)
{
    struct culet_index index;
    uint32_t entries = 0;

    CHECK(culet_index_create(&index), "no memory");
    refused = true;
    while (add(&index, entries + 1, entries + 1))
        entries++;
    CHECK_EQUAL(entries, index.slots - 1);
    for (uint32_t i = 1; i <= entries; i++)
        CHECK_EQUAL(find(&index, i), i);
    CHECK_EQUAL(find(&index, entries + 1), 0);
    refused = false;
    CHECK(add(&index, entries + 1, entries + 1), "there is memory again");
    for (uint32_t i = 1; i <= entries + 1; i++)
        CHECK_EQUAL(find(&index, i), i);
    culet_index_destroy(&index);
}

TEST(an_index_without_memory_is_not_made)
{
    struct culet_index index;

    refused = true;
    CHECK(!culet_index_create(&index), "there is an index");
    refused = false;
}

CHECK_MAIN
